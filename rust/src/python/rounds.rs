//! The search of the sequential program between rounds, for `plait.rounds.between`.

use crate::python::engine::Engine;
use crate::python::options::SearchOptions;
use crate::python::report::{Counters, SearchReport};
use crate::python::store::message;
use crate::rounds::Unsupported;
use crate::rounds::exchange::Exchange;
use crate::rounds::node::{Place, Protocol};
use crate::rounds::search::{Search, supported};
use crate::rounds::turn::TurnStep;
use crate::search::control::Control;
use crate::search::run::{Strategy, watched};
use crate::system::model::{Fault, MessageId, Result, Stopped};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Process, handler, consumed messages (sender and content), choices, the place in the order of rounds, and whether it creates
/// processes.
type PyStep = (u16, u16, Vec<(u16, Py<PyBytes>)>, Vec<Py<PyBytes>>, (Place, u8), bool);
/// By process its new place, and by role the new index of each index.
type Names = (Vec<u16>, Vec<(Vec<u8>, Vec<usize>)>);

/// What a search between rounds has found.
#[derive(Default)]
struct Found {
    runs: BTreeMap<usize, Vec<TurnStep>>,
    beyond: bool,
    bytes: usize,
    suspects: Option<bool>,
    ran: Vec<(u16, u16)>,
    births: Vec<(u16, u16)>,
    numbers_matter: Option<bool>,
    combinations: Vec<Vec<u32>>,
}

/// The report of a search between rounds.
#[pyclass(frozen, module = "plait._native")]
pub struct RoundsReport {
    /// Why nothing was decided: the step-by-step program must be searched instead.
    #[pyo3(get)]
    unsupported: Option<String>,
    /// The counters and the limit that ended the search.
    #[pyo3(get)]
    search: Py<SearchReport>,
    /// By property, the steps of a run that decides it.
    #[pyo3(get)]
    runs: BTreeMap<usize, Vec<PyStep>>,
    /// Whether the protocol goes beyond the last phase.
    #[pyo3(get)]
    beyond: bool,
    /// Whether a condition of section 4.2 may be broken; none if the search did not come to its end.
    #[pyo3(get)]
    suspects: Option<bool>,
    /// Processes and handlers that ran.
    #[pyo3(get)]
    ran: Vec<(u16, u16)>,
    /// Processes, and the slots of processes that they create.
    #[pyo3(get)]
    births: Vec<(u16, u16)>,
    /// Whether the numbers of created processes may matter; none if the search did not come to its end.
    #[pyo3(get)]
    numbers_matter: Option<bool>,
    /// The local states of all states that were met, if they were asked for.
    #[pyo3(get)]
    combinations: Vec<Vec<u32>>,
}

/// Search the sequential program of the System of an engine. `place_of` says the round of a message, by its sender and its
/// content; `end` is the last round. `exchanges` are the ways to exchange names of created processes. With `collect`, the report has the local states of each state.
#[pyfunction]
#[pyo3(signature = (engine, options, place_of, end, *, exchanges = vec![], collect = false, progress = None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments, checked by the stub")]
pub fn search_rounds(
    py: Python,
    engine: PyRef<Engine>,
    options: SearchOptions,
    place_of: Py<PyAny>,
    end: Place,
    exchanges: Vec<Names>,
    collect: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<RoundsReport> {
    let tables = engine.tables.clone();
    let control = Arc::new(Control::new(&tables.model.shape().clone(), options.for_states(false, false)?)?);
    let place = |message_id: MessageId| -> Result<Place> {
        Python::attach(|py| {
            let (_, sender, content) = message(py, tables.model.values(), message_id);
            place_of.call1(py, (sender, content))?.extract::<Place>(py)
        })
        .map_err(|error: PyErr| Box::new(error) as Fault)
    };
    let found: Mutex<Found> = Mutex::default();
    let unsupported: Mutex<Option<String>> = Mutex::default();
    engine.watch(py, &control, Strategy::Stateless, progress, |tick| {
        watched(&tables, &control, tick, || {
            let result = supported_search(&tables, &control, &place, end, &exchanges, collect);
            match result {
                Ok(made) => *found.lock() = made,
                Err(fault) => match fault.downcast::<Unsupported>() {
                    Ok(why) => *unsupported.lock() = Some(why.0.into()),
                    Err(fault) => return Err(fault),
                },
            }
            Ok(())
        })
    })?;
    let found = found.into_inner();
    let values = tables.model.values();
    let content = |py, step: TurnStep| -> PyStep {
        let consumed = step.consumed.iter().map(|&id| message(py, values, id));
        let choices = step.choices.iter().map(|&choice| PyBytes::new(py, values.field_content(choice)).unbind());
        let consumed = consumed.map(|(_, sender, content)| (sender, content.unbind())).collect();
        (step.process, step.handler, consumed, choices.collect(), step.key, step.creates)
    };
    let counters = engine.counters(py, &control, Strategy::Stateless);
    let memory_bytes = counters.memory_bytes - counters.table_bytes + found.bytes;
    let counters = Counters { table_bytes: found.bytes, memory_bytes, ..counters };
    Ok(RoundsReport {
        unsupported: unsupported.into_inner(),
        search: Py::new(py, SearchReport::new(py, &control, counters)?)?,
        runs: (found.runs.into_iter())
            .map(|(property, steps)| (property, steps.into_iter().map(|step| content(py, step)).collect()))
            .collect(),
        beyond: found.beyond,
        suspects: found.suspects,
        ran: found.ran,
        births: found.births,
        numbers_matter: found.numbers_matter,
        combinations: found.combinations,
    })
}

fn supported_search(
    tables: &crate::system::tables::Tables,
    control: &Control,
    place: &(dyn Fn(MessageId) -> Result<Place> + Sync),
    end: Place,
    exchanges: &[Names],
    collect: bool,
) -> Result<Found> {
    if !supported(tables) {
        return Err(Box::new(Unsupported("there are more than 64 processes")));
    }
    let mut protocol = Protocol::new(tables, place, end);
    let exchanges = exchanges.iter().cloned().map(|(places, roles)| Exchange::new(places, roles)).collect();
    let mut search = Search::new(&mut protocol, control, exchanges);
    let mut made = Found::default();
    answered(control, search.run())?;
    if !control.stopped() {
        made.numbers_matter = answered(control, search.numbers_matter())?;
    }
    if !control.stopped() {
        made.suspects = answered(control, search.suspects())?;
    }
    made.beyond = search.beyond;
    made.bytes = search.bytes();
    made.runs = std::mem::take(&mut search.runs);
    if collect {
        made.combinations = search.combinations();
    }
    made.ran = search.audit.ran.iter().copied().collect();
    made.ran.sort_unstable();
    made.births = search.audit.births.iter().copied().collect();
    made.births.sort_unstable();
    Ok(made)
}

/// A result, or none if the search has ended and so the model was not asked any more: the limit that ended it stands, and
/// all that was found before.
fn answered<T>(control: &Control, result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(fault) if fault.is::<Stopped>() => {
            control.fail(fault);
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

//! Searches for a run that explains a log, for Python: the events come in as tuples, a `ConformReport` goes out.

use crate::conform::log::{Complete, Event, Item, Label, Log, Matching};
use crate::conform::run::follow;
use crate::conform::search::{Found, Limits, Search};
use crate::conform::state::State;
use crate::python::engine::Engine;
use crate::python::report::{kind_name, raised};
use crate::system::model::MessageId;
use crate::system::tables::{Kind, Tables};
use crate::system::values::Values;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// The other process, the messages that it may be (sender and content), or the number of a pattern. Neither: any message.
type PyItem = (Option<u16>, Option<Vec<(u16, PyBackedBytes)>>, Option<u32>);
/// Its number, the label, what is received and sent, the fields with their contents, the events of other processes before it,
/// and how many of its own process come before those.
type PyEvent = (u32, Option<i32>, Vec<PyItem>, Vec<PyItem>, Vec<(u16, Vec<PyBackedBytes>)>, Vec<(u16, u32)>, u32);
/// Handlers, faults, sends and receives that events name always.
type PyComplete = (Vec<bool>, bool, bool, bool);
/// The process, the kind, the handler, and how many events the step explains.
type PyStep = (u16, &'static str, Option<u16>, u32);
/// The number of a property (none: a monitor), whether it raised an exception, what it said, and after how many steps.
type PyDecided = (Option<usize>, bool, Option<String>, usize);

/// What a search for a run that explains a log has found.
#[pyclass(frozen, get_all, module = "plait._native")]
pub struct ConformReport {
    /// A run that explains all was found; false: there is none. None: a limit ended the search.
    conforms: Option<bool>,
    /// What ended the search: "states", "timeout" or "interrupted".
    bound: Option<&'static str>,
    /// How many events the run explains.
    explained: usize,
    states: usize,
    transitions: usize,
    /// The number of the initial state of the run.
    initial: usize,
    steps: Vec<PyStep>,
    /// By event, after how many steps it is explained.
    places: Vec<Option<u32>>,
    /// The last states of the run: after how many steps, and the components.
    tail: Vec<(usize, Vec<u32>)>,
    decided: Vec<PyDecided>,
    /// The ends of the longest explained beginnings: by process how many events are explained, and the components.
    stuck: Vec<(Vec<u32>, Vec<u32>)>,
}

/// Search for a run that explains a log: events by process, and what they leave out nowhere. `matches` says whether a pattern
/// allows a message. Keep so many of the last states.
#[pyfunction]
#[pyo3(signature = (engine, events, complete, matches, *, max_states, open = false, timeout = None, keep = 0, reduced = true))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments, checked by the stub")]
pub fn conform(
    py: Python,
    engine: &Engine,
    events: Vec<Vec<PyEvent>>,
    complete: Vec<PyComplete>,
    matches: Py<PyAny>,
    max_states: usize,
    open: bool,
    timeout: Option<f64>,
    keep: usize,
    reduced: bool,
) -> PyResult<ConformReport> {
    let tables = engine.tables.clone();
    let shape = tables.model.shape();
    if shape.time.is_some() {
        return Err(PyValueError::new_err("a system with clocks"));
    }
    if events.len() != shape.movers() || complete.len() != shape.movers() {
        return Err(PyValueError::new_err("not one log per process"));
    }
    let log = Log {
        events: events
            .into_iter()
            .map(|own| own.into_iter().map(|event| made(tables.model.values(), event)).collect())
            .collect::<PyResult<_>>()?,
        complete: complete
            .into_iter()
            .map(|(handlers, faults, sends, receives)| Complete { handlers, faults, sends, receives })
            .collect(),
        open,
    };
    let begun = Instant::now();
    let late = timeout.map(Duration::from_secs_f64);
    let mut interrupt: Option<PyErr> = None;
    let report = py.detach(|| -> crate::system::model::Result<ConformReport> {
        let mut known: FxHashMap<(u32, MessageId), bool> = FxHashMap::default();
        let mut matcher = |pattern: u32, message: MessageId| -> crate::system::model::Result<bool> {
            if let Some(&known) = known.get(&(pattern, message)) {
                return Ok(known);
            }
            let content = tables.model.values().message_content(message);
            let found = Python::attach(|py| -> PyResult<bool> {
                matches.call1(py, (pattern, PyBytes::new(py, content)))?.extract(py)
            })?;
            known.insert((pattern, message), found);
            Ok(found)
        };
        let mut watch = |_: usize, _: usize| -> Option<&'static str> {
            if Python::attach(|py| py.check_signals().map_err(|error| interrupt = Some(error))).is_err() {
                return Some("interrupted");
            }
            late.filter(|&late| begun.elapsed() > late).map(|_| "timeout")
        };
        let initial = tables.initial()?;
        let starts = initial.iter().map(|one| State::new(&tables, &one.state, shape.movers())).collect();
        let limits = Limits { states: max_states, reduced };
        let found = Search::run(&tables, &log, &mut matcher, starts, &limits, &mut watch)?;
        let starts: Vec<&[u32]> = initial.iter().map(|one| &one.state[..]).collect();
        reported(&tables, &log, &starts, found, keep)
    });
    if let Some(error) = interrupt
        && !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
    {
        return Err(error);
    }
    report.map_err(raised)
}

fn reported(
    tables: &Tables,
    log: &Log,
    starts: &[&[u32]],
    found: Found,
    keep: usize,
) -> crate::system::model::Result<ConformReport> {
    let all = found.explained == log.len();
    let best = &found.reached[0];
    let followed = follow(tables, log, starts[best.root], best, keep)?;
    let shape = tables.model.shape();
    let stuck = |start: &[u32], state: &State| {
        let monitors = &start[shape.processes..shape.processes + shape.monitors];
        (state.front.clone(), state.components(tables, monitors))
    };
    Ok(ConformReport {
        conforms: found.decided.then_some(all),
        bound: found.bound,
        explained: found.explained,
        states: found.states,
        transitions: found.steps,
        initial: best.root,
        steps: best
            .steps
            .iter()
            .map(|step| {
                let handler = (step.kind == Kind::Step).then_some(step.handler);
                (step.process, kind_name(step.kind), handler, step.explains)
            })
            .collect(),
        places: followed.explained,
        tail: followed.states,
        decided: followed
            .decided
            .into_iter()
            .map(|one| (one.property, one.value.is_none(), one.message, one.step))
            .collect(),
        stuck: if all {
            Vec::new()
        } else {
            found.reached.iter().map(|one| stuck(starts[one.root], &one.state)).collect()
        },
    })
}

fn made(values: &Values, event: PyEvent) -> PyResult<Event> {
    let (number, label, receives, sends, fields, before, apart) = event;
    let label = match label {
        None => None,
        Some(-1) => Some(Label::Crash),
        Some(-2) => Some(Label::Recover),
        Some(-3) => Some(Label::Lose),
        Some(-4) => Some(Label::Duplicate),
        Some(handler) => {
            let handler = u16::try_from(handler).map_err(|_| PyValueError::new_err("not a label"))?;
            Some(Label::Handler(handler))
        }
    };
    let item = |(other, exact, pattern): PyItem| Item {
        other,
        matching: match (exact, pattern) {
            (Some(some), _) => {
                Matching::Exact(some.iter().map(|(sender, content)| values.message(*sender, content)).collect())
            }
            (None, Some(pattern)) => Matching::Partial(pattern),
            (None, None) => Matching::Any,
        },
    };
    Ok(Event {
        number,
        label,
        receives: receives.into_iter().map(item).collect(),
        sends: sends.into_iter().map(item).collect(),
        fields: fields
            .into_iter()
            .map(|(field, contents)| (field, contents.iter().map(|content| values.field(content)).collect()))
            .collect(),
        before,
        apart,
    })
}

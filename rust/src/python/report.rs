//! The values that searches return to Python: counters, findings, reports, and faults as exceptions.

use crate::python::native::model::Disagreement;
use crate::python::store::message;
use crate::search::control::{Control, Limit};
use crate::search::path::Step;
use crate::system::model::{self, Fault};
use crate::system::tables::{Details, Kind, Tables};
use crate::system::values::Values;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;

/// The name of a kind of step.
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Step => "step",
        Kind::Lose => "lose",
        Kind::Duplicate => "duplicate",
        Kind::Crash => "crash",
        Kind::Recover => "recover",
        Kind::Tick => "tick",
    }
}

/// One transition out of a state: who did what, and the state after it.
#[pyclass(frozen, module = "plait._native")]
pub struct Transition {
    pub(super) tables: Arc<Tables>,
    pub(super) step: Step,
}

impl Transition {
    fn details(&self) -> Details<'_> {
        self.tables.details(&self.step.record)
    }

    fn values(&self) -> &Values {
        self.tables.model.values()
    }
}

#[pymethods]
impl Transition {
    #[getter]
    fn kind(&self) -> &'static str {
        kind_name(self.details().kind)
    }

    /// Whether it is a step of a process, or a recovery that is assumed to happen.
    #[getter]
    fn moves(&self) -> bool {
        self.step.record.moves
    }

    #[getter]
    fn process(&self) -> usize {
        self.step.process
    }

    /// The handler's number in its class, for a step.
    #[getter]
    fn handler(&self) -> Option<u16> {
        (self.details().kind == Kind::Step).then_some(self.details().handler)
    }

    /// (message id, sender, content)
    #[getter]
    fn consumed<'py>(&self, py: Python<'py>) -> Vec<(u32, u16, Bound<'py, PyBytes>)> {
        self.details().consumed.iter().map(|&m| message(py, self.values(), m)).collect()
    }

    /// (receiver, message id, content) in the order sent
    #[getter]
    fn sends<'py>(&self, py: Python<'py>) -> Vec<(u16, u32, Bound<'py, PyBytes>)> {
        let send = |&(to, m): &(u16, u32)| (to, m, message(py, self.values(), m).2);
        self.details().sends().iter().map(send).collect()
    }

    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.details().events().iter().map(|&e| PyBytes::new(py, self.values().event_content(e).1)).collect()
    }

    #[getter]
    fn choices<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.details().choices().iter().map(|&c| PyBytes::new(py, self.values().field_content(c))).collect()
    }

    #[getter]
    fn spawned(&self) -> Vec<u16> {
        let movers = self.tables.model.shape().movers();
        self.details().spawns().iter().map(|&(slot, _)| slot).filter(|&slot| (slot as usize) < movers).collect()
    }

    /// Whether it is a violation (a failed assertion, an exception) or an error of the model, and what happened.
    #[getter]
    fn failure(&self) -> Option<Failure> {
        self.step.failure.as_deref().map(Failure::from)
    }

    #[getter]
    fn state(&self) -> Vec<u32> {
        self.step.state.clone()
    }

    #[getter]
    fn fingerprint(&self) -> u64 {
        self.step.fingerprint
    }
}

/// The counters of a search at one moment: while it runs, or when it has ended.
#[pyclass(frozen, get_all, module = "plait._native")]
#[derive(Default)]
pub struct Counters {
    pub states: usize,
    /// States outside of the bound of the search, which are not among the states.
    pub cut_states: usize,
    pub transitions: u64,
    pub terminal_states: u64,
    pub depth: u32,
    /// States that wait to be expanded.
    pub frontier: usize,
    pub walks: u64,
    pub stack_operations: u64,
    pub stack_operations_saved: u64,
    pub seconds: f64,
    pub python_calls: u64,
    /// Questions that the virtual machine has answered.
    pub native_answers: u64,
    /// Those that were compared with answers of Python, which `python_calls` counts, too.
    pub native_compared: u64,
    /// How many values of properties were entered by a key of 96 bits, which two of them may share.
    pub property_keys: u64,
    /// How many bits the fingerprints have.
    pub fingerprint_bits: u32,
    /// Distinct local states, with those of monitors, and the memory that they take.
    pub local_states: usize,
    pub local_bytes: usize,
    pub table_bytes: usize,
    pub memory_bytes: usize,
}

/// A state in which a property is violated, or an example that was asked for.
#[pyclass(frozen, get_all, module = "plait._native")]
pub struct Finding {
    /// Of the property; one past the last is a failed assertion.
    pub number: usize,
    pub fingerprint: u64,
    pub depth: u32,
    /// Fingerprints along the run to it, if the search knows them; else the visited set does.
    pub run: Option<Vec<u64>>,
}

/// What a search met, and what ended it.
#[pyclass(frozen, get_all, module = "plait._native")]
pub struct SearchReport {
    pub counters: Py<Counters>,
    /// The limit that ended the search, by name.
    pub bound: Option<&'static str>,
    pub findings: Vec<Py<Finding>>,
    pub passes: u32,
    /// Where steps led out of the bound of the search: process and handler (none: a fault; both none: initial states), and the
    /// number of states.
    pub exits: Vec<(Option<u16>, Option<u16>, u64)>,
    /// Why partial-order reduction was given up.
    pub given_up: Option<String>,
    /// What user code raised when it was interrupted, because it was still running after the search had ended.
    pub late: Option<Py<PyAny>>,
}

/// The initial state, the steps to a loop, and those of the loop.
pub type StemAndLoop = (Vec<u32>, Vec<Py<Transition>>, Vec<Py<Transition>>);

/// What a search for fair runs met.
#[pyclass(frozen, get_all, module = "plait._native")]
pub struct LivenessReport {
    pub states: Py<SearchReport>,
    /// Per automaton a fair run that it accepts.
    pub lassos: Vec<Option<StemAndLoop>>,
    /// Per refinement how a run violates it (initial, step or stuttering), and the run.
    pub refined: Vec<Option<(&'static str, StemAndLoop)>>,
    /// A step changed nothing that the engine sees: whether it can repeat for ever is not known.
    pub silent: bool,
    /// With partial-order reduction: a step leaves its process and its pending messages as they are.
    pub stays: bool,
}

/// User code that failed: an assertion or an exception (violations), or a mistake of the model that shows only in some states.
#[pyclass(frozen, get_all, module = "plait._native")]
pub struct Failure {
    pub violation: bool,
    pub message: String,
    pub hint: Option<String>,
    /// A `plait.kernel.trace.Raised` as MessagePack.
    pub exception: Option<Vec<u8>>,
}

#[pymethods]
impl Failure {
    #[new]
    #[pyo3(signature = (violation, message, hint = None, exception = None))]
    fn new(violation: bool, message: String, hint: Option<String>, exception: Option<Vec<u8>>) -> Failure {
        Failure { violation, message, hint, exception }
    }
}

impl From<&model::Failure> for Failure {
    fn from(failure: &model::Failure) -> Failure {
        let model::Failure { violation, message, hint, exception } = failure.clone();
        Failure { violation, message, hint, exception }
    }
}

impl From<&Failure> for model::Failure {
    fn from(failure: &Failure) -> model::Failure {
        let Failure { violation, message, hint, exception } = failure;
        model::Failure {
            violation: *violation,
            message: message.clone(),
            hint: hint.clone(),
            exception: exception.clone(),
        }
    }
}

impl SearchReport {
    pub fn new(py: Python, control: &Control, counters: Counters) -> PyResult<SearchReport> {
        let finding = |f: crate::search::control::Finding| {
            let finding = Finding { number: f.property, fingerprint: f.fingerprint, depth: f.depth, run: f.run };
            Py::new(py, finding)
        };
        Ok(SearchReport {
            counters: Py::new(py, counters)?,
            bound: control.bound().map(name),
            findings: control.findings().into_iter().map(finding).collect::<PyResult<_>>()?,
            passes: control.passes(),
            exits: (control.exits().into_iter())
                .map(|(exit, count)| match exit {
                    None => (None, None, count),
                    Some((process, kind, handler)) => (Some(process), (kind == Kind::Step).then_some(handler), count),
                })
                .collect(),
            given_up: control.given_up(),
            late: control.take_late().map(|fault| raised(fault).into_value(py).into_any()),
        })
    }
}

fn name(limit: Limit) -> &'static str {
    match limit {
        Limit::MaxStates => "max-states",
        Limit::MaxDepth => "max-depth",
        Limit::Timeout => "timeout",
        Limit::Memory => "memory",
        Limit::Interrupted => "interrupted",
        Limit::Walks => "walks",
    }
}

/// A fault as the exception to raise: what Python raised comes back as it was, a disagreement is an internal error, the rest
/// is wrong with the model.
pub fn raised(fault: Fault) -> PyErr {
    match fault.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(fault) if fault.is::<Disagreement>() => PyRuntimeError::new_err(fault.to_string()),
        Err(fault) => {
            let hint = fault.downcast_ref::<model::Failure>().and_then(|failure| failure.hint.clone());
            Python::attach(|py| model_error(py, &fault.to_string(), hint).unwrap_or_else(|error| error))
        }
    }
}

/// A `plait.kernel.errors.ModelError`.
fn model_error(py: Python, message: &str, hint: Option<String>) -> PyResult<PyErr> {
    let named = PyDict::new(py);
    named.set_item("hint", hint)?;
    let class = py.import("plait.kernel.errors")?.getattr("ModelError")?;
    Ok(PyErr::from_value(class.call((message,), Some(&named))?))
}

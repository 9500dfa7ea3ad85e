//! The engine as Python sees it: a system's transition relation, and the searches over it.

use crate::live::automaton::{Automaton, AutomatonNode};
use crate::live::fairness::Fairness;
use crate::live::graph::{Graph, Labelling, MOST_PREDICATES};
use crate::live::product::Product;
use crate::por::classes::Split;
use crate::por::relations::Seeds;
use crate::por::stubborn::{ALL, Stubborn};
use crate::python::model::PyModel;
use crate::search::control::{Control, Limit, Options, Por};
use crate::search::path::{self, Step};
use crate::search::run::{Strategy, run, watched};
use crate::search::test_hooks::TestHooks;
use crate::symmetry::group::Group;
use crate::system::model::{CrashFault, Fault, Network, PropertyKind, Shape};
use crate::system::tables::{Kind, Tables};
use crate::system::view::View;
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

type StemAndCycle = (Vec<Step>, Vec<Step>);

/// How long a search that is to end waits for user code to return.
const PATIENCE: Duration = Duration::from_secs(2);

/// An exception that Python raised comes back as it was.
fn raised(fault: Fault) -> PyErr {
    match fault.downcast::<PyErr>() {
        Ok(error) => *error,
        Err(other) => PyRuntimeError::new_err(other.to_string()),
    }
}

/// The interned component values of one engine, by id.
#[pyclass(frozen, module = "plait._native")]
pub struct Store {
    model: Arc<PyModel>,
    tables: Arc<Tables>,
}

#[pymethods]
impl Store {
    #[pyo3(signature = (id, /))]
    fn local<'py>(&self, py: Python<'py>, id: u32) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.model.local_content(id))
    }

    #[pyo3(signature = (id, /))]
    fn monitor<'py>(&self, py: Python<'py>, id: u32) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.model.monitor_content(id))
    }

    /// Pending messages as (message id, sender, content).
    #[pyo3(signature = (id, /))]
    fn inbox<'py>(&self, py: Python<'py>, id: u32) -> Vec<(u32, u16, Bound<'py, PyBytes>)> {
        // The tables' lock comes before the GIL.
        let messages = py.detach(|| self.tables.inbox(id));
        messages.iter().map(|&m| message(py, &self.model, m)).collect()
    }
}

fn message<'py>(py: Python<'py>, model: &PyModel, id: u32) -> (u32, u16, Bound<'py, PyBytes>) {
    let (sender, content) = model.message_content(id);
    (id, sender, PyBytes::new(py, &content))
}

/// One transition out of a state: who did what, and the state after it.
#[pyclass(frozen, module = "plait._native")]
pub struct Transition {
    model: Arc<PyModel>,
    step: Step,
}

impl Transition {
    fn details(&self) -> &crate::system::tables::Details {
        &self.step.expansion.details[self.step.transition]
    }
}

#[pymethods]
impl Transition {
    #[getter]
    fn kind(&self) -> &'static str {
        match self.details().kind {
            Kind::Step => "step",
            Kind::Lose => "lose",
            Kind::Duplicate => "duplicate",
            Kind::Crash => "crash",
            Kind::Recover => "recover",
        }
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
        self.details().consumed.iter().map(|&m| message(py, &self.model, m)).collect()
    }

    /// (receiver, message id, content) in the order sent
    #[getter]
    fn sends<'py>(&self, py: Python<'py>) -> Vec<(u16, u32, Bound<'py, PyBytes>)> {
        let send = |&(to, m): &(u16, u32)| (to, m, message(py, &self.model, m).2);
        self.details().sends().iter().map(send).collect()
    }

    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.details().events().iter().map(|&e| PyBytes::new(py, &self.model.event_content(e))).collect()
    }

    #[getter]
    fn choices<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.details().choices().iter().map(|c| PyBytes::new(py, c)).collect()
    }

    #[getter]
    fn spawned(&self) -> Vec<u16> {
        self.details().spawns().iter().map(|&(slot, _)| slot).collect()
    }

    /// Whether it is a violation (a failed assertion) or an error of the model, and what happened.
    #[getter]
    fn failure(&self) -> Option<(bool, String)> {
        self.details().failure().map(|f| (f.violation, f.text.clone()))
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

/// A system's transition relation and the searches over it.
#[pyclass(module = "plait._native")]
pub struct Engine {
    model: Arc<PyModel>,
    tables: Arc<Tables>,
    last: Option<Arc<Control>>,
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (tabulation, *, processes, monitors, network, lossy, losses, duplications, faults, properties, history, symmetry, pids))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments, checked by the stub")]
    fn new(
        tabulation: Py<PyAny>,
        processes: usize,
        monitors: usize,
        network: &str,
        lossy: bool,
        losses: Option<u32>,
        duplications: Option<u32>,
        faults: Vec<(Vec<usize>, u32, bool)>,
        properties: Vec<String>,
        history: bool,
        symmetry: Vec<Vec<u16>>,
        pids: Vec<(String, usize)>,
    ) -> PyResult<Engine> {
        let network = match (network, duplications) {
            ("unordered", _) | ("duplicating", Some(_)) => Network::Bag,
            ("duplicating", None) => Network::Set,
            ("fifo", _) => Network::Fifo,
            _ => {
                return Err(PyValueError::new_err(format!("unknown network {network:?}")));
            }
        };
        let faults = faults
            .into_iter()
            .map(|(members, budget, recovers)| {
                let may_crash = (0..processes).map(|p| members.contains(&p)).collect();
                CrashFault { may_crash, budget, recovers }
            })
            .collect();
        let properties = properties
            .iter()
            .map(|kind| match kind.as_str() {
                "always" => Ok(PropertyKind::Always),
                "reachable" => Ok(PropertyKind::Reachable),
                "final" => Ok(PropertyKind::Final),
                "predicate" => Ok(PropertyKind::Predicate),
                _ => Err(PyValueError::new_err(format!("unknown kind of property {kind:?}"))),
            })
            .collect::<PyResult<_>>()?;
        let group = if symmetry.is_empty() { Group::default() } else { Group::new(processes, &symmetry) };
        let shape =
            Shape { processes, monitors, network, lossy, losses, duplications, faults, properties, history, group };
        let model = Arc::new(PyModel::new(tabulation, shape, pids));
        let tables = Arc::new(Tables::new(model.clone()));
        Ok(Engine { model, tables, last: None })
    }

    #[getter]
    fn store(&self) -> Store {
        Store { model: self.model.clone(), tables: self.tables.clone() }
    }

    #[getter]
    fn python_calls(&self) -> u64 {
        self.model.calls()
    }

    fn initial(&self, py: Python) -> PyResult<Vec<u32>> {
        py.detach(|| self.tables.initial()).map_err(raised)
    }

    #[pyo3(signature = (state, /))]
    fn fingerprint(&self, py: Python, state: Vec<u32>) -> u64 {
        py.detach(|| View::new(&self.tables).fingerprint(&state))
    }

    #[pyo3(signature = (state, /))]
    fn successors(&self, py: Python, state: Vec<u32>) -> PyResult<Vec<Transition>> {
        let steps = py.detach(|| {
            let mut view = View::new(&self.tables);
            let fingerprint = view.fingerprint(&state);
            path::successors(&mut view, &state, fingerprint)
        });
        Ok(self.transitions(steps.map_err(raised)?))
    }

    /// Of a state: local ids, inbox ids, monitor ids, budgets.
    #[pyo3(signature = (state, /))]
    fn components(&self, py: Python, state: Vec<u32>) -> (Vec<u32>, Vec<u32>, Vec<u32>, Vec<u32>) {
        let shape = crate::system::model::Model::shape(&*self.model);
        let (nodes, rest) = state.split_at(shape.processes);
        let (monitors, budgets) = rest.split_at(shape.monitors);
        let nodes: Vec<_> = py.detach(|| nodes.iter().map(|&n| self.tables.node(n)).collect());
        let (locals, inboxes) = nodes.iter().map(|n| (n.local, n.inbox)).unzip();
        (locals, inboxes, monitors.to_vec(), budgets.to_vec())
    }

    #[pyo3(signature = (*, search, workers, max_states, max_depth, timeout, memory, seed, walks, keep_going, progress,
        spos = true, dpor = false, por = None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments, checked by the stub")]
    fn search<'py>(
        &mut self,
        py: Python<'py>,
        search: &str,
        workers: usize,
        max_states: Option<usize>,
        max_depth: Option<u32>,
        timeout: Option<f64>,
        memory: Option<usize>,
        seed: u64,
        walks: u64,
        keep_going: bool,
        progress: Option<Py<PyAny>>,
        spos: bool,
        dpor: bool,
        por: Option<(String, String)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let strategy = match search {
            "bfs" => Strategy::Bfs,
            "dfs" => Strategy::Dfs,
            "stateless" => Strategy::Stateless,
            "random" => Strategy::Random,
            _ => return Err(PyValueError::new_err(format!("unknown search {search:?}"))),
        };
        let por = por.map(|(split, seeds)| partial_order(&split, &seeds)).transpose()?;
        let options = Options {
            workers: workers.max(1),
            max_states: max_states.unwrap_or(usize::MAX),
            max_depth: max_depth.unwrap_or(u32::MAX),
            timeout: timeout.map(Duration::from_secs_f64),
            memory: memory.unwrap_or(usize::MAX),
            seed,
            walks,
            keep_going,
            por,
            spos,
            dpor,
        };
        let control = Arc::new(Control::new(&crate::system::model::Model::shape(&*self.model).clone(), options)?);
        self.last = Some(control.clone());
        self.watch(py, &control, strategy, progress, |tick| run(&self.tables, &control, strategy, tick))?;
        let report = self.counters(py, &control, strategy)?;
        report.set_item("bound", bound(&control))?;
        report.set_item("passes", control.passes())?;
        report.set_item("given_up", control.given_up())?;
        report.set_item("findings", findings(&control))?;
        Ok(report)
    }

    /// Per automaton, a fair run that it accepts, as the steps to a loop and those of the loop; none if there is none.
    #[pyo3(signature = (*, predicates, automata, workers, max_states, timeout, memory, progress, safety = false,
        por = None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments, checked by the stub")]
    fn liveness<'py>(
        &self,
        py: Python<'py>,
        predicates: Vec<usize>,
        automata: Vec<(Automaton, Vec<Fairness>)>,
        workers: usize,
        max_states: Option<usize>,
        timeout: Option<f64>,
        memory: Option<usize>,
        progress: Option<Py<PyAny>>,
        safety: bool,
        por: Option<(String, String)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        if predicates.len() > MOST_PREDICATES {
            return Err(PyValueError::new_err(format!("more than {MOST_PREDICATES} predicates")));
        }
        let por = por.map(|(split, seeds)| partial_order(&split, &seeds)).transpose()?;
        let options = Options {
            workers: workers.max(1),
            max_states: max_states.unwrap_or(usize::MAX),
            timeout: timeout.map(Duration::from_secs_f64),
            memory: memory.unwrap_or(usize::MAX),
            ..Options::default()
        };
        let control = Control::new(&crate::system::model::Model::shape(&*self.model).clone(), options)?;
        let lassos: Mutex<Vec<Option<StemAndCycle>>> = Mutex::default();
        let (silent, bytes) = (AtomicBool::new(false), AtomicUsize::new(0));
        // Counted as a search without a visited set is: the graph has its own.
        self.watch(py, &control, Strategy::Stateless, progress, |tick| {
            watched(&self.tables, &control, tick, || {
                let mut view = View::new(&self.tables);
                let labelling = Labelling { control: &control, predicates: &predicates, safety };
                let graph = Graph::explored(&mut view, labelling, por)?;
                silent.store(graph.silent, Relaxed);
                bytes.store(graph.bytes(), Relaxed);
                if safety {
                    let mut run_to = graph.runs_to(&mut view);
                    control.keep_runs(|fingerprint| Ok(run_to(fingerprint)))?;
                    control.terminal.store(graph.terminals() as u64, Relaxed);
                }
                for (automaton, fairness) in &automata {
                    let mut product = Product::new(&mut view, &control, &graph, automaton, fairness)?;
                    let lasso = product.lasso()?;
                    let steps = lasso.map(|lasso| lasso.steps(&mut view, &graph)).transpose()?;
                    lassos.lock().push(steps);
                }
                Ok(())
            })
        })?;
        let report = self.counters(py, &control, Strategy::Stateless)?;
        report.set_item("bound", bound(&control))?;
        report.set_item("silent", silent.into_inner())?;
        report.set_item("graph_bytes", bytes.into_inner())?;
        report.set_item("findings", findings(&control))?;
        let mut lassos = lassos.into_inner();
        lassos.resize_with(automata.len(), || None);
        let lassos: Vec<_> = lassos
            .into_iter()
            .map(|lasso| lasso.map(|(stem, cycle)| (self.transitions(stem), self.transitions(cycle))))
            .collect();
        report.set_item("lassos", lassos)?;
        Ok(report)
    }

    /// The run to a state that the last search visited; along these fingerprints, if they are given.
    #[pyo3(signature = (fingerprint, run = None))]
    fn path(&self, py: Python, fingerprint: u64, run: Option<Vec<u64>>) -> PyResult<Option<Vec<Transition>>> {
        let steps = py.detach(|| match (&run, &self.last) {
            (Some(run), _) => path::along(&self.tables, run),
            (None, Some(control)) => path::to(&self.tables, control, fingerprint),
            (None, None) => Err("nothing was searched yet".into()),
        });
        Ok(steps.map_err(raised)?.map(|steps| self.transitions(steps)))
    }

    /// The processes whose transitions partial-order reduction takes here, as in the last search; all without it.
    #[pyo3(signature = (state, /))]
    fn stubborn(&self, py: Python, state: Vec<u32>) -> PyResult<Vec<usize>> {
        let shape = crate::system::model::Model::shape(&*self.model);
        let relations = self.last.as_ref().and_then(|control| control.relations());
        let chosen = relations
            .map_or(Ok(ALL), |relations| py.detach(|| Stubborn::new(relations, shape).processes(&self.tables, &state)));
        let chosen = chosen.map_err(raised)?;
        Ok((0..shape.processes).filter(|process| chosen >> (process % 64) & 1 == 1).collect())
    }

    /// Fingerprints of all states that the last search visited.
    fn fingerprints(&self) -> Vec<u64> {
        self.last.as_ref().map_or_else(Vec::new, |control| control.visited.fingerprints())
    }

    /// For tests: fingerprints of the terminal states that the last search met, if `_test_hooks` has them collected.
    fn _terminals(&self) -> Vec<u64> {
        self.last.as_ref().map_or_else(Vec::new, |control| control.terminals())
    }
}

/// For tests: rules that later searches of this process leave out, and whether they collect terminal states.
#[pyfunction]
#[pyo3(signature = (*, leave_out = vec![], collect_terminals = false))]
pub fn _test_hooks(leave_out: Vec<String>, collect_terminals: bool) {
    TestHooks { left_out: leave_out, collect_terminals }.install();
}

/// The options of partial-order reduction by name.
fn partial_order(split: &str, seeds: &str) -> PyResult<Por> {
    let split = match split {
        "none" => Split::None,
        "reply" => Split::Reply,
        "quorum" => Split::Quorum,
        "combined" => Split::Combined,
        _ => return Err(PyValueError::new_err(format!("unknown split {split:?}"))),
    };
    let seeds = match seeds {
        "instance" => Seeds::Instance,
        "fewest" => Seeds::Fewest,
        _ => return Err(PyValueError::new_err(format!("unknown choice of seeds {seeds:?}"))),
    };
    Ok(Por { split, seeds })
}

/// What a search found, as (property, fingerprint, depth, run).
fn findings(control: &Control) -> Vec<(usize, u64, u32, Option<Vec<u64>>)> {
    control.findings().into_iter().map(|f| (f.property, f.fingerprint, f.depth, f.run)).collect()
}

/// The limit that ended a search, by name.
fn bound(control: &Control) -> Option<&'static str> {
    control.bound().map(|limit| match limit {
        Limit::MaxStates => "max-states",
        Limit::MaxDepth => "max-depth",
        Limit::Timeout => "timeout",
        Limit::Memory => "memory",
        Limit::Interrupted => "interrupted",
        Limit::Walks => "walks",
    })
}

impl Engine {
    /// Work with a watch that tells of progress, and stops on Ctrl-C.
    fn watch(
        &self,
        py: Python,
        control: &Control,
        strategy: Strategy,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(&mut (dyn FnMut() -> bool + Send)) -> crate::system::model::Result<()> + Send,
    ) -> PyResult<()> {
        let mut interrupt: Option<PyErr> = None;
        let mut shown = Instant::now();
        let mut stopped: Option<Instant> = None;
        let result = py.detach(|| {
            work(&mut || {
                if control.ended() && stopped.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                    self.model.interrupt();
                }
                Python::attach(|py| {
                    if let Some(progress) = &progress
                        && shown.elapsed() > Duration::from_millis(100)
                    {
                        shown = Instant::now();
                        let summary = self.counters(py, control, strategy).and_then(|c| progress.call1(py, (c,)));
                        if let Err(error) = summary {
                            interrupt = Some(error);
                            return false;
                        }
                    }
                    py.check_signals().map_err(|error| interrupt = Some(error)).is_ok()
                })
            })
        });
        if let Some(error) = interrupt
            && !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
        {
            return Err(error);
        }
        result.map_err(raised)
    }

    fn transitions(&self, steps: Vec<Step>) -> Vec<Transition> {
        steps.into_iter().map(|step| Transition { model: self.model.clone(), step }).collect()
    }

    fn counters<'py>(&self, py: Python<'py>, control: &Control, strategy: Strategy) -> PyResult<Bound<'py, PyDict>> {
        let frontier = control.frontier.load(Relaxed);
        // Both locks come before the GIL.
        let (table, tables) = py.detach(|| (control.visited.bytes(), self.tables.bytes()));
        let stateless = strategy == Strategy::Stateless;
        let states = if stateless { control.visits.load(Relaxed) as usize } else { control.visited.len() };
        let width = crate::system::model::Model::shape(&*self.model).width();
        let report = PyDict::new(py);
        report.set_item("states", states)?;
        report.set_item("transitions", control.transitions.load(Relaxed))?;
        report.set_item("terminal", control.terminal.load(Relaxed))?;
        report.set_item("depth", control.depth.load(Relaxed))?;
        report.set_item("frontier", frontier)?;
        report.set_item("walks", control.walks.load(Relaxed))?;
        report.set_item("stack_operations", control.stack_operations.load(Relaxed))?;
        report.set_item("stack_operations_saved", control.stack_operations_saved.load(Relaxed))?;
        report.set_item("seconds", control.started.elapsed().as_secs_f64())?;
        report.set_item("python_calls", self.model.calls())?;
        report.set_item("table_bytes", table)?;
        report.set_item("memory_bytes", table + tables + self.model.bytes() + frontier * (width + 2) * 8)?;
        Ok(report)
    }
}

/// (nodes, initial nodes, number of acceptance sets); a node is (yes, no, next, accepting).
impl FromPyObject<'_, '_> for Automaton {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Automaton> {
        type Node = (u64, u64, Vec<u32>, u64);
        let (nodes, initial, sets): (Vec<Node>, Vec<u32>, u32) = object.extract()?;
        let node = |(yes, no, next, accepting): Node| AutomatonNode { yes, no, next, accepting };
        Ok(Automaton { nodes: nodes.into_iter().map(node).collect(), initial, sets })
    }
}

/// (strong, handlers with their processes, one for each message)
impl FromPyObject<'_, '_> for Fairness {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Fairness> {
        let (strong, handlers, by_message) = object.extract()?;
        Ok(Fairness { strong, handlers, by_message })
    }
}

//! The Python classes of the engine: the transition relation of a system, and the searches on it.

use crate::live::automaton::Automaton;
use crate::live::fairness::Fairness;
use crate::live::graph::{Graph, Labelling, MOST_PREDICATES};
use crate::live::lasso::Lasso;
use crate::live::product::Product;
use crate::live::projection::{Collapsed, Place, project};
use crate::live::refinement::{Violation, violation};
use crate::live::ways::ways;
use crate::por::stubborn::{ALL, Stubborn};
use crate::python::arguments::place_of;
use crate::python::mapping::{self, PyMapping};
use crate::python::model::PyModel;
use crate::python::native::model::NativeModel;
use crate::python::native::shape::NativeShape;
use crate::python::options::SearchOptions;
use crate::python::report::{Counters, LivenessReport, SearchReport, Transition, kind_name, raised};
use crate::python::store::Store;
use crate::search::control::Control;
use crate::search::path::{self, Step};
use crate::search::run::{Strategy, run, watched};
use crate::search::test_hooks::TestHooks;
use crate::symmetry::group::{Group, LISTED};
use crate::system::model::{Capacity, CrashFault, Fault, Model, Network, PropertyKind, Quantifier, Shape};
use crate::system::successors::View;
use crate::system::tables::{Kind, Tables};
use crate::system::tick::Time;
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The state that a run begins with, its stem and its cycle.
type StemAndCycle = (Vec<u32>, Vec<Step>, Vec<Step>);

/// How long a search that is to end waits for user code to return.
const PATIENCE: Duration = Duration::from_secs(2);

/// Of a collapsed state graph: the initial state and the steps of a run to a node, how many states the node has, whether an
/// initial one is among them, and how many are terminal and how many violating.
type CollapsedNode = (Vec<u32>, Vec<Py<Transition>>, u64, bool, u64, u64);
/// Two nodes, the process, the kind and the handler of a step, and how many transitions there are.
type CollapsedEdge = (u32, u32, u16, &'static str, Option<u16>, u64);

/// A system's transition relation and the searches over it.
#[pyclass(module = "plait._native")]
pub struct Engine {
    model: Arc<PyModel>,
    /// The model that runs natively and asks `model` for the rest.
    native: Option<Arc<NativeModel>>,
    pub(super) tables: Arc<Tables>,
    last: Option<Arc<Control>>,
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (tabulation, *, processes, cells, handlers, monitors, network, capacity, drops, lossy, losses, duplications, faults, returning, properties, history, symmetry, rotations, pids, clocks = None, native = None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments, checked by the stub")]
    fn new(
        tabulation: Py<PyAny>,
        processes: usize,
        cells: usize,
        handlers: Vec<u16>,
        monitors: usize,
        network: &str,
        capacity: Option<usize>,
        drops: bool,
        lossy: bool,
        losses: Option<u32>,
        duplications: Option<u32>,
        faults: Vec<(Vec<usize>, u32, bool)>,
        returning: Vec<bool>,
        properties: Vec<String>,
        history: bool,
        symmetry: Vec<Vec<u16>>,
        rotations: Vec<Vec<u16>>,
        pids: Vec<(String, usize)>,
        clocks: Option<Time>,
        native: Option<NativeShape>,
    ) -> PyResult<Engine> {
        let network = match (network, duplications) {
            ("unordered", _) | ("duplicating", Some(_)) => Network::Bag,
            ("duplicating", None) => Network::Set,
            ("fifo", _) => Network::Fifo,
            ("mailbox", _) => Network::Mailbox,
            _ => {
                return Err(PyValueError::new_err(format!("unknown network {network:?}")));
            }
        };
        let faults = faults
            .into_iter()
            .map(|(members, budget, recovers)| {
                let may_crash = (0..processes + cells).map(|p| members.contains(&p)).collect();
                CrashFault { may_crash, budget, recovers }
            })
            .collect();
        let properties: Vec<PropertyKind> = properties
            .iter()
            .map(|kind| match kind.as_str() {
                "always" => Ok(PropertyKind::Always),
                "reachable" => Ok(PropertyKind::Reachable),
                "final" => Ok(PropertyKind::Final),
                "predicate" => Ok(PropertyKind::Predicate),
                "initially" => Ok(PropertyKind::Initially),
                "within" => Ok(PropertyKind::Within),
                _ => Err(PyValueError::new_err(format!("unknown kind of property {kind:?}"))),
            })
            .collect::<PyResult<_>>()?;
        let quantifiers = vec![Quantifier::default(); properties.len()];
        let none = symmetry.is_empty() && rotations.is_empty();
        let listed = if TestHooks::current().leaves_out("listing") { 0 } else { LISTED };
        let group = if none { Group::default() } else { Group::new(processes + cells, &symmetry, &rotations, listed) };
        let shape = Shape {
            processes: processes + cells,
            cells,
            handlers,
            monitors,
            network,
            capacity: capacity.map(|most| Capacity { most, drops }),
            lossy,
            losses,
            duplications,
            faults,
            returning,
            properties,
            quantifiers,
            history,
            group,
            time: clocks,
        };
        let model = Arc::new(PyModel::new(tabulation, shape, pids));
        let native = native.map(|shape| NativeModel::new(model.clone(), shape)).transpose();
        let native = native.map_err(|error| PyValueError::new_err(format!("not a program: {error}")))?.map(Arc::new);
        let asked: Arc<dyn Model> = match &native {
            Some(native) => native.clone(),
            None => model.clone(),
        };
        Ok(Engine { model, native, tables: Arc::new(Tables::new(asked)), last: None })
    }

    #[getter]
    fn store(&self) -> Store {
        Store { model: Arc::downgrade(&self.model), tables: Arc::downgrade(&self.tables) }
    }

    #[getter]
    fn python_calls(&self) -> u64 {
        self.model.calls()
    }

    /// How many questions ran natively.
    #[getter]
    fn native_answers(&self) -> u64 {
        self.native.as_ref().map_or(0, |native| native.answered())
    }

    /// How many answers of native functions were compared with those of Python.
    #[getter]
    fn native_compared(&self) -> u64 {
        self.native.as_ref().map_or(0, |native| native.compared())
    }

    /// How many questions native functions left to Python.
    #[getter]
    fn native_left(&self) -> u64 {
        self.native.as_ref().map_or(0, |native| native.left())
    }

    /// Why functions that can run natively left single questions to Python.
    #[getter]
    fn native_reasons(&self) -> Vec<&'static str> {
        self.native.as_ref().map_or_else(Vec::new, |native| native.reasons())
    }

    /// How many distinct local states (with those of monitors) there are, and the memory that they take.
    #[getter]
    fn local_states(&self) -> (usize, usize) {
        self.model.values().locals_size()
    }

    /// How many images of a state its fingerprint is the least of, at most.
    #[getter]
    fn images(&self) -> u64 {
        self.tables.images_compared()
    }

    /// Whether the audit of a declared symmetry has left images out, because there are too many.
    #[getter]
    fn symmetry_sampled(&self) -> bool {
        self.tables.sampled.load(Relaxed)
    }

    /// The distinct initial states, each with the number of the first combination of choices that leads to it.
    fn initial(&self, py: Python) -> PyResult<Vec<(Vec<u32>, usize)>> {
        let states = py.detach(|| self.tables.initial()).map_err(raised)?;
        Ok(states.iter().map(|one| (one.state.clone(), one.combination)).collect())
    }

    /// Have searches begin with this state from now on.
    #[pyo3(signature = (state, /))]
    fn begin_with(&self, state: Vec<u32>) {
        self.tables.begin_with(state);
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
    fn components(&self, state: Vec<u32>) -> (Vec<u32>, Vec<u32>, Vec<u32>, Vec<u32>) {
        let shape = self.model.shape();
        let (nodes, rest) = state.split_at(shape.processes);
        let (monitors, budgets) = rest.split_at(shape.monitors);
        let (locals, inboxes) = nodes.iter().map(|&n| self.tables.node(n)).map(|n| (n.local, n.inbox)).unzip();
        (locals, inboxes, monitors.to_vec(), budgets.to_vec())
    }

    /// Of a state: by how many ticks each process is ahead of the slowest one.
    #[pyo3(signature = (state, /))]
    fn leads(&self, state: Vec<u32>) -> Vec<u8> {
        state[..self.model.shape().processes].iter().map(|&node| self.tables.node(node).lead).collect()
    }

    /// Search for states that decide properties. `por` and `dpor` are the partial-order reductions that apply.
    #[pyo3(signature = (options, *, por = false, dpor = false, progress = None))]
    fn search(
        &mut self,
        py: Python,
        options: SearchOptions,
        por: bool,
        dpor: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<SearchReport> {
        let strategy = options.strategy()?;
        let control = Arc::new(Control::new(&self.tables.model.shape().clone(), options.for_states(por, dpor)?)?);
        self.last = Some(control.clone());
        self.watch(py, &control, strategy, progress, |tick| run(&self.tables, &control, strategy, tick))?;
        SearchReport::new(py, &control, self.counters(py, &control, strategy))
    }

    /// Search for fair runs, one per automaton over the predicates. With `safety`, properties of states are decided on the
    /// way, and a violation ends the search.
    ///
    /// Then check refinements: each is an object that maps states to abstract ones (`plait.check.live.refinement`), with the
    /// fairness of the system.
    #[pyo3(signature = (options, *, predicates, automata, refinements = vec![], safety = false, por = false, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments, checked by the stub")]
    fn liveness(
        &self,
        py: Python,
        options: SearchOptions,
        predicates: Vec<usize>,
        automata: Vec<(Automaton, Vec<Fairness>)>,
        refinements: Vec<(Py<PyAny>, Vec<Fairness>)>,
        safety: bool,
        por: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<LivenessReport> {
        if predicates.len() + refinements.len() > MOST_PREDICATES {
            return Err(PyValueError::new_err(format!("more than {MOST_PREDICATES} predicates")));
        }
        let reduced = por;
        let por = if por { Some(options.partial_order()?) } else { None };
        let control = Control::new(&self.tables.model.shape().clone(), options.for_runs())?;
        let lassos: Mutex<Vec<Option<StemAndCycle>>> = Mutex::default();
        let refined: Mutex<Vec<Option<(Violation, StemAndCycle)>>> = Mutex::default();
        let (silent, bytes) = (AtomicBool::new(false), AtomicUsize::new(0));
        // Counted as a search without a visited set is: the graph has its own.
        self.watch(py, &control, Strategy::Stateless, progress, |tick| {
            watched(&self.tables, &control, tick, || {
                let mut view = View::new(&self.tables);
                let labelling =
                    Labelling { control: &control, predicates: &predicates, spare: refinements.len(), safety };
                let mut graph = Graph::explored(&mut view, labelling, por)?;
                silent.store(graph.silent, Relaxed);
                bytes.store(graph.bytes(), Relaxed);
                if !control.findings().is_empty() {
                    let mut run_to = graph.runs_to(&mut view);
                    control.keep_runs(|fingerprint| Ok(run_to(fingerprint)))?;
                }
                if safety {
                    control.terminal.store(graph.terminals() as u64, Relaxed);
                }
                for (automaton, fairness) in &automata {
                    let mut product = Product::new(&mut view, &control, &graph, automaton, fairness)?;
                    let lasso = product.lasso()?;
                    let steps = lasso.map(|lasso| lasso.steps(&mut view, &graph)).transpose()?;
                    lassos.lock().push(steps);
                }
                for (number, (object, fairness)) in refinements.iter().enumerate() {
                    let mapping = PyMapping { object, tables: &self.tables };
                    let bit = predicates.len() + number;
                    let found = violation(&mut view, &control, &mut graph, &mapping, fairness, bit)?;
                    let steps = found.map(|(kind, lasso)| Ok((kind, lasso.steps(&mut view, &graph)?)));
                    refined.lock().push(steps.transpose().map_err(|fault: Fault| fault)?);
                }
                Ok(())
            })
        })?;
        let (counters, table_bytes) = (self.counters(py, &control, Strategy::Stateless), bytes.into_inner());
        let counters = Counters { table_bytes, memory_bytes: counters.memory_bytes + table_bytes, ..counters };
        let mut lassos = lassos.into_inner();
        lassos.resize_with(automata.len(), || None);
        let mut refined = refined.into_inner();
        refined.resize_with(refinements.len(), || None);
        let made = |steps| self.made(py, steps);
        let lassos =
            lassos.into_iter().map(|run| run.map(|(at, stem, cycle)| Ok((at, made(stem)?, made(cycle)?))).transpose());
        Ok(LivenessReport {
            states: Py::new(py, SearchReport::new(py, &control, counters)?)?,
            lassos: lassos.collect::<PyResult<_>>()?,
            refined: (refined.into_iter())
                .map(|one| {
                    one.map(|(kind, (at, stem, cycle))| Ok((mapping::name(kind), (at, made(stem)?, made(cycle)?))))
                        .transpose()
                })
                .collect::<PyResult<_>>()?,
            silent: silent.into_inner(),
            stays: reduced && self.tables.any_step_stays(),
        })
    }

    /// The graph of all states, collapsed to some places: its nodes and edges, whether there are more nodes than `most`, and
    /// the report of the search. `numbered` gets a state of each node, and answers with more places, or with numbers of nodes.
    #[pyo3(signature = (options, *, places, always, most, numbered = None, progress = None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments, checked by the stub")]
    #[allow(clippy::type_complexity)]
    fn projected(
        &self,
        py: Python,
        options: SearchOptions,
        places: Vec<(String, usize, usize)>,
        always: Vec<usize>,
        most: usize,
        numbered: Option<Py<PyAny>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Vec<CollapsedNode>, Vec<CollapsedEdge>, bool, SearchReport)> {
        if always.len() >= MOST_PREDICATES {
            return Err(PyValueError::new_err(format!("more than {MOST_PREDICATES} predicates")));
        }
        let shape = self.tables.model.shape();
        let places = places.iter().map(|place| place_of(shape, place)).collect::<PyResult<Vec<Place>>>()?;
        let made = Mutex::new((Vec::new(), Vec::new(), false));
        let report = self.of_graph(py, options, &always, progress, |view, control, graph| {
            let mut places = places.clone();
            let mut found = project(view, control, graph, &places, &always, most)?;
            while let Some(numbered) = &numbered {
                let states: Vec<Vec<u32>> = found.nodes.iter().map(|node| graph.state(node.first)).collect();
                let (more, numbers): (Vec<(String, usize, usize)>, Vec<Option<u32>>) =
                    Python::attach(|py| numbered.call1(py, (states, found.cut))?.extract(py))?;
                if more.is_empty() {
                    found = found.merged(&numbers);
                    break;
                }
                for place in &more {
                    places.push(place_of(shape, place)?);
                }
                found = project(view, control, graph, &places, &always, most)?;
            }
            let runs = graph.shortest_runs(found.nodes.iter().map(|node| node.first));
            let mut nodes = Vec::new();
            for (node, (start, stem)) in found.nodes.into_iter().zip(runs) {
                let (start, steps, _) = Lasso { start, stem, cycle: Vec::new() }.steps(view, graph)?;
                nodes.push((node, start, steps));
            }
            let edges = found.edges.iter().map(|(&(from, to, process, kind, handler), &count)| {
                (from, to, process, kind_name(kind), (kind == Kind::Step).then_some(handler), count)
            });
            *made.lock() = (nodes, edges.collect(), found.cut);
            Ok(())
        })?;
        let (nodes, edges, cut) = made.into_inner();
        let nodes = nodes.into_iter().map(|(node, start, steps): (Collapsed, _, _)| {
            Ok((start, self.made(py, steps)?, node.count, node.initial, node.terminal, node.violating))
        });
        Ok((nodes.collect::<PyResult<_>>()?, edges, cut, report))
    }

    /// A shortest run that ends with a step of a process, by this handler if one is given: the initial state and the steps. And
    /// the report of the search.
    #[pyo3(signature = (options, process, handler, *, progress = None))]
    #[allow(clippy::type_complexity)]
    fn can(
        &self,
        py: Python,
        options: SearchOptions,
        process: u16,
        handler: Option<u16>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Option<(Vec<u32>, Vec<Py<Transition>>)>, SearchReport)> {
        let found = Mutex::new(None);
        let report = self.of_graph(py, options, &[], progress, |view, _, graph| {
            let last = graph.first_edge(view, |view, via, transition| {
                let details = view.tables.details(transition);
                let fits = handler.is_none_or(|handler| handler == details.handler);
                via.process == process && details.kind == Kind::Step && fits
            })?;
            if let Some(last) = last {
                let stem = graph.path_by(last);
                let run = Lasso { start: stem[0].0, stem, cycle: Vec::new() }.steps(view, graph)?;
                *found.lock() = Some((run.0, run.1));
            }
            Ok(())
        })?;
        let run = found.into_inner().map(|(start, steps)| PyResult::Ok((start, self.made(py, steps)?)));
        Ok((run.transpose()?, report))
    }

    /// The runs that lead to a state: the length of the shortest ones, their number, and that of all. And the report.
    #[pyo3(signature = (options, state, *, progress = None))]
    #[allow(clippy::type_complexity)]
    fn ways(
        &self,
        py: Python,
        options: SearchOptions,
        state: Vec<u32>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Option<(u32, u128, Option<u128>)>, SearchReport)> {
        let found = Mutex::new(None);
        let report = self.of_graph(py, options, &[], progress, |_, _, graph| {
            let target = (0..graph.len() as u32).find(|&id| graph.state(id) == state);
            *found.lock() = target.and_then(|target| ways(graph, target));
            Ok(())
        })?;
        Ok((found.into_inner().map(|ways| (ways.length, ways.shortest, ways.all)), report))
    }

    /// The run to a state that the last search visited; along these fingerprints, if they are given. It is the initial state
    /// and the transitions.
    #[pyo3(signature = (fingerprint, run = None))]
    fn path(
        &self,
        py: Python,
        fingerprint: u64,
        run: Option<Vec<u64>>,
    ) -> PyResult<Option<(Vec<u32>, Vec<Transition>)>> {
        if run.is_none() && self.last.is_none() {
            return Err(PyRuntimeError::new_err("nothing was searched yet"));
        }
        let found = py.detach(|| match (&run, &self.last) {
            (None, Some(control)) => path::to(&self.tables, control, fingerprint),
            (run, _) => path::along(&self.tables, run.as_deref().unwrap_or_default()),
        });
        Ok(found.map_err(raised)?.map(|run| (run.start, self.transitions(run.steps))))
    }

    /// The processes whose transitions partial-order reduction takes here, as in the last search; all without it.
    #[pyo3(signature = (state, /))]
    fn stubborn(&self, py: Python, state: Vec<u32>) -> PyResult<Vec<usize>> {
        let shape = self.model.shape();
        let relations = self.last.as_ref().and_then(|control| control.relations());
        let chosen = relations.map_or(Ok(ALL), |relations| {
            py.detach(|| Stubborn::new(relations, shape).processes(&mut View::new(&self.tables), &state))
        });
        let chosen = chosen.map_err(raised)?;
        Ok((0..shape.movers()).filter(|process| chosen >> (process % 64) & 1 == 1).collect())
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

/// For tests: the switches of later searches of this process (`TestHooks`).
#[pyfunction]
#[pyo3(signature = (*, leave_out = vec![], collect_terminals = false, hash_bits = None, narrow = None))]
pub fn _test_hooks(leave_out: Vec<String>, collect_terminals: bool, hash_bits: Option<u32>, narrow: Option<usize>) {
    TestHooks { left_out: leave_out, collect_terminals, hash_bits, narrow }.install();
}

impl Engine {
    /// Build the graph of all states with the values of some properties, and look at it.
    fn of_graph(
        &self,
        py: Python,
        options: SearchOptions,
        predicates: &[usize],
        progress: Option<Py<PyAny>>,
        look: impl Fn(&mut View, &Control, &Graph) -> crate::system::model::Result<()> + Send + Sync,
    ) -> PyResult<SearchReport> {
        let control = Control::new(&self.tables.model.shape().clone(), options.for_runs())?;
        self.watch(py, &control, Strategy::Stateless, progress, |tick| {
            watched(&self.tables, &control, tick, || {
                let mut view = View::new(&self.tables);
                let labelling = Labelling { control: &control, predicates, spare: 0, safety: false };
                let graph = Graph::explored(&mut view, labelling, None)?;
                look(&mut view, &control, &graph)
            })
        })?;
        let counters = self.counters(py, &control, Strategy::Stateless);
        SearchReport::new(py, &control, counters)
    }

    /// Work with a watch that tells of progress, and stops on Ctrl-C.
    pub(super) fn watch(
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
                if control.ended() {
                    self.model.silence(true);
                    if stopped.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                        self.model.interrupt();
                    }
                }
                Python::attach(|py| {
                    if let Some(progress) = &progress
                        && shown.elapsed() > Duration::from_millis(100)
                    {
                        shown = Instant::now();
                        if let Err(error) = progress.call1(py, (self.counters(py, control, strategy),)) {
                            interrupt = Some(error);
                            return false;
                        }
                    }
                    py.check_signals().map_err(|error| interrupt = Some(error)).is_ok()
                })
            })
        });
        self.model.silence(false);
        if let Some(error) = interrupt
            && !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
        {
            return Err(error);
        }
        result.map_err(raised)
    }

    /// Steps as Python objects.
    fn made(&self, py: Python, steps: Vec<Step>) -> PyResult<Vec<Py<Transition>>> {
        self.transitions(steps).into_iter().map(|step| Py::new(py, step)).collect()
    }

    fn transitions(&self, steps: Vec<Step>) -> Vec<Transition> {
        steps.into_iter().map(|step| Transition { tables: self.tables.clone(), step }).collect()
    }

    pub(super) fn counters(&self, py: Python, control: &Control, strategy: Strategy) -> Counters {
        let frontier = control.frontier.load(Relaxed);
        // Both locks come before the GIL.
        let (table, tables) = py.detach(|| (control.visited.bytes(), self.tables.bytes()));
        let stateless = strategy == Strategy::Stateless;
        let width = self.model.shape().width();
        let (local_states, local_bytes) = self.model.values().locals_size();
        let outside = control.outside.load(Relaxed) as usize;
        let met = if stateless { control.visits.load(Relaxed) as usize } else { control.visited.len() };
        Counters {
            states: met.saturating_sub(outside),
            cut_states: outside,
            transitions: control.transitions.load(Relaxed),
            terminal_states: control.terminal.load(Relaxed),
            depth: control.depth.load(Relaxed),
            frontier,
            walks: control.walks.load(Relaxed),
            stack_operations: control.stack_operations.load(Relaxed),
            stack_operations_saved: control.stack_operations_saved.load(Relaxed),
            seconds: control.started.elapsed().as_secs_f64(),
            python_calls: self.model.calls(),
            native_answers: self.native_answers(),
            native_compared: self.native_compared(),
            property_keys: control.reads.keys(),
            fingerprint_bits: control.visited.bits(),
            local_states,
            local_bytes,
            table_bytes: table,
            memory_bytes: table + tables + self.model.values().bytes() + frontier * (width + 2) * 8,
        }
    }
}

//! What Python calls: a program in flat form, and its enumeration.

use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use super::program::{Initial, Instruction, Op, Process, Program, Variable};
use super::run::Run;
use super::search::{Options, Report, Stop, search};

/// Cells, lowest and highest known value, and whether accesses can race.
type VariableRow = (usize, i128, i128, bool);
/// The place of its code, the domains of its inputs, whether it waits, the place of the code of the owner of its lock, and
/// whether it synchronizes, is inside an atomic section.
type InstructionRow = (usize, Vec<usize>, bool, Option<usize>, bool, bool);
/// Its instructions, the cells that are dead at each location, and whether it is spawned, required.
type ProcessRow = (Vec<InstructionRow>, Vec<Vec<usize>>, bool, bool);
/// The initial values of the cells, and the process and the inputs of each step.
type RunRow = (Vec<i128>, Vec<(usize, Vec<i128>)>);

/// How often Python hears of progress, and signals are handled.
const PERIOD: Duration = Duration::from_millis(50);

/// A program of `plait bmc` in flat form.
#[pyclass(frozen)]
pub struct BmcProgram(Program);

/// The results of an enumeration.
#[pyclass(frozen, get_all)]
pub struct BmcReport {
    states: usize,
    transitions: u64,
    depth: usize,
    ended: usize,
    stopped: Option<&'static str>,
    found: Vec<Option<RunRow>>,
    deadlock: Option<RunRow>,
    race: Option<(RunRow, usize, usize)>,
    bytes: usize,
}

#[pymethods]
impl BmcProgram {
    #[new]
    #[pyo3(signature = (*, ops, variables, processes, domains, initial, large, conditions, properties, bounds))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        ops: Vec<(String, i64, i64)>,
        variables: Vec<VariableRow>,
        processes: Vec<ProcessRow>,
        domains: Vec<Option<Vec<i128>>>,
        initial: Vec<(bool, i128)>,
        large: Vec<i128>,
        conditions: Vec<usize>,
        properties: Vec<usize>,
        bounds: Option<usize>,
    ) -> PyResult<Self> {
        let op = |(name, a, b): (String, i64, i64)| {
            Op::named(&name, a, b).ok_or_else(|| PyValueError::new_err(format!("no operation: {name} {a} {b}")))
        };
        let instruction = |(code, inputs, waits, owner, synchronizes, exclusive)| Instruction {
            code,
            inputs,
            waits,
            owner,
            synchronizes,
            exclusive,
        };
        let process = |(instructions, dead, spawned, required): ProcessRow| Process {
            instructions: instructions.into_iter().map(instruction).collect(),
            spawned,
            required,
            dead,
        };
        let first = |(free, value): (bool, i128)| {
            let domain = || usize::try_from(value).map_err(|_| PyValueError::new_err("no domain"));
            Ok::<_, PyErr>(if free { Initial::Free(domain()?) } else { Initial::Value(value) })
        };
        let program = Program {
            ops: ops.into_iter().map(op).collect::<PyResult<_>>()?,
            variables: variables
                .into_iter()
                .map(|(cells, low, high, shared)| Variable { cells, low, high, shared })
                .collect(),
            processes: processes.into_iter().map(process).collect(),
            domains,
            initial: initial.into_iter().map(first).collect::<PyResult<_>>()?,
            large,
            conditions,
            properties,
            bounds,
            ..Program::default()
        };
        Ok(Self(program.finish().map_err(PyValueError::new_err)?))
    }

    /// Enumerate all states.
    #[pyo3(signature = (*, deadlock = false, races = false, first = false, seconds = None, states = None, memory = None,
        depth = None, progress = None))]
    #[allow(clippy::too_many_arguments)]
    fn enumerate(
        &self,
        py: Python<'_>,
        deadlock: bool,
        races: bool,
        first: bool,
        seconds: Option<f64>,
        states: Option<usize>,
        memory: Option<usize>,
        depth: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<BmcReport> {
        let limit = seconds.and_then(|s| Duration::try_from_secs_f64(s.max(0.0)).ok());
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let options = Options { deadlock, races, first, deadline, states, memory, depth };
        let mut interrupt: Option<PyErr> = None;
        let mut seen = Instant::now();
        let report = py.detach(|| {
            search(&self.0, &options, &mut |states, depth| {
                if seen.elapsed() < PERIOD {
                    return true;
                }
                seen = Instant::now();
                Python::attach(|py| {
                    let told = progress.as_ref().map_or(Ok(()), |p| p.call1(py, (states, depth)).map(|_| ()));
                    told.and_then(|()| py.check_signals()).map_err(|error| interrupt = Some(error)).is_ok()
                })
            })
        });
        match (interrupt, report.stop) {
            (Some(error), _) => Err(error),
            (None, Some(Stop::Interrupted)) => Err(PyKeyboardInterrupt::new_err(())),
            _ => Ok(report.into()),
        }
    }
}

fn row(run: Run) -> RunRow {
    (run.initial, run.steps)
}

impl From<Report> for BmcReport {
    fn from(report: Report) -> Self {
        Self {
            states: report.states,
            transitions: report.transitions,
            depth: report.depth,
            ended: report.ended,
            stopped: report.stop.map(|stop| match stop {
                Stop::Timeout => "timeout",
                Stop::Memory => "memory",
                Stop::States => "states",
                Stop::Depth => "depth",
                Stop::Numbers => "numbers",
                Stop::Inputs => "inputs",
                Stop::Condition => "condition",
                Stop::Found => "found",
                Stop::Interrupted => "interrupted",
            }),
            found: report.properties.into_iter().map(|run| run.map(row)).collect(),
            deadlock: report.deadlock.map(row),
            race: report.race.map(|(run, first, second)| (row(run), first, second)),
            bytes: report.bytes,
        }
    }
}

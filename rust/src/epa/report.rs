//! The values that the analysis returns to Python: reversibility of a trace, and the difference of two traces.

use pyo3::prelude::*;

use super::compare::{Comparison, Difference};
use super::order::NONE;
use super::propagate::{NO_OBJECT, Propagation, Via};
use super::reverse::{Access, Answer, Pair, Report};

/// Thread, operation, object and site of a synchronisation event.
type SyncRow = (u32, u32, u64, u32);
/// Lock, thread, whether it is exclusive, and the numbers of the events that acquire and release it.
type SectionRow = (u64, u32, bool, u32, Option<u32>);
/// Thread, site, event, whether it writes, and the value.
type AccessRow = (u32, u32, u32, bool, Option<u64>);
/// A thread and a site.
type SpotRow = (u32, u32);

/// Two dependent accesses, the first observed first, that no edge orders.
#[pyclass(frozen, get_all, module = "plait._native")]
pub struct UnorderedPair {
    pub object: u64,
    pub offset: u64,
    pub first: AccessRow,
    pub second: AccessRow,
    /// The second access can come first if and only if event `late` can precede event `early`. Without `early`, nothing
    /// follows the first access.
    pub early: Option<u32>,
    pub late: u32,
    /// An order of the synchronisation events that reverses the pair; None if this was not decided.
    pub schedule: Option<Vec<u32>>,
}

/// Whether dependent events of a trace can be reversed, and what is needed to decide open pairs.
#[pyclass(frozen, get_all, module = "plait._native")]
pub struct ReversibilityReport {
    pub rounds: u32,
    /// Pairs of dependent accesses of different threads that were compared.
    pub dependencies: u64,
    /// More unordered pairs were found than are kept.
    pub overflow: bool,
    /// Threads that need not have ended when the program exits, or have not.
    pub loose: Vec<u32>,
    pub warnings: Vec<String>,
    /// Synchronisation events in the order in which they were observed.
    pub nodes: Vec<SyncRow>,
    /// Per synchronisation event the events that precede it, besides program order.
    pub before: Vec<Vec<u32>>,
    pub sections: Vec<SectionRow>,
    pub pairs: Vec<Py<UnorderedPair>>,
}

impl ReversibilityReport {
    pub fn new(py: Python<'_>, report: Report) -> PyResult<Self> {
        let nodes = (report.skeleton.nodes.iter()).map(|n| (n.thread, n.op, n.object, n.site)).collect();
        let sections = (report.skeleton.sections.iter())
            .map(|s| (s.lock, s.thread, s.exclusive, s.acquire, (s.release != NONE).then_some(s.release)))
            .collect();
        Ok(Self {
            rounds: report.rounds,
            dependencies: report.dependencies,
            overflow: report.overflow,
            loose: report.loose,
            warnings: report.skeleton.warnings,
            nodes,
            before: report.skeleton.before,
            sections,
            pairs: report.pairs.into_iter().map(|pair| Py::new(py, unordered(pair))).collect::<PyResult<_>>()?,
        })
    }
}

fn unordered(pair: Pair) -> UnorderedPair {
    let access = |a: &Access| (a.thread, a.site, a.event, a.writes, a.value);
    UnorderedPair {
        object: pair.object,
        offset: pair.offset,
        first: access(&pair.first),
        second: access(&pair.second),
        early: (pair.early != NONE).then_some(pair.early),
        late: pair.late,
        schedule: match pair.answer {
            Answer::Reversible(schedule) => Some(schedule),
            _ => None,
        },
    }
}

/// How a thread of the faulty run differs from the thread of the same name.
#[pyclass(frozen, get_all, module = "plait._native")]
pub struct ThreadDifference {
    pub name: String,
    /// The number of the thread in each run that has it.
    pub golden: Option<u32>,
    pub faulty: Option<u32>,
    /// The first events that differ; one of the two is missing where a trace ended.
    pub first: Option<(Option<u32>, Option<u32>)>,
    /// The first place where the thread took another path.
    pub parted: Option<(u32, u32)>,
    pub changed: u64,
    pub missing: u64,
    pub extra: u64,
    /// The golden event next to a changed one, for the first few.
    pub samples: Vec<(u32, u32)>,
}

/// The differences of two traces, and how the error spread.
#[pyclass(frozen, get_all, module = "plait._native")]
pub struct ComparisonReport {
    pub equal: bool,
    pub threads: Vec<Py<ThreadDifference>>,
    /// Thread, site, number of events, whether the fault struck there, and number of missing writes, in the order of the
    /// first deviation. Threads that only the golden run has are numbered after those of the faulty run.
    pub nodes: Vec<(u32, u32, u64, bool, u64)>,
    /// From, to, how, through which object, and how often.
    pub edges: Vec<(SpotRow, SpotRow, &'static str, Option<u32>, u64)>,
}

impl ComparisonReport {
    pub fn new(py: Python<'_>, comparison: Comparison, graph: Propagation) -> PyResult<Self> {
        let mut ranked: Vec<_> = (graph.nodes.into_iter())
            .map(|((thread, site), s)| (s.rank, thread, site, s.events, s.root, s.missing))
            .collect();
        ranked.sort_unstable();
        let mut edges: Vec<_> = (graph.edges.into_iter())
            .map(|((a, b, via, object), count)| (a, b, via_name(via), (object != NO_OBJECT).then_some(object), count))
            .collect();
        edges.sort_unstable();
        Ok(Self {
            equal: comparison.equal(),
            threads: comparison.threads.into_iter().map(|d| Py::new(py, thread(d))).collect::<PyResult<_>>()?,
            nodes: ranked
                .into_iter()
                .map(|(_, t, site, events, root, missing)| (t, site, events, root, missing))
                .collect(),
            edges,
        })
    }
}

fn thread(d: Difference) -> ThreadDifference {
    let Difference { name, golden, faulty, first, parted, changed, missing, extra, samples, .. } = d;
    ThreadDifference { name, golden, faulty, first, parted, changed, missing, extra, samples }
}

fn via_name(via: Via) -> &'static str {
    match via {
        Via::Register => "register",
        Via::Memory => "memory",
        Via::Argument => "argument",
        Via::Result => "result",
        Via::Control => "control",
    }
}

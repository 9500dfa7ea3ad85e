//! The Python classes and functions for recorded traces.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::compare;
use super::format::op;
use super::propagate;
use super::recording::{Class, Computes, Recording, Rows, Site};
use super::report::{ComparisonReport, ReversibilityReport};
use super::reverse::{self, Action, Step};
use super::sanitize::{self, Event, Kind, NOBODY, OBJECT, Sanitized, THREAD, UNKNOWN};

/// A recorded trace, sanitized.
#[pyclass(frozen, module = "plait._native")]
pub struct EpaTrace {
    recording: Recording,
    sanitized: Sanitized,
}

type SiteRow = (u8, u32, Vec<u32>, u32, u8);
type StepRow = (u32, u32, u64, u64, u64, bool, Option<u64>);
type Word = (&'static str, u64, i64);
type EventRow = (u32, u8, bool, Word, Word);

#[pymethods]
impl EpaTrace {
    #[new]
    fn new(py: Python<'_>, folder: PathBuf, sites: Vec<SiteRow>, program: Rows) -> PyResult<Self> {
        let mut known = vec![Site::default()];
        known.extend(sites.into_iter().map(|(class, size, operands, parent, computes)| Site {
            class: match class {
                1 => Class::Pointer,
                2 => Class::Word,
                _ => Class::Plain,
            },
            size,
            operands,
            parent,
            computes: match computes {
                1 => Computes::Distance,
                2 => Computes::Anything,
                _ => Computes::Offsets,
            },
        }));
        py.detach(|| {
            let recording = Recording::open(&folder, known, program)?;
            let sanitized = sanitize::sanitize(&recording);
            Ok(Self { recording, sanitized })
        })
        .map_err(PyValueError::new_err::<String>)
    }

    /// Records of all threads.
    #[getter]
    fn records(&self) -> u64 {
        self.recording.records
    }

    /// Name, parent, number of events, whether it ended, and the number of its file, of each thread.
    fn threads(&self) -> Vec<(String, Option<u32>, usize, bool, u32)> {
        (self.sanitized.threads.iter())
            .map(|t| (t.name.clone(), (t.parent != NOBODY).then_some(t.parent), t.events.len(), t.ended, t.uid))
            .collect()
    }

    /// Number of memory objects.
    #[getter]
    fn object_count(&self) -> usize {
        self.sanitized.objects.len()
    }

    /// Number of objects that several threads accessed.
    #[getter]
    fn shared_objects(&self) -> usize {
        self.sanitized.objects.iter().filter(|o| o.shared).count()
    }

    /// One memory object: kind, owner, site, nth, base, size, local index, validity.
    #[allow(clippy::type_complexity)]
    fn object(&self, number: usize) -> PyResult<(&'static str, Option<u32>, u32, u32, u64, u64, u32, u64, u64)> {
        let o = (self.sanitized.objects.get(number)).ok_or_else(|| PyValueError::new_err("there is no such object"))?;
        let owner = (o.owner != NOBODY).then_some(o.owner);
        Ok((kind_name(o.kind), owner, o.site, o.nth, o.base, o.size, o.local, o.from, o.to))
    }

    /// The names of loaded libraries, sorted.
    fn modules(&self) -> Vec<String> {
        let mut names: Vec<String> = self.recording.modules.iter().map(|m| m.name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Events of a thread.
    fn events(&self, thread: usize, from_: usize, to: usize) -> PyResult<Vec<EventRow>> {
        let thread =
            (self.sanitized.threads.get(thread)).ok_or_else(|| PyValueError::new_err("there is no such thread"))?;
        let to = to.min(thread.events.len());
        Ok(thread.events[from_.min(to)..to].iter().map(row).collect())
    }

    /// Threads in the order of the whole run, as (thread, number of events, synchronisation or 0, its object).
    fn runs(&self) -> Vec<(u32, u32, u32, u64)> {
        let mut found = Vec::new();
        for (run, &length) in self.recording.runs.iter().zip(&self.sanitized.lengths) {
            let (mut sync, mut object) = (0, 0);
            if let Some(record) = self.recording.sync(*run) {
                (sync, object) = (record.detail, record.words[1]);
            }
            if length > 0 || sync > 0 {
                found.push((run.stream, length, sync, object));
            }
        }
        found
    }

    /// Thread, place, site, value before and after, of each fault that struck.
    fn faults(&self) -> Vec<(u32, u32, u32, u64, u64)> {
        (self.sanitized.faults.iter()).map(|f| (f.thread, f.event, f.site, f.before, f.after)).collect()
    }

    /// The last global or heap object that an address lay in.
    fn object_at(&self, address: u64) -> Option<usize> {
        (self.sanitized.objects.iter()).rposition(|o| {
            matches!(o.kind, Kind::Global | Kind::Heap) && o.base <= address && address < o.base + o.size
        })
    }

    /// How often each site was executed: (thread, site, values made there, calls made there).
    fn executions(&self) -> Vec<(u32, u32, u64, u64)> {
        use super::format::{ARGUMENT, CALL, LOAD, VALUE};
        let mut found = Vec::new();
        for (t, thread) in self.sanitized.threads.iter().enumerate() {
            let mut counts = vec![(0u64, 0u64, false); self.recording.sites.len()];
            for event in &thread.events {
                let count = &mut counts[event.site as usize];
                count.0 += u64::from(matches!(event.kind, VALUE | LOAD | ARGUMENT));
                count.1 += u64::from(event.kind == CALL);
                count.2 = true;
            }
            found.extend((counts.iter().enumerate()).filter(|c| c.1.2).map(|(s, c)| (t as u32, s as u32, c.0, c.1)));
        }
        found
    }

    /// Sites that compute with the place of an object, which is another one in every run.
    fn address_arithmetic(&self) -> Vec<u32> {
        self.sanitized.mixed.clone()
    }

    /// A digest of all events by name of thread: equal for equal sanitized traces.
    fn digest(&self, py: Python<'_>) -> u64 {
        py.detach(|| compare::digest(&self.sanitized))
    }

    /// Check reversibility (Definition 5, condition 2).
    #[pyo3(signature = (*, benign_same_value = false, limit = 5))]
    fn reversible(&self, py: Python<'_>, benign_same_value: bool, limit: usize) -> PyResult<ReversibilityReport> {
        let report = py.detach(|| {
            let each = |visit: &mut dyn FnMut(Step)| reverse::steps(&self.recording, &self.sanitized, visit);
            reverse::reversible(&each, benign_same_value, limit)
        });
        ReversibilityReport::new(py, report)
    }

    /// The steps that the reversibility check looks at, as `epa_reversible` takes them.
    fn steps(&self) -> Vec<StepRow> {
        let mut found = Vec::new();
        reverse::steps(&self.recording, &self.sanitized, &mut |step| {
            found.push(match step.action {
                Action::Sync { op, object, extra } => (step.thread, op, object, extra, 0, false, None),
                Action::Access { object, offset, length, writes, value } => {
                    (step.thread, 0, object, offset, length, writes, value)
                }
            });
        });
        found
    }

    /// Compare with a faulty run, and follow its errors.
    fn compare(&self, py: Python<'_>, faulty: &Self) -> PyResult<ComparisonReport> {
        let (comparison, graph) = py.detach(|| {
            let comparison = compare::compare(&self.sanitized, &faulty.sanitized);
            let graph = propagate::propagate(&faulty.recording, &faulty.sanitized, &comparison);
            (comparison, graph)
        });
        ComparisonReport::new(py, comparison, graph)
    }

    /// Whether a faulty run's trace is equal to this one, and whether more deviates than the values that faults changed.
    fn outcome(&self, py: Python<'_>, faulty: &Self) -> (bool, bool) {
        py.detach(|| {
            let comparison = compare::compare(&self.sanitized, &faulty.sanitized);
            (comparison.equal(), comparison.propagated(&faulty.sanitized.faults))
        })
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Global => "global",
        Kind::Heap => "heap",
        Kind::Stack => "stack",
        Kind::Local => "local",
        Kind::Library => "library",
        Kind::Default => "default",
    }
}

fn word(tag: u8, value: u64) -> Word {
    match tag {
        OBJECT => ("object", value >> 32, i64::from(value as u32)),
        THREAD => ("thread", value, 0),
        UNKNOWN => ("unknown", value >> 32, (value & 0xffff_ffff) as i64),
        _ => ("plain", value, 0),
    }
}

fn row(event: &Event) -> EventRow {
    (event.site, event.kind, event.writes, word(event.tag_a, event.a), word(event.tag_b, event.b))
}

/// Decide reversibility of a trace that is given step by step: thread, operation (0 is an access), and for an access its
/// object, offset, length, whether it writes, and its value; for others the object and its detail.
#[pyfunction]
#[pyo3(signature = (steps, *, benign_same_value = false, limit = 5))]
pub fn epa_reversible(
    py: Python<'_>,
    steps: Vec<StepRow>,
    benign_same_value: bool,
    limit: usize,
) -> PyResult<ReversibilityReport> {
    let report = py.detach(|| {
        let each = |visit: &mut dyn FnMut(Step)| {
            for (i, &(thread, op, object, second, length, writes, value)) in steps.iter().enumerate() {
                let action = if op == 0 {
                    Action::Access { object, offset: second, length, writes, value }
                } else {
                    Action::Sync { op, object, extra: second }
                };
                visit(Step { thread, site: 0, event: i as u32, action });
            }
        };
        reverse::reversible(&each, benign_same_value, limit)
    });
    ReversibilityReport::new(py, report)
}

/// The names of synchronisation operations, by their numbers in traces.
#[pyfunction]
pub fn epa_operations() -> Vec<(u32, &'static str)> {
    vec![
        (op::START, "start"),
        (op::END, "end"),
        (op::CREATE, "create"),
        (op::CREATED, "created"),
        (op::JOIN_BEGIN, "wait for"),
        (op::JOIN, "join"),
        (op::LOCK, "lock"),
        (op::UNLOCK, "unlock"),
        (op::READ_LOCK, "read lock"),
        (op::WRITE_LOCK, "write lock"),
        (op::RW_UNLOCK, "rw unlock"),
        (op::BARRIER_IN, "arrive"),
        (op::BARRIER_OUT, "depart"),
        (op::WAIT, "wait"),
        (op::SIGNAL, "signal"),
        (op::ONCE, "once"),
        (op::TRY_FAILED, "try failed"),
        (op::BARRIER_INIT, "barrier"),
    ]
}

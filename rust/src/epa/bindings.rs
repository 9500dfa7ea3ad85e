//! The Python classes and functions for recorded traces.

use std::path::PathBuf;
use std::sync::OnceLock;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::compare;
use super::format::op;
use super::propagate;
use super::recording::{Class, Computes, Recording, Rows, Site};
use super::report::{ComparisonReport, ReversibilityReport};
use super::reverse::{self, Action, Scope, Step};
use super::sanitize::{self, Event, Kind, NOBODY, OBJECT, PLAIN, Sanitized, Suspect, THREAD, UNKNOWN};
use super::text::{Label, Labels, Operand, Position, Shown, Text};

/// A recorded trace, sanitized.
#[pyclass(frozen, module = "plait._native")]
pub struct EpaTrace {
    recording: Recording,
    sanitized: Sanitized,
    labels: OnceLock<Labels>,
}

/// Operation, function, class of values, name, index, operands, and place of a site.
type LabelRow = (String, String, String, String, u32, Vec<String>, String);
type SiteRow = (u8, u32, Vec<u32>, u32, u8);
type StepRow = (u32, u32, u64, u64, u64, bool, Option<u64>);
type Word = (&'static str, u64, i64);
/// A word that Python gives back.
type GivenWord = (String, u64, i64);
/// The name of a thread, whether it ended, and the number of its file.
type ThreadRow = (String, bool, u32);
type EventRow = (u32, u8, bool, Word, Word);

#[pymethods]
impl EpaTrace {
    #[new]
    fn new(py: Python<'_>, folder: PathBuf, sites: Vec<SiteRow>, program: Rows) -> PyResult<Self> {
        py.detach(|| {
            let recording = Recording::open(&folder, known_sites(sites), program)?;
            let sanitized = sanitize::sanitize(&recording);
            Ok(Self { recording, sanitized, labels: OnceLock::new() })
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

    /// How often each site was executed: (thread, site, values made there, calls and stores made there).
    fn executions(&self) -> Vec<(u32, u32, u64, u64)> {
        use super::format::{ARGUMENT, CALL, LOAD, STORE, VALUE};
        let mut found = Vec::new();
        for (t, thread) in self.sanitized.threads.iter().enumerate() {
            let mut counts = vec![(0u64, 0u64, false); self.recording.sites.len()];
            for event in &thread.events {
                let count = &mut counts[event.site as usize];
                count.0 += u64::from(matches!(event.kind, VALUE | LOAD | ARGUMENT));
                count.1 += u64::from(matches!(event.kind, CALL | STORE));
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

    /// Sites with reasons for doubt about local determinism: the reason, the site, and the object of a call by pointer.
    fn suspects(&self) -> Vec<(&'static str, u32, Option<u32>)> {
        (self.sanitized.suspects.iter())
            .map(|&(suspect, site)| match suspect {
                Suspect::Freed => ("freed", site, None),
                Suspect::Unknown => ("unknown", site, None),
                Suspect::Argument => ("argument", site, None),
                Suspect::Printed => ("printed", site, None),
                Suspect::Part => ("part", site, None),
                Suspect::Pointer(object) => ("pointer", site, (object != NOBODY).then_some(object)),
            })
            .collect()
    }

    /// Check reversibility (Definition 5, condition 2). Some files do not matter. `replay`: other runs are replayed.
    #[pyo3(signature = (*, benign_same_value = false, limit = 5, ignored = vec![], replay = false))]
    fn reversible(
        &self,
        py: Python<'_>,
        benign_same_value: bool,
        limit: usize,
        ignored: Vec<u64>,
        replay: bool,
    ) -> PyResult<ReversibilityReport> {
        let scope = Scope { ignored, replay };
        let report = py.detach(|| {
            let each = |visit: &mut dyn FnMut(Step)| reverse::steps(&self.recording, &self.sanitized, &scope, visit);
            reverse::reversible(&each, benign_same_value, limit, replay)
        });
        ReversibilityReport::new(py, report)
    }

    /// The operations that a replayed run performs in the same order: thread, operation, site, detail.
    fn turns(&self) -> Vec<(u32, u32, u32, u64)> {
        (self.recording.runs.iter())
            .filter_map(|&run| self.recording.sync(run).map(|record| (run.stream, record)))
            .filter(|(_, record)| is_turn(record.detail))
            .map(|(thread, record)| (thread, record.detail, record.site, record.words[2]))
            .collect()
    }

    /// Per thread, a number of events that certainly happened before the global counter had this value.
    fn events_before(&self, number: u64) -> Vec<u32> {
        let (mut found, mut last) = (vec![0; self.sanitized.threads.len()], vec![0; self.sanitized.threads.len()]);
        for (run, &length) in self.recording.runs.iter().zip(&self.sanitized.lengths).filter(|(r, _)| r.number < number)
        {
            // The last record of the last run may have ended later.
            found[run.stream as usize] += last[run.stream as usize];
            last[run.stream as usize] = length;
        }
        found
    }

    /// The steps that the reversibility check looks at, as `epa_reversible` takes them.
    #[pyo3(signature = (*, replay = false))]
    fn steps(&self, replay: bool) -> Vec<StepRow> {
        let mut found = Vec::new();
        let scope = Scope { replay, ..Scope::default() };
        reverse::steps(&self.recording, &self.sanitized, &scope, &mut |step| {
            found.push(match step.action {
                Action::Sync { op, object, extra } => (step.thread, op, object, extra, 0, false, None),
                Action::Access { object, offset, length, writes, value } => {
                    (step.thread, 0, object, offset, length, writes, value)
                }
                Action::End { object, size } => (step.thread, 0, object, 0, size, true, None),
            });
        });
        found
    }

    /// Give the texts of sites, globals and libraries, once, before anything is shown.
    fn label(&self, sites: Vec<LabelRow>, globals: Vec<String>) {
        let mut known = vec![Label::default()];
        known.extend(sites.into_iter().map(|(op, function, class, name, index, shape, place)| {
            let site = |o: &str| o.strip_prefix('#').and_then(|n| n.parse().ok()).map(Operand::Site);
            let shape = shape.into_iter().map(|o| site(&o).unwrap_or(Operand::Text(o))).collect();
            Label { op, function, shown: Shown::of(&class), name, index, shape, place }
        }));
        let _ = self.labels.set(Labels { sites: known, globals, modules: self.modules() });
    }

    /// The name of a memory object.
    fn object_name(&self, number: u32) -> PyResult<String> {
        if number as usize >= self.sanitized.objects.len() {
            return Err(PyValueError::new_err("there is no such object"));
        }
        let mut out = String::new();
        self.text().object(&mut out, number);
        Ok(out)
    }

    /// A word of an event as text, for a class of values.
    fn word_text(&self, word: GivenWord, class_: &str) -> String {
        let mut out = String::new();
        let (tag, value) = tagged(&word);
        self.text().word(&mut out, tag, value, Shown::of(class_));
        out
    }

    /// An event as text.
    fn event_text(&self, row: (u32, u8, bool, GivenWord, GivenWord)) -> String {
        let (site, kind, writes, a, b) = row;
        let ((tag_a, a), (tag_b, b)) = (tagged(&a), tagged(&b));
        let mut out = String::new();
        self.text().event(&mut out, &Event { site, kind, tag_a, tag_b, writes, a, b });
        out
    }

    /// The definitions of memory objects, one per line.
    fn object_lines(&self, py: Python<'_>, from_: u32, to: u32) -> String {
        py.detach(|| {
            let text = self.text();
            let mut out = String::new();
            for number in from_..to.min(self.sanitized.objects.len() as u32) {
                text.definition(&mut out, number);
            }
            out
        })
    }

    /// Compare with a faulty run, and follow its errors.
    fn compare(&self, py: Python<'_>, faulty: &Self) -> PyResult<ComparisonReport> {
        let (comparison, graph) = py.detach(|| {
            let comparison = compare::compare(&self.sanitized, &faulty.sanitized);
            let graph = propagate::propagate(&faulty.recording, &faulty.sanitized, &self.sanitized, &comparison);
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

/// Locks, and ordered operations: a thread that performs them waits for its turn (`replay.c`).
fn is_turn(operation: u32) -> bool {
    matches!(
        operation,
        op::LOCK | op::UNLOCK | op::READ_LOCK | op::WRITE_LOCK | op::RW_UNLOCK | op::TRY_FAILED | op::ORDERED_IN
    )
}

impl EpaTrace {
    fn text(&self) -> Text<'_> {
        static NONE: Labels = Labels { sites: Vec::new(), globals: Vec::new(), modules: Vec::new() };
        Text { labels: self.labels.get().unwrap_or(&NONE), sanitized: &self.sanitized }
    }
}

/// The events of a trace in the order of the whole run, as text. It keeps its position.
#[pyclass(module = "plait._native")]
pub struct EpaLines {
    trace: Py<EpaTrace>,
    position: Position,
    thread: Option<u32>,
}

#[pymethods]
impl EpaLines {
    #[new]
    #[pyo3(signature = (trace, thread = None))]
    fn new(trace: Py<EpaTrace>, thread: Option<u32>) -> Self {
        let position = Position::new(&trace.get().sanitized);
        Self { trace, position, thread }
    }

    /// At most so many of the next lines; an empty text at the end.
    fn take(&mut self, py: Python<'_>, count: usize) -> String {
        let (trace, position, thread) = (self.trace.get(), &mut self.position, self.thread);
        py.detach(|| position.lines(&trace.recording, &trace.text(), thread, count).0)
    }
}

/// The number of records of a trace, its threads (name, whether it ended, number of its file), and whether a fault struck.
/// The events are counted, but not read.
#[pyfunction]
pub fn epa_summary(
    py: Python<'_>,
    folder: PathBuf,
    sites: Vec<SiteRow>,
    program: Rows,
) -> PyResult<(u64, Vec<ThreadRow>, bool)> {
    py.detach(|| {
        let recording = Recording::open(&folder, known_sites(sites), program)?;
        let names = sanitize::thread_names(&recording);
        let threads = recording.streams.iter().zip(names).map(|(s, (_, name))| (name, s.ended, s.uid)).collect();
        Ok((recording.records, threads, recording.streams.iter().any(|s| s.fault.is_some())))
    })
    .map_err(PyValueError::new_err::<String>)
}

fn known_sites(sites: Vec<SiteRow>) -> Vec<Site> {
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
            3 => Computes::Order,
            4 => Computes::Sum,
            _ => Computes::Offsets,
        },
    }));
    known
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

/// The inverse of `word`.
fn tagged((tag, value, rest): &(String, u64, i64)) -> (u8, u64) {
    match tag.as_str() {
        "object" => (OBJECT, value << 32 | u64::from(*rest as u32)),
        "thread" => (THREAD, *value),
        "unknown" => (UNKNOWN, value << 32 | u64::from(*rest as u32)),
        _ => (PLAIN, *value),
    }
}

fn row(event: &Event) -> EventRow {
    (event.site, event.kind, event.writes, word(event.tag_a, event.a), word(event.tag_b, event.b))
}

/// Decide reversibility of a trace that is given step by step: thread, operation (0 is an access), and for an access its
/// object, offset, length, whether it writes, and its value; for others the object and its detail.
#[pyfunction]
#[pyo3(signature = (steps, *, benign_same_value = false, limit = 5, replay = false))]
pub fn epa_reversible(
    py: Python<'_>,
    steps: Vec<StepRow>,
    benign_same_value: bool,
    limit: usize,
    replay: bool,
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
        reverse::reversible(&each, benign_same_value, limit, replay)
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
        (op::FILE_READ, "file read"),
        (op::FILE_WRITE, "file write"),
        (op::ORDERED_IN, "begin"),
        (op::ORDERED_OUT, "done"),
    ]
}

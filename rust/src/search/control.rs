//! The state that all workers of a search share: limits, counters, findings, and the request to stop.

use crate::por::classes::Split;
use crate::por::relations::{Relations, Seeds};
use crate::search::test_hooks::TestHooks;
use crate::search::visited::Visited;
use crate::system::model::{Fault, PropertyKind, Result, Shape, Stopped};
use crate::system::reads::{PropertyReads, ReadSets};
use crate::system::successors::{SuccessorSummary, TransitionRef};
use crate::system::tables::{Kind, NodeId, Tables};

use crate::util::memory::resident;
use parking_lot::{Condvar, Mutex, RwLock};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Why a search ended before it had seen everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    MaxStates,
    MaxDepth,
    Timeout,
    Memory,
    Interrupted,
    /// A random search never sees everything.
    Walks,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub workers: usize,
    pub max_states: usize,
    pub max_depth: u32,
    pub timeout: Option<Duration>,
    /// Resident memory of the whole process, in bytes.
    pub memory: usize,
    pub seed: u64,
    pub walks: u64,
    /// Bits of the fingerprints of a breadth-first search: 64, 96 or 128.
    pub fingerprint: u32,
    /// Fingerprints of 64 bits become wider when there are more states than this.
    pub narrow: usize,
    /// Go on after a violation.
    pub keep_going: bool,
    pub por: Option<Por>,
    /// Depth-first search: keep states with one successor off the stack.
    pub spos: bool,
    /// Stateless search: dynamic partial-order reduction.
    pub dpor: bool,
}

/// How partial-order reduction is done.
#[derive(Clone, Copy, Debug)]
pub struct Por {
    pub split: Split,
    pub seeds: Seeds,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            workers: 1,
            max_states: usize::MAX,
            max_depth: u32::MAX,
            timeout: None,
            memory: usize::MAX,
            seed: 0,
            walks: 1000,
            fingerprint: 64,
            narrow: usize::MAX,
            keep_going: false,
            por: None,
            spos: true,
            dpor: false,
        }
    }
}

/// A state in which a property is violated (or an example that was asked for).
#[derive(Clone, Debug)]
pub struct Finding {
    /// Index of the property; one past the last is the failed assertion of a handler, and two past it an exception.
    pub property: usize,
    pub fingerprint: u64,
    /// Steps from the initial state.
    pub depth: u32,
    /// The run that led here, if the search knows it; else the visited set does.
    pub run: Option<Vec<u64>>,
}

impl Finding {
    /// In a state whose depth and run are not known yet.
    pub fn of_state(property: usize, fingerprint: u64) -> Finding {
        Finding { property, fingerprint, depth: 0, run: None }
    }
}

/// A step to a state outside of the bound: its process, its kind and its handler. None: the state is an initial one.
pub type Exit = Option<(u16, Kind, u16)>;

pub struct Control {
    pub options: Options,
    hooks: TestHooks,
    pub kinds: Vec<PropertyKind>,
    pub visited: Visited,
    pub reads: PropertyReads,
    /// The property that bounds the search: a state in which it is false is not expanded.
    pub within: Option<usize>,
    /// How many states were outside, and where the steps to them come from: a process, the kind of step, and the handler.
    pub outside: AtomicU64,
    exits: Mutex<BTreeMap<Exit, u64>>,
    pub transitions: AtomicU64,
    pub terminal: AtomicU64,
    pub depth: AtomicU32,
    /// States waiting to be expanded.
    pub frontier: AtomicUsize,
    pub walks: AtomicU64,
    /// States seen by a search without a visited set.
    pub visits: AtomicU64,
    /// Pushes and pops of a depth-first search, and those that selective push-on-stack spared it.
    pub stack_operations: AtomicU64,
    pub stack_operations_saved: AtomicU64,
    terminals: Mutex<FxHashSet<u64>>,
    open: Vec<AtomicBool>,
    findings: Mutex<Vec<Finding>>,
    stop: AtomicBool,
    /// The relations that partial-order reduction uses in this pass.
    relations: RwLock<Option<Arc<Relations>>>,
    /// The pass rests on relations that turned out incomplete: it ends, and another begins.
    stale: AtomicBool,
    passes: AtomicU32,
    /// States of this pass in which the reduction left something out.
    pub partial: AtomicU64,
    /// Why the reduction was given up.
    given_up: Mutex<Option<String>>,
    bound: Mutex<Option<Limit>>,
    fault: Mutex<Option<Fault>>,
    /// A fault of the model after the search had ended.
    late: Mutex<Option<Fault>>,
    done: Mutex<bool>,
    wake: Condvar,
    pub started: Instant,
}

impl Control {
    pub fn new(shape: &Shape, mut options: Options) -> io::Result<Control> {
        let hooks = TestHooks::current();
        if options.narrow != usize::MAX {
            options.narrow = hooks.narrow.unwrap_or(options.narrow);
        }
        Ok(Control {
            visited: Visited::new(options.memory, options.max_states, options.fingerprint)?,
            reads: PropertyReads::new(&shape.quantifiers),
            within: shape.single(PropertyKind::Within),
            outside: AtomicU64::new(0),
            exits: Mutex::default(),
            kinds: shape.properties.clone(),
            open: (0..shape.properties.len() + 2).map(|_| AtomicBool::new(true)).collect(),
            options,
            hooks,
            transitions: AtomicU64::new(0),
            terminal: AtomicU64::new(0),
            depth: AtomicU32::new(0),
            frontier: AtomicUsize::new(0),
            walks: AtomicU64::new(0),
            visits: AtomicU64::new(0),
            stack_operations: AtomicU64::new(0),
            stack_operations_saved: AtomicU64::new(0),
            terminals: Mutex::default(),
            findings: Mutex::new(Vec::new()),
            stop: AtomicBool::new(false),
            relations: RwLock::new(None),
            stale: AtomicBool::new(false),
            passes: AtomicU32::new(0),
            partial: AtomicU64::new(0),
            given_up: Mutex::new(None),
            bound: Mutex::new(None),
            fault: Mutex::new(None),
            late: Mutex::new(None),
            done: Mutex::new(false),
            wake: Condvar::new(),
            started: Instant::now(),
        })
    }

    #[inline]
    pub fn stopped(&self) -> bool {
        self.stop.load(Relaxed) || self.stale.load(Relaxed)
    }

    pub fn relations(&self) -> Option<Arc<Relations>> {
        self.relations.read().clone()
    }

    pub fn passes(&self) -> u32 {
        self.passes.load(Relaxed)
    }

    /// Have the findings carry the runs to them.
    pub fn keep_runs(&self, mut run_to: impl FnMut(u64) -> Result<Option<Vec<u64>>>) -> Result<()> {
        for finding in self.findings.lock().iter_mut().filter(|finding| finding.run.is_none()) {
            finding.run = run_to(finding.fingerprint)?;
        }
        Ok(())
    }

    /// Why partial-order reduction was given up, if it was.
    pub fn given_up(&self) -> Option<String> {
        self.given_up.lock().clone()
    }

    /// End the pass, and go on without partial-order reduction.
    pub fn give_up(&self, reason: String) {
        self.given_up.lock().get_or_insert(reason);
        self.stale.store(true, Relaxed);
    }

    /// Begin a pass, with partial-order reduction or without: forget the states visited, keep the findings.
    pub fn begin(&self, relations: Option<Relations>) -> io::Result<()> {
        *self.relations.write() = relations.map(Arc::new);
        self.partial.store(0, Relaxed);
        self.visited.clear()?;
        self.stale.store(false, Relaxed);
        for counter in
            [&self.transitions, &self.terminal, &self.visits, &self.stack_operations, &self.stack_operations_saved]
        {
            counter.store(0, Relaxed);
        }
        self.outside.store(0, Relaxed);
        self.exits.lock().clear();
        self.terminals.lock().clear();
        self.depth.store(0, Relaxed);
        self.passes.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Whether the relations of this pass covered all that was met in it.
    pub fn covered(&self, tables: &Tables) -> bool {
        self.relations().is_none_or(|relations| tables.known_effects(|known| relations.covers(known, self.read_sets())))
    }

    /// What the open properties of states and the bound have read.
    pub fn read_sets(&self) -> ReadSets {
        ReadSets { visible: self.reads.read_set(self), bounds: self.reads.bounds(self) }
    }

    /// Ended for good, not to begin again.
    pub fn ended(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// End the search; the first reason counts.
    pub fn stop_at(&self, limit: Limit) {
        self.bound.lock().get_or_insert(limit);
        self.stop.store(true, Relaxed);
    }

    /// A limit that was hit without ending the search (deeper states were cut off).
    pub fn cut(&self, limit: Limit) {
        self.bound.lock().get_or_insert(limit);
    }

    /// End the search because the model is faulty, or memory ran out. A fault of user code after the search has ended
    /// changes nothing: the limit or the violation that ended the search stands.
    pub fn fail(&self, fault: Fault) {
        let fault = match fault.downcast::<Stopped>() {
            Ok(stopped) => {
                if let Some(late) = stopped.0 {
                    self.late.lock().get_or_insert(late);
                }
                return self.stop.store(true, Relaxed);
            }
            Err(fault) => fault,
        };
        let memory = fault.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::OutOfMemory);
        if memory {
            return self.stop_at(Limit::Memory);
        }
        self.fault.lock().get_or_insert(fault);
        self.stop.store(true, Relaxed);
    }

    #[inline]
    pub fn is_open(&self, property: usize) -> bool {
        self.open[property].load(Relaxed)
    }

    /// Take note of the first finding of each property; a violation ends the search unless it is to go on.
    pub fn record(&self, finding: Finding) {
        let property = finding.property;
        if self.open[property].swap(false, Relaxed) {
            self.findings.lock().push(finding);
            if !self.options.keep_going && self.kinds.get(property) != Some(&PropertyKind::Reachable) {
                self.stop.store(true, Relaxed);
            }
        }
    }

    /// A terminal state was met; only tests have it remembered.
    #[inline]
    pub fn note_terminal(&self, fingerprint: u64) {
        if self.hooks.collect_terminals {
            self.terminals.lock().insert(fingerprint);
        }
    }

    /// A state outside of the bound was met, by this step (none: it is an initial state).
    pub fn note_outside(&self, tables: &Tables, step: Option<(NodeId, TransitionRef)>) {
        let exit = step.map(|(node, via)| {
            let transitions = tables.transitions(node).expect("a node whose transition is known was expanded");
            let details = tables.details(&transitions[via.index as usize]);
            (via.process, details.kind, details.handler)
        });
        self.outside.fetch_add(1, Relaxed);
        *self.exits.lock().entry(exit).or_default() += 1;
    }

    /// Where the steps to states outside of the bound come from, and how many such states there are.
    pub fn exits(&self) -> Vec<(Exit, u64)> {
        self.exits.lock().iter().map(|(&exit, &count)| (exit, count)).collect()
    }

    pub fn terminals(&self) -> Vec<u64> {
        self.terminals.lock().iter().copied().collect()
    }

    /// Whether a test has this rule left out.
    pub fn leaves_out(&self, rule: &str) -> bool {
        self.hooks.leaves_out(rule)
    }

    /// The built-in property that no assertion of a handler fails.
    pub fn assertion(&self) -> usize {
        self.kinds.len()
    }

    /// Count a visit of a search without a visited set. False if there were as many as are allowed: then the search ends.
    pub fn visit(&self) -> bool {
        let admitted = (self.visits.fetch_add(1, Relaxed) as usize) < self.options.max_states;
        if !admitted {
            self.visits.fetch_sub(1, Relaxed);
            self.stop_at(Limit::MaxStates);
        }
        admitted
    }

    /// The built-in property that user code raises no exception.
    pub fn exception(&self) -> usize {
        self.kinds.len() + 1
    }

    /// The built-in properties that steps out of a state violate.
    pub fn failed(&self, summary: SuccessorSummary) -> impl Iterator<Item = usize> + use<> {
        let (assertion, exception) = (self.assertion(), self.exception());
        summary.fails.then_some(assertion).into_iter().chain(summary.raises.then_some(exception))
    }

    /// Look at the limits that depend on the number of states. A pass that has become useless goes on for a while, to learn
    /// more, but not for longer than the passes before it together.
    pub fn pulse(&self, tables: &Tables) {
        const PATIENCE: usize = 4096;
        /// After this many states, the search decides whether the reduction pays off.
        const TRIAL: usize = 100_000;
        if self.visited.refused() {
            self.stop_at(Limit::MaxStates);
        }
        let relations = self.relations();
        if relations.is_some()
            && self.visited.len() > TRIAL
            && self.partial.load(Relaxed) * 10 < self.visited.len() as u64
        {
            self.give_up(format!(
                "it removed almost no states among the first {TRIAL}, so the search continued without it"
            ));
        }
        if let Some(relations) = relations
            && self.visited.len() > PATIENCE << self.passes().min(30)
            && (tables.known_effects(|known| known.version) != relations.version
                || !relations.read_sets.covers(self.read_sets()))
        {
            self.stale.store(true, Relaxed);
        }
    }

    pub fn finish(&self) {
        *self.done.lock() = true;
        self.wake.notify_all();
    }

    /// Watch the limits until the search is done; `tick` is called some times a second and says whether to go on.
    pub fn watch(&self, mut tick: impl FnMut() -> bool) {
        let mut done = self.done.lock();
        while !*done {
            self.wake.wait_for(&mut done, Duration::from_millis(20));
            if *done {
                return;
            }
            parking_lot::MutexGuard::unlocked(&mut done, || {
                if self.options.timeout.is_some_and(|limit| self.started.elapsed() > limit) {
                    self.stop_at(Limit::Timeout);
                }
                if self.options.memory != usize::MAX && resident().is_some_and(|bytes| bytes > self.options.memory) {
                    self.stop_at(Limit::Memory);
                }
                if !tick() {
                    self.stop_at(Limit::Interrupted);
                }
            });
        }
    }

    pub fn take_fault(&self) -> Option<Fault> {
        self.fault.lock().take()
    }

    pub fn take_late(&self) -> Option<Fault> {
        self.late.lock().take()
    }

    pub fn bound(&self) -> Option<Limit> {
        *self.bound.lock()
    }

    pub fn findings(&self) -> Vec<Finding> {
        self.findings.lock().clone()
    }
}

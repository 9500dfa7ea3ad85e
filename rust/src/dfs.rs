//! Depth-first search with an explicit stack: stateful, or stateless (no visited set, the papers' baseline).
//!
//! Several workers share the visited set; a state belongs to the worker that was first to reach it. A worker that has
//! nothing to do is given the untried successors of the lowest frame of another's stack.

use crate::control::{Control, Finding, Limit};
use crate::lens::{Lens, Touched, Way, look};
use crate::model::Result;
use crate::stubborn::ALL;
use crate::tables::Tables;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How often a worker looks whether others wait for work, and publishes its counters.
const PULSE: u32 = 1024;

/// A state on the stack, with its untried successors.
struct Frame {
    fingerprint: u64,
    /// First successor of this frame in the arena, and the next to try.
    first: usize,
    next: usize,
}

/// A successor that has not been tried.
type Untried = (u64, Way);

/// A state with untried successors, handed from one worker to another.
struct Job {
    state: Vec<u32>,
    /// Fingerprints from the initial state to this one.
    run: Vec<u64>,
    successors: Vec<Untried>,
}

#[derive(Default)]
struct Exchange {
    jobs: Mutex<Vec<Job>>,
    waiting: AtomicUsize,
    wake: Condvar,
}

struct Worker<'t, 'c> {
    lens: Lens<'t>,
    control: &'c Control,
    exchange: &'c Exchange,
    stateful: bool,
    frames: Vec<Frame>,
    /// The states of the frames, end to end.
    states: Vec<u32>,
    successors: Vec<Untried>,
    /// Fingerprints before the first frame, for a job taken from another worker.
    prefix: Vec<u64>,
    transitions: u64,
    terminal: u64,
    visits: u64,
    deepest: u32,
}

pub fn search(tables: &Tables, control: &Control, stateful: bool) -> Result<()> {
    let exchange = Exchange::default();
    let initial = tables.initial()?;
    let mut lens = Lens::new(tables);
    let fingerprint = lens.fingerprint(&initial);
    control.visited.session(1, 0)?.insert(fingerprint, fingerprint);
    look(&mut lens, control, &initial, Touched::EVERYWHERE, false, |property| {
        control.record(Finding { property, fingerprint, depth: 0, run: Some(vec![fingerprint]) });
    })?;
    std::thread::scope(|scope| {
        for index in 0..control.options.workers {
            let (initial, exchange) = (&initial, &exchange);
            scope.spawn(move || {
                tables.model.in_thread(&mut || {
                    let mut worker = Worker::new(tables, control, exchange, stateful);
                    let start = if index == 0 { worker.enter(initial.clone(), fingerprint) } else { Ok(()) };
                    if let Err(fault) = start.and_then(|()| worker.work()) {
                        control.fail(fault);
                    }
                    worker.publish();
                    exchange.leave();
                });
            });
        }
    });
    Ok(())
}

impl Exchange {
    /// Wake everybody up, so that they see that the search ends.
    fn leave(&self) {
        let _jobs = self.jobs.lock();
        self.wake.notify_all();
    }

    /// Wait for a job; None when all workers wait, or the search was stopped.
    fn take(&self, control: &Control) -> Option<Job> {
        let mut jobs = self.jobs.lock();
        self.waiting.fetch_add(1, Relaxed);
        loop {
            if let Some(job) = jobs.pop() {
                self.waiting.fetch_sub(1, Relaxed);
                return Some(job);
            }
            if control.stopped() || self.waiting.load(Relaxed) == control.options.workers {
                // Stay counted as waiting: nothing can come any more.
                self.wake.notify_all();
                return None;
            }
            self.wake.wait_for(&mut jobs, std::time::Duration::from_millis(20));
        }
    }

    fn offer(&self, job: Job) {
        self.jobs.lock().push(job);
        self.wake.notify_one();
    }

    fn hungry(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }
}

impl<'t, 'c> Worker<'t, 'c> {
    fn new(tables: &'t Tables, control: &'c Control, exchange: &'c Exchange, stateful: bool) -> Self {
        Worker {
            lens: Lens::new(tables),
            control,
            exchange,
            stateful,
            frames: Vec::new(),
            states: Vec::new(),
            successors: Vec::new(),
            prefix: Vec::new(),
            transitions: 0,
            terminal: 0,
            visits: 0,
            deepest: 0,
        }
    }

    fn work(&mut self) -> Result<()> {
        loop {
            let mut pulse = 0;
            while !self.frames.is_empty() && !self.control.stopped() {
                self.advance()?;
                pulse += 1;
                if pulse == PULSE {
                    pulse = 0;
                    self.publish();
                    if self.exchange.hungry() {
                        self.give();
                    }
                }
            }
            if self.control.stopped() {
                return Ok(());
            }
            let Some(job) = self.exchange.take(self.control) else {
                return Ok(());
            };
            self.resume(job);
        }
    }

    /// Try the next successor of the top frame, or leave it.
    fn advance(&mut self) -> Result<()> {
        let width = self.lens.width;
        let frame = self.frames.last_mut().expect("there is a frame");
        if frame.next >= self.successors.len() {
            self.successors.truncate(frame.first);
            self.frames.pop();
            self.states.truncate(self.frames.len() * width);
            return Ok(());
        }
        let parent = frame.fingerprint;
        let (fingerprint, way) = self.successors[frame.next];
        frame.next += 1;
        if self.stateful {
            let others = (self.control.options.workers - 1) * 8;
            if !self.control.visited.session(1, others)?.insert(fingerprint, parent) {
                return Ok(());
            }
        }
        let start = self.states.len() - width;
        self.states.extend_from_within(start..);
        let top = self.states.len() - width;
        let touched = self.lens.take(&mut self.states[top..], way)?;
        let depth = (self.prefix.len() + self.frames.len()) as u32;
        let mut found = Vec::new();
        look(&mut self.lens, self.control, &self.states[top..], touched, false, |property| found.push(property))?;
        for property in found {
            self.record(property, fingerprint, depth, true);
        }
        self.push(fingerprint, depth)
    }

    /// Begin with a state that has no parent.
    fn enter(&mut self, state: Vec<u32>, fingerprint: u64) -> Result<()> {
        self.states = state;
        self.push(fingerprint, 0)
    }

    /// Put the state at the end of `states` on the stack, with all its successors untried.
    fn push(&mut self, fingerprint: u64, depth: u32) -> Result<()> {
        let width = self.lens.width;
        let first = self.successors.len();
        self.visits += 1;
        self.deepest = self.deepest.max(depth);
        if depth >= self.control.options.max_depth {
            self.control.cut(Limit::MaxDepth);
            self.states.truncate(self.states.len() - width);
            return Ok(());
        }
        self.frames.push(Frame { fingerprint, first, next: first });
        let top = self.states.len() - width;
        let successors = &mut self.successors;
        let outlook =
            self.lens.outlook(&self.states[top..], fingerprint, ALL, |there, way| successors.push((there, way)))?;
        self.transitions += outlook.transitions;
        if outlook.fails {
            self.record(self.control.assertion(), fingerprint, depth + 1, false);
        }
        if !outlook.moves {
            self.terminal += 1;
            let mut found = Vec::new();
            look(&mut self.lens, self.control, &self.states[top..], Touched::EVERYWHERE, true, |property| {
                found.push(property)
            })?;
            for property in found {
                self.record(property, fingerprint, depth, false);
            }
        }
        Ok(())
    }

    /// A finding in a state whose frames are on the stack, except the last when it `is_new`.
    fn record(&self, property: usize, fingerprint: u64, depth: u32, is_new: bool) {
        let frames = self.frames.iter().map(|f| f.fingerprint);
        let mut run: Vec<u64> = self.prefix.iter().copied().chain(frames).collect();
        if is_new {
            run.push(fingerprint);
        }
        self.control.record(Finding { property, fingerprint, depth, run: Some(run) });
    }

    /// Hand the untried successors of the lowest frame that has some to whoever waits.
    fn give(&mut self) {
        let width = self.lens.width;
        for index in 0..self.frames.len() {
            let end = self.frames.get(index + 1).map_or(self.successors.len(), |f| f.first);
            let frame = &self.frames[index];
            if frame.next >= end || index + 1 == self.frames.len() {
                continue;
            }
            let successors = self.successors[frame.next..end].to_vec();
            let below = self.frames[..=index].iter().map(|f| f.fingerprint);
            self.exchange.offer(Job {
                state: self.states[index * width..(index + 1) * width].to_vec(),
                run: self.prefix.iter().copied().chain(below).collect(),
                successors,
            });
            self.frames[index].next = usize::MAX;
            return;
        }
    }

    fn resume(&mut self, job: Job) {
        self.prefix = job.run;
        let fingerprint = self.prefix.pop().expect("a run has a last state");
        self.states = job.state;
        self.successors = job.successors;
        self.frames = vec![Frame { fingerprint, first: 0, next: 0 }];
    }

    fn publish(&mut self) {
        let control = self.control;
        control.transitions.fetch_add(std::mem::take(&mut self.transitions), Relaxed);
        control.terminal.fetch_add(std::mem::take(&mut self.terminal), Relaxed);
        control.visits.fetch_add(std::mem::take(&mut self.visits), Relaxed);
        control.depth.fetch_max(self.deepest, Relaxed);
        control.frontier.store(self.frames.len(), Relaxed);
        if self.stateful {
            control.pulse(self.lens.tables);
        } else if control.visits.load(Relaxed) > control.options.max_states as u64 {
            control.stop_at(Limit::MaxStates);
        }
    }
}

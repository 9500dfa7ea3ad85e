//! Depth-first search with an explicit stack: stateful, or stateless (no visited set, the baseline of DBSS).
//!
//! With *selective push-on-stack* (DBSS, Algorithm 1), a state with a single successor is not pushed, because it has
//! nothing to backtrack to. The search continues with the successor in place. Skipped states are only on the
//! counterexample stack (CE-stack), which has the fingerprint of every state of the current run. A frame stores the
//! length of its own run on the CE-stack. Backtracking to the frame truncates the CE-stack to this length.
//!
//! Several workers share the visited set. A state belongs to the worker that reaches it first. An idle worker gets the
//! untried successors of the lowest frame of another worker's stack.

use crate::por::stubborn::{ALL, Stubborn};
use crate::search::control::{Control, Finding, Limit};
use crate::system::initial::InitialState;
use crate::system::model::Result;
use crate::system::reads::{Changes, evaluate_properties, is_within};
use crate::system::successors::{TransitionRef, View};
use crate::system::tables::Tables;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How often a worker looks whether others wait for work, and publishes its counters.
const PULSE: u32 = 1024;
/// How many states at the limit of the depth are looked at again after the search.
const MOST_CUT_OFF: usize = 100_000;

/// A state on the stack, with its untried successors.
struct Frame {
    /// How much of the counterexample stack is the run to this state, which is the last of it.
    run: usize,
    /// First successor of this frame in the arena, and the next to try.
    first: usize,
    next: usize,
    /// Processes whose transitions partial-order reduction left out, as bits, where a run may come back to a state: if none
    /// of the other transitions leads to a new state, these must be taken too.
    left_out: u64,
    led_on: bool,
}

/// A successor that has not been tried.
type Untried = (u64, TransitionRef);

/// A state with untried successors, handed from one worker to another.
struct Job {
    state: Vec<u32>,
    /// Fingerprints from the initial state to this one.
    run: Vec<u64>,
    /// None: it is an initial state, which was not expanded yet.
    successors: Option<Vec<Untried>>,
}

#[derive(Default)]
struct Exchange {
    jobs: Mutex<Vec<Job>>,
    waiting: AtomicUsize,
    wake: Condvar,
    /// States at the limit of the depth that led to a state that was not met then, with their fingerprints.
    cut_off: Mutex<Vec<(Vec<u32>, u64)>>,
}

struct Worker<'t, 'c> {
    view: View<'t>,
    control: &'c Control,
    exchange: &'c Exchange,
    stateful: bool,
    stubborn: Option<Stubborn>,
    frames: Vec<Frame>,
    /// The states of the frames, end to end; then the state that was not pushed, if `single` says that there is one.
    states: Vec<u32>,
    successors: Vec<Untried>,
    /// The only successor of the state that the search goes on from in place.
    single: Option<Untried>,
    /// The counterexample stack: fingerprints of the current run from the initial state on.
    run: Vec<u64>,
    operations: u64,
    saved: u64,
    transitions: u64,
    terminal: u64,
    /// States in which partial-order reduction left something out.
    partial: u64,
    visits: u64,
    deepest: u32,
}

pub fn search(tables: &Tables, control: &Control, stateful: bool) -> Result<()> {
    let exchange = Exchange::default();
    let mut view = View::new(tables);
    // The last job is taken first.
    for InitialState { state, .. } in tables.initial()?.iter().rev() {
        let fingerprint = view.fingerprint(state);
        // With symmetry, several may be one.
        if !control.visited.session(1, 0)?.insert(fingerprint, fingerprint) && stateful {
            continue;
        }
        let run = vec![fingerprint];
        evaluate_properties(&mut view, control, state, Changes::EVERYWHERE, false, |property| {
            control.record(Finding { property, fingerprint, depth: 0, run: Some(run.clone()) });
        })?;
        let raised =
            |property| control.record(Finding { run: Some(run.clone()), ..Finding::of_state(property, fingerprint) });
        if is_within(&mut view, control, state, Changes::EVERYWHERE, raised)? {
            exchange.offer(Job { state: state.clone(), run, successors: None });
        } else {
            control.visits.fetch_add(u64::from(!stateful), Relaxed);
            control.note_outside(tables, None);
        }
    }
    std::thread::scope(|scope| {
        for _ in 0..control.options.workers {
            let exchange = &exchange;
            scope.spawn(move || {
                tables.model.in_thread(&mut || {
                    let mut worker = Worker::new(tables, control, exchange, stateful);
                    if let Err(fault) = worker.work() {
                        control.fail(fault);
                    }
                    worker.publish();
                    exchange.leave();
                });
            });
        }
    });
    let cut_off = exchange.cut_off.lock();
    if !cut_off.is_empty() && !control.stopped() {
        let mut worker = Worker::new(tables, control, &exchange, stateful);
        if worker.leads_beyond_limit(&cut_off)? {
            control.cut(Limit::MaxDepth);
        } else {
            worker.publish();
        }
    }
    Ok(())
}

/// Whether a step out of a state fails, or leads to a state that was not met so far; without a visited set, to any state.
fn leads_beyond(view: &mut View, control: &Control, state: &[u32], fingerprint: u64, stateful: bool) -> Result<bool> {
    let mut successors = Vec::new();
    let summary = view.for_each_successor(state, fingerprint, ALL, |there, _| successors.push(there))?;
    if summary.fails || summary.raises || (!stateful && !successors.is_empty()) {
        return Ok(true);
    }
    let session = control.visited.session(0, 0)?;
    Ok(successors.into_iter().any(|there| !session.contains(there)))
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

    /// Remember a state at the limit of the depth. If there are too many, the limit stands.
    fn cut_off(&self, control: &Control, state: &[u32], fingerprint: u64) {
        let mut cut_off = self.cut_off.lock();
        if cut_off.len() < MOST_CUT_OFF {
            cut_off.push((state.to_vec(), fingerprint));
        } else {
            control.cut(Limit::MaxDepth);
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
            view: View::new(tables),
            control,
            exchange,
            stateful,
            stubborn: control.relations().map(|relations| Stubborn::new(relations, tables.model.shape())),
            frames: Vec::new(),
            states: Vec::new(),
            successors: Vec::new(),
            single: None,
            run: Vec::new(),
            operations: 0,
            saved: 0,
            transitions: 0,
            terminal: 0,
            partial: 0,
            visits: 0,
            deepest: 0,
        }
    }

    fn work(&mut self) -> Result<()> {
        loop {
            let mut pulse = 0;
            while self.has_work() && !self.control.stopped() {
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
            self.resume(job)?;
        }
    }

    fn has_work(&self) -> bool {
        self.single.is_some() || !self.frames.is_empty()
    }

    /// Go on from the state that was not pushed; else try the next successor of the top frame, or leave the frame.
    fn advance(&mut self) -> Result<()> {
        let width = self.view.width;
        let in_place = self.single.take();
        let (fingerprint, via) = if let Some(single) = in_place {
            single
        } else {
            let frame = self.frames.last_mut().expect("there is a frame");
            if frame.next >= self.successors.len() {
                if frame.left_out != 0 && !frame.led_on {
                    return self.complete();
                }
                self.pop();
                return Ok(());
            }
            frame.next += 1;
            self.run.truncate(frame.run);
            self.successors[frame.next - 1]
        };
        if self.stateful {
            let others = (self.control.options.workers - 1) * 8;
            let parent = *self.run.last().expect("a run has a last state");
            if !self.control.visited.session(1, others)?.insert(fingerprint, parent) {
                if self.control.visited.refused() {
                    self.control.stop_at(Limit::MaxStates);
                }
                self.states.truncate(self.frames.len() * width);
                return Ok(());
            }
        } else if !self.visit() {
            self.states.truncate(self.frames.len() * width);
            return Ok(());
        }
        let top = self.frames.len() * width;
        if in_place.is_none() {
            self.states.extend_from_within(top - width..);
            self.frames.last_mut().expect("there is a frame").led_on = true;
        }
        let node = self.view.situated(&self.states[top..], via.process as usize)?;
        let changes = self.view.take(&mut self.states[top..], via)?;
        self.run.push(fingerprint);
        let mut found = Vec::new();
        let Worker { view, control, states, .. } = self;
        evaluate_properties(view, control, &states[top..], changes, false, |property| found.push(property))?;
        let within = is_within(view, control, &states[top..], changes, |property| found.push(property))?;
        for property in found {
            self.record(property, 0);
        }
        if within {
            return self.push();
        }
        self.control.note_outside(self.view.tables, Some((node, via)));
        self.states.truncate(self.frames.len() * width);
        Ok(())
    }

    /// Count a visit of the search without a visited set; false if there were as many as are allowed. Without a limit, the
    /// count is published now and then.
    fn visit(&mut self) -> bool {
        if self.control.options.max_states != usize::MAX {
            return self.control.visit();
        }
        self.visits += 1;
        true
    }

    /// Enumerate the successors of the state at the end of `states`, the last of the run; put it on the stack with all
    /// of them untried, unless there is only one.
    fn push(&mut self) -> Result<()> {
        let top = self.frames.len() * self.view.width;
        let first = self.successors.len();
        let fingerprint = *self.run.last().expect("a run has a last state");
        let depth = self.run.len() as u32 - 1;
        self.deepest = self.deepest.max(depth);
        if depth >= self.control.options.max_depth
            && leads_beyond(&mut self.view, self.control, &self.states[top..], fingerprint, self.stateful)?
        {
            if self.stateful {
                self.exchange.cut_off(self.control, &self.states[top..], fingerprint);
            } else {
                self.control.cut(Limit::MaxDepth);
            }
            self.states.truncate(top);
            return Ok(());
        }
        let state = &self.states[top..];
        let mut processes = match &mut self.stubborn {
            Some(stubborn) => stubborn.processes(&mut self.view, state)?,
            None => ALL,
        };
        let successors = &mut self.successors;
        let mut summary =
            self.view.for_each_successor(state, fingerprint, processes, |there, via| successors.push((there, via)))?;
        if !summary.leads_on && processes != ALL {
            let rest = |there, via| successors.push((there, via));
            summary.add(self.view.for_each_successor(state, fingerprint, !processes, rest)?);
            processes = ALL;
        }
        self.transitions += summary.transitions;
        self.partial += u64::from(processes != ALL);
        for property in self.control.failed(summary) {
            self.record(property, 1);
        }
        if !summary.moves {
            self.terminal += 1;
            self.control.note_terminal(fingerprint);
            let mut found = Vec::new();
            evaluate_properties(
                &mut self.view,
                self.control,
                &self.states[top..],
                Changes::EVERYWHERE,
                true,
                |property| found.push(property),
            )?;
            for property in found {
                self.record(property, 0);
            }
        }
        let cyclic = self.stubborn.as_ref().is_some_and(|stubborn| stubborn.relations().needs_proviso());
        let left_out = if cyclic { !processes } else { 0 };
        // A state whose other successors may have to be taken as well must be a frame.
        if self.control.options.spos && self.successors.len() == first + 1 && left_out == 0 {
            self.single = self.successors.pop();
            self.saved += 2;
        } else {
            self.frames.push(Frame { run: self.run.len(), first, next: first, left_out, led_on: false });
            self.operations += 1;
        }
        Ok(())
    }

    /// After the search: whether a limit on the depth has cut off states that were not met elsewhere. If not, count the
    /// transitions of the states at the limit.
    fn leads_beyond_limit(&mut self, cut_off: &[(Vec<u32>, u64)]) -> Result<bool> {
        for (state, fingerprint) in cut_off {
            if leads_beyond(&mut self.view, self.control, state, *fingerprint, true)? {
                return Ok(true);
            }
        }
        for (state, fingerprint) in cut_off {
            let summary = self.view.for_each_successor(state, *fingerprint, ALL, |_, _| {})?;
            if !summary.moves {
                return Ok(true); // it was not judged as a terminal state
            }
            self.transitions += summary.transitions;
        }
        Ok(false)
    }

    /// Have the top frame try the successors that were left out of it.
    fn complete(&mut self) -> Result<()> {
        let frame = self.frames.last_mut().expect("there is a frame");
        let processes = std::mem::take(&mut frame.left_out);
        frame.next = self.successors.len();
        self.run.truncate(frame.run);
        let fingerprint = *self.run.last().expect("a run has a last state");
        let top = (self.frames.len() - 1) * self.view.width;
        let successors = &mut self.successors;
        let summary = self.view.for_each_successor(
            &self.states[top..top + self.view.width],
            fingerprint,
            processes,
            |there, via| successors.push((there, via)),
        )?;
        self.transitions += summary.transitions;
        for property in self.control.failed(summary) {
            self.record(property, 1);
        }
        Ok(())
    }

    /// Leave the top frame, all of whose successors were tried.
    fn pop(&mut self) {
        let frame = self.frames.pop().expect("there is a frame");
        self.successors.truncate(frame.first);
        self.states.truncate(self.frames.len() * self.view.width);
        self.operations += 1;
    }

    /// Report a finding in the last state of the run, or `beyond` steps after it.
    fn record(&self, property: usize, beyond: u32) {
        let fingerprint = *self.run.last().expect("a run has a last state");
        let depth = self.run.len() as u32 - 1 + beyond;
        self.control.record(Finding { property, fingerprint, depth, run: Some(self.run.clone()) });
    }

    /// Give the untried successors of the lowest frame that has some to an idle worker, if this worker has other work.
    fn give(&mut self) {
        let width = self.view.width;
        for index in 0..self.frames.len() {
            let end = self.frames.get(index + 1).map_or(self.successors.len(), |f| f.first);
            let frame = &self.frames[index];
            if frame.next >= end || (index + 1 == self.frames.len() && self.single.is_none()) {
                continue;
            }
            self.exchange.offer(Job {
                state: self.states[index * width..(index + 1) * width].to_vec(),
                run: self.run[..frame.run].to_vec(),
                successors: Some(self.successors[frame.next..end].to_vec()),
            });
            self.frames[index].next = usize::MAX;
            return;
        }
    }

    fn resume(&mut self, job: Job) -> Result<()> {
        self.run = job.run;
        self.states = job.state;
        self.frames.clear();
        self.successors.clear();
        let Some(successors) = job.successors else {
            if !self.stateful && !self.visit() {
                return Ok(());
            }
            return self.push();
        };
        self.successors = successors;
        // The worker that gave the successors away handles the others.
        self.frames = vec![Frame { run: self.run.len(), first: 0, next: 0, left_out: 0, led_on: true }];
        self.operations += 1;
        Ok(())
    }

    fn publish(&mut self) {
        let control = self.control;
        control.transitions.fetch_add(std::mem::take(&mut self.transitions), Relaxed);
        control.terminal.fetch_add(std::mem::take(&mut self.terminal), Relaxed);
        control.visits.fetch_add(std::mem::take(&mut self.visits), Relaxed);
        control.partial.fetch_add(std::mem::take(&mut self.partial), Relaxed);
        control.stack_operations.fetch_add(std::mem::take(&mut self.operations), Relaxed);
        control.stack_operations_saved.fetch_add(std::mem::take(&mut self.saved), Relaxed);
        control.depth.fetch_max(self.deepest, Relaxed);
        control.frontier.store(self.frames.len(), Relaxed);
        if self.stateful {
            control.pulse(self.view.tables);
        }
    }
}

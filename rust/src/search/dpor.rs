//! Dynamic partial-order reduction for the search without a visited set: of the runs that differ only in the order of
//! independent transitions, few are searched (backtrack sets after Flanagan and Godefroid, and sleep sets).
//!
//! **Terms.** Two transitions of different processes *conflict* if they do not commute (`por::footprint`), or if both are
//! visible to the same property. A transition u of q *interferes* with p at a state if it sends to
//! p, or conflicts with a transition that p's node has there, be it blocked (by a budget, by slots) or not.
//! A step of the run *happens before* a later one by program order, by conflict, or because that consumes what it sent:
//! of equal messages of one sender, the k-th taken is the k-th sent. (It happens before a u that was not executed if it is,
//! or happens before, the last step of q or the sending of what u consumes: conflicts of u are what may be turned round.)
//!
//! **Search.** At a state some processes are chosen, and of these all transitions that are not asleep are tried. In each
//! state, for each u of a q that is (or was, before something blocked it) possible there and each step e of the run, of
//! another process p: if u interferes with p at the state before e, and e does not happen before u, then u might come
//! first. So at that state we choose q, or another process that has a step on the way from there to u; if none of these
//! can move there, all that can. A transition that was tried sleeps in the subtrees of those tried after it, until
//! something that conflicts with it (or its own process) wakes it.
//!
//! **Claim.** If no run was cut off: for every run w from a state s with sleep set Z such that no member of Z can be moved to
//! the front of w by swapping independent neighbours, the search below s follows a run that begins with w up to such swaps.
//! *Proof*, by induction over the finite tree, then the length of w. Let C be the processes chosen at s that have a
//! transition that is awake. (1) If w has a transition of C before any interference with C, the first such can be moved to
//! the front, thus is awake and was tried; go on below the one of these that was tried first. (2) If w has neither, any
//! tried t commutes with all of w: go on with w below the first. (3) Else let u be the first in w that interferes with
//! some p in C, v what precedes it in w, and t a tried transition of p. v is possible after t, and is followed below t by
//! induction, up to where u is possible but for budgets and slots. Neither t nor anything that the search added on the way
//! happens before u or a part of v: they were possible without it, and interfere with none of it. So u is found to interfere, and a process
//! of v u was chosen at s, or all were that are awake: also that of the first of w. But (3) means that none is in C.
//!
//! **Verdicts.** Visible transitions conflict, so that their order is that of w: every value of what an `always` or
//! `reachable` property reads is met. What it reads shows only while searching; when it has read more, the search begins
//! again. `final` properties need the terminal states themselves, without additions. Case (2) is the only one that adds;
//! it cannot occur on the way to a terminal state if C has a process with a step, since that would still be possible at the
//! end of w. So such a process is chosen first; if there is none that is awake, all are chosen. A step that leads
//! back to where it began makes a run without end, which is cut off. A failing step is the last of its w, and is never
//! taken: its state is what must be met.

use crate::por::stubborn::ALL;
use crate::search::control::{Control, Finding, Limit};
use crate::search::dpor_transitions::{DporTransitions, TransitionId};
use crate::system::model::{MessageId, Network, PropertyKind, Result};
use crate::system::reads::{Changes, evaluate_properties};
use crate::system::tables::{Kind, NodeId, Tables};
use crate::system::view::{TransitionRef, View};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

/// How often the counters are published.
const PULSE: u64 = 256;

/// What became of a process at a state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All its transitions sleep, or it has none.
    Out,
    Waiting,
    Chosen,
    Done,
}

struct Choice {
    process: usize,
    via: TransitionRef,
    fingerprint: u64,
    transition: TransitionId,
}

/// A state of the current run.
struct Frame {
    /// Transitions that are not to be tried: asleep from above, or tried already.
    sleep: Vec<TransitionId>,
    /// What may be tried, process by process, and the next of it.
    choices: Vec<Choice>,
    next: usize,
    parts: Vec<Part>,
}

/// A transition of the current run.
#[derive(Clone, Copy)]
struct Step {
    transition: TransitionId,
    /// The node of its process before it.
    node: NodeId,
}

struct Search<'t, 'c> {
    view: View<'t>,
    control: &'c Control,
    /// Rules that tests leave out to show that they are needed: what conflicts wakes, and ends are met as they are.
    wakes: bool,
    ends: bool,
    processes: usize,
    network: Network,
    initial: Vec<u32>,
    /// Per property, the fields and inboxes that visible transitions change, in this pass.
    seen: Vec<(u64, u64)>,
    transitions: DporTransitions,
    frames: Vec<Frame>,
    /// States of the frames, end to end.
    states: Vec<u32>,
    /// Their fingerprints.
    run: Vec<u64>,
    /// `steps[i]` leads from frame i to frame i + 1.
    steps: Vec<Step>,
    /// Per step and process, one past the last step of the process that happens before the step, or is it.
    clocks: Vec<u32>,
    counted: u64,
    terminal: u64,
    visits: u64,
}

/// Search with one worker, whatever the options say: what to try at a state depends on what was met below it.
pub fn search(tables: &Tables, control: &Control) -> Result<()> {
    let mut search = Search::new(tables, control)?;
    let fingerprint = search.view.fingerprint(&search.initial);
    evaluate_properties(&mut search.view, control, &search.initial, Changes::EVERYWHERE, false, |property| {
        control.record(Finding { property, fingerprint, depth: 0, run: Some(vec![fingerprint]) });
    })?;
    let mut complete = false;
    while !complete && !control.stopped() {
        complete = search.pass(fingerprint)?;
        search.publish();
    }
    Ok(())
}

impl<'t, 'c> Search<'t, 'c> {
    fn new(tables: &'t Tables, control: &'c Control) -> Result<Self> {
        let shape = tables.model.shape();
        Ok(Search {
            view: View::new(tables),
            control,
            wakes: !control.leaves_out("dpor-wakes"),
            ends: !control.leaves_out("dpor-ends"),
            processes: shape.processes,
            network: shape.network,
            initial: tables.initial()?,
            seen: Vec::new(),
            transitions: DporTransitions::new(shape, control, Vec::new()),
            frames: Vec::new(),
            states: Vec::new(),
            run: Vec::new(),
            steps: Vec::new(),
            clocks: Vec::new(),
            counted: 0,
            terminal: 0,
            visits: 0,
        })
    }

    /// Search everything from the initial state; false if a property has read more than is held to be visible.
    fn pass(&mut self, fingerprint: u64) -> Result<bool> {
        self.seen = self.reads();
        self.transitions = DporTransitions::new(self.view.tables.model.shape(), self.control, self.seen.clone());
        self.frames.clear();
        self.steps.clear();
        self.clocks.clear();
        self.states.clone_from(&self.initial);
        self.run = vec![fingerprint];
        self.enter(Vec::new())?;
        while !self.frames.is_empty() && !self.control.stopped() {
            if let Some(choice) = self.choose() {
                self.take(choice)?;
                if self.sees_more() {
                    return Ok(false);
                }
            } else {
                self.frames.pop();
                self.leave();
            }
        }
        Ok(true)
    }

    /// What the open properties on single states have read.
    fn reads(&self) -> Vec<(u64, u64)> {
        let wanted = |property: usize, kind: PropertyKind| kind.of_states() && self.control.is_open(property);
        let kinds = self.control.kinds.iter().enumerate();
        kinds.map(|(p, &kind)| if wanted(p, kind) { self.control.reads.of(p) } else { (0, 0) }).collect()
    }

    fn sees_more(&self) -> bool {
        let kinds = self.control.kinds.iter().zip(&self.seen).enumerate();
        kinds
            .filter(|(_, (kind, _))| kind.of_states())
            .any(|(property, (_, seen))| self.control.reads.of(property) != *seen && self.control.is_open(property))
    }

    /// The next transition to try at the last state of the run.
    fn choose(&mut self) -> Option<usize> {
        let frame = self.frames.last_mut().expect("there is a frame");
        let last = frame.next.checked_sub(1).map(|last| frame.choices[last].process);
        if last.is_none() || frame.choices.get(frame.next).map(|c| c.process) != last {
            if let Some(process) = last {
                frame.parts[process] = Part::Done;
            }
            frame.next = frame.choices.iter().position(|c| frame.parts[c.process] == Part::Chosen)?;
        }
        frame.next += 1;
        Some(frame.next - 1)
    }

    /// Execute a choice of the last frame.
    fn take(&mut self, choice: usize) -> Result<()> {
        let width = self.view.width;
        let depth = self.frames.len() - 1;
        let frame = &mut self.frames[depth];
        let Choice { process, via, fingerprint, transition } = frame.choices[choice];
        let (transitions, taken, wakes) = (&self.transitions, &self.transitions[transition], self.wakes);
        let stays = |z: &&TransitionId| {
            let other = &transitions[**z];
            other.process != process
                && !(wakes && other.dependence.conflicts(other.process, &taken.dependence, process))
        };
        let sleep = frame.sleep.iter().filter(stays).copied().collect();
        frame.sleep.push(transition);

        let node = self.states[depth * width + process];
        let mut clock = self.past(process, transition);
        for index in 0..self.steps.len() {
            let other = &self.transitions[self.steps[index].transition];
            if other.process != process
                && other.dependence.conflicts(other.process, &self.transitions[transition].dependence, process)
            {
                self.join(&mut clock, index);
            }
        }
        clock[process] = depth as u32 + 1;
        self.clocks.extend_from_slice(&clock);
        self.steps.push(Step { transition, node });
        self.run.push(fingerprint);
        self.states.extend_from_within(depth * width..);
        let top = self.states.len() - width;
        let changes = self.view.take(&mut self.states[top..], via)?;
        self.judge(changes, false)?;
        self.enter(sleep)
    }

    /// Take the last state off the run, with the step that led to it.
    fn leave(&mut self) {
        self.run.pop();
        self.states.truncate(self.run.len() * self.view.width);
        self.steps.pop();
        self.clocks.truncate(self.steps.len() * self.processes);
    }

    fn judge(&mut self, changes: Changes, terminal: bool) -> Result<()> {
        let top = self.states.len() - self.view.width;
        let mut found = Vec::new();
        evaluate_properties(&mut self.view, self.control, &self.states[top..], changes, terminal, |property| {
            found.push(property)
        })?;
        for property in found {
            self.record(property, 0);
        }
        Ok(())
    }

    /// A finding in the last state of the run, or so many steps `beyond` it.
    fn record(&self, property: usize, beyond: u32) {
        let fingerprint = *self.run.last().expect("a run has a last state");
        let depth = self.run.len() as u32 - 1 + beyond;
        self.control.record(Finding { property, fingerprint, depth, run: Some(self.run.clone()) });
    }

    /// Make a frame of the last state of the run: find what may be tried, and what races with earlier steps.
    fn enter(&mut self, sleep: Vec<TransitionId>) -> Result<()> {
        let depth = self.run.len() - 1;
        let top = self.states.len() - self.view.width;
        self.visits += 1;
        self.control.depth.fetch_max(depth as u32, Relaxed);
        if self.visits == PULSE {
            self.publish();
        }
        if depth as u32 >= self.control.options.max_depth {
            self.control.cut(Limit::MaxDepth);
            self.leave();
            return Ok(());
        }
        let here = self.run[depth];
        let mut successors = Vec::new();
        let summary =
            self.view.for_each_successor(&self.states[top..], here, ALL, |there, via| successors.push((there, via)))?;
        self.counted += summary.transitions;
        if summary.fails {
            self.record(self.control.assertion(), 1);
        }
        if !summary.moves {
            self.terminal += 1;
            self.control.note_terminal(here);
            self.judge(Changes::EVERYWHERE, true)?;
        }
        self.races()?;

        let mut frame = Frame { sleep, choices: Vec::new(), next: 0, parts: vec![Part::Out; self.processes] };
        let mut first = None;
        for (fingerprint, via) in successors {
            let process = via.process as usize;
            let transition =
                self.transitions.of_node(&mut self.view, self.states[top + process])?.ids[via.index as usize];
            if !frame.sleep.contains(&transition) {
                frame.parts[process] = Part::Waiting;
                frame.choices.push(Choice { process, via, fingerprint, transition });
                if first.is_none() && (self.transitions[transition].kind == Kind::Step || !self.ends) {
                    first = Some(process);
                }
            }
        }
        match first {
            Some(process) => frame.parts[process] = Part::Chosen,
            None => choose_all(&mut frame.parts),
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Let what is possible in the last state come before the steps that it interferes with.
    fn races(&mut self) -> Result<()> {
        let Some(last) = self.steps.len().checked_sub(1) else {
            return Ok(());
        };
        let width = self.view.width;
        let (before, top) = (last * width, (last + 1) * width);
        let step = self.steps[last];
        let mover = self.transitions[step.transition].process;
        for process in 0..self.processes {
            let possible = self.transitions.of_node(&mut self.view, self.states[top + process])?;
            if process == mover {
                for &transition in &possible.ids {
                    self.races_of(process, transition)?;
                }
                continue;
            }
            // What was possible before the last step was compared with all steps but that one.
            let known = self.transitions.of_node(&mut self.view, self.states[before + process])?;
            let against = self.transitions.of_node(&mut self.view, step.node)?;
            if known.all.interferes(process, &against.all, mover) {
                let transitions = known.ids.iter().map(|&transition| self.transitions[transition].dependence);
                if transitions.into_iter().any(|dependence| dependence.interferes(process, &against.all, mover)) {
                    self.reverse(last, process, None);
                }
            }
            if !Rc::ptr_eq(&possible, &known) {
                for &transition in possible.ids.iter().filter(|transition| !known.ids.contains(transition)) {
                    self.races_of(process, transition)?;
                }
            }
        }
        Ok(())
    }

    /// The races of one possible transition with all steps.
    fn races_of(&mut self, process: usize, transition: TransitionId) -> Result<()> {
        let past = self.past(process, transition);
        let dependence = self.transitions[transition].dependence;
        for index in (0..self.steps.len()).rev() {
            let Step { transition: other, node } = self.steps[index];
            let other = self.transitions[other].process;
            if other != process
                && past[other] <= index as u32
                && dependence.interferes(process, &self.transitions.of_node(&mut self.view, node)?.all, other)
            {
                self.reverse(index, process, Some(&past));
            }
        }
        Ok(())
    }

    /// Choose, at the state before a step, a process that leads to a transition of `process` with this past: of those that
    /// are in it.
    fn reverse(&mut self, index: usize, process: usize, past: Option<&[u32]>) {
        let parts = &mut self.frames[index].parts;
        let leads = |r: usize| r == process || past.is_some_and(|past| past[r] > index as u32 + 1);
        let mut waiting = None;
        for (r, &part) in parts.iter().enumerate().filter(|&(r, _)| leads(r)) {
            match part {
                Part::Chosen | Part::Done => return,
                Part::Waiting if waiting.is_none() || r == process => waiting = Some(r),
                _ => {}
            }
        }
        match waiting {
            Some(r) => parts[r] = Part::Chosen,
            None => choose_all(parts),
        }
    }

    /// What happens before a transition of a process after the current run, conflicts apart.
    fn past(&self, process: usize, transition: TransitionId) -> Vec<u32> {
        let mut past = vec![0; self.processes];
        let own = |step: &Step| self.transitions[step.transition].process == process;
        if let Some(last) = self.steps.iter().rposition(own) {
            self.join(&mut past, last);
        }
        for &message in &self.transitions[transition].consumed {
            if let Some(sent) = self.origin(process, message) {
                self.join(&mut past, sent);
            }
        }
        past
    }

    fn join(&self, clock: &mut [u32], step: usize) {
        let other = &self.clocks[step * self.processes..(step + 1) * self.processes];
        for (mine, &theirs) in clock.iter_mut().zip(other) {
            *mine = (*mine).max(theirs);
        }
    }

    /// The step that a message must have been sent by to be taken next by a process. Equal messages are interchangeable, so
    /// that the first taken is the first sent; and copies that the network made count first, as they need no sender.
    fn origin(&self, process: usize, message: MessageId) -> Option<usize> {
        let model = &self.view.tables.model;
        let sender = model.sender(message);
        if usize::from(sender) == process {
            return None;
        }
        let fifo = self.network == Network::Fifo;
        let alike = |m: MessageId| if fifo { model.sender(m) == sender } else { m == message };
        let tables = self.view.tables;
        let pending = tables.inbox(tables.node(self.initial[process]).inbox);
        let mut queue: VecDeque<(MessageId, Option<usize>)> =
            pending.iter().filter(|&&m| alike(m)).map(|&m| (m, None)).collect();
        for (index, step) in self.steps.iter().enumerate() {
            let transition = &self.transitions[step.transition];
            if transition.process == process {
                for &taken in transition.consumed.iter().filter(|&&m| alike(m)) {
                    if transition.kind == Kind::Duplicate {
                        queue.push_front((taken, None));
                    } else if self.network != Network::Set || transition.kind == Kind::Lose {
                        let at = queue.iter().position(|&(m, _)| m == taken);
                        queue.remove(at.expect("a message that is taken is pending"));
                    }
                }
            } else if transition.process == usize::from(sender) {
                for &(to, sent) in &transition.sends {
                    let absorbed = self.network == Network::Set && !queue.is_empty();
                    if usize::from(to) == process && alike(sent) && !absorbed {
                        queue.push_back((sent, Some(index)));
                    }
                }
            }
        }
        queue.front().and_then(|&(_, origin)| origin)
    }

    fn publish(&mut self) {
        let control = self.control;
        control.transitions.fetch_add(std::mem::take(&mut self.counted), Relaxed);
        control.terminal.fetch_add(std::mem::take(&mut self.terminal), Relaxed);
        control.frontier.store(self.frames.len(), Relaxed);
        control.visits.fetch_add(std::mem::take(&mut self.visits), Relaxed);
        if control.visits.load(Relaxed) > control.options.max_states as u64 {
            control.stop_at(Limit::MaxStates);
        }
    }
}

fn choose_all(parts: &mut [Part]) {
    for part in parts.iter_mut().filter(|part| **part == Part::Waiting) {
        *part = Part::Chosen;
    }
}

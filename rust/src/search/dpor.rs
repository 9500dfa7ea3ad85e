//! Dynamic partial-order reduction for the search without a visited set. Of the runs that differ only in the order of
//! independent transitions, it searches few: backtrack sets (Flanagan and Godefroid 2005), and sleep sets.
//!
//! **Terms.** Two transitions of different processes *conflict* if they do not commute (`por::footprint`), or if both
//! are visible to the same property. A transition u of process q *interferes* with process p at a state if u sends to
//! p, or if u conflicts with a transition of p's node there, even a blocked one (by a budget, slots or full channels). A step of
//! the run *happens before* a later step by program order, by conflict, or because the later step consumes a message
//! that the first one sent. (Of equal messages of one sender, the k-th that is consumed is the k-th that was sent.) A
//! step also happens before a transition u of q that was not executed, if it is the last step of q or the step that
//! sent a message that u consumes, or if it happens before one of these. Conflicts of u do not count here, because
//! these are the pairs that can be reversed.
//!
//! **Search.** At a state, some processes are chosen. All transitions of these processes that are not asleep are tried.
//! In each state, the search considers each transition u of a process q that is possible there (or was, before
//! something blocked it), and each step e of the run by another process p. If u interferes with p at the state before
//! e, and e does not happen before u, then u could come first. So at the state before e, the search chooses q, or
//! another process that has a step between that state and u. If none of these can move there, it chooses all processes
//! that can. A transition that was tried sleeps in the subtrees of the transitions tried after it, until a transition
//! that conflicts with it, or one of its own process, wakes it.
//!
//! **Claim.** Assume that no run was cut off. Let w be a run from a state s with sleep set Z, such that no member of Z
//! can be moved to the front of w by swapping independent neighbours. Then the search below s follows a run that begins
//! with w, up to such swaps. *Proof*, by induction over the finite tree, then over the length of w. Let C be the
//! processes chosen at s that have a transition that is awake. (1) If w has a transition of C before any interference
//! with C, the first such transition can be moved to the front. So it is awake and was tried. Continue below the one of
//! these that was tried first. (2) If w has neither, any tried t commutes with all of w. Continue with w below the
//! first t. (3) Otherwise let u be the first transition in w that interferes with some p in C, let v be the part of w
//! before u, and let t be a tried transition of p. v is possible after t. By induction, the search below t follows v,
//! up to a state where u is possible except for budgets and slots. (Only a process itself fills the channels that it sends
//! to, so t leaves the room that u needs.) Neither t nor any transition that the search added
//! on the way happens before u or a part of v: u and v were possible without them, and they interfere with none of it.
//! So the search finds that u interferes. Then it chose at s a process of v u, or all processes that are awake, among
//! them the process of the first transition of w. But in case (3), none of these processes is in C: a contradiction.
//!
//! **Verdicts.** Visible transitions conflict, so their order is the order in w. So the search meets every value of
//! what an `always` or `reachable` property reads. The reads are known only during the search. If a property has read
//! more, the search starts again. `final` properties need the terminal states themselves, without added transitions.
//! Only case (2) adds transitions. It cannot occur on the way to a terminal state if C has a process with a step,
//! because this step would still be possible at the end of w. So such a process is chosen first. If none is awake, all
//! processes are chosen. A step that leads back to its own state makes an infinite run, which is cut off. A failing
//! step is the last step of its w and is never taken: the search must meet its state.

use crate::por::stubborn::ALL;
use crate::search::control::{Control, Finding, Limit};
use crate::search::dpor_transitions::{DporTransitions, TransitionId};
use crate::system::model::{MessageId, Network, PropertyKind, Result};
use crate::system::reads::{Changes, evaluate_properties};
use crate::system::successors::{TransitionRef, View};
use crate::system::tables::{Kind, NodeId, Tables};
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
    /// What is sent to a channel with so many messages vanishes. (It is a queue.)
    most: Option<usize>,
    /// The initial states with their fingerprints, and the one that the run begins with.
    initials: Vec<(Vec<u32>, u64)>,
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
    entered: u64,
}

/// Search with one worker, whatever the options say: what to try at a state depends on what was met below it.
pub fn search(tables: &Tables, control: &Control) -> Result<()> {
    let mut search = Search::new(tables, control)?;
    for (state, fingerprint) in &search.initials {
        let fingerprint = *fingerprint;
        evaluate_properties(&mut search.view, control, state, Changes::EVERYWHERE, false, |property| {
            control.record(Finding { property, fingerprint, depth: 0, run: Some(vec![fingerprint]) });
        })?;
    }
    let mut complete = false;
    while !complete && !control.stopped() {
        complete = search.pass()?;
        search.publish();
    }
    Ok(())
}

impl<'t, 'c> Search<'t, 'c> {
    fn new(tables: &'t Tables, control: &'c Control) -> Result<Self> {
        let shape = tables.model.shape();
        let mut view = View::new(tables);
        let states = tables.initial()?;
        Ok(Search {
            initials: states.iter().map(|one| (one.state.clone(), view.fingerprint(&one.state))).collect(),
            view,
            control,
            wakes: !control.leaves_out("dpor-wakes"),
            ends: !control.leaves_out("dpor-ends"),
            processes: shape.movers(),
            network: shape.network,
            most: shape.capacity.filter(|capacity| capacity.drops).map(|capacity| capacity.most),
            initial: Vec::new(),
            seen: Vec::new(),
            transitions: DporTransitions::new(shape, control, Vec::new()),
            frames: Vec::new(),
            states: Vec::new(),
            run: Vec::new(),
            steps: Vec::new(),
            clocks: Vec::new(),
            counted: 0,
            terminal: 0,
            entered: 0,
        })
    }

    /// Search everything from the initial states; false if a property has read more than is held to be visible.
    fn pass(&mut self) -> Result<bool> {
        self.seen = self.reads();
        self.transitions = DporTransitions::new(self.view.tables.model.shape(), self.control, self.seen.clone());
        for at in 0..self.initials.len() {
            let (state, fingerprint) = self.initials[at].clone();
            self.initial = state;
            if !self.search_from(fingerprint)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Search everything from the initial state that the run begins with.
    fn search_from(&mut self, fingerprint: u64) -> Result<bool> {
        self.frames.clear();
        self.steps.clear();
        self.clocks.clear();
        self.states.clone_from(&self.initial);
        self.run = vec![fingerprint];
        if self.control.visit() {
            self.enter(Vec::new())?;
        }
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
        if !self.control.visit() {
            return Ok(());
        }
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

        let node = self.view.situated(&self.states[depth * width..][..width], process)?;
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

    /// Report a finding in the last state of the run, or `beyond` steps after it.
    fn record(&self, property: usize, beyond: u32) {
        let fingerprint = *self.run.last().expect("a run has a last state");
        let depth = self.run.len() as u32 - 1 + beyond;
        self.control.record(Finding { property, fingerprint, depth, run: Some(self.run.clone()) });
    }

    /// Make a frame of the last state of the run: find what may be tried, and what races with earlier steps.
    fn enter(&mut self, sleep: Vec<TransitionId>) -> Result<()> {
        let depth = self.run.len() - 1;
        let top = self.states.len() - self.view.width;
        self.control.depth.fetch_max(depth as u32, Relaxed);
        self.entered += 1;
        if self.entered.is_multiple_of(PULSE) {
            self.publish();
        }
        let here = self.run[depth];
        let mut successors = Vec::new();
        let summary =
            self.view.for_each_successor(&self.states[top..], here, ALL, |there, via| successors.push((there, via)))?;
        let leads_on = !successors.is_empty() || summary.fails || summary.raises;
        if leads_on && depth as u32 >= self.control.options.max_depth {
            self.control.cut(Limit::MaxDepth);
            self.leave();
            return Ok(());
        }
        self.counted += summary.transitions;
        for property in self.control.failed(summary) {
            self.record(property, 1);
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
            let node = self.view.situated(&self.states[top..], process)?;
            let transition = self.transitions.of_node(&mut self.view, node)?.ids[via.index as usize];
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
            let here = self.view.situated(&self.states[top..][..width], process)?;
            let possible = self.transitions.of_node(&mut self.view, here)?;
            if process == mover {
                for &transition in &possible.ids {
                    self.races_of(process, transition)?;
                }
                continue;
            }
            // What was possible before the last step was compared with all steps but that one.
            let there = self.view.situated(&self.states[before..][..width], process)?;
            let known = self.transitions.of_node(&mut self.view, there)?;
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
        let consumed = &self.transitions[transition].consumed;
        for (number, &message) in consumed.iter().enumerate() {
            if let Some(sent) = self.origin(process, message, &consumed[..number]) {
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
    /// that the first taken is the first sent; and copies that the network made count first, as they need no sender. `with`:
    /// what the transition takes before it.
    fn origin(&self, process: usize, message: MessageId, with: &[MessageId]) -> Option<usize> {
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
                    let full = self.most.is_some_and(|most| queue.len() >= most);
                    let absorbed = full || self.network == Network::Set && !queue.is_empty();
                    if usize::from(to) == process && alike(sent) && !absorbed {
                        queue.push_back((sent, Some(index)));
                    }
                }
            }
        }
        queue.get(with.iter().filter(|&&m| alike(m)).count()).and_then(|&(_, origin)| origin)
    }

    fn publish(&mut self) {
        let control = self.control;
        control.transitions.fetch_add(std::mem::take(&mut self.counted), Relaxed);
        control.terminal.fetch_add(std::mem::take(&mut self.terminal), Relaxed);
        control.frontier.store(self.frames.len(), Relaxed);
    }
}

fn choose_all(parts: &mut [Part]) {
    for part in parts.iter_mut().filter(|part| **part == Part::Waiting) {
        *part = Part::Chosen;
    }
}

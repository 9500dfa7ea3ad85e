//! Dynamic partial-order reduction for the search without a visited set: of the runs that differ only in the order of
//! independent transitions, few are searched (backtrack sets after Flanagan and Godefroid, and sleep sets).
//!
//! **Terms.** Two transitions of different processes *conflict* if both announce to monitors, cost the same budget, or are
//! visible to the same property; if one spawns and the other spawns, expects a slot to be free or taken, or belongs to the
//! spawned process; or if one loses a message of a set or a queue that the other sends to. All others commute: a send only
//! adds to an inbox, and what was enabled stays enabled. A transition u of q *interferes* with p at a state if it sends to
//! p, or conflicts with a transition that p's node has there, be it blocked (by a budget, by slots) or not.
//! An event of the run *happens before* u by program order, by conflict, or because u consumes what it sent: of equal
//! messages of one sender, the k-th taken is the k-th sent.
//!
//! **Search.** At a state some processes are chosen, and of these all transitions that are not asleep are tried. In each
//! state, for each u of a q that is (or was, before something blocked it) possible there and each event e of the run, of
//! another process p: if u interferes with p at the state before e, and e does not happen before u, then u might come
//! first. So at that state we choose q, or another process that has an event on the way from there to u; if none of these
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
//! happens before u or a part of v, because v u interferes with none of it. So u is found to interfere, and a process
//! of v u was chosen at s, or all were that are awake: also that of the first of w. But (3) means that none is in C.
//!
//! **Verdicts.** Visible transitions conflict, so that their order is that of w: every value of what an `always` or
//! `reachable` property reads is met. What it reads shows only while searching; when it has read more, the search begins
//! again. `final` properties need the terminal states themselves, without additions. Case (2) is the only one that adds;
//! it cannot occur on the way to a terminal state if C has a process with a step, since that would still be possible at the
//! end of w. So such a process is chosen first; if there is none that is awake, all are chosen. A step that leads
//! back to where it began makes a run without end, which is cut off. A failing step is the last of its w, and is never
//! taken: its state is what must be met.

use crate::control::{Control, Finding, Limit};
use crate::lens::{Lens, Touched, Way, bit, look};
use crate::model::{LocalId, MessageId, Network, PropertyKind, Result, monitor_bit};
use crate::tables::{Details, Kind, NO_BUDGET, NodeId, Tables, Transition};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

/// How often the counters are published.
const PULSE: u64 = 256;

type ActId = u32;

/// What matters about a transition's order with those of other processes. Sets of processes, budgets and properties are 64
/// bits; what shares a bit is told apart less well, never wrongly.
#[derive(Clone, Copy, Debug, Default)]
struct Traits {
    sends: u64,
    births: u64,
    budgets: u64,
    /// Properties that it may change the value of.
    visible: u64,
    announces: bool,
    /// It needs slots that are free or taken.
    expects: bool,
    /// It loses a message where the order of losses and sends matters.
    loses: bool,
}

impl Traits {
    fn join(&mut self, other: &Traits) {
        self.sends |= other.sends;
        self.births |= other.births;
        self.budgets |= other.budgets;
        self.visible |= other.visible;
        self.announces |= other.announces;
        self.expects |= other.expects;
        self.loses |= other.loses;
    }

    /// Whether a transition like this of one process does not commute with one like the other of another.
    fn conflict(&self, mine: usize, other: &Traits, theirs: usize) -> bool {
        let spawn = |a: &Traits, b: &Traits| a.births != 0 && (b.births != 0 || b.expects);
        let lose = |a: &Traits, owner: usize, b: &Traits| a.loses && b.sends & bit(owner) != 0;
        self.announces && other.announces
            || self.budgets & other.budgets != 0
            || self.visible & other.visible != 0
            || spawn(self, other)
            || spawn(other, self)
            || self.births & bit(theirs) != 0
            || other.births & bit(mine) != 0
            || lose(self, mine, other)
            || lose(other, theirs, self)
    }

    /// Whether a transition like this of one process interferes with another that may do all of `other`.
    fn interferes(&self, mine: usize, other: &Traits, theirs: usize) -> bool {
        self.sends & bit(theirs) != 0 || self.conflict(mine, other, theirs)
    }
}

/// A transition apart from the inbox that it was found in: messages that arrive leave it what it is.
struct Act {
    process: usize,
    kind: Kind,
    traits: Traits,
    consumed: Vec<MessageId>,
    sends: Vec<(u16, MessageId)>,
}

/// Process, local state, kind, handler, consumed messages, outcome; and a number for those that are equal in all this
/// (losses of equal messages at different places of a queue).
type ActKey = (usize, LocalId, u8, u16, Vec<MessageId>, usize, usize);

/// The transitions of a node, in the order of its expansion, and all that they do together.
struct Menu {
    acts: Vec<ActId>,
    all: Traits,
}

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
    way: Way,
    fingerprint: u64,
    act: ActId,
}

/// A state of the current run.
struct Frame {
    /// Transitions that are not to be tried: asleep from above, or tried already.
    sleep: Vec<ActId>,
    /// What may be tried, process by process, and the next of it.
    choices: Vec<Choice>,
    next: usize,
    parts: Vec<Part>,
}

/// A transition of the current run.
#[derive(Clone, Copy)]
struct Event {
    act: ActId,
    /// The node of its process before it.
    node: NodeId,
}

/// Which rules are in force: tests leave one out to show that it is needed.
struct Rules {
    visibility: bool,
    sends: bool,
    monitors: bool,
    budgets: bool,
    spawns: bool,
    losses: bool,
    ends: bool,
}

struct Search<'t, 'c> {
    lens: Lens<'t>,
    control: &'c Control,
    rules: Rules,
    processes: usize,
    network: Network,
    monitors: u64,
    initial: Vec<u32>,
    /// Per property, the fields and inboxes that visible transitions change, in this pass.
    seen: Vec<(u64, u64)>,
    acts: Vec<Act>,
    act_ids: FxHashMap<ActKey, ActId>,
    menus: FxHashMap<NodeId, Rc<Menu>>,
    frames: Vec<Frame>,
    /// States of the frames, end to end.
    states: Vec<u32>,
    /// Their fingerprints.
    run: Vec<u64>,
    /// `events[i]` leads from frame i to frame i + 1.
    events: Vec<Event>,
    /// Per event and process, one past the last event of the process that happens before the event, or is it.
    clocks: Vec<u32>,
    transitions: u64,
    terminal: u64,
    visits: u64,
}

/// Search with one worker, whatever the options say: what to try at a state depends on what was met below it.
pub fn search(tables: &Tables, control: &Control) -> Result<()> {
    let mut search = Search::new(tables, control)?;
    let fingerprint = search.lens.fingerprint(&search.initial);
    look(&mut search.lens, control, &search.initial, Touched::EVERYWHERE, false, |property| {
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
        let rule = |name: &str| !control.forgets(name);
        Ok(Search {
            lens: Lens::new(tables),
            control,
            rules: Rules {
                visibility: rule("dpor-visibility"),
                sends: rule("dpor-sends"),
                monitors: rule("dpor-monitors"),
                budgets: rule("dpor-budgets"),
                spawns: rule("dpor-spawns"),
                losses: rule("dpor-losses"),
                ends: rule("dpor-ends"),
            },
            processes: shape.processes,
            network: shape.network,
            monitors: (0..shape.monitors).map(monitor_bit).fold(0, |all, one| all | one),
            initial: tables.initial()?,
            seen: Vec::new(),
            acts: Vec::new(),
            act_ids: FxHashMap::default(),
            menus: FxHashMap::default(),
            frames: Vec::new(),
            states: Vec::new(),
            run: Vec::new(),
            events: Vec::new(),
            clocks: Vec::new(),
            transitions: 0,
            terminal: 0,
            visits: 0,
        })
    }

    /// Search everything from the initial state; false if a property has read more than is held to be visible.
    fn pass(&mut self, fingerprint: u64) -> Result<bool> {
        self.seen = self.reads();
        self.acts.clear();
        self.act_ids.clear();
        self.menus.clear();
        self.frames.clear();
        self.events.clear();
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
        let wanted = |property: usize, kind| kind != PropertyKind::Final && self.control.is_open(property);
        let kinds = self.control.kinds.iter().enumerate();
        kinds.map(|(p, &kind)| if wanted(p, kind) { self.control.reads.of(p) } else { (0, 0) }).collect()
    }

    fn sees_more(&self) -> bool {
        let kinds = self.control.kinds.iter().zip(&self.seen).enumerate();
        kinds
            .filter(|(_, (kind, _))| **kind != PropertyKind::Final)
            .any(|(property, (_, seen))| self.control.reads.of(property) != *seen && self.control.is_open(property))
    }

    /// The next transition to try at the last state of the run.
    fn choose(&mut self) -> Option<usize> {
        let frame = self.frames.last_mut().expect("there is a frame");
        let tried = frame.next.checked_sub(1).map(|last| frame.choices[last].process);
        if let Some(process) = tried {
            if frame.choices.get(frame.next).is_none_or(|c| c.process != process) {
                frame.parts[process] = Part::Done;
                frame.next = frame.choices.iter().position(|c| frame.parts[c.process] == Part::Chosen)?;
            }
        } else {
            frame.next = frame.choices.iter().position(|c| frame.parts[c.process] == Part::Chosen)?;
        }
        frame.next += 1;
        Some(frame.next - 1)
    }

    /// Execute a choice of the last frame.
    fn take(&mut self, choice: usize) -> Result<()> {
        let width = self.lens.width;
        let depth = self.frames.len() - 1;
        let frame = &mut self.frames[depth];
        let Choice { process, way, fingerprint, act } = frame.choices[choice];
        let (acts, taken) = (&self.acts, &self.acts[act as usize]);
        let stays = |z: &&ActId| {
            let other = &acts[**z as usize];
            other.process != process && !other.traits.conflict(other.process, &taken.traits, process)
        };
        let sleep = frame.sleep.iter().filter(stays).copied().collect();
        frame.sleep.push(act);

        let node = self.states[depth * width + process];
        let mut clock = self.past(process, act);
        for index in 0..self.events.len() {
            let other = &self.acts[self.events[index].act as usize];
            if other.process != process
                && other.traits.conflict(other.process, &self.acts[act as usize].traits, process)
            {
                self.join(&mut clock, index);
            }
        }
        clock[process] = depth as u32 + 1;
        self.clocks.extend_from_slice(&clock);
        self.events.push(Event { act, node });
        self.run.push(fingerprint);
        self.states.extend_from_within(depth * width..);
        let top = self.states.len() - width;
        let touched = self.lens.take(&mut self.states[top..], way)?;
        self.judge(touched, false)?;
        self.enter(sleep)
    }

    /// Take the last state off the run, with the event that led to it.
    fn leave(&mut self) {
        self.run.pop();
        self.states.truncate(self.run.len() * self.lens.width);
        self.events.pop();
        self.clocks.truncate(self.events.len() * self.processes);
    }

    fn judge(&mut self, touched: Touched, terminal: bool) -> Result<()> {
        let top = self.states.len() - self.lens.width;
        let mut found = Vec::new();
        look(&mut self.lens, self.control, &self.states[top..], touched, terminal, |property| found.push(property))?;
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

    /// Make a frame of the last state of the run: find what may be tried, and what races with earlier events.
    fn enter(&mut self, sleep: Vec<ActId>) -> Result<()> {
        let depth = self.run.len() - 1;
        let top = self.states.len() - self.lens.width;
        self.visits += 1;
        self.control.depth.fetch_max(depth as u32, Relaxed);
        if self.visits % PULSE == 0 {
            self.publish();
        }
        if depth as u32 >= self.control.options.max_depth {
            self.control.cut(Limit::MaxDepth);
            self.leave();
            return Ok(());
        }
        let here = self.run[depth];
        let mut successors = Vec::new();
        let outlook = self.lens.outlook(&self.states[top..], here, |there, way| successors.push((there, way)))?;
        self.transitions += outlook.transitions;
        if outlook.fails {
            self.record(self.control.assertion(), 1);
        }
        if !outlook.moves {
            self.terminal += 1;
            self.control.note_terminal(here);
            self.judge(Touched::EVERYWHERE, true)?;
        }
        self.races()?;

        let mut frame = Frame { sleep, choices: Vec::new(), next: 0, parts: vec![Part::Out; self.processes] };
        let mut first = None;
        for (fingerprint, way) in successors {
            let process = way.process as usize;
            let act = self.menu(self.states[top + process])?.acts[way.transition as usize];
            if !frame.sleep.contains(&act) {
                frame.parts[process] = Part::Waiting;
                frame.choices.push(Choice { process, way, fingerprint, act });
                if first.is_none() && (self.acts[act as usize].kind == Kind::Step || !self.rules.ends) {
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

    /// Let what is possible in the last state come before the events that it interferes with.
    fn races(&mut self) -> Result<()> {
        let Some(last) = self.events.len().checked_sub(1) else {
            return Ok(());
        };
        let width = self.lens.width;
        let (before, top) = (last * width, (last + 1) * width);
        let event = self.events[last];
        let mover = self.acts[event.act as usize].process;
        for process in 0..self.processes {
            let menu = self.menu(self.states[top + process])?;
            if process == mover {
                for &act in &menu.acts {
                    self.races_of(process, act)?;
                }
                continue;
            }
            // What was possible before the last event was compared with all events but that one.
            let known = self.menu(self.states[before + process])?;
            let against = self.menu(event.node)?;
            if known.all.interferes(process, &against.all, mover) {
                let acts = known.acts.iter().map(|&act| self.acts[act as usize].traits);
                if acts.into_iter().any(|traits| traits.interferes(process, &against.all, mover)) {
                    self.reverse(last, process, None);
                }
            }
            if !Rc::ptr_eq(&menu, &known) {
                for &act in menu.acts.iter().filter(|act| !known.acts.contains(act)) {
                    self.races_of(process, act)?;
                }
            }
        }
        Ok(())
    }

    /// The races of one possible transition with all events.
    fn races_of(&mut self, process: usize, act: ActId) -> Result<()> {
        let past = self.past(process, act);
        let traits = self.acts[act as usize].traits;
        for index in (0..self.events.len()).rev() {
            let Event { act: other, node } = self.events[index];
            let other = self.acts[other as usize].process;
            if other != process
                && past[other] <= index as u32
                && traits.interferes(process, &self.menu(node)?.all, other)
            {
                self.reverse(index, process, Some(&past));
            }
        }
        Ok(())
    }

    /// Choose, at the state before an event, a process that leads to a transition of `process` with this past: of those that
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
    fn past(&self, process: usize, act: ActId) -> Vec<u32> {
        let mut past = vec![0; self.processes];
        let own = |event: &Event| self.acts[event.act as usize].process == process;
        if let Some(last) = self.events.iter().rposition(own) {
            self.join(&mut past, last);
        }
        for &message in &self.acts[act as usize].consumed {
            if let Some(sent) = self.origin(process, message) {
                self.join(&mut past, sent);
            }
        }
        past
    }

    fn join(&self, clock: &mut [u32], event: usize) {
        let other = &self.clocks[event * self.processes..(event + 1) * self.processes];
        for (mine, &theirs) in clock.iter_mut().zip(other) {
            *mine = (*mine).max(theirs);
        }
    }

    /// The event that a message must have been sent by to be taken next by a process. Equal messages are interchangeable, so
    /// that the first taken is the first sent; and copies that the network made count first, as they need no sender.
    fn origin(&self, process: usize, message: MessageId) -> Option<usize> {
        let model = &self.lens.tables.model;
        let sender = model.sender(message);
        if usize::from(sender) == process {
            return None;
        }
        let fifo = self.network == Network::Fifo;
        let alike = |m: MessageId| if fifo { model.sender(m) == sender } else { m == message };
        let tables = self.lens.tables;
        let pending = tables.inbox(tables.node(self.initial[process]).inbox);
        let mut queue: VecDeque<(MessageId, Option<usize>)> =
            pending.iter().filter(|&&m| alike(m)).map(|&m| (m, None)).collect();
        for (index, event) in self.events.iter().enumerate() {
            let act = &self.acts[event.act as usize];
            if act.process == process {
                for &taken in act.consumed.iter().filter(|&&m| alike(m)) {
                    if act.kind == Kind::Duplicate {
                        queue.push_front((taken, None));
                    } else if self.network != Network::Set || act.kind == Kind::Lose {
                        let at = queue.iter().position(|&(m, _)| m == taken);
                        queue.remove(at.expect("a message that is taken is pending"));
                    }
                }
            } else if act.process == usize::from(sender) {
                for &(to, sent) in &act.sends {
                    let absorbed = self.network == Network::Set && !queue.is_empty();
                    if usize::from(to) == process && alike(sent) && !absorbed {
                        queue.push_back((sent, Some(index)));
                    }
                }
            }
        }
        queue.front().and_then(|&(_, origin)| origin)
    }

    /// The transitions of a node.
    fn menu(&mut self, node: NodeId) -> Result<Rc<Menu>> {
        if let Some(menu) = self.menus.get(&node) {
            return Ok(menu.clone());
        }
        let expansion = self.lens.expansion(node)?;
        let whose = self.lens.tables.node(node);
        let (mut acts, mut all) = (Vec::new(), Traits::default());
        for (transition, details) in expansion.transitions.iter().zip(&expansion.details) {
            let act = self.act(whose.process as usize, whose.local, transition, details, &acts);
            all.join(&self.acts[act as usize].traits);
            acts.push(act);
        }
        let menu = Rc::new(Menu { acts, all });
        self.menus.insert(node, menu.clone());
        Ok(menu)
    }

    fn act(
        &mut self,
        process: usize,
        local: LocalId,
        transition: &Transition,
        details: &Details,
        siblings: &[ActId],
    ) -> ActId {
        let Details { kind, handler, consumed, outcome } = details;
        let choice = outcome.as_ref().map_or(0, |(_, index)| *index);
        let mut key = (process, local, *kind as u8, *handler, consumed.clone(), choice, 0);
        while let Some(&known) = self.act_ids.get(&key) {
            if !siblings.contains(&known) {
                return known;
            }
            key.6 += 1;
        }
        let id = self.acts.len() as ActId;
        self.act_ids.insert(key, id);
        self.acts.push(Act {
            process,
            kind: *kind,
            traits: self.traits(process, transition, details),
            consumed: consumed.clone(),
            sends: details.sends().to_vec(),
        });
        id
    }

    fn traits(&self, process: usize, transition: &Transition, details: &Details) -> Traits {
        let rules = &self.rules;
        let receivers = details.sends().iter().fold(0, |all, &(to, _)| all | bit(to as usize));
        let births = details.spawns().iter().fold(0, |all, &(slot, _)| all | bit(slot as usize));
        let sends = receivers & !if self.processes <= 64 { bit(process) } else { 0 };
        let announces = self.monitors != 0 && !details.events().is_empty();
        let keeps = details.kind == Kind::Recover
            || details.kind == Kind::Step && (details.consumed.is_empty() || self.network == Network::Set);
        let changed = receivers | if keeps { 0 } else { bit(process) };
        let altered = match (births != 0, announces) {
            (true, _) => u64::MAX,
            (false, true) => transition.altered | self.monitors,
            (false, false) => transition.altered,
        };
        let visible = self.seen.iter().enumerate().fold(0, |all, (property, &(fields, inboxes))| {
            let touches =
                (fields | inboxes != 0) && (altered == u64::MAX || altered & fields != 0) || changed & inboxes != 0;
            if touches { all | bit(property) } else { all }
        });
        Traits {
            sends: if rules.sends { sends } else { 0 },
            births: if rules.spawns { births } else { 0 },
            budgets: if rules.budgets && transition.budget != NO_BUDGET { bit(transition.budget as usize) } else { 0 },
            visible: if rules.visibility { visible } else { 0 },
            announces: rules.monitors && announces,
            expects: rules.spawns && !details.expected().is_empty(),
            loses: rules.losses && details.kind == Kind::Lose && self.network != Network::Bag,
        }
    }

    fn publish(&mut self) {
        let control = self.control;
        control.transitions.fetch_add(std::mem::take(&mut self.transitions), Relaxed);
        control.terminal.fetch_add(std::mem::take(&mut self.terminal), Relaxed);
        control.frontier.store(self.frames.len(), Relaxed);
        let visits = control.visits.fetch_add(std::mem::take(&mut self.visits), Relaxed);
        if visits > control.options.max_states as u64 {
            control.stop_at(Limit::MaxStates);
        }
    }
}

fn choose_all(parts: &mut [Part]) {
    for part in parts.iter_mut().filter(|part| **part == Part::Waiting) {
        *part = Part::Chosen;
    }
}

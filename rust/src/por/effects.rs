//! The effects of the transitions met so far: static partial-order reduction is computed from them.
//!
//! All effects are read off tabulated transitions, none is guessed. A search that uses them adds new ones while it runs. If
//! it ends and has added none, the effects were complete for all its transitions, and the reduction was sound. Otherwise it
//! runs again. `docs/internals/reductions/por.md` has the proof.

use crate::system::model::{Armed, CellSet, LocalId, MessageId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// What kind of transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tag {
    Step(u16),
    Crash(u16),
    Recover,
    Lose,
    Duplicate,
}

/// Transitions as finely as they are ever told apart: by process, handler, and the senders of what they consume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    pub process: u16,
    pub tag: Tag,
    pub senders: Vec<u16>,
}

/// The effects of the transitions of one label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Handlers (of a process) that take a message they sent.
    pub feeds: BTreeSet<(u16, u16)>,
    /// Processes that they sent anything to.
    pub reaches: BTreeSet<u16>,
    /// Handlers that could not run before, whatever was pending, and may now.
    pub arms: BTreeSet<(u16, u16)>,
    /// Fields that they changed, as bits.
    pub altered: u64,
    pub announces: bool,
    /// Slots that they filled, and cells that they wrote.
    pub spawns: BTreeSet<u16>,
    /// Slots that they expected to be free or taken. (Of a class also the cells that it reads.)
    pub expects: BTreeSet<u16>,
    /// They sent to a process that had sent nothing of what they consumed.
    pub initiates: bool,
}

impl Effects {
    /// Whether there is more than before.
    pub fn join(&mut self, other: &Effects) -> bool {
        fn add<T: Ord + Copy>(to: &mut BTreeSet<T>, from: &BTreeSet<T>) -> bool {
            from.iter().fold(false, |grown, &one| to.insert(one) | grown)
        }
        let before = (self.altered, self.announces, self.initiates);
        self.altered |= other.altered;
        self.announces |= other.announces;
        self.initiates |= other.initiates;
        add(&mut self.feeds, &other.feeds)
            | add(&mut self.reaches, &other.reaches)
            | add(&mut self.arms, &other.arms)
            | add(&mut self.spawns, &other.spawns)
            | add(&mut self.expects, &other.expects)
            | (before != (self.altered, self.announces, self.initiates))
    }
}

/// All that is known about effects, by label.
#[derive(Clone, Debug, Default)]
pub struct KnownEffects {
    pub by_label: BTreeMap<Label, Effects>,
    /// Which sets of messages each handler takes, and the handlers for which this depends on the local state.
    pub takes: BTreeMap<(u16, u16), Armed>,
    pub varying: BTreeSet<(u16, u16)>,
    /// The processes that send what each handler takes.
    pub senders: BTreeMap<(u16, u16), BTreeSet<u16>>,
    /// The positions of cells that each handler was seen to read, enabled or not.
    pub reads: BTreeMap<(u16, u16), BTreeSet<u16>>,
    /// Grows with everything above.
    pub version: u64,
    /// Steps that change the local state of a process.
    moves: FxHashSet<(u16, LocalId, LocalId)>,
    /// Steps that do not, by what they consume and send.
    turns: FxHashSet<(MessageId, MessageId)>,
    /// A step that changes nothing but perhaps sends, and consumes nothing: it can be repeated for ever.
    idle: bool,
}

impl KnownEffects {
    pub fn note(&mut self, label: &Label, effects: Effects) {
        for &handler in &effects.feeds {
            self.note_sender(handler, label.process);
        }
        let grown = match self.by_label.get_mut(label) {
            Some(known) => known.join(&effects),
            None => self.by_label.insert(label.clone(), effects).is_none(),
        };
        self.version += u64::from(grown);
    }

    pub fn note_armed(&mut self, process: u16, armed: Armed) {
        let key = (process, armed.handler);
        let known = self.takes.insert(key, armed);
        if known.is_none_or(|known| known != armed && self.varying.insert(key)) {
            self.version += 1;
        }
    }

    pub fn note_sender(&mut self, handler: (u16, u16), sender: u16) {
        if self.senders.entry(handler).or_default().insert(sender) {
            self.version += 1;
        }
    }

    pub fn note_reads(&mut self, handler: (u16, u16), cells: impl Iterator<Item = usize>) {
        let known = self.reads.entry(handler).or_default();
        let news = cells.filter(|&cell| known.insert(cell as u16)).count();
        self.version += u64::from(news > 0);
    }

    pub fn note_move(&mut self, process: u16, before: LocalId, after: LocalId) {
        self.moves.insert((process, before, after));
    }

    /// A step that left the local state as it was.
    pub fn note_turn(&mut self, consumed: &[MessageId], sent: impl Iterator<Item = MessageId>) {
        self.idle |= consumed.is_empty();
        for sent in sent {
            self.turns.extend(consumed.iter().map(|&consumed| (consumed, sent)));
        }
    }

    /// Whether no run can come back to a state it left.
    ///
    /// In a cycle every local state comes back. If no process's local states form a cycle, then all steps of a cycle leave
    /// them as they are: they consume messages and send others. If what is sent never leads back to what was consumed, the
    /// pending messages descend in a well-founded order, and there is no cycle. (Steps that cost a budget are in none.)
    pub fn acyclic(&self) -> bool {
        let mut locals: FxHashMap<(u16, u32), Vec<(u16, u32)>> = FxHashMap::default();
        for &(process, before, after) in &self.moves {
            locals.entry((process, before)).or_default().push((process, after));
        }
        let mut messages: FxHashMap<(u16, u32), Vec<(u16, u32)>> = FxHashMap::default();
        for &(consumed, sent) in &self.turns {
            messages.entry((0, consumed)).or_default().push((0, sent));
        }
        !self.idle && is_acyclic(&locals) && is_acyclic(&messages)
    }
}

type Vertex = (u16, u32);

/// Depth first, with an explicit stack.
fn is_acyclic(edges: &FxHashMap<Vertex, Vec<Vertex>>) -> bool {
    let mut done: FxHashSet<Vertex> = FxHashSet::default();
    let mut open: FxHashSet<Vertex> = FxHashSet::default();
    for &root in edges.keys() {
        let mut stack: Vec<(Vertex, usize)> = Vec::new();
        if !done.contains(&root) {
            open.insert(root);
            stack.push((root, 0));
        }
        while let Some((vertex, next)) = stack.last_mut() {
            let target = edges.get(vertex).and_then(|targets| targets.get(*next)).copied();
            *next += 1;
            match target {
                Some(target) if open.contains(&target) => return false,
                Some(target) if !done.contains(&target) => {
                    open.insert(target);
                    stack.push((target, 0));
                }
                Some(_) => {}
                None => {
                    open.remove(vertex);
                    done.insert(*vertex);
                    stack.pop();
                }
            }
        }
    }
    true
}

/// What partial-order reduction needs to know of a node. Many nodes share one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Profile {
    pub process: u16,
    /// What its transitions are, in order.
    pub enabled: Vec<Label>,
    /// Steps of the process that do not fail.
    pub steps: u32,
    pub transitions: u32,
    /// Handlers that may run in this local state, if the messages are there.
    pub armed: Vec<Armed>,
    /// In order.
    pub mail: Vec<Mail>,
    /// By handler, the cells that decide which transitions it has here.
    pub reads: Vec<(u16, CellSet)>,
}

/// That a message is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mail {
    /// One that it is for.
    pub handler: u16,
    pub sender: u16,
    /// Whether the handler may take it now. If not, its guard forbids it, or it waits behind others in a queue.
    pub accepted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_of_local_states_is_found() {
        let mut known = KnownEffects::default();
        known.note_move(0, 1, 2);
        known.note_move(0, 2, 3);
        known.note_move(1, 3, 1);
        assert!(known.acyclic());
        known.note_move(0, 3, 1);
        assert!(!known.acyclic());
    }

    #[test]
    fn messages_that_bounce_are_a_cycle() {
        let mut known = KnownEffects::default();
        known.note_turn(&[1, 2], [3].into_iter());
        known.note_turn(&[3], [4].into_iter());
        assert!(known.acyclic());
        known.note_turn(&[4], [2].into_iter());
        assert!(!known.acyclic());
        let mut known = KnownEffects::default();
        known.note_turn(&[], [].into_iter());
        assert!(!known.acyclic());
    }

    #[test]
    fn only_news_count_as_growth() {
        let mut known = KnownEffects::default();
        let label = Label { process: 0, tag: Tag::Step(1), senders: vec![2] };
        known.note(&label, Effects { altered: 1, ..Effects::default() });
        let version = known.version;
        known.note(&label, Effects { altered: 1, ..Effects::default() });
        assert_eq!(known.version, version);
        known.note(&label, Effects { reaches: [3].into(), ..Effects::default() });
        assert!(known.version > version);
    }
}

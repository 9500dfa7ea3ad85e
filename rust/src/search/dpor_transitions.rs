//! Transitions as dynamic partial-order reduction sees them: with numbers, and with the data that determines their
//! order.

use crate::por::footprint::Footprint;
use crate::search::control::Control;
use crate::system::model::{LocalId, MessageId, Network, Result, Shape, monitor_bit};
use crate::system::successors::{View, bit};
use crate::system::tables::{Details, Kind, NO_BUDGET, NodeId, Transition};
use rustc_hash::FxHashMap;
use std::ops::Index;
use std::rc::Rc;

pub(crate) type TransitionId = u32;

/// What matters for the order of a transition and those of other processes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dependence {
    footprint: Footprint,
    /// Properties that it may change the value of, as 64 bits. Properties that share a bit are told apart less well, never
    /// wrongly.
    visible: u64,
}

impl Dependence {
    fn join(&mut self, other: &Dependence) {
        self.footprint.join(&other.footprint);
        self.visible |= other.visible;
    }

    /// Whether the order of a transition of process `mine` and one of another process matters: they do not commute, or a
    /// property sees both.
    pub(crate) fn conflicts(&self, mine: usize, other: &Dependence, theirs: usize) -> bool {
        self.visible & other.visible != 0 || !self.footprint.commutes(mine, &other.footprint, theirs)
    }

    /// Whether a transition of process `mine` interferes with another process that may do all of `other`.
    pub(crate) fn interferes(&self, mine: usize, other: &Dependence, theirs: usize) -> bool {
        self.footprint.sends & bit(theirs) != 0 || self.conflicts(mine, other, theirs)
    }
}

/// A transition without the inbox that it was met in: messages that arrive do not change it.
pub(crate) struct DporTransition {
    pub(crate) process: usize,
    pub(crate) kind: Kind,
    pub(crate) dependence: Dependence,
    pub(crate) consumed: Vec<MessageId>,
    pub(crate) sends: Vec<(u16, MessageId)>,
}

/// Process, local state, kind, handler, consumed messages, outcome; and a number for those that are equal in all this
/// (losses of equal messages at different places of a queue).
type Key = (usize, LocalId, u8, u16, Vec<MessageId>, usize, usize);

/// The transitions of a situated node, in the order of its expansion, and all that they do together. If they read cells, an
/// *attempt* follows them: a transition that is never taken, reads the same cells and does nothing. It stands for what the
/// process could do if another process had written these cells later, or earlier.
pub(crate) struct NodeTransitions {
    pub(crate) ids: Vec<TransitionId>,
    pub(crate) all: Dependence,
}

/// Which rules are in force: tests leave one out to show that it is needed.
struct Rules {
    visibility: bool,
    sends: bool,
    monitors: bool,
    spawns: bool,
    cells: bool,
    losses: bool,
    room: bool,
}

/// All transitions met so far, by number.
pub(crate) struct DporTransitions {
    rules: Rules,
    processes: usize,
    movers: usize,
    network: Network,
    /// Channels have a capacity.
    bounded: bool,
    monitors: u64,
    /// Per property, the fields and the inboxes that a visible transition changes.
    seen: Vec<(u64, u64)>,
    known: Vec<DporTransition>,
    ids: FxHashMap<Key, TransitionId>,
    nodes: FxHashMap<NodeId, Rc<NodeTransitions>>,
}

impl Index<TransitionId> for DporTransitions {
    type Output = DporTransition;

    fn index(&self, id: TransitionId) -> &DporTransition {
        &self.known[id as usize]
    }
}

impl DporTransitions {
    /// No transitions yet; those will be visible that change what was `seen`.
    pub(crate) fn new(shape: &Shape, control: &Control, seen: Vec<(u64, u64)>) -> DporTransitions {
        let rule = |name: &str| !control.leaves_out(name);
        DporTransitions {
            rules: Rules {
                visibility: rule("dpor-visibility"),
                sends: rule("dpor-sends"),
                monitors: rule("dpor-monitors"),
                spawns: rule("dpor-spawns"),
                cells: rule("dpor-cells"),
                losses: rule("dpor-losses"),
                room: rule("dpor-room"),
            },
            processes: shape.processes,
            movers: shape.movers(),
            network: shape.network,
            bounded: shape.capacity.is_some(),
            monitors: (0..shape.monitors).map(monitor_bit).fold(0, |all, one| all | one),
            seen,
            known: Vec::new(),
            ids: FxHashMap::default(),
            nodes: FxHashMap::default(),
        }
    }

    /// The transitions of a situated node, blocked ones (by a budget, by slots) included.
    pub(crate) fn of_node(&mut self, view: &mut View, node: NodeId) -> Result<Rc<NodeTransitions>> {
        if let Some(known) = self.nodes.get(&node) {
            return Ok(known.clone());
        }
        let whose = view.tables.node(node);
        let (mut ids, mut all) = (Vec::new(), Dependence::default());
        let shape = view.tables.model.shape();
        let read = shape.positions(view.tables.cells_read(node)).fold(0, |read, cell| read | bit(cell));
        let read = if self.rules.cells { read } else { 0 };
        for transition in view.tables.transitions(node)? {
            let details = view.tables.details(transition);
            let from = details.consumed.iter().fold(0, |all, &m| all | bit(view.tables.model.sender(m) as usize));
            let (process, local) = (whose.process as usize, whose.local);
            let id = self.number(process, local, transition, &details, (from, read), &ids);
            all.join(&self[id].dependence);
            ids.push(id);
        }
        if read != 0 {
            let id = self.attempt(whose.process as usize, whose.local, read);
            all.join(&self[id].dependence);
            ids.push(id);
        }
        let transitions = Rc::new(NodeTransitions { ids, all });
        self.nodes.insert(node, transitions.clone());
        Ok(transitions)
    }

    /// The number of a transition that takes messages `from` these processes. It differs from those of its `siblings`.
    fn number(
        &mut self,
        process: usize,
        local: LocalId,
        transition: &Transition,
        details: &Details,
        (from, read): (u64, u64),
        siblings: &[TransitionId],
    ) -> TransitionId {
        let Details { kind, handler, consumed, outcome } = *details;
        let choice = outcome.map_or(0, |(_, number)| number as usize);
        let mut key = (process, local, kind as u8, handler, consumed.to_vec(), choice, 0);
        while let Some(&known) = self.ids.get(&key) {
            if !siblings.contains(&known) {
                return known;
            }
            key.6 += 1;
        }
        let id = self.known.len() as TransitionId;
        self.ids.insert(key, id);
        self.known.push(DporTransition {
            process,
            kind,
            dependence: self.dependence(process, transition, details, from, read),
            consumed: consumed.to_vec(),
            sends: details.sends().to_vec(),
        });
        id
    }

    /// The attempt of a process in a local state with cells.
    fn attempt(&mut self, process: usize, local: LocalId, read: u64) -> TransitionId {
        const NO_KIND: u8 = u8::MAX;
        let key = (process, local, NO_KIND, 0, Vec::new(), 0, 0);
        *self.ids.entry(key).or_insert_with(|| {
            let footprint = Footprint { expects: read, ..Footprint::default() };
            self.known.push(DporTransition {
                process,
                kind: Kind::Step,
                dependence: Dependence { footprint, visible: 0 },
                consumed: Vec::new(),
                sends: Vec::new(),
            });
            self.known.len() as TransitionId - 1
        })
    }

    /// `from`: the senders of what it consumes. `read`: the cells that transitions of the node read, as bits of their
    /// positions.
    fn dependence(
        &self,
        process: usize,
        transition: &Transition,
        details: &Details,
        from: u64,
        read: u64,
    ) -> Dependence {
        let rules = &self.rules;
        let receivers = details.sends().iter().fold(0, |all, &(to, _)| all | bit(to as usize));
        let (births, writes): (Vec<usize>, Vec<usize>) =
            details.spawns().iter().map(|&(slot, _)| slot as usize).partition(|&slot| slot < self.movers);
        let bits = |slots: &[usize]| slots.iter().fold(0, |all, &slot| all | bit(slot));
        let expects = details.expected().iter().fold(0, |all, &(slot, _)| all | bit(slot as usize));
        let sends = receivers & !if self.processes <= 64 { bit(process) } else { 0 };
        let announces = self.monitors != 0 && !details.events().is_empty();
        let keeps = details.kind == Kind::Recover
            || details.kind == Kind::Step && (details.consumed.is_empty() || self.network == Network::Set);
        let changed = receivers | if keeps { 0 } else { bit(process) };
        let altered = match (!births.is_empty(), announces) {
            (true, _) => u64::MAX,
            (false, true) => transition.altered | self.monitors,
            (false, false) => transition.altered,
        };
        let visible = self.seen.iter().enumerate().fold(0, |all, (property, &(fields, inboxes))| {
            let touches =
                (fields | inboxes != 0) && (altered == u64::MAX || altered & fields != 0) || changed & inboxes != 0;
            if touches { all | bit(property) } else { all }
        });
        // A crash that is for ever takes all messages.
        let frees = if details.kind == Kind::Crash { u64::MAX } else { from };
        let footprint = Footprint {
            sends: if rules.sends { sends } else { 0 },
            spawns: if rules.spawns { bits(&births) } else { 0 } | if rules.cells { bits(&writes) } else { 0 },
            expects: if rules.spawns { expects } else { 0 } | read,
            budgets: if transition.budget != NO_BUDGET { bit(transition.budget as usize) } else { 0 },
            announces: rules.monitors && announces,
            // In a queue, a loss and a send commute. But which of several losses of equal messages has which number depends
            // on the content of the queue, and a number must mean the same transition before and after a send.
            loses: rules.losses && details.kind == Kind::Lose && self.network != Network::Bag,
            frees: if self.bounded && rules.room { frees } else { 0 },
        };
        Dependence { footprint, visible: if rules.visibility { visible } else { 0 } }
    }
}

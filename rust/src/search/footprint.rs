//! Transitions as dynamic partial-order reduction sees them: what they do that matters for their order.

use crate::search::control::Control;
use crate::system::model::{LocalId, MessageId, Network, Result, Shape, monitor_bit};
use crate::system::tables::{Details, Kind, NO_BUDGET, NodeId, Transition};
use crate::system::view::{Lens, bit};
use rustc_hash::FxHashMap;
use std::ops::Index;
use std::rc::Rc;

pub(crate) type ActId = u32;

/// What matters about a transition's order with those of other processes. Sets of processes, budgets and properties are 64
/// bits; what shares a bit is told apart less well, never wrongly.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
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
    pub(crate) fn conflict(&self, mine: usize, other: &Traits, theirs: usize) -> bool {
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
    pub(crate) fn interferes(&self, mine: usize, other: &Traits, theirs: usize) -> bool {
        self.sends & bit(theirs) != 0 || self.conflict(mine, other, theirs)
    }
}

/// A transition apart from the inbox that it was found in: messages that arrive leave it what it is.
pub(crate) struct Act {
    pub(crate) process: usize,
    pub(crate) kind: Kind,
    pub(crate) traits: Traits,
    pub(crate) consumed: Vec<MessageId>,
    pub(crate) sends: Vec<(u16, MessageId)>,
}

/// Process, local state, kind, handler, consumed messages, outcome; and a number for those that are equal in all this
/// (losses of equal messages at different places of a queue).
type ActKey = (usize, LocalId, u8, u16, Vec<MessageId>, usize, usize);

/// The transitions of a node, in the order of its expansion, and all that they do together.
pub(crate) struct Menu {
    pub(crate) acts: Vec<ActId>,
    pub(crate) all: Traits,
}

/// Which rules are in force: tests leave one out to show that it is needed.
struct Rules {
    visibility: bool,
    sends: bool,
    monitors: bool,
    spawns: bool,
    losses: bool,
}

/// All transitions met so far, by number.
pub(crate) struct Acts {
    rules: Rules,
    processes: usize,
    network: Network,
    monitors: u64,
    /// Per property, the fields and the inboxes that a visible transition changes.
    seen: Vec<(u64, u64)>,
    acts: Vec<Act>,
    ids: FxHashMap<ActKey, ActId>,
    menus: FxHashMap<NodeId, Rc<Menu>>,
}

impl Index<ActId> for Acts {
    type Output = Act;

    fn index(&self, id: ActId) -> &Act {
        &self.acts[id as usize]
    }
}

impl Acts {
    /// No transitions yet; those will be visible that change what was `seen`.
    pub(crate) fn new(shape: &Shape, control: &Control, seen: Vec<(u64, u64)>) -> Acts {
        let rule = |name: &str| !control.leaves_out(name);
        Acts {
            rules: Rules {
                visibility: rule("dpor-visibility"),
                sends: rule("dpor-sends"),
                monitors: rule("dpor-monitors"),
                spawns: rule("dpor-spawns"),
                losses: rule("dpor-losses"),
            },
            processes: shape.processes,
            network: shape.network,
            monitors: (0..shape.monitors).map(monitor_bit).fold(0, |all, one| all | one),
            seen,
            acts: Vec::new(),
            ids: FxHashMap::default(),
            menus: FxHashMap::default(),
        }
    }

    /// The transitions of a node.
    pub(crate) fn menu(&mut self, lens: &mut Lens, node: NodeId) -> Result<Rc<Menu>> {
        if let Some(menu) = self.menus.get(&node) {
            return Ok(menu.clone());
        }
        let expansion = lens.expansion(node)?;
        let whose = lens.tables.node(node);
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
        while let Some(&known) = self.ids.get(&key) {
            if !siblings.contains(&known) {
                return known;
            }
            key.6 += 1;
        }
        let id = self.acts.len() as ActId;
        self.ids.insert(key, id);
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
            budgets: if transition.budget != NO_BUDGET { bit(transition.budget as usize) } else { 0 },
            visible: if rules.visibility { visible } else { 0 },
            announces: rules.monitors && announces,
            expects: rules.spawns && !details.expected().is_empty(),
            loses: rules.losses && details.kind == Kind::Lose && self.network != Network::Bag,
        }
    }
}

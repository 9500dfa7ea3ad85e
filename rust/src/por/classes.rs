//! Classes of transitions for static partial-order reduction.

use crate::por::effects::{Effects, KnownEffects, Label, Tag};
use crate::por::footprint::Footprint;
use crate::system::expander::RECOVERY;
use crate::system::model::{Network, Shape, monitor_bit};
use crate::system::reads::ReadSet;
use crate::system::successors::bit;
use std::collections::BTreeSet;

/// Which transitions are told apart by the senders of what they consume (MP-Basset).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    None,
    /// Those that send to these senders only.
    Reply,
    /// Those that consume several messages and are no replies.
    Quorum,
    Combined,
}

pub struct Class {
    pub process: u16,
    pub tag: Tag,
    /// The senders of what it consumes, if it was split by them.
    pub senders: Option<Vec<u16>>,
    /// What it costs one of.
    pub budget: Option<u8>,
    pub effects: Effects,
    pub footprint: Footprint,
}

impl Class {
    /// Whether transitions of two classes of different processes may depend on each other, apart from messages that one
    /// consumes and the other sends. (For classes of one process there is a rule of its own.)
    pub fn depends_on(&self, other: &Class) -> bool {
        let (mine, theirs) = (self.process as usize, other.process as usize);
        mine != theirs && !self.footprint.commutes(mine, &other.footprint, theirs)
    }

    /// Whether a transition of the class may change what the properties read.
    pub fn is_visible(&self, read: ReadSet) -> bool {
        let monitors = (0..4).map(monitor_bit).sum::<u64>();
        let altered = self.effects.altered | if self.effects.announces { monitors } else { 0 };
        let inboxes = self.footprint.sends | bit(self.process as usize);
        read.fields & altered != 0 || read.inboxes & inboxes != 0
    }
}

/// All classes, process by process, each with the labels that it consists of.
///
/// There is a class for everything that *could* happen, seen or not: for each handler that was met in any way (as armed, or
/// as the receiver of a message), after a split for each set of senders that it could take messages from, and for each
/// fault. What was not seen yet could otherwise be kept from happening, and would then never be seen.
pub fn classes(known: &KnownEffects, shape: &Shape, split: Split) -> Vec<(Class, Vec<Label>)> {
    let mut handlers: BTreeSet<(u16, u16)> = known.takes.keys().chain(known.senders.keys()).copied().collect();
    for (label, effects) in &known.by_label {
        handlers.extend(effects.arms.iter().copied());
        if let Tag::Step(handler) = label.tag {
            handlers.insert((label.process, handler));
        }
    }
    let mut classes = Vec::new();
    let mut add = |process: u16, tag: Tag, senders: Option<Vec<u16>>, labels: Vec<Label>| {
        let mut effects = Effects::default();
        for seen in labels.iter().filter_map(|label| known.by_label.get(label)) {
            effects.join(seen);
        }
        let handler = match tag {
            Tag::Step(handler) => Some(handler),
            Tag::Recover => Some(RECOVERY),
            Tag::Crash(_) | Tag::Lose | Tag::Duplicate => None,
        };
        let read = handler.and_then(|handler| known.reads.get(&(process, handler)));
        effects.expects.extend(read.into_iter().flatten());
        let budget = budget(shape, tag);
        let from = match tag {
            Tag::Step(handler) => known.senders.get(&(process, handler)).map_or(0, bits),
            // A crash that is for ever takes all messages.
            Tag::Lose | Tag::Crash(_) => u64::MAX,
            Tag::Recover | Tag::Duplicate => 0,
        };
        let footprint = footprint(shape, tag, budget, &effects, from);
        classes.push((Class { process, tag, senders, budget, effects, footprint }, labels));
    };
    // Guards of split classes are evaluated apart from a state (`guards`), so without cells.
    let split = if shape.cells > 0 { Split::None } else { split };
    for process in 0..shape.movers() as u16 {
        for &(_, handler) in handlers.range((process, 0)..=(process, u16::MAX)) {
            let tag = Tag::Step(handler);
            let seen: Vec<Label> =
                known.by_label.keys().filter(|label| label.process == process && label.tag == tag).cloned().collect();
            match sender_sets(known, (process, handler), &seen, split) {
                Some(sets) => {
                    for set in sets {
                        let label = Label { process, tag, senders: set.clone() };
                        add(process, tag, Some(set), vec![label]);
                    }
                }
                None => add(process, tag, None, seen),
            }
        }
        let mut faults = Vec::new();
        for (index, fault) in shape.faults.iter().enumerate().filter(|(_, f)| f.may_crash[process as usize]) {
            faults.push(Tag::Crash(index as u16));
            if fault.recovers && !faults.contains(&Tag::Recover) {
                faults.push(Tag::Recover);
            }
        }
        faults.extend(shape.lossy.then_some(Tag::Lose));
        faults.extend(shape.duplications.map(|_| Tag::Duplicate));
        for tag in faults {
            add(process, tag, None, vec![Label { process, tag, senders: Vec::new() }]);
        }
    }
    classes
}

fn bits(set: &BTreeSet<u16>) -> u64 {
    set.iter().fold(0, |bits, &one| bits | bit(one as usize))
}

/// What transitions of a class that takes messages `from` these processes do outside their own process.
fn footprint(shape: &Shape, tag: Tag, budget: Option<u8>, effects: &Effects, from: u64) -> Footprint {
    Footprint {
        sends: bits(&effects.reaches),
        spawns: bits(&effects.spawns),
        expects: bits(&effects.expects),
        budgets: budget.map_or(0, |budget| bit(budget as usize)),
        announces: effects.announces,
        // In a set, sending what is there already changes nothing, but after a loss it does. In a bag and in queues, a send
        // and a loss commute.
        loses: tag == Tag::Lose && shape.network == Network::Set,
        frees: if shape.capacity.is_some() { from } else { 0 },
    }
}

/// The budget that transitions of a kind cost.
fn budget(shape: &Shape, tag: Tag) -> Option<u8> {
    let budget = match tag {
        Tag::Crash(fault) => Some(shape.crash_budget(fault as usize)),
        Tag::Lose => shape.loss_budget(),
        Tag::Duplicate => shape.duplication_budget(),
        Tag::Step(_) | Tag::Recover => None,
    };
    budget.map(|budget| budget as u8)
}

/// The sets of senders that a handler may take messages from, if it is to be split by them.
fn sender_sets(known: &KnownEffects, handler: (u16, u16), seen: &[Label], split: Split) -> Option<Vec<Vec<u16>>> {
    const MOST_SETS: usize = 40;
    let takes = known.takes.get(&handler).filter(|takes| takes.least > 0 && !known.varying.contains(&handler))?;
    let effects = || seen.iter().map(|label| &known.by_label[label]);
    let replies = effects().any(|effects| !effects.reaches.is_empty()) && effects().all(|effects| !effects.initiates);
    let apart = match split {
        Split::None => false,
        Split::Reply => replies,
        Split::Quorum => takes.most > 1 && !replies,
        Split::Combined => takes.most > 1 || replies,
    };
    if !apart {
        return None;
    }
    let senders: Vec<u16> = known.senders.get(&handler)?.iter().copied().collect();
    // Several messages may come from one sender, unless they are distinct.
    let least = if takes.distinct { takes.least as usize } else { 1 };
    let mut sets: Vec<Vec<u16>> = Vec::new();
    let mut sized: Vec<Vec<u16>> = vec![Vec::new()];
    for size in 1..=(takes.most as usize).min(senders.len().max(least)) {
        let later = |set: &Vec<u16>, sender: u16| set.last().is_none_or(|&last| last < sender);
        let pairs = sized.iter().flat_map(|set| senders.iter().map(move |&sender| (set, sender)));
        sized = pairs
            .filter(|(set, sender)| later(set, *sender))
            .map(|(set, sender)| [&set[..], &[sender]].concat())
            .collect();
        if size >= least {
            sets.extend_from_slice(&sized);
        }
        if sets.len().max(sized.len()) > MOST_SETS {
            return None;
        }
    }
    Some(sets)
}

//! Classes of transitions, as partial-order reduction tells them apart, and which of them do not commute.

use crate::por::observed::{Deeds, Facts, Label, Tag};
use crate::system::model::{Network, Shape};
use std::collections::BTreeSet;

/// Which transitions are told apart by the senders of what they consume (paper 003).
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
    pub deeds: Deeds,
}

/// Transitions of different processes that do not commute, whatever they do to inboxes.
pub fn dependent(shape: &Shape, a: &Class, b: &Class) -> bool {
    if a.process == b.process {
        return false; // The rule about the own process says so.
    }
    let one_way = |a: &Class, b: &Class| {
        let fills = a.deeds.slots.contains(&b.process);
        // In a set, sending what is there already is no change, but after a loss it is one.
        let restores = shape.network == Network::Set && b.tag == Tag::Lose && a.deeds.reaches.contains(&b.process);
        fills || restores
    };
    (a.deeds.announces && b.deeds.announces)
        || (a.budget.is_some() && a.budget == b.budget)
        || !a.deeds.slots.is_disjoint(&b.deeds.slots)
        || one_way(a, b)
        || one_way(b, a)
}

/// All classes, process by process, each with the labels that it consists of.
///
/// There is a class for everything that *could* happen, seen or not: for each handler that was met in any way (as armed, or
/// as the receiver of a message), after a split for each set of senders that it could take messages from, and for each
/// fault. What was not seen yet could otherwise be kept from happening, and would then never be seen.
pub fn classes(facts: &Facts, shape: &Shape, split: Split) -> Vec<(Class, Vec<Label>)> {
    let mut handlers: BTreeSet<(u16, u16)> = facts.counts.keys().chain(facts.senders.keys()).copied().collect();
    for (label, deeds) in &facts.deeds {
        handlers.extend(deeds.arms.iter().copied());
        if let Tag::Step(handler) = label.tag {
            handlers.insert((label.process, handler));
        }
    }
    let mut classes = Vec::new();
    let mut add = |process: u16, tag: Tag, senders: Option<Vec<u16>>, labels: Vec<Label>| {
        let mut deeds = Deeds::default();
        for seen in labels.iter().filter_map(|label| facts.deeds.get(label)) {
            deeds.join(seen);
        }
        classes.push((Class { process, tag, senders, budget: budget(shape, tag), deeds }, labels));
    };
    for process in 0..shape.processes as u16 {
        for &(_, handler) in handlers.range((process, 0)..=(process, u16::MAX)) {
            let tag = Tag::Step(handler);
            let seen: Vec<Label> =
                facts.deeds.keys().filter(|label| label.process == process && label.tag == tag).cloned().collect();
            match sender_sets(facts, (process, handler), &seen, split) {
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
fn sender_sets(facts: &Facts, handler: (u16, u16), seen: &[Label], split: Split) -> Option<Vec<Vec<u16>>> {
    const MOST_SETS: usize = 40;
    let count = *facts.counts.get(&handler).filter(|&&count| count > 0 && !facts.varying.contains(&handler))?;
    let deeds = || seen.iter().map(|label| &facts.deeds[label]);
    let replies = deeds().any(|deeds| !deeds.reaches.is_empty()) && deeds().all(|deeds| !deeds.initiates);
    let apart = match split {
        Split::None => false,
        Split::Reply => replies,
        Split::Quorum => count > 1 && !replies,
        Split::Combined => count > 1 || replies,
    };
    if !apart {
        return None;
    }
    let senders: Vec<u16> = facts.senders.get(&handler)?.iter().copied().collect();
    let mut sets: Vec<Vec<u16>> = vec![Vec::new()];
    for _ in 0..count {
        let later = |set: &Vec<u16>, sender: u16| set.last().is_none_or(|&last| last < sender);
        let pairs = sets.iter().flat_map(|set| senders.iter().map(move |&sender| (set, sender)));
        sets = pairs
            .filter(|(set, sender)| later(set, *sender))
            .map(|(set, sender)| [&set[..], &[sender]].concat())
            .collect();
        if sets.len() > MOST_SETS {
            return None;
        }
    }
    Some(sets)
}

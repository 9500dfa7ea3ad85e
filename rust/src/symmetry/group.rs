//! Symmetry: permutations of processes, exact orbits, and the check that the permutations are symmetries.
//!
//! A permutation of processes acts on a state: it moves local states and inboxes to their new owners, and renames every
//! process id inside them. Fingerprints are sums, so the fingerprint of each image of a state is a sum of tabulated
//! numbers. The least of them represents the orbit. The states themselves stay as they were reached (`view`).
//!
//! The engine checks that the declared permutations are symmetries. For every node of a search, the transitions of its
//! image must be the images of its transitions (`Tables::audit`), for a set of permutations that generates the group.
//! Images are audited as well, so whole orbits are covered. The initial state must be its own image, and the properties
//! must agree on all images of a state (`view::evaluate_properties`).

use crate::system::inbox;
use crate::system::model::{EventId, Fault, LocalId, MessageId, Model, MonitorId, Network, Result, Truth};
use crate::system::tables::{Expansion, InboxId, Inner, Kind, NodeId, Tables};
use std::sync::Arc;

/// The permutations of processes, each as the new position of every process. The first is the identity.
#[derive(Clone, Debug, Default)]
pub struct Group {
    pub elements: Vec<Vec<u16>>,
    /// Places in `elements` of permutations that make up all others.
    pub generators: Vec<usize>,
    /// How they do: each element but the identity is an earlier element followed by a generator.
    words: Vec<(usize, usize)>,
}

impl Group {
    /// All permutations of processes within each set.
    pub fn new(processes: usize, sets: &[Vec<u16>]) -> Group {
        let identity: Vec<u16> = (0..processes as u16).collect();
        let mut elements = vec![identity];
        let mut swaps: Vec<Vec<u16>> = Vec::new();
        for set in sets {
            let orders = orders(set);
            elements = elements
                .iter()
                .flat_map(|element| {
                    orders.iter().map(|order| {
                        let mut next = element.clone();
                        set.iter().zip(order).for_each(|(&from, &to)| next[from as usize] = to);
                        next
                    })
                })
                .collect();
            for pair in set.windows(2) {
                let mut swap: Vec<u16> = (0..processes as u16).collect();
                swap.swap(pair[0] as usize, pair[1] as usize);
                swaps.push(swap);
            }
        }
        let place = |sought: &[u16]| elements.iter().position(|e| e == sought).expect("a group has all permutations");
        let generators: Vec<usize> = swaps.iter().map(|swap| place(swap)).collect();
        // Undoing an inversion of neighbours gives a permutation that comes earlier, so that there is a word.
        let word = |at: usize| {
            generators.iter().find_map(|&generator| {
                let before: Vec<u16> = elements[at].iter().map(|&to| elements[generator][to as usize]).collect();
                Some((place(&before), generator)).filter(|&(before, _)| before < at)
            })
        };
        let words = (1..elements.len()).map(|at| word(at).expect("orders are lexicographic")).collect();
        Group { generators, words, elements }
    }

    /// How many images a state has; 1 without symmetry.
    pub fn len(&self) -> usize {
        self.elements.len().max(1)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Whether some permutation moves a process to a place.
    pub fn moves(&self, process: usize, place: usize) -> bool {
        process == place || self.elements.iter().any(|element| element[process] as usize == place)
    }
}

/// All orders of a set, the given one first.
fn orders(set: &[u16]) -> Vec<Vec<u16>> {
    if set.is_empty() {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for at in 0..set.len() {
        let mut rest = set.to_vec();
        let first = rest.remove(at);
        found.extend(orders(&rest).into_iter().map(|tail| [&[first][..], &tail].concat()));
    }
    found
}

/// What shows that a permutation is no symmetry.
#[derive(Clone, Debug)]
pub enum Evidence {
    /// The initial state of this process is not that of its image.
    Initial {
        process: usize,
        image: usize,
    },
    InitialMonitor {
        monitor: usize,
    },
    /// What a monitor makes of an event depends on which of the processes it is about.
    Monitor {
        monitor: usize,
    },
    /// The process and its image, in corresponding states, do not do corresponding things.
    Step {
        process: usize,
        local: LocalId,
        image: usize,
        image_local: LocalId,
        handler: Option<u16>,
        consumed: Vec<MessageId>,
    },
    Property {
        property: usize,
        value: Truth,
    },
}

/// A transition with all that it does, to be compared with that of an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Whole {
    kind: u8,
    handler: u16,
    consumed: Vec<MessageId>,
    target: NodeId,
    deliveries: Vec<(u16, Option<LocalId>, Vec<MessageId>)>,
    budget: u8,
    events: Vec<EventId>,
    expected: Vec<(u16, bool)>,
    fails: Option<bool>,
}

impl Tables {
    /// The node that a generator of the group moves a node to.
    pub fn image(&self, node: NodeId, generator: usize) -> NodeId {
        self.inner.lock().image(&*self.model, node, generator)
    }

    /// The nodes that all elements of the group move a node to, with their hashes.
    pub fn images(&self, node: NodeId, images: &mut [NodeId], hashes: &mut [u64]) {
        let mut inner = self.inner.lock();
        images[0] = node;
        for (at, &(before, generator)) in self.model.shape().group.words.iter().enumerate() {
            images[at + 1] = inner.image(&*self.model, images[before], generator);
        }
        hashes.iter_mut().zip(images).for_each(|(hash, image)| *hash = inner.nodes[*image as usize].hash);
    }

    /// Make sure that the initial state is its own image.
    pub fn audit_initial(&self, state: &[u32]) -> Result<()> {
        let shape = self.model.shape();
        for &element in &shape.group.generators {
            for (process, &node) in state[..shape.processes].iter().enumerate() {
                let image = shape.group.elements[element][process] as usize;
                if self.image(node, element) != state[image] {
                    return Err(self.model.asymmetry(element, Evidence::Initial { process, image }));
                }
            }
            for monitor in 0..shape.monitors {
                let value = state[shape.processes + monitor];
                if self.model.monitor_image(value, element) != value {
                    return Err(self.model.asymmetry(element, Evidence::InitialMonitor { monitor }));
                }
            }
        }
        Ok(())
    }

    /// Make sure that a monitor makes of images what it makes of a state and an event. Every observation comes here once,
    /// those of images too, so that whole orbits are looked at.
    pub fn audit_observation(
        &self,
        monitor: usize,
        (state, event): (MonitorId, EventId),
        next: Option<MonitorId>,
    ) -> Result<()> {
        for &element in &self.model.shape().group.generators {
            let model = &self.model;
            let (image, seen) = (model.monitor_image(state, element), model.event_image(event, element));
            let expected = next.map(|next| model.monitor_image(next, element));
            if self.observe(monitor, image, seen)?.ok() != expected {
                return Err(model.asymmetry(element, Evidence::Monitor { monitor }));
            }
        }
        Ok(())
    }

    /// Make sure that what a node and all its images can do corresponds.
    pub fn audit(&self, node: NodeId) -> Result<()> {
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            if !self.inner.lock().audited.insert(node) {
                continue;
            }
            let expansion = self.expansion(node)?;
            for &element in &self.model.shape().group.generators {
                let image = self.image(node, element);
                let expected = self.expansion(image)?;
                let mut inner = self.inner.lock();
                let moved = inner.wholes(&*self.model, &expansion, element);
                let there = inner.wholes(&*self.model, &expected, 0);
                if moved != there {
                    return Err(inner.difference(&*self.model, element, node, image, &moved, &there));
                }
                waiting.push(image);
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Asked for generators only, and for the identity.
    fn image(&mut self, model: &dyn Model, node: NodeId, element: usize) -> NodeId {
        if element == 0 {
            return node;
        }
        if let Some(&known) = self.images.get(&(node, element as u16)) {
            return known;
        }
        let from = self.nodes[node as usize];
        let process = model.shape().group.elements[element][from.process as usize];
        let local = model.local_image(from.local, element);
        let pending = self.inbox_image(model, from.inbox, element);
        let last = if model.shape().history {
            let last = self.inbox_image(model, from.last, element);
            self.last(model, &last)
        } else {
            from.last
        };
        let image = self.node(model, process as usize, local, pending, last);
        self.images.insert((node, element as u16), image);
        image
    }

    fn inbox_image(&self, model: &dyn Model, inbox: InboxId, element: usize) -> Vec<MessageId> {
        let moved: Vec<MessageId> =
            self.inboxes[inbox as usize].iter().map(|&m| model.message_image(m, element)).collect();
        inbox::insert(model, &[], &moved)
    }

    /// The images of the transitions of a node, in canonical order.
    fn wholes(&mut self, model: &dyn Model, expansion: &Arc<Expansion>, element: usize) -> Vec<Whole> {
        let group = &model.shape().group;
        let place = |process: u16| group.elements[element][process as usize];
        let in_order = model.shape().network == Network::Fifo;
        let mut wholes = Vec::new();
        for (transition, details) in expansion.transitions.iter().zip(&expansion.details) {
            let moved = |messages: &[MessageId], sort: bool| {
                let mut moved: Vec<MessageId> = messages.iter().map(|&m| model.message_image(m, element)).collect();
                if sort {
                    moved.sort_unstable();
                }
                moved
            };
            let range = transition.deliveries.0 as usize..transition.deliveries.1 as usize;
            let mut deliveries: Vec<(u16, Option<LocalId>, Vec<MessageId>)> = expansion.deliveries[range]
                .iter()
                .map(|&(to, bundle)| {
                    let bundle = &self.bundles[bundle as usize];
                    let birth = bundle.birth.map(|local| model.local_image(local, element));
                    (place(to), birth, moved(&bundle.messages, !in_order))
                })
                .collect();
            deliveries.sort_unstable();
            let mut expected: Vec<(u16, bool)> = details.expected().iter().map(|&(p, b)| (place(p), b)).collect();
            expected.sort_unstable();
            wholes.push(Whole {
                kind: details.kind as u8,
                handler: details.handler,
                consumed: moved(&details.consumed, true),
                target: self.image(model, transition.target, element),
                deliveries,
                budget: transition.budget,
                events: details.events().iter().map(|&e| model.event_image(e, element)).collect(),
                expected,
                fails: details.failure().map(|failure| failure.violation),
            });
        }
        wholes.sort_unstable();
        wholes
    }

    fn difference(
        &self,
        model: &dyn Model,
        element: usize,
        node: NodeId,
        image: NodeId,
        moved: &[Whole],
        there: &[Whole],
    ) -> Fault {
        let (before, after) = (self.nodes[node as usize], self.nodes[image as usize]);
        let only_moved = moved.iter().find(|whole| !there.contains(whole));
        let only_there = there.iter().find(|whole| !moved.contains(whole));
        let whole = only_moved.or(only_there);
        model.asymmetry(
            element,
            Evidence::Step {
                process: before.process as usize,
                local: before.local,
                image: after.process as usize,
                image_local: after.local,
                handler: whole.filter(|whole| whole.kind == Kind::Step as u8).map(|whole| whole.handler),
                consumed: whole.map_or_else(Vec::new, |whole| whole.consumed.clone()),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_all_permutations_once() {
        let group = Group::new(6, &[vec![0, 2, 3], vec![4, 5]]);
        assert_eq!(group.len(), 12);
        assert_eq!(group.elements[0], [0, 1, 2, 3, 4, 5]);
        assert_eq!(group.generators.len(), 3);
        let mut distinct = group.elements.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 12);
        assert!(distinct.iter().all(|element| element[1] == 1));
    }

    #[test]
    fn words_make_the_elements() {
        let group = Group::new(7, &[vec![0, 2, 3, 6], vec![4, 5]]);
        assert_eq!(group.words.len() + 1, group.len());
        for (at, &(before, generator)) in group.words.iter().enumerate() {
            assert!(before <= at && group.generators.contains(&generator));
            let made: Vec<u16> =
                group.elements[before].iter().map(|&to| group.elements[generator][to as usize]).collect();
            assert_eq!(made, group.elements[at + 1]);
        }
    }
}

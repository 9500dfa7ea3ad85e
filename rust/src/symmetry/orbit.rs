//! Symmetry in a view: the fingerprints of all images of a state, and the audit of properties.
//!
//! A state stays as it was reached. The least fingerprint of its images represents its orbit (`group`).

use crate::symmetry::group::Evidence;
use crate::system::hash;
use crate::system::model::{Component, MessageId, MonitorId, Result, Shape, Truth};
use crate::system::reads::PropertyReads;
use crate::system::successors::{Successor, TransitionRef, UNMET, View, bit};
use crate::system::tables::{Expansion, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

/// What a view keeps for symmetry; nothing without it.
#[derive(Default)]
pub(crate) struct Orbits {
    /// Images of a state.
    size: usize,
    /// Per node, its images and their hashes.
    images: Vec<NodeId>,
    image_hashes: Vec<u64>,
    /// Per transition in `View::hot`, what it adds to the fingerprint of each image.
    deltas: Vec<u64>,
    /// Per message, the hashes of its images.
    messages: FxHashMap<MessageId, Vec<u64>>,
    monitor_images: FxHashMap<(u16, MonitorId), Vec<u64>>,
    /// Room for the fingerprints of all images of one state.
    pub sums: Vec<u64>,
    /// Per property, what it may read in images, and the values of that for which all images were seen to agree.
    scopes: Vec<Vec<Component>>,
    audited: Vec<FxHashSet<Box<[u32]>>>,
    key: Vec<u32>,
}

impl Orbits {
    pub fn new(shape: &Shape) -> Orbits {
        Orbits {
            size: shape.group.len(),
            scopes: vec![Vec::new(); shape.properties.len()],
            audited: vec![FxHashSet::default(); shape.properties.len()],
            ..Orbits::default()
        }
    }

    /// Whether there is any symmetry.
    #[inline]
    pub fn any(&self) -> bool {
        self.size > 1
    }
}

impl View<'_> {
    /// The same with the fingerprints of orbits: the least of those of all images.
    pub(crate) fn orbit_successors(
        &mut self,
        state: &[u32],
        processes: u64,
        mut each: impl FnMut(Successor),
    ) -> Result<()> {
        let sums = self.image_sums(state);
        for process in (0..self.processes).filter(|&process| processes & bit(process) != 0) {
            let node = state[process];
            let mut range = self.ranges.get(node as usize).copied().unwrap_or(UNMET);
            if range == UNMET {
                range = self.expand(node)?;
            }
            for index in range.0..range.1 {
                let hot = self.hot[index as usize];
                let via = TransitionRef { process: process as u16, index: index - range.0 };
                if hot.plain {
                    let start = index as usize * sums.len();
                    let deltas = &self.orbits.deltas[start..start + sums.len()];
                    let least = sums.iter().zip(deltas).map(|(sum, delta)| sum.wrapping_add(*delta)).min();
                    let fingerprint = hash::orbit(least.expect("the identity is an image"));
                    each(Successor { fingerprint, via, moves: hot.moves, fails: false });
                } else {
                    let own = self.own_fingerprint(state);
                    if let Some(mut successor) = self.involved(state, own, via)? {
                        if !successor.fails {
                            let mut after = state.to_vec();
                            self.take(&mut after, via)?;
                            successor.fingerprint = self.fingerprint(&after);
                        }
                        each(successor);
                    }
                }
            }
        }
        self.orbits.sums = sums;
        Ok(())
    }

    /// The fingerprints of all images of a state, in a vector to be given back to `sums`.
    pub(crate) fn image_sums(&mut self, state: &[u32]) -> Vec<u64> {
        let size = self.orbits.size;
        let mut sums = std::mem::take(&mut self.orbits.sums);
        sums.clear();
        sums.resize(size, 0);
        for &node in &state[..self.processes] {
            let hashes = self.image_hashes(node);
            sums.iter_mut().zip(hashes).for_each(|(sum, hash)| *sum = sum.wrapping_add(*hash));
        }
        let (monitors, budgets) = state[self.processes..].split_at(self.monitors);
        let model = &self.tables.model;
        for (monitor, &value) in monitors.iter().enumerate() {
            let hashes = self.orbits.monitor_images.entry((monitor as u16, value)).or_insert_with(|| {
                let image = |element| model.monitor_hash(model.monitor_image(value, element));
                (0..size).map(|element| hash::monitor(monitor, image(element))).collect()
            });
            sums.iter_mut().zip(hashes).for_each(|(sum, hash)| *sum = sum.wrapping_add(*hash));
        }
        let left = budgets.iter().enumerate().fold(0u64, |sum, (i, &left)| sum.wrapping_add(hash::budget(i, left)));
        sums.iter_mut().for_each(|sum| *sum = sum.wrapping_add(left));
        sums
    }

    /// The hashes of all images of a node.
    #[inline]
    fn image_hashes(&mut self, node: NodeId) -> &[u64] {
        let size = self.orbits.size;
        let start = node as usize * size;
        if self.orbits.image_hashes.len() < start + size || self.orbits.images[start] == u32::MAX {
            self.load_images(node, size);
        }
        &self.orbits.image_hashes[start..start + size]
    }

    #[cold]
    fn load_images(&mut self, node: NodeId, size: usize) {
        let start = node as usize * size;
        if self.orbits.images.len() < start + size {
            self.orbits.images.resize(start + size, u32::MAX);
            self.orbits.image_hashes.resize(start + size, 0);
        }
        let row = start..start + size;
        let (images, hashes) = (&mut self.orbits.images[row.clone()], &mut self.orbits.image_hashes[row]);
        self.tables.images(node, images, hashes);
    }

    /// The image of a state under a permutation.
    fn image(&mut self, state: &[u32], element: usize) -> Vec<u32> {
        let tables = self.tables;
        let group = &tables.model.shape().group;
        let mut image = state.to_vec();
        for (process, &node) in state[..self.processes].iter().enumerate() {
            self.image_hashes(node);
            let place = group.elements[element][process] as usize;
            image[place] = self.orbits.images[node as usize * group.len() + element];
        }
        for monitor in self.processes..self.processes + self.monitors {
            image[monitor] = tables.model.monitor_image(state[monitor], element);
        }
        image
    }

    /// Make sure that a property has the same value in all images of a state.
    pub(crate) fn audit_property(
        &mut self,
        property: usize,
        state: &[u32],
        value: Truth,
        reads: &PropertyReads,
    ) -> Result<()> {
        // All that the property has read in any image, closed under permutations: states that agree in this have images that
        // agree in what it reads.
        let mut key = std::mem::take(&mut self.orbits.key);
        self.read_scope(property, state, &mut key);
        let known = self.orbits.audited[property].contains(&key[..]);
        self.orbits.key = key;
        if known {
            return Ok(());
        }
        for element in 1..self.orbits.size {
            let image = self.image(state, element);
            if self.evaluate(property, &image, reads)? != value {
                return Err(self.tables.model.asymmetry(element, Evidence::Property { property, value }));
            }
        }
        let mut key = Vec::new();
        self.read_scope(property, state, &mut key);
        self.orbits.audited[property].insert(key.into());
        Ok(())
    }

    /// The values of all that a property may read in images.
    fn read_scope(&mut self, property: usize, state: &[u32], key: &mut Vec<u32>) {
        key.clear();
        for &component in &self.orbits.scopes[property] {
            if let Component::Local(i) | Component::Inbox(i) = component {
                self.nodes.at(self.tables, state[i as usize]);
            }
            key.push(self.nodes.value(self.processes, state, component));
        }
    }

    /// A property was seen to read a component: it may read its images as well.
    pub(crate) fn widen(&mut self, property: usize, component: Component) {
        for element in &self.tables.model.shape().group.elements {
            let image = match component {
                Component::Local(process) => Component::Local(element[process as usize]),
                Component::Inbox(process) => Component::Inbox(element[process as usize]),
                Component::Monitor(_) => component,
            };
            if !self.orbits.scopes[property].contains(&image) {
                self.orbits.scopes[property].push(image);
                self.orbits.audited[property].clear();
            }
        }
    }

    /// What the transitions of a node add to the fingerprints of the images.
    pub(crate) fn load_deltas(&mut self, node: NodeId, expansion: &Expansion) {
        let tables = self.tables;
        let group = &tables.model.shape().group;
        let process = tables.node(node).process;
        let before = self.image_hashes(node).to_vec();
        for (transition, details) in expansion.transitions.iter().zip(&expansion.details) {
            let start = self.orbits.deltas.len();
            let after = self.image_hashes(transition.target).to_vec();
            self.orbits.deltas.extend(after.iter().zip(&before).map(|(after, before)| after.wrapping_sub(*before)));
            let Orbits { deltas, messages, .. } = &mut self.orbits;
            // What it sends to itself is in the target.
            for &(to, message) in details.sends().iter().filter(|(to, _)| transition.additive && *to != process) {
                let hashes = messages.entry(message).or_insert_with(|| {
                    let image = |element| tables.model.message_image(message, element);
                    (0..group.len()).map(|element| tables.model.message_hash(image(element))).collect()
                });
                for ((delta, hash), element) in deltas[start..].iter_mut().zip(hashes).zip(&group.elements) {
                    *delta = delta.wrapping_add(hash::pending(element[to as usize] as usize, *hash));
                }
            }
        }
    }
}

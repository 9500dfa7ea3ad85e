//! Symmetry in a view: the fingerprint of the orbit of a state, and the audit of properties.
//!
//! A state stays as it was reached. Its orbit is represented by the least fingerprint of its images: of all, where they are few,
//! because fingerprints are sums and those of all images are sums of tabulated numbers; else of some (`canonical`).

use crate::symmetry::audit::{Evidence, audit_limit};
use crate::symmetry::canonical::Canonical;
use crate::system::hash;
use crate::system::model::{Component, MessageId, MonitorId, Result, Shape, Truth};
use crate::system::reads::PropertyReads;
use crate::system::successors::{Successor, TransitionRef, View, bit};
use crate::system::tables::{NodeId, Tables, Transition};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

/// Where a node was not met yet.
const UNMET: u64 = u64::MAX;

/// What a view keeps for symmetry; nothing without it.
#[derive(Default)]
pub(crate) struct Orbits {
    /// Whether there is any symmetry.
    any: bool,
    /// Images of a state, if all of them are looked at; else 0.
    size: usize,
    canonical: Canonical,
    /// Per node, its images and their hashes.
    images: Vec<NodeId>,
    image_hashes: Vec<u64>,
    /// Per node, where its part of `deltas` begins; `UNMET` if the node was not audited.
    deltas_of: Vec<u64>,
    /// Per transition, what it adds to the fingerprint of each image.
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
            any: !shape.group.is_trivial(),
            size: if shape.group.is_listed() { shape.group.elements.len() } else { 0 },
            scopes: vec![Vec::new(); shape.properties.len()],
            audited: vec![FxHashSet::default(); shape.properties.len()],
            ..Orbits::default()
        }
    }

    /// Whether there is any symmetry.
    #[inline]
    pub fn any(&self) -> bool {
        self.any
    }
}

impl Tables {
    /// How many images of a state its fingerprint is the least of, at most.
    pub fn images_compared(&self) -> u64 {
        let group = &self.model.shape().group;
        let all = if group.is_listed() { group.elements.len() } else { group.rotations.len() };
        self.leaves.load(Relaxed) * all.max(1) as u64
    }
}

impl View<'_> {
    /// The fingerprint of the orbit of a state.
    pub(crate) fn orbit_fingerprint(&mut self, state: &[u32]) -> u64 {
        if self.orbits.size == 0 {
            return hash::orbit(self.orbits.canonical.fingerprint(self.tables, state));
        }
        let sums = self.image_sums(state);
        let least = sums.iter().copied().min().expect("the identity is an image");
        self.orbits.sums = sums;
        hash::orbit(least)
    }

    /// `View::successors` with the fingerprints of orbits.
    pub(crate) fn orbit_successors(
        &mut self,
        state: &[u32],
        processes: u64,
        mut each: impl FnMut(Successor),
    ) -> Result<()> {
        let listed = self.orbits.size > 0;
        let sums = if listed { self.image_sums(state) } else { Vec::new() };
        let mut after = Vec::new();
        for process in (0..self.movers).filter(|&process| processes & bit(process) != 0) {
            let node = self.situated(state, process)?;
            self.audit_node(node)?;
            let transitions = self.tables.transitions(node)?;
            for (index, transition) in transitions.iter().enumerate() {
                let via = TransitionRef { process: process as u16, index: index as u32 };
                if transition.plain && listed {
                    let start = self.orbits.deltas_of[node as usize] as usize + index * sums.len();
                    let deltas = &self.orbits.deltas[start..start + sums.len()];
                    let least = sums.iter().zip(deltas).map(|(sum, delta)| sum.wrapping_add(*delta)).min();
                    let fingerprint = hash::orbit(least.expect("the identity is an image"));
                    each(Successor { fingerprint, via, moves: transition.leads_on, fails: false });
                    continue;
                }
                let mut successor = Successor { fingerprint: 0, via, moves: transition.leads_on, fails: false };
                if !transition.plain {
                    let own = self.own_fingerprint(state);
                    let Some(involved) = self.involved(state, own, via)? else { continue };
                    successor = involved;
                }
                if !successor.fails {
                    after.clear();
                    after.extend_from_slice(state);
                    self.take(&mut after, via)?;
                    successor.fingerprint = self.orbit_fingerprint(&after);
                }
                each(successor);
            }
        }
        if listed {
            self.orbits.sums = sums;
        }
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
        // If it turns out to read more, then fewer states agree.
        while !self.audit_images(property, state, value, reads)? {}
        Ok(())
    }

    /// Make sure of that as far as is known what the property reads, and tell whether that is still so afterwards. Generators are
    /// applied to the state and in turn to its images.
    fn audit_images(&mut self, property: usize, state: &[u32], value: Truth, reads: &PropertyReads) -> Result<bool> {
        let tables = self.tables;
        let group = &tables.model.shape().group;
        let limit = audit_limit(group, tables.audited.load(Relaxed));
        let scope = self.orbits.scopes[property].len();
        let mut key = Vec::new();
        self.read_scope(property, state, &mut key);
        let mut met: FxHashSet<Box<[u32]>> = FxHashSet::from_iter([key.as_slice().into()]);
        let mut waiting = VecDeque::from([state.to_vec()]);
        while let Some(state) = waiting.pop_front() {
            for &element in &group.generators {
                let image = tables.state_image(&state, element);
                self.read_scope(property, &image, &mut key);
                if met.contains(&key[..]) {
                    continue;
                }
                let there = self.evaluate(property, &image, reads)?;
                if there != value {
                    return Err(tables.model.asymmetry(element, Evidence::Property { property, value, image: there }));
                }
                if self.orbits.scopes[property].len() != scope {
                    return Ok(false);
                }
                if met.len() as u64 >= limit {
                    tables.sampled.store(true, Relaxed);
                } else {
                    met.insert(key.as_slice().into());
                    waiting.push_back(image);
                }
            }
        }
        tables.audited.fetch_add(met.len() as u64, Relaxed);
        self.orbits.audited[property].extend(met);
        Ok(true)
    }

    /// The values of all that a property may read in images.
    fn read_scope(&mut self, property: usize, state: &[u32], key: &mut Vec<u32>) {
        key.clear();
        for at in 0..self.orbits.scopes[property].len() {
            key.push(self.value(state, self.orbits.scopes[property][at]));
        }
    }

    /// A property was seen to read a component: it may read its images as well.
    pub(crate) fn widen(&mut self, property: usize, component: Component) {
        let group = &self.tables.model.shape().group;
        let places = |process: u16| group.places(process as usize).iter().copied().chain([process]);
        let images: Vec<Component> = match component {
            Component::Field(process, part) => places(process).map(|place| Component::Field(place, part)).collect(),
            Component::Inbox(process) => places(process).map(Component::Inbox).collect(),
            Component::Monitor(_) => vec![component],
        };
        for image in images {
            if !self.orbits.scopes[property].contains(&image) {
                self.orbits.scopes[property].push(image);
                self.orbits.audited[property].clear();
            }
        }
    }

    /// Make sure that what a node can do is symmetric, before its transitions are taken.
    fn audit_node(&mut self, node: NodeId) -> Result<()> {
        let id = node as usize;
        if self.orbits.deltas_of.get(id).is_some_and(|&begin| begin != UNMET) {
            return Ok(());
        }
        self.tables.audit(node)?;
        let begin = self.orbits.deltas.len() as u64;
        if self.orbits.size > 0 {
            self.load_deltas(node, self.tables.transitions(node)?);
        }
        if self.orbits.deltas_of.len() <= id {
            self.orbits.deltas_of.resize(id + 1, UNMET);
        }
        self.orbits.deltas_of[id] = begin;
        Ok(())
    }

    /// What the transitions of a node add to the fingerprints of the images.
    fn load_deltas(&mut self, node: NodeId, transitions: &[Transition]) {
        let tables = self.tables;
        let group = &tables.model.shape().group;
        let process = tables.node(node).process;
        let before = self.image_hashes(tables.without_cells(node).0).to_vec();
        for transition in transitions {
            let details = tables.details(transition);
            let start = self.orbits.deltas.len();
            let after = self.image_hashes(transition.target).to_vec();
            self.orbits.deltas.extend(after.iter().zip(&before).map(|(after, before)| after.wrapping_sub(*before)));
            let Orbits { deltas, messages, .. } = &mut self.orbits;
            // What it sends to itself is in the target.
            for &(to, message) in details.sends().iter().filter(|(to, _)| transition.additive && *to != process) {
                let hashes = messages.entry(message).or_insert_with(|| {
                    let image = |element| tables.model.message_image(message, element);
                    (0..group.elements.len()).map(|element| tables.model.message_hash(image(element))).collect()
                });
                for ((delta, hash), element) in deltas[start..].iter_mut().zip(hashes).zip(&group.elements) {
                    *delta = delta.wrapping_add(hash::pending(element[to as usize] as usize, *hash));
                }
            }
        }
    }
}

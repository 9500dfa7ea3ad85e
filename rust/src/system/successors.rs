//! A worker's own view of the tables: copies of the nodes that it has met, read without locks. A miss asks `tables`.
//!
//! The inner loop of every search is `successors`. A plain transition (almost all are) costs one addition, because the
//! fingerprint of a bag of messages is a sum. The content of a successor is computed (`take`) only if the successor is
//! new.

use crate::symmetry::orbit::Orbits;
use crate::system::hash;
use crate::system::model::{Component, EventId, Failure, MonitorId, Observed, Result, Status, Truth, monitor_bit};
use crate::system::property::Tree;
use crate::system::reads::{Changes, PropertyReads};
use crate::system::tables::{BundleId, Expansion, NO_BUDGET, NodeId, Tables, Transition};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A successor that has not been built: its fingerprint, and how to get there.
#[derive(Clone, Copy, Debug)]
pub struct Successor {
    pub fingerprint: u64,
    pub via: TransitionRef,
    /// A step of a process (not of the network or the environment) that leads to another state.
    pub moves: bool,
    /// The step failed, and leads nowhere.
    pub fails: bool,
}

/// The successors of a state as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct SuccessorSummary {
    pub transitions: u64,
    /// A step of a process leads out of the state, or fails; if none does, the state is terminal.
    pub moves: bool,
    /// A step that does not fail leads out of the state.
    pub leads_on: bool,
    /// In some step, an assertion fails. (A mistake of the model that shows in a step ends the search instead.)
    pub fails: bool,
    /// In some step, user code raises an exception.
    pub raises: bool,
}

impl SuccessorSummary {
    /// With further successors of the same state.
    pub fn add(&mut self, more: SuccessorSummary) {
        self.transitions += more.transitions;
        self.moves |= more.moves;
        self.leads_on |= more.leads_on;
        self.fails |= more.fails;
        self.raises |= more.raises;
    }
}

/// A transition of the node of a process, by its index there.
#[derive(Clone, Copy, Debug)]
pub struct TransitionRef {
    pub process: u16,
    pub index: u32,
}

/// What the inner loop reads of a transition.
#[derive(Clone, Copy)]
pub(crate) struct HotTransition {
    pub delta: u64,
    target: NodeId,
    /// Its effects: a range of `View::effects`.
    deliveries: (u32, u16),
    pub moves: bool,
    altered: u64,
    /// Nothing but the delta matters for the fingerprint.
    pub plain: bool,
    /// Nothing but the target and the effects matter for the successor.
    simple: bool,
}

/// Values that are cheap to hold once and dear to ask for: `u32::MAX` marks a node that was not met yet.
#[derive(Default)]
pub(crate) struct Nodes {
    locals: Vec<u32>,
    inboxes: Vec<u32>,
    hashes: Vec<u64>,
    unborn: Vec<bool>,
}

impl Nodes {
    #[inline]
    pub(crate) fn at(&mut self, tables: &Tables, id: NodeId) -> usize {
        let id = id as usize;
        if self.locals.get(id).is_none_or(|&local| local == u32::MAX) {
            self.load(tables, id);
        }
        id
    }

    /// The value of a component of a state whose node was met.
    #[inline]
    pub(crate) fn value(&self, processes: usize, state: &[u32], component: Component) -> u32 {
        match component {
            Component::Local(i) => self.locals[state[i as usize] as usize],
            Component::Inbox(i) => self.inboxes[state[i as usize] as usize],
            Component::Monitor(i) => state[processes + i as usize],
        }
    }

    #[cold]
    fn load(&mut self, tables: &Tables, id: usize) {
        if self.locals.len() <= id {
            self.locals.resize(id + 1, u32::MAX);
            self.inboxes.resize(id + 1, 0);
            self.hashes.resize(id + 1, 0);
            self.unborn.resize(id + 1, false);
        }
        let node = tables.node(id as NodeId);
        self.locals[id] = node.local;
        self.inboxes[id] = node.inbox;
        self.hashes[id] = node.hash;
        self.unborn[id] = node.status == Status::Unborn;
    }
}

pub struct View<'t> {
    pub tables: &'t Tables,
    pub(crate) nodes: Nodes,
    expansions: Vec<Option<Arc<Expansion>>>,
    /// Per node, its part of `hot`; empty and beginning at `u32::MAX` if it was not met yet.
    pub(crate) ranges: Vec<(u32, u32)>,
    pub(crate) hot: Vec<HotTransition>,
    deliveries: Vec<(u16, BundleId)>,
    /// (node, bundle) to the node after arrival.
    arrivals: FxHashMap<u64, NodeId>,
    observations: FxHashMap<(u16, MonitorId, EventId), Observed>,
    monitor_hashes: FxHashMap<(u16, MonitorId), u64>,
    trees: Vec<Tree>,
    pub(crate) orbits: Orbits,
    pub(crate) processes: usize,
    pub(crate) monitors: usize,
    /// Components of a state.
    pub width: usize,
}

pub(crate) const UNMET: (u32, u32) = (u32::MAX, u32::MAX);

impl<'t> View<'t> {
    pub fn new(tables: &'t Tables) -> Self {
        let shape = tables.model.shape();
        View {
            tables,
            nodes: Nodes::default(),
            expansions: Vec::new(),
            ranges: Vec::new(),
            hot: Vec::new(),
            deliveries: Vec::new(),
            arrivals: FxHashMap::default(),
            observations: FxHashMap::default(),
            monitor_hashes: FxHashMap::default(),
            trees: shape.properties.iter().map(|_| Tree::default()).collect(),
            orbits: Orbits::new(shape),
            processes: shape.processes,
            monitors: shape.monitors,
            width: shape.width(),
        }
    }

    /// The fingerprint of a state from scratch; with symmetry, the one of its orbit.
    pub fn fingerprint(&mut self, state: &[u32]) -> u64 {
        if !self.orbits.any() {
            return self.own_fingerprint(state);
        }
        self.orbit_fingerprint(state)
    }

    /// The fingerprint of a state as it is.
    pub(crate) fn own_fingerprint(&mut self, state: &[u32]) -> u64 {
        let mut sum = 0u64;
        for (position, &value) in state.iter().enumerate() {
            sum = sum.wrapping_add(if position < self.processes {
                let node = self.nodes.at(self.tables, value);
                self.nodes.hashes[node]
            } else if position < self.processes + self.monitors {
                self.monitor_hash(position - self.processes, value)
            } else {
                hash::budget(position - self.processes - self.monitors, value)
            });
        }
        hash::fingerprint(sum)
    }

    /// Hand every successor of a state by a transition of some `processes` (as bits) to `each`.
    #[inline]
    pub fn successors(
        &mut self,
        state: &[u32],
        fingerprint: u64,
        processes: u64,
        mut each: impl FnMut(Successor),
    ) -> Result<()> {
        if self.orbits.any() {
            return self.orbit_successors(state, processes, each);
        }
        for process in 0..self.processes {
            if processes & bit(process) == 0 {
                continue;
            }
            let node = state[process];
            let mut range = self.ranges.get(node as usize).copied().unwrap_or(UNMET);
            if range == UNMET {
                range = self.expand(node)?;
            }
            for index in range.0..range.1 {
                let hot = self.hot[index as usize];
                let via = TransitionRef { process: process as u16, index: index - range.0 };
                if hot.plain {
                    let fingerprint = hash::fingerprint(fingerprint.wrapping_add(hot.delta));
                    each(Successor { fingerprint, via, moves: hot.moves, fails: false });
                } else if let Some(successor) = self.involved(state, fingerprint, via)? {
                    each(successor);
                }
            }
        }
        Ok(())
    }

    /// Hand the fingerprint of every successor and the way to it to `each`, and tell what they are like as a whole.
    #[inline]
    pub fn for_each_successor(
        &mut self,
        state: &[u32],
        fingerprint: u64,
        processes: u64,
        mut each: impl FnMut(u64, TransitionRef),
    ) -> Result<SuccessorSummary> {
        let mut summary = SuccessorSummary::default();
        let mut failed: Vec<TransitionRef> = Vec::new();
        self.successors(state, fingerprint, processes, |successor| {
            summary.transitions += 1;
            summary.moves |= successor.moves;
            if successor.fails {
                failed.push(successor.via);
            } else {
                summary.leads_on |= successor.moves;
                each(successor.fingerprint, successor.via);
            }
        })?;
        for via in failed {
            let failure = self.failure(state, via)?;
            if !failure.violation {
                return Err(Box::new(Failure::clone(&failure)));
            }
            *if failure.exception.is_some() { &mut summary.raises } else { &mut summary.fails } = true;
        }
        Ok(summary)
    }

    /// Why a transition fails: in its handler, or in a monitor that observes what it announces.
    pub fn failure(&mut self, state: &[u32], via: TransitionRef) -> Result<Arc<Failure>> {
        let expansion = self.expansion(state[via.process as usize])?;
        let details = &expansion.details[via.index as usize];
        if let Some(failure) = details.failure() {
            return Ok(Arc::new(failure.clone()));
        }
        for monitor in 0..self.monitors {
            if let Err(failure) = self.observe(monitor, state[self.processes + monitor], details.events())? {
                return Ok(failure);
            }
        }
        unreachable!("a transition that fails has a failure")
    }

    #[cold]
    pub(crate) fn expand(&mut self, node: NodeId) -> Result<(u32, u32)> {
        let id = node as usize;
        let expansion = self.tables.expansion(node)?;
        if self.ranges.len() <= id {
            self.ranges.resize(id + 1, UNMET);
            self.expansions.resize(id + 1, None);
        }
        if self.orbits.any() {
            self.tables.audit(node)?;
            self.load_deltas(node, &expansion);
        }
        let start = self.hot.len() as u32;
        let deliveries = self.deliveries.len() as u32;
        self.deliveries.extend_from_slice(&expansion.deliveries);
        self.hot.extend(expansion.transitions.iter().map(|t| {
            let simple = t.budget == NO_BUDGET && !t.special;
            HotTransition {
                delta: t.delta,
                target: t.target,
                deliveries: (deliveries + t.deliveries.0, (t.deliveries.1 - t.deliveries.0) as u16),
                moves: t.moves && t.delta != t.history,
                altered: t.altered,
                plain: simple && (t.additive || t.deliveries.0 == t.deliveries.1),
                simple,
            }
        }));
        self.ranges[id] = (start, self.hot.len() as u32);
        self.expansions[id] = Some(expansion);
        Ok(self.ranges[id])
    }

    /// A successor whose fingerprint depends on more than its own node: budgets, monitors, births, those it sends to.
    pub(crate) fn involved(
        &mut self,
        state: &[u32],
        fingerprint: u64,
        via: TransitionRef,
    ) -> Result<Option<Successor>> {
        let expansion = self.expansion(state[via.process as usize])?;
        let transition = expansion.transitions[via.index as usize];
        let details = &expansion.details[via.index as usize];
        let mut sum = fingerprint.wrapping_add(transition.delta);
        if transition.budget != NO_BUDGET {
            let budget = transition.budget as usize;
            let left = state[self.processes + self.monitors + budget];
            if left == 0 {
                return Ok(None);
            }
            sum = sum.wrapping_sub(hash::budget(budget, left)).wrapping_add(hash::budget(budget, left - 1));
        }
        for &(slot, wanted) in details.expected() {
            let node = self.nodes.at(self.tables, state[slot as usize]);
            if self.nodes.unborn[node] != wanted {
                return Ok(None);
            }
        }
        let mut fails = details.failure().is_some();
        for monitor in 0..self.monitors {
            let before = state[self.processes + monitor];
            let Ok(after) = self.observe(monitor, before, details.events())? else {
                fails = true;
                break;
            };
            if after != before {
                sum = sum.wrapping_sub(self.monitor_hash(monitor, before));
                sum = sum.wrapping_add(self.monitor_hash(monitor, after));
            }
        }
        if !transition.additive {
            for &(to, bundle) in deliveries(&expansion, transition) {
                let before = state[to as usize];
                let after = self.arrive(before, bundle);
                let (old, new) = (self.nodes.at(self.tables, before), self.nodes.at(self.tables, after));
                sum = sum.wrapping_sub(self.nodes.hashes[old]).wrapping_add(self.nodes.hashes[new]);
            }
        }
        let moves = transition.moves && (fails || sum.wrapping_sub(transition.history) != fingerprint);
        Ok(Some(Successor { fingerprint: hash::fingerprint(sum), via, moves, fails }))
    }

    /// Turn a state into its successor, and tell where the two differ.
    pub fn take(&mut self, state: &mut [u32], via: TransitionRef) -> Result<Changes> {
        let process = via.process as usize;
        let node = state[process];
        let mut range = self.ranges.get(node as usize).copied().unwrap_or(UNMET);
        if range == UNMET {
            range = self.expand(node)?;
        }
        let hot = self.hot[(range.0 + via.index) as usize];
        let mut changes = Changes { altered: hot.altered, changed: bit(process) };
        if !hot.simple {
            self.take_involved(state, node, via, &mut changes)?;
        }
        state[process] = hot.target;
        for index in hot.deliveries.0..hot.deliveries.0 + u32::from(hot.deliveries.1) {
            let (to, bundle) = self.deliveries[index as usize];
            state[to as usize] = self.arrive(state[to as usize], bundle);
            changes.changed |= bit(to as usize);
        }
        Ok(changes)
    }

    /// The parts of `take` that few transitions have: budgets, monitors, births.
    fn take_involved(
        &mut self,
        state: &mut [u32],
        node: NodeId,
        via: TransitionRef,
        changes: &mut Changes,
    ) -> Result<()> {
        let expansion = self.expansion(node)?;
        let transition = expansion.transitions[via.index as usize];
        let details = &expansion.details[via.index as usize];
        if transition.budget != NO_BUDGET {
            state[self.processes + self.monitors + transition.budget as usize] -= 1;
        }
        for monitor in 0..self.monitors {
            let position = self.processes + monitor;
            let after = self.observe(monitor, state[position], details.events())?;
            let after = after.expect("a transition that fails is not taken");
            if after != state[position] {
                state[position] = after;
                changes.altered |= monitor_bit(monitor);
            }
        }
        if !details.spawns().is_empty() {
            changes.altered = u64::MAX;
        }
        Ok(())
    }

    /// Whether a transition leaves the node of its process as it is.
    pub fn stays(&self, state: &[u32], via: TransitionRef) -> bool {
        let node = state[via.process as usize];
        self.hot[(self.ranges[node as usize].0 + via.index) as usize].target == node
    }

    /// Which transitions of a node lead to another state; none if that depends on more than the node.
    pub(crate) fn local_moves(&mut self, node: NodeId) -> Result<Option<Vec<bool>>> {
        let mut range = self.ranges.get(node as usize).copied().unwrap_or(UNMET);
        if range == UNMET {
            range = self.expand(node)?;
        }
        let hot = &self.hot[range.0 as usize..range.1 as usize];
        let local = !self.orbits.any() && hot.iter().all(|hot| hot.plain);
        Ok(local.then(|| hot.iter().map(|hot| hot.moves || hot.delta != 0).collect()))
    }

    /// The transitions of a node.
    #[inline]
    pub fn expansion(&mut self, node: NodeId) -> Result<Arc<Expansion>> {
        if self.expansions.get(node as usize).is_none_or(Option::is_none) {
            self.expand(node)?;
        }
        Ok(self.expansions[node as usize].clone().expect("just loaded"))
    }

    #[inline]
    fn arrive(&mut self, node: NodeId, bundle: BundleId) -> NodeId {
        let key = u64::from(node) << 32 | u64::from(bundle);
        *self.arrivals.entry(key).or_insert_with(|| self.tables.arrival(node, bundle))
    }

    fn observe(&mut self, monitor: usize, mut state: MonitorId, events: &[EventId]) -> Result<Observed> {
        for &event in events {
            let key = (monitor as u16, state, event);
            let observed = match self.observations.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let found = self.tables.observe(monitor, state, event)?;
                    self.observations.insert(key, found.clone());
                    found
                }
            };
            state = match observed {
                Ok(next) => next,
                Err(failure) => return Ok(Err(failure)),
            };
        }
        Ok(Ok(state))
    }

    fn monitor_hash(&mut self, monitor: usize, state: MonitorId) -> u64 {
        let tables = self.tables;
        let hash = || hash::monitor(monitor, tables.model.monitor_hash(state));
        *self.monitor_hashes.entry((monitor as u16, state)).or_insert_with(hash)
    }

    /// A property on a state.
    pub fn evaluate(&mut self, property: usize, state: &[u32], reads: &PropertyReads) -> Result<Truth> {
        let (nodes, tables, processes) = (&mut self.nodes, self.tables, self.processes);
        let known = self.trees[property].find(|component| {
            if let Component::Local(i) | Component::Inbox(i) = component {
                nodes.at(tables, state[i as usize]);
            }
            nodes.value(processes, state, component)
        });
        if let Some(value) = known {
            return Ok(value);
        }
        let (value, path, fields) = self.tables.evaluate(property, state)?;
        self.trees[property].insert(&path, value);
        reads.fields[property].fetch_or(fields, Relaxed);
        for step in &path {
            self.widen(property, step.component);
            if let Component::Inbox(process) = step.component {
                reads.inboxes[property].fetch_or(bit(process as usize), Relaxed);
            }
        }
        Ok(value)
    }
}

#[inline]
fn deliveries(expansion: &Expansion, transition: Transition) -> &[(u16, BundleId)] {
    &expansion.deliveries[transition.deliveries.0 as usize..transition.deliveries.1 as usize]
}

/// A process as one of 64 bits; processes that share a bit are told apart less well, never wrongly.
#[inline]
pub(crate) fn bit(process: usize) -> u64 {
    1 << (process % 64)
}

//! A worker's own view of the tables: copies of what it has met, read without locks; a miss asks `tables`.

use crate::control::Control;
use crate::hash;
use crate::model::{Component, EventId, Failure, MonitorId, PropertyKind, Result, Status};
use crate::property::Tree;
use crate::tables::{BundleId, Expansion, NO_BUDGET, Node, NodeId, Tables};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A successor that has not been built: the fingerprint, and the components in which it differs from its parent.
pub struct Successor<'a> {
    pub fingerprint: u64,
    pub changes: &'a [(u16, u32)],
    /// A step of a process (not of the network or the environment).
    pub moves: bool,
    /// The process whose node has this transition, and the transition's index there.
    pub process: usize,
    pub transition: usize,
    /// The step failed, and leads nowhere.
    pub failure: Option<&'a Failure>,
}

pub struct Lens<'t> {
    pub tables: &'t Tables,
    nodes: Vec<Option<Node>>,
    expansions: Vec<Option<Arc<Expansion>>>,
    /// (node, bundle) to the node after arrival and the difference of the hashes.
    arrivals: FxHashMap<u64, (NodeId, u64)>,
    observations: FxHashMap<(u16, MonitorId, EventId), MonitorId>,
    monitor_hashes: FxHashMap<(u16, MonitorId), u64>,
    trees: Vec<Tree>,
    changes: Vec<(u16, u32)>,
    processes: usize,
    monitors: usize,
    /// Components of a state.
    pub width: usize,
}

impl<'t> Lens<'t> {
    pub fn new(tables: &'t Tables) -> Self {
        let shape = tables.model.shape();
        Lens {
            tables,
            nodes: Vec::new(),
            expansions: Vec::new(),
            arrivals: FxHashMap::default(),
            observations: FxHashMap::default(),
            monitor_hashes: FxHashMap::default(),
            trees: shape.properties.iter().map(|_| Tree::default()).collect(),
            changes: Vec::new(),
            processes: shape.processes,
            monitors: shape.monitors,
            width: shape.width(),
        }
    }

    /// The fingerprint of a state from scratch.
    pub fn fingerprint(&mut self, state: &[u32]) -> u64 {
        let mut sum = 0u64;
        for (position, &value) in state.iter().enumerate() {
            sum = sum.wrapping_add(if position < self.processes {
                node(&mut self.nodes, self.tables, value).hash
            } else if position < self.processes + self.monitors {
                monitor_hash(&mut self.monitor_hashes, self.tables, position - self.processes, value)
            } else {
                hash::budget(position - self.processes - self.monitors, value)
            });
        }
        hash::fingerprint(sum)
    }

    /// Hand every successor of a state to `each`.
    pub fn successors(&mut self, state: &[u32], fingerprint: u64, mut each: impl FnMut(Successor)) -> Result<()> {
        for process in 0..self.processes {
            let id = state[process] as usize;
            if self.expansions.len() <= id {
                self.expansions.resize(id + 1, None);
            }
            if self.expansions[id].is_none() {
                self.expansions[id] = Some(self.tables.expansion(id as NodeId)?);
            }
            let expansion = self.expansions[id].as_deref().expect("just loaded");
            for (index, transition) in expansion.transitions.iter().enumerate() {
                self.changes.clear();
                let mut sum = fingerprint.wrapping_add(transition.delta);
                if transition.budget != NO_BUDGET {
                    let budget = transition.budget as usize;
                    let position = self.processes + self.monitors + budget;
                    let left = state[position];
                    if left == 0 {
                        continue;
                    }
                    self.changes.push((position as u16, left - 1));
                    sum = sum.wrapping_sub(hash::budget(budget, left)).wrapping_add(hash::budget(budget, left - 1));
                }
                let mut failure = None;
                if transition.special {
                    let details = &expansion.details[index];
                    let unborn = |nodes: &mut Vec<Option<Node>>, slot: u16| {
                        node(nodes, self.tables, state[slot as usize]).status == Status::Unborn
                    };
                    if details.expected().iter().any(|&(slot, wanted)| unborn(&mut self.nodes, slot) != wanted) {
                        continue;
                    }
                    failure = details.failure();
                    for monitor in 0..self.monitors {
                        let position = self.processes + monitor;
                        let before = state[position];
                        let mut after = before;
                        for &event in details.events() {
                            let key = (monitor as u16, after, event);
                            after = match self.observations.get(&key) {
                                Some(&known) => known,
                                None => {
                                    let found = self.tables.observe(monitor, after, event)?;
                                    self.observations.insert(key, found);
                                    found
                                }
                            };
                        }
                        if after != before {
                            let hashes = &mut self.monitor_hashes;
                            sum = sum.wrapping_sub(monitor_hash(hashes, self.tables, monitor, before));
                            sum = sum.wrapping_add(monitor_hash(hashes, self.tables, monitor, after));
                            self.changes.push((position as u16, after));
                        }
                    }
                }
                self.changes.push((process as u16, transition.target));
                for &(to, bundle) in &expansion.effects[transition.effects.0 as usize..transition.effects.1 as usize] {
                    let before = state[to as usize];
                    let key = u64::from(before) << 32 | u64::from(bundle);
                    let (after, delta) = match self.arrivals.get(&key) {
                        Some(&known) => known,
                        None => arrive(&mut self.arrivals, &mut self.nodes, self.tables, before, bundle),
                    };
                    sum = sum.wrapping_add(delta);
                    self.changes.push((to, after));
                }
                each(Successor {
                    fingerprint: hash::fingerprint(sum),
                    changes: &self.changes,
                    moves: transition.moves,
                    process,
                    transition: index,
                    failure,
                });
            }
        }
        Ok(())
    }

    /// A property on a state.
    pub fn evaluate(&mut self, property: usize, state: &[u32], reads: &Reads) -> Result<bool> {
        let (nodes, tables, processes) = (&mut self.nodes, self.tables, self.processes);
        let known = self.trees[property].find(|component| match component {
            Component::Local(i) => node(nodes, tables, state[i as usize]).local,
            Component::Inbox(i) => node(nodes, tables, state[i as usize]).inbox,
            Component::Monitor(i) => state[processes + i as usize],
        });
        if let Some(value) = known {
            return Ok(value);
        }
        let (value, path) = self.tables.evaluate(property, state)?;
        self.trees[property].insert(&path, value);
        for step in &path {
            reads.add(
                property,
                match step.component {
                    Component::Local(i) | Component::Inbox(i) => i as usize,
                    Component::Monitor(i) => processes + i as usize,
                },
            );
        }
        Ok(value)
    }
}

#[inline]
fn node(nodes: &mut Vec<Option<Node>>, tables: &Tables, id: NodeId) -> Node {
    if let Some(Some(found)) = nodes.get(id as usize) {
        return *found;
    }
    let found = tables.node(id);
    if nodes.len() <= id as usize {
        nodes.resize(id as usize + 1, None);
    }
    nodes[id as usize] = Some(found);
    found
}

#[cold]
fn arrive(
    arrivals: &mut FxHashMap<u64, (NodeId, u64)>,
    nodes: &mut Vec<Option<Node>>,
    tables: &Tables,
    before: NodeId,
    bundle: BundleId,
) -> (NodeId, u64) {
    let after = tables.arrival(before, bundle);
    let delta = node(nodes, tables, after).hash.wrapping_sub(node(nodes, tables, before).hash);
    arrivals.insert(u64::from(before) << 32 | u64::from(bundle), (after, delta));
    (after, delta)
}

fn monitor_hash(
    known: &mut FxHashMap<(u16, MonitorId), u64>,
    tables: &Tables,
    monitor: usize,
    state: MonitorId,
) -> u64 {
    *known
        .entry((monitor as u16, state))
        .or_insert_with(|| hash::monitor(monitor, tables.model.monitor_hash(state)))
}

/// Per property, the positions that some evaluation has read so far, shared by all workers.
///
/// A successor that differs from its parent in none of them has the parent's value: the parent's evaluation read only
/// such positions, and it was entered here before the parent was handed on.
pub struct Reads(Vec<AtomicU64>);

impl Reads {
    pub fn new(properties: usize, width: usize) -> Reads {
        let start = if width > 64 { u64::MAX } else { 0 };
        Reads((0..properties).map(|_| AtomicU64::new(start)).collect())
    }

    fn add(&self, property: usize, position: usize) {
        if position < 64 {
            self.0[property].fetch_or(1 << position, Relaxed);
        }
    }

    #[inline]
    fn touched(&self, property: usize, changed: u64) -> bool {
        changed == u64::MAX || self.0[property].load(Relaxed) & changed != 0
    }
}

/// All positions: for a state that has no parent.
pub const EVERYWHERE: u64 = u64::MAX;

/// The positions of a list of changes, as bits; all bits when there are more positions than bits.
#[inline]
pub fn positions(changes: &[(u16, u32)]) -> u64 {
    changes.iter().fold(0, |bits, &(position, _)| if position < 64 { bits | 1 << position } else { u64::MAX })
}

/// Evaluate the open properties on a state: the `final` ones if it is terminal, else the others that the changes may have
/// touched. Hands every property that has a finding here to `found`.
pub fn look(
    lens: &mut Lens,
    control: &Control,
    state: &[u32],
    changed: u64,
    terminal: bool,
    mut found: impl FnMut(usize),
) -> Result<()> {
    for (property, &kind) in control.kinds.iter().enumerate() {
        if (kind == PropertyKind::Final) != terminal || !control.is_open(property) {
            continue;
        }
        if !terminal && !control.reads.touched(property, changed) {
            continue;
        }
        let value = lens.evaluate(property, state, &control.reads)?;
        if value == (kind == PropertyKind::Reachable) {
            found(property);
        }
    }
    Ok(())
}

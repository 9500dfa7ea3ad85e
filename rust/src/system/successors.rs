//! A worker's view of the tables: successors of states, and properties on them.
//!
//! The inner loop of every search is `successors`. A plain transition (almost all are) costs one addition, because the
//! fingerprint of a bag of messages is a sum. The content of a successor is computed (`take`) only if the successor is
//! new.

use crate::symmetry::orbit::Orbits;
use crate::system::hash::{self, Sum};
use crate::system::model::{
    Component, EventId, Failure, LocalId, MonitorId, Observed, Quantifier, Result, Status, Truth, monitor_bit,
};
use crate::system::property::{Components, Place, Projection};
use crate::system::reads::{Changes, PropertyReads};
use crate::system::situated::Situated;
use crate::system::tables::{BLOCKED, BundleId, InboxId, Kind, NO_BUDGET, Node, NodeId, Tables, Transition};
use crate::system::tick::Times;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A successor that has not been built: its fingerprint, and how to get there.
#[derive(Clone, Copy, Debug)]
pub struct Successor<S = u64> {
    pub fingerprint: S,
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

/// Arrivals that a view remembers, so that it need not ask the tables, which have locks.
const REMEMBERED: usize = 1 << 15;

/// What a view keeps of a node. The tables have it too, but it is a longer way there.
#[derive(Clone, Copy)]
struct KnownNode<'t> {
    /// The status and the fields of its local state. Empty: the node was not met yet.
    parts: &'t [u32],
    hash: u64,
    high: u64,
    local: LocalId,
    inbox: InboxId,
}

/// The nodes that a view has met.
struct KnownNodes<'t> {
    tables: &'t Tables,
    known: Vec<KnownNode<'t>>,
}

impl<'t> KnownNodes<'t> {
    #[inline]
    fn get(&mut self, node: NodeId) -> KnownNode<'t> {
        match self.known.get(node as usize) {
            Some(known) if !known.parts.is_empty() => *known,
            _ => self.meet(node),
        }
    }

    #[cold]
    fn meet(&mut self, node: NodeId) -> KnownNode<'t> {
        let id = node as usize;
        if self.known.len() <= id {
            self.known.resize(id + 1, UNMET);
        }
        let Node { local, inbox, hash, high, .. } = *self.tables.node(node);
        self.known[id] = KnownNode { parts: self.tables.model.values().parts(local), hash, high, local, inbox };
        self.known[id]
    }
}

/// A state, for a projection.
struct Projecting<'a, 't> {
    nodes: &'a mut KnownNodes<'t>,
    state: &'a [u32],
    processes: usize,
}

impl<'t> Components<'t> for Projecting<'_, 't> {
    #[inline]
    fn local(&mut self, process: u16) -> (LocalId, &'t [u32]) {
        let node = self.nodes.get(self.state[process as usize]);
        (node.local, node.parts)
    }

    #[inline]
    fn inbox(&mut self, process: u16) -> InboxId {
        self.nodes.get(self.state[process as usize]).inbox
    }

    #[inline]
    fn monitor(&mut self, monitor: u16) -> MonitorId {
        self.state[self.processes + monitor as usize]
    }
}

const UNMET: KnownNode = KnownNode { parts: &[], hash: 0, high: 0, local: 0, inbox: 0 };

impl KnownNode<'_> {
    #[inline]
    fn sum<S: Sum>(&self) -> S {
        S::of(self.hash, self.high)
    }
}

pub struct View<'t> {
    pub tables: &'t Tables,
    nodes: KnownNodes<'t>,
    situated: Situated,
    /// By situated node.
    transitions: Vec<Option<&'t [Transition]>>,
    /// (node, bundle) and the node after arrival, in the place of their hash.
    arrivals: Box<[(u64, NodeId)]>,
    observations: FxHashMap<(u16, MonitorId, EventId), Observed>,
    monitor_hashes: FxHashMap<(u16, MonitorId), u128>,
    /// Per property and part, the values that were met.
    projections: Vec<Vec<Projection>>,
    pub(super) times: Times,
    pub(crate) orbits: Orbits,
    pub(crate) processes: usize,
    /// Those that are no cells.
    pub(crate) movers: usize,
    pub(crate) monitors: usize,
    /// Components of a state.
    pub width: usize,
    /// A step that sends to a full channel is not possible.
    blocks: bool,
}

impl<'t> View<'t> {
    pub fn new(tables: &'t Tables) -> Self {
        let shape = tables.model.shape();
        View {
            tables,
            nodes: KnownNodes { tables, known: Vec::new() },
            situated: Situated::new(shape),
            transitions: Vec::new(),
            arrivals: vec![(u64::MAX, 0); REMEMBERED].into(),
            observations: FxHashMap::default(),
            monitor_hashes: FxHashMap::default(),
            projections: (shape.quantifiers.iter())
                .map(|quantifier| (0..=quantifier.parts).map(|_| Projection::default()).collect())
                .collect(),
            times: Times::default(),
            orbits: Orbits::new(shape),
            processes: shape.processes,
            movers: shape.movers(),
            monitors: shape.monitors,
            width: shape.width(),
            blocks: shape.blocks().is_some(),
        }
    }

    /// The node of a process in a state, with the cells that its steps read.
    #[inline]
    pub(crate) fn situated(&mut self, state: &[u32], process: usize) -> Result<NodeId> {
        self.situated.node(self.tables, state, process)
    }

    /// A transition of a process in a state.
    pub(crate) fn transition(&mut self, state: &[u32], via: TransitionRef) -> Result<Transition> {
        let node = self.situated(state, via.process as usize)?;
        Ok(self.transitions(node)?[via.index as usize])
    }

    #[inline]
    fn transitions(&mut self, node: NodeId) -> Result<&'t [Transition]> {
        match self.transitions.get(node as usize) {
            Some(Some(known)) => Ok(known),
            _ => self.expand(node),
        }
    }

    #[cold]
    fn expand(&mut self, node: NodeId) -> Result<&'t [Transition]> {
        let id = node as usize;
        let found = self.tables.transitions(node)?;
        if self.transitions.len() <= id {
            self.transitions.resize(id + 1, None);
        }
        self.transitions[id] = Some(found);
        Ok(found)
    }

    /// The value of a component of a state.
    #[inline]
    pub(crate) fn value(&mut self, state: &[u32], component: Component) -> u32 {
        match component {
            // A process that is unborn has no fields.
            Component::Field(process, part) => {
                self.nodes.get(state[process as usize]).parts.get(part as usize).copied().unwrap_or(u32::MAX)
            }
            Component::Inbox(process) => self.nodes.get(state[process as usize]).inbox,
            Component::Monitor(monitor) => state[self.processes + monitor as usize],
        }
    }

    /// The narrow fingerprint of a state from scratch; with symmetry, the one of its orbit.
    pub fn fingerprint(&mut self, state: &[u32]) -> u64 {
        self.fingerprint_of(state)
    }

    /// The fingerprint of a state from scratch; with symmetry, the one of its orbit, which is narrow.
    pub fn fingerprint_of<S: Sum>(&mut self, state: &[u32]) -> S {
        if !self.orbits.any() {
            return self.own_fingerprint(state);
        }
        S::of(self.orbit_fingerprint(state), 0)
    }

    /// The fingerprint of a state as it is.
    pub(crate) fn own_fingerprint<S: Sum>(&mut self, state: &[u32]) -> S {
        let mut sum = S::ZERO;
        for (position, &value) in state.iter().enumerate() {
            sum = sum.plus(if position < self.processes {
                self.nodes.get(value).sum()
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
    pub fn successors<S: Sum>(
        &mut self,
        state: &[u32],
        fingerprint: S,
        processes: u64,
        mut each: impl FnMut(Successor<S>),
    ) -> Result<()> {
        if self.orbits.any() {
            return self.orbit_successors(state, processes, |Successor { fingerprint, via, moves, fails }| {
                each(Successor { fingerprint: S::of(fingerprint, 0), via, moves, fails });
            });
        }
        for process in 0..self.movers {
            if processes & bit(process) == 0 {
                continue;
            }
            let node = self.situated(state, process)?;
            let transitions = self.transitions(node)?;
            for (index, transition) in transitions.iter().enumerate() {
                let via = TransitionRef { process: process as u16, index: index as u32 };
                if transition.plain {
                    let fingerprint = hash::fingerprint(fingerprint.plus(transition.delta()));
                    each(Successor { fingerprint, via, moves: transition.leads_on, fails: false });
                } else if transition.simple {
                    let sum = self.sum_after(state, fingerprint, transition);
                    let moves = transition.moves && sum != fingerprint;
                    each(Successor { fingerprint: hash::fingerprint(sum), via, moves, fails: false });
                } else if let Some(successor) = self.involved(state, fingerprint, via)? {
                    each(successor);
                }
            }
        }
        Ok(())
    }

    /// Hand the fingerprint of every successor and the way to it to `each`, and tell what they are like as a whole.
    #[inline]
    pub fn for_each_successor<S: Sum>(
        &mut self,
        state: &[u32],
        fingerprint: S,
        processes: u64,
        mut each: impl FnMut(S, TransitionRef),
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
        let details = self.tables.details(&self.transition(state, via)?);
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

    /// The sum of the components after a transition, as far as its own node and those it sends to change it.
    #[inline]
    fn sum_after<S: Sum>(&mut self, state: &[u32], fingerprint: S, transition: &Transition) -> S {
        let mut sum = fingerprint.plus(transition.delta());
        if !transition.additive {
            for &(to, bundle) in self.tables.deliveries(transition) {
                let before = state[to as usize];
                let after = self.arrive(before, bundle);
                sum = sum.minus(self.nodes.get(before).sum()).plus(self.nodes.get(after).sum());
            }
        }
        sum
    }

    /// Whether what a transition sends fits into the channels.
    fn has_room(&mut self, state: &[u32], transition: &Transition) -> bool {
        let deliveries = self.tables.deliveries(transition);
        deliveries.iter().all(|&(to, bundle)| self.arrive(state[to as usize], bundle) != BLOCKED)
    }

    /// A successor whose fingerprint depends on more than its own node: budgets, monitors, births, those it sends to. None if it
    /// is not possible here.
    pub(crate) fn involved<S: Sum>(
        &mut self,
        state: &[u32],
        fingerprint: S,
        via: TransitionRef,
    ) -> Result<Option<Successor<S>>> {
        let transition = self.transition(state, via)?;
        let details = self.tables.details(&transition);
        if self.blocks && !self.has_room(state, &transition) {
            return Ok(None);
        }
        let mut sum = self.sum_after(state, fingerprint, &transition);
        if details.kind == Kind::Tick {
            let Some(tick) = self.tick(state, via.process as usize)? else { return Ok(None) };
            for (process, node) in tick.after {
                sum = sum.minus(self.nodes.get(state[process]).sum()).plus(self.nodes.get(node).sum());
            }
            let fingerprint = hash::fingerprint(sum);
            return Ok(Some(Successor { fingerprint, via, moves: tick.moves, fails: false }));
        }
        if transition.budget != NO_BUDGET {
            let budget = transition.budget as usize;
            let left = state[self.processes + self.monitors + budget];
            if left == 0 {
                return Ok(None);
            }
            sum = sum.minus(hash::budget(budget, left)).plus(hash::budget(budget, left - 1));
        }
        for &(slot, wanted) in details.expected() {
            let unborn = self.nodes.get(state[slot as usize]).parts[0] == Status::Unborn as u32;
            if unborn != wanted {
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
                sum = sum.minus(self.monitor_hash(monitor, before));
                sum = sum.plus(self.monitor_hash(monitor, after));
            }
        }
        let history = self.tables.history(state[via.process as usize], transition.target);
        let moves = transition.moves && (fails || sum.minus(S::of(history.low(), history.high())) != fingerprint);
        Ok(Some(Successor { fingerprint: hash::fingerprint(sum), via, moves, fails }))
    }

    /// Turn a state into its successor, and tell where the two differ.
    pub fn take(&mut self, state: &mut [u32], via: TransitionRef) -> Result<Changes> {
        let process = via.process as usize;
        let tables = self.tables;
        let transition = self.transition(state, via)?;
        let mut changes = Changes { altered: transition.altered, changed: bit(process), process: via.process };
        if !transition.simple {
            if tables.details(&transition).kind == Kind::Tick {
                let tick = self.tick(state, process)?.expect("a tick that is not possible is not taken");
                tick.after.into_iter().for_each(|(process, node)| state[process] = node);
                return Ok(Changes::EVERYWHERE);
            }
            self.take_involved(state, &transition, &mut changes)?;
        }
        state[process] = transition.target;
        for &(to, bundle) in tables.deliveries(&transition) {
            state[to as usize] = self.arrive(state[to as usize], bundle);
            changes.changed |= bit(to as usize);
            if to as usize >= self.movers {
                changes.process = u16::MAX;
            }
        }
        Ok(changes)
    }

    /// The parts of `take` that few transitions have: budgets, monitors, births.
    fn take_involved(&mut self, state: &mut [u32], transition: &Transition, changes: &mut Changes) -> Result<()> {
        let details = self.tables.details(transition);
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
        if details.spawns().iter().any(|&(slot, _)| (slot as usize) < self.movers) {
            changes.altered = u64::MAX;
        }
        Ok(())
    }

    /// Whether a transition leaves the node of its process as it is.
    pub fn stays(&mut self, state: &[u32], via: TransitionRef) -> Result<bool> {
        Ok(self.transition(state, via)?.target == state[via.process as usize])
    }

    /// Which transitions of a node lead to another state; none if that depends on more than the node.
    pub(crate) fn local_moves(&mut self, node: NodeId) -> Result<Option<Vec<bool>>> {
        let transitions = self.transitions(node)?;
        let local = !self.orbits.any()
            && self.movers == self.processes
            && transitions.iter().all(|transition| transition.plain);
        let leads = |transition: &Transition| transition.leads_on || transition.delta::<u128>() != 0;
        Ok(local.then(|| transitions.iter().map(leads).collect()))
    }

    #[inline]
    fn arrive(&mut self, node: NodeId, bundle: BundleId) -> NodeId {
        let key = u64::from(node) << 32 | u64::from(bundle);
        let place = &mut self.arrivals[hash::place(key, REMEMBERED)];
        if place.0 != key {
            *place = (key, self.tables.arrival(node, bundle));
        }
        place.1
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

    fn monitor_hash<S: Sum>(&mut self, monitor: usize, state: MonitorId) -> S {
        let tables = self.tables;
        let hash = || hash::monitor(monitor, tables.model.monitor_hash(state));
        let hash: &u128 = self.monitor_hashes.entry((monitor as u16, state)).or_insert_with(hash);
        S::of(hash.low(), hash.high())
    }

    /// A property on a state.
    pub fn evaluate(&mut self, property: usize, state: &[u32], reads: &PropertyReads) -> Result<Truth> {
        self.evaluate_changed(property, state, Changes::EVERYWHERE, reads)
    }

    /// A property on a state. Parts that changes since its parent do not concern are taken to have the value that decides
    /// nothing: true if all must be true, else false.
    pub(crate) fn evaluate_changed(
        &mut self,
        property: usize,
        state: &[u32],
        changes: Changes,
        reads: &PropertyReads,
    ) -> Result<Truth> {
        let tables = self.tables;
        let Quantifier { parts, every, of_process } = &tables.model.shape().quantifiers[property];
        if *parts > 0 {
            let mut whole = false;
            let mut decided = None;
            let mut look = |part: usize| -> Result<bool> {
                if !reads.part_concerned(property, part, changes) {
                    return Ok(false);
                }
                match self.evaluate_part(property, part, state, reads)? {
                    None => whole = true, // The others are evaluated all the same: what they read must be known.
                    // After a part that may raise an exception, the property may raise it, too.
                    Some(value) if value != *every && !whole => decided = Some(value),
                    Some(_) => {}
                }
                Ok(decided.is_some())
            };
            if changes.altered == u64::MAX || changes.process == u16::MAX || reads.reads_inboxes(property) {
                for part in 0..*parts {
                    if look(part)? {
                        break;
                    }
                }
            } else {
                for &part in &of_process[changes.process as usize] {
                    if look(part as usize)? {
                        break;
                    }
                }
            }
            if decided.is_some() || !whole {
                return Ok(decided.or(Some(*every)));
            }
            reads.note_undecided(property);
        }
        let parts = *parts;
        self.evaluate_part(property, parts, state, reads)
    }

    #[inline]
    fn evaluate_part(&mut self, property: usize, part: usize, state: &[u32], reads: &PropertyReads) -> Result<Truth> {
        let tables = self.tables;
        let View { nodes, projections, processes, .. } = self;
        let projection = &mut projections[property][part];
        let mut components = Projecting { nodes, state, processes: *processes };
        let mut place = projection.place(&mut components);
        if let Some(value) = projection.find(place) {
            return Ok(value);
        }
        let (value, path) = tables.evaluate(property, part, state)?;
        if projection.widen(&path) {
            place = projection.place(&mut components);
        }
        projection.insert(place, value);
        if matches!(place, Place::Key(_)) {
            reads.note_key();
        }
        for read in &path {
            reads.note(property, part, read.component, &tables.model.shape().group);
            self.widen(property, read.component);
        }
        Ok(value)
    }
}

/// A process as one of 64 bits; processes that share a bit are told apart less well, never wrongly.
#[inline]
pub(crate) fn bit(process: usize) -> u64 {
    1 << (process % 64)
}

//! The lazily tabulated automata, one per process. Their states are *nodes*: a local state with an inbox.
//!
//! The transitions of a node depend only on the node, except for messages to other processes, announcements and
//! budgets. In a system with shared state, they may also depend on the cells that steps of the node read. A *situated* node
//! is a node with the contents of these cells; states have nodes without cells, and `situated` finds the situated node of a
//! process in a state. Each node is expanded once, possibly with calls of Python. What is tabulated never changes, so all workers read
//! it without locks, and fill it at the same time. Only a model that answers one worker at a time is asked by one worker at a
//! time (`filling`); the others can read known nodes meanwhile.

use crate::por::effects::{KnownEffects, Profile};
use crate::symmetry::audit::Question;
use crate::system::expander::Expander;
use crate::system::hash::Sum;
use crate::system::initial::InitialState;
use crate::system::intern::Interner;
use crate::system::model::{
    Armed, CellSet, Component, EventId, Failure, FieldId, LocalId, MessageId, Model, MonitorId, Observed, Outcome,
    Parts, Quantifier, Result, Status, Truth,
};
use crate::system::property::{Tree, Value};
use crate::system::{hash, inbox};
use crate::util::shared::{SharedMap, SharedNumbers, SharedSlices, SharedVec};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

pub type NodeId = u32;
pub type InboxId = u32;
pub type BundleId = u32;

/// The node after an arrival for which there is no room: the step is not possible.
pub const BLOCKED: NodeId = NodeId::MAX;
pub const NO_BUDGET: u8 = u8::MAX;
pub(super) const UNSITUATED: NodeId = NodeId::MAX;
/// Where no history is kept.
const NO_HISTORY: InboxId = InboxId::MAX;

#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub process: u16,
    pub status: Status,
    pub local: LocalId,
    pub inbox: InboxId,
    /// What its last step consumed, where that is part of the state.
    pub last: InboxId,
    /// How many ticks it is ahead of the slowest process (`tick`).
    pub lead: u8,
    /// Of a situated node, the node without cells; its own local state has the cells after its fields. Else `UNSITUATED`.
    pub(super) base: NodeId,
    /// The lower half of its hash, and the upper one.
    pub hash: u64,
    pub high: u64,
}

impl Node {
    #[inline]
    pub fn sum<S: Sum>(&self) -> S {
        S::of(self.hash, self.high)
    }
}

/// What a step does to another process: messages for it, or its birth in a spare slot (and messages for it).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bundle {
    pub birth: Option<LocalId>,
    pub messages: Vec<MessageId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A process runs a handler.
    Step,
    Lose,
    Duplicate,
    Crash,
    Recover,
    /// Time goes on, for all processes or (with drift) for this one.
    Tick,
}

/// A transition of a node, as the inner loop of a search reads it.
#[derive(Clone, Copy, Debug)]
pub struct Transition {
    /// What it adds to the fingerprint: the lower half, and the upper one.
    pub(super) low: u64,
    pub(super) high: u64,
    /// Fields of the process that change, as bits.
    pub altered: u64,
    pub target: NodeId,
    /// Effects on others: where they begin in `Tables::deliveries`, and how many they are.
    pub(super) deliveries: u32,
    pub(super) delivered: u16,
    /// Where its details are in `Tables::details`.
    pub(super) details: u32,
    /// Which budget it costs one of, or NO_BUDGET.
    pub budget: u8,
    /// A step of a process, rather than of the network or the environment; or a recovery that is assumed to happen.
    pub moves: bool,
    /// The effects are counted in `delta`; else they depend on the state of those they reach.
    pub additive: bool,
    /// It has no events, expectations or failure, and costs no budget: target and effects are all there is.
    pub simple: bool,
    /// Nothing but the delta matters for the fingerprint.
    pub plain: bool,
    /// A step of a process that leads to another state, as far as the process and its messages tell.
    pub leads_on: bool,
}

impl Transition {
    /// What it adds to the fingerprint.
    #[inline]
    pub fn delta<S: Sum>(&self) -> S {
        S::of(self.low, self.high)
    }
}

/// The rest of a transition: what few transitions have, and what only a trace asks for.
#[derive(Clone, Copy, Debug)]
pub struct Details<'t> {
    pub kind: Kind,
    pub handler: u16,
    pub consumed: &'t [MessageId],
    /// What the handler did, if one ran, and the number of this outcome among all that it may have.
    pub outcome: Option<(&'t Outcome, u32)>,
}

impl<'t> Details<'t> {
    pub fn sends(&self) -> &'t [(u16, MessageId)] {
        self.outcome.map_or(&[], |(outcome, _)| &outcome.sends)
    }

    pub fn choices(&self) -> &'t [FieldId] {
        self.outcome.map_or(&[], |(outcome, _)| &outcome.choices)
    }

    pub fn events(&self) -> &'t [EventId] {
        self.outcome.map_or(&[], |(outcome, _)| &outcome.rare().events)
    }

    pub fn expected(&self) -> &'t [(u16, bool)] {
        self.outcome.map_or(&[], |(outcome, _)| &outcome.rare().expected)
    }

    pub fn spawns(&self) -> &'t [(u16, LocalId)] {
        self.outcome.map_or(&[], |(outcome, _)| &outcome.rare().spawns)
    }

    pub fn failure(&self) -> Option<&'t Failure> {
        self.outcome.and_then(|(outcome, _)| outcome.rare().failure.as_ref())
    }
}

/// Process and handler, local state, and consumed messages.
pub(crate) type StepKey = SmallVec<[u32; 4]>;

/// The outcomes of a handler that ran, by their place in `Tables::outcomes`.
pub type OutcomesId = u32;

/// `Details`, as the tables keep them.
#[derive(Clone, Copy)]
pub(super) struct StoredDetails {
    pub kind: Kind,
    pub handler: u16,
    /// Where consumed messages begin in `Tables::consumed`, and how many they are.
    pub consumed: (u32, u16),
    pub outcome: Option<(OutcomesId, u32)>,
}

/// What the tables keep for reductions.
#[derive(Default)]
pub(crate) struct ReductionTables {
    pub profiles: FxHashMap<NodeId, Arc<Profile>>,
    pub shared_profiles: FxHashSet<Arc<Profile>>,
    /// What permutations make of nodes, and the questions whose images were shown to have the images of their answers
    /// (`symmetry`).
    pub images: FxHashMap<(NodeId, u16), NodeId>,
    pub audited: FxHashSet<Question>,
}

/// The answers of the model.
#[derive(Default)]
pub(crate) struct Answers {
    pub armed: SharedMap<(u16, LocalId), Arc<[Armed]>>,
    /// The same by handler, in a system with cells.
    pub arms: SharedMap<(u16, LocalId, u16), Option<Armed>>,
    pub handlers: SharedMap<(u16, MessageId), Arc<[u16]>>,
    pub guards: SharedMap<(u16, LocalId, u16, MessageId), Option<u32>>,
    pub accepted: SharedMap<StepKey, Truth>,
    pub steps: SharedMap<StepKey, OutcomesId>,
    pub crashes: SharedMap<(u16, LocalId, bool), LocalId>,
    pub recoveries: SharedMap<(u16, LocalId), OutcomesId>,
    pub ticks: SharedMap<(u16, LocalId), LocalId>,
    observations: SharedMap<(u16, MonitorId, EventId), Observed>,
    /// By question about a local state without cells, the sets of cells that it was seen to read.
    reads: Mutex<FxHashMap<Question, Vec<CellSet>>>,
}

impl Answers {
    pub fn read_by(&self, question: &Question) -> Vec<CellSet> {
        self.reads.lock().get(question).cloned().unwrap_or_default()
    }

    pub fn note_read(&self, question: Question, read: CellSet) {
        note(self.reads.lock().entry(question).or_default(), read);
    }
}

pub(super) fn note(known: &mut Vec<CellSet>, read: CellSet) {
    if !known.contains(&read) {
        known.push(read);
    }
}

pub struct Tables {
    pub model: Arc<dyn Model>,
    pub(super) nodes: SharedVec<Node>,
    node_ids: SharedMap<(u16, LocalId, InboxId, InboxId, u8), NodeId>,
    /// Per node, where its transitions begin and how many they are, plus one; 0 if it was not expanded.
    ranges: SharedNumbers,
    /// Situated nodes, by node and local state with cells; and by node, the sets of cells that they are situated in.
    pub(super) situated: SharedMap<(NodeId, LocalId), NodeId>,
    pub(super) scopes: Mutex<FxHashMap<NodeId, Vec<CellSet>>>,
    transitions: SharedSlices<Transition>,
    deliveries: SharedSlices<(u16, BundleId)>,
    details: SharedSlices<StoredDetails>,
    consumed: SharedSlices<MessageId>,
    outcomes: SharedVec<Box<[Outcome]>>,
    inboxes: Interner<MessageId>,
    bundles: SharedVec<Bundle>,
    bundle_ids: SharedMap<Bundle, BundleId>,
    arrivals: SharedMap<u64, NodeId>,
    pub(crate) answers: Answers,
    /// The initial states, once they are known.
    pub(super) initial: Mutex<Option<Arc<[InitialState]>>>,
    /// Per property and part of it.
    trees: Vec<Vec<Mutex<Tree>>>,
    pub(crate) reductions: Mutex<ReductionTables>,
    pub(crate) known_effects: Mutex<KnownEffects>,
    /// Held by the worker that asks a model that answers one at a time.
    filling: Mutex<()>,
    /// Per process, how many nodes were met; and some of them, in this order.
    met: Vec<AtomicU32>,
    pub(crate) sample: Mutex<Vec<NodeId>>,
    /// How many questions and states the audit of a symmetry has looked at, and whether it left some images out.
    pub(crate) audited: AtomicU64,
    pub(crate) sampled: AtomicBool,
    /// Of how many images canonical fingerprints were the least.
    pub(crate) leaves: AtomicU64,
}

/// Whether the node of a process with this number belongs to the sample: at least 64 of each doubling of the numbers do.
fn is_sampled(number: u32) -> bool {
    number.trailing_zeros() + 7 >= u32::BITS - number.leading_zeros()
}

impl Tables {
    pub fn new(model: Arc<dyn Model>) -> Self {
        // The last tree is that of the property as a whole.
        let processes = model.shape().processes;
        let trees = |quantifier: &Quantifier| (0..=quantifier.parts).map(|_| Mutex::default()).collect();
        Tables {
            trees: model.shape().quantifiers.iter().map(trees).collect(),
            model,
            nodes: SharedVec::default(),
            node_ids: SharedMap::default(),
            ranges: SharedNumbers::default(),
            situated: SharedMap::default(),
            scopes: Mutex::default(),
            transitions: SharedSlices::default(),
            deliveries: SharedSlices::default(),
            details: SharedSlices::default(),
            consumed: SharedSlices::default(),
            outcomes: SharedVec::default(),
            inboxes: Interner::default(),
            bundles: SharedVec::default(),
            bundle_ids: SharedMap::default(),
            arrivals: SharedMap::default(),
            answers: Answers::default(),
            initial: Mutex::new(None),
            reductions: Mutex::default(),
            known_effects: Mutex::default(),
            filling: Mutex::new(()),
            met: (0..processes).map(|_| AtomicU32::new(0)).collect(),
            sample: Mutex::default(),
            audited: AtomicU64::new(0),
            sampled: AtomicBool::new(false),
            leaves: AtomicU64::new(1),
        }
    }

    #[inline]
    pub fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id)
    }

    #[inline]
    pub fn inbox(&self, id: InboxId) -> &[MessageId] {
        self.inboxes.content(id)
    }

    /// The value of a component of a state.
    pub fn value(&self, state: &[u32], component: Component) -> u32 {
        match component {
            Component::Field(process, part) => {
                let parts = self.model.values().parts(self.node(state[process as usize]).local);
                // A process that is unborn has no fields.
                parts.get(part as usize).copied().unwrap_or(u32::MAX)
            }
            Component::Inbox(process) => self.node(state[process as usize]).inbox,
            Component::Monitor(monitor) => state[self.model.shape().processes + monitor as usize],
        }
    }

    /// What a transition does to other processes.
    #[inline]
    pub fn deliveries(&self, transition: &Transition) -> &[(u16, BundleId)] {
        self.deliveries.get(transition.deliveries, transition.delivered as usize)
    }

    /// All transitions of a node.
    pub fn transitions(&self, node: NodeId) -> Result<&[Transition]> {
        loop {
            let range = self.ranges.get(node).load(Ordering::Acquire);
            if range != 0 {
                return Ok(self.transitions.get(range as u32, (range >> 32) as usize - 1));
            }
            self.expand(node)?;
        }
    }

    /// Whether a node was expanded that has a step which leaves the node as it is.
    pub fn any_step_stays(&self) -> bool {
        (0..self.nodes.len() as NodeId).any(|node| {
            let range = self.ranges.get(node).load(Ordering::Acquire);
            let transitions = (range != 0).then(|| self.transitions.get(range as u32, (range >> 32) as usize - 1));
            transitions.unwrap_or_default().iter().any(|transition| transition.moves && transition.target == node)
        })
    }

    pub fn details(&self, transition: &Transition) -> Details<'_> {
        let StoredDetails { kind, handler, consumed: (begin, len), outcome } =
            self.details.get(transition.details, 1)[0];
        let consumed = self.consumed.get(begin, len as usize);
        let outcome = outcome.map(|(outcomes, number)| (&self.outcomes(outcomes)[number as usize], number));
        Details { kind, handler, consumed, outcome }
    }

    pub(crate) fn outcomes(&self, id: OutcomesId) -> &[Outcome] {
        self.outcomes.get(id)
    }

    pub(super) fn push_outcomes(&self, outcomes: Vec<Outcome>) -> OutcomesId {
        self.outcomes.push(outcomes.into())
    }

    pub(super) fn push_consumed(&self, messages: &[MessageId]) -> (u32, u16) {
        let begin = if messages.is_empty() { 0 } else { self.consumed.push(messages) };
        (begin, messages.len() as u16)
    }

    #[cold]
    fn expand(&self, node: NodeId) -> Result<()> {
        let _filling = self.fill();
        if self.ranges.get(node).load(Ordering::Acquire) != 0 {
            return Ok(());
        }
        let (base, cells) = self.without_cells(node);
        self.expand_in(base, &cells, |_| node)
    }

    /// Expand a node, with these contents of cells. The transitions are those of the node that `situated` makes of the cells
    /// that were read.
    pub(super) fn expand_in(
        &self,
        node: NodeId,
        cells: &[FieldId],
        situated: impl FnOnce(CellSet) -> NodeId,
    ) -> Result<()> {
        let expander = Expander::new(self, node, cells);
        let (mut transitions, details) = expander.expand()?;
        let node = situated(expander.read());
        let begin = self.details.push(&details);
        for (transition, place) in transitions.iter_mut().zip(begin..) {
            transition.details = place;
        }
        let begin = self.transitions.push(&transitions);
        let range = u64::from(begin) | (transitions.len() as u64 + 1) << 32;
        // If another worker was faster, its transitions stay. They are the same, in the same order.
        let _ = self.ranges.get(node).compare_exchange(0, range, Ordering::AcqRel, Ordering::Acquire);
        Ok(())
    }

    /// Returns where they begin.
    pub(super) fn push_deliveries(&self, deliveries: &[(u16, BundleId)]) -> u32 {
        if deliveries.is_empty() { 0 } else { self.deliveries.push(deliveries) }
    }

    /// The node of another process after a bundle arrived, or `BLOCKED`.
    pub fn arrival(&self, node: NodeId, bundle: BundleId) -> NodeId {
        let key = u64::from(node) << 32 | u64::from(bundle);
        if let Some(found) = self.arrivals.get(&key) {
            return found;
        }
        let before = self.node(node);
        let Bundle { birth, messages } = self.bundles.get(bundle);
        // Messages to a crashed process vanish.
        if before.status != Status::Crashed && !inbox::has_room(&*self.model, self.inbox(before.inbox), messages) {
            return self.arrivals.insert(key, BLOCKED);
        }
        let pending = inbox::insert(&*self.model, self.inbox(before.inbox), messages);
        let local = birth.unwrap_or(before.local);
        let after = self.node_of(before.process as usize, local, &pending, before.last, before.lead);
        self.arrivals.insert(key, after)
    }

    /// The state of a monitor after an event, or the exception that it raised.
    pub fn observe(&self, monitor: usize, state: MonitorId, event: EventId) -> Result<Observed> {
        let observed = self.observation(monitor, state, event)?;
        if !self.model.shape().group.is_trivial() {
            self.audit_question(Question::Observe(monitor as u16, state, event))?;
        }
        Ok(observed)
    }

    pub(crate) fn observation(&self, monitor: usize, state: MonitorId, event: EventId) -> Result<Observed> {
        let key = (monitor as u16, state, event);
        let known = || self.answers.observations.get(&key);
        if let Some(found) = known() {
            return Ok(found);
        }
        let _filling = self.fill();
        if let Some(found) = known() {
            return Ok(found);
        }
        let next = self.model.observe(monitor, state, event)?;
        Ok(self.answers.observations.insert(key, next))
    }

    /// A part of a property on a state (or the property as a whole, for the number of parts), with the path through its
    /// decision tree for the worker's own copy. The value of a part is none if only the property as a whole can tell.
    pub fn evaluate(&self, property: usize, part: usize, state: &[u32]) -> Result<(Truth, Vec<Value>)> {
        let tree = &self.trees[property][part];
        let known = || {
            let mut path = Vec::new();
            let value = tree.lock().find(|component| {
                let id = self.value(state, component);
                path.push(Value { component, id });
                id
            });
            value.map(|value| (value, path))
        };
        if let Some(found) = known() {
            return Ok(found);
        }
        let _filling = self.fill();
        if let Some(found) = known() {
            return Ok(found);
        }
        let shape = self.model.shape();
        let (locals, inboxes): (Vec<LocalId>, Vec<InboxId>) =
            state[..shape.processes].iter().map(|&node| (self.node(node).local, self.node(node).inbox)).unzip();
        let inbox = |process: usize| self.inbox(inboxes[process]);
        let monitors = &state[shape.processes..shape.processes + shape.monitors];
        let parts = Parts { locals: &locals, inboxes: &inboxes, monitors, inbox: &inbox };
        let found = self.model.evaluate(property, part, &parts)?;
        let value = |component| Value { component, id: self.value(state, component) };
        let path = found.reads.into_iter().map(value).collect::<Vec<_>>();
        tree.lock().insert(&path, found.value);
        Ok((found.value, path))
    }

    /// The right to ask a model that answers one worker at a time.
    pub(crate) fn fill(&self) -> Option<MutexGuard<'_, ()>> {
        self.model.exclusive().then(|| self.filling.lock())
    }

    /// Approximate memory in use.
    pub fn bytes(&self) -> usize {
        let transitions = self.transitions.len() * (size_of::<Transition>() + size_of::<StoredDetails>());
        let nodes = self.nodes.len() * (size_of::<Node>() + 48) + self.inboxes.bytes();
        let outcomes = self.outcomes.len() * 64 + self.transitions.len() * size_of::<Outcome>();
        nodes + transitions + outcomes + self.arrivals.len() * 24 + self.deliveries.len() * 8
    }

    /// A node with another local state and lead.
    pub(super) fn node_after(&self, node: NodeId, local: LocalId, lead: u8) -> NodeId {
        let before = self.node(node);
        if (local, lead) == (before.local, before.lead) {
            return node;
        }
        self.node_of(before.process as usize, local, self.inbox(before.inbox), before.last, lead)
    }

    pub(crate) fn node_of(
        &self,
        process: usize,
        local: LocalId,
        pending: &[MessageId],
        last: InboxId,
        lead: u8,
    ) -> NodeId {
        let status = self.model.status(local);
        // Messages to a crashed process vanish.
        let inbox = self.inbox_of(if status == Status::Crashed { &[] } else { pending });
        let key = (process as u16, local, inbox, last, lead);
        self.node_ids.get_or_insert_with(key, || {
            let id = self.nodes.push(self.made_node(key, status));
            if is_sampled(self.met[process].fetch_add(1, Ordering::Relaxed)) {
                self.sample.lock().push(id);
            }
            id
        })
    }

    fn made_node(&self, key: (u16, LocalId, InboxId, InboxId, u8), status: Status) -> Node {
        let (process, local, inbox, last, lead) = (usize::from(key.0), key.1, key.2, key.3, key.4);
        let model = &*self.model;
        let messages = self.inbox(inbox).iter().map(|&m| model.message_hash(m));
        let pending = if model.shape().network.is_ordered() {
            hash::queues(process, &messages.collect::<Vec<_>>())
        } else {
            messages.fold(0u128, |sum, message| sum.plus(hash::pending(process, message)))
        };
        let hash = hash::local::<u128>(process, model.local_hash(local)).plus(pending);
        let hash = hash.plus(hash::lead(process, lead)).plus(self.last_hash(process, last));
        let (hash, high) = (hash.low(), hash.high());
        Node { process: process as u16, status, local, inbox, last, lead, base: UNSITUATED, hash, high }
    }

    /// The part of the hash of a node that comes from the history of its process.
    fn last_hash(&self, process: usize, last: InboxId) -> u128 {
        if last == NO_HISTORY {
            return 0;
        }
        let mut consumed: Vec<u64> = self.inbox(last).iter().map(|&m| self.model.message_hash(m)).collect();
        hash::last(process, &mut consumed)
    }

    /// The part of the delta of a transition that only says what the step consumed (`Shape::history`): it is no change of the
    /// system.
    pub(super) fn history(&self, before: NodeId, target: NodeId) -> u128 {
        let (before, after) = (self.node(before), self.node(target));
        if before.last == after.last {
            return 0;
        }
        let hash = |node: &Node| self.last_hash(node.process as usize, node.last);
        hash(after).minus(hash(before))
    }

    /// The history of a process whose last step consumed these.
    pub(crate) fn last(&self, consumed: &[MessageId]) -> InboxId {
        if !self.model.shape().history {
            return NO_HISTORY;
        }
        let mut consumed = consumed.to_vec();
        consumed.sort_unstable();
        self.inbox_of(&consumed)
    }

    fn inbox_of(&self, messages: &[MessageId]) -> InboxId {
        self.inboxes.intern(messages, FxBuildHasher.hash_one(messages))
    }

    pub(super) fn bundle(&self, bundle: Bundle) -> BundleId {
        self.bundle_ids.get(&bundle).unwrap_or_else(|| {
            let id = self.bundles.push(bundle.clone());
            self.bundle_ids.insert(bundle, id)
        })
    }
}

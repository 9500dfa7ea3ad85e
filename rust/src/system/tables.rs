//! The lazily tabulated automata, one per process. Their states are *nodes*: a local state with an inbox.
//!
//! The transitions of a node depend only on the node, except for messages to other processes, announcements and
//! budgets. Each node is expanded once, here, possibly with calls of Python. Workers keep their own copies (`view`), so
//! that the search itself reads without locks. One worker at a time asks the model (`filling`); the others can read
//! known nodes meanwhile.

use crate::por::effects::{KnownEffects, Profile};
use crate::symmetry::audit::Question;
use crate::system::expander::Expander;
use crate::system::model::{
    Armed, EventId, Failure, LocalId, MessageId, Model, MonitorId, Network, Observed, Outcome, Parts, Result, Status,
    Truth,
};
use crate::system::property::{Tree, Value};
use crate::system::{hash, inbox};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

pub type NodeId = u32;
pub type InboxId = u32;
pub type BundleId = u32;

/// Process, local state, handler, consumed messages.
type StepKey = (u16, LocalId, u16, Vec<MessageId>);

pub const NO_BUDGET: u8 = u8::MAX;
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
    pub hash: u64,
    /// The part of the hash that comes from it.
    pub last_hash: u64,
}

/// What a step does to another process: messages for it, or its birth in a spare slot (and messages for it).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bundle {
    pub birth: Option<LocalId>,
    pub messages: Vec<MessageId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process runs a handler.
    Step,
    Lose,
    Duplicate,
    Crash,
    Recover,
}

/// A transition of a node, as the inner loop of a search reads it.
#[derive(Clone, Copy, Debug)]
pub struct Transition {
    pub target: NodeId,
    /// Effects on others: a range of `Expansion::effects`.
    pub deliveries: (u32, u32),
    /// Which budget it costs one of, or NO_BUDGET.
    pub budget: u8,
    /// A step of a process, rather than of the network or the environment.
    pub moves: bool,
    /// Fields of the process that change, as bits.
    pub altered: u64,
    /// It has events, expectations or a failure: look at its details.
    pub special: bool,
    /// The effects are counted in `delta`; else they depend on the state of those they reach.
    pub additive: bool,
    /// What it adds to the fingerprint.
    pub delta: u64,
    /// The part of that which only says what the step consumed (`Shape::history`): it is no change of the system.
    pub history: u64,
}

/// The rest of a transition: what few transitions have, and what only a trace asks for.
#[derive(Clone, Debug)]
pub struct Details {
    pub kind: Kind,
    pub handler: u16,
    pub consumed: Vec<MessageId>,
    /// The outcomes of the handler that ran, and which of them this is.
    pub outcome: Option<(Arc<[Outcome]>, usize)>,
}

impl Details {
    fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref().map(|(outcomes, index)| &outcomes[*index])
    }

    pub fn sends(&self) -> &[(u16, MessageId)] {
        self.outcome().map_or(&[], |o| &o.sends)
    }

    pub fn events(&self) -> &[EventId] {
        self.outcome().map_or(&[], |o| &o.events)
    }

    pub fn expected(&self) -> &[(u16, bool)] {
        self.outcome().map_or(&[], |o| &o.expected)
    }

    pub fn spawns(&self) -> &[(u16, LocalId)] {
        self.outcome().map_or(&[], |o| &o.spawns)
    }

    pub fn choices(&self) -> &[Vec<u8>] {
        self.outcome().map_or(&[], |o| &o.choices)
    }

    pub fn failure(&self) -> Option<&Failure> {
        self.outcome().and_then(|o| o.failure.as_ref())
    }
}

/// All transitions of a node, with their details in the same order.
#[derive(Clone, Debug, Default)]
pub struct Expansion {
    pub transitions: Vec<Transition>,
    pub deliveries: Vec<(u16, BundleId)>,
    pub details: Vec<Details>,
}

pub struct Tables {
    pub model: Arc<dyn Model + Send + Sync>,
    pub(crate) inner: Mutex<Inner>,
    /// Held by the worker that asks the model; taken before `inner`, which is not held during the question.
    filling: Mutex<()>,
    /// How often a worker had to ask.
    fillings: AtomicUsize,
    /// How many questions and states the audit of a symmetry has looked at, and whether it left some images out.
    pub(crate) audited: AtomicU64,
    pub(crate) sampled: AtomicBool,
    /// Of how many images canonical fingerprints were the least.
    pub(crate) leaves: AtomicU64,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub nodes: Vec<Node>,
    node_ids: FxHashMap<(u16, LocalId, InboxId, InboxId), NodeId>,
    expansions: FxHashMap<NodeId, Arc<Expansion>>,
    pub profiles: FxHashMap<NodeId, Arc<Profile>>,
    pub shared_profiles: FxHashSet<Arc<Profile>>,
    pub known_effects: KnownEffects,
    /// What permutations make of nodes, and the questions whose images were shown to have the images of their answers
    /// (`symmetry`).
    pub images: FxHashMap<(NodeId, u16), NodeId>,
    pub audited: FxHashSet<Question>,
    pub inboxes: Vec<Arc<[MessageId]>>,
    inbox_ids: FxHashMap<Arc<[MessageId]>, InboxId>,
    pub bundles: Vec<Bundle>,
    bundle_ids: FxHashMap<Bundle, BundleId>,
    arrivals: FxHashMap<(NodeId, BundleId), NodeId>,
    observations: FxHashMap<(u16, MonitorId, EventId), Observed>,
    pub(crate) armed: FxHashMap<(u16, LocalId), Arc<[Armed]>>,
    pub(crate) handlers: FxHashMap<(u16, MessageId), Arc<[u16]>>,
    pub guards: FxHashMap<(u16, LocalId, u16, MessageId), Option<u32>>,
    pub(super) steps: FxHashMap<StepKey, Arc<[Outcome]>>,
    pub(super) crashes: FxHashMap<(u16, LocalId, bool), LocalId>,
    pub(super) recoveries: FxHashMap<(u16, LocalId), Arc<[Outcome]>>,
    pub(super) altered: FxHashMap<(u16, LocalId, LocalId), u64>,
    trees: Vec<Tree>,
    /// Per property, all fields that some evaluation has read.
    fields_read: Vec<u64>,
    transitions: usize,
}

impl Tables {
    pub fn new(model: Arc<dyn Model + Send + Sync>) -> Self {
        let trees: Vec<Tree> = model.shape().properties.iter().map(|_| Tree::default()).collect();
        let fields_read = vec![0; trees.len()];
        let inner = Mutex::new(Inner { trees, fields_read, ..Inner::default() });
        Tables {
            model,
            inner,
            filling: Mutex::new(()),
            fillings: AtomicUsize::new(0),
            audited: AtomicU64::new(0),
            sampled: AtomicBool::new(false),
            leaves: AtomicU64::new(1),
        }
    }

    /// The initial state: a node per process, monitors, budgets.
    pub fn initial(&self) -> Result<Vec<u32>> {
        let initial = self.model.initial()?;
        let mut inner = self.inner.lock();
        let mut state = Vec::new();
        for (process, &local) in initial.locals.iter().enumerate() {
            let mine: Vec<MessageId> =
                initial.messages.iter().filter(|(to, _)| *to as usize == process).map(|&(_, m)| m).collect();
            let pending = inbox::insert(&*self.model, &[], &mine);
            let last = inner.last(&*self.model, &[]);
            state.push(inner.node(&*self.model, process, local, pending, last));
        }
        state.extend_from_slice(&initial.monitors);
        state.extend(self.model.shape().budgets());
        drop(inner);
        self.audit_initial(&state)?;
        Ok(state)
    }

    pub fn node(&self, id: NodeId) -> Node {
        self.inner.lock().nodes[id as usize]
    }

    pub fn inbox(&self, id: InboxId) -> Arc<[MessageId]> {
        self.inner.lock().inboxes[id as usize].clone()
    }

    /// The transitions of a node.
    pub fn expansion(&self, node: NodeId) -> Result<Arc<Expansion>> {
        let known = |inner: &Inner| inner.expansions.get(&node).cloned();
        if let Some(found) = known(&self.inner.lock()) {
            return Ok(found);
        }
        let _filling = self.fill();
        let mut inner = self.inner.lock();
        if let Some(found) = known(&inner) {
            return Ok(found);
        }
        let expansion = Arc::new(Expander { model: &*self.model, inner: &mut inner, node }.expand()?);
        inner.transitions += expansion.transitions.len();
        inner.expansions.insert(node, expansion.clone());
        Ok(expansion)
    }

    /// The node of another process after a bundle arrived.
    pub fn arrival(&self, node: NodeId, bundle: BundleId) -> NodeId {
        self.inner.lock().arrival(&*self.model, node, bundle)
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
        let known = |inner: &Inner| inner.observations.get(&key).cloned();
        if let Some(found) = known(&self.inner.lock()) {
            return Ok(found);
        }
        let _filling = self.fill();
        if let Some(found) = known(&self.inner.lock()) {
            return Ok(found);
        }
        let next = self.model.observe(monitor, state, event)?;
        self.inner.lock().observations.insert(key, next.clone());
        Ok(next)
    }

    /// A property on a state, with the path through its decision tree for the worker's own copy.
    pub fn evaluate(&self, property: usize, state: &[u32]) -> Result<(Truth, Vec<Value>, u64)> {
        let shape = self.model.shape();
        let nodes: Vec<Node> = {
            let inner = self.inner.lock();
            state[..shape.processes].iter().map(|&n| inner.nodes[n as usize]).collect()
        };
        let locals: Vec<LocalId> = nodes.iter().map(|n| n.local).collect();
        let inboxes: Vec<InboxId> = nodes.iter().map(|n| n.inbox).collect();
        let monitors = &state[shape.processes..shape.processes + shape.monitors];
        let parts = Parts { locals: &locals, inboxes: &inboxes, monitors };
        let known = |inner: &Inner| {
            let (value, path) = inner.trees[property].path(&parts)?;
            Some((value, path, inner.fields_read[property]))
        };
        if let Some(found) = known(&self.inner.lock()) {
            return Ok(found);
        }
        let _filling = self.fill();
        if let Some(found) = known(&self.inner.lock()) {
            return Ok(found);
        }
        let found = self.model.evaluate(property, &parts)?;
        let path = found.reads.into_iter().map(|component| Value::of(component, &parts)).collect::<Vec<_>>();
        let mut inner = self.inner.lock();
        inner.trees[property].insert(&path, found.value);
        inner.fields_read[property] |= found.fields;
        Ok((found.value, path, inner.fields_read[property]))
    }

    pub(crate) fn fill(&self) -> MutexGuard<'_, ()> {
        self.fillings.fetch_add(1, Relaxed);
        self.filling.lock()
    }

    /// How often the model was asked so far.
    pub fn fillings(&self) -> usize {
        self.fillings.load(Relaxed)
    }

    /// Approximate memory in use.
    pub fn bytes(&self) -> usize {
        let inner = self.inner.lock();
        inner.nodes.len() * 64 + inner.transitions * 200 + inner.arrivals.len() * 24 + inner.steps.len() * 200
    }
}

impl Inner {
    pub fn node(
        &mut self,
        model: &dyn Model,
        process: usize,
        local: LocalId,
        pending: Vec<MessageId>,
        last: InboxId,
    ) -> NodeId {
        let status = model.status(local);
        // Messages to a crashed process vanish.
        let inbox = self.inbox(if status == Status::Crashed { Vec::new() } else { pending });
        let key = (process as u16, local, inbox, last);
        if let Some(&found) = self.node_ids.get(&key) {
            return found;
        }
        let messages = self.inboxes[inbox as usize].iter().map(|&m| model.message_hash(m));
        let pending = if model.shape().network == Network::Fifo {
            hash::queues(process, &messages.collect::<Vec<_>>())
        } else {
            messages.fold(0u64, |sum, message| sum.wrapping_add(hash::pending(process, message)))
        };
        let mut hash = hash::local(process, model.local_hash(local)).wrapping_add(pending);
        let mut last_hash = 0;
        if last != NO_HISTORY {
            let mut consumed: Vec<u64> = self.inboxes[last as usize].iter().map(|&m| model.message_hash(m)).collect();
            last_hash = hash::last(process, &mut consumed);
            hash = hash.wrapping_add(last_hash);
        }
        let id = self.nodes.len() as NodeId;
        self.nodes.push(Node { process: process as u16, status, local, inbox, last, hash, last_hash });
        self.node_ids.insert(key, id);
        id
    }

    /// The history of a process whose last step consumed these.
    pub fn last(&mut self, model: &dyn Model, consumed: &[MessageId]) -> InboxId {
        if !model.shape().history {
            return NO_HISTORY;
        }
        let mut consumed = consumed.to_vec();
        consumed.sort_unstable();
        self.inbox(consumed)
    }

    fn inbox(&mut self, messages: Vec<MessageId>) -> InboxId {
        let messages: Arc<[MessageId]> = messages.into();
        if let Some(&found) = self.inbox_ids.get(&messages) {
            return found;
        }
        let id = self.inboxes.len() as InboxId;
        self.inboxes.push(messages.clone());
        self.inbox_ids.insert(messages, id);
        id
    }

    pub(super) fn bundle(&mut self, bundle: Bundle) -> BundleId {
        if let Some(&found) = self.bundle_ids.get(&bundle) {
            return found;
        }
        let id = self.bundles.len() as BundleId;
        self.bundles.push(bundle.clone());
        self.bundle_ids.insert(bundle, id);
        id
    }

    fn arrival(&mut self, model: &dyn Model, node: NodeId, bundle: BundleId) -> NodeId {
        if let Some(&found) = self.arrivals.get(&(node, bundle)) {
            return found;
        }
        let before = self.nodes[node as usize];
        let Bundle { birth, messages } = &self.bundles[bundle as usize];
        let pending = inbox::insert(model, &self.inboxes[before.inbox as usize], messages);
        let after = self.node(model, before.process as usize, birth.unwrap_or(before.local), pending, before.last);
        self.arrivals.insert((node, bundle), after);
        after
    }
}

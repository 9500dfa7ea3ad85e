//! The interface of a model: what the engine must know about a system, and what it asks about single steps.
//!
//! A step depends only on the local state and the inbox of its own process, and on the cells that it reads. A *cell* is a
//! field of a shared object. So the engine asks each question once per
//! distinct input and tabulates the answer (`tables`). Local states, messages, events and monitor states are ids of
//! interned values. The model knows their content and its hash.

use crate::symmetry::audit::Evidence;
use crate::symmetry::group::Group;
use crate::symmetry::images::Images;
use crate::system::tick::Time;
use crate::system::values::Values;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

pub type LocalId = u32;
/// The content of a field of a local state.
pub type FieldId = u32;
pub type MessageId = u32;
pub type EventId = u32;
pub type MonitorId = u32;

/// An error of the model (for example, a handler raised an exception). It is passed on to the caller of the search.
pub type Fault = Box<dyn Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Fault>;

/// The answer to a question if the search has ended: it is not asked any more, or user code was interrupted (by this error).
#[derive(Debug)]
pub struct Stopped(pub Option<Fault>);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the search has ended")
    }
}

impl Error for Stopped {}

/// What may happen to messages in transit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// A bag; each message is delivered at most once.
    Bag,
    /// A set; delivery does not remove.
    Set,
    /// One queue per sender and receiver.
    Fifo,
    /// One queue per receiver, in the order of arrival. The first message that a handler accepts is taken.
    Mailbox,
}

impl Network {
    /// Whether the order of the messages that a step sends to one process matters.
    pub fn is_ordered(self) -> bool {
        matches!(self, Network::Fifo | Network::Mailbox)
    }
}

/// How many messages a channel holds: those that are pending from one sender for one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    pub most: usize,
    /// What is sent to a full channel vanishes. Else the step that would send it is not possible.
    pub drops: bool,
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    Up = 0,
    /// Stopped for ever: takes no steps, and messages to it vanish.
    Crashed = 1,
    /// Until it recovers: takes no steps, but messages wait for it.
    Down = 2,
    /// A spare slot without a process yet.
    Unborn = 3,
}

impl Status {
    /// As the first byte of a local state.
    pub fn of(byte: u8) -> Status {
        match byte {
            0 => Status::Up,
            1 => Status::Crashed,
            2 => Status::Down,
            _ => Status::Unborn,
        }
    }
}

/// Crashes that may happen: at most `budget` in a run, each of one of these processes.
#[derive(Clone, Debug)]
pub struct CrashFault {
    pub may_crash: Vec<bool>,
    pub budget: u32,
    pub recovers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PropertyKind {
    Always,
    Reachable,
    Final,
    /// Part of a temporal formula: evaluated for that alone.
    Predicate,
    /// A combination of choices of the `@init` methods is an initial state only if it is true.
    Initially,
    /// A state in which it is false is not expanded.
    Within,
}

impl PropertyKind {
    /// Whether every state is looked at.
    pub fn of_states(self) -> bool {
        matches!(self, PropertyKind::Always | PropertyKind::Reachable)
    }
}

/// How a property is made of parts that are evaluated by themselves: for each process, say, or for each pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quantifier {
    /// Zero: it is evaluated as a whole.
    pub parts: usize,
    /// It is true if all parts are true (or, if not `every`, if one is).
    pub every: bool,
    /// The parts that look at each process. They look at no others, and not at monitors.
    pub of_process: Vec<Vec<u32>>,
}

impl Quantifier {
    /// `positions`: the processes that each part looks at.
    pub fn new<'a>(processes: usize, every: bool, positions: impl IntoIterator<Item = &'a [u16]>) -> Quantifier {
        let mut quantifier = Quantifier { every, of_process: vec![Vec::new(); processes], ..Quantifier::default() };
        for (part, positions) in positions.into_iter().enumerate() {
            quantifier.parts += 1;
            for &process in positions {
                let parts = &mut quantifier.of_process[process as usize];
                if parts.last() != Some(&(part as u32)) {
                    parts.push(part as u32);
                }
            }
        }
        quantifier
    }
}

/// The fixed shape of a system.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Those of processes, and after them those of cells: a cell has a node too, with one field and no messages.
    pub processes: usize,
    pub cells: usize,
    /// By process, how many handlers it has.
    pub handlers: Vec<u16>,
    pub monitors: usize,
    pub network: Network,
    /// None: channels are never full.
    pub capacity: Option<Capacity>,
    pub lossy: bool,
    /// None: any number of losses.
    pub losses: Option<u32>,
    /// Some: how many times in a run the network can copy pending messages.
    pub duplications: Option<u32>,
    pub faults: Vec<CrashFault>,
    /// Per process, whether it is assumed to recover if it is down: then its recovery counts as a step.
    pub returning: Vec<bool>,
    pub properties: Vec<PropertyKind>,
    /// Per property, its parts.
    pub quantifiers: Vec<Quantifier>,
    /// A process remembers which messages its last step consumed (auxiliary state that the tool of DBSS keeps).
    pub history: bool,
    /// Permutations of processes that the user declared to be symmetries; empty if there are none.
    pub group: Group,
    /// The clocks of the system; none if it has no clocks.
    pub time: Option<Time>,
}

impl Shape {
    /// The property of a kind of which there is at most one.
    pub fn single(&self, kind: PropertyKind) -> Option<usize> {
        self.properties.iter().position(|&one| one == kind)
    }

    /// How many messages a channel holds, if a step that sends to a full one is not possible.
    pub fn blocks(&self) -> Option<usize> {
        self.capacity.filter(|capacity| !capacity.drops).map(|capacity| capacity.most)
    }

    pub fn loss_budget(&self) -> Option<usize> {
        self.losses.map(|_| 0)
    }

    pub fn duplication_budget(&self) -> Option<usize> {
        self.duplications.map(|_| usize::from(self.losses.is_some()))
    }

    pub fn crash_budget(&self, fault: usize) -> usize {
        usize::from(self.losses.is_some()) + usize::from(self.duplications.is_some()) + fault
    }

    /// The initial value of every budget, in order of the indices above.
    pub fn budgets(&self) -> Vec<u32> {
        let network = self.losses.into_iter().chain(self.duplications);
        network.chain(self.faults.iter().map(|f| f.budget)).collect()
    }

    /// How many processes there are, without cells: they alone have transitions.
    pub fn movers(&self) -> usize {
        self.processes - self.cells
    }

    /// The positions of some cells.
    pub fn positions(&self, cells: CellSet) -> impl Iterator<Item = usize> {
        let first = self.movers();
        (0..self.cells).filter(move |&cell| cells & cell_bit(cell) != 0).map(move |cell| first + cell)
    }

    /// Components of a state: one node per process and per cell, then monitors, then budgets.
    pub fn width(&self) -> usize {
        self.processes + self.monitors + self.budgets().len()
    }
}

/// A handler that may run in a local state, and the sets of messages that it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Armed {
    pub handler: u16,
    /// How many messages it takes at least (0: an action whose guard holds), and at most.
    pub least: u16,
    pub most: u16,
    /// The messages of a set have different senders.
    pub distinct: bool,
    /// A guard over the whole set decides (`Model::accepts`).
    pub accepts: bool,
}

impl Armed {
    /// A handler that takes no message, or this number from different senders.
    pub fn taking(handler: u16, count: u16) -> Armed {
        Armed { handler, least: count, most: count, distinct: true, accepts: false }
    }
}

/// A failed assertion or an exception (violations), or a mistake of the model that shows only in some states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub violation: bool,
    pub message: String,
    /// What the user can do about it.
    pub hint: Option<String>,
    /// The exception, in a format that only Python knows; none for an assertion.
    pub exception: Option<Vec<u8>>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Failure {}

/// What one run of a handler did. Tables keep very many of them, so what few outcomes have is apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub local: LocalId,
    /// (receiver, message) in the order sent.
    pub sends: Box<[(u16, MessageId)]>,
    /// The options chosen.
    pub choices: Box<[FieldId]>,
    rare: Option<Box<RareEffects>>,
}

/// Effects that few steps have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RareEffects {
    pub events: Vec<EventId>,
    /// Local states that other nodes get: processes that are born in spare slots, and cells that are written.
    pub spawns: Vec<(u16, LocalId)>,
    /// Slots that must be unborn (true) or born (false) for this outcome to be the one that happens.
    pub expected: Vec<(u16, bool)>,
    pub failure: Option<Failure>,
}

static NONE: RareEffects = RareEffects { events: Vec::new(), spawns: Vec::new(), expected: Vec::new(), failure: None };

impl Outcome {
    pub fn new(local: LocalId, sends: Vec<(u16, MessageId)>, choices: Vec<FieldId>, rare: RareEffects) -> Outcome {
        let rare = (rare != NONE).then(|| Box::new(rare));
        Outcome { local, sends: sends.into(), choices: choices.into(), rare }
    }

    /// Whether it has events, expectations or a failure. (A birth comes with an expectation.)
    pub fn is_involved(&self) -> bool {
        self.rare
            .as_ref()
            .is_some_and(|rare| !rare.events.is_empty() || !rare.expected.is_empty() || rare.failure.is_some())
    }

    pub fn rare(&self) -> &RareEffects {
        self.rare.as_deref().unwrap_or(&NONE)
    }
}

/// What there is before the first step.
#[derive(Clone, Debug, Default)]
pub struct Initial {
    /// Per process, what its `@init` methods did: one outcome per combination of their choices.
    pub processes: Vec<Vec<Outcome>>,
    /// The states of the monitors before the `@init` methods run.
    pub monitors: Vec<MonitorId>,
}

/// A part of a state that a property may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Component {
    /// A part of a local state: the status (0), or a field, from 1.
    Field(u16, u16),
    Inbox(u16),
    Monitor(u16),
}

impl Component {
    /// As Python says it.
    pub fn of(kind: &str, index: u16, field: u16) -> Component {
        match kind {
            "field" => Component::Field(index, field),
            "inbox" => Component::Inbox(index),
            _ => Component::Monitor(index),
        }
    }
}

/// A value that may name processes.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    Local(LocalId),
    Message(MessageId),
    Monitor(MonitorId),
}

/// A state by component ids, for the evaluation of a property.
pub struct Parts<'a> {
    pub locals: &'a [LocalId],
    pub inboxes: &'a [u32],
    pub monitors: &'a [MonitorId],
    /// The pending messages of a process.
    pub inbox: &'a dyn Fn(usize) -> &'a [MessageId],
}

/// The value of a property on a state, or of a guard; none if it raised an exception.
pub type Truth = Option<bool>;

/// A property on a state.
#[derive(Clone, Debug, Default)]
pub struct Evaluation {
    pub value: Truth,
    /// The components it read, in the order it first read them.
    pub reads: Vec<Component>,
}

/// The state of a monitor after an event, or the exception that it raised.
pub type Observed = std::result::Result<MonitorId, Arc<Failure>>;

/// The group of a message on which a guard raised an exception. Such a message makes a step of its own, which fails.
pub const RAISED: u32 = u32::MAX;

/// A field of a process as one of 60 bits. Fields that share a bit are told apart less well, never wrongly: a bit says
/// that something may have changed. Field 0 stands for the status.
pub fn field_bit(process: usize, field: usize) -> u64 {
    1 << ((process * 7 + field) % 60)
}

/// A monitor as one of the four bits above those of fields.
pub fn monitor_bit(monitor: usize) -> u64 {
    1 << (60 + monitor % 4)
}

/// Cells as bits. The last bit stands for all cells from there on.
pub type CellSet = u64;

pub fn cell_bit(cell: usize) -> CellSet {
    1 << cell.min(63)
}

/// The content of a cell that a question does not read (`Values::with_cells`): no value of a model.
pub const HOLE: &[u8] = b"P\0\0";

/// A question was asked without the content of a cell that it reads. Only the audit of symmetries asks such questions.
#[derive(Debug)]
pub struct Unseen;

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a step reads other shared fields than its image")
    }
}

impl Error for Unseen {}

/// A system, asked one step at a time. Calls may be slow (they run Python); each is made once per distinct input.
///
/// In a system with cells, questions about a process are asked about its local state followed by the contents of all cells,
/// and the cells that the answer depends on are added to `read`. Outcomes have local states without cells.
pub trait Model: Send + Sync {
    fn shape(&self) -> &Shape;
    /// The content of ids.
    fn values(&self) -> &Values;
    fn images(&self) -> &Images;
    /// Run the body of a worker thread, with whatever the model needs in a thread that will ask it much.
    fn in_thread(&self, body: &mut dyn FnMut()) {
        body();
    }
    /// Whether the model answers one worker at a time.
    fn exclusive(&self) -> bool {
        false
    }
    /// How many questions it has passed on to Python so far: those are slow.
    fn asked(&self) -> u64;
    fn initial(&self) -> Result<Initial>;
    /// The handlers that may run, of all or of one.
    fn armed(&self, process: usize, local: LocalId, only: Option<u16>, read: &mut CellSet) -> Result<Vec<Armed>>;
    /// The handlers of a process that are for messages like this one, whatever its local state.
    fn handlers(&self, process: usize, message: MessageId) -> Result<Vec<u16>>;
    /// For each handler and message: None if the guard forbids it, else the id of the group it may form a quorum with, or
    /// `RAISED`. Then `step` is asked about this one message, and answers with the failure.
    fn guards(
        &self,
        process: usize,
        local: LocalId,
        questions: &[(u16, MessageId)],
        read: &mut CellSet,
    ) -> Result<Vec<Option<u32>>>;
    /// What the guard over the whole set says about each of these sets of messages; none if it raised an exception. Then
    /// `step` is asked about this set, and answers with the failure.
    fn accepts(
        &self,
        process: usize,
        local: LocalId,
        handler: u16,
        sets: &[Vec<MessageId>],
        read: &mut CellSet,
    ) -> Result<Vec<Truth>>;
    fn step(
        &self,
        process: usize,
        local: LocalId,
        handler: u16,
        messages: &[MessageId],
        read: &mut CellSet,
    ) -> Result<Vec<Outcome>>;
    fn crash(&self, process: usize, local: LocalId, recovers: bool) -> Result<LocalId>;
    fn recover(&self, process: usize, local: LocalId, read: &mut CellSet) -> Result<Vec<Outcome>>;
    /// The local state after a tick.
    fn tick(&self, process: usize, local: LocalId) -> Result<LocalId> {
        Ok(self.shape().time.as_ref().map_or(local, |time| time.ticked(self.values(), process, local)))
    }
    fn observe(&self, monitor: usize, state: MonitorId, event: EventId) -> Result<Observed>;
    /// A part of a property, or for the number of parts the property as a whole. The value of a part is none if only the
    /// property as a whole can tell.
    fn evaluate(&self, property: usize, part: usize, state: &Parts) -> Result<Evaluation>;
    /// The error that says that a handler may take more sets of messages in one state than can be listed.
    fn too_many_sets(&self, process: usize, handler: u16) -> Fault;
    /// The error that says that a permutation is no symmetry.
    fn asymmetry(&self, element: usize, evidence: Evidence) -> Fault;
}

/// What is known of values without asking.
impl dyn Model + '_ {
    pub fn status(&self, local: LocalId) -> Status {
        self.values().status(local)
    }

    pub fn sender(&self, message: MessageId) -> u16 {
        self.values().sender(message)
    }

    /// Whether the content of a message, without its sender, begins with one of these.
    pub fn begins(&self, message: MessageId, heads: &[Vec<u8>]) -> bool {
        heads.iter().any(|head| self.values().message_content(message).starts_with(head))
    }

    /// Hashes of canonical content: equal across runs, processes and machines.
    pub fn local_hash(&self, local: LocalId) -> u64 {
        self.values().local_hash(local)
    }

    pub fn message_hash(&self, message: MessageId) -> u64 {
        self.values().message_hash(message)
    }

    pub fn monitor_hash(&self, state: MonitorId) -> u64 {
        self.values().local_hash(state)
    }

    pub fn names(&self, content: Content) -> Vec<u16> {
        self.images().names(self.values(), content)
    }

    pub fn renamed_hash(&self, content: Content, places: &[u16]) -> u64 {
        self.images().renamed_hash(self.values(), content, places)
    }

    pub fn local_image(&self, local: LocalId, element: usize) -> LocalId {
        self.images().local(self.values(), &self.shape().group, local, element)
    }

    pub fn message_image(&self, message: MessageId, element: usize) -> MessageId {
        self.images().message(self.values(), &self.shape().group, message, element)
    }

    pub fn monitor_image(&self, state: MonitorId, element: usize) -> MonitorId {
        self.local_image(state, element)
    }

    pub fn event_image(&self, event: EventId, element: usize) -> EventId {
        self.images().event(self.values(), &self.shape().group, event, element)
    }
}

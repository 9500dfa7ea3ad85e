//! Makes sure that the declared permutations are symmetries: that the model gives corresponding answers to corresponding
//! questions.
//!
//! All that a model does are answers to questions (`Question`): which handlers may run, what a guard says, what a step does,
//! what a monitor makes of an event. The engine treats all processes alike. So if the answers to all images of a question are
//! the images of its answer, then the transitions of the images of a node are the images of its transitions. It is enough to
//! apply generators of the group, to each question and in turn to its images. Orbits of questions are much smaller than the
//! group, and than orbits of nodes. Those that are larger than `MOST_IMAGES` are audited in part, and the verdict says so.

use crate::symmetry::group::Group;
use crate::system::expander::{Expander, RECOVERY};
use crate::system::inbox::{self, Deliverable};
use crate::system::initial::InitialState;
use crate::system::model::{
    Armed, CellSet, EventId, Failure, Fault, LocalId, MessageId, Model, MonitorId, Network, Outcome, Result, Status,
    Truth, Unseen,
};
use crate::system::tables::{InboxId, NodeId, Tables};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

/// Groups up to this size are audited completely, and so are orbits up to this size: permutations of seven processes.
const MOST_IMAGES: u64 = 5_040;
/// After this many images, of larger orbits only so many are audited.
const MANY_IMAGES: u64 = 250_000;
const FEW_IMAGES: u64 = 100;

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
    /// One of several initial states, by its combination, has an image that is none.
    InitialStates {
        combination: usize,
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
        image: Truth,
    },
}

/// What the model is asked about one process or monitor. In the audit of a system with cells, local states have the cells
/// that their node reads after their fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Question {
    Armed(u16, LocalId),
    /// The same about one handler.
    Arm(u16, LocalId, u16),
    Guard(u16, LocalId, u16, MessageId),
    Accept(u16, LocalId, u16, Vec<MessageId>),
    Step(u16, LocalId, u16, Vec<MessageId>),
    Crash(u16, LocalId, bool),
    Recover(u16, LocalId),
    Observe(u16, MonitorId, EventId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Armed(Vec<Armed>),
    Guard(Truth),
    Outcomes(Vec<ComparedOutcome>),
    Local(LocalId),
    Monitor(std::result::Result<MonitorId, Fails>),
}

/// How something fails. Texts are not compared: they may name processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fails {
    violation: bool,
    exception: bool,
}

impl From<&Failure> for Fails {
    fn from(failure: &Failure) -> Fails {
        Fails { violation: failure.violation, exception: failure.exception.is_some() }
    }
}

/// An outcome in an order that does not depend on names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ComparedOutcome {
    local: LocalId,
    sends: Vec<(u16, MessageId)>,
    events: Vec<EventId>,
    spawns: Vec<(u16, LocalId)>,
    expected: Vec<(u16, bool)>,
    fails: Option<Fails>,
}

/// How many images of one orbit are audited, if `audited` were audited before.
pub(crate) fn audit_limit(group: &Group, audited: u64) -> u64 {
    match audited {
        _ if group.order <= MOST_IMAGES => u64::MAX,
        few if few <= MANY_IMAGES => MOST_IMAGES,
        _ => FEW_IMAGES,
    }
}

impl Tables {
    /// The node that a generator of the group (or the identity) moves a node to.
    pub fn image(&self, node: NodeId, element: usize) -> NodeId {
        let key = (node, element as u16);
        if element == 0 {
            return node;
        }
        if let Some(&known) = self.reductions.lock().images.get(&key) {
            return known;
        }
        let model = &*self.model;
        let from = self.node(node);
        let process = model.shape().group.elements[element][from.process as usize];
        let local = model.local_image(from.local, element);
        let (base, _) = self.without_cells(node);
        if base != node {
            let image = self.situated_node(self.image(base, element), local);
            self.reductions.lock().images.insert(key, image);
            return image;
        }
        let pending = self.inbox_image(from.inbox, element);
        let last = if model.shape().history { self.last(&self.inbox_image(from.last, element)) } else { from.last };
        let image = self.node_of(process as usize, local, &pending, last, from.lead);
        self.reductions.lock().images.insert(key, image);
        image
    }

    fn inbox_image(&self, inbox: InboxId, element: usize) -> Vec<MessageId> {
        let model = &*self.model;
        let moved: Vec<MessageId> = self.inbox(inbox).iter().map(|&m| model.message_image(m, element)).collect();
        inbox::insert(model, &[], &moved)
    }

    /// The nodes that all elements of a listed group move a node to, with their hashes.
    pub fn images(&self, node: NodeId, images: &mut [NodeId], hashes: &mut [u64]) {
        images[0] = node;
        for (at, &(before, generator)) in self.model.shape().group.words.iter().enumerate() {
            images[at + 1] = self.image(images[before], generator);
        }
        hashes.iter_mut().zip(images).for_each(|(hash, image)| *hash = self.node(*image).hash);
    }

    /// Make sure that the images of initial states are initial states.
    pub fn audit_initial(&self, states: &[InitialState]) -> Result<()> {
        let shape = self.model.shape();
        if let [InitialState { state, .. }] = states {
            return self.audit_only(state);
        }
        if shape.group.is_trivial() {
            return Ok(());
        }
        let known: FxHashSet<&[u32]> = states.iter().map(|one| &one.state[..]).collect();
        for InitialState { state, combination } in states {
            for &element in &shape.group.generators {
                if !known.contains(&self.state_image(state, element)[..]) {
                    let evidence = Evidence::InitialStates { combination: *combination };
                    return Err(self.model.asymmetry(element, evidence));
                }
            }
        }
        Ok(())
    }

    /// The image of a state under a generator of the group.
    pub(crate) fn state_image(&self, state: &[u32], element: usize) -> Vec<u32> {
        let shape = self.model.shape();
        let mut image = state.to_vec();
        for (process, &node) in state[..shape.processes].iter().enumerate() {
            image[shape.group.elements[element][process] as usize] = self.image(node, element);
        }
        for monitor in shape.processes..shape.processes + shape.monitors {
            image[monitor] = self.model.monitor_image(state[monitor], element);
        }
        image
    }

    /// The same for a single initial state, with what differs.
    fn audit_only(&self, state: &[u32]) -> Result<()> {
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

    /// Make sure that what a node and all its images can do corresponds.
    pub fn audit(&self, node: NodeId) -> Result<()> {
        for question in self.questions(node)? {
            self.audit_question(question)?;
        }
        Ok(())
    }

    /// Make sure that the model gives corresponding answers to a question and all its images.
    pub(crate) fn audit_question(&self, question: Question) -> Result<()> {
        if !self.reductions.lock().audited.insert(question.clone()) {
            return Ok(());
        }
        let group = &self.model.shape().group;
        let limit = audit_limit(group, self.audited.fetch_add(1, Relaxed));
        let mut images = 1;
        let mut waiting = VecDeque::from([question]);
        while let Some(question) = waiting.pop_front() {
            let answer = self.answer(&question)?;
            for &element in &group.generators {
                let image = question.image(&*self.model, element);
                let expected = answer.image(&*self.model, element);
                let there = match self.answer(&image) {
                    Err(fault) if fault.is::<Unseen>() => {
                        return Err(self.difference(element, &question, &image, &expected, &expected));
                    }
                    there => there?,
                };
                if expected != there {
                    return Err(self.difference(element, &question, &image, &expected, &there));
                }
                if images >= limit {
                    self.sampled.store(true, Relaxed);
                } else if self.reductions.lock().audited.insert(image.clone()) {
                    images += 1;
                    waiting.push_back(image);
                }
            }
        }
        self.audited.fetch_add(images - 1, Relaxed);
        Ok(())
    }

    /// All that the model was asked to find the transitions of a node.
    fn questions(&self, node: NodeId) -> Result<Vec<Question>> {
        let _filling = self.fill();
        let from = *self.node(node);
        let process = from.process;
        let (base, cells) = self.without_cells(node);
        let own = self.node(base).local;
        let local = if cells.is_empty() { own } else { self.model.values().with_cells(own, &cells, CellSet::MAX) };
        let mut questions = Vec::new();
        if from.status == Status::Up {
            let expander = Expander::new(self, base, &cells);
            if cells.is_empty() {
                questions.push(Question::Armed(process, local));
            } else {
                let handlers = 0..self.model.shape().handlers[process as usize];
                questions.extend(handlers.map(|handler| Question::Arm(process, local, handler)));
            }
            let armed = expander.armed(process, own)?;
            let deliverable = expander.deliverable(self.inbox(from.inbox), &armed);
            for &Deliverable { message, place, .. } in &deliverable {
                let handlers = expander.handlers(process, message)?;
                let takes = |a: &&Armed| a.least > 0 && handlers.contains(&a.handler) && (place == 0 || !a.distinct);
                let asked = armed.iter().filter(takes);
                questions.extend(asked.map(|armed| Question::Guard(process, local, armed.handler, message)));
            }
            let candidates = expander.candidates(process, own, &armed, &deliverable)?;
            for &armed in armed.iter() {
                expander.consumable(process, own, armed, &candidates, |consumed| {
                    questions.push(Question::Step(process, local, armed.handler, consumed.to_vec()));
                    Ok(())
                })?;
                if armed.accepts {
                    expander.possible(process, armed, &candidates, |set, raises| {
                        let asked = (!raises).then(|| Question::Accept(process, local, armed.handler, set.to_vec()));
                        questions.extend(asked);
                        Ok(())
                    })?;
                }
            }
            let faults = self.model.shape().faults.iter().filter(|fault| fault.may_crash[process as usize]);
            questions.extend(faults.map(|fault| Question::Crash(process, own, fault.recovers)));
        } else if from.status == Status::Down {
            questions.push(Question::Recover(process, local));
        }
        Ok(questions)
    }

    fn answer(&self, question: &Question) -> Result<Answer> {
        if let &Question::Observe(monitor, state, event) = question {
            let observed = self.observation(monitor as usize, state, event)?;
            return Ok(Answer::Monitor(observed.map_err(|failure| Fails::from(&*failure))));
        }
        let _filling = self.fill();
        let count = self.model.shape().cells;
        let with_cells = question.local().filter(|_| count > 0 && !matches!(question, Question::Crash(..)));
        let (local, cells) = match (with_cells, question.local()) {
            (Some((_, local)), _) => self.model.values().without_cells(local, count),
            (None, local) => (local.map_or(0, |(_, local)| local), &[][..]),
        };
        let expander = Expander::new(self, NodeId::MAX, cells);
        let compared = |id| Answer::Outcomes(compared(&*self.model, self.outcomes(id), 0));
        Ok(match *question {
            Question::Armed(process, _) => Answer::Armed(expander.armed(process, local)?.to_vec()),
            Question::Arm(process, _, handler) => {
                Answer::Armed(expander.arm(process, local, handler)?.into_iter().collect())
            }
            Question::Guard(process, _, handler, message) => {
                Answer::Guard(expander.guard(process, local, handler, message)?)
            }
            Question::Accept(process, _, handler, ref set) => {
                Answer::Guard(expander.accepts(process, local, handler, std::slice::from_ref(set))?[0])
            }
            Question::Step(process, _, handler, ref consumed) => {
                compared(expander.step(process, local, handler, consumed)?)
            }
            Question::Crash(process, _, recovers) => Answer::Local(expander.crash(process, local, recovers)?),
            Question::Recover(process, _) => compared(expander.recover(process, local)?),
            Question::Observe(..) => unreachable!("answered above"),
        })
    }

    fn difference(
        &self,
        element: usize,
        question: &Question,
        image: &Question,
        expected: &Answer,
        there: &Answer,
    ) -> Fault {
        let armed = |one: &Answer, other: &Answer| match (one, other) {
            (Answer::Armed(one), Answer::Armed(other)) => {
                one.iter().find(|armed| !other.contains(armed)).map(|armed| armed.handler)
            }
            _ => None,
        };
        let (handler, consumed) = match image {
            Question::Arm(_, _, handler) => (Some(*handler), Vec::new()),
            Question::Guard(_, _, handler, message) => (Some(*handler), vec![*message]),
            Question::Accept(_, _, handler, consumed) | Question::Step(_, _, handler, consumed) => {
                (Some(*handler), consumed.clone())
            }
            _ => (armed(expected, there).or_else(|| armed(there, expected)), Vec::new()),
        };
        let evidence = match (question.local(), image.local()) {
            (Some((process, local)), Some((image, image_local))) => {
                let own = |local: LocalId| match question {
                    Question::Crash(..) => local,
                    _ => self.model.values().without_cells(local, self.model.shape().cells).0,
                };
                let (local, image_local) = (own(local), own(image_local));
                Evidence::Step { process, local, image, image_local, handler, consumed }
            }
            _ => Evidence::Monitor { monitor: question.monitor() },
        };
        self.model.asymmetry(element, evidence)
    }
}

impl Question {
    fn image(&self, model: &dyn Model, element: usize) -> Question {
        let place = |process: u16| model.shape().group.elements[element][process as usize];
        let local = |local: LocalId| model.local_image(local, element);
        match *self {
            Question::Armed(process, at) => Question::Armed(place(process), local(at)),
            Question::Arm(process, at, handler) => Question::Arm(place(process), local(at), handler),
            Question::Guard(process, at, handler, message) => {
                Question::Guard(place(process), local(at), handler, model.message_image(message, element))
            }
            Question::Accept(process, at, handler, ref set) => {
                Question::Accept(place(process), local(at), handler, image_of_set(model, set, element))
            }
            Question::Step(process, at, handler, ref consumed) => {
                Question::Step(place(process), local(at), handler, image_of_set(model, consumed, element))
            }
            Question::Crash(process, at, recovers) => Question::Crash(place(process), local(at), recovers),
            Question::Recover(process, at) => Question::Recover(place(process), local(at)),
            Question::Observe(monitor, state, event) => {
                Question::Observe(monitor, model.monitor_image(state, element), model.event_image(event, element))
            }
        }
    }

    /// The process and the local state that it is about.
    fn local(&self) -> Option<(usize, LocalId)> {
        match *self {
            Question::Armed(process, local)
            | Question::Arm(process, local, _)
            | Question::Guard(process, local, ..)
            | Question::Accept(process, local, ..)
            | Question::Step(process, local, ..)
            | Question::Crash(process, local, _)
            | Question::Recover(process, local) => Some((process as usize, local)),
            Question::Observe(..) => None,
        }
    }

    /// The handler that it is about.
    pub(crate) fn handler(&self) -> u16 {
        match *self {
            Question::Arm(_, _, handler) | Question::Guard(_, _, handler, _) | Question::Step(_, _, handler, _) => {
                handler
            }
            _ => RECOVERY,
        }
    }

    fn monitor(&self) -> usize {
        if let Question::Observe(monitor, ..) = self { *monitor as usize } else { 0 }
    }
}

/// The image of a set of messages in the order in which the engine asks: by sender, then as in the queue, or by content.
fn image_of_set(model: &dyn Model, set: &[MessageId], element: usize) -> Vec<MessageId> {
    let mut moved: Vec<MessageId> = set.iter().map(|&m| model.message_image(m, element)).collect();
    if model.shape().network == Network::Fifo {
        moved.sort_by_key(|&message| model.sender(message));
    } else {
        moved.sort_by_key(|&message| (model.sender(message), model.message_hash(message)));
    }
    moved
}

impl Answer {
    fn image(&self, model: &dyn Model, element: usize) -> Answer {
        match self {
            Answer::Armed(_) | Answer::Guard(_) => self.clone(),
            Answer::Local(local) => Answer::Local(model.local_image(*local, element)),
            Answer::Monitor(observed) => Answer::Monitor(observed.map(|state| model.monitor_image(state, element))),
            Answer::Outcomes(outcomes) => {
                let mut moved: Vec<_> = outcomes.iter().map(|outcome| outcome.image(model, element)).collect();
                moved.sort_unstable();
                Answer::Outcomes(moved)
            }
        }
    }
}

/// The images of outcomes, in canonical order.
fn compared(model: &dyn Model, outcomes: &[Outcome], element: usize) -> Vec<ComparedOutcome> {
    let compared = |outcome: &Outcome| ComparedOutcome {
        local: outcome.local,
        sends: outcome.sends.to_vec(),
        events: outcome.rare().events.clone(),
        spawns: outcome.rare().spawns.clone(),
        expected: outcome.rare().expected.clone(),
        fails: outcome.rare().failure.as_ref().map(Fails::from),
    };
    let mut moved: Vec<_> = outcomes.iter().map(|outcome| compared(outcome).image(model, element)).collect();
    moved.sort_unstable();
    moved
}

impl ComparedOutcome {
    fn image(&self, model: &dyn Model, element: usize) -> ComparedOutcome {
        let place = |process: u16| model.shape().group.elements[element][process as usize];
        let mut sends: Vec<_> =
            self.sends.iter().map(|&(to, message)| (place(to), model.message_image(message, element))).collect();
        if model.shape().network.is_ordered() {
            sends.sort_by_key(|&(to, _)| to);
        } else {
            sends.sort_unstable();
        }
        let mut spawns: Vec<_> =
            self.spawns.iter().map(|&(slot, local)| (place(slot), model.local_image(local, element))).collect();
        spawns.sort_unstable();
        let mut expected: Vec<_> = self.expected.iter().map(|&(slot, born)| (place(slot), born)).collect();
        expected.sort_unstable();
        ComparedOutcome {
            local: model.local_image(self.local, element),
            sends,
            events: self.events.iter().map(|&event| model.event_image(event, element)).collect(),
            spawns,
            expected,
            fails: self.fails,
        }
    }
}

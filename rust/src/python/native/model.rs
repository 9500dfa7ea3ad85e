//! A model whose functions run natively, on the virtual machine. Python answers what the machine does not (`PyModel`).
//!
//! CPython is also the oracle: it answers a sample of the questions, too (`sample`). A difference is an internal error, never
//! a verdict.

use crate::python::model::PyModel;
use crate::python::native::sample::{Function, Sample};
use crate::python::native::shape::{HandlerShape, NativeShape, Trigger};
use crate::python::native::views::{Global, Local, delivered};
use crate::search::test_hooks::TestHooks;
use crate::symmetry::audit::Evidence;
use crate::symmetry::images::Images;
use crate::system::encoding;
use crate::system::model::{
    Armed, CellSet, Component, Evaluation, EventId, Fault, FieldId, Initial, LocalId, MessageId, Model, MonitorId,
    Observed, Outcome, Parts, Quantifier, RAISED, RareEffects, Result, Shape, Status, Truth,
};
use crate::system::values::Values;
use crate::util::shared::SharedMap;
use crate::vm::{Answer, Bail, Delivered, FieldResult, Machine, Program, Read, StepOutcome, TOO_LONG, load};
use parking_lot::Mutex;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A machine, and what it has answered.
struct Worker {
    machine: Machine,
    answered: u64,
    /// How many questions it has left to Python.
    left: u64,
}

// SAFETY: a machine shares no value with anything outside of it, so it can move to another thread as a whole.
unsafe impl Send for Worker {}

pub struct NativeModel {
    pub(super) python: Arc<PyModel>,
    program: Arc<Program>,
    pub(super) shape: NativeShape,
    quantified: Shape,
    idle: Mutex<Vec<Worker>>,
    sample: Mutex<Sample>,
    /// How many answers were compared with those of Python.
    compared: AtomicU64,
    /// Local states whose `armed` Python has answered: a guard may have raised an exception there.
    left_to_python: SharedMap<(u16, LocalId), ()>,
    /// Guards that raised an exception: process, local state, handler, messages.
    raised: SharedMap<(u16, LocalId, u16, Vec<MessageId>), ()>,
    /// In a system with cells: processes and handlers of which one of these is known for some contents of the cells. The
    /// engine knows a guard by the cells that it reads, and may ask for the step with other contents of the others.
    raising: SharedMap<(u16, u16), ()>,
    /// Classes of messages that were sent, and their receivers.
    sent: SharedMap<(Vec<u8>, u16), ()>,
    reasons: SharedMap<&'static str, ()>,
    /// For tests: a machine that does not try other orders of sets.
    forgets_orders: bool,
}

/// The virtual machine and CPython gave different answers.
#[derive(Debug)]
pub struct Disagreement(pub String);

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Disagreement {}

impl NativeModel {
    pub fn new(python: Arc<PyModel>, shape: NativeShape) -> std::result::Result<NativeModel, String> {
        let program = load(&shape.program)?;
        let mut quantified = python.shape().clone();
        let processes = quantified.processes;
        quantified.quantifiers = (program.properties.iter())
            .map(|property| {
                property.as_ref().map_or_else(Quantifier::default, |property| {
                    Quantifier::new(processes, property.every, property.parts.iter().map(|part| &*part.positions))
                })
            })
            .collect();
        Ok(NativeModel {
            python,
            program: Arc::new(program),
            shape,
            quantified,
            idle: Mutex::default(),
            sample: Mutex::default(),
            compared: AtomicU64::new(0),
            left_to_python: SharedMap::default(),
            raised: SharedMap::default(),
            raising: SharedMap::default(),
            sent: SharedMap::default(),
            reasons: SharedMap::default(),
            forgets_orders: TestHooks::current().leaves_out("set orders"),
        })
    }

    /// How many questions the machine has answered.
    pub fn answered(&self) -> u64 {
        self.idle.lock().iter().map(|worker| worker.answered).sum()
    }

    /// How many questions the machine has left to Python.
    pub fn left(&self) -> u64 {
        self.idle.lock().iter().map(|worker| worker.left).sum()
    }

    /// How many answers of the machine were compared with those of Python.
    pub fn compared(&self) -> u64 {
        self.compared.load(Relaxed)
    }

    /// CPython, asked only to compare its answer.
    fn oracle(&self) -> &PyModel {
        self.compared.fetch_add(1, Relaxed);
        &self.python
    }

    /// Ask Python, because the machine has bailed.
    fn left_to<R>(&self, bail: Bail, ask: impl FnOnce(&PyModel) -> R) -> R {
        if bail == TOO_LONG { self.python.insist(ask) } else { ask(&self.python) }
    }

    /// Why the machine has left questions to Python.
    pub fn reasons(&self) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        self.reasons.for_each(|reason, ()| reasons.push(*reason));
        reasons.sort_unstable();
        reasons
    }

    /// Ask the machine, and tell whether CPython must be asked too.
    fn ask<T>(&self, function: Function, question: impl FnOnce(&mut Machine) -> Answer<T>) -> (Answer<T>, bool) {
        let idle = self.idle.lock().pop();
        let mut worker = idle.unwrap_or_else(|| {
            let mut machine = Machine::new(self.program.clone());
            machine.set_fifo(self.python.shape().network.is_ordered());
            machine.set_stop(self.python.silent().clone());
            if self.forgets_orders {
                machine.forget_orders();
            }
            Worker { machine, answered: 0, left: 0 }
        });
        let answer = question(&mut worker.machine);
        let (ordered, way) = (worker.machine.take_ordered_sets(), worker.machine.take_branches());
        let mut compare = false;
        match &answer {
            Ok(_) => {
                worker.answered += 1;
                compare = self.sample.lock().takes(function, ordered, way);
            }
            Err(bail) => {
                worker.left += 1;
                self.note(*bail);
            }
        }
        self.idle.lock().push(worker);
        (answer, compare)
    }

    fn note(&self, bail: Bail) {
        if self.reasons.get(bail.reason()).is_none() {
            self.reasons.insert(bail.reason(), ());
        }
    }

    pub(super) fn local(&self, local: LocalId) -> Local<'_> {
        let values = self.values();
        Local { values, fields: values.fields(local) }
    }

    pub(super) fn handlers_of(&self, process: usize) -> &[HandlerShape] {
        &self.shape.handlers[self.shape.classes[process]]
    }

    fn disagreement(&self, what: &str, asked: &str, native: &dyn fmt::Debug, python: &dyn fmt::Debug) -> Fault {
        Box::new(Disagreement(format!(
            "the virtual machine and CPython disagree about {what}\n  asked: {asked}\n  virtual machine: {native:?}\n  CPython: \
             {python:?}"
        )))
    }

    /// A question about a process, for a disagreement: canonical bytes, from which it can be asked again.
    fn asked(&self, process: usize, local: LocalId, messages: &[MessageId]) -> String {
        let values = self.values();
        let messages: Vec<String> = messages
            .iter()
            .map(|&message| format!("({}, {})", values.sender(message), hex(values.message_content(message))))
            .collect();
        format!(
            "process {process}, local state {}, messages [{}]",
            hex(&values.local_content(local)),
            messages.join(", ")
        )
    }

    fn outcome(&self, process: usize, before: LocalId, outcome: StepOutcome) -> Outcome {
        let values = self.values();
        let StepOutcome { mut fields, mut sends, events, spawns, expected, choices, .. } = outcome;
        let shape = self.python.shape();
        let written = fields.split_off(fields.len() - shape.cells);
        let before = values.without_cells(before, shape.cells).0;
        // On an unordered network, the order of sends does not matter. It must not make outcomes differ.
        if !shape.network.is_ordered() {
            sends.sort_unstable();
        }
        let mut spawns: Vec<(u16, LocalId)> =
            spawns.iter().map(|(slot, content)| (*slot, values.local(content))).collect();
        for (position, result) in (shape.movers()..).zip(&written) {
            if let FieldResult::Changed(content) = result {
                spawns.push((position as u16, values.local_of(Status::Up, &[values.field(content)])));
            }
        }
        let rare = RareEffects {
            events: events.iter().map(|event| values.event(process as u16, event)).collect(),
            spawns,
            expected,
            failure: None,
        };
        let sends = sends.iter().map(|(to, content)| (*to, values.message(process as u16, content))).collect();
        let choices = choices.iter().map(|choice| values.field(choice)).collect();
        Outcome::new(self.changed(before, &fields), sends, choices, rare)
    }

    /// Whether no step has sent a message of this class to this receiver so far.
    fn is_new(&self, to: u16, content: &[u8]) -> bool {
        let key = (class_name(content).to_vec(), to);
        if self.sent.get(&key).is_some() {
            return false;
        }
        self.sent.insert(key, ());
        true
    }

    /// The local state (or that of a monitor) with these changes.
    fn changed(&self, before: LocalId, results: &[FieldResult]) -> LocalId {
        let values = self.values();
        if results.iter().all(|result| *result == FieldResult::Unchanged) {
            return before;
        }
        let after: Vec<FieldId> = values
            .fields(before)
            .iter()
            .zip(results)
            .map(|(&field, result)| match result {
                FieldResult::Unchanged => field,
                FieldResult::Changed(content) => values.field(content),
            })
            .collect();
        values.local_of(Status::Up, &after)
    }

    /// Whether one step sends no more to a process than a channel holds. If it does, CPython says so.
    fn fits<T>(&self, sends: &[(u16, T)]) -> bool {
        let count = |to: u16| sends.iter().filter(|(other, _)| *other == to).count();
        self.shape().blocks().is_none_or(|most| sends.len() <= most || sends.iter().all(|(to, _)| count(*to) <= most))
    }

    fn run(
        &self,
        process: usize,
        local: LocalId,
        handler: u16,
        messages: &[MessageId],
        read: &mut CellSet,
    ) -> Result<Vec<Outcome>> {
        let consumed: Vec<Delivered> = messages.iter().map(|&message| delivered(self.values(), message)).collect();
        let function = Function::Step(self.shape.classes[process], handler);
        let (answer, compare) = self.ask(function, |machine| {
            let answer = machine.step(process as u16, handler, &self.local(local), &consumed);
            *read |= self.cells_read(machine, &self.local(local));
            answer
        });
        match answer {
            Ok(outcomes) if outcomes.iter().all(|outcome| outcome.no_slot.is_none() && self.fits(&outcome.sends)) => {
                // CPython notes which messages are sent to whom (`Tabulation.sent`), so it is asked about each first one.
                let sends = outcomes.iter().flat_map(|outcome| &outcome.sends);
                let compare = sends.fold(compare, |compare, (to, content)| self.is_new(*to, content) || compare);
                let found: Vec<Outcome> =
                    outcomes.into_iter().map(|outcome| self.outcome(process, local, outcome)).collect();
                if compare {
                    let expected = self.oracle().step(process, local, handler, messages, read)?;
                    if expected != found {
                        let what = format!("a step (handler {handler})");
                        return Err(self.disagreement(&what, &self.asked(process, local, messages), &found, &expected));
                    }
                }
                Ok(found)
            }
            Ok(_) => self.python.step(process, local, handler, messages, read),
            Err(bail) => self.left_to(bail, |python| python.step(process, local, handler, messages, read)),
        }
    }
}

/// The name of the class of a message or record in canonical bytes.
fn class_name(content: &[u8]) -> &[u8] {
    encoding::record_name(content).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Model for NativeModel {
    fn shape(&self) -> &Shape {
        &self.quantified
    }

    fn values(&self) -> &Values {
        self.python.values()
    }

    fn images(&self) -> &Images {
        self.python.images()
    }

    fn in_thread(&self, body: &mut dyn FnMut()) {
        self.python.in_thread(body);
    }

    fn asked(&self) -> u64 {
        self.python.asked()
    }

    fn initial(&self) -> Result<Initial> {
        self.python.initial()
    }

    fn armed(&self, process: usize, local: LocalId, only: Option<u16>, read: &mut CellSet) -> Result<Vec<Armed>> {
        let function = Function::Armed(self.shape.classes[process]);
        let (answer, compare) = self.ask(function, |machine| self.armed_natively(machine, process, local, only, read));
        match answer {
            Ok(found) => {
                if compare {
                    let expected = self.oracle().armed(process, local, only, read)?;
                    if expected != found {
                        let asked = self.asked(process, local, &[]);
                        return Err(self.disagreement("which handlers may run", &asked, &found, &expected));
                    }
                }
                Ok(found)
            }
            Err(bail) => {
                self.left_to_python.insert((process as u16, local), ());
                if let Some(handler) = only {
                    self.raising.insert((process as u16, handler), ());
                }
                self.left_to(bail, |python| python.armed(process, local, only, read))
            }
        }
    }

    fn handlers(&self, process: usize, message: MessageId) -> Result<Vec<u16>> {
        let values = self.values();
        let (sender, name) = (values.sender(message) as usize, class_name(values.message_content(message)));
        let known = std::str::from_utf8(name).ok().and_then(|name| self.shape.triggered.get(name));
        match known {
            Some(by_class) => Ok(by_class[self.shape.classes[process]][self.shape.classes[sender]].clone()),
            None => self.python.handlers(process, message),
        }
    }

    fn guards(
        &self,
        process: usize,
        local: LocalId,
        questions: &[(u16, MessageId)],
        read: &mut CellSet,
    ) -> Result<Vec<Option<u32>>> {
        let mut groups = Vec::with_capacity(questions.len());
        for &(handler, message) in questions {
            let shape = &self.handlers_of(process)[handler as usize];
            let function = Function::Guard(self.shape.classes[process], handler);
            let (answer, compare) = self.ask(function, |machine| {
                let delivered = delivered(self.values(), message);
                if shape.guarded {
                    let holds = machine.guard(process as u16, handler, &self.local(local), Some(delivered))?;
                    *read |= self.cells_read(machine, &self.local(local));
                    if !holds {
                        return Ok(None);
                    }
                }
                self.group(shape, message).map(Some).ok_or(Bail(&"a message of an unknown class"))
            });
            let native = answer.ok();
            let group = match answer {
                Ok(group) if !compare => group,
                _ => {
                    let mut ask = |python: &PyModel| python.guards(process, local, &[(handler, message)], read);
                    let group = match answer {
                        Ok(_) => ask(self.oracle()),
                        Err(bail) => self.left_to(bail, &mut ask),
                    }?[0];
                    if native.is_some_and(|native| native != group) {
                        let (what, asked) =
                            (format!("a guard (handler {handler})"), self.asked(process, local, &[message]));
                        return Err(self.disagreement(&what, &asked, &native, &group));
                    }
                    if group == Some(RAISED) {
                        self.raised.insert((process as u16, local, handler, vec![message]), ());
                        self.raising.insert((process as u16, handler), ());
                    }
                    group
                }
            };
            groups.push(group);
        }
        Ok(groups)
    }

    fn accepts(
        &self,
        process: usize,
        local: LocalId,
        handler: u16,
        sets: &[Vec<MessageId>],
        read: &mut CellSet,
    ) -> Result<Vec<Truth>> {
        let mut answers = Vec::with_capacity(sets.len());
        for set in sets {
            let function = Function::Accept(self.shape.classes[process], handler);
            let messages: Vec<Delivered> = set.iter().map(|&message| delivered(self.values(), message)).collect();
            let (answer, compare) = self.ask(function, |machine| {
                let answer = machine.accepts(process as u16, handler, &self.local(local), &messages);
                *read |= self.cells_read(machine, &self.local(local));
                answer
            });
            let accepted = match answer {
                Ok(accepted) if !compare => Some(accepted),
                _ => {
                    let mut ask =
                        |python: &PyModel| python.accepts(process, local, handler, std::slice::from_ref(set), read);
                    let found = match answer {
                        Ok(_) => ask(self.oracle()),
                        Err(bail) => self.left_to(bail, &mut ask),
                    }?[0];
                    if answer.is_ok_and(|native| found != Some(native)) {
                        let what = format!("a set of messages (handler {handler})");
                        return Err(self.disagreement(&what, &self.asked(process, local, set), &answer.ok(), &found));
                    }
                    if found.is_none() {
                        self.raised.insert((process as u16, local, handler, set.clone()), ());
                        self.raising.insert((process as u16, handler), ());
                    }
                    found
                }
            };
            answers.push(accepted);
        }
        Ok(answers)
    }

    fn step(
        &self,
        process: usize,
        local: LocalId,
        handler: u16,
        messages: &[MessageId],
        read: &mut CellSet,
    ) -> Result<Vec<Outcome>> {
        let raised = match messages {
            _ if self.python.shape().cells > 0 => self.raising.get(&(process as u16, handler)).is_some(),
            [] => self.left_to_python.get(&(process as u16, local)).is_some(),
            _ => self.raised.get(&(process as u16, local, handler, messages.to_vec())).is_some(),
        };
        if raised {
            return self.python.step(process, local, handler, messages, read);
        }
        self.run(process, local, handler, messages, read)
    }

    fn crash(&self, process: usize, local: LocalId, recovers: bool) -> Result<LocalId> {
        let values = self.values();
        let mut fields = values.fields(local).to_vec();
        if !recovers {
            return Ok(values.local_of(Status::Crashed, &fields));
        }
        for (field, content) in &self.shape.volatile[process] {
            fields[*field] = values.field(content);
        }
        Ok(values.local_of(Status::Down, &fields))
    }

    fn recover(&self, process: usize, local: LocalId, read: &mut CellSet) -> Result<Vec<Outcome>> {
        let values = self.values();
        let back = values.local_of(Status::Up, values.fields(local));
        match self.handlers_of(process).iter().position(|handler| handler.trigger == Trigger::Recovery) {
            Some(handler) => self.run(process, back, handler as u16, &[], read),
            None => Ok(vec![Outcome::new(
                values.without_cells(back, self.python.shape().cells).0,
                Vec::new(),
                Vec::new(),
                RareEffects::default(),
            )]),
        }
    }

    fn observe(&self, monitor: usize, state: MonitorId, event: EventId) -> Result<Observed> {
        let (by, content) = self.values().event_content(event);
        let function = Function::Observe(monitor);
        let (answer, compare) =
            self.ask(function, |machine| machine.observe(monitor as u16, &self.local(state), by, content));
        let results = match answer {
            Ok(results) => results,
            Err(bail) => return self.left_to(bail, |python| python.observe(monitor, state, event)),
        };
        let found = self.changed(state, &results);
        if compare {
            let expected = self.oracle().observe(monitor, state, event)?;
            if expected != Ok(found) {
                let asked = format!("state {}, event {}", hex(&self.values().monitor_content(state)), hex(content));
                let expected = expected.map(|state| hex(&self.values().monitor_content(state)));
                let found = hex(&self.values().monitor_content(found));
                return Err(self.disagreement(&format!("monitor {monitor}"), &asked, &found, &expected));
            }
        }
        Ok(Ok(found))
    }

    fn evaluate(&self, property: usize, part: usize, parts: &Parts) -> Result<Evaluation> {
        let whole = part == self.quantified.quantifiers[property].parts;
        let state = Global { values: self.values(), parts };
        let mut reads = Vec::new();
        let (answer, compare) = self.ask(Function::Property(property, whole), |machine| {
            let value = if whole { machine.property(property, &state) } else { machine.part(property, part, &state) };
            for &read in machine.reads() {
                let component = match read {
                    Read::Status(process) => Component::Field(process, 0),
                    Read::Field(process, field) => Component::Field(process, field + 1),
                    Read::Inbox(process) => Component::Inbox(process),
                    Read::Monitor(monitor, _) => Component::Monitor(monitor),
                };
                if !reads.contains(&component) {
                    reads.push(component);
                }
            }
            value
        });
        let value = match answer {
            Ok(value) => value,
            Err(bail) if whole => return self.left_to(bail, |python| python.evaluate(property, part, parts)),
            Err(_) => return Ok(Evaluation { value: None, reads }),
        };
        if compare {
            let expected = self.oracle().evaluate(property, part, parts)?.value;
            let Quantifier { parts: count, every, .. } = self.quantified.quantifiers[property];
            // All parts together must say what the property says. If one bails, it may raise an exception.
            let together = |machine: &mut Machine| {
                let parts = (0..count).map(|part| machine.part(property, part, &state));
                let decided = parts.collect::<Answer<Vec<bool>>>()?.contains(&!every);
                Ok(decided != every)
            };
            let agree = if whole {
                expected == Some(value)
            } else {
                let found = self.ask(Function::Property(property, whole), together).0;
                found.map_or(true, |found| expected == Some(found))
            };
            if !agree {
                let locals: Vec<String> = parts.locals.iter().map(|&l| hex(&self.values().local_content(l))).collect();
                let what = format!("property {property} (part {part})");
                return Err(self.disagreement(&what, &format!("local states {locals:?}"), &value, &expected));
            }
        }
        Ok(Evaluation { value: Some(value), reads })
    }

    fn too_many_sets(&self, process: usize, handler: u16) -> Fault {
        self.python.too_many_sets(process, handler)
    }

    fn asymmetry(&self, element: usize, evidence: Evidence) -> Fault {
        self.python.asymmetry(element, evidence)
    }
}

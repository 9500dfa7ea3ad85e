//! The questions that a machine answers, for one thread. Programs are shared by all threads.

use crate::vm::memory::Memory;
use crate::vm::program::{Handler, Program};
use crate::vm::run::{Question, Run};
use crate::vm::step::{Asked, Effects, StepOutcome, decoded_messages, same_outcomes};
use crate::vm::value::compare::identical;
use crate::vm::value::decode::decoded;
use crate::vm::value::encode::encoded;
use crate::vm::value::{Items, Value};
use crate::vm::{Answer, Bail, ORDER_MATTERS};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const NOT_LOWERED: Bail = Bail(&"a function that is not lowered");

/// The fields of a local state, or of a monitor.
pub trait LocalFields {
    fn count(&self) -> usize;
    /// The id of the content of a field, and its canonical bytes. Equal ids mean equal bytes, in all fields of all
    /// processes and monitors. `NO_ID` if the content has none.
    fn field(&self, index: usize) -> (u32, &[u8]);
}

/// A global state, by positions.
pub trait StateView {
    /// 0 up, 1 crashed, 2 down, 3 unborn.
    fn status(&self, process: usize) -> u8;
    /// As `LocalFields::field`.
    fn field(&self, process: usize, field: usize) -> (u32, &[u8]);
    /// The number of pending messages.
    fn inbox(&self, process: usize) -> usize;
    fn message(&self, process: usize, place: usize) -> Delivered<'_>;
    fn monitor(&self, monitor: usize, field: usize) -> (u32, &[u8]);
}

/// Content without an id is decoded each time.
pub const NO_ID: u32 = u32::MAX;

/// A message that a process receives.
#[derive(Clone, Copy)]
pub struct Delivered<'a> {
    pub sender: u16,
    /// Equal ids mean equal content and sender.
    pub id: u32,
    pub content: &'a [u8],
}

/// What a guard gets besides the process.
#[derive(Clone, Copy)]
enum Given<'a> {
    One(Option<Delivered<'a>>),
    Several(&'a [Delivered<'a>]),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldResult {
    Unchanged,
    /// The canonical bytes of the new value.
    Changed(Vec<u8>),
}

/// Something that a question read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    Status(u16),
    /// A process and a field.
    Field(u16, u16),
    Inbox(u16),
    /// A monitor and a field.
    Monitor(u16, u16),
}

/// Answers questions about one program. Each thread has its own.
pub struct Machine {
    program: Arc<Program>,
    state: State,
}

/// The part of a machine that changes, apart from the program: a question borrows both.
pub(super) struct State {
    pub memory: Memory,
    pub effects: Effects,
    /// What the fields that were read belong to.
    asked_about: Option<Read>,
    /// Whether a question has iterated a set of several elements.
    ordered_sets: bool,
    /// How many other orders of sets a question is asked in, at most.
    most_orders: usize,
}

/// The usual number of other orders of sets.
const OTHER_ORDERS: usize = 5;

impl Machine {
    pub fn new(program: Arc<Program>) -> Machine {
        let memory = Memory::new(&program);
        let effects = Effects::default();
        let state = State { memory, effects, asked_about: None, ordered_sets: false, most_orders: OTHER_ORDERS };
        Machine { program, state }
    }

    /// Whether the order of sends matters (the default). If not, steps that differ only in it are equal.
    pub fn set_fifo(&mut self, fifo: bool) {
        self.state.memory.fifo = fifo;
    }

    /// Let questions that take long bail when this becomes true.
    pub fn set_stop(&mut self, stop: Arc<AtomicBool>) {
        self.state.memory.stop = Some(stop);
    }

    /// Whether a question has iterated a set of several elements since the last call of this function.
    pub fn take_ordered_sets(&mut self) -> bool {
        std::mem::take(&mut self.state.ordered_sets)
    }

    /// The ways that tests have gone since the last call of this function.
    pub fn take_branches(&mut self) -> u128 {
        std::mem::take(&mut self.state.memory.branches)
    }

    /// For tests: ask in one order of sets only.
    pub fn forget_orders(&mut self) {
        self.state.most_orders = 0;
    }

    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Run a handler on every combination of choices. The messages are in the order of their senders.
    pub fn step(
        &mut self,
        process: u16,
        handler: u16,
        local: &dyn LocalFields,
        messages: &[Delivered],
    ) -> Answer<Vec<StepOutcome>> {
        let entry = handler_of(&self.program, process, handler)?;
        let function = entry.step.ok_or(NOT_LOWERED)?;
        self.state.begin(Some(Read::Field(process, 0)));
        let asked = Asked { program: &self.program, process, function, several: entry.several, local, messages };
        let fifo = self.state.memory.fifo;
        self.state.in_all_orders(|state, order| state.explore(&asked, order), |a, b| same_outcomes(a, b, fifo))
    }

    /// The value of the guard of a handler. An action has no message.
    pub fn guard(
        &mut self,
        process: u16,
        handler: u16,
        local: &dyn LocalFields,
        message: Option<Delivered>,
    ) -> Answer<bool> {
        let function = handler_of(&self.program, process, handler)?.guard.ok_or(NOT_LOWERED)?;
        let value = self.about_process(process, function, local, Given::One(message))?;
        Ok(value.truth())
    }

    /// The value of the guard of a handler over a whole set of messages, in the order of their senders.
    pub fn accepts(
        &mut self,
        process: u16,
        handler: u16,
        local: &dyn LocalFields,
        messages: &[Delivered],
    ) -> Answer<bool> {
        let function = handler_of(&self.program, process, handler)?.accept.ok_or(NOT_LOWERED)?;
        let value = self.about_process(process, function, local, Given::Several(messages))?;
        Ok(value.truth())
    }

    /// The number of messages that a handler takes.
    pub fn quorum(&mut self, process: u16, handler: u16, local: &dyn LocalFields) -> Answer<i64> {
        let function = handler_of(&self.program, process, handler)?.quorum.ok_or(NOT_LOWERED)?;
        match self.about_process(process, function, local, Given::One(None))? {
            Value::Int(number) if (1..=i64::from(u16::MAX)).contains(&number) => Ok(number),
            _ => Err(Bail(&"a quorum that is no number of messages")),
        }
    }

    fn about_process(&mut self, process: u16, function: u32, local: &dyn LocalFields, given: Given) -> Answer<Value> {
        let program = &*self.program;
        self.state.begin(Some(Read::Status(process)));
        self.state.in_all_orders(
            |state, order| {
                let State { memory, effects, .. } = state;
                memory.reset_fields(local.count());
                let message = match given {
                    Given::One(message) => message.map(|m| memory.decoded_message(program, m, true)).transpose()?,
                    Given::Several(messages) => Some(decoded_messages(memory, program, messages, true)?),
                };
                let mut run = Run::new(program, memory, effects, Question::Guard(process, local), order);
                // A guard that is asked without a message bails as soon as it reads the message.
                let missing = program.functions[function as usize].parameters.saturating_sub(1);
                let message = message.into_iter().chain(std::iter::repeat(Value::Unset)).take(missing);
                let value = run.call(function, [Value::Process].into_iter().chain(message))?;
                // Only the number of a quorum is more than true or false.
                let value = if matches!(value, Value::Int(_)) { value } else { Value::Bool(value.truth()) };
                Ok((value, run.largest_set))
            },
            identical,
        )
    }

    /// The fields of a monitor after an event that a process announced.
    pub fn observe(
        &mut self,
        monitor: u16,
        state: &dyn LocalFields,
        by: u16,
        event: &[u8],
    ) -> Answer<Vec<FieldResult>> {
        let program = &*self.program;
        let function = program.monitors.get(monitor as usize).and_then(|m| m.1).ok_or(NOT_LOWERED)?;
        let process = program.processes.get(by as usize).ok_or(NOT_LOWERED)?;
        self.state.begin(Some(Read::Monitor(monitor, 0)));
        self.state.in_all_orders(
            |machine, order| {
                let State { memory, effects, .. } = machine;
                memory.reset_fields(state.count());
                let event = decoded(program, event, false)?.0;
                let mut run = Run::new(program, memory, effects, Question::Observe(monitor, state), order);
                run.call(function, [Value::Monitor(monitor), Value::Pid(process.pid), event])?;
                let largest = run.largest_set;
                Ok((memory.field_results(program, state)?, largest))
            },
            |a, b| a == b,
        )
    }

    /// The value of a property in a state.
    pub fn property(&mut self, property: usize, state: &dyn StateView) -> Answer<bool> {
        let entry = self.program.properties.get(property).and_then(Option::as_ref).ok_or(NOT_LOWERED)?;
        // The view itself is no value.
        let parameters = self.program.functions[entry.function as usize].parameters;
        let views = std::iter::repeat_n(Value::Unset, parameters).collect();
        self.state.property(&self.program, entry.function, views, state)
    }

    /// The value of a function of a state that need not be true or false, as canonical bytes.
    pub fn value(&mut self, property: usize, state: &dyn StateView) -> Answer<Vec<u8>> {
        let entry = self.program.properties.get(property).and_then(Option::as_ref).ok_or(NOT_LOWERED)?;
        let parameters = self.program.functions[entry.function as usize].parameters;
        let views = std::iter::repeat_n(Value::Unset, parameters).collect();
        self.state.about_state(&self.program, entry.function, views, state, encoded)
    }

    /// The value of a part of a property.
    pub fn part(&mut self, property: usize, part: usize, state: &dyn StateView) -> Answer<bool> {
        let entry = self.program.properties.get(property).and_then(Option::as_ref);
        let part = entry.and_then(|entry| entry.parts.get(part)).ok_or(NOT_LOWERED)?;
        let views = part.positions.iter().map(|&position| Value::View(position)).collect();
        self.state.property(&self.program, part.function, views, state)
    }

    /// Call a function of the program on values, for tests: its result, and the arguments afterwards.
    pub fn call(&mut self, function: u32, arguments: &[&[u8]], order: usize) -> Answer<(Vec<u8>, Vec<Vec<u8>>)> {
        let program = &*self.program;
        if function as usize >= program.functions.len() {
            return Err(NOT_LOWERED);
        }
        self.state.begin(None);
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            given.push(decoded(program, argument, false)?.0);
        }
        let State { memory, effects, .. } = &mut self.state;
        let mut run = Run::new(program, memory, effects, Question::Call, order);
        let result = run.call(function, given.iter().cloned())?;
        let after = given.iter().map(|argument| encoded(program, argument)).collect::<Answer<_>>()?;
        Ok((encoded(program, &result)?, after))
    }

    /// What the last question read. Properties: in the order of the first reads. Steps, guards and observations: the
    /// fields of the process or the monitor, in their order.
    pub fn reads(&mut self) -> &[Read] {
        let State { memory, asked_about, .. } = &mut self.state;
        if let Some(about) = asked_about.take() {
            for field in 0..memory.fields.len() as u16 {
                if memory.fields_read & 1 << field.min(63) != 0 {
                    memory.reads.push(match about {
                        Read::Monitor(monitor, _) => Read::Monitor(monitor, field),
                        Read::Status(process) | Read::Field(process, _) | Read::Inbox(process) => {
                            Read::Field(process, field)
                        }
                    });
                }
            }
        }
        &memory.reads
    }

    /// The fields of `self` that the last step, guard or observation read: bit i is field i, and bit 63 stands for all
    /// from 63 on.
    pub fn fields_read(&self) -> u64 {
        self.state.memory.fields_read
    }
}

impl State {
    fn begin(&mut self, about: Option<Read>) {
        self.memory.reads.clear();
        self.memory.fields_read = 0;
        self.asked_about = about;
    }

    /// Ask in the usual order of sets, then in others if sets were iterated. All answers must be the same.
    pub fn in_all_orders<T>(
        &mut self,
        mut ask: impl FnMut(&mut State, usize) -> Answer<(T, usize)>,
        same: impl Fn(&T, &T) -> bool,
    ) -> Answer<T> {
        let (answer, largest) = ask(self, 0)?;
        self.ordered_sets |= largest > 1;
        // What the first run reads decides the answer: the others only show that the order does not matter.
        let (reads, fields_read) = (self.memory.reads.len(), self.memory.fields_read);
        let others = if largest > 2 { largest } else { usize::from(largest == 2) }.min(self.most_orders);
        for order in 1..=others {
            if !same(&ask(self, order)?.0, &answer) {
                return Err(ORDER_MATTERS);
            }
        }
        self.memory.reads.truncate(reads);
        self.memory.fields_read = fields_read;
        Ok(answer)
    }

    /// The value of a property, or of a part of one.
    fn property(&mut self, program: &Program, function: u32, views: Items, state: &dyn StateView) -> Answer<bool> {
        self.about_state(program, function, views, state, |_, value| match value {
            Value::Bool(truth) => Ok(*truth),
            _ => Err(Bail(&"a property that is neither true nor false")),
        })
    }

    /// What a function of a state returns, as `made` makes it from the value.
    fn about_state<T: PartialEq>(
        &mut self,
        program: &Program,
        function: u32,
        views: Items,
        state: &dyn StateView,
        made: impl Fn(&Program, &Value) -> Answer<T>,
    ) -> Answer<T> {
        self.begin(None);
        self.in_all_orders(
            |machine, order| {
                let State { memory, effects, .. } = machine;
                memory.reset_views(program);
                let mut run = Run::new(program, memory, effects, Question::Property(state), order);
                let value = run.call(function, views.iter().cloned())?;
                let largest = run.largest_set;
                Ok((made(program, &value)?, largest))
            },
            |a, b| a == b,
        )
    }
}

fn handler_of(program: &Program, process: u16, handler: u16) -> Answer<&Handler> {
    let of_class = program.processes.get(process as usize).map(|process| &program.handlers[process.handlers]);
    of_class.and_then(|handlers| handlers.get(handler as usize)).ok_or(NOT_LOWERED)
}

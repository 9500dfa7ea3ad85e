//! Steps: the effects of a handler, and its choices. A handler runs once for each combination of choices, in the order of
//! `plait.check.tabulate.steprun.Branches`.

use crate::vm::library::is_lazy;
use crate::vm::machine::{Delivered, FieldResult, LocalFields, State};
use crate::vm::memory::Memory;
use crate::vm::program::{Choice, Expression, Kind, Program};
use crate::vm::run::{Frame, Go, Question, Run};
use crate::vm::value::encode::{Encoder, encoded};
use crate::vm::value::{Items, Value};
use crate::vm::{Answer, Bail};
use std::rc::Rc;

/// More outcomes of one step are left to CPython, which reports them.
const MOST_OUTCOMES: usize = 50_000;
/// A step with more outcomes runs in two orders of sets only, as in CPython.
const FEW_OUTCOMES: usize = 1_000;
/// The first byte of the local state of a process that runs.
const UP: u8 = 0;
const NO_SLOT: Bail = Bail(&"no spare slot");
const OUTSIDE: Bail = Bail(&"an effect outside of a step");

/// The result of one run of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOutcome {
    pub fields: Vec<FieldResult>,
    /// Receivers and messages, in the order sent.
    pub sends: Vec<(u16, Vec<u8>)>,
    pub events: Vec<Vec<u8>>,
    /// Slots and their initial local states (with the byte of the status).
    pub spawns: Vec<(u16, Vec<u8>)>,
    /// Slots that this outcome assumes to be unborn (true) or born (false), sorted.
    pub expected: Vec<(u16, bool)>,
    pub choices: Vec<Vec<u8>>,
    /// This branch fails: it spawns a process, but all slots are taken. Fields, sends, events and spawns are empty.
    pub no_slot: Option<NoSlot>,
}

/// A spawn without a free slot: the class, and how many slots it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSlot {
    pub class: u32,
    pub slots: usize,
}

/// What a running handler has done, and which choices it is to take.
#[derive(Default)]
pub struct Effects {
    sends: Vec<(u16, Vec<u8>)>,
    events: Vec<Vec<u8>>,
    choices: Vec<Vec<u8>>,
    spawned: Vec<(u16, Items)>,
    expected: Vec<(u16, bool)>,
    no_slot: Option<NoSlot>,
    script: Vec<usize>,
    widths: Vec<usize>,
    /// By position in the script, the options of a choice that need not be computed again.
    options: Vec<Option<Rc<[Value]>>>,
}

impl Effects {
    fn clear(&mut self) {
        self.sends.clear();
        self.events.clear();
        self.choices.clear();
        self.spawned.clear();
        self.expected.clear();
        self.no_slot = None;
        self.widths.clear();
    }

    /// The branch to take now, of so many.
    fn next(&mut self, width: usize) -> usize {
        let position = self.widths.len();
        self.widths.push(width);
        if position == self.script.len() {
            self.script.push(0);
        }
        self.script[position]
    }

    /// Move to the next combination. False if all were tried.
    fn advance(&mut self) -> bool {
        self.script.truncate(self.widths.len());
        while self.script.last().is_some_and(|&last| last + 1 >= self.widths[self.script.len() - 1]) {
            self.script.pop();
        }
        self.options.truncate(self.script.len());
        match self.script.last_mut() {
            Some(last) => {
                *last += 1;
                true
            }
            None => false,
        }
    }
}

/// A question about a step.
pub struct Asked<'a> {
    pub program: &'a Program,
    pub process: u16,
    pub function: u32,
    /// The handler gets a tuple of messages.
    pub several: bool,
    pub local: &'a dyn LocalFields,
    pub messages: &'a [Delivered<'a>],
}

impl State {
    /// All outcomes of a step, and the size of the largest set that was iterated.
    pub fn explore(&mut self, asked: &Asked, order: usize) -> Answer<(Vec<StepOutcome>, usize)> {
        let Asked { program, local, .. } = *asked;
        self.effects.script.clear();
        self.effects.options.clear();
        let mut outcomes = Vec::with_capacity(1);
        let mut largest = 0;
        loop {
            let State { memory, effects, .. } = self;
            memory.reset_fields(local.count());
            effects.clear();
            let message = message_argument(memory, asked)?;
            let mut run = Run::new(program, memory, effects, Question::Step(asked.process, local), order);
            let result = run.call(asked.function, [Some(Value::Process), message].into_iter().flatten());
            largest = largest.max(run.largest_set);
            match result {
                Ok(_) => outcomes.push(self.outcome(program, local)?),
                Err(_) if self.effects.no_slot.is_some() => outcomes.push(self.no_slot(local.count())),
                Err(bail) => return Err(bail),
            }
            if !self.effects.advance() {
                break;
            }
            if outcomes.len() >= MOST_OUTCOMES {
                return Err(Bail(&"too many combinations of choices"));
            }
        }
        if outcomes.len() > FEW_OUTCOMES {
            largest = largest.min(2);
        }
        Ok((outcomes, largest))
    }

    fn outcome(&mut self, program: &Program, local: &dyn LocalFields) -> Answer<StepOutcome> {
        let fields = self.memory.field_results(program, local)?;
        let effects = &mut self.effects;
        let mut spawns = Vec::new();
        for (slot, values) in &effects.spawned {
            let mut encoder = Encoder::new(program, 0);
            encoder.out.push(UP);
            encoder.value(&Value::tuple(values.iter().cloned()))?;
            spawns.push((*slot, encoder.out));
        }
        effects.expected.sort_unstable();
        Ok(StepOutcome {
            fields,
            sends: std::mem::take(&mut effects.sends),
            events: std::mem::take(&mut effects.events),
            spawns,
            expected: effects.expected.clone(),
            choices: std::mem::take(&mut effects.choices),
            no_slot: None,
        })
    }

    fn no_slot(&mut self, fields: usize) -> StepOutcome {
        let effects = &mut self.effects;
        effects.expected.sort_unstable();
        StepOutcome {
            fields: vec![FieldResult::Unchanged; fields],
            sends: Vec::new(),
            events: Vec::new(),
            spawns: Vec::new(),
            expected: effects.expected.clone(),
            choices: std::mem::take(&mut effects.choices),
            no_slot: effects.no_slot,
        }
    }
}

/// Whether a run cannot change anything in a value. (It may say so of fewer values.)
fn is_fixed(value: &Value) -> bool {
    match value {
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Str(_) | Value::Pid(_) | Value::Enum(_) => true,
        Value::Shared(_) => true,
        Value::Tuple(items) => items.iter().all(is_fixed),
        _ => false,
    }
}

/// A tuple of messages.
pub fn decoded_messages(
    memory: &mut Memory,
    program: &Program,
    messages: &[Delivered],
    read_only: bool,
) -> Answer<Value> {
    let mut given = Items::new();
    for &message in messages {
        given.push(memory.decoded_message(program, message, read_only)?);
    }
    Ok(Value::Tuple(Rc::new(given)))
}

/// What a handler gets besides the process.
fn message_argument(memory: &mut Memory, asked: &Asked) -> Answer<Option<Value>> {
    match asked.messages {
        messages if asked.several => decoded_messages(memory, asked.program, messages, false).map(Some),
        [] => Ok(None),
        [message] => memory.decoded_message(asked.program, *message, false).map(Some),
        _ => Err(Bail(&"several messages for a handler of one")),
    }
}

pub fn same_outcomes(a: &[StepOutcome], b: &[StepOutcome], fifo: bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_outcome(a, b, fifo))
}

/// Whether two runs agree. Without order of messages, the order of sends does not matter.
fn same_outcome(a: &StepOutcome, b: &StepOutcome, fifo: bool) -> bool {
    let sorted = |outcome: &StepOutcome| {
        let mut sends = outcome.sends.clone();
        sends.sort_unstable();
        sends
    };
    if a.sends != b.sends && (fifo || sorted(a) != sorted(b)) {
        return false;
    }
    a.fields == b.fields
        && a.events == b.events
        && a.spawns == b.spawns
        && a.expected == b.expected
        && a.choices == b.choices
        && a.no_slot == b.no_slot
}

// -- what a handler may do -----------------------------------------------------------------------------------------------

impl<'a> Run<'a> {
    fn in_step(&self) -> Answer<u16> {
        match self.question {
            Question::Step(process, _) => Ok(process),
            _ => Err(OUTSIDE),
        }
    }

    /// The canonical bytes of a message.
    fn message(&mut self, message: &'a Expression, frame: Frame) -> Answer<Vec<u8>> {
        let message = self.evaluate(message, frame)?;
        match &message {
            Value::Record(record) if self.program.classes[record.class as usize].kind == Kind::Message => {
                encoded(self.program, &message)
            }
            _ => Err(Bail(&"a sent value that is no message")),
        }
    }

    pub(super) fn send(&mut self, to: &'a Expression, message: &'a Expression, frame: Frame) -> Answer<Value> {
        self.in_step()?;
        let mut receivers = Vec::new();
        let mut receive = |run: &mut Run<'a>, receiver: Value| match receiver {
            Value::Pid(pid) => {
                receivers.push(run.position(pid)?);
                Ok(Go::On)
            }
            _ => Err(Bail(&"a receiver that is no process id")),
        };
        let content;
        // If the network has no order, the order of receivers does not matter.
        let ordered = self.memory.fifo;
        match to {
            _ if is_lazy(to) => {
                // Python evaluates the message before the generator runs.
                let pure = match to {
                    Expression::Generator(inner) => inner.pure,
                    Expression::CallBuiltin(call) => call.pure,
                    _ => false,
                };
                if !pure {
                    return Err(Bail(&"a generator of receivers with effects"));
                }
                content = self.message(message, frame)?;
                self.iterate(to, frame, ordered, &mut receive)?;
            }
            _ => match self.evaluate(to, frame)? {
                Value::Pid(pid) => {
                    let receiver = self.position(pid)?;
                    let content = self.message(message, frame)?;
                    self.effects.sends.push((receiver, content));
                    return Ok(Value::None);
                }
                several => {
                    content = self.message(message, frame)?;
                    self.iterate_value(&several, ordered, &mut receive)?;
                }
            },
        }
        for receiver in receivers {
            self.effects.sends.push((receiver, content.clone()));
        }
        Ok(Value::None)
    }

    pub(super) fn broadcast(
        &mut self,
        positions: &[u16],
        message: &'a Expression,
        myself: Option<&'a Expression>,
        frame: Frame,
    ) -> Answer<Value> {
        let own = self.in_step()?;
        let content = self.message(message, frame)?;
        let myself = myself.map_or(Ok(true), |myself| Ok(self.evaluate(myself, frame)?.truth()))?;
        for &position in positions {
            if myself || position != own {
                self.effects.sends.push((position, content.clone()));
            }
        }
        Ok(Value::None)
    }

    pub(super) fn announce(&mut self, event: &'a Expression, frame: Frame) -> Answer<Value> {
        self.in_step()?;
        let event = self.evaluate(event, frame)?;
        let content = encoded(self.program, &event)?;
        self.effects.events.push(content);
        Ok(Value::None)
    }

    pub(super) fn choose(&mut self, choice: &'a Choice, frame: Frame) -> Answer<Value> {
        self.in_step()?;
        // Up to the last choice that differs, this run repeats the one before.
        let position = self.effects.widths.len();
        let options = match self.effects.options.get(position) {
            Some(Some(known)) => known.clone(),
            _ => {
                let options: Rc<[Value]> = self.choosable(&choice.options, frame)?.into();
                let kept = choice.pure && options.iter().all(is_fixed);
                self.effects.options.resize(position, None);
                self.effects.options.push(kept.then(|| options.clone()));
                options
            }
        };
        if options.is_empty() {
            return Err(Bail(&"a choice without options"));
        }
        let pick = self.effects.next(options.len());
        let chosen = options.get(pick).cloned().ok_or(Bail(&"a choice that changed"))?;
        let content = encoded(self.program, &chosen)?;
        self.effects.choices.push(content);
        Ok(chosen)
    }

    fn choosable(&mut self, options: &'a Expression, frame: Frame) -> Answer<Vec<Value>> {
        Ok(match options {
            _ if is_lazy(options) => {
                let mut items = Vec::new();
                self.iterate(options, frame, true, &mut |_, value| {
                    items.push(value);
                    Ok(Go::On)
                })?;
                items
            }
            _ => match self.evaluate(options, frame)? {
                Value::Set(set) => self.sorted_options(set.read().keys())?,
                Value::FrozenSet(table) => self.sorted_options(table.keys())?,
                value => self.items_of(&value)?,
            },
        })
    }

    fn sorted_options(&mut self, keys: &[Value]) -> Answer<Vec<Value>> {
        let mut with_bytes = Vec::with_capacity(keys.len());
        for key in keys {
            with_bytes.push((encoded(self.program, key)?, key.clone()));
        }
        with_bytes.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(with_bytes.into_iter().map(|(_, key)| key).collect())
    }

    /// Take a free slot. Only the engine knows which slot is free: each slot is a branch.
    pub(super) fn spawn(&mut self, class: u32, values: Items) -> Answer<Value> {
        self.in_step()?;
        let program = self.program;
        let spares = program.processes.iter().enumerate().skip(program.first_spare);
        let slots: Vec<u16> = spares.filter(|(_, p)| p.class == class).map(|(place, _)| place as u16).collect();
        if slots.is_empty() {
            return Err(Bail(&"a spawn without spare slots"));
        }
        let taken = |slot: &u16| self.effects.expected.iter().any(|(known, _)| known == slot);
        let free: Vec<u16> = slots.iter().copied().filter(|slot| !taken(slot)).collect();
        let pick = self.effects.next(free.len() + 1);
        self.effects.expected.extend(free.iter().take(pick).map(|&slot| (slot, false)));
        let Some(&slot) = free.get(pick) else {
            self.effects.no_slot = Some(NoSlot { class, slots: slots.len() });
            return Err(NO_SLOT);
        };
        self.effects.expected.push((slot, true));
        self.effects.spawned.push((slot, values));
        Ok(Value::Pid(program.processes[slot as usize].pid))
    }
}

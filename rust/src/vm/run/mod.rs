//! One run of a function of the program: arguments come in, a value comes out, or the machine bails. Open `execute.rs` first:
//! it has the statements. `expression.rs` has the expressions, `iterate.rs` all that loops, `attribute.rs` fields and views.

pub mod attribute;
pub mod counters;
mod display;
mod execute;
mod expression;
pub mod fractions;
mod iterate;
pub mod operators;
pub mod sequence;

pub use iterate::Cursor;

use crate::vm::machine::{LocalFields, StateView};
use crate::vm::memory::Memory;
use crate::vm::program::{Attribute, Expression, Program};
use crate::vm::step::Effects;
use crate::vm::value::{Closure, Items, Value};
use crate::vm::{Answer, Bail, TOO_LONG};

/// Loop iterations and calls in one question. After that, CPython runs it, and can be interrupted.
const FUEL: u32 = 5_000_000;
/// After so much fuel, a run looks whether the machine was stopped.
const CHECKED: u32 = 1 << 12;
/// How far the native stack may grow below the start of a run.
const DEEPEST_STACK: usize = 400_000;

/// Where a function finds its variables.
#[derive(Clone, Copy)]
pub struct Frame {
    base: u32,
    index: u32,
}

/// A frame that exists. Its serial tells it from an earlier one at the same place.
pub struct LiveFrame {
    base: u32,
    serial: u64,
}

/// What the run is about: where the fields of `self` and of views come from.
#[derive(Clone, Copy)]
pub enum Question<'a> {
    /// A plain call, for tests.
    Call,
    Step(u16, &'a dyn LocalFields),
    Guard(u16, &'a dyn LocalFields),
    Observe(u16, &'a dyn LocalFields),
    Property(&'a dyn StateView),
}

impl Question<'_> {
    /// Whether the state must not change.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Question::Guard(..) | Question::Property(_))
    }
}

pub struct Run<'a> {
    pub program: &'a Program,
    pub memory: &'a mut Memory,
    pub question: Question<'a>,
    pub effects: &'a mut Effects,
    /// What the names of attributes mean for the process that runs.
    own_attributes: &'a [Attribute],
    /// In which order sets iterate: 0 as they are, else backwards and rotated.
    pub order: usize,
    /// The size of the largest set whose order may matter.
    pub largest_set: usize,
    /// The size of the largest set whose order seemed not to matter.
    unordered_set: usize,
    fuel: u32,
    stack_end: usize,
}

/// How a loop goes on after a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Go {
    On,
    Stop,
}

pub type Visit<'v, 'a> = dyn FnMut(&mut Run<'a>, Value) -> Answer<Go> + 'v;

fn address() -> usize {
    let here = 0u8;
    std::ptr::from_ref(&here) as usize
}

impl<'a> Run<'a> {
    pub fn new(
        program: &'a Program,
        memory: &'a mut Memory,
        effects: &'a mut Effects,
        question: Question<'a>,
        order: usize,
    ) -> Run<'a> {
        // A run that bailed has left its frames.
        memory.stack.clear();
        memory.frames.clear();
        let stack_end = address().saturating_sub(DEEPEST_STACK);
        let own_attributes = match question {
            Question::Step(process, _) | Question::Guard(process, _) => &*program.class_of_process(process).attributes,
            _ => &[],
        };
        Run {
            own_attributes,
            program,
            memory,
            question,
            effects,
            order,
            largest_set: 0,
            unordered_set: 0,
            fuel: FUEL,
            stack_end,
        }
    }

    #[inline]
    pub fn burn(&mut self) -> Answer<()> {
        self.fuel = self.fuel.checked_sub(1).ok_or(TOO_LONG)?;
        if self.fuel.is_multiple_of(CHECKED) && self.memory.is_stopped() { Err(TOO_LONG) } else { Ok(()) }
    }

    #[inline]
    fn check_depth(&mut self) -> Answer<()> {
        self.burn()?;
        if address() < self.stack_end { Err(Bail(&"deep recursion")) } else { Ok(()) }
    }

    /// Note that the order of a set of this size may reach the result.
    pub fn note_set(&mut self, size: usize) {
        self.largest_set = self.largest_set.max(size);
    }

    /// Note that the order does matter where it seemed not to: two values are equal, but not the same.
    pub fn note_unclear(&mut self) {
        self.note_set(self.unordered_set);
    }

    pub fn constant(&self, number: u32) -> Answer<Value> {
        self.memory.constants[number as usize].clone()
    }

    // -- calls -------------------------------------------------------------------------------------------------------

    /// Call a function with values for all its parameters.
    pub fn call(&mut self, function: u32, arguments: impl IntoIterator<Item = Value>) -> Answer<Value> {
        let base = self.memory.stack.len();
        self.memory.stack.extend(arguments);
        self.enter(function, base)
    }

    /// Call a function with arguments that are evaluated in a frame.
    fn call_with(&mut self, function: u32, arguments: &'a [Expression], frame: Frame) -> Answer<Value> {
        let base = self.memory.stack.len();
        for argument in arguments {
            // A call inside of an argument has left the stack as it was.
            let value = self.evaluate(argument, frame)?;
            self.memory.stack.push(value);
        }
        self.enter(function, base)
    }

    /// Run a function whose arguments are on the stack.
    fn enter(&mut self, number: u32, base: usize) -> Answer<Value> {
        self.check_depth()?;
        let program = self.program;
        let function = &program.functions[number as usize];
        if self.memory.stack.len() - base != function.parameters {
            return Err(Bail(&"a call with another number of arguments"));
        }
        self.memory.stack.resize(base + function.slots, Value::Unset);
        let index = self.memory.frames.len() as u32;
        let serial = self.memory.next_serial;
        self.memory.next_serial += 1;
        self.memory.frames.push(LiveFrame { base: base as u32, serial });
        let value = self.body(&function.body, Frame { base: base as u32, index })?;
        self.memory.frames.pop();
        self.memory.stack.truncate(base);
        Ok(value)
    }

    /// Call a value that is a function.
    pub fn call_value(&mut self, function: &Value, arguments: &[Value]) -> Answer<Value> {
        match function {
            Value::Closure(closure) => self.call_closure(closure, arguments),
            Value::Function(bound) => {
                let first = (!bound.bound.is_unset()).then(|| bound.bound.clone());
                self.call(bound.function, first.into_iter().chain(arguments.iter().cloned()))
            }
            Value::Builtin(builtin) => self.apply_builtin(*builtin, arguments),
            Value::Method(method) => match arguments.split_first() {
                Some((value, rest)) => self.apply_method(value, *method, rest),
                None => Err(Bail(&"a method without a value")),
            },
            _ => Err(Bail(&"a call of a value that is no function")),
        }
    }

    fn call_closure(&mut self, closure: &Closure, arguments: &[Value]) -> Answer<Value> {
        self.check_depth()?;
        let program = self.program;
        let lambda = &program.lambdas[closure.lambda as usize];
        let live = self.memory.frames.get(closure.frame as usize).filter(|frame| frame.serial == closure.serial);
        let base = live.ok_or(Bail(&"a lambda whose frame is gone"))?.base;
        let missing = lambda.parameters.len().checked_sub(arguments.len()).filter(|m| *m <= closure.defaults.len());
        let missing = missing.ok_or(Bail(&"a call with another number of arguments"))?;
        let defaults = &closure.defaults[closure.defaults.len() - missing..];
        for (slot, value) in lambda.parameters.iter().zip(arguments.iter().chain(defaults)) {
            self.memory.stack[(base + slot) as usize] = value.clone();
        }
        self.body(&lambda.body, Frame { base, index: closure.frame })
    }

    fn make_closure(&mut self, lambda: u32, defaults: Items, frame: Frame) -> Value {
        let serial = self.memory.frames[frame.index as usize].serial;
        Value::Closure(std::rc::Rc::new(Closure { lambda, frame: frame.index, serial, defaults }))
    }

    // -- variables ---------------------------------------------------------------------------------------------------

    #[inline]
    fn local(&self, frame: Frame, slot: u32) -> &Value {
        &self.memory.stack[(frame.base + slot) as usize]
    }

    #[inline]
    fn set_local(&mut self, frame: Frame, slot: u32, value: Value) {
        self.memory.stack[(frame.base + slot) as usize] = value;
    }
}

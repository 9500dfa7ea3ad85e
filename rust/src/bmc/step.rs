//! The execution of a step on a packed state. `Interpreter.step` in Python defines what must happen.

use super::number::Number;
use super::program::{Code, Op, Program};
use super::state::{Layout, Narrow};

/// Why a step or a condition has no result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// A cell is too narrow for a value.
    Narrow(Narrow),
    /// A number does not fit, or an operation has no result.
    Numbers,
    /// An input has too many values.
    Inputs,
    /// A condition reads an array at an index out of range.
    Condition,
}

impl From<Narrow> for Fault {
    fn from(narrow: Narrow) -> Self {
        Self::Narrow(narrow)
    }
}

/// How code ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Goto(usize),
    Blocked,
    /// A check failed: the cell of its flag.
    Failed(usize),
    Value(i128),
}

/// The accesses of a step.
pub trait Recorder {
    fn read(&mut self, cell: usize);
    fn write(&mut self, cell: usize);
}

/// Records nothing.
pub struct Silent;

impl Recorder for Silent {
    #[inline(always)]
    fn read(&mut self, _: usize) {}
    #[inline(always)]
    fn write(&mut self, _: usize) {}
}

/// The stacks of an execution.
pub struct Machine {
    small: Vec<i64>,
    large: Vec<i128>,
}

impl Machine {
    pub fn new(program: &Program) -> Self {
        Self { small: vec![0; program.stack], large: vec![0; program.stack] }
    }

    /// Execute the step of a process at a location from `parent` in `state`. False: it is not enabled.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub fn step<R: Recorder>(
        &mut self,
        program: &Program,
        layout: &Layout,
        parent: &[u64],
        state: &mut [u64],
        (process, location): (usize, usize),
        inputs: &[i128],
        recorder: &mut R,
    ) -> Result<bool, Fault> {
        let code = program.processes[process].instructions[location].code;
        copy(parent, state);
        let mut end = execute(program, layout, code, state, inputs, &mut self.small, recorder);
        if end == Err(Fault::Numbers) {
            copy(parent, state);
            end = execute(program, layout, code, state, inputs, &mut self.large, recorder);
        }
        let target = match end? {
            End::Blocked => return Ok(false),
            End::Goto(target) => target,
            End::Failed(flag) => {
                layout.store(state, flag, 1_i64)?;
                program.processes[process].stuck()
            }
            End::Value(_) => unreachable!("the code of a step does not return"),
        };
        layout.arrive(state, program.location(process), process, target);
        Ok(true)
    }

    /// The value of a condition in a state.
    pub fn holds(&mut self, program: &Program, layout: &Layout, code: Code, state: &mut [u64]) -> Result<bool, Fault> {
        Ok(self.value(program, layout, code, state)? != 0)
    }

    /// The value of an expression in a state.
    pub fn value(&mut self, program: &Program, layout: &Layout, code: Code, state: &mut [u64]) -> Result<i128, Fault> {
        // Expressions do not write.
        let mut end = execute(program, layout, code, state, &[], &mut self.small, &mut Silent);
        if end == Err(Fault::Numbers) {
            end = execute(program, layout, code, state, &[], &mut self.large, &mut Silent);
        }
        match end? {
            End::Value(value) => Ok(value),
            _ => Err(Fault::Condition),
        }
    }
}

/// Copy a state. It has few words: a call of memcpy would take longer.
#[inline(always)]
fn copy(from: &[u64], to: &mut [u64]) {
    for (a, b) in from.iter().zip(to) {
        *b = *a;
    }
}

fn execute<N: Number, R: Recorder>(
    program: &Program,
    layout: &Layout,
    code: Code,
    state: &mut [u64],
    inputs: &[i128],
    stack: &mut [N],
    recorder: &mut R,
) -> Result<End, Fault> {
    let truth = |value: bool| if value { N::ONE } else { N::ZERO };
    let fit = |value: Option<N>| value.ok_or(Fault::Numbers);
    let outside = || program.bounds.map(End::Failed).ok_or(Fault::Condition);
    let ops = &program.ops[..];
    let mut pc = code;
    // The number of values on the stack.
    let mut top = 0;
    macro_rules! push {
        ($value:expr) => {{
            let value = $value;
            stack[top] = value;
            top += 1;
        }};
    }
    macro_rules! pop {
        () => {{
            top -= 1;
            stack[top]
        }};
    }
    macro_rules! binary {
        (|$left:ident, $right:ident| $value:expr) => {{
            let $right = pop!();
            let $left = stack[top - 1];
            stack[top - 1] = $value;
        }};
    }
    loop {
        let op = ops[pc];
        pc += 1;
        match op {
            Op::Const(value) => push!(N::small(value)),
            Op::Large(number) => push!(fit(N::wide(program.large[number as usize]))?),
            Op::Load(cell) => {
                recorder.read(cell as usize);
                push!(fit(layout.load(state, cell as usize))?);
            }
            Op::LoadAt { base, count } => {
                let Some(at) = stack[top - 1].index().filter(|&at| at < count as usize) else { return outside() };
                recorder.read(base as usize + at);
                stack[top - 1] = fit(layout.load(state, base as usize + at))?;
            }
            Op::Input(number) => push!(fit(N::wide(inputs[number as usize]))?),
            Op::At { process, location } => {
                push!(truth(layout.location(state, program.location(process as usize)) == location as usize));
            }
            Op::Not => stack[top - 1] = truth(stack[top - 1] == N::ZERO),
            Op::Truth => stack[top - 1] = truth(stack[top - 1] != N::ZERO),
            Op::Wrap { bits, signed } => stack[top - 1] = fit(stack[top - 1].wrap(bits, signed))?,
            Op::Add => binary!(|a, b| fit(a.add(b))?),
            Op::Subtract => binary!(|a, b| fit(a.subtract(b))?),
            Op::Multiply => binary!(|a, b| fit(a.multiply(b))?),
            Op::AddModular => binary!(|a, b| a.add_modular(b)),
            Op::SubtractModular => binary!(|a, b| a.subtract_modular(b)),
            Op::MultiplyModular => binary!(|a, b| a.multiply_modular(b)),
            Op::ShiftLeftModular => binary!(|a, b| fit(a.shift_left_modular(b))?),
            Op::Divide => binary!(|a, b| fit(a.divide(b))?),
            Op::Modulo => binary!(|a, b| fit(a.modulo(b))?),
            Op::Quotient => binary!(|a, b| fit(a.quotient(b))?),
            Op::Remainder => binary!(|a, b| fit(a.remainder(b))?),
            Op::And => binary!(|a, b| a.and(b)),
            Op::Or => binary!(|a, b| a.or(b)),
            Op::Xor => binary!(|a, b| a.xor(b)),
            Op::ShiftLeft => binary!(|a, b| fit(a.shift_left(b))?),
            Op::ShiftRight => binary!(|a, b| fit(a.shift_right(b))?),
            Op::Equal => binary!(|a, b| truth(a == b)),
            Op::Unequal => binary!(|a, b| truth(a != b)),
            Op::Less => binary!(|a, b| truth(a < b)),
            Op::LessEqual => binary!(|a, b| truth(a <= b)),
            Op::Greater => binary!(|a, b| truth(a > b)),
            Op::GreaterEqual => binary!(|a, b| truth(a >= b)),
            Op::AndJump(to) => {
                if stack[top - 1] == N::ZERO {
                    pc = to as usize;
                } else {
                    top -= 1;
                }
            }
            Op::OrJump(to) => {
                if stack[top - 1] != N::ZERO {
                    stack[top - 1] = N::ONE;
                    pc = to as usize;
                } else {
                    top -= 1;
                }
            }
            Op::Unless(to) => {
                if pop!() == N::ZERO {
                    pc = to as usize;
                }
            }
            Op::Jump(to) => pc = to as usize,
            Op::Store(cell) => {
                let value = pop!();
                layout.store(state, cell as usize, value)?;
                recorder.write(cell as usize);
            }
            Op::StoreAt { base } => {
                let value = pop!();
                let cell = base as usize + pop!().index().ok_or(Fault::Numbers)?;
                layout.store(state, cell, value)?;
                recorder.write(cell);
            }
            Op::Check(count) => {
                if stack[top - 1].index().is_none_or(|at| at >= count as usize) {
                    return outside();
                }
            }
            Op::Require => {
                if pop!() == N::ZERO {
                    return Ok(End::Blocked);
                }
            }
            Op::Ensure(flag) => {
                if pop!() == N::ZERO {
                    return Ok(End::Failed(flag as usize));
                }
            }
            Op::Goto(location) => return Ok(End::Goto(location as usize)),
            Op::Return => return Ok(End::Value(pop!().widened())),
        }
    }
}

//! The virtual machine: executes models that were lowered to the intermediate representation (`src/plait/ir/nodes.py`).
//!
//! A program comes in as JSON (`program/load.rs`). Questions about it come in with the canonical bytes of the local states
//! and messages that they are about; outcomes, values of guards and properties go out, as canonical bytes too. An answer is
//! exactly what CPython would give, or the machine *bails*, and CPython is asked. Open `machine.rs` first: it has the
//! questions. `run/` executes statements and expressions, `library/` has built-in functions and methods, `value/` the
//! values.

pub mod library;
pub mod machine;
mod memory;
pub mod program;
mod run;
mod step;
pub mod value;

#[cfg(test)]
mod tests;

pub use machine::{Delivered, FieldResult, LocalFields, Machine, Read, StateView};
pub use program::{Program, load};
pub use step::{NoSlot, StepOutcome};

/// The machine gives up, for this reason. It is small, so that results stay small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bail(pub &'static &'static str);

impl Bail {
    pub fn reason(self) -> &'static str {
        self.0
    }
}

pub type Answer<T> = Result<T, Bail>;

/// The reason if a question has used up its fuel, or runs when the machine is stopped.
pub const TOO_LONG: Bail = Bail(&"a question that takes too long");

/// The reason if a variable without a value is read. In a guard that is asked without a message, this is the message.
pub const UNBOUND: Bail = Bail(&"a variable without a value");

/// The reason if a set iterated in another order gave another answer. CPython then reports the mistake in the model.
pub const ORDER_MATTERS: Bail = Bail(&"the answer depends on the order of a set");

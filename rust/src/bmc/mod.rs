//! All states of a program of `plait bmc`, breadth first. In comes a program in flat form: variables, and for each process
//! one piece of code per location (`program`). Out come counters, the shortest run to each property that was looked for, and
//! the limit that stopped the search. Open `search` first: it has the loop. `step` executes the code of a step on a packed
//! state (`state`), with the arithmetic of `number`. `arena` keeps the packed states that were seen. `bindings` has what
//! Python calls; `src/plait/bmc/execution/native.py` makes the flat form, and `src/plait/bmc/execution/interpreter.py`
//! defines what a step means.

pub mod arena;
pub mod number;
pub mod program;
pub mod race;
pub mod run;
pub mod search;
pub mod state;
pub mod step;

#[cfg(feature = "extension")]
pub mod bindings;

#[cfg(test)]
mod tests;

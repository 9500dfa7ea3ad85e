//! The searches for violated properties. In come the tables of a system and a `Control` with the options. Out come counters,
//! findings and the limit that was reached, all in the `Control`, and from a finding the run that leads to it (`path`). Open
//! `run` first: it chooses the search. Each search is one file: `bfs` (with the driver `layers`, which `live::build` uses
//! too), `dfs`, `dpor`, `walk`. The workers of a search share the visited set (`visited`, with
//! fingerprints of a `width`) and the `Control`.

pub mod bfs;
pub mod control;
pub mod dfs;
pub mod dpor;
mod dpor_transitions;
pub(crate) mod layers;
pub mod path;
pub mod run;
pub mod test_hooks;
pub mod visited;
pub mod walk;
pub mod width;

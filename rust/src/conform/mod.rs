//! Whether a log of an implementation is a run of the system. In come the tables of a system and a `Log`: what each process
//! recorded of its steps, and which records come before which. Out comes a run whose steps explain all events, or the longest
//! explained beginnings of the log. Open `search` first: it chooses which step to try next. `moves` lists the steps that a
//! process can take and how many events each explains (`log`), `state` has what a step changes, and `run` follows a run once
//! more, with its monitors and properties.
//!
//! The search does not build nodes (`system::tables`): a log may be long, inboxes may get large, and of a large inbox the log
//! says which message is taken.

pub mod log;
pub mod moves;
pub mod run;
pub mod search;
pub mod state;

//! The transition relation. In come the answers of a `Model` about single steps, as ids of interned values. Out come the
//! states of the whole system, their successors and fingerprints, and the values of properties. Open `model` first: it is
//! what the engine asks. `values` has the content of ids, and `intern` gives equal
//! content one id. `tables` keeps the answers, for all workers. `expander` computes
//! from them the transitions of a node. `initial` makes the initial states. `inbox` and `quorum` say which messages are pending, and which sets of them can be
//! consumed. Losses and copies of messages come from `expander` too, with `inbox`. `successors` has one worker's view of the
//! tables: the inner loop of every search. `tick` is what time does. `hash` makes fingerprints. `property` and `reads`
//! evaluate properties. `situated` finds the transitions of a process that reads shared state.

pub mod encoding;
pub(crate) mod expander;
pub mod hash;
pub mod inbox;
pub mod initial;
pub mod intern;
pub mod model;
pub mod property;
pub mod quorum;
pub mod reads;
pub mod rename;
pub mod situated;
pub mod successors;
pub mod tables;
pub mod tick;
pub mod values;

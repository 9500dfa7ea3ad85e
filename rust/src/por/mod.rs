//! Static partial-order reduction. In come the effects of the transitions that were tabulated so far (`effects`, collected by
//! `profile`). Out comes, for a state, the set of processes whose transitions are enough to explore there. Open `stubborn`
//! first: it has the rules, on `relations` between `classes` of transitions. `footprint` defines which transitions commute, for
//! dynamic partial-order reduction (`search::dpor`) as well. `guards` finds exceptions that a set may hide.
//! `docs/internals/reductions/por.md` has the proof.

mod class_set;
pub mod classes;
pub mod effects;
pub mod footprint;
mod guards;
mod profile;
pub mod relations;
pub mod stubborn;

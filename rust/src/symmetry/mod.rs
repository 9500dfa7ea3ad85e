//! Symmetry reduction. In come the sets of processes that a model declares interchangeable, and its rings. Out comes one
//! fingerprint for all states that differ only by a permutation of these processes, or an error with evidence that they are
//! not symmetric. Open `group` first: it has the permutations. `audit` makes sure that they are symmetries. `orbit` finds the
//! fingerprint of an orbit from all images of a state, and `canonical` from a few of them, where the group is large.
//! `docs/internals/reductions/symmetry.md` has the proofs.

pub mod audit;
pub(crate) mod canonical;
pub mod group;
pub mod images;
pub(crate) mod orbit;

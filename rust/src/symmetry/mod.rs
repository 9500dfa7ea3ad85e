//! Symmetry reduction. In come the sets of processes that a model declares interchangeable. Out comes one fingerprint for all
//! states that differ only by a permutation of these processes, or an error with evidence that the processes are not
//! interchangeable. Open `group` first: it has the permutations, and the audit of transitions. `orbit` computes the
//! fingerprints of all images of a state. `docs/internals/reductions/symmetry.md` has the proof.

pub mod group;
pub(crate) mod orbit;

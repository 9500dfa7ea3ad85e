//! Temporal properties. In come a system and the Büchi automaton of a negated formula, with fairness assumptions. Out comes a
//! fair run that ends in a loop and violates the formula, if there is one. Open `product` first: it has the algorithm.
//! `build` makes the graph of all states (`graph`, `packed`), with `merge` for what several workers contribute. `reach` and
//! `scc` search the product of graph and automaton, `fair_classes` lists the classes of steps, and `lasso` makes a run of one.
//! `docs/internals/liveness.md` has the argument.

pub mod automaton;
mod build;
pub(crate) mod fair_classes;
pub mod graph;
pub mod lasso;
mod merge;
mod packed;
pub mod product;
mod reach;
mod scc;

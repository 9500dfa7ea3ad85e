//! Temporal properties. In come a system and the Büchi automaton of a negated formula, with fairness assumptions. Out comes a
//! fair run that ends in a loop and violates the formula, if there is one. Open `product` first: it has the algorithm.
//! `build` makes the graph of all states (`graph`, `packed`), and `merge` adds what several workers contribute. `automaton`
//! has the automaton and its parts. `reach` and `scc` search the product of graph and automaton. `fairness` judges the
//! components, with the classes of steps from `fair_classes`. `lasso` makes a run of a fair component.
//! `refinement` compares the edges of the graph with the steps of an abstract system. `docs/internals/liveness.md` has the
//! argument. The explorer looks at the same graph: `projection` collapses it, `ways` counts runs.

pub mod automaton;
mod build;
pub(crate) mod fair_classes;
pub(crate) mod fairness;
pub mod graph;
pub mod lasso;
mod merge;
mod packed;
pub mod product;
pub mod projection;
mod reach;
pub mod refinement;
mod scc;
pub mod ways;

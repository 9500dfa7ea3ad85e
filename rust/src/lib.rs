//! The native engine of Plait. Python tabulates steps, this crate composes them: see `docs/internals/architecture.md`.

mod acts;
pub mod automaton;
pub mod bfs;
mod bits;
mod building;
mod class_set;
pub mod classes;
mod components;
pub mod control;
pub mod dfs;
pub mod dpor;
pub mod epa;
pub mod facts;
mod found;
pub mod graph;
pub mod hash;
pub mod inbox;
pub mod intern;
mod large;
pub mod lasso;
pub mod lens;
pub mod liveness;
pub mod model;
mod offers;
mod orbit;
mod packed;
pub mod path;
mod profile;
pub mod property;
pub mod quorum;
mod reach;
pub mod search;
pub mod stubborn;
pub mod symmetry;
pub mod tables;
pub mod visited;
pub mod walk;

#[cfg(feature = "extension")]
mod bridge;
#[cfg(feature = "extension")]
mod canon;
#[cfg(feature = "extension")]
mod engine;
#[cfg(feature = "extension")]
mod rename;

#[cfg(feature = "extension")]
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::canon::Codec;
    #[pymodule_export]
    use crate::engine::{Engine, Store, Transition};
    #[pymodule_export]
    use crate::epa::bindings::{EpaTrace, epa_operations, epa_reversible};
}

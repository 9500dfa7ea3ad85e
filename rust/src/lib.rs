//! The native engine of Plait. Python answers questions about single steps, this crate combines the answers into a search.
//!
//! Each folder begins with a paragraph about what comes in, what goes out, and which file to open first. Open
//! `python/engine.rs` first: it has what Python calls. A model comes in through `python`, is tabulated in `system`, and is
//! searched by `search`, with the reductions of `por` and `symmetry`. `live` checks temporal properties. `conform` searches for a run that explains a log. `vm` executes
//! models that were lowered from Python. `epa` and `bmc` do not depend on any of these. `util` has small tools.
//! `docs/internals/architecture.md` follows one check through.

pub mod bmc;
pub mod conform;
pub mod epa;
pub mod live;
pub mod por;
pub mod rounds;
pub mod search;
pub mod symmetry;
pub mod system;
mod util;
pub mod vm;

#[cfg(feature = "extension")]
mod python;

#[cfg(feature = "extension")]
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::bmc::bindings::{BmcProgram, BmcReport};
    #[pymodule_export]
    use crate::epa::bindings::{EpaLines, EpaTrace, epa_operations, epa_reversible, epa_summary};
    #[pymodule_export]
    use crate::epa::report::{ComparisonReport, ReversibilityReport, ThreadDifference, UnorderedPair};
    #[pymodule_export]
    use crate::python::canon::Codec;
    #[pymodule_export]
    use crate::python::conform::{ConformReport, conform};
    #[pymodule_export]
    use crate::python::engine::{_test_hooks, Engine};
    #[pymodule_export]
    use crate::python::machine::Machine;
    #[pymodule_export]
    use crate::python::report::{Counters, Failure, Finding, LivenessReport, SearchReport, Transition};
    #[pymodule_export]
    use crate::python::rounds::{RoundsReport, search_rounds};
    #[pymodule_export]
    use crate::python::set_order::SetOrder;
    #[pymodule_export]
    use crate::python::store::Store;
}

//! Tools that do not depend on models: sets of small numbers (`bits`), long arrays in mapped memory (`mapped_array`),
//! and the memory usage of the process (`memory`).

pub mod bits;
pub mod mapped_array;
pub mod memory;

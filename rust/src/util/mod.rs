//! Data structures that know nothing of models: sets of small numbers (`bits`), and arrays in memory of their own
//! (`mapped_array`).

pub mod bits;
pub mod mapped_array;

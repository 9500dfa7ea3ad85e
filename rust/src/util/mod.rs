//! Tools that know nothing of models: sets of small numbers (`bits`), arrays in memory of their own (`mapped_array`), and how
//! much memory the process uses (`memory`).

pub mod bits;
pub mod mapped_array;
pub mod memory;

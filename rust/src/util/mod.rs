//! Tools that do not depend on models. In come numbers, out come small data structures. Open `mapped_array` first: long
//! arrays in mapped memory, for the visited set and the graph. `shared` has arrays and maps for several workers, `bits` sets
//! of small numbers, `memory` the memory usage of the process.

pub mod bits;
pub mod mapped_array;
pub mod memory;
pub mod shared;

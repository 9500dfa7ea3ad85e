//! Error propagation analysis (thesis 004, chapter 5): recorded traces of threaded programs, sanitized, checked for
//! reversibility and compared. `docs/guides/epa.md` has the file format and the reasons why a comparison is sound.

pub mod compare;
pub mod format;
pub mod formula;
pub mod order;
pub mod program;
pub mod propagate;
pub mod recording;
pub mod reverse;
pub mod sanitize;

#[cfg(feature = "extension")]
pub mod bindings;

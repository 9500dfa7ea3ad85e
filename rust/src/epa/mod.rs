//! Error propagation analysis (Saissi 2019, chapter 5). In come recorded traces of threaded programs, with and without an
//! injected fault. Out come traces without accidental differences (`sanitize`), the answer whether two traces are equal up to
//! the order of independent events (`reverse`), and how an error spread (`compare`, `propagate`). Open `bindings` first: it
//! has what Python calls. `docs/reference/epa.md` has the file format and the reasons why a comparison is sound.

pub mod compare;
pub mod format;
pub mod formula;
pub mod made;
mod marks;
pub mod order;
pub mod program;
pub mod propagate;
pub mod recording;
pub mod reverse;
pub mod sanitize;
pub mod text;

#[cfg(feature = "extension")]
pub mod bindings;
#[cfg(feature = "extension")]
pub mod report;

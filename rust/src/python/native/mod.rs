//! A model that the virtual machine answers. In come questions of the engine; out go answers of the machine, or of Python
//! where it bails. Open `model.rs` first. It asks Python too about a sample of the questions (`sample.rs`). `shape.rs`,
//! `guards.rs` and `views.rs` are what it needs for that.

mod guards;
pub mod model;
mod sample;
pub mod shape;
mod views;

//! The border to Python; the rest of the crate does not know Python. In come calls from `plait.check` (a model, options)
//! and the answers of the model's handlers, as canonical bytes. Out go questions about single steps, and the reports of
//! searches. Open `engine` first: it has the classes and functions that Python calls. `options` reads the options of a
//! search. `report` is what searches report. `model` asks Python and implements `system::model::Model`. `canon` turns values
//! into bytes and back; `class` describes the classes of values, `encoding` reads the bytes. `rename` permutes process ids
//! inside them. `set_order` changes the order of sets while a question is asked a second time.

pub mod canon;
mod class;
mod encoding;
pub mod engine;
mod model;
mod options;
mod rename;
pub mod report;
pub mod set_order;

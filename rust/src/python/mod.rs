//! The border to Python; the rest of the crate does not know Python. In come calls from `plait.check` (a model, options)
//! and the answers of the model's handlers, as canonical bytes. Out go questions about single steps, and the reports of
//! searches. Open `engine` first: it has the classes and functions that Python calls. `options` reads the options of a
//! search, `arguments` automata, fairness assumptions and clocks. `report` is what searches report. `model` asks Python
//! and implements `system::model::Model`; `native` asks the virtual machine first. `mapping` asks what states map to in a
//! refinement. `canon` turns values into bytes and back; `class` describes the classes of values, `library` those of
//! Python's library. `store` has the values of an engine. `conform` searches for a run that explains a log. `set_order`
//! changes the order of sets while a question is asked a second time. `machine` gives the virtual machine to tests.
//! `rounds` searches sequential programs.

mod arguments;
pub mod canon;
mod class;
pub mod conform;
pub mod engine;
mod library;
pub mod machine;
mod mapping;
mod model;
mod native;
mod options;
pub mod report;
pub mod rounds;
pub mod set_order;
pub mod store;

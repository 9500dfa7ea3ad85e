//! What the native model knows of a system besides its program: `plait.check.tabulate.native_shape.NativeSystem`.

use pyo3::prelude::*;
use std::collections::HashMap;

/// What triggers a handler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    Action,
    /// Messages: how many at least, if that does not depend on the local state.
    Messages(Option<u16>),
    Recovery,
    /// It runs before the first step.
    Init,
}

/// What is known of a handler of a process class without running it.
#[derive(FromPyObject)]
pub struct HandlerShape {
    pub trigger: Trigger,
    /// How many messages it takes at most, if that is more than at least.
    pub most: Option<u16>,
    /// Its messages have different senders.
    pub distinct: bool,
    /// It has a guard over whole sets of messages.
    pub accepts: bool,
    pub guarded: bool,
    /// Its guard uses the message only to read its attributes.
    pub foreseeable: bool,
    /// Messages of one quorum agree in these fields.
    pub same: Vec<String>,
}

/// A system as the machine needs to know it (`plait.check.tabulate.native_shape.NativeSystem`).
#[derive(FromPyObject)]
pub struct NativeShape {
    /// As JSON.
    pub program: Vec<u8>,
    /// By process class.
    pub handlers: Vec<Vec<HandlerShape>>,
    /// By process: its class.
    pub classes: Vec<usize>,
    /// By process, the fields that a crash with recovery resets, with their first content.
    pub volatile: Vec<Vec<(usize, Vec<u8>)>>,
    /// By class of messages, as its name in canonical bytes: its fields.
    pub messages: HashMap<String, Vec<String>>,
    /// By class of messages, class of the receiver and class of the sender: the handlers that they are for.
    pub triggered: HashMap<String, Vec<Vec<Vec<u16>>>>,
    /// Handlers that no message can trigger are left out of `armed`.
    pub foresee: bool,
}

impl FromPyObject<'_, '_> for Trigger {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Trigger> {
        let (kind, count): (String, Option<u16>) = object.extract()?;
        Ok(match kind.as_str() {
            "action" => Trigger::Action,
            "message" => Trigger::Messages(count),
            "recovery" => Trigger::Recovery,
            _ => Trigger::Init,
        })
    }
}

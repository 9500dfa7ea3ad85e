//! Local states, states and messages, as the virtual machine reads them.

use crate::system::model::{FieldId, MessageId, Parts};
use crate::system::values::Values;
use crate::vm::{Delivered, LocalFields, StateView};

/// A local state or the state of a monitor, for the machine.
pub struct Local<'a> {
    pub values: &'a Values,
    pub fields: &'a [FieldId],
}

impl LocalFields for Local<'_> {
    fn count(&self) -> usize {
        self.fields.len()
    }

    fn field(&self, index: usize) -> (u32, &[u8]) {
        (self.fields[index], self.values.field_content(self.fields[index]))
    }
}

/// A state, for the machine.
pub struct Global<'a, 'p> {
    pub values: &'a Values,
    pub parts: &'a Parts<'p>,
}

impl StateView for Global<'_, '_> {
    fn status(&self, process: usize) -> u8 {
        self.values.status(self.parts.locals[process]) as u8
    }

    fn field(&self, process: usize, field: usize) -> (u32, &[u8]) {
        let id = self.values.fields(self.parts.locals[process])[field];
        (id, self.values.field_content(id))
    }

    fn inbox(&self, process: usize) -> usize {
        (self.parts.inbox)(process).len()
    }

    fn message(&self, process: usize, place: usize) -> Delivered<'_> {
        delivered(self.values, (self.parts.inbox)(process)[place])
    }

    fn monitor(&self, monitor: usize, field: usize) -> (u32, &[u8]) {
        let id = self.values.fields(self.parts.monitors[monitor])[field];
        (id, self.values.field_content(id))
    }
}

pub fn delivered(values: &Values, message: MessageId) -> Delivered<'_> {
    Delivered { sender: values.sender(message), id: message, content: values.message_content(message) }
}

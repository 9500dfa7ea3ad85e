//! What a machine keeps between questions: decoded constants and values, and room for frames and fields.

use crate::vm::Answer;
use crate::vm::machine::{Delivered, FieldResult, LocalFields, NO_ID, Read};
use crate::vm::program::Program;
use crate::vm::run::LiveFrame;
use crate::vm::value::Value;
use crate::vm::value::decode::{Sharing, decoded, decoded_message};
use crate::vm::value::encode::Encoder;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A field of the process or monitor that runs.
#[derive(Default)]
pub struct FieldSlot {
    /// Unset: it was neither read nor assigned.
    pub value: Value,
    pub assigned: bool,
    /// Nothing in it can change.
    pub plain: bool,
    /// It is a cell that was assigned before it was read. So its old content is not known to matter, and the assignment
    /// counts even if it changes nothing here.
    pub blind: bool,
}

#[derive(Clone)]
struct Cached {
    id: u32,
    plain: bool,
    value: Value,
}

/// The number of decoded values that a machine keeps.
const KEPT: usize = 1 << 12;

/// What a machine keeps between questions.
pub struct Memory {
    pub constants: Vec<Answer<Value>>,
    pub stack: Vec<Value>,
    pub frames: Vec<LiveFrame>,
    pub next_serial: u64,
    pub fields: Vec<FieldSlot>,
    /// Bit i: field i was read. Bit 63 stands for all others too.
    pub fields_read: u64,
    /// The fields of all processes and monitors that a property has read.
    pub view_values: Vec<Value>,
    pub view_touched: Vec<u32>,
    pub reads: Vec<Read>,
    /// The ways that tests have gone, one bit each. Tests far from each other may share a bit.
    pub branches: u128,
    /// Sends arrive in their order, so that the order matters.
    pub fifo: bool,
    /// Says when questions that take long must end.
    pub stop: Option<Arc<AtomicBool>>,
    values: Vec<Cached>,
    messages: Vec<Cached>,
}

impl Memory {
    pub fn new(program: &Program) -> Memory {
        let nothing = Cached { id: NO_ID, plain: false, value: Value::Unset };
        let constants = program.constants.iter().map(|content| Ok(decoded(program, content, true)?.0));
        Memory {
            constants: constants.collect(),
            stack: Vec::with_capacity(256),
            frames: Vec::new(),
            next_serial: 0,
            fields: Vec::new(),
            fields_read: 0,
            view_values: Vec::new(),
            view_touched: Vec::new(),
            reads: Vec::new(),
            branches: 0,
            fifo: true,
            stop: None,
            values: vec![nothing.clone(); KEPT],
            messages: vec![nothing; KEPT],
        }
    }

    /// The value of content, and whether nothing in it can change. Values that no run can change are kept.
    pub fn decoded(&mut self, program: &Program, id: u32, content: &[u8], read_only: bool) -> Answer<(Value, bool)> {
        match *content {
            [b'i', small @ ..0x80] => {
                return Ok((Value::Int(i64::from(small >> 1) ^ -i64::from(small & 1)), true));
            }
            [b'N'] => return Ok((Value::None, true)),
            [b'T'] => return Ok((Value::Bool(true), true)),
            [b'F'] => return Ok((Value::Bool(false), true)),
            _ => {}
        }
        let place = id as usize % KEPT;
        if id != NO_ID {
            let known = &self.values[place];
            if known.id == id && (known.plain || read_only) {
                return Ok((known.value.clone(), known.plain));
            }
        }
        let (value, sharing) = decoded(program, content, read_only)?;
        let plain = sharing == Sharing::Plain;
        if id != NO_ID && (plain || read_only && sharing == Sharing::Mutable) {
            self.values[place] = Cached { id, plain, value: value.clone() };
        }
        Ok((value, plain))
    }

    pub fn decoded_message(&mut self, program: &Program, message: Delivered, read_only: bool) -> Answer<Value> {
        let Delivered { sender, id, content } = message;
        let place = id as usize % KEPT;
        let known = &self.messages[place];
        if id != NO_ID && known.id == id && (known.plain || read_only) {
            return Ok(known.value.clone());
        }
        let (value, sharing) = decoded_message(program, content, sender, read_only)?;
        let plain = sharing == Sharing::Plain;
        if id != NO_ID && (plain || read_only && sharing == Sharing::Mutable) {
            self.messages[place] = Cached { id, plain, value: value.clone() };
        }
        Ok(value)
    }

    pub fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Note which way a test went.
    #[inline]
    pub fn note_test(&mut self, number: u16, truth: bool, equal: bool) {
        let way = u32::from(number) * 4 + u32::from(truth) * 2 + u32::from(equal);
        self.branches |= 1 << (way % 128);
    }

    pub fn note_read(&mut self, read: Read) {
        if !self.reads.contains(&read) {
            self.reads.push(read);
        }
    }

    /// Prepare the fields of the process or monitor that runs.
    pub fn reset_fields(&mut self, count: usize) {
        self.fields.clear();
        self.fields.resize_with(count, FieldSlot::default);
    }

    pub fn reset_views(&mut self, program: &Program) {
        let count = program.field_offsets.last().copied().unwrap_or(0) as usize;
        if self.view_values.len() != count {
            self.view_values = vec![Value::Unset; count];
        }
        for place in self.view_touched.drain(..) {
            self.view_values[place as usize] = Value::Unset;
        }
    }

    /// What has become of the fields.
    pub fn field_results(&self, program: &Program, before: &dyn LocalFields) -> Answer<Vec<FieldResult>> {
        // One encoder for all: an object that is in two fields is an alias.
        let mut encoder = Encoder::new(program, 1);
        let mut results = Vec::with_capacity(self.fields.len());
        for (index, slot) in self.fields.iter().enumerate() {
            if slot.value.is_unset() || slot.plain && !slot.assigned {
                results.push(FieldResult::Unchanged);
                continue;
            }
            encoder.out.clear();
            encoder.value(&slot.value)?;
            results.push(if encoder.out == before.field(index).1 && !slot.blind {
                FieldResult::Unchanged
            } else {
                FieldResult::Changed(encoder.out.clone())
            });
        }
        Ok(results)
    }
}

//! Attributes: the fields of records, of the process or monitor that runs, and of views.

use super::{Question, Run};
use crate::vm::machine::{LocalFields, Read};
use crate::vm::memory::FieldSlot;
use crate::vm::program::{Attribute, Class, Symbol};
use crate::vm::value::{Member, Pid, Value};
use crate::vm::{Answer, Bail};

const MISSING: Bail = Bail(&"an attribute that is missing");
const READ_ONLY: Bail = Bail(&"a change of the state by a guard or a property");
/// Of a process in a state, by the first byte of its content.
const STATUSES: [&str; 4] = ["up", "crashed", "down", "unborn"];
const UNBORN: u8 = 3;

impl<'a> Run<'a> {
    /// `self.name` of a process.
    #[inline]
    pub(super) fn own_attribute(&mut self, name: Symbol) -> Answer<Value> {
        match self.own_attributes.get(name as usize) {
            Some(Attribute::Field(field)) => self.own_field(*field as usize),
            Some(Attribute::Missing) if name == self.program.symbols.id => self.own_id(),
            Some(other) => self.computed(*other, &Value::Process),
            None => Err(Bail(&"self outside of a step")),
        }
    }

    /// `value.name`
    #[inline(never)]
    pub(super) fn attribute(&mut self, value: &Value, name: Symbol) -> Answer<Value> {
        let program = self.program;
        let symbols = &program.symbols;
        match value {
            Value::Process => self.own_attribute(name),
            Value::Record(record) => match program.classes[record.class as usize].attributes[name as usize] {
                Attribute::Field(field) => Ok(record.fields[field as usize].clone()),
                Attribute::Missing if name == symbols.sender => {
                    let sender = program.processes.get(record.sender as usize);
                    sender.map(|process| Value::Pid(process.pid)).ok_or(Bail(&"a message without a sender"))
                }
                other => self.computed(other, value),
            },
            Value::Named(record) => match program.classes[record.class as usize].attributes[name as usize] {
                Attribute::Field(field) => Ok(record.fields[field as usize].clone()),
                other => self.computed(other, value),
            },
            Value::Object(object) => match program.classes[object.class as usize].attributes[name as usize] {
                Attribute::Field(field) => match &object.read()[field as usize] {
                    Value::Unset => Err(MISSING),
                    value => Ok(value.clone()),
                },
                other => self.computed(other, value),
            },
            Value::Pid(pid) if name == symbols.index => Ok(Value::Int(i64::from(pid.index))),
            Value::Pid(pid) if name == symbols.role => Ok(Value::str(&program.roles[pid.role as usize])),
            Value::View(position) => self.view_attribute(*position, name),
            Value::Monitor(monitor) => match self.monitor_class(*monitor).attributes[name as usize] {
                Attribute::Field(field) => self.monitor_field(*monitor, field as usize),
                other => self.computed(other, value),
            },
            Value::Shared(shared) => match self.shared_class(*shared).attributes[name as usize] {
                Attribute::Field(field) => self.shared_field(*shared, field),
                other => self.computed(other, value),
            },
            Value::Enum(member) => {
                let class = &program.classes[member.class as usize];
                if name == symbols.name {
                    return Ok(Value::str(&class.fields[member.member as usize]));
                }
                if name == symbols.value {
                    let constant = class.values.get(member.member as usize).copied().flatten();
                    return self.constant(constant.ok_or(Bail(&"the value of an enum member"))?);
                }
                self.computed(class.attributes[name as usize], value)
            }
            Value::Flag(flag) => self.flag_attribute(*flag, name),
            Value::Derived(derived) => {
                self.computed(program.classes[derived.class as usize].attributes[name as usize], value)
            }
            Value::Deque(deque) if name == symbols.maxlen => {
                Ok(deque.longest.map_or(Value::None, |longest| Value::Int(longest as i64)))
            }
            Value::Fraction(fraction) if name == symbols.numerator => Ok(Value::Int(fraction.numerator)),
            Value::Fraction(fraction) if name == symbols.denominator => Ok(Value::Int(fraction.denominator)),
            _ => Err(MISSING),
        }
    }

    fn flag_attribute(&mut self, flag: Member, name: Symbol) -> Answer<Value> {
        let (program, symbols) = (self.program, &self.program.symbols);
        let class = &program.classes[flag.class as usize];
        if name == symbols.value {
            return Ok(Value::Int(i64::from(flag.member)));
        }
        if name == symbols.name {
            let known = class.flags.iter().find(|(_, value)| *value == flag.member);
            return known.map(|(name, _)| Value::str(name)).ok_or(Bail(&"the name of a combination of flags"));
        }
        self.computed(class.attributes[name as usize], &Value::Flag(flag))
    }

    fn computed(&mut self, attribute: Attribute, value: &Value) -> Answer<Value> {
        match attribute {
            Attribute::Property(function) => self.call(function, [value.clone()]),
            Attribute::Constant(constant) => self.constant(constant),
            Attribute::Field(_) | Attribute::Missing => Err(MISSING),
        }
    }

    /// `value.name = new`
    pub(super) fn set_attribute(&mut self, value: &Value, name: Symbol, new: Value) -> Answer<()> {
        let program = self.program;
        match value {
            Value::Process => match (self.own_attributes.get(name as usize), self.question) {
                (Some(Attribute::Field(field)), Question::Step(..)) => {
                    self.memory.fields[*field as usize] =
                        FieldSlot { value: new, assigned: true, ..FieldSlot::default() };
                    Ok(())
                }
                _ => Err(READ_ONLY),
            },
            Value::Monitor(monitor) => match (self.monitor_class(*monitor).attributes[name as usize], self.question) {
                (Attribute::Field(field), Question::Observe(..)) => {
                    self.memory.fields[field as usize] =
                        FieldSlot { value: new, assigned: true, ..FieldSlot::default() };
                    Ok(())
                }
                _ => Err(READ_ONLY),
            },
            Value::Shared(shared) => match (self.shared_class(*shared).attributes[name as usize], self.question) {
                (Attribute::Field(field), Question::Step(_, local)) => {
                    let cell = self.cell(*shared, field, local);
                    let slot = &mut self.memory.fields[cell];
                    *slot = FieldSlot {
                        blind: slot.blind || slot.value.is_unset(),
                        value: new,
                        assigned: true,
                        plain: false,
                    };
                    Ok(())
                }
                _ => Err(READ_ONLY),
            },
            Value::Object(object) => match program.classes[object.class as usize].attributes[name as usize] {
                Attribute::Field(field) => {
                    object.write()?[field as usize] = new;
                    Ok(())
                }
                _ => Err(MISSING),
            },
            _ => Err(Bail(&"assignment to an attribute of an immutable value")),
        }
    }

    // -- the process or monitor that runs ----------------------------------------------------------------------------

    pub(in crate::vm) fn own_position(&self) -> Answer<u16> {
        match self.question {
            Question::Step(process, _) | Question::Guard(process, _) => Ok(process),
            _ => Err(Bail(&"self outside of a step")),
        }
    }

    pub(super) fn own_id(&self) -> Answer<Value> {
        Ok(Value::Pid(self.program.processes[self.own_position()? as usize].pid))
    }

    #[inline]
    fn own_field(&mut self, field: usize) -> Answer<Value> {
        self.memory.fields_read |= 1 << field.min(63);
        match &self.memory.fields[field].value {
            Value::Unset => self.decode_own_field(field),
            value => Ok(value.clone()),
        }
    }

    #[inline(never)]
    fn decode_own_field(&mut self, field: usize) -> Answer<Value> {
        let (Question::Step(_, local) | Question::Guard(_, local) | Question::Observe(_, local)) = self.question else {
            return Err(Bail(&"self outside of a step"));
        };
        let (id, content) = local.field(field);
        let (value, plain) = self.memory.decoded(self.program, id, content, self.question.is_read_only())?;
        self.memory.fields[field] = FieldSlot { value: value.clone(), plain, ..FieldSlot::default() };
        Ok(value)
    }

    // -- views -------------------------------------------------------------------------------------------------------

    pub(super) fn view_attribute(&mut self, position: u16, name: Symbol) -> Answer<Value> {
        let program = self.program;
        let symbols = &program.symbols;
        if let Attribute::Field(field) = program.class_of_process(position).attributes[name as usize] {
            return self.view_field(position, field);
        }
        if name == symbols.id {
            Ok(Value::Pid(program.processes[position as usize].pid))
        } else if name == symbols.status {
            let status = self.status(position)?;
            STATUSES.get(status as usize).map(|text| Value::str(text)).ok_or(MISSING)
        } else if name == symbols.crashed {
            let status = self.status(position)?;
            Ok(Value::Bool(status == 1 || status == 2))
        } else if name == symbols.inbox {
            let mut messages = Vec::new();
            self.inbox(position, &mut messages)?;
            Ok(Value::tuple(messages))
        } else {
            self.computed(program.class_of_process(position).attributes[name as usize], &Value::View(position))
        }
    }

    fn state(&self) -> Answer<&'a dyn crate::vm::machine::StateView> {
        match self.question {
            Question::Property(state) => Ok(state),
            _ => Err(Bail(&"a view outside of a property")),
        }
    }

    pub(super) fn status(&mut self, position: u16) -> Answer<u8> {
        let state = self.state()?;
        self.memory.note_read(Read::Status(position));
        Ok(state.status(position as usize))
    }

    pub(super) fn is_unborn(&mut self, position: u16) -> Answer<bool> {
        Ok(self.status(position)? == UNBORN)
    }

    #[inline]
    fn view_field(&mut self, position: u16, field: u32) -> Answer<Value> {
        let place = (self.program.field_offsets[position as usize] + field) as usize;
        match self.memory.view_values.get(place) {
            Some(Value::Unset) => {}
            Some(value) => return Ok(value.clone()),
            None => return Err(Bail(&"a view outside of a property")),
        }
        // A field of an unborn process cannot be read. So the status of a spare slot is read too.
        if position as usize >= self.program.first_spare && self.is_unborn(position)? {
            return Err(Bail(&"a field of an unborn process"));
        }
        self.memory.note_read(Read::Field(position, field as u16));
        let (id, content) = self.state()?.field(position as usize, field as usize);
        self.keep_view_value(place, id, content)
    }

    fn keep_view_value(&mut self, place: usize, id: u32, content: &[u8]) -> Answer<Value> {
        let (value, _) = self.memory.decoded(self.program, id, content, true)?;
        self.memory.view_values[place] = value.clone();
        self.memory.view_touched.push(place as u32);
        Ok(value)
    }

    pub(super) fn inbox(&mut self, position: u16, out: &mut Vec<Value>) -> Answer<()> {
        let state = self.state()?;
        self.memory.note_read(Read::Inbox(position));
        for place in 0..state.inbox(position as usize) {
            let message = state.message(position as usize, place);
            out.push(self.memory.decoded_message(self.program, message, true)?);
        }
        Ok(())
    }

    fn monitor_class(&self, monitor: u16) -> &'a Class {
        let program = self.program;
        &program.classes[program.monitors[monitor as usize].0 as usize]
    }

    fn monitor_field(&mut self, monitor: u16, field: usize) -> Answer<Value> {
        if let Question::Observe(own, _) = self.question {
            return if own == monitor { self.own_field(field) } else { Err(MISSING) };
        }
        let of_monitor = self.program.processes.len() + monitor as usize;
        let place = self.program.field_offsets[of_monitor] as usize + field;
        match self.memory.view_values.get(place) {
            Some(Value::Unset) => {}
            Some(value) => return Ok(value.clone()),
            None => return Err(Bail(&"a view outside of a property")),
        }
        self.memory.note_read(Read::Monitor(monitor, field as u16));
        let (id, content) = self.state()?.monitor(monitor as usize, field);
        self.keep_view_value(place, id, content)
    }

    // -- shared objects ----------------------------------------------------------------------------------------------

    fn shared_class(&self, shared: u16) -> &'a Class {
        let program = self.program;
        &program.classes[program.shared[shared as usize].class as usize]
    }

    /// The place of a field of a shared object: the cells follow the fields of the process.
    fn cell(&self, shared: u16, field: u32, local: &dyn LocalFields) -> usize {
        local.count() - self.program.cells + (self.program.shared[shared as usize].first + field) as usize
    }

    fn shared_field(&mut self, shared: u16, field: u32) -> Answer<Value> {
        let program = self.program;
        match self.question {
            Question::Step(_, local) | Question::Guard(_, local) => self.own_field(self.cell(shared, field, local)),
            Question::Property(state) => {
                let of_shared = program.processes.len() + program.monitors.len() + shared as usize;
                let place = (program.field_offsets[of_shared] + field) as usize;
                if !self.memory.view_values[place].is_unset() {
                    return Ok(self.memory.view_values[place].clone());
                }
                let position = program.processes.len() + (program.shared[shared as usize].first + field) as usize;
                self.memory.note_read(Read::Field(position as u16, 0));
                let (id, content) = state.field(position, 0);
                self.keep_view_value(place, id, content)
            }
            _ => Err(Bail(&"shared state outside of a step or a property")),
        }
    }

    /// The position of the process with this id.
    pub(in crate::vm) fn position(&self, pid: Pid) -> Answer<u16> {
        self.program.positions.get(&pid).copied().ok_or(Bail(&"the id of an unknown process"))
    }
}

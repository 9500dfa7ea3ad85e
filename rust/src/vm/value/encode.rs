//! The canonical bytes of values, exactly as `python/canon.rs` writes them.

use super::library::{Factory, Flavour};
use super::{Items, Value};
use crate::vm::program::{Kind, Program};
use crate::vm::{Answer, Bail};
use std::rc::Rc;

/// As in `python/canon.rs`.
const DEEPEST: usize = 100;
const ALIAS: Bail = Bail(&"one object in two places of a state");

pub struct Encoder<'p> {
    program: &'p Program,
    pub out: Vec<u8>,
    /// Addresses of the mutable objects met, to find aliases.
    mutable: Vec<usize>,
    depth: usize,
}

impl<'p> Encoder<'p> {
    /// An encoder of a whole value, or (with a depth of 1) of fields, which are items of a tuple.
    pub fn new(program: &'p Program, depth: usize) -> Encoder<'p> {
        Encoder { program, out: Vec::with_capacity(64), mutable: Vec::new(), depth }
    }

    pub fn number(&mut self, value: u64) {
        push_number(&mut self.out, value);
    }

    fn bytes(&mut self, tag: u8, content: &[u8]) {
        self.out.push(tag);
        self.number(content.len() as u64);
        self.out.extend_from_slice(content);
    }

    fn once<T>(&mut self, object: &Rc<T>) -> Answer<()> {
        let address = Rc::as_ptr(object).cast::<u8>() as usize;
        if self.mutable.contains(&address) {
            return Err(ALIAS);
        }
        self.mutable.push(address);
        Ok(())
    }

    pub fn items(&mut self, tag: u8, items: &[Value]) -> Answer<()> {
        self.out.push(tag);
        self.number(items.len() as u64);
        items.iter().try_for_each(|item| self.value(item))
    }

    /// Elements (or keys with values), sorted by their bytes.
    fn sorted(&mut self, tag: u8, keys: &[Value], values: Option<&[Value]>) -> Answer<()> {
        self.out.push(tag);
        self.sorted_entries(keys, values)
    }

    fn sorted_entries(&mut self, keys: &[Value], values: Option<&[Value]>) -> Answer<()> {
        self.number(keys.len() as u64);
        let start = self.out.len();
        let mut ends = Vec::with_capacity(keys.len());
        for (place, key) in keys.iter().enumerate() {
            self.value(key)?;
            if let Some(values) = values {
                self.value(&values[place])?;
            }
            ends.push(self.out.len());
        }
        let starts = std::iter::once(start).chain(ends.iter().copied());
        let mut parts: Vec<&[u8]> = starts.zip(&ends).map(|(from, &to)| &self.out[from..to]).collect();
        if !parts.is_sorted() {
            parts.sort_unstable();
            let together = parts.concat();
            self.out.truncate(start);
            self.out.extend_from_slice(&together);
        }
        Ok(())
    }

    pub fn value(&mut self, value: &Value) -> Answer<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Bail(&"a value that is nested too deeply"));
        }
        match value {
            Value::None => self.out.push(b'N'),
            Value::Bool(truth) => self.out.push(if *truth { b'T' } else { b'F' }),
            Value::Int(number) => {
                self.out.push(b'i');
                self.number(((number << 1) ^ (number >> 63)) as u64);
            }
            Value::Str(text) => self.bytes(b's', text.as_bytes()),
            Value::Bytes(bytes) => self.bytes(b'b', bytes),
            Value::Float(number) => {
                let bits = if number.is_nan() { f64::NAN.to_bits() } else { number.to_bits() };
                self.out.push(b'f');
                self.out.extend_from_slice(&bits.to_le_bytes());
            }
            Value::Tuple(items) => self.items(b't', items)?,
            Value::List(list) => {
                self.once(list)?;
                self.items(b'l', &list.read())?;
            }
            Value::Dict(dict) => {
                self.once(dict)?;
                let map = dict.read();
                match dict.flavour {
                    Flavour::Plain => self.sorted(b'd', map.keys(), Some(map.values()))?,
                    Flavour::Counter => self.sorted(b'c', map.keys(), Some(map.values()))?,
                    Flavour::Default(factory) => {
                        self.out.push(b'm');
                        self.factory(factory);
                        self.sorted_entries(map.keys(), Some(map.values()))?;
                    }
                    Flavour::Ordered => {
                        self.out.push(b'o');
                        self.number(map.len() as u64);
                        for (key, value) in map.keys().iter().zip(map.values()) {
                            self.value(key)?;
                            self.value(value)?;
                        }
                    }
                }
            }
            Value::Deque(deque) => {
                self.once(deque)?;
                self.out.push(b'q');
                self.value(&deque.longest.map_or(Value::None, |longest| Value::Int(longest as i64)))?;
                let items = deque.read();
                self.number(items.len() as u64);
                items.iter().try_for_each(|item| self.value(item))?;
            }
            Value::Derived(derived) => {
                self.out.extend_from_slice(&self.program.classes[derived.class as usize].prefix);
                match &derived.content {
                    Value::Tuple(items) => self.items(b't', items)?,
                    content => self.value(content)?,
                }
            }
            Value::Fraction(fraction) => {
                self.out.push(b'R');
                self.value(&Value::Int(fraction.numerator))?;
                self.value(&Value::Int(fraction.denominator))?;
            }
            Value::Flag(flag) => {
                let class = &self.program.classes[flag.class as usize];
                self.out.extend_from_slice(&class.prefix);
                match class.flags.iter().find(|(_, value)| *value == flag.member) {
                    Some((name, _)) => self.bytes(b's', name.as_bytes()),
                    None => self.value(&Value::Int(i64::from(flag.member)))?,
                }
            }
            Value::Set(set) => {
                self.once(set)?;
                self.sorted(b'S', set.read().keys(), None)?;
            }
            Value::FrozenSet(table) => self.sorted(b'Z', table.keys(), None)?,
            Value::Pid(pid) => {
                self.bytes(b'P', self.program.roles[pid.role as usize].as_bytes());
                self.number(u64::from(pid.index));
            }
            Value::Shared(number) => {
                let shared = &self.program.shared[*number as usize];
                self.bytes(b'P', shared.role.as_bytes());
                self.number(u64::from(shared.index));
            }
            Value::Enum(member) => {
                let class = &self.program.classes[member.class as usize];
                self.out.extend_from_slice(&class.prefix);
                self.bytes(b's', class.fields[member.member as usize].as_bytes());
            }
            Value::Named(record) => {
                self.out.extend_from_slice(&self.program.classes[record.class as usize].prefix);
                self.items(b't', &record.fields)?;
            }
            Value::Record(record) => self.fields(record.class, &record.fields)?,
            Value::Object(object) => {
                self.once(object)?;
                self.fields(object.class, &object.read())?;
            }
            _ => return Err(Bail(&"a value that cannot be part of a state")),
        }
        self.depth -= 1;
        Ok(())
    }

    /// The class that makes the values of missing keys, by its name.
    fn factory(&mut self, factory: Option<Factory>) {
        let program = self.program;
        match factory {
            None => self.out.push(b'N'),
            Some(Factory::Class(class)) => self.bytes(b's', program.classes[class as usize].name.as_bytes()),
            Some(factory) => self.bytes(b's', factory.name().unwrap_or_default().as_bytes()),
        }
    }

    fn fields(&mut self, class: u32, fields: &Items) -> Answer<()> {
        self.out.extend_from_slice(&self.program.classes[class as usize].prefix);
        self.number(fields.len() as u64);
        fields.iter().try_for_each(|field| self.value(field))
    }
}

pub fn push_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// What the bytes of every instance of a class begin with.
pub fn prefix(kind: Kind, name: &str) -> Box<[u8]> {
    let mut out = vec![match kind {
        Kind::Enum | Kind::Flag => b'E',
        Kind::Derived => b'u',
        Kind::Tuple => b'n',
        _ => b'D',
    }];
    push_number(&mut out, name.len() as u64);
    out.extend_from_slice(name.as_bytes());
    out.into_boxed_slice()
}

/// The canonical bytes of a value.
pub fn encoded(program: &Program, value: &Value) -> Answer<Vec<u8>> {
    let mut encoder = Encoder::new(program, 0);
    encoder.value(value)?;
    Ok(encoder.out)
}

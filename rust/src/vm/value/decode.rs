//! Values from canonical bytes. Dicts and sets have the order of the bytes, as in `python/canon.rs`.

use super::library::{Derived, Factory, Flavour, Fraction};
use super::table::{Map, Table};
use super::{Items, Member, NO_SENDER, Object, Pid, Record, Value};
use crate::vm::program::{Kind, Program};
use crate::vm::{Answer, Bail};
use std::rc::Rc;

const MALFORMED: Bail = Bail(&"malformed content");

/// How far a decoded value may be shared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sharing {
    /// Nothing in it can change, and nothing in it has an identity.
    Plain,
    /// It contains a list, dict, set or mutable record.
    Mutable,
    /// It contains an instance whose class compares by identity.
    Identity,
}

pub struct Decoder<'a> {
    program: &'a Program,
    rest: &'a [u8],
    locked: bool,
    pub sharing: Sharing,
}

/// A fresh value.
pub fn decoded(program: &Program, content: &[u8], locked: bool) -> Answer<(Value, Sharing)> {
    let mut decoder = Decoder { program, rest: content, locked, sharing: Sharing::Plain };
    let value = decoder.value()?;
    if decoder.rest.is_empty() { Ok((value, decoder.sharing)) } else { Err(MALFORMED) }
}

/// A fresh message that knows its sender.
pub fn decoded_message(program: &Program, content: &[u8], sender: u16, locked: bool) -> Answer<(Value, Sharing)> {
    let (value, sharing) = decoded(program, content, locked)?;
    match value {
        Value::Record(record) => {
            let mut record = Rc::into_inner(record).ok_or(MALFORMED)?;
            record.sender = sender;
            Ok((Value::Record(Rc::new(record)), sharing))
        }
        _ => Err(Bail(&"a message that is not a frozen record")),
    }
}

impl<'a> Decoder<'a> {
    fn take(&mut self, count: usize) -> Answer<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(count).ok_or(MALFORMED)?;
        self.rest = tail;
        Ok(head)
    }

    fn byte(&mut self) -> Answer<u8> {
        let (&first, rest) = self.rest.split_first().ok_or(MALFORMED)?;
        self.rest = rest;
        Ok(first)
    }

    fn number(&mut self) -> Answer<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
            if shift > 63 {
                return Err(MALFORMED);
            }
        }
    }

    fn bytes(&mut self) -> Answer<&'a [u8]> {
        let length = self.number()? as usize;
        self.take(length)
    }

    fn text(&mut self) -> Answer<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| MALFORMED)
    }

    fn class(&mut self) -> Answer<u32> {
        let name = self.text()?;
        self.program.class_numbers.get(name).copied().ok_or(Bail(&"a class that the program does not know"))
    }

    fn changeable(&mut self) {
        self.sharing = self.sharing.max(Sharing::Mutable);
    }

    fn count(&mut self) -> Answer<usize> {
        let count = self.number()? as usize;
        // Each item takes a byte or more.
        if count <= self.rest.len() { Ok(count) } else { Err(MALFORMED) }
    }

    fn items(&mut self, count: usize) -> Answer<Items> {
        let mut items = Items::with_capacity(count);
        for _ in 0..count {
            items.push(self.value()?);
        }
        Ok(items)
    }

    fn table(&mut self) -> Answer<Table> {
        let count = self.count()?;
        let mut table = Table::with_capacity(count);
        for _ in 0..count {
            let key = self.value()?;
            table.add(key)?;
        }
        Ok(table)
    }

    fn value(&mut self) -> Answer<Value> {
        Ok(match self.byte()? {
            b'N' => Value::None,
            b'T' => Value::Bool(true),
            b'F' => Value::Bool(false),
            b'i' => {
                let folded = self.number()?;
                Value::Int((folded >> 1) as i64 ^ -((folded & 1) as i64))
            }
            b'I' => return Err(Bail(&"an integer beyond 64 bits")),
            b's' => Value::str(self.text()?),
            b'b' => Value::Bytes(Rc::new(self.bytes()?.into())),
            b't' => {
                let count = self.count()?;
                Value::Tuple(Rc::new(self.items(count)?))
            }
            b'l' => {
                self.changeable();
                let count = self.count()?;
                let mut items = Vec::with_capacity(count);
                for _ in 0..count {
                    items.push(self.value()?);
                }
                Value::locked_list(items, self.locked)
            }
            b'd' => self.dict(Flavour::Plain)?,
            b'S' => {
                self.changeable();
                Value::locked_set(self.table()?, self.locked)
            }
            b'Z' => Value::frozen_set(self.table()?),
            b'f' => {
                let bits: [u8; 8] = self.take(8)?.try_into().map_err(|_| MALFORMED)?;
                Value::Float(f64::from_le_bytes(bits))
            }
            b'P' => {
                let role = self.bytes()?;
                let index = u32::try_from(self.number()?).map_err(|_| MALFORMED)?;
                if let Some(shared) = self.program.shared_object(role, index) {
                    return Ok(Value::Shared(shared));
                }
                let roles = &self.program.roles;
                let role = roles.binary_search_by(|known| known.as_bytes().cmp(role));
                let role = role.map_err(|_| Bail(&"a process id of a role that the system does not have"))? as u32;
                Value::Pid(Pid { role, index })
            }
            b'E' => {
                let class = self.class()?;
                let entry = &self.program.classes[class as usize];
                if entry.kind == Kind::Flag {
                    return self.flag(class);
                }
                if self.byte()? != b's' {
                    return Err(Bail(&"a combination of flags"));
                }
                let name = self.text()?;
                let member = entry.fields.iter().position(|field| &**field == name).ok_or(MALFORMED)?;
                if entry.kind != Kind::Enum || entry.unusual {
                    return Err(Bail(&"an enum that is also another type"));
                }
                Value::Enum(Member { class, member: member as u32 })
            }
            b'n' => {
                let class = self.class()?;
                self.byte()?;
                let entry = &self.program.classes[class as usize];
                let count = self.count()?;
                if count != entry.fields.len() || entry.kind != Kind::Tuple || entry.unusual {
                    return Err(MALFORMED);
                }
                let fields = self.items(count)?;
                Value::Named(Rc::new(Record { class, traits: entry.traits, sender: NO_SENDER, fields }))
            }
            b'D' => {
                let class = self.class()?;
                let entry = &self.program.classes[class as usize];
                let count = self.count()?;
                if count != entry.fields.len() || !matches!(entry.kind, Kind::Record | Kind::Message) || entry.unusual {
                    return Err(MALFORMED);
                }
                let fields = self.items(count)?;
                if !entry.traits.equal {
                    self.sharing = Sharing::Identity;
                }
                if entry.mutable {
                    self.changeable();
                    Value::Object(Rc::new(Object::new(class, entry.traits, fields, self.locked)))
                } else {
                    Value::Record(Rc::new(Record { class, traits: entry.traits, sender: NO_SENDER, fields }))
                }
            }
            b'q' => {
                self.changeable();
                let longest = self.value()?.as_int().map(|longest| longest as usize);
                let count = self.count()?;
                let items = self.items(count)?;
                Value::deque(items.into_iter().collect(), longest, self.locked)
            }
            b'o' => self.dict(Flavour::Ordered)?,
            b'c' => self.dict(Flavour::Counter)?,
            b'm' => {
                if !self.program.inserts {
                    return Err(Bail(&"a defaultdict"));
                }
                let factory = match self.value()? {
                    Value::Str(name) => Some(self.factory(&name)?),
                    _ => None,
                };
                self.dict(Flavour::Default(factory))?
            }
            b'R' => match (self.value()?, self.value()?) {
                (Value::Int(numerator), Value::Int(denominator)) => {
                    Value::Fraction(Rc::new(Fraction { numerator, denominator }))
                }
                _ => return Err(MALFORMED),
            },
            b'X' => return Err(Bail(&"a Decimal")),
            b'u' => {
                let class = self.class()?;
                if self.program.classes[class as usize].kind != Kind::Derived {
                    return Err(MALFORMED);
                }
                Value::Derived(Rc::new(Derived { class, content: self.value()? }))
            }
            _ => return Err(MALFORMED),
        })
    }

    fn dict(&mut self, flavour: Flavour) -> Answer<Value> {
        self.changeable();
        let count = self.count()?;
        let mut map = Map::with_capacity(count);
        for _ in 0..count {
            let key = self.value()?;
            map.set(key, self.value()?)?;
        }
        Ok(Value::dict_of(map, flavour, self.locked))
    }

    fn factory(&self, name: &str) -> Answer<Factory> {
        let class = || self.program.class_numbers.get(name).map(|&class| Factory::Class(class));
        Factory::from_name(name).or_else(class).ok_or(Bail(&"a defaultdict of a class that the program does not know"))
    }

    /// A member of a flag by its name, or a combination of members by its value.
    fn flag(&mut self, class: u32) -> Answer<Value> {
        let flags = &self.program.classes[class as usize].flags;
        let number = match self.value()? {
            Value::Str(name) => flags.iter().find(|(known, _)| **known == **name).ok_or(MALFORMED)?.1,
            Value::Int(number) => u32::try_from(number).map_err(|_| MALFORMED)?,
            _ => return Err(MALFORMED),
        };
        Ok(Value::Flag(Member { class, member: number }))
    }
}

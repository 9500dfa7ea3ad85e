//! The values that a program computes with. A value is small: what does not fit in eight bytes is behind an `Rc`. Two names
//! of one list are one list, as in Python. Canonical bytes come in and go out: open `decode.rs` first, then `encode.rs`.
//!
//! A container is *locked* if the program must not change it: a constant, which all evaluations share, or a part of the
//! state while a guard or a property looks at it.

pub mod compare;
pub mod decode;
pub mod encode;
pub mod library;
pub mod table;
pub mod text;

use crate::vm::library::{Builtin, Method};
use crate::vm::{Answer, Bail};
use library::{Deque, Derived, Flavour, Fraction};
use smallvec::SmallVec;
use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;
use table::{Map, Table};

/// The items of a tuple, or the fields of a record.
pub type Items = SmallVec<[Value; 4]>;

/// A message that was not delivered has no sender.
pub const NO_SENDER: u16 = u16::MAX;

#[derive(Clone, Default)]
pub enum Value {
    /// No value: a variable before its assignment, a field that was not decoded yet.
    #[default]
    Unset,
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Rc<Box<str>>),
    Bytes(Rc<Box<[u8]>>),
    Pid(Pid),
    Enum(Member),
    /// A member of a `Flag`, or a combination of members: its class and its value.
    Flag(Member),
    Tuple(Rc<Items>),
    /// A named tuple.
    Named(Rc<Record>),
    /// A message, or an instance of a frozen dataclass.
    Record(Rc<Record>),
    /// An instance of a dataclass that is not frozen.
    Object(Rc<Object>),
    List(Rc<List>),
    Dict(Rc<Dict>),
    Set(Rc<Set>),
    FrozenSet(Rc<Table>),
    Deque(Rc<Deque>),
    /// An instance of a class that derives from `str`, `int` or `tuple`.
    Derived(Rc<Derived>),
    Fraction(Rc<Fraction>),
    Range(Rc<Range>),
    DictView(Rc<DictView>),
    /// The process that runs.
    Process,
    /// A process as a property sees it, by its position.
    View(u16),
    /// The monitor that observes, or a monitor as a property sees it, by its number.
    Monitor(u16),
    /// A reference to a shared object, by its number.
    Shared(u16),
    Closure(Rc<Closure>),
    Function(Rc<BoundFunction>),
    Builtin(Builtin),
    /// A method of a built-in type that is not bound to a value.
    Method(Method),
}

/// The id of a process. Roles are numbered in the order of their names, so that ids compare as numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(align(8))]
pub struct Pid {
    pub role: u32,
    pub index: u32,
}

/// A member of an enum: its class, and its place among the members.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(align(8))]
pub struct Member {
    pub class: u32,
    pub member: u32,
}

/// What instances of a class can do, copied into each so that a comparison need not look the class up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traits {
    pub equal: bool,
    pub ordered: bool,
    pub hashable: bool,
}

pub struct Record {
    pub class: u32,
    pub traits: Traits,
    /// The position of the process that sent this message, or `NO_SENDER`.
    pub sender: u16,
    pub fields: Items,
}

pub struct Object {
    pub class: u32,
    pub traits: Traits,
    locked: bool,
    fields: RefCell<Items>,
}

pub struct List {
    locked: bool,
    items: RefCell<Vec<Value>>,
}

pub struct Dict {
    locked: bool,
    pub flavour: Flavour,
    map: RefCell<Map>,
}

pub struct Set {
    locked: bool,
    table: RefCell<Table>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub start: i64,
    pub stop: i64,
    pub step: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ViewKind {
    Keys,
    Values,
    Items,
}

pub struct DictView {
    pub kind: ViewKind,
    pub dict: Rc<Dict>,
}

/// A lambda or a nested function. It works on the frame of the function around it, which must still be there.
pub struct Closure {
    pub lambda: u32,
    pub frame: u32,
    pub serial: u64,
    pub defaults: Items,
}

pub struct BoundFunction {
    pub function: u32,
    pub bound: Value,
}

const LOCKED: Bail = Bail(&"change of a shared or read-only value");
const BUSY: Bail = Bail(&"change of a value in use");

impl Range {
    pub fn len(&self) -> usize {
        let (start, stop, step) = (i128::from(self.start), i128::from(self.stop), i128::from(self.step));
        let span = if step > 0 { stop - start + step - 1 } else { stop - start + step + 1 };
        (span / step).max(0) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number at a place that exists.
    pub fn at(&self, place: usize) -> i64 {
        self.start + self.step * place as i64
    }

    pub fn contains(&self, number: i64) -> bool {
        let (start, step) = (i128::from(self.start), i128::from(self.step));
        let offset = i128::from(number) - start;
        offset % step == 0 && (0..self.len() as i128).contains(&(offset / step))
    }
}

impl List {
    pub fn read(&self) -> Ref<'_, Vec<Value>> {
        self.items.borrow()
    }

    pub fn write(&self) -> Answer<RefMut<'_, Vec<Value>>> {
        if self.locked { Err(LOCKED) } else { self.items.try_borrow_mut().map_err(|_| BUSY) }
    }

    pub fn is_locked(&self) -> bool {
        self.locked
    }
}

impl Dict {
    pub fn read(&self) -> Ref<'_, Map> {
        self.map.borrow()
    }

    pub fn write(&self) -> Answer<RefMut<'_, Map>> {
        if self.locked { Err(LOCKED) } else { self.map.try_borrow_mut().map_err(|_| BUSY) }
    }

    pub fn is_locked(&self) -> bool {
        self.locked
    }
}

impl Set {
    pub fn read(&self) -> Ref<'_, Table> {
        self.table.borrow()
    }

    pub fn write(&self) -> Answer<RefMut<'_, Table>> {
        if self.locked { Err(LOCKED) } else { self.table.try_borrow_mut().map_err(|_| BUSY) }
    }

    pub fn is_locked(&self) -> bool {
        self.locked
    }
}

impl Object {
    pub fn new(class: u32, traits: Traits, fields: Items, locked: bool) -> Object {
        Object { class, traits, locked, fields: RefCell::new(fields) }
    }

    pub fn read(&self) -> Ref<'_, Items> {
        self.fields.borrow()
    }

    pub fn write(&self) -> Answer<RefMut<'_, Items>> {
        if self.locked { Err(LOCKED) } else { self.fields.try_borrow_mut().map_err(|_| BUSY) }
    }

    pub fn is_locked(&self) -> bool {
        self.locked
    }
}

impl Value {
    pub fn str(text: &str) -> Value {
        Value::Str(Rc::new(text.into()))
    }

    pub fn tuple(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Tuple(Rc::new(items.into_iter().collect()))
    }

    pub fn pair(first: Value, second: Value) -> Value {
        let mut items = Items::new();
        items.push(first);
        items.push(second);
        Value::Tuple(Rc::new(items))
    }

    pub fn list(items: Vec<Value>) -> Value {
        Value::locked_list(items, false)
    }

    pub fn locked_list(items: Vec<Value>, locked: bool) -> Value {
        Value::List(Rc::new(List { locked, items: RefCell::new(items) }))
    }

    pub fn dict(map: Map) -> Value {
        Value::locked_dict(map, false)
    }

    pub fn locked_dict(map: Map, locked: bool) -> Value {
        Value::dict_of(map, Flavour::Plain, locked)
    }

    pub fn set(table: Table) -> Value {
        Value::locked_set(table, false)
    }

    pub fn locked_set(table: Table, locked: bool) -> Value {
        Value::Set(Rc::new(Set { locked, table: RefCell::new(table) }))
    }

    pub fn frozen_set(table: Table) -> Value {
        Value::FrozenSet(Rc::new(table))
    }

    pub fn is_unset(&self) -> bool {
        matches!(self, Value::Unset)
    }

    /// A number that can be an index: an int or a bool.
    pub fn as_int(&self) -> Option<i64> {
        match *self {
            Value::Int(number) => Some(number),
            Value::Bool(truth) => Some(i64::from(truth)),
            Value::Derived(ref derived) => derived.content.as_int(),
            _ => None,
        }
    }

    /// The items of a tuple or a named tuple, or of an instance of another class that derives from `tuple`.
    pub fn as_items(&self) -> Option<&Items> {
        match self {
            Value::Tuple(items) => Some(items),
            Value::Named(record) => Some(&record.fields),
            Value::Derived(derived) => derived.content.as_items(),
            _ => None,
        }
    }

    /// Python's `bool(value)`.
    pub fn truth(&self) -> bool {
        match self {
            Value::Unset | Value::None => false,
            Value::Bool(truth) => *truth,
            Value::Int(number) => *number != 0,
            Value::Float(number) => *number != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::Bytes(bytes) => !bytes.is_empty(),
            Value::Tuple(items) => !items.is_empty(),
            Value::Named(record) => !record.fields.is_empty(),
            Value::List(list) => !list.read().is_empty(),
            Value::Dict(dict) => !dict.read().is_empty(),
            Value::Set(set) => !set.read().is_empty(),
            Value::FrozenSet(table) => !table.is_empty(),
            Value::Range(range) => !range.is_empty(),
            Value::Deque(deque) => !deque.read().is_empty(),
            Value::Derived(derived) => derived.content.truth(),
            Value::Fraction(fraction) => fraction.numerator != 0,
            Value::Flag(flag) => flag.member != 0,
            Value::DictView(view) => !view.dict.read().is_empty(),
            _ => true,
        }
    }
}

//! Values of Python's library, and of classes that derive from `str`, `int` or `tuple`.

use super::table::Map;
use super::{BUSY, LOCKED, Value};
use crate::vm::{Answer, Bail};
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::VecDeque;
use std::rc::Rc;

/// Which dict a dict is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flavour {
    Plain,
    /// An `OrderedDict`: its order is a part of it.
    Ordered,
    Counter,
    /// A `defaultdict`, with the class that makes the values of missing keys.
    Default(Option<Factory>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Factory {
    Bool,
    Int,
    Float,
    Str,
    Bytes,
    Tuple,
    List,
    Dict,
    Set,
    FrozenSet,
    Deque,
    OrderedDict,
    Counter,
    DefaultDict,
    /// A class of the program. CPython makes its instances.
    Class(u32),
}

const FACTORIES: [(Factory, &str); 14] = [
    (Factory::Bool, "builtins.bool"),
    (Factory::Int, "builtins.int"),
    (Factory::Float, "builtins.float"),
    (Factory::Str, "builtins.str"),
    (Factory::Bytes, "builtins.bytes"),
    (Factory::Tuple, "builtins.tuple"),
    (Factory::List, "builtins.list"),
    (Factory::Dict, "builtins.dict"),
    (Factory::Set, "builtins.set"),
    (Factory::FrozenSet, "builtins.frozenset"),
    (Factory::Deque, "collections.deque"),
    (Factory::OrderedDict, "collections.OrderedDict"),
    (Factory::Counter, "collections.Counter"),
    (Factory::DefaultDict, "collections.defaultdict"),
];

impl Factory {
    /// The factory with the name that the codec gives it, unless it is a class of the program.
    pub fn from_name(name: &str) -> Option<Factory> {
        FACTORIES.iter().find(|(_, known)| *known == name).map(|(factory, _)| *factory)
    }

    /// None for a class of the program.
    pub fn name(self) -> Option<&'static str> {
        FACTORIES.iter().find(|(known, _)| *known == self).map(|(_, name)| *name)
    }

    /// A new value.
    pub fn make(self) -> Answer<Value> {
        let dict = |flavour| Value::dict_of(Map::default(), flavour, false);
        Ok(match self {
            Factory::Bool => Value::Bool(false),
            Factory::Int => Value::Int(0),
            Factory::Float => Value::Float(0.0),
            Factory::Str => Value::str(""),
            Factory::Bytes => Value::Bytes(Rc::new(Box::default())),
            Factory::Tuple => Value::tuple([]),
            Factory::List => Value::list(Vec::new()),
            Factory::Dict => dict(Flavour::Plain),
            Factory::Set => Value::set(Default::default()),
            Factory::FrozenSet => Value::frozen_set(Default::default()),
            Factory::Deque => Value::deque(VecDeque::new(), None, false),
            Factory::OrderedDict => dict(Flavour::Ordered),
            Factory::Counter => dict(Flavour::Counter),
            Factory::DefaultDict => dict(Flavour::Default(None)),
            Factory::Class(_) => return Err(Bail(&"a defaultdict that makes an instance of a class")),
        })
    }
}

pub struct Deque {
    locked: bool,
    /// The most items that it holds. If there are more, those at the other end go.
    pub longest: Option<usize>,
    items: RefCell<VecDeque<Value>>,
    /// Counts changes: an iteration notices them.
    version: Cell<u32>,
}

impl Deque {
    pub fn read(&self) -> Ref<'_, VecDeque<Value>> {
        self.items.borrow()
    }

    /// The items, to add or remove some.
    pub fn write(&self) -> Answer<RefMut<'_, VecDeque<Value>>> {
        let items = self.write_items()?;
        self.version.set(self.version.get().wrapping_add(1));
        Ok(items)
    }

    /// The items, to replace some.
    pub fn write_items(&self) -> Answer<RefMut<'_, VecDeque<Value>>> {
        if self.locked { Err(LOCKED) } else { self.items.try_borrow_mut().map_err(|_| BUSY) }
    }

    pub fn version(&self) -> u32 {
        self.version.get()
    }

    pub fn is_locked(&self) -> bool {
        self.locked
    }

    pub fn append(&self, item: Value) -> Answer<()> {
        let mut items = self.write()?;
        items.push_back(item);
        if self.longest.is_some_and(|longest| items.len() > longest) {
            items.pop_front();
        }
        Ok(())
    }

    pub fn append_left(&self, item: Value) -> Answer<()> {
        let mut items = self.write()?;
        items.push_front(item);
        if self.longest.is_some_and(|longest| items.len() > longest) {
            items.pop_back();
        }
        Ok(())
    }
}

/// An instance of a class that derives from `str`, `int` or `tuple`. It has no operators of its own.
pub struct Derived {
    pub class: u32,
    /// A string, an integer or a tuple.
    pub content: Value,
}

/// In lowest terms; the denominator is positive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fraction {
    pub numerator: i64,
    pub denominator: i64,
}

impl Value {
    pub fn dict_of(map: Map, flavour: Flavour, locked: bool) -> Value {
        Value::Dict(Rc::new(super::Dict { locked, flavour, map: RefCell::new(map) }))
    }

    pub fn deque(items: VecDeque<Value>, longest: Option<usize>, locked: bool) -> Value {
        Value::Deque(Rc::new(Deque { locked, longest, items: RefCell::new(items), version: Cell::new(0) }))
    }

    /// The value itself, or the content of an instance of a class that derives from `str`, `int` or `tuple`.
    pub fn plain(&self) -> &Value {
        match self {
            Value::Derived(derived) => &derived.content,
            _ => self,
        }
    }
}

impl Fraction {
    /// In lowest terms. None if a number needs more than 64 bits, or the denominator is zero.
    pub fn new(numerator: i128, denominator: i128) -> Option<Fraction> {
        let (mut a, mut b) = (numerator.unsigned_abs(), denominator.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let divisor = i128::try_from(a).ok().filter(|divisor| *divisor != 0 && denominator != 0)?;
        let divisor = if denominator < 0 { -divisor } else { divisor };
        let numerator = i64::try_from(numerator / divisor).ok()?;
        Some(Fraction { numerator, denominator: i64::try_from(denominator / divisor).ok()? })
    }

    /// A fraction, or an integer as one.
    pub fn of(value: &Value) -> Option<Fraction> {
        match value {
            Value::Fraction(fraction) => Some(**fraction),
            _ => value.as_int().map(|numerator| Fraction { numerator, denominator: 1 }),
        }
    }

    /// The nearest float. None if the numbers are not floats themselves.
    pub fn as_float(self) -> Option<f64> {
        const EXACT: u64 = 1 << 53;
        let exact = self.numerator.unsigned_abs() <= EXACT && self.denominator.unsigned_abs() <= EXACT;
        exact.then(|| self.numerator as f64 / self.denominator as f64)
    }
}

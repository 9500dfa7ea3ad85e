//! Equality, order and hashes, as Python has them: 1 == True == 1.0, tuples by their items, sets by inclusion.

use super::library::{Flavour, Fraction};
use super::table::{Map, Table};
use super::{Dict, Items, Record, Value};
use crate::vm::{Answer, Bail};
use rustc_hash::FxHasher;
use std::cmp::Ordering;
use std::hash::Hasher;
use std::rc::Rc;

/// Values that are nested deeper are left to CPython (they may contain themselves).
const DEEPEST: u32 = 100;
const TOO_DEEP: Bail = Bail(&"a value that is nested too deeply");
const NAN: Bail = Bail(&"NaN inside a container");
const UNORDERED: Bail = Bail(&"values without an order are compared");
const FLOAT: Bail = Bail(&"a Fraction is compared with a float");
const UNHASHABLE: Bail = Bail(&"unhashable value");
/// Above this, not every integer is a float.
const EXACT: i64 = 1 << 53;

/// Python's `a == b`.
pub fn equal(a: &Value, b: &Value) -> Answer<bool> {
    if let (Value::Float(x), Value::Float(y)) = (a, b) {
        return Ok(x == y);
    }
    equal_at(a, b, 0)
}

/// Equality of items of a container, where Python looks at identity first. That matters for NaN only.
pub fn equal_inside(a: &Value, b: &Value) -> Answer<bool> {
    equal_at(a, b, 0)
}

fn equal_at(a: &Value, b: &Value, depth: u32) -> Answer<bool> {
    use Value as V;
    if depth > DEEPEST {
        return Err(TOO_DEEP);
    }
    Ok(match (a, b) {
        (V::Int(x), V::Int(y)) => x == y,
        (V::Pid(x), V::Pid(y)) => x == y,
        (V::Enum(x), V::Enum(y)) => x == y,
        (V::None, V::None) => true,
        (V::Bool(x), V::Bool(y)) => x == y,
        (V::Bool(_) | V::Int(_), V::Bool(_) | V::Int(_)) => a.as_int() == b.as_int(),
        (V::Float(x), V::Float(y)) if x.is_nan() && y.is_nan() => return Err(NAN),
        (V::Float(_), V::Float(_) | V::Int(_) | V::Bool(_)) | (V::Int(_) | V::Bool(_), V::Float(_)) => {
            compare_numbers(a, b)? == Some(Ordering::Equal)
        }
        (V::Str(x), V::Str(y)) => Rc::ptr_eq(x, y) || x == y,
        (V::Bytes(x), V::Bytes(y)) => x == y,
        (V::Tuple(x), V::Tuple(y)) => Rc::ptr_eq(x, y) || equal_items(x, y, depth)?,
        (V::Tuple(_) | V::Named(_), V::Tuple(_) | V::Named(_)) => {
            let (Some(x), Some(y)) = (a.as_items(), b.as_items()) else { return Ok(false) };
            equal_items(x, y, depth)?
        }
        (V::Record(x), V::Record(y)) => {
            if x.traits.equal {
                x.class == y.class && equal_items(&x.fields, &y.fields, depth)?
            } else {
                Rc::ptr_eq(x, y)
            }
        }
        (V::Object(x), V::Object(y)) => {
            if x.traits.equal {
                x.class == y.class && equal_items(&x.read(), &y.read(), depth)?
            } else {
                Rc::ptr_eq(x, y)
            }
        }
        (V::List(x), V::List(y)) => Rc::ptr_eq(x, y) || equal_items(&x.read(), &y.read(), depth)?,
        (V::Dict(x), V::Dict(y)) => Rc::ptr_eq(x, y) || equal_dicts(x, y, depth)?,
        (V::Set(x), V::Set(y)) => Rc::ptr_eq(x, y) || equal_tables(&x.read(), &y.read())?,
        (V::FrozenSet(x), V::FrozenSet(y)) => Rc::ptr_eq(x, y) || equal_tables(x, y)?,
        (V::Set(x), V::FrozenSet(y)) | (V::FrozenSet(y), V::Set(x)) => equal_tables(&x.read(), y)?,
        (V::Range(x), V::Range(y)) => {
            let (m, n) = (x.len(), y.len());
            m == n && (m == 0 || x.start == y.start && (m == 1 || x.step == y.step))
        }
        (V::View(x), V::View(y)) => x == y,
        (V::Process, V::Process) => true,
        (V::Monitor(x), V::Monitor(y)) | (V::Shared(x), V::Shared(y)) => x == y,
        (V::DictView(_), _) | (_, V::DictView(_)) => return Err(Bail(&"comparison of a dict view")),
        (V::Closure(_) | V::Function(_) | V::Builtin(_) | V::Method(_), _)
        | (_, V::Closure(_) | V::Function(_) | V::Builtin(_) | V::Method(_)) => {
            return Err(Bail(&"comparison of a function"));
        }
        (V::Unset, _) | (_, V::Unset) => return Err(Bail(&"a variable without a value")),
        (V::Derived(_), _) | (_, V::Derived(_)) => equal_at(a.plain(), b.plain(), depth)?,
        (V::Flag(x), V::Flag(y)) => x == y,
        (V::Deque(x), V::Deque(y)) => Rc::ptr_eq(x, y) || equal_each(x.read().iter(), y.read().iter(), depth)?,
        (V::Fraction(x), V::Fraction(y)) => x == y,
        (V::Fraction(_), V::Float(_)) | (V::Float(_), V::Fraction(_)) => return Err(FLOAT),
        (V::Fraction(x), other) | (other, V::Fraction(x)) => {
            other.as_int().is_some_and(|number| x.denominator == 1 && x.numerator == number)
        }
        _ => false,
    })
}

fn equal_items(a: &[Value], b: &[Value], depth: u32) -> Answer<bool> {
    equal_each(a.iter(), b.iter(), depth)
}

fn equal_each<'v>(
    a: impl ExactSizeIterator<Item = &'v Value>,
    b: impl ExactSizeIterator<Item = &'v Value>,
    depth: u32,
) -> Answer<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (x, y) in a.zip(b) {
        if !equal_at(x, y, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Two counters are equal if no count differs; a missing one is zero. Two ordered dicts have the same order too.
fn equal_dicts(a: &Dict, b: &Dict, depth: u32) -> Answer<bool> {
    match (a.flavour, b.flavour) {
        (Flavour::Counter, Flavour::Counter) => every_count(a, b, |x, y| equal_at(x, y, depth + 1)),
        (Flavour::Ordered, Flavour::Ordered) => {
            let (a, b) = (a.read(), b.read());
            Ok(equal_maps(&a, &b, depth)? && equal_items(a.keys(), b.keys(), depth)?)
        }
        _ => equal_maps(&a.read(), &b.read(), depth),
    }
}

/// Whether all counts of two counters are so. The keys are compared in the order of Python.
fn every_count(a: &Dict, b: &Dict, test: impl Fn(&Value, &Value) -> Answer<bool>) -> Answer<bool> {
    let (a, b) = (a.read(), b.read());
    for key in a.keys().iter().chain(b.keys()) {
        let count = |map: &Map| Ok(map.get(key)?.cloned().unwrap_or(Value::Int(0)));
        if !test(&count(&a)?, &count(&b)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// As Python orders counters: all counts at most, and not equal.
fn ordered_counters(a: &Dict, b: &Dict, relation: Relation, depth: u32) -> Answer<bool> {
    let at_most = |x: &Value, y: &Value| ordered_at(x, y, Relation::LessOrEqual, depth + 1);
    match relation {
        Relation::LessOrEqual => every_count(a, b, at_most),
        Relation::GreaterOrEqual => every_count(a, b, |x, y| ordered_at(x, y, Relation::GreaterOrEqual, depth + 1)),
        Relation::Less => Ok(every_count(a, b, at_most)? && !equal_dicts(a, b, depth)?),
        Relation::Greater => {
            let at_least = |x: &Value, y: &Value| ordered_at(x, y, Relation::GreaterOrEqual, depth + 1);
            Ok(every_count(a, b, at_least)? && !equal_dicts(a, b, depth)?)
        }
    }
}

/// The order of a fraction or an integer.
fn compare_fractions(a: &Value, b: &Value) -> Option<Ordering> {
    let (a, b) = (Fraction::of(a)?, Fraction::of(b)?);
    let left = i128::from(a.numerator) * i128::from(b.denominator);
    Some(left.cmp(&(i128::from(b.numerator) * i128::from(a.denominator))))
}

fn equal_tables(a: &Table, b: &Table) -> Answer<bool> {
    Ok(a.len() == b.len() && is_subset(a, b)?)
}

fn equal_maps(a: &Map, b: &Map, depth: u32) -> Answer<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (key, value) in a.keys().iter().zip(a.values()) {
        match b.get(key)? {
            Some(other) if equal_at(value, other, depth + 1)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

pub fn is_subset(a: &Table, b: &Table) -> Answer<bool> {
    for key in a.keys() {
        if !b.contains(key)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether equal values are the same in all that a program can see: 1 and True are not.
pub fn identical(a: &Value, b: &Value) -> bool {
    use Value as V;
    let all = |x: &[Value], y: &[Value]| x.len() == y.len() && x.iter().zip(y).all(|(x, y)| identical(x, y));
    match (a, b) {
        (V::Float(x), V::Float(y)) => x.to_bits() == y.to_bits(),
        (V::Tuple(x), V::Tuple(y)) => Rc::ptr_eq(x, y) || all(x, y),
        (V::Named(x), V::Named(y)) | (V::Record(x), V::Record(y)) => {
            Rc::ptr_eq(x, y)
                || x.class == y.class && x.traits.equal && x.sender == y.sender && all(&x.fields, &y.fields)
        }
        (V::FrozenSet(x), V::FrozenSet(y)) => {
            // Their elements in one order: most often they were made alike.
            Rc::ptr_eq(x, y) || all(x.keys(), y.keys())
        }
        (V::Shared(x), V::Shared(y)) => x == y,
        (V::Derived(x), V::Derived(y)) => x.class == y.class && identical(&x.content, &y.content),
        (V::Flag(x), V::Flag(y)) => x == y,
        (V::Fraction(x), V::Fraction(y)) => x == y,
        (V::Int(_) | V::Bool(_) | V::None | V::Str(_) | V::Bytes(_) | V::Pid(_) | V::Enum(_) | V::View(_), _) => {
            std::mem::discriminant(a) == std::mem::discriminant(b) && equal(a, b).unwrap_or(false)
        }
        _ => false,
    }
}

/// The order of two numbers; none if one is NaN.
fn compare_numbers(a: &Value, b: &Value) -> Answer<Option<Ordering>> {
    let as_float = |v: &Value| match v {
        Value::Float(x) => Ok(*x),
        _ => match v.as_int() {
            Some(i) if i.abs() <= EXACT => Ok(i as f64),
            _ => Err(Bail(&"a large integer is compared with a float")),
        },
    };
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => Ok(Some(x.cmp(&y))),
        _ => Ok(as_float(a)?.partial_cmp(&as_float(b)?)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    pub fn holds(self, ordering: Ordering) -> bool {
        match self {
            Relation::Less => ordering.is_lt(),
            Relation::LessOrEqual => ordering.is_le(),
            Relation::Greater => ordering.is_gt(),
            Relation::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// Python's `a < b` and so on.
pub fn ordered(a: &Value, b: &Value, relation: Relation) -> Answer<bool> {
    ordered_at(a, b, relation, 0)
}

fn ordered_at(a: &Value, b: &Value, relation: Relation, depth: u32) -> Answer<bool> {
    use Value as V;
    if depth > DEEPEST {
        return Err(TOO_DEEP);
    }
    Ok(match (a, b) {
        (V::Int(x), V::Int(y)) => relation.holds(x.cmp(y)),
        (V::Int(_) | V::Bool(_) | V::Float(_), V::Int(_) | V::Bool(_) | V::Float(_)) => {
            compare_numbers(a, b)?.is_some_and(|ordering| relation.holds(ordering))
        }
        (V::Str(x), V::Str(y)) => relation.holds(x.cmp(y)),
        (V::Bytes(x), V::Bytes(y)) => relation.holds(x.cmp(y)),
        (V::Pid(x), V::Pid(y)) => relation.holds(x.cmp(y)),
        (V::Tuple(_) | V::Named(_), V::Tuple(_) | V::Named(_)) => {
            let (Some(x), Some(y)) = (a.as_items(), b.as_items()) else { return Err(UNORDERED) };
            ordered_items(x, y, relation, depth)?
        }
        (V::List(x), V::List(y)) => ordered_items(&x.read(), &y.read(), relation, depth)?,
        (V::Record(x), V::Record(y)) if x.class == y.class && x.traits.ordered => {
            ordered_items(&x.fields, &y.fields, relation, depth)?
        }
        (V::Object(x), V::Object(y)) if x.class == y.class && x.traits.ordered => {
            ordered_items(&x.read(), &y.read(), relation, depth)?
        }
        (V::Set(x), V::Set(y)) => included(&x.read(), &y.read(), relation)?,
        (V::Set(x), V::FrozenSet(y)) => included(&x.read(), y, relation)?,
        (V::FrozenSet(x), V::Set(y)) => included(x, &y.read(), relation)?,
        (V::FrozenSet(x), V::FrozenSet(y)) => included(x, y, relation)?,
        (V::Derived(_), _) | (_, V::Derived(_)) => ordered_at(a.plain(), b.plain(), relation, depth)?,
        (V::Deque(x), V::Deque(y)) => ordered_each(x.read().iter(), y.read().iter(), relation, depth)?,
        (V::Dict(x), V::Dict(y)) if x.flavour == Flavour::Counter && y.flavour == Flavour::Counter => {
            ordered_counters(x, y, relation, depth)?
        }
        (V::Fraction(_), V::Float(_)) | (V::Float(_), V::Fraction(_)) => return Err(FLOAT),
        (V::Fraction(_), _) | (_, V::Fraction(_)) => {
            compare_fractions(a, b).map(|ordering| relation.holds(ordering)).ok_or(UNORDERED)?
        }
        _ => return Err(UNORDERED),
    })
}

fn ordered_items(a: &[Value], b: &[Value], relation: Relation, depth: u32) -> Answer<bool> {
    ordered_each(a.iter(), b.iter(), relation, depth)
}

fn ordered_each<'v>(
    a: impl ExactSizeIterator<Item = &'v Value>,
    b: impl ExactSizeIterator<Item = &'v Value>,
    relation: Relation,
    depth: u32,
) -> Answer<bool> {
    let lengths = a.len().cmp(&b.len());
    for (x, y) in a.zip(b) {
        if !equal_at(x, y, depth + 1)? {
            return ordered_at(x, y, relation, depth + 1);
        }
    }
    Ok(relation.holds(lengths))
}

fn included(a: &Table, b: &Table, relation: Relation) -> Answer<bool> {
    match relation {
        Relation::LessOrEqual => is_subset(a, b),
        Relation::Less => Ok(a.len() < b.len() && is_subset(a, b)?),
        Relation::GreaterOrEqual => is_subset(b, a),
        Relation::Greater => Ok(b.len() < a.len() && is_subset(b, a)?),
    }
}

/// Whether both values belong to one total order, in which only identical values are equal up to 1 == True == 1.0.
pub fn same_order(a: &Value, b: &Value) -> bool {
    use Value as V;
    let number = |v: &Value| matches!(v, V::Int(_) | V::Bool(_)) || matches!(v, V::Float(x) if !x.is_nan());
    match (a, b) {
        (V::Str(_), V::Str(_)) | (V::Pid(_), V::Pid(_)) => true,
        (V::Tuple(_) | V::Named(_), V::Tuple(_) | V::Named(_)) => match (a.as_items(), b.as_items()) {
            (Some(x), Some(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_order(x, y)),
            _ => false,
        },
        _ => number(a) && number(b),
    }
}

/// Bail on a value that Python cannot hash.
pub fn require_hashable(value: &Value) -> Answer<()> {
    use Value as V;
    match value {
        V::Tuple(items) => items.iter().try_for_each(require_hashable),
        V::Named(record) => record.fields.iter().try_for_each(require_hashable),
        V::Record(record) => {
            if !record.traits.hashable {
                return Err(UNHASHABLE);
            }
            if record.traits.equal { record.fields.iter().try_for_each(require_hashable) } else { Ok(()) }
        }
        V::Object(object) if object.traits.hashable && !object.traits.equal => Ok(()),
        V::Object(_) | V::List(_) | V::Dict(_) | V::Set(_) | V::Deque(_) | V::DictView(_) | V::Unset => Err(UNHASHABLE),
        V::Derived(derived) => require_hashable(&derived.content),
        V::Range(_) | V::Closure(_) | V::Function(_) | V::Builtin(_) | V::Method(_) | V::Process | V::Monitor(_) => {
            Err(Bail(&"hash of an unusual value"))
        }
        _ => Ok(()),
    }
}

/// A hash that equal values share.
pub fn hash(value: &Value) -> Answer<u64> {
    let mut state = FxHasher::default();
    hash_into(value, &mut state)?;
    Ok(state.finish())
}

fn hash_into(value: &Value, state: &mut FxHasher) -> Answer<()> {
    use Value as V;
    match value {
        V::None => state.write_u8(1),
        V::Int(_) | V::Bool(_) => state.write_i64(value.as_int().unwrap_or_default()),
        V::Float(x) if x.fract() == 0.0 && x.abs() < 9.0e18 => state.write_i64(*x as i64),
        V::Float(x) => state.write_u64(x.to_bits()),
        V::Str(text) => state.write(text.as_bytes()),
        V::Bytes(bytes) => state.write(bytes),
        V::Pid(pid) => state.write_u64(u64::from(pid.role) << 32 | u64::from(pid.index)),
        V::Enum(member) => state.write_u64(u64::from(member.class) << 32 | u64::from(member.member) | 1 << 63),
        V::Tuple(items) => hash_items(items, state)?,
        V::Named(record) => hash_items(&record.fields, state)?,
        V::Record(record) => hash_record(record, state)?,
        V::FrozenSet(table) => {
            let mut sum = 0u64;
            for key in table.keys() {
                sum = sum.wrapping_add(hash(key)?);
            }
            state.write_u64(sum);
        }
        V::View(position) | V::Shared(position) => state.write_u16(*position),
        V::Object(object) => state.write_u32(object.class),
        V::Derived(derived) => return hash_into(&derived.content, state),
        V::Flag(flag) => state.write_u64(u64::from(flag.class) << 32 | u64::from(flag.member)),
        // As the integer or the float that it is equal to, if there is one.
        V::Fraction(fraction) if fraction.denominator == 1 => state.write_i64(fraction.numerator),
        V::Fraction(fraction) => state.write_u64(fraction.as_float().ok_or(FLOAT)?.to_bits()),
        _ => return Err(UNHASHABLE),
    }
    Ok(())
}

fn hash_items(items: &Items, state: &mut FxHasher) -> Answer<()> {
    state.write_usize(items.len());
    items.iter().try_for_each(|item| hash_into(item, state))
}

fn hash_record(record: &Record, state: &mut FxHasher) -> Answer<()> {
    state.write_u32(record.class);
    if record.traits.equal { hash_items(&record.fields, state) } else { Ok(()) }
}

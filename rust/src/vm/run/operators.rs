//! Operators on values.

use super::counters;
use super::fractions::{fraction, fractions};
use crate::vm::program::{Binary, Unary};
use crate::vm::value::compare::identical;
use crate::vm::value::library::Flavour;
use crate::vm::value::table::{Map, Table};
use crate::vm::value::{Items, Member, Value};
use crate::vm::{Answer, Bail};
use std::rc::Rc;

pub const OVERFLOW: Bail = Bail(&"an integer beyond 64 bits");
const OPERANDS: Bail = Bail(&"an operator on unusual values");
pub const ZERO: Bail = Bail(&"division by zero");
const LONG: Bail = Bail(&"a long sequence");
/// Longer sequences are left to CPython: they could fill the memory before the machine runs out of fuel.
const LONGEST: usize = 1_000_000;

#[inline(never)]
pub fn unary(operator: Unary, value: &Value) -> Answer<Value> {
    Ok(match (operator, value) {
        (Unary::Not, _) => Value::Bool(!value.truth()),
        (Unary::Negative, Value::Float(x)) => Value::Float(-x),
        (Unary::Positive, Value::Float(x)) => Value::Float(*x),
        (_, Value::Int(_) | Value::Bool(_)) => {
            let number = value.as_int().ok_or(OPERANDS)?;
            Value::Int(match operator {
                Unary::Negative => number.checked_neg().ok_or(OVERFLOW)?,
                Unary::Invert if matches!(value, Value::Bool(_)) => return Err(Bail(&"~ of a bool")),
                Unary::Invert => !number,
                _ => number,
            })
        }
        (_, Value::Derived(derived)) => return unary(operator, &derived.content),
        (Unary::Positive, Value::Fraction(_)) => value.clone(),
        (Unary::Negative, Value::Fraction(number)) => {
            fraction(-i128::from(number.numerator), i128::from(number.denominator))?
        }
        (_, Value::Dict(dict)) if dict.flavour == Flavour::Counter => counters::signed(operator, &dict.read())?,
        _ => return Err(OPERANDS),
    })
}

/// `left operator right`
#[inline(never)]
pub fn binary(operator: Binary, left: &Value, right: &Value) -> Answer<Value> {
    use Value as V;
    match (left, right) {
        (V::Int(a), V::Int(b)) => integers(operator, *a, *b),
        (V::Bool(a), V::Bool(b)) if matches!(operator, Binary::And | Binary::Or | Binary::Xor) => {
            Ok(V::Bool(match operator {
                Binary::And => a & b,
                Binary::Or => a | b,
                _ => a ^ b,
            }))
        }
        (V::Int(_) | V::Bool(_), V::Int(_) | V::Bool(_)) => {
            integers(operator, left.as_int().ok_or(OPERANDS)?, right.as_int().ok_or(OPERANDS)?)
        }
        (V::Float(_), V::Float(_) | V::Int(_) | V::Bool(_)) | (V::Int(_) | V::Bool(_), V::Float(_)) => {
            floats(operator, as_float(left)?, as_float(right)?)
        }
        (V::Set(_) | V::FrozenSet(_), V::Set(_) | V::FrozenSet(_)) => sets(operator, left, right),
        (V::Derived(_), _) | (_, V::Derived(_)) => binary(operator, left.plain(), right.plain()),
        (V::Fraction(_), _) | (_, V::Fraction(_)) => fractions(operator, left, right),
        (V::Flag(a), V::Flag(b)) if a.class == b.class => flags(operator, *a, *b),
        (V::Dict(a), V::Dict(b)) => match (a.flavour, b.flavour, operator) {
            (Flavour::Counter, Flavour::Counter, _) => counters::combined(operator, &a.read(), &b.read()),
            // Which class the result has is another matter if the classes differ.
            (Flavour::Plain, Flavour::Plain, Binary::Or)
            | (Flavour::Ordered, Flavour::Ordered, Binary::Or)
            | (Flavour::Default(_), Flavour::Default(_), Binary::Or) => {
                let mut map: Map = a.read().clone();
                update(&mut map, &b.read())?;
                Ok(V::dict_of(map, a.flavour, false))
            }
            _ => Err(OPERANDS),
        },
        _ => match operator {
            Binary::Add => concatenation(left, right),
            Binary::Multiply => repetition(left, right),
            _ => Err(OPERANDS),
        },
    }
}

/// `left operator= right` of values other than numbers and lists: the object itself, if it can change.
pub fn binary_in_place(operator: Binary, left: Value, right: &Value) -> Answer<Value> {
    match (&left, right, operator) {
        (
            Value::Set(set),
            Value::Set(_) | Value::FrozenSet(_),
            Binary::And | Binary::Or | Binary::Xor | Binary::Subtract,
        ) => {
            let Value::Set(made) = sets(operator, &left, right)? else { return Err(OPERANDS) };
            let made = made.read();
            // Only `^` can change the elements without changing their number.
            let changed = made.len() != set.read().len() || operator == Binary::Xor && right.truth();
            let mut old = set.write()?;
            if changed {
                old.clear();
                made.keys().iter().try_for_each(|key| old.add(key.clone()).map(|_| ()))?;
            }
            drop(old);
            Ok(left)
        }
        (Value::Dict(dict), Value::Dict(other), _)
            if dict.flavour == Flavour::Counter && other.flavour == Flavour::Counter =>
        {
            let other: Map = other.read().clone();
            counters::combine_in_place(operator, dict, &other)?;
            Ok(left)
        }
        (Value::Dict(dict), Value::Dict(other), Binary::Or) if dict.flavour != Flavour::Counter => {
            if !Rc::ptr_eq(dict, other) {
                update(&mut *dict.write()?, &other.read())?;
            } else {
                dict.write()?;
            }
            Ok(left)
        }
        (Value::List(list), Value::Int(_) | Value::Bool(_), Binary::Multiply) => {
            let items = list.read().clone();
            let times = right.as_int().ok_or(OPERANDS)?;
            let repeated = repeated(&items, times)?;
            *list.write()? = repeated;
            Ok(left)
        }
        (Value::List(_) | Value::Set(_) | Value::Dict(_) | Value::Deque(_), _, _) => Err(OPERANDS),
        _ => binary(operator, &left, right),
    }
}

pub fn update(map: &mut Map, other: &Map) -> Answer<()> {
    for (key, value) in other.keys().iter().zip(other.values()) {
        map.set(key.clone(), value.clone())?;
    }
    Ok(())
}

/// `a | b`, `a & b` or `a ^ b` of flags of one class.
fn flags(operator: Binary, a: Member, b: Member) -> Answer<Value> {
    let member = match operator {
        Binary::Or => a.member | b.member,
        Binary::And => a.member & b.member,
        Binary::Xor => a.member ^ b.member,
        _ => return Err(OPERANDS),
    };
    Ok(Value::Flag(Member { class: a.class, member }))
}

fn integers(operator: Binary, a: i64, b: i64) -> Answer<Value> {
    let number = match operator {
        Binary::Add => a.checked_add(b),
        Binary::Subtract => a.checked_sub(b),
        Binary::Multiply => a.checked_mul(b),
        Binary::FloorDivide => Some(floor_divide(a, b)?),
        Binary::Modulo => Some(modulo(a, b)?),
        Binary::And => Some(a & b),
        Binary::Or => Some(a | b),
        Binary::Xor => Some(a ^ b),
        Binary::ShiftLeft => {
            let shift = u32::try_from(b).map_err(|_| OPERANDS)?;
            if a == 0 { Some(0) } else { a.checked_shl(shift).filter(|shifted| shift < 63 && shifted >> shift == a) }
        }
        Binary::ShiftRight => {
            let shift = u32::try_from(b).map_err(|_| OPERANDS)?;
            Some(a >> shift.min(63))
        }
        Binary::Power => a.checked_pow(u32::try_from(b).map_err(|_| OPERANDS)?),
        Binary::Divide => {
            const EXACT: i64 = 1 << 53;
            if b == 0 {
                return Err(ZERO);
            }
            if a.unsigned_abs() > EXACT as u64 || b.unsigned_abs() > EXACT as u64 {
                return Err(Bail(&"division of large integers"));
            }
            return Ok(Value::Float(a as f64 / b as f64));
        }
    };
    number.map(Value::Int).ok_or(OVERFLOW)
}

/// Rounds down, as Python does.
pub fn floor_divide(a: i64, b: i64) -> Answer<i64> {
    if b == 0 {
        return Err(ZERO);
    }
    let quotient = a.checked_div(b).ok_or(OVERFLOW)?;
    Ok(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// Has the sign of the divisor, as in Python.
pub fn modulo(a: i64, b: i64) -> Answer<i64> {
    if b == 0 {
        return Err(ZERO);
    }
    let rest = a.checked_rem(b).unwrap_or(0);
    Ok(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
}

pub fn as_float(value: &Value) -> Answer<f64> {
    match value {
        Value::Float(x) => Ok(*x),
        _ => value.as_int().map(|i| i as f64).ok_or(OPERANDS),
    }
}

fn floats(operator: Binary, a: f64, b: f64) -> Answer<Value> {
    Ok(Value::Float(match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide if b == 0.0 => return Err(ZERO),
        Binary::Divide => a / b,
        Binary::FloorDivide => float_divmod(a, b)?.0,
        Binary::Modulo => float_divmod(a, b)?.1,
        _ => return Err(OPERANDS),
    }))
}

/// As `float_floor_div` and `float_rem` of CPython compute them.
pub fn float_divmod(a: f64, b: f64) -> Answer<(f64, f64)> {
    if b == 0.0 {
        return Err(ZERO);
    }
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest == 0.0 {
        rest = 0.0f64.copysign(b);
    } else if (b < 0.0) != (rest < 0.0) {
        rest += b;
        quotient -= 1.0;
    }
    let floor = if quotient == 0.0 {
        0.0f64.copysign(a / b)
    } else {
        let floor = quotient.floor();
        if quotient - floor > 0.5 { floor + 1.0 } else { floor }
    };
    Ok((floor, rest))
}

/// Bail on a sequence that is too long.
pub fn require_short(length: usize) -> Answer<()> {
    if length > LONGEST { Err(LONG) } else { Ok(()) }
}

fn concatenation(left: &Value, right: &Value) -> Answer<Value> {
    use Value as V;
    Ok(match (left, right) {
        (V::Tuple(_) | V::Named(_), V::Tuple(_) | V::Named(_)) => {
            let (a, b) = (left.as_items().ok_or(OPERANDS)?, right.as_items().ok_or(OPERANDS)?);
            require_short(a.len() + b.len())?;
            let mut items = Items::with_capacity(a.len() + b.len());
            items.extend(a.iter().chain(b.iter()).cloned());
            V::Tuple(Rc::new(items))
        }
        (V::List(a), V::List(b)) => {
            require_short(a.read().len() + b.read().len())?;
            let items = a.read().iter().chain(b.read().iter()).cloned().collect();
            V::list(items)
        }
        (V::Str(a), V::Str(b)) if a.len() + b.len() > LONGEST => return Err(LONG),
        (V::Str(a), V::Str(b)) => V::Str(Rc::new([&***a, &***b].concat().into())),
        (V::Deque(a), V::Deque(b)) => {
            require_short(a.read().len() + b.read().len())?;
            let made = V::deque(a.read().clone(), a.longest, false);
            if let V::Deque(made) = &made {
                b.read().iter().try_for_each(|item| made.append(item.clone()))?;
            }
            made
        }
        (V::Bytes(a), V::Bytes(b)) => V::Bytes(Rc::new([&***a, &***b].concat().into())),
        _ => return Err(OPERANDS),
    })
}

fn repetition(left: &Value, right: &Value) -> Answer<Value> {
    let (sequence, times) = match (left.as_int(), right.as_int()) {
        (None, Some(times)) => (left, times),
        (Some(times), None) => (right, times),
        _ => return Err(OPERANDS),
    };
    Ok(match sequence {
        Value::Tuple(_) | Value::Named(_) => Value::tuple(repeated(sequence.as_items().ok_or(OPERANDS)?, times)?),
        Value::List(list) => Value::list(repeated(&list.read(), times)?),
        Value::Str(text) => {
            let times = usize::try_from(times).unwrap_or(0);
            require_short(text.len().saturating_mul(times))?;
            Value::str(&text.repeat(times))
        }
        _ => return Err(OPERANDS),
    })
}

fn repeated(items: &[Value], times: i64) -> Answer<Vec<Value>> {
    let times = usize::try_from(times).unwrap_or(0);
    require_short(items.len().saturating_mul(times))?;
    let mut out = Vec::with_capacity(items.len() * times);
    for _ in 0..times {
        out.extend_from_slice(items);
    }
    Ok(out)
}

// -- sets ----------------------------------------------------------------------------------------------------------------

/// The elements of a set or frozenset.
pub fn with_table<T>(value: &Value, use_it: impl FnOnce(&Table) -> Answer<T>) -> Answer<T> {
    match value {
        Value::Set(set) => use_it(&set.read()),
        Value::FrozenSet(table) => use_it(table),
        _ => Err(OPERANDS),
    }
}

/// An operator on sets. The result has the type of the left operand.
pub fn sets(operator: Binary, left: &Value, right: &Value) -> Answer<Value> {
    let table = with_table(left, |a| with_table(right, |b| combined(operator, a, b)))?;
    Ok(if matches!(left, Value::Set(_)) { Value::set(table) } else { Value::frozen_set(table) })
}

fn combined(operator: Binary, a: &Table, b: &Table) -> Answer<Table> {
    let mut made = Table::with_capacity(a.len());
    match operator {
        Binary::Or => {
            made = a.clone();
            for key in b.keys() {
                made.add(key.clone())?;
            }
        }
        Binary::And => {
            for key in a.keys() {
                if let Some(place) = b.find(key)? {
                    // CPython takes the element of the smaller set.
                    if !identical(key, &b.keys()[place]) {
                        return Err(Bail(&"intersection of sets with equal but different elements"));
                    }
                    made.add(key.clone())?;
                }
            }
        }
        Binary::Subtract | Binary::Xor => {
            for key in a.keys() {
                if !b.contains(key)? {
                    made.add(key.clone())?;
                }
            }
            if operator == Binary::Xor {
                for key in b.keys() {
                    if !a.contains(key)? {
                        made.add(key.clone())?;
                    }
                }
            }
        }
        _ => return Err(OPERANDS),
    }
    Ok(made)
}

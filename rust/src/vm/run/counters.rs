//! Operators on counters. A count that is missing is zero.

use super::operators::{binary, unary};
use crate::vm::program::{Binary, Unary};
use crate::vm::value::compare::{Relation, ordered};
use crate::vm::value::library::Flavour;
use crate::vm::value::table::Map;
use crate::vm::value::{Dict, Value};
use crate::vm::{Answer, Bail};

const OPERATOR: Bail = Bail(&"an operator on counters");

pub fn count(map: &Map, key: &Value) -> Answer<Value> {
    Ok(map.get(key)?.cloned().unwrap_or(Value::Int(0)))
}

/// Add to a count, or subtract from it.
pub fn change(map: &mut Map, operator: Binary, key: Value, by: &Value) -> Answer<()> {
    let new = binary(operator, &count(map, &key)?, by)?;
    map.set(key, new)
}

fn is_positive(value: &Value) -> Answer<bool> {
    ordered(value, &Value::Int(0), Relation::Greater)
}

/// `a + b`, `a - b`, `a | b` or `a & b`: only positive counts stay.
pub fn combined(operator: Binary, a: &Map, b: &Map) -> Answer<Value> {
    let mut made = Map::default();
    for (key, mine) in a.keys().iter().zip(a.values()) {
        let other = count(b, key)?;
        let new = match operator {
            Binary::Add | Binary::Subtract => binary(operator, mine, &other)?,
            Binary::Or | Binary::And => {
                let less = ordered(mine, &other, Relation::Less)?;
                if less == (operator == Binary::Or) { other } else { mine.clone() }
            }
            _ => return Err(OPERATOR),
        };
        if is_positive(&new)? {
            made.set(key.clone(), new)?;
        }
    }
    for (key, other) in b.keys().iter().zip(b.values()) {
        if operator == Binary::And || a.get(key)?.is_some() {
            continue;
        }
        let new = if operator == Binary::Subtract { unary(Unary::Negative, other)? } else { other.clone() };
        if is_positive(&new)? {
            made.set(key.clone(), new)?;
        }
    }
    Ok(Value::dict_of(made, Flavour::Counter, false))
}

/// `a += b` and so on: only positive counts stay.
pub fn combine_in_place(operator: Binary, dict: &Dict, b: &Map) -> Answer<()> {
    let mut map = dict.write()?;
    match operator {
        Binary::Add | Binary::Subtract => {
            for (key, by) in b.keys().iter().zip(b.values()) {
                change(&mut map, operator, key.clone(), by)?;
            }
        }
        Binary::Or => {
            for (key, other) in b.keys().iter().zip(b.values()) {
                if ordered(other, &count(&map, key)?, Relation::Greater)? {
                    map.set(key.clone(), other.clone())?;
                }
            }
        }
        Binary::And => {
            for key in map.keys().to_vec() {
                let other = count(b, &key)?;
                if ordered(&other, &count(&map, &key)?, Relation::Less)? {
                    map.set(key, other)?;
                }
            }
        }
        _ => return Err(OPERATOR),
    }
    for key in map.keys().to_vec() {
        if !is_positive(&count(&map, &key)?)? {
            map.remove(&key)?;
        }
    }
    Ok(())
}

/// `+a` or `-a`: only positive counts stay.
pub fn signed(operator: Unary, a: &Map) -> Answer<Value> {
    let mut made = Map::default();
    for (key, value) in a.keys().iter().zip(a.values()) {
        let new = match operator {
            Unary::Positive => value.clone(),
            Unary::Negative => unary(Unary::Negative, value)?,
            _ => return Err(OPERATOR),
        };
        if is_positive(&new)? {
            made.set(key.clone(), new)?;
        }
    }
    Ok(Value::dict_of(made, Flavour::Counter, false))
}

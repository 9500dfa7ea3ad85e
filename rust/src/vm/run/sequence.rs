//! Subscripts, slices and membership.

use super::operators::require_short;
use crate::vm::value::compare::equal_inside;
use crate::vm::value::library::Flavour;
use crate::vm::value::{Dict, Items, Range, Value, ViewKind};
use crate::vm::{Answer, Bail};
use std::rc::Rc;

const INDEX: Bail = Bail(&"an index out of range");
const SUBSCRIPT: Bail = Bail(&"a subscript of an unusual value");

/// The bounds of a slice, evaluated.
pub type Bounds = [Option<i64>; 3];

/// The place that an index means.
fn place(index: &Value, length: usize) -> Answer<usize> {
    let index = index.as_int().ok_or(SUBSCRIPT)?;
    let from_end = if index < 0 { index + length as i64 } else { index };
    usize::try_from(from_end).ok().filter(|place| *place < length).ok_or(INDEX)
}

/// `value[index]`
#[inline(never)]
pub fn subscript(value: &Value, index: &Value) -> Answer<Value> {
    Ok(match value {
        Value::Tuple(items) => items[place(index, items.len())?].clone(),
        Value::List(list) => {
            let items = list.read();
            items[place(index, items.len())?].clone()
        }
        Value::Dict(dict) => {
            let found = dict.read().get(index)?.cloned();
            match found {
                Some(value) => value,
                None => return missing(dict, index),
            }
        }
        Value::Named(record) => record.fields[place(index, record.fields.len())?].clone(),
        Value::Range(range) => Value::Int(range.at(place(index, range.len())?)),
        Value::Str(text) if text.is_ascii() => {
            let at = place(index, text.len())?;
            Value::str(&text[at..=at])
        }
        Value::Str(text) => {
            let characters: Vec<char> = text.chars().collect();
            Value::str(&characters[place(index, characters.len())?].to_string())
        }
        Value::Bytes(bytes) => Value::Int(i64::from(bytes[place(index, bytes.len())?])),
        Value::Deque(deque) => {
            let items = deque.read();
            items[place(index, items.len())?].clone()
        }
        Value::Derived(derived) => return subscript(&derived.content, index),
        _ => return Err(SUBSCRIPT),
    })
}

/// What a dict has for a missing key: a counter has zero, a `defaultdict` makes a value and keeps it.
fn missing(dict: &Dict, key: &Value) -> Answer<Value> {
    match dict.flavour {
        Flavour::Counter => Ok(Value::Int(0)),
        Flavour::Default(Some(factory)) => {
            let value = factory.make()?;
            dict.write()?.set(key.clone(), value.clone())?;
            Ok(value)
        }
        _ => Err(Bail(&"a key that is missing")),
    }
}

/// Start, step and number of the items of a slice, as `slice.indices` has them.
fn indices(bounds: Bounds, length: usize) -> Answer<(i64, i64, usize)> {
    let length = length as i64;
    let step = bounds[2].unwrap_or(1);
    if step == 0 || step == i64::MIN {
        return Err(Bail(&"a slice with step zero"));
    }
    let (lowest, highest) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let clip = |bound: Option<i64>, default: i64| match bound {
        None => default,
        Some(bound) if bound < 0 => bound.saturating_add(length).max(lowest),
        Some(bound) => bound.min(highest),
    };
    let (first, last) = if step > 0 { (lowest, highest) } else { (highest, lowest) };
    let (start, stop) = (clip(bounds[0], first), clip(bounds[1], last));
    Ok((start, step, Range { start, stop, step }.len()))
}

fn sliced_items<'v>(items: &'v [Value], bounds: Bounds) -> Answer<impl Iterator<Item = Value> + 'v> {
    let (start, step, count) = indices(bounds, items.len())?;
    Ok((0..count).map(move |i| items[(start + step * i as i64) as usize].clone()))
}

/// `value[lower:upper:step]`
#[inline(never)]
pub fn slice(value: &Value, bounds: Bounds) -> Answer<Value> {
    Ok(match value {
        Value::Tuple(items) => {
            let (start, step, count) = indices(bounds, items.len())?;
            if (start, step, count) == (0, 1, items.len()) {
                return Ok(value.clone());
            }
            Value::Tuple(Rc::new(sliced_items(items, bounds)?.collect::<Items>()))
        }
        Value::Named(record) => Value::tuple(sliced_items(&record.fields, bounds)?),
        Value::List(list) => Value::list(sliced_items(&list.read(), bounds)?.collect()),
        Value::Str(text) => {
            let characters: Vec<char> = text.chars().collect();
            let (start, step, count) = indices(bounds, characters.len())?;
            let taken: String = (0..count).map(|i| characters[(start + step * i as i64) as usize]).collect();
            Value::str(&taken)
        }
        Value::Range(range) => {
            let (start, step, count) = indices(bounds, range.len())?;
            let at = |i: i64| range.step.checked_mul(i).and_then(|offset| range.start.checked_add(offset)).ok_or(INDEX);
            let (first, step) = (at(start)?, range.step.checked_mul(step).ok_or(INDEX)?);
            let stop = step.checked_mul(count as i64).and_then(|offset| first.checked_add(offset)).ok_or(INDEX)?;
            Value::Range(Rc::new(Range { start: first, stop, step }))
        }
        Value::Derived(derived) => match &derived.content {
            // A slice of all items is a plain tuple too.
            Value::Tuple(items) => Value::tuple(sliced_items(items, bounds)?),
            content => return slice(content, bounds),
        },
        _ => return Err(SUBSCRIPT),
    })
}

/// `container[index] = value`
pub fn set_item(container: &Value, index: Value, value: Value) -> Answer<()> {
    match container {
        Value::List(list) => {
            let mut items = list.write()?;
            let at = place(&index, items.len())?;
            items[at] = value;
            Ok(())
        }
        Value::Dict(dict) => dict.write()?.set(index, value),
        Value::Deque(deque) => {
            let mut items = deque.write_items()?;
            let at = place(&index, items.len())?;
            items[at] = value;
            Ok(())
        }
        _ => Err(SUBSCRIPT),
    }
}

/// `container[lower:upper] = items`
pub fn assign_slice(container: &Value, bounds: Bounds, new: Vec<Value>) -> Answer<()> {
    let Value::List(list) = container else { return Err(SUBSCRIPT) };
    let mut items = list.write()?;
    let (start, step, count) = indices(bounds, items.len())?;
    if step != 1 {
        return Err(Bail(&"assignment to a slice with a step"));
    }
    require_short(items.len() + new.len())?;
    let start = start as usize;
    items.splice(start..start + count, new);
    Ok(())
}

/// `del container[index]`
pub fn delete_item(container: &Value, index: &Value) -> Answer<()> {
    match container {
        Value::List(list) => {
            let mut items = list.write()?;
            let at = place(index, items.len())?;
            items.remove(at);
        }
        Value::Dict(dict) => {
            let removed = dict.write()?.remove(index)?;
            if removed.is_none() && dict.flavour != Flavour::Counter {
                return Err(Bail(&"a key that is missing"));
            }
        }
        Value::Deque(deque) => {
            let mut items = deque.write()?;
            let at = place(index, items.len())?;
            items.remove(at);
        }
        _ => return Err(SUBSCRIPT),
    }
    Ok(())
}

pub fn delete_slice(container: &Value, bounds: Bounds) -> Answer<()> {
    let Value::List(list) = container else { return Err(SUBSCRIPT) };
    let mut items = list.write()?;
    let (start, step, count) = indices(bounds, items.len())?;
    let mut gone: Vec<usize> = (0..count).map(|i| (start + step * i as i64) as usize).collect();
    gone.sort_unstable();
    gone.into_iter().rev().for_each(|at| {
        items.remove(at);
    });
    Ok(())
}

/// `element in container`
pub fn contains(container: &Value, element: &Value) -> Answer<bool> {
    let among = |items: &[Value]| is_among(items.iter(), element);
    match container {
        Value::Tuple(items) => among(items),
        Value::Named(record) => among(&record.fields),
        Value::List(list) => among(&list.read()),
        Value::Set(set) => set.read().contains(element),
        Value::FrozenSet(table) => table.contains(element),
        Value::Dict(dict) => dict.read().table().contains(element),
        Value::Deque(deque) => is_among(deque.read().iter(), element),
        Value::Derived(derived) => contains(&derived.content, element),
        Value::Flag(flags) => match element {
            Value::Flag(part) if part.class == flags.class => Ok(part.member & flags.member == part.member),
            _ => Err(SUBSCRIPT),
        },
        Value::Range(range) => match element.plain() {
            Value::Int(_) | Value::Bool(_) => Ok(element.as_int().is_some_and(|number| range.contains(number))),
            Value::Float(_) | Value::Fraction(_) => Err(SUBSCRIPT),
            _ => Ok(false),
        },
        Value::Str(text) => match element.plain() {
            Value::Str(part) => Ok(text.contains(&***part)),
            _ => Err(SUBSCRIPT),
        },
        Value::DictView(view) => {
            let map = view.dict.read();
            match view.kind {
                ViewKind::Keys => map.table().contains(element),
                ViewKind::Values => among(map.values()),
                ViewKind::Items => match element {
                    Value::Tuple(pair) if pair.len() == 2 => match map.get(&pair[0])? {
                        Some(value) => equal_inside(value, &pair[1]),
                        None => Ok(false),
                    },
                    _ => Err(SUBSCRIPT),
                },
            }
        }
        _ => Err(Bail(&"`in` of an unusual value")),
    }
}

fn is_among<'v>(items: impl Iterator<Item = &'v Value>, element: &Value) -> Answer<bool> {
    for item in items {
        if equal_inside(item, element)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `len(value)`
pub fn length(value: &Value) -> Answer<usize> {
    Ok(match value {
        Value::Tuple(items) => items.len(),
        Value::Named(record) => record.fields.len(),
        Value::List(list) => list.read().len(),
        Value::Dict(dict) => dict.read().len(),
        Value::Set(set) => set.read().len(),
        Value::FrozenSet(table) => table.len(),
        Value::Str(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Range(range) => range.len(),
        Value::DictView(view) => view.dict.read().len(),
        Value::Deque(deque) => deque.read().len(),
        Value::Derived(derived) => length(&derived.content)?,
        Value::Flag(flags) => flags.member.count_ones() as usize,
        _ => return Err(Bail(&"len of an unusual value")),
    })
}

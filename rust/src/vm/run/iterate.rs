//! All that loops. A loop hands each value to a function, so that a generator runs together with its consumer.
//!
//! A set iterates in the order of the run, and the run notes its size, unless the consumer says that the order cannot
//! matter (`ordered` is false).

use super::{Frame, Go, Run, Visit};
use crate::vm::library::Method;
use crate::vm::program::{Comprehension, Expression, MethodCall};
use crate::vm::value::library::Deque;
use crate::vm::value::table::Table;
use crate::vm::value::{Dict, Items, List, Member, Range, Record, Set, Value, ViewKind};
use crate::vm::{Answer, Bail};
use std::rc::Rc;

const CHANGED: Bail = Bail(&"a dict, set or deque that changes while it is iterated");

/// Iterates a value.
pub enum Cursor {
    Items(Rc<Items>, usize),
    Named(Rc<Record>, usize),
    List(Rc<List>, usize),
    Deque(Rc<Deque>, usize, u32),
    Dict(Rc<Dict>, ViewKind, usize, u32),
    Set(Rc<Set>, usize, usize, u32),
    Frozen(Rc<Table>, usize, usize),
    Range(Range, usize),
    Collected(std::vec::IntoIter<Value>),
}

/// The element at a place of a set, in an order.
fn permuted(table: &Table, order: usize, place: usize) -> Option<Value> {
    let keys = table.keys();
    let count = keys.len();
    if place >= count {
        return None;
    }
    Some(match order {
        0 => keys[place].clone(),
        _ if count <= 2 => keys[count - 1 - place].clone(),
        // Backwards, and rotated: as many orders as elements bring each element to each place.
        _ => keys[count - 1 - (place + order - 1) % count].clone(),
    })
}

impl Cursor {
    pub fn next(&mut self) -> Answer<Option<Value>> {
        Ok(match self {
            Cursor::Items(items, place) => {
                *place += 1;
                items.get(*place - 1).cloned()
            }
            Cursor::Named(record, place) => {
                *place += 1;
                record.fields.get(*place - 1).cloned()
            }
            Cursor::List(list, place) => {
                // A list that grows or shrinks meanwhile is iterated by index, as in Python.
                let value = list.read().get(*place).cloned();
                *place = if value.is_some() { *place + 1 } else { usize::MAX };
                value
            }
            Cursor::Deque(deque, place, version) => {
                if deque.version() != *version {
                    return Err(CHANGED);
                }
                *place += 1;
                deque.read().get(*place - 1).cloned()
            }
            Cursor::Dict(dict, kind, place, version) => {
                let map = dict.read();
                if map.table().version() != *version {
                    return Err(CHANGED);
                }
                let at = *place;
                *place += 1;
                if at >= map.len() {
                    return Ok(None);
                }
                Some(match kind {
                    ViewKind::Keys => map.keys()[at].clone(),
                    ViewKind::Values => map.values()[at].clone(),
                    ViewKind::Items => Value::pair(map.keys()[at].clone(), map.values()[at].clone()),
                })
            }
            Cursor::Set(set, order, place, version) => {
                let table = set.read();
                if table.version() != *version {
                    return Err(CHANGED);
                }
                *place += 1;
                permuted(&table, *order, *place - 1)
            }
            Cursor::Frozen(table, order, place) => {
                *place += 1;
                permuted(table, *order, *place - 1)
            }
            Cursor::Range(range, place) => {
                if *place >= range.len() {
                    return Ok(None);
                }
                *place += 1;
                Some(Value::Int(range.at(*place - 1)))
            }
            Cursor::Collected(items) => items.next(),
        })
    }
}

impl<'a> Run<'a> {
    /// An iterator over a value. `ordered`: the order of a set may matter.
    pub fn cursor(&mut self, value: &Value, ordered: bool) -> Answer<Cursor> {
        let mut order_of = |size: usize| {
            if !ordered {
                self.unordered_set = self.unordered_set.max(size);
                return self.order; // it may matter after all: see `note_unclear`
            }
            self.note_set(size);
            self.order
        };
        Ok(match value {
            Value::Tuple(items) => Cursor::Items(items.clone(), 0),
            Value::Named(record) => Cursor::Named(record.clone(), 0),
            Value::List(list) => Cursor::List(list.clone(), 0),
            Value::Deque(deque) => Cursor::Deque(deque.clone(), 0, deque.version()),
            Value::Derived(derived) => return self.cursor(&derived.content, ordered),
            Value::Flag(flags) => {
                // The members of one bit, in the order of their definition.
                let all = self.program.classes[flags.class as usize].flags.iter().map(|(_, member)| *member);
                let single = all.filter(|member| member.is_power_of_two() && member & flags.member != 0);
                let members: Vec<Value> =
                    single.map(|member| Value::Flag(Member { class: flags.class, member })).collect();
                Cursor::Collected(members.into_iter())
            }
            Value::Dict(dict) => {
                let version = dict.read().table().version();
                Cursor::Dict(dict.clone(), ViewKind::Keys, 0, version)
            }
            Value::DictView(view) => {
                let version = view.dict.read().table().version();
                Cursor::Dict(view.dict.clone(), view.kind, 0, version)
            }
            Value::Set(set) => {
                let (size, version) = (set.read().len(), set.read().version());
                Cursor::Set(set.clone(), order_of(size), 0, version)
            }
            Value::FrozenSet(table) => Cursor::Frozen(table.clone(), order_of(table.len()), 0),
            Value::Range(range) => Cursor::Range(**range, 0),
            Value::Str(text) => {
                let characters: Vec<Value> = text.chars().map(|c| Value::str(c.encode_utf8(&mut [0; 4]))).collect();
                Cursor::Collected(characters.into_iter())
            }
            Value::Bytes(bytes) => {
                let numbers: Vec<Value> = bytes.iter().map(|byte| Value::Int(i64::from(*byte))).collect();
                Cursor::Collected(numbers.into_iter())
            }
            _ => return Err(Bail(&"iteration of an unusual value")),
        })
    }

    pub fn iterate_value(&mut self, value: &Value, ordered: bool, visit: &mut Visit<'_, 'a>) -> Answer<Go> {
        let cursor = self.cursor(value, ordered)?;
        self.drain(cursor, visit)
    }

    pub fn drain(&mut self, mut cursor: Cursor, visit: &mut Visit<'_, 'a>) -> Answer<Go> {
        while let Some(value) = cursor.next()? {
            self.burn()?;
            if visit(self, value)? == Go::Stop {
                return Ok(Go::Stop);
            }
        }
        Ok(Go::On)
    }

    /// Iterate an expression. A generator, or a function such as `map`, is not evaluated before the values are needed.
    pub fn iterate(
        &mut self,
        iterable: &'a Expression,
        frame: Frame,
        ordered: bool,
        visit: &mut Visit<'_, 'a>,
    ) -> Answer<Go> {
        match iterable {
            Expression::Generator(inner) => self.clauses(inner, 0, frame, ordered, &mut |run| {
                let value = run.evaluate(&inner.element, frame)?;
                visit(run, value)
            }),
            Expression::CallBuiltin(call) if call.builtin.is_lazy() => {
                let (sources, options) = self.sources(call, frame)?;
                self.iterate_lazy(call.builtin, &sources, &options, ordered || !call.pure, visit)
            }
            Expression::CallMethod(call) => match self.dict_view(call, frame)? {
                Ok((dict, kind)) => {
                    let version = dict.read().table().version();
                    self.drain(Cursor::Dict(dict, kind, 0, version), visit)
                }
                Err(value) => self.iterate_value(&value, ordered, visit),
            },
            _ => {
                let value = self.evaluate(iterable, frame)?;
                self.iterate_value(&value, ordered, visit)
            }
        }
    }

    /// `dict.items()` and so on without a value for the view; else the value of the call.
    fn dict_view(&mut self, call: &'a MethodCall, frame: Frame) -> Answer<Result<(Rc<Dict>, ViewKind), Value>> {
        let kind = match call.method {
            Some(Method::Items) => ViewKind::Items,
            Some(Method::Keys) => ViewKind::Keys,
            Some(Method::Values) => ViewKind::Values,
            _ => return Ok(Err(self.method_call(call, frame)?)),
        };
        match self.evaluate(&call.value, frame)? {
            Value::Dict(dict) if call.arguments.is_empty() => Ok(Ok((dict, kind))),
            value => Ok(Err(self.method_call_on(value, call, frame)?)),
        }
    }

    /// The clauses of a comprehension from one on; `each` evaluates its element.
    pub(super) fn clauses(
        &mut self,
        inner: &'a Comprehension,
        at: usize,
        frame: Frame,
        ordered: bool,
        each: &mut dyn FnMut(&mut Run<'a>) -> Answer<Go>,
    ) -> Answer<Go> {
        let Some(clause) = inner.clauses.get(at) else { return each(self) };
        self.iterate(&clause.iterable, frame, ordered, &mut |run, value| {
            run.assign(&clause.target, value, frame)?;
            for condition in &clause.conditions {
                if !run.test(condition, frame)? {
                    return Ok(Go::On);
                }
            }
            if at + 1 == inner.clauses.len() { each(run) } else { run.clauses(inner, at + 1, frame, ordered, each) }
        })
    }

    /// The values of an iterable.
    pub fn items_of(&mut self, value: &Value) -> Answer<Vec<Value>> {
        match value {
            Value::List(list) => Ok(list.read().clone()),
            Value::Tuple(items) => Ok(items.to_vec()),
            _ => {
                let mut cursor = self.cursor(value, true)?;
                let mut items = Vec::new();
                while let Some(item) = cursor.next()? {
                    self.burn()?;
                    items.push(item);
                }
                Ok(items)
            }
        }
    }
}

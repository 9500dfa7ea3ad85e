//! Displays, comprehensions and f-strings.

use super::{Frame, Go, Run};
use crate::vm::program::{Comprehension, Conversion, Expression};
use crate::vm::value::table::{Map, Table};
use crate::vm::value::text::{write_repr, write_str};
use crate::vm::value::{Items, Value};
use crate::vm::{Answer, Bail};

impl<'a> Run<'a> {
    /// The values of a display or of the arguments of a call.
    pub fn display(&mut self, items: &'a [Expression], frame: Frame) -> Answer<Items> {
        let mut found = Items::with_capacity(items.len());
        for item in items {
            if let Expression::Starred(iterable) = item {
                self.iterate(iterable, frame, true, &mut |_, value| {
                    found.push(value);
                    Ok(Go::On)
                })?;
            } else {
                let value = self.evaluate(item, frame)?;
                found.push(value);
            }
        }
        Ok(found)
    }

    pub(super) fn set_display(&mut self, items: &'a [Expression], frame: Frame) -> Answer<Value> {
        let mut table = Table::with_capacity(items.len());
        for item in items {
            if let Expression::Starred(iterable) = item {
                self.add_all(&mut table, iterable, frame)?;
            } else {
                table.add(self.evaluate(item, frame)?)?;
            }
        }
        Ok(Value::set(table))
    }

    /// Add the values of an iterable to a set, for which their order does not matter.
    fn add_all(&mut self, table: &mut Table, iterable: &'a Expression, frame: Frame) -> Answer<()> {
        let unordered = match iterable {
            Expression::Generator(inner) => inner.pure,
            _ => true,
        };
        self.iterate(iterable, frame, !unordered, &mut |run, value| {
            run.add_to_set(table, value)?;
            Ok(Go::On)
        })?;
        Ok(())
    }

    /// Add a value. The first of equal values stays: if they differ, their order matters.
    pub fn add_to_set(&mut self, table: &mut Table, value: Value) -> Answer<()> {
        if let Some(place) = table.find(&value)? {
            if !crate::vm::value::compare::identical(&table.keys()[place], &value) {
                self.note_unclear();
            }
            return Ok(());
        }
        table.add(value)?;
        Ok(())
    }

    pub(super) fn dict_display(
        &mut self,
        pairs: &'a [(Option<Expression>, Expression)],
        frame: Frame,
    ) -> Answer<Value> {
        let mut map = Map::with_capacity(pairs.len());
        for (key, value) in pairs {
            match key {
                Some(key) => {
                    let key = self.evaluate(key, frame)?;
                    map.set(key, self.evaluate(value, frame)?)?;
                }
                None => match self.evaluate(value, frame)? {
                    Value::Dict(other) => super::operators::update(&mut map, &other.read())?,
                    _ => return Err(Bail(&"** of something that is no dict")),
                },
            }
        }
        Ok(Value::dict(map))
    }

    pub(super) fn list_comprehension(&mut self, inner: &'a Comprehension, frame: Frame) -> Answer<Value> {
        let mut items = Vec::new();
        self.clauses(inner, 0, frame, true, &mut |run| {
            items.push(run.evaluate(&inner.element, frame)?);
            Ok(Go::On)
        })?;
        Ok(Value::list(items))
    }

    pub(super) fn set_comprehension(&mut self, inner: &'a Comprehension, frame: Frame) -> Answer<Value> {
        let mut table = Table::default();
        self.clauses(inner, 0, frame, !inner.pure, &mut |run| {
            let value = run.evaluate(&inner.element, frame)?;
            run.add_to_set(&mut table, value)?;
            Ok(Go::On)
        })?;
        Ok(Value::set(table))
    }

    pub(super) fn dict_comprehension(&mut self, parts: &'a (Comprehension, Expression), frame: Frame) -> Answer<Value> {
        let mut map = Map::default();
        self.clauses(&parts.0, 0, frame, true, &mut |run| {
            let key = run.evaluate(&parts.0.element, frame)?;
            map.set(key, run.evaluate(&parts.1, frame)?)?;
            Ok(Go::On)
        })?;
        Ok(Value::dict(map))
    }

    pub(super) fn joined(&mut self, parts: &'a [Expression], frame: Frame) -> Answer<Value> {
        let mut text = String::new();
        for part in parts {
            match part {
                Expression::Formatted(inner) => {
                    let value = self.evaluate(&inner.0, frame)?;
                    match inner.1 {
                        Conversion::Str => write_str(self.program, &value, &mut text)?,
                        Conversion::Repr => write_repr(self.program, &value, &mut text, 0)?,
                    }
                }
                _ => match self.evaluate(part, frame)? {
                    Value::Str(part) => text.push_str(&part),
                    _ => return Err(Bail(&"a part of an f-string that is no text")),
                },
            }
        }
        Ok(Value::str(&text))
    }
}

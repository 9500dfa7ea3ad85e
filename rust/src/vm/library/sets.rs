//! Methods of sets and frozensets.

use super::Method;
use super::builtins::{ARGUMENTS, Source};
use crate::vm::program::Binary;
use crate::vm::run::operators::{binary_in_place, sets, with_table};
use crate::vm::run::{Go, Run};
use crate::vm::value::compare::is_subset;
use crate::vm::value::table::Table;
use crate::vm::value::{Set, Value};
use crate::vm::{Answer, Bail};
use std::rc::Rc;

impl<'a> Run<'a> {
    pub(super) fn set_method(&mut self, value: &Value, method: Method, arguments: &[Source<'a>]) -> Answer<Value> {
        use Method as M;
        match (method, arguments) {
            (M::Union, _) => self.combined_sets(Binary::Or, value, arguments),
            (M::Intersection, _) => self.combined_sets(Binary::And, value, arguments),
            (M::Difference, _) => self.combined_sets(Binary::Subtract, value, arguments),
            (M::SymmetricDifference, [_]) => self.combined_sets(Binary::Xor, value, arguments),
            (M::IsSubset | M::IsSuperset | M::IsDisjoint, [source]) => {
                let other = self.table_of(source)?;
                with_table(value, |table| {
                    Ok(Value::Bool(match method {
                        M::IsSubset => is_subset(table, &other)?,
                        M::IsSuperset => is_subset(&other, table)?,
                        _ => !any_common(table, &other)?,
                    }))
                })
            }
            (M::Copy, []) => match value {
                Value::Set(set) => Ok(Value::set(set.read().clone())),
                _ => Ok(value.clone()),
            },
            _ => match value {
                Value::Set(set) => self.change_set(set, value, method, arguments),
                _ => Err(Bail(&"a method of a frozenset")),
            },
        }
    }

    fn combined_sets(&mut self, operator: Binary, value: &Value, arguments: &[Source<'a>]) -> Answer<Value> {
        let mut result = match value {
            Value::Set(set) => Value::set(set.read().clone()),
            _ => value.clone(),
        };
        for source in arguments {
            let other = Value::frozen_set(self.table_of(source)?);
            result = sets(operator, &result, &other)?;
        }
        Ok(result)
    }

    fn change_set(&mut self, set: &Rc<Set>, value: &Value, method: Method, arguments: &[Source<'a>]) -> Answer<Value> {
        use Method as M;
        match (method, arguments) {
            (M::Add, [Source::Value(element)]) => {
                set.write()?.add(element.clone())?;
            }
            (M::Discard | M::Remove, [Source::Value(element)]) => {
                let mut table = set.write()?;
                match table.find(element)? {
                    Some(place) => {
                        table.remove_at(place);
                    }
                    None if method == M::Remove => return Err(Bail(&"a value that is missing")),
                    None => {}
                }
            }
            (M::Pop, []) => return self.pop(set),
            (M::Clear, []) => set.write()?.clear(),
            (M::Update, [source @ Source::Lazy(..)]) => {
                // One by one: the generator may look at the set.
                self.each(source, true, &mut |_, element| {
                    set.write()?.add(element)?;
                    Ok(Go::On)
                })?;
            }
            (M::DifferenceUpdate | M::SymmetricDifferenceUpdate, [Source::Lazy(..)]) => {
                return Err(Bail(&"a generator that changes a set"));
            }
            (M::Update | M::IntersectionUpdate | M::DifferenceUpdate | M::SymmetricDifferenceUpdate, _) => {
                let operator = match method {
                    M::Update => Binary::Or,
                    M::IntersectionUpdate => Binary::And,
                    M::DifferenceUpdate => Binary::Subtract,
                    _ if arguments.len() == 1 => Binary::Xor,
                    _ => return Err(ARGUMENTS),
                };
                for source in arguments {
                    let other = Value::frozen_set(self.table_of(source)?);
                    binary_in_place(operator, value.clone(), &other)?;
                }
            }
            _ => return Err(Bail(&"a method of a set")),
        }
        Ok(Value::None)
    }

    /// The first element, in the order of the run.
    fn pop(&mut self, set: &Rc<Set>) -> Answer<Value> {
        let size = set.read().len();
        if size > 1 {
            self.note_set(size);
        }
        let place = match (size, self.order) {
            (0, _) => return Err(Bail(&"pop of an empty set")),
            (_, 0) => 0,
            (1 | 2, _) => size - 1,
            (_, order) => size - 1 - (order - 1) % size,
        };
        Ok(set.write()?.remove_at(place))
    }
}

fn any_common(a: &Table, b: &Table) -> Answer<bool> {
    for key in a.keys() {
        if b.contains(key)? {
            return Ok(true);
        }
    }
    Ok(false)
}

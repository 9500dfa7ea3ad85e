//! Methods of dicts.

use super::Method;
use super::builtins::{ARGUMENTS, Options, Source, has_options};
use crate::vm::program::Binary;
use crate::vm::run::counters::change;
use crate::vm::run::operators::{binary, update};
use crate::vm::run::{Go, Run};
use crate::vm::value::library::Flavour;
use crate::vm::value::table::Map;
use crate::vm::value::{Dict, DictView, Value, ViewKind};
use crate::vm::{Answer, Bail};
use std::rc::Rc;

impl<'a> Run<'a> {
    pub(super) fn dict_method(
        &mut self,
        dict: &Rc<Dict>,
        method: Method,
        arguments: &[Source<'a>],
        options: &Options,
    ) -> Answer<Value> {
        use Method as M;
        match dict.flavour {
            Flavour::Counter => {
                if let Some(value) = self.counter_method(dict, method, arguments, options)? {
                    return Ok(value);
                }
            }
            Flavour::Ordered => {
                if let Some(value) = ordered_method(dict, method, arguments, options)? {
                    return Ok(value);
                }
            }
            Flavour::Plain | Flavour::Default(_) => {}
        }
        if has_options(options) {
            return Err(ARGUMENTS);
        }
        let view = |kind| Ok(Value::DictView(Rc::new(DictView { kind, dict: dict.clone() })));
        match (method, arguments) {
            (M::Get, [Source::Value(key), rest @ ..]) => match (dict.read().get(key)?, rest) {
                (Some(value), [] | [_]) => Ok(value.clone()),
                (None, []) => Ok(Value::None),
                (None, [Source::Value(default)]) => Ok(default.clone()),
                _ => Err(ARGUMENTS),
            },
            (M::Items, []) => view(ViewKind::Items),
            (M::Keys, []) => view(ViewKind::Keys),
            (M::Values, []) => view(ViewKind::Values),
            (M::Pop, [Source::Value(key), rest @ ..]) => match (dict.write()?.remove(key)?, rest) {
                (Some(value), [] | [_]) => Ok(value),
                (None, [Source::Value(default)]) => Ok(default.clone()),
                _ => Err(Bail(&"a key that is missing")),
            },
            (M::PopItem, []) => {
                let mut map = dict.write()?;
                let last = map.len().checked_sub(1).ok_or(Bail(&"popitem of an empty dict"))?;
                let (key, value) = map.remove_at(last);
                Ok(Value::pair(key, value))
            }
            (M::SetDefault, [Source::Value(key), rest @ ..]) => {
                let default = match rest {
                    [] => Value::None,
                    [Source::Value(default)] => default.clone(),
                    _ => return Err(ARGUMENTS),
                };
                let known = dict.read().get(key)?.cloned();
                if let Some(value) = known {
                    return Ok(value);
                }
                dict.write()?.set(key.clone(), default.clone())?;
                Ok(default)
            }
            (M::Update, []) => Ok(Value::None),
            (M::Update, [source]) => {
                match source {
                    Source::Value(Value::Dict(other)) if Rc::ptr_eq(dict, other) => {
                        dict.write()?;
                    }
                    Source::Value(Value::Dict(other)) => update(&mut *dict.write()?, &other.read())?,
                    _ => self.each_pair(source, &mut |key, value| dict.write()?.set(key, value))?,
                }
                Ok(Value::None)
            }
            (M::Copy, []) => Ok(Value::dict_of(dict.read().clone(), dict.flavour, false)),
            (M::Clear, []) => {
                dict.write()?.clear();
                Ok(Value::None)
            }
            _ => Err(Bail(&"a method of a dict")),
        }
    }

    /// The methods that only counters have, or have in another way; none if it is a method of all dicts.
    fn counter_method(
        &mut self,
        dict: &Rc<Dict>,
        method: Method,
        arguments: &[Source<'a>],
        options: &Options,
    ) -> Answer<Option<Value>> {
        use Method as M;
        Ok(Some(match (method, arguments) {
            (M::Total, []) => {
                let mut total = Value::Int(0);
                for count in dict.read().values() {
                    if matches!(count, Value::Float(_)) {
                        return Err(ARGUMENTS);
                    }
                    total = binary(Binary::Add, &total, count)?;
                }
                total
            }
            (M::MostCommon, _) => {
                let most = match (arguments, &options.only) {
                    ([], None) => &Value::None,
                    ([Source::Value(most)], None) | ([], Some(most)) => most,
                    _ => return Err(ARGUMENTS),
                };
                let most = match most {
                    Value::None => usize::MAX,
                    number => usize::try_from(number.as_int().ok_or(ARGUMENTS)?).unwrap_or(0),
                };
                let map = dict.read();
                let ranked = map.keys().iter().zip(map.values());
                let ranked = ranked.map(|(key, count)| (count.clone(), Value::pair(key.clone(), count.clone())));
                let mut sorted = self.sorted_by_rank(ranked.collect(), true)?;
                sorted.truncate(most);
                Value::list(sorted)
            }
            (M::Update | M::Subtract, []) => Value::None,
            (M::Update, [source]) => {
                self.count(dict, Binary::Add, source)?;
                Value::None
            }
            (M::Subtract, [source]) => {
                self.count(dict, Binary::Subtract, source)?;
                Value::None
            }
            _ => return Ok(None),
        }))
    }

    /// Add the counts of a dict to a counter, or count the values of another iterable; or subtract them.
    pub(super) fn count(&mut self, dict: &Rc<Dict>, operator: Binary, source: &Source<'a>) -> Answer<()> {
        match source {
            Source::Value(Value::None) => {}
            Source::Value(Value::Dict(other)) => {
                let other: Map = other.read().clone();
                let mut map = dict.write()?;
                if map.is_empty() && operator == Binary::Add {
                    return update(&mut map, &other);
                }
                for (key, by) in other.keys().iter().zip(other.values()) {
                    change(&mut map, operator, key.clone(), by)?;
                }
            }
            _ => {
                self.each(source, true, &mut |_, key| {
                    change(&mut *dict.write()?, operator, key, &Value::Int(1))?;
                    Ok(Go::On)
                })?;
            }
        }
        Ok(())
    }
}

/// The methods that only ordered dicts have, or have in another way; none if it is a method of all dicts.
fn ordered_method(
    dict: &Rc<Dict>,
    method: Method,
    arguments: &[Source<'_>],
    options: &Options,
) -> Answer<Option<Value>> {
    let (rest, key) = match (method, arguments) {
        (Method::PopItem, rest) => (rest, None),
        (Method::MoveToEnd, [Source::Value(key), rest @ ..]) => (rest, Some(key)),
        _ => return Ok(None),
    };
    let last = match (rest, &options.only) {
        ([], None) => true,
        ([Source::Value(last)], None) | ([], Some(last)) => last.truth(),
        _ => return Err(ARGUMENTS),
    };
    let mut map = dict.write()?;
    let Some(key) = key else {
        let size = map.len();
        if size == 0 {
            return Err(Bail(&"popitem of an empty dict"));
        }
        let (key, value) = map.remove_at(if last { size - 1 } else { 0 });
        return Ok(Some(Value::pair(key, value)));
    };
    let place = map.table().find(key)?.ok_or(Bail(&"a key that is missing"))?;
    map.move_to_end(place, last)?;
    Ok(Some(Value::None))
}

//! Methods of dicts.

use super::Method;
use super::builtins::{ARGUMENTS, Source};
use crate::vm::run::Run;
use crate::vm::run::operators::update;
use crate::vm::value::{Dict, DictView, Value, ViewKind};
use crate::vm::{Answer, Bail};
use std::rc::Rc;

impl<'a> Run<'a> {
    pub(super) fn dict_method(&mut self, dict: &Rc<Dict>, method: Method, arguments: &[Source<'a>]) -> Answer<Value> {
        use Method as M;
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
            (M::Copy, []) => Ok(Value::dict(dict.read().clone())),
            (M::Clear, []) => {
                dict.write()?.clear();
                Ok(Value::None)
            }
            _ => Err(Bail(&"a method of a dict")),
        }
    }
}

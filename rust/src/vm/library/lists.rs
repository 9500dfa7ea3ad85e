//! Methods of lists.

use super::Method;
use super::builtins::{ARGUMENTS, Options, Source, has_options};
use super::methods::item_method;
use super::reduce::is_true;
use crate::vm::run::operators::require_short;
use crate::vm::run::{Go, Run};
use crate::vm::value::compare::equal_inside;
use crate::vm::value::{List, Value};
use crate::vm::{Answer, Bail};
use std::rc::Rc;

impl<'a> Run<'a> {
    pub(super) fn list_method(
        &mut self,
        list: &Rc<List>,
        method: Method,
        arguments: &[Source<'a>],
        options: &Options,
    ) -> Answer<Value> {
        use Method as M;
        match (method, arguments) {
            (M::Append, [Source::Value(item)]) => list.write()?.push(item.clone()),
            (M::Extend, [source]) => {
                if let Source::Value(value) = source {
                    let items = self.items_of(value)?;
                    let mut list = list.write()?;
                    require_short(list.len() + items.len())?;
                    list.extend(items);
                } else {
                    // One by one: the generator may look at the list.
                    self.each(source, true, &mut |_, value| {
                        list.write()?.push(value);
                        Ok(Go::On)
                    })?;
                }
            }
            (M::Insert, [Source::Value(place), Source::Value(item)]) => {
                let mut items = list.write()?;
                let length = items.len() as i64;
                let place = place.as_int().ok_or(ARGUMENTS)?;
                let place = if place < 0 { (place + length).max(0) } else { place.min(length) };
                items.insert(place as usize, item.clone());
            }
            (M::Pop, _) => {
                let mut items = list.write()?;
                let length = items.len() as i64;
                let place = match arguments {
                    [] => length - 1,
                    [Source::Value(place)] => place.as_int().ok_or(ARGUMENTS)?,
                    _ => return Err(ARGUMENTS),
                };
                let place = if place < 0 { place + length } else { place };
                if !(0..length).contains(&place) {
                    return Err(Bail(&"an index out of range"));
                }
                return Ok(items.remove(place as usize));
            }
            (M::Remove, [Source::Value(wanted)]) => {
                let mut items = list.write()?;
                let mut found = None;
                for (place, item) in items.iter().enumerate() {
                    if equal_inside(item, wanted)? {
                        found = Some(place);
                        break;
                    }
                }
                items.remove(found.ok_or(Bail(&"a value that is missing"))?);
            }
            (M::Index | M::Count, _) => return item_method(list.read().iter(), method, arguments),
            (M::Sort, []) if options.default.is_none() && options.start.is_none() => {
                let items = std::mem::take(&mut *list.write()?);
                let sorted = self.sorted(items, options.key.as_ref(), is_true(&options.reverse))?;
                // Python looks at this too.
                if !list.read().is_empty() {
                    return Err(Bail(&"a list that changes while it is sorted"));
                }
                *list.write()? = sorted;
            }
            (M::Reverse, []) => list.write()?.reverse(),
            (M::Copy, []) => return Ok(Value::list(list.read().clone())),
            (M::Clear, []) => list.write()?.clear(),
            _ if has_options(options) => return Err(ARGUMENTS),
            _ => return Err(Bail(&"a method of a list")),
        }
        Ok(Value::None)
    }
}

//! Methods of deques.

use super::Method;
use super::builtins::{ARGUMENTS, Source};
use super::methods::item_method;
use crate::vm::run::operators::require_short;
use crate::vm::run::{Go, Run};
use crate::vm::value::Value;
use crate::vm::value::compare::equal_inside;
use crate::vm::value::library::Deque;
use crate::vm::{Answer, Bail};
use std::rc::Rc;

const EMPTY: Bail = Bail(&"pop of an empty deque");

impl<'a> Run<'a> {
    pub(super) fn deque_method(
        &mut self,
        deque: &Rc<Deque>,
        method: Method,
        arguments: &[Source<'a>],
    ) -> Answer<Value> {
        use Method as M;
        match (method, arguments) {
            (M::Append, [Source::Value(item)]) => deque.append(item.clone())?,
            (M::AppendLeft, [Source::Value(item)]) => deque.append_left(item.clone())?,
            (M::Pop, []) => return deque.write()?.pop_back().ok_or(EMPTY),
            (M::PopLeft, []) => return deque.write()?.pop_front().ok_or(EMPTY),
            (M::Extend | M::ExtendLeft, [source]) => {
                let add = |item| if method == M::Extend { deque.append(item) } else { deque.append_left(item) };
                if let Source::Value(value) = source {
                    let items = self.items_of(value)?;
                    require_short(deque.read().len() + items.len())?;
                    deque.write()?; // also if nothing comes
                    items.into_iter().try_for_each(add)?;
                } else {
                    // One by one: the generator may look at the deque.
                    self.each(source, true, &mut |_, value| {
                        add(value)?;
                        Ok(Go::On)
                    })?;
                }
            }
            (M::Rotate, _) => {
                let by = match arguments {
                    [] => 1,
                    [Source::Value(by)] => by.as_int().ok_or(ARGUMENTS)?,
                    _ => return Err(ARGUMENTS),
                };
                let mut items = deque.write()?;
                if !items.is_empty() {
                    let by = by.rem_euclid(items.len() as i64) as usize;
                    items.rotate_right(by);
                }
            }
            (M::Insert, [Source::Value(place), Source::Value(item)]) => {
                let mut items = deque.write()?;
                if deque.longest.is_some_and(|longest| items.len() >= longest) {
                    return Err(Bail(&"insert into a full deque"));
                }
                let length = items.len() as i64;
                let place = place.as_int().ok_or(ARGUMENTS)?;
                let place = if place < 0 { place.saturating_add(length).max(0) } else { place.min(length) };
                items.insert(place as usize, item.clone());
            }
            (M::Remove, [Source::Value(wanted)]) => {
                let mut items = deque.write()?;
                let mut found = None;
                for (place, item) in items.iter().enumerate() {
                    if equal_inside(item, wanted)? {
                        found = Some(place);
                        break;
                    }
                }
                items.remove(found.ok_or(Bail(&"a value that is missing"))?);
            }
            (M::Index | M::Count, _) => return item_method(deque.read().iter(), method, arguments),
            (M::Reverse, []) => deque.write()?.make_contiguous().reverse(),
            (M::Copy, []) => return Ok(Value::deque(deque.read().clone(), deque.longest, false)),
            (M::Clear, []) => deque.write()?.clear(),
            _ => return Err(Bail(&"a method of a deque")),
        }
        Ok(Value::None)
    }
}

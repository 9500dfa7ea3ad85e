//! `copy.copy` and `copy.deepcopy`.

use crate::vm::value::library::Derived;
use crate::vm::value::table::Map;
use crate::vm::value::{Items, Object, Record, Value};
use crate::vm::{Answer, Bail};
use std::rc::Rc;

const UNUSUAL: Bail = Bail(&"a copy of an unusual value");
const SHARED: Bail = Bail(&"a copy of one object in two places");
const DEEPEST: usize = 100;

/// A copy that shares the items.
pub fn shallow(value: &Value) -> Answer<Value> {
    Ok(match value {
        Value::List(list) => Value::list(list.read().clone()),
        Value::Dict(dict) => Value::dict_of(dict.read().clone(), dict.flavour, false),
        Value::Deque(deque) => Value::deque(deque.read().clone(), deque.longest, false),
        Value::Set(set) => Value::set(set.read().clone()),
        Value::Object(object) => {
            Value::Object(Rc::new(Object::new(object.class, object.traits, object.read().clone(), false)))
        }
        Value::Record(record) if !record.traits.equal => return Err(UNUSUAL),
        value if is_copied_as_itself(value) => value.clone(),
        _ => return Err(UNUSUAL),
    })
}

/// Whether nobody can tell a copy of the value from the value. Its items are another matter.
fn is_copied_as_itself(value: &Value) -> bool {
    use Value as V;
    matches!(
        value,
        V::None
            | V::Bool(_)
            | V::Int(_)
            | V::Float(_)
            | V::Str(_)
            | V::Bytes(_)
            | V::Pid(_)
            | V::Enum(_)
            | V::Flag(_)
            | V::Fraction(_)
            | V::Derived(_)
            | V::Shared(_)
    ) || matches!(value, V::Tuple(_) | V::Named(_) | V::Record(_) | V::FrozenSet(_))
}

/// A copy that shares nothing that can change.
pub fn deep(value: &Value) -> Answer<Value> {
    Copies { met: Vec::new() }.value(value, 0)
}

struct Copies {
    /// The mutable objects so far. Python would copy an object once, wherever it is.
    met: Vec<usize>,
}

impl Copies {
    fn once<T>(&mut self, object: &Rc<T>) -> Answer<()> {
        let address = Rc::as_ptr(object).cast::<u8>() as usize;
        if self.met.contains(&address) {
            return Err(SHARED);
        }
        self.met.push(address);
        Ok(())
    }

    fn items(&mut self, items: &[Value], depth: usize) -> Answer<Items> {
        items.iter().map(|item| self.value(item, depth + 1)).collect()
    }

    fn record(&mut self, record: &Record, depth: usize) -> Answer<Rc<Record>> {
        if !record.traits.equal {
            return Err(UNUSUAL);
        }
        let fields = self.items(&record.fields, depth)?;
        Ok(Rc::new(Record { class: record.class, traits: record.traits, sender: record.sender, fields }))
    }

    fn value(&mut self, value: &Value, depth: usize) -> Answer<Value> {
        if depth > DEEPEST {
            return Err(UNUSUAL);
        }
        Ok(match value {
            Value::Tuple(items) => Value::Tuple(Rc::new(self.items(items, depth)?)),
            Value::Named(record) => Value::Named(self.record(record, depth)?),
            Value::Record(record) => Value::Record(self.record(record, depth)?),
            Value::List(list) => {
                self.once(list)?;
                Value::list(self.items(&list.read(), depth)?.into_vec())
            }
            Value::Dict(dict) => {
                self.once(dict)?;
                let old = dict.read();
                let mut map = Map::with_capacity(old.len());
                for (key, value) in old.keys().iter().zip(old.values()) {
                    map.set(self.value(key, depth + 1)?, self.value(value, depth + 1)?)?;
                }
                Value::dict_of(map, dict.flavour, false)
            }
            Value::Deque(deque) => {
                self.once(deque)?;
                let items = deque.read().iter().map(|item| self.value(item, depth + 1)).collect::<Answer<_>>()?;
                Value::deque(items, deque.longest, false)
            }
            Value::Derived(derived) => {
                let content = self.value(&derived.content, depth + 1)?;
                Value::Derived(Rc::new(Derived { class: derived.class, content }))
            }
            // Elements and keys that can be hashed have nothing in them that can change, unless they have an identity.
            Value::Set(set) => {
                self.once(set)?;
                self.items(set.read().keys(), depth)?;
                Value::set(set.read().clone())
            }
            Value::FrozenSet(table) => {
                self.items(table.keys(), depth)?;
                value.clone()
            }
            Value::Object(object) => {
                self.once(object)?;
                let fields = self.items(&object.read(), depth)?;
                Value::Object(Rc::new(Object::new(object.class, object.traits, fields, false)))
            }
            value if is_copied_as_itself(value) => value.clone(),
            _ => return Err(UNUSUAL),
        })
    }
}

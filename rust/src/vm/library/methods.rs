//! Calls of methods: of classes of the program, or of built-in types.

use super::Method;
use super::builtins::{ARGUMENTS, Options, Source, has_options};
use crate::vm::program::MethodCall;
use crate::vm::run::{Frame, Run};
use crate::vm::value::compare::equal_inside;
use crate::vm::value::{Items, Value};
use crate::vm::{Answer, Bail};

impl<'a> Run<'a> {
    #[inline(never)]
    pub fn method_call(&mut self, call: &'a MethodCall, frame: Frame) -> Answer<Value> {
        let value = self.evaluate(&call.value, frame)?;
        self.method_call_on(value, call, frame)
    }

    pub fn method_call_on(&mut self, value: Value, call: &'a MethodCall, frame: Frame) -> Answer<Value> {
        let program = self.program;
        let class = match &value {
            Value::Named(record) | Value::Record(record) => Some(record.class),
            Value::Object(object) => Some(object.class),
            Value::Enum(member) | Value::Flag(member) => Some(member.class),
            Value::Derived(derived) => Some(derived.class),
            Value::Monitor(monitor) => Some(program.monitors[*monitor as usize].0),
            Value::Shared(shared) => Some(program.shared[*shared as usize].class),
            Value::Process => Some(program.processes[self.own_position()? as usize].class),
            Value::View(position) => Some(program.processes[*position as usize].class),
            _ => None,
        };
        if let Some(function) = class.and_then(|class| program.classes[class as usize].methods.get(&call.name)) {
            if call.keywords.any {
                return Err(Bail(&"keyword arguments of a method"));
            }
            let mut arguments = Items::with_capacity(call.arguments.len() + 1);
            arguments.push(value);
            arguments.extend(self.display(&call.arguments, frame)?);
            return self.call(*function, arguments);
        }
        let method = call.method.ok_or(Bail(&"an unknown method"))?;
        // Frequent methods of one argument need no list of arguments.
        if let ([argument], Value::List(list), Method::Append) = (&*call.arguments, &value, method) {
            let argument = self.evaluate(argument, frame)?;
            list.write()?.push(argument);
            return Ok(Value::None);
        }
        let sources = self.argument_sources(&call.arguments, frame)?;
        let options = self.options(&call.keywords, frame)?;
        if call.arguments.len() > 1 && sources.iter().any(|source| matches!(source, Source::Lazy(..))) {
            return Err(Bail(&"a generator among several arguments of a method"));
        }
        self.method(&value, method, &sources, &options)
    }

    pub(super) fn method(
        &mut self,
        value: &Value,
        method: Method,
        arguments: &[Source<'a>],
        options: &Options,
    ) -> Answer<Value> {
        let named = matches!(method, Method::Sort | Method::PopItem | Method::MoveToEnd | Method::MostCommon);
        if has_options(options) && !named {
            return Err(ARGUMENTS);
        }
        match value {
            Value::List(list) => self.list_method(list, method, arguments, options),
            Value::Dict(dict) => self.dict_method(dict, method, arguments, options),
            Value::Deque(deque) => self.deque_method(deque, method, arguments),
            Value::Derived(derived) => self.method(&derived.content, method, arguments, options),
            Value::Set(_) | Value::FrozenSet(_) => self.set_method(value, method, arguments),
            Value::Tuple(items) => item_method(items.iter(), method, arguments),
            Value::Named(record) => item_method(record.fields.iter(), method, arguments),
            Value::Str(text) => self.str_method(text, method, arguments),
            Value::Range(range) if method == Method::Index || method == Method::Count => {
                let [Source::Value(element)] = arguments else { return Err(ARGUMENTS) };
                let number = element.as_int().ok_or(ARGUMENTS)?;
                let found = range.contains(number);
                match method {
                    Method::Count => Ok(Value::Int(i64::from(found))),
                    _ if found => Ok(Value::Int((number - range.start) / range.step)),
                    _ => Err(Bail(&"a value that is missing")),
                }
            }
            _ => Err(Bail(&"a method of an unusual value")),
        }
    }
}

/// `index` and `count` of a list or tuple.
pub fn item_method<'v>(
    items: impl IntoIterator<Item = &'v Value>,
    method: Method,
    arguments: &[Source<'_>],
) -> Answer<Value> {
    let [Source::Value(wanted)] = arguments else { return Err(ARGUMENTS) };
    let mut count = 0;
    for (place, item) in items.into_iter().enumerate() {
        if equal_inside(item, wanted)? {
            if method == Method::Index {
                return Ok(Value::Int(place as i64));
            }
            count += 1;
        }
    }
    match method {
        Method::Count => Ok(Value::Int(count)),
        Method::Index => Err(Bail(&"a value that is missing")),
        _ => Err(Bail(&"a method of an unusual value")),
    }
}

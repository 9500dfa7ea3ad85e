//! Expressions.

use super::operators::{binary, unary};
use super::sequence::{Bounds, contains, length, slice, subscript};
use super::{Frame, Run};
use crate::vm::library::Builtin;
use crate::vm::program::{Attribute, Binary, BuiltinCall, Comparison, Expression, Kind, TypeTest, Unary};
use crate::vm::value::compare::{equal, ordered};
use crate::vm::value::library::{Derived, Flavour};
use crate::vm::value::{BoundFunction, Items, Member, NO_SENDER, Object, Record, Value};
use crate::vm::{Answer, Bail, UNBOUND};
use std::rc::Rc;

impl<'a> Run<'a> {
    pub fn evaluate(&mut self, expression: &'a Expression, frame: Frame) -> Answer<Value> {
        use Expression as E;
        Ok(match expression {
            E::None => Value::None,
            E::Bool(truth) => Value::Bool(*truth),
            E::Int(number) => Value::Int(*number),
            E::Float(number) => Value::Float(*number),
            E::Pid(pid) => Value::Pid(*pid),
            E::Enum(member) => Value::Enum(*member),
            E::Constant(number) => return self.constant(*number),
            E::Local(slot) => match self.local(frame, *slot) {
                Value::Unset => return Err(UNBOUND),
                value => value.clone(),
            },
            E::Attribute(value, name) => {
                // Fields of variables are the most frequent expressions.
                if let E::Local(slot) = &**value {
                    match self.local(frame, *slot) {
                        Value::Process => return self.own_attribute(*name),
                        Value::Record(record) | Value::Named(record) => {
                            let class = &self.program.classes[record.class as usize];
                            if let Attribute::Field(field) = class.attributes[*name as usize] {
                                return Ok(record.fields[field as usize].clone());
                            }
                        }
                        Value::View(position) => {
                            let position = *position;
                            return self.view_attribute(position, *name);
                        }
                        _ => {}
                    }
                }
                let value = self.evaluate(value, frame)?;
                return self.attribute(&value, *name);
            }
            E::Subscript(two) => {
                let value = self.evaluate(&two.0, frame)?;
                let index = self.evaluate(&two.1, frame)?;
                return subscript(&value, &index);
            }
            E::Sliced(parts) => {
                let value = self.evaluate(&parts.0, frame)?;
                let bounds = self.bounds(&parts.1, frame)?;
                return slice(&value, bounds);
            }
            E::Unary(Unary::Not, value) => Value::Bool(!self.test(value, frame)?),
            E::Unary(operator, value) => {
                let value = self.evaluate(value, frame)?;
                return match (operator, &value) {
                    (Unary::Invert, Value::Flag(flag)) => Ok(self.other_flags(*flag)),
                    _ => unary(*operator, &value),
                };
            }
            E::Binary(operator, two) => {
                let left = self.evaluate(&two.0, frame)?;
                let right = self.evaluate(&two.1, frame)?;
                if let (Value::Int(a), Value::Int(b)) = (&left, &right) {
                    let simple = match operator {
                        Binary::Add => a.checked_add(*b),
                        Binary::Subtract => a.checked_sub(*b),
                        _ => None,
                    };
                    if let Some(number) = simple {
                        return Ok(Value::Int(number));
                    }
                }
                return binary(*operator, &left, &right);
            }
            E::And(operands) => return self.first(operands, false, frame),
            E::Or(operands) => return self.first(operands, true, frame),
            E::Tested(..) | E::Compare(..) | E::Chain(_) | E::IsInstance(_) => {
                Value::Bool(self.test(expression, frame)?)
            }
            E::Conditional(parts) => {
                let chosen = if self.test(&parts.0, frame)? { &parts.1 } else { &parts.2 };
                return self.evaluate(chosen, frame);
            }
            E::Assigned(slot, value) => {
                let value = self.evaluate(value, frame)?;
                self.set_local(frame, *slot, value.clone());
                value
            }
            E::CallFunction(function, arguments) => return self.call_with(*function, arguments, frame),
            E::CallBuiltin(call) => return self.builtin_call(call, frame),
            E::CallMethod(call) => return self.method_call(call, frame),
            E::Construct(class, values) => return self.construct(*class, values, frame),
            _ => return self.evaluate_rare(expression, frame),
        })
    }

    /// Apart, so that the frames of frequent expressions stay small.
    #[inline(never)]
    fn evaluate_rare(&mut self, expression: &'a Expression, frame: Frame) -> Answer<Value> {
        use Expression as E;
        match expression {
            E::Tuple(items) => Ok(Value::Tuple(Rc::new(self.display(items, frame)?))),
            E::List(items) => Ok(Value::list(self.display(items, frame)?.into_vec())),
            E::Set(items) => self.set_display(items, frame),
            E::Dict(pairs) => self.dict_display(pairs, frame),
            E::ListComprehension(inner) => self.list_comprehension(inner, frame),
            E::SetComprehension(inner) => self.set_comprehension(inner, frame),
            E::DictComprehension(parts) => self.dict_comprehension(parts, frame),
            E::Joined(parts) => self.joined(parts, frame),
            E::Formatted(_) => self.joined(std::slice::from_ref(expression), frame),
            E::Lambda(lambda, defaults) => {
                let defaults = self.display(defaults, frame)?;
                Ok(self.make_closure(*lambda, defaults, frame))
            }
            E::Function(function, bound) => {
                let bound = bound.as_ref().map_or(Ok(Value::Unset), |bound| self.evaluate(bound, frame))?;
                Ok(Value::Function(Rc::new(BoundFunction { function: *function, bound })))
            }
            E::Builtin(builtin) => Ok(Value::Builtin(*builtin)),
            E::UnboundMethod(method) => Ok(Value::Method(*method)),
            E::CallValue(parts) => {
                let function = self.evaluate(&parts.0, frame)?;
                let arguments = self.display(&parts.1, frame)?;
                self.call_value(&function, &arguments)
            }
            E::Replace(parts) => self.replace(&parts.0, &parts.1, frame),
            E::SelfId => self.own_id(),
            E::Send(two) => self.send(&two.0, &two.1, frame),
            E::Broadcast(parts) => self.broadcast(&parts.0, &parts.1, parts.2.as_ref(), frame),
            E::Announce(event) => self.announce(event, frame),
            E::Choose(choice) => self.choose(choice, frame),
            E::Spawn(class, values) => {
                let values = self.display(values, frame)?;
                self.spawn(*class, values)
            }
            E::ViewRole(positions, first_spare) => {
                Ok(Value::tuple(self.born(positions, *first_spare)?.into_iter().map(Value::View)))
            }
            E::ViewProcess(pid) => match self.evaluate(pid, frame)? {
                Value::Pid(pid) => Ok(Value::View(self.position(pid)?)),
                _ => Err(Bail(&"a view of something that is no process id")),
            },
            E::ViewMonitor(monitor) => Ok(Value::Monitor(*monitor)),
            E::ViewMessages(positions, first_spare) => {
                let mut messages = Vec::new();
                for position in self.born(positions, *first_spare)? {
                    self.inbox(position, &mut messages)?;
                }
                Ok(Value::tuple(messages))
            }
            E::Unsupported(reason) => Err(*reason),
            E::Generator(_) => Err(Bail(&"a generator as a value")),
            _ => Err(Bail(&"a starred expression as a value")),
        }
    }

    /// The processes at these positions, without spare slots that are not born.
    fn born(&mut self, positions: &[u16], first_spare: u16) -> Answer<Vec<u16>> {
        let mut found = Vec::with_capacity(positions.len());
        for &position in positions {
            if position < first_spare || !self.is_unborn(position)? {
                found.push(position);
            }
        }
        Ok(found)
    }

    /// The value of the first operand with this truth, else that of the last one.
    #[inline(never)]
    fn first(&mut self, operands: &'a [Expression], wanted: bool, frame: Frame) -> Answer<Value> {
        let (last, others) = operands.split_last().ok_or(UNBOUND)?;
        for operand in others {
            let value = self.evaluate(operand, frame)?;
            if value.truth() == wanted {
                return Ok(value);
            }
        }
        self.evaluate(last, frame)
    }

    /// The truth of an expression.
    pub(super) fn test(&mut self, expression: &'a Expression, frame: Frame) -> Answer<bool> {
        use Expression as E;
        match expression {
            E::Tested(number, test) => {
                let (truth, equal) = match &**test {
                    E::Compare(operator, two) => self.comparison(*operator, two, frame)?,
                    test => (self.test(test, frame)?, false),
                };
                self.memory.note_test(*number, truth, equal);
                Ok(truth)
            }
            E::Compare(operator, two) => Ok(self.comparison(*operator, two, frame)?.0),
            E::And(operands) => {
                for operand in operands {
                    if !self.test(operand, frame)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            E::Or(operands) => {
                for operand in operands {
                    if self.test(operand, frame)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            E::Unary(Unary::Not, value) => Ok(!self.test(value, frame)?),
            E::Chain(parts) => {
                let mut left = self.evaluate(&parts.0, frame)?;
                for (operator, right) in &parts.1 {
                    let right = self.evaluate(right, frame)?;
                    if !self.compare(*operator, &left, &right)? {
                        return Ok(false);
                    }
                    left = right;
                }
                Ok(true)
            }
            E::IsInstance(parts) => {
                let value = self.evaluate(&parts.0, frame)?;
                Ok(parts.1.iter().any(|test| self.is_instance(&value, *test)))
            }
            _ => Ok(self.evaluate(expression, frame)?.truth()),
        }
    }

    /// Whether a comparison is true, and whether its operands are equal numbers.
    #[inline]
    fn comparison(
        &mut self,
        operator: Comparison,
        two: &'a (Expression, Expression),
        frame: Frame,
    ) -> Answer<(bool, bool)> {
        let left = self.evaluate(&two.0, frame)?;
        match (operator, &left, &two.1) {
            (Comparison::Is, Value::Enum(a), Expression::Enum(b)) => return Ok((a == b, false)),
            (Comparison::Equal, Value::Int(a), Expression::Int(b)) => return Ok((a == b, a == b)),
            _ => {}
        }
        let right = self.evaluate(&two.1, frame)?;
        if let (Value::Int(a), Value::Int(b)) = (&left, &right) {
            match operator {
                Comparison::Ordered(relation) => return Ok((relation.holds(a.cmp(b)), a == b)),
                Comparison::Equal => return Ok((a == b, a == b)),
                Comparison::NotEqual => return Ok((a != b, a == b)),
                _ => {}
            }
        }
        Ok((self.compare(operator, &left, &right)?, false))
    }

    #[inline(never)]
    fn compare(&mut self, operator: Comparison, left: &Value, right: &Value) -> Answer<bool> {
        match operator {
            Comparison::Equal => equal(left, right),
            Comparison::NotEqual => Ok(!equal(left, right)?),
            Comparison::Ordered(relation) => ordered(left, right, relation),
            Comparison::Is => is_same(left, right),
            Comparison::IsNot => Ok(!is_same(left, right)?),
            Comparison::In => contains(right, left),
            Comparison::NotIn => Ok(!contains(right, left)?),
        }
    }

    fn is_instance(&self, value: &Value, test: TypeTest) -> bool {
        use TypeTest as T;
        use Value as V;
        let class = match value {
            V::Named(record) | V::Record(record) => Some(record.class),
            V::Object(object) => Some(object.class),
            V::Enum(member) | V::Flag(member) => Some(member.class),
            V::Derived(derived) => Some(derived.class),
            V::View(position) => Some(self.program.processes[*position as usize].class),
            V::Process => self.own_position().ok().map(|p| self.program.processes[p as usize].class),
            V::Monitor(monitor) => Some(self.program.monitors[*monitor as usize].0),
            V::Shared(shared) => Some(self.program.shared[*shared as usize].class),
            _ => None,
        };
        let flavour = match value {
            V::Dict(dict) => Some(dict.flavour),
            _ => None,
        };
        match test {
            T::Deque => matches!(value, V::Deque(_)),
            T::OrderedDict => flavour == Some(Flavour::Ordered),
            T::DefaultDict => matches!(flavour, Some(Flavour::Default(_))),
            T::Counter => flavour == Some(Flavour::Counter),
            T::Fraction => matches!(value, V::Fraction(_)),
            T::Int | T::Str | T::Tuple if matches!(value, V::Derived(_)) => self.is_instance(value.plain(), test),
            T::Int => matches!(value, V::Int(_) | V::Bool(_)),
            T::Bool => matches!(value, V::Bool(_)),
            T::Float => matches!(value, V::Float(_)),
            T::Str => matches!(value, V::Str(_)),
            T::Bytes => matches!(value, V::Bytes(_)),
            T::Tuple => matches!(value, V::Tuple(_) | V::Named(_)),
            T::List => matches!(value, V::List(_)),
            T::Dict => matches!(value, V::Dict(_)),
            T::Set => matches!(value, V::Set(_)),
            T::FrozenSet => matches!(value, V::FrozenSet(_)),
            T::None => matches!(value, V::None),
            T::Pid => matches!(value, V::Pid(_)),
            T::Range => matches!(value, V::Range(_)),
            T::Class(wanted) => class.is_some_and(|class| self.program.classes[class as usize].bases.contains(&wanted)),
        }
    }

    pub(super) fn bounds(&mut self, bounds: &'a [Option<Expression>; 3], frame: Frame) -> Answer<Bounds> {
        let mut found = [None; 3];
        for (place, bound) in bounds.iter().enumerate() {
            if let Some(bound) = bound {
                found[place] = match self.evaluate(bound, frame)? {
                    Value::None => None,
                    value => Some(value.as_int().ok_or(Bail(&"a bound that is no number"))?),
                };
            }
        }
        Ok(found)
    }

    #[inline(never)]
    fn construct(&mut self, class: u32, values: &'a [Expression], frame: Frame) -> Answer<Value> {
        let mut fields = Items::with_capacity(values.len());
        for value in values {
            fields.push(self.evaluate(value, frame)?);
        }
        self.instance(class, fields)
    }

    /// An instance of a class with values for all its fields.
    fn instance(&mut self, class: u32, fields: Items) -> Answer<Value> {
        let entry = &self.program.classes[class as usize];
        if entry.unusual {
            return Err(Bail(&"a class with operators of its own"));
        }
        match (entry.kind, fields.first()) {
            (Kind::Derived, Some(content @ (Value::Str(_) | Value::Int(_) | Value::Tuple(_)))) => {
                return Ok(Value::Derived(Rc::new(Derived { class, content: content.clone() })));
            }
            (Kind::Flag, Some(Value::Flag(flag))) if flag.class == class => return Ok(Value::Flag(*flag)),
            (Kind::Flag, Some(Value::Int(number))) => {
                let known = u32::try_from(*number).ok().filter(|member| member & !self.program.all_flags(class) == 0);
                let member = known.ok_or(Bail(&"a number that is no combination of flags"))?;
                return Ok(Value::Flag(Member { class, member }));
            }
            (Kind::Derived | Kind::Flag, _) => return Err(Bail(&"an instance of a derived class")),
            _ => {}
        }
        if entry.mutable {
            return Ok(Value::Object(Rc::new(Object::new(class, entry.traits, fields, false))));
        }
        let record = Rc::new(Record { class, traits: entry.traits, sender: NO_SENDER, fields });
        Ok(if entry.kind == Kind::Tuple { Value::Named(record) } else { Value::Record(record) })
    }

    /// The flags of a class that are not among these.
    #[inline(never)]
    fn other_flags(&self, flag: Member) -> Value {
        Value::Flag(Member { class: flag.class, member: self.program.all_flags(flag.class) & !flag.member })
    }

    fn replace(&mut self, value: &'a Expression, changes: &'a [(u32, Expression)], frame: Frame) -> Answer<Value> {
        let value = self.evaluate(value, frame)?;
        let (class, mut fields) = match &value {
            Value::Named(record) | Value::Record(record) => (record.class, record.fields.clone()),
            Value::Object(object) => (object.class, object.read().clone()),
            _ => return Err(Bail(&"replace of an unusual value")),
        };
        let entry = &self.program.classes[class as usize];
        for (name, change) in changes {
            let change = self.evaluate(change, frame)?;
            match entry.attributes[*name as usize] {
                Attribute::Field(field) => fields[field as usize] = change,
                _ => return Err(Bail(&"replace of an unknown field")),
            }
        }
        self.instance(class, fields)
    }

    #[inline(never)]
    fn builtin_call(&mut self, call: &'a BuiltinCall, frame: Frame) -> Answer<Value> {
        match (call.builtin, call.arguments.is_empty()) {
            (Builtin::Set, true) => return Ok(Value::set(Default::default())),
            (Builtin::FrozenSet, true) => return Ok(Value::frozen_set(Default::default())),
            _ => {}
        }
        if let (Builtin::Len, [argument]) = (call.builtin, &*call.arguments)
            && !matches!(argument, Expression::Starred(_))
        {
            let value = self.evaluate(argument, frame)?;
            return Ok(Value::Int(length(&value)? as i64));
        }
        self.call_builtin(call, frame)
    }
}

/// Python's `left is right`, where it does not depend on how values are stored.
fn is_same(left: &Value, right: &Value) -> Answer<bool> {
    use Value as V;
    const STORED: Bail = Bail(&"`is` of values that may be stored twice");
    match (left, right) {
        (V::None, V::None) | (V::Process, V::Process) => Ok(true),
        (V::Bool(a), V::Bool(b)) => Ok(a == b),
        (V::Enum(a), V::Enum(b)) | (V::Flag(a), V::Flag(b)) => Ok(a == b),
        (V::Deque(a), V::Deque(b)) if !a.is_locked() && !b.is_locked() => Ok(Rc::ptr_eq(a, b)),
        (V::List(a), V::List(b)) if !a.is_locked() && !b.is_locked() => Ok(Rc::ptr_eq(a, b)),
        (V::Dict(a), V::Dict(b)) if !a.is_locked() && !b.is_locked() => Ok(Rc::ptr_eq(a, b)),
        (V::Set(a), V::Set(b)) if !a.is_locked() && !b.is_locked() => Ok(Rc::ptr_eq(a, b)),
        (V::Object(a), V::Object(b)) if !a.is_locked() && !b.is_locked() => Ok(Rc::ptr_eq(a, b)),
        (V::Unset, _) | (_, V::Unset) | (V::Float(_), V::Float(_)) => Err(STORED),
        _ if std::mem::discriminant(left) != std::mem::discriminant(right) => Ok(false),
        _ if equal(left, right)? => Err(STORED),
        _ => Ok(false),
    }
}

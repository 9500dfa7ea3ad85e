//! Statements and targets of assignments.

use super::operators::{binary, binary_in_place, require_short};
use super::sequence::{assign_slice, delete_item, delete_slice, set_item, subscript};
use super::{Frame, Go, Run};
use crate::vm::program::{Binary, Expression, Statement, Target};
use crate::vm::value::{Items, Value};
use crate::vm::{Answer, Bail};

/// How a block ends.
pub enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
}

const UNPACK: Bail = Bail(&"unpacking of another number of values");

impl<'a> Run<'a> {
    /// Run the body of a function or lambda.
    pub(super) fn body(&mut self, body: &'a [Statement], frame: Frame) -> Answer<Value> {
        if let [Statement::Return(Some(value))] = body {
            return self.evaluate(value, frame);
        }
        match self.block(body, frame)? {
            Flow::Return(value) => Ok(value),
            _ => Ok(Value::None),
        }
    }

    fn block(&mut self, block: &'a [Statement], frame: Frame) -> Answer<Flow> {
        for statement in block {
            match self.statement(statement, frame)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &'a Statement, frame: Frame) -> Answer<Flow> {
        match statement {
            Statement::Evaluate(value) => {
                self.evaluate(value, frame)?;
            }
            Statement::AssignLocal(slot, value) => {
                let value = self.evaluate(value, frame)?;
                self.set_local(frame, *slot, value);
            }
            Statement::Parallel(targets, values) => {
                // Python makes a tuple, which nobody sees.
                let mut found = Items::with_capacity(values.len());
                for value in values {
                    found.push(self.evaluate(value, frame)?);
                }
                for (target, value) in targets.iter().zip(found) {
                    self.assign(target, value, frame)?;
                }
            }
            Statement::Assign(targets, value) => {
                let value = self.evaluate(value, frame)?;
                if let [target] = &**targets {
                    self.assign(target, value, frame)?;
                } else {
                    for target in targets {
                        self.assign(target, value.clone(), frame)?;
                    }
                }
            }
            Statement::Augmented(parts) => self.augmented(&parts.0, parts.1, &parts.2, frame)?,
            Statement::If(parts) => {
                let chosen = if self.test(&parts.0, frame)? { &parts.1 } else { &parts.2 };
                return self.block(chosen, frame);
            }
            Statement::While(parts) => {
                while self.test(&parts.0, frame)? {
                    self.burn()?;
                    match self.block(&parts.1, frame)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => return Ok(Flow::Next),
                        Flow::Return(value) => return Ok(Flow::Return(value)),
                    }
                }
                return self.block(&parts.2, frame);
            }
            Statement::For(parts) => return self.for_loop(parts, frame),
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
            Statement::Return(value) => {
                return Ok(Flow::Return(match value {
                    Some(value) => self.evaluate(value, frame)?,
                    None => Value::None,
                }));
            }
            Statement::Delete(target) => self.delete(target, frame)?,
            Statement::Assert(test) => {
                if !self.test(test, frame)? {
                    return Err(Bail(&"a failed assertion"));
                }
            }
            Statement::Raise => return Err(Bail(&"raise")),
        }
        Ok(Flow::Next)
    }

    fn for_loop(
        &mut self,
        parts: &'a (Target, Expression, Box<[Statement]>, Box<[Statement]>),
        frame: Frame,
    ) -> Answer<Flow> {
        let (target, iterable, body, otherwise) = parts;
        let mut result = Flow::Next;
        let mut ended = true;
        self.iterate(iterable, frame, true, &mut |run, value| {
            run.assign(target, value, frame)?;
            match run.block(body, frame)? {
                Flow::Next | Flow::Continue => Ok(Go::On),
                Flow::Break => {
                    ended = false;
                    Ok(Go::Stop)
                }
                returned => {
                    ended = false;
                    result = returned;
                    Ok(Go::Stop)
                }
            }
        })?;
        if ended { self.block(otherwise, frame) } else { Ok(result) }
    }

    pub(super) fn assign(&mut self, target: &'a Target, value: Value, frame: Frame) -> Answer<()> {
        match target {
            Target::Local(slot) => {
                self.set_local(frame, *slot, value);
                Ok(())
            }
            Target::Attribute(Expression::Local(slot), name) if matches!(self.local(frame, *slot), Value::Process) => {
                self.set_attribute(&Value::Process, *name, value)
            }
            Target::Attribute(object, name) => {
                let object = self.evaluate(object, frame)?;
                self.set_attribute(&object, *name, value)
            }
            Target::Subscript(two) => {
                let container = self.evaluate(&two.0, frame)?;
                let index = self.evaluate(&two.1, frame)?;
                set_item(&container, index, value)
            }
            Target::Slice(parts) => {
                let container = self.evaluate(&parts.0, frame)?;
                let bounds = self.bounds(&parts.1, frame)?;
                let items = self.items_of(&value)?;
                assign_slice(&container, bounds, items)
            }
            Target::Starred(_) => Err(Bail(&"a starred target alone")),
            Target::Tuple(targets) => self.unpack(targets, &value, frame),
        }
    }

    fn unpack(&mut self, targets: &'a [Target], value: &Value, frame: Frame) -> Answer<()> {
        let star = targets.iter().position(|target| matches!(target, Target::Starred(_)));
        if let (Some(items), None) = (value.as_items(), star) {
            if items.len() != targets.len() {
                return Err(UNPACK);
            }
            for (target, item) in targets.iter().zip(items.iter()) {
                self.assign(target, item.clone(), frame)?;
            }
            return Ok(());
        }
        let items = self.items_of(value)?;
        let Some(star) = star else {
            if items.len() != targets.len() {
                return Err(UNPACK);
            }
            return targets.iter().zip(items).try_for_each(|(target, item)| self.assign(target, item, frame));
        };
        let after = targets.len() - star - 1;
        let middle = items.len().checked_sub(star + after).ok_or(UNPACK)?;
        let mut items = items.into_iter();
        for (place, target) in targets.iter().enumerate() {
            let (target, value) = match target {
                Target::Starred(inner) if place == star => {
                    (&**inner, Value::list(items.by_ref().take(middle).collect()))
                }
                _ => (target, items.next().ok_or(UNPACK)?),
            };
            self.assign(target, value, frame)?;
        }
        Ok(())
    }

    fn augmented(&mut self, target: &'a Target, operator: Binary, value: &'a Expression, frame: Frame) -> Answer<()> {
        match target {
            Target::Local(slot) => {
                let old = self.local(frame, *slot).clone();
                if old.is_unset() {
                    return Err(Bail(&"a variable without a value"));
                }
                let operand = self.evaluate(value, frame)?;
                let new = self.combined(operator, old, &operand)?;
                self.set_local(frame, *slot, new);
                Ok(())
            }
            Target::Attribute(object, name) => {
                let object = self.evaluate(object, frame)?;
                let old = self.attribute(&object, *name)?;
                let operand = self.evaluate(value, frame)?;
                let new = self.combined(operator, old, &operand)?;
                self.set_attribute(&object, *name, new)
            }
            Target::Subscript(two) => {
                let container = self.evaluate(&two.0, frame)?;
                let index = self.evaluate(&two.1, frame)?;
                let old = subscript(&container, &index)?;
                let operand = self.evaluate(value, frame)?;
                let new = self.combined(operator, old, &operand)?;
                set_item(&container, index, new)
            }
            _ => Err(Bail(&"an augmented assignment to a slice")),
        }
    }

    /// The value after `old operator= operand`: the same object if it can change in place.
    fn combined(&mut self, operator: Binary, old: Value, operand: &Value) -> Answer<Value> {
        match (&old, operator) {
            (Value::Int(_), _) => binary(operator, &old, operand),
            (Value::List(list), Binary::Add) => {
                let items = self.items_of(operand)?;
                let mut changed = list.write()?;
                require_short(changed.len() + items.len())?;
                changed.extend(items);
                drop(changed);
                Ok(old)
            }
            (Value::Deque(deque), Binary::Add) => {
                let items = self.items_of(operand)?;
                require_short(deque.read().len() + items.len())?;
                items.into_iter().try_for_each(|item| deque.append(item))?;
                Ok(old)
            }
            _ => binary_in_place(operator, old, operand),
        }
    }

    fn delete(&mut self, target: &'a Target, frame: Frame) -> Answer<()> {
        match target {
            Target::Local(slot) => {
                if self.local(frame, *slot).is_unset() {
                    return Err(Bail(&"a variable without a value"));
                }
                self.set_local(frame, *slot, Value::Unset);
                Ok(())
            }
            Target::Subscript(two) => {
                let container = self.evaluate(&two.0, frame)?;
                let index = self.evaluate(&two.1, frame)?;
                delete_item(&container, &index)
            }
            Target::Slice(parts) => {
                let container = self.evaluate(&parts.0, frame)?;
                let bounds = self.bounds(&parts.1, frame)?;
                delete_slice(&container, bounds)
            }
            Target::Tuple(targets) => targets.iter().try_for_each(|target| self.delete(target, frame)),
            Target::Attribute(..) | Target::Starred(_) => Err(Bail(&"del of an attribute")),
        }
    }
}

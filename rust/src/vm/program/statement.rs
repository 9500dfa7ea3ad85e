//! Loads statements and targets.

use super::expression::{binary, has_star, unsupported};
use super::json::{Loaded, array, at, node, optional, text};
use super::load::Loader;
use super::{Block, Expression, Statement, Target};
use serde_json::Value as Json;

impl Loader {
    pub(super) fn target(&mut self, json: &Json) -> Loaded<Target> {
        let (name, fields) = node(json)?;
        Ok(match name {
            "LocalTarget" => Target::Local(self.slot(at(fields, 0)?)?),
            "AttributeTarget" => {
                let value = self.expression(at(fields, 0)?)?;
                Target::Attribute(value, self.symbol(text(at(fields, 1)?)?))
            }
            "SubscriptTarget" => {
                let value = self.expression(at(fields, 0)?)?;
                match self.bounds(at(fields, 1)?)? {
                    Some(bounds) => Target::Slice(Box::new((value, bounds))),
                    None => Target::Subscript(Box::new((value, self.expression(at(fields, 1)?)?))),
                }
            }
            "StarredTarget" => Target::Starred(Box::new(self.target(at(fields, 0)?)?)),
            "TupleTarget" => {
                let targets = array(at(fields, 0)?)?.iter().map(|json| self.target(json));
                let targets = targets.collect::<Loaded<Box<[Target]>>>()?;
                if targets.iter().filter(|t| matches!(t, Target::Starred(_))).count() > 1 {
                    return Err("two starred targets".to_owned());
                }
                Target::Tuple(targets)
            }
            other => return Err(format!("unknown target {other}")),
        })
    }

    pub(super) fn block(&mut self, json: &Json) -> Loaded<Block> {
        array(json)?.iter().map(|statement| self.statement(statement)).collect()
    }

    fn statement(&mut self, json: &Json) -> Loaded<Statement> {
        use Statement as S;
        let (name, fields) = node(json)?;
        Ok(match name {
            "Evaluate" => S::Evaluate(self.expression(at(fields, 0)?)?),
            "Assign" => {
                let targets = array(at(fields, 0)?)?.iter().map(|json| self.target(json));
                let targets = targets.collect::<Loaded<Box<[Target]>>>()?;
                let value = self.expression(at(fields, 1)?)?;
                assignment(targets, value)
            }
            "AugmentedAssign" => {
                let target = self.target(at(fields, 0)?)?;
                let operator = binary(text(at(fields, 1)?)?)?;
                S::Augmented(Box::new((target, operator, self.expression(at(fields, 2)?)?)))
            }
            "If" | "While" => {
                let test = self.test(at(fields, 0)?)?;
                let parts = Box::new((test, self.block(at(fields, 1)?)?, self.block(at(fields, 2)?)?));
                if name == "If" { S::If(parts) } else { S::While(parts) }
            }
            "For" => S::For(Box::new((
                self.target(at(fields, 0)?)?,
                self.expression(at(fields, 1)?)?,
                self.block(at(fields, 2)?)?,
                self.block(at(fields, 3)?)?,
            ))),
            "Break" => S::Break,
            "Continue" => S::Continue,
            "Return" => S::Return(optional(at(fields, 0)?, |json| self.expression(json))?),
            "Delete" => S::Delete(self.target(at(fields, 0)?)?),
            "Assert" => S::Assert(self.expression(at(fields, 0)?)?),
            "Raise" => S::Raise,
            other => S::Evaluate(Expression::Unsupported(unsupported("statement", other))),
        })
    }
}

fn assignment(targets: Box<[Target]>, value: Expression) -> Statement {
    let is_parallel = match (&*targets, &value) {
        ([Target::Local(slot)], _) => return Statement::AssignLocal(*slot, value),
        ([Target::Tuple(parts)], Expression::Tuple(items)) => {
            let starred = parts.iter().any(|part| matches!(part, Target::Starred(_)));
            parts.len() == items.len() && !starred && !has_star(items)
        }
        _ => false,
    };
    if !is_parallel {
        return Statement::Assign(targets, value);
    }
    match (targets.into_vec().pop(), value) {
        (Some(Target::Tuple(parts)), Expression::Tuple(items)) => Statement::Parallel(parts, items),
        (target, value) => Statement::Assign(target.into_iter().collect(), value),
    }
}

//! Functions that reduce an iterable to a value. Where the order of a set cannot reach the result, it does not count.

use super::Builtin;
use super::builtins::{ARGUMENTS, Options, Source, has_options};
use crate::vm::program::Binary;
use crate::vm::run::operators::binary;
use crate::vm::run::{Go, Run};
use crate::vm::value::Value;
use crate::vm::value::compare::{Relation, equal, identical, ordered, same_order};
use crate::vm::{Answer, Bail};

impl<'a> Run<'a> {
    pub(super) fn reduced(&mut self, builtin: Builtin, sources: &[Source<'a>], options: &Options) -> Answer<Value> {
        use Builtin as B;
        match (builtin, sources) {
            (B::All, [source]) if !has_options(options) => {
                self.quantified(source, false).map(|found| Value::Bool(!found))
            }
            (B::Any, [source]) if !has_options(options) => self.quantified(source, true).map(Value::Bool),
            (B::Sum, [source]) => {
                let start = options.start.clone().unwrap_or(Value::Int(0));
                self.sum(source, start)
            }
            (B::Sum, [source, Source::Value(start)]) if !has_options(options) => self.sum(source, start.clone()),
            (B::Prod, [source]) if !has_options(options) => {
                let mut product = Value::Int(1);
                self.each(source, true, &mut |_, value| {
                    product = binary(Binary::Multiply, &product, &value)?;
                    Ok(Go::On)
                })?;
                Ok(product)
            }
            (B::Min | B::Max, _) => self.extreme(builtin, sources, options),
            (B::Sorted, [source]) => {
                let unordered = options.key.is_none() || options.pure;
                let items = self.collect(source, !unordered)?;
                Ok(Value::list(self.sorted(items, options.key.as_ref(), is_true(&options.reverse))?))
            }
            (B::Reduce, [Source::Value(function), source, rest @ ..]) => {
                let mut result = match rest {
                    [] => None,
                    [Source::Value(first)] => Some(first.clone()),
                    _ => return Err(ARGUMENTS),
                };
                self.each(source, true, &mut |run, value| {
                    result = Some(match result.take() {
                        None => value,
                        Some(before) => run.call_value(function, &[before, value])?,
                    });
                    Ok(Go::On)
                })?;
                result.ok_or(Bail(&"reduce of nothing"))
            }
            (B::Next, [source, rest @ ..]) => {
                if !matches!(source, Source::Lazy(..)) {
                    return Err(Bail(&"next of a value"));
                }
                let mut found = None;
                self.each(source, true, &mut |_, value| {
                    found = Some(value);
                    Ok(Go::Stop)
                })?;
                match (found, rest) {
                    (Some(value), _) => Ok(value),
                    (None, [Source::Value(default)]) => Ok(default.clone()),
                    _ => Err(Bail(&"next of nothing")),
                }
            }
            _ => Err(ARGUMENTS),
        }
    }

    /// Whether a value has this truth.
    fn quantified(&mut self, source: &Source<'a>, wanted: bool) -> Answer<bool> {
        let mut found = false;
        self.each(source, false, &mut |_, value| {
            found = value.truth() == wanted;
            Ok(if found { Go::Stop } else { Go::On })
        })?;
        Ok(found)
    }

    fn sum(&mut self, source: &Source<'a>, start: Value) -> Answer<Value> {
        if matches!(start, Value::Str(_) | Value::Bytes(_)) {
            return Err(ARGUMENTS);
        }
        let mut total = start;
        self.each(source, false, &mut |_, value| {
            if matches!(value, Value::Float(_)) {
                // Python 3.12 adds floats more precisely than before.
                return Err(Bail(&"sum of floats"));
            }
            total = match (&total, &value) {
                (Value::List(_), Value::List(_)) | (Value::Tuple(_) | Value::Named(_), _) => {
                    binary(Binary::Add, &total, &value)?
                }
                (Value::Int(_) | Value::Bool(_) | Value::Float(_) | Value::Fraction(_) | Value::Dict(_), _) => {
                    binary(Binary::Add, &total, &value)?
                }
                _ => return Err(ARGUMENTS),
            };
            Ok(Go::On)
        })?;
        if !matches!(total, Value::Int(_) | Value::Bool(_)) {
            self.note_unclear();
        }
        Ok(total)
    }

    fn extreme(&mut self, builtin: Builtin, sources: &[Source<'a>], options: &Options) -> Answer<Value> {
        if options.start.is_some() || options.reverse.is_some() || options.strict.is_some() {
            return Err(ARGUMENTS);
        }
        let relation = if builtin == Builtin::Min { Relation::Less } else { Relation::Greater };
        let mut best: Option<(Value, Value)> = None;
        let key = options.key.as_ref();
        let mut take = |run: &mut Run<'a>, item: Value| -> Answer<Go> {
            run.burn()?;
            let rank = match key {
                Some(key) => run.call_value(key, std::slice::from_ref(&item))?,
                None => item.clone(),
            };
            let Some((known, known_rank)) = &best else {
                best = Some((item, rank));
                return Ok(Go::On);
            };
            if let (Value::Int(a), Value::Int(b), None) = (&rank, known_rank, key) {
                if relation.holds(a.cmp(b)) {
                    best = Some((item, rank));
                }
                return Ok(Go::On);
            }
            let better = ordered(&rank, known_rank, relation)?;
            // Where two are equally good, or have no order, the first one is taken.
            let unclear =
                !same_order(&rank, known_rank) || !better && equal(&rank, known_rank)? && !identical(known, &item);
            if unclear {
                run.note_unclear();
            }
            if better {
                best = Some((item, rank));
            }
            Ok(Go::On)
        };
        match sources {
            [] => return Err(ARGUMENTS),
            [source] => {
                let unordered = key.is_none() || options.pure;
                self.each(source, !unordered, &mut take)?;
            }
            several => {
                if options.default.is_some() {
                    return Err(ARGUMENTS);
                }
                for source in several {
                    let Source::Value(value) = source else { return Err(ARGUMENTS) };
                    take(self, value.clone())?;
                }
            }
        }
        match (best, &options.default) {
            (Some((value, _)), _) => Ok(value),
            (None, Some(default)) if sources.len() == 1 => Ok(default.clone()),
            _ => Err(Bail(&"min or max of nothing")),
        }
    }

    /// Sort as Python does: stable, by `<` only.
    pub fn sorted(&mut self, items: Vec<Value>, key: Option<&Value>, reverse: bool) -> Answer<Vec<Value>> {
        if key.is_none() && items.iter().all(|item| matches!(item, Value::Int(_))) {
            let mut numbers: Vec<i64> = items.iter().filter_map(Value::as_int).collect();
            numbers.sort_unstable();
            if reverse {
                numbers.reverse();
            }
            return Ok(numbers.into_iter().map(Value::Int).collect());
        }
        let mut ranked = Vec::with_capacity(items.len());
        for item in items {
            self.burn()?;
            let rank = match key {
                Some(key) => self.call_value(key, std::slice::from_ref(&item))?,
                None => item.clone(),
            };
            ranked.push((rank, item));
        }
        self.sorted_by_rank(ranked, reverse)
    }

    /// Sort items with their ranks, by `<` of the ranks.
    pub fn sorted_by_rank(&mut self, mut ranked: Vec<(Value, Value)>, reverse: bool) -> Answer<Vec<Value>> {
        ranked.iter().try_for_each(|(rank, _)| require_order(rank, 0))?;
        // Python reverses before and after, so that equal items keep their order.
        if reverse {
            ranked.reverse();
        }
        let mut ranked = merge_sorted(ranked)?;
        if reverse {
            ranked.reverse();
        }
        for two in ranked.windows(2) {
            if !identical(&two[0].1, &two[1].1) && !ordered(&two[0].0, &two[1].0, strict(reverse))? {
                self.note_unclear();
            }
        }
        Ok(ranked.into_iter().map(|(_, item)| item).collect())
    }
}

fn strict(reverse: bool) -> Relation {
    if reverse { Relation::Greater } else { Relation::Less }
}

pub fn is_true(option: &Option<Value>) -> bool {
    option.as_ref().is_some_and(Value::truth)
}

/// Bail on values whose order is not total: how they are sorted depends on the algorithm.
fn require_order(value: &Value, depth: u32) -> Answer<()> {
    match value {
        Value::Set(_) | Value::FrozenSet(_) => Err(Bail(&"sorting by sets")),
        Value::Float(x) if x.is_nan() => Err(Bail(&"sorting by NaN")),
        _ if depth > 100 => Err(Bail(&"a value that is nested too deeply")),
        Value::Tuple(items) => items.iter().try_for_each(|item| require_order(item, depth + 1)),
        Value::Named(record) | Value::Record(record) => {
            record.fields.iter().try_for_each(|item| require_order(item, depth + 1))
        }
        Value::List(list) => list.read().iter().try_for_each(|item| require_order(item, depth + 1)),
        Value::Deque(deque) => deque.read().iter().try_for_each(|item| require_order(item, depth + 1)),
        Value::Derived(derived) => require_order(&derived.content, depth + 1),
        Value::Dict(_) => Err(Bail(&"sorting by dicts")),
        _ => Ok(()),
    }
}

/// A stable sort that can fail.
fn merge_sorted(mut items: Vec<(Value, Value)>) -> Answer<Vec<(Value, Value)>> {
    if items.len() <= 8 {
        for end in 1..items.len() {
            let mut place = end;
            while place > 0 && ordered(&items[place].0, &items[place - 1].0, Relation::Less)? {
                items.swap(place, place - 1);
                place -= 1;
            }
        }
        return Ok(items);
    }
    let right = items.split_off(items.len() / 2);
    let (left, right) = (merge_sorted(items)?, merge_sorted(right)?);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let from_right = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) => ordered(&b.0, &a.0, Relation::Less)?,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return Ok(merged),
        };
        merged.extend(if from_right { right.next() } else { left.next() });
    }
}

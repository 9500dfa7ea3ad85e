//! Functions that return iterators: `map`, `zip`, `enumerate`, and those of `itertools`.

use super::Builtin;
use super::builtins::{ARGUMENTS, Options, Source};
use super::reduce::is_true;
use crate::vm::program::Binary;
use crate::vm::run::operators::binary;
use crate::vm::run::{Go, Run, Visit};
use crate::vm::value::Value;
use crate::vm::{Answer, Bail};

impl<'a> Run<'a> {
    /// Hand the values of such an iterator to a function.
    pub fn iterate_lazy(
        &mut self,
        builtin: Builtin,
        sources: &[Source<'a>],
        options: &Options,
        ordered: bool,
        visit: &mut Visit<'_, 'a>,
    ) -> Answer<Go> {
        use Builtin as B;
        match (builtin, sources) {
            (B::Iter, [source]) => self.each(source, ordered, visit),
            (B::Map, [Source::Value(function), source]) => self.each(source, ordered, &mut |run, value| {
                let mapped = run.call_value(function, &[value])?;
                visit(run, mapped)
            }),
            (B::Map, [Source::Value(function), several @ ..]) => {
                self.zipped(several, options, false, &mut |run, values| {
                    let mapped = run.call_value(function, &values)?;
                    visit(run, mapped)
                })
            }
            (B::Zip, several) => {
                let strict = is_true(&options.strict);
                self.zipped(several, options, strict, &mut |run, values| visit(run, Value::tuple(values)))
            }
            (B::Starmap, [Source::Value(function), source]) => self.each(source, ordered, &mut |run, value| {
                let arguments = run.items_of(&value)?;
                let mapped = run.call_value(function, &arguments)?;
                visit(run, mapped)
            }),
            (B::Filter | B::FilterFalse, [Source::Value(function), source]) => {
                self.each(source, ordered, &mut |run, value| {
                    let holds = match function {
                        Value::None => value.truth(),
                        _ => run.call_value(function, std::slice::from_ref(&value))?.truth(),
                    };
                    if holds == (builtin == B::Filter) { visit(run, value) } else { Ok(Go::On) }
                })
            }
            (B::TakeWhile | B::DropWhile, [Source::Value(function), source]) => {
                let mut dropping = builtin == B::DropWhile;
                let mut ended = false;
                let go = self.each(source, true, &mut |run, value| {
                    if builtin == B::TakeWhile || dropping {
                        let holds = run.call_value(function, std::slice::from_ref(&value))?.truth();
                        if builtin == B::TakeWhile && !holds {
                            ended = true;
                            return Ok(Go::Stop);
                        }
                        if builtin == B::DropWhile && holds {
                            return Ok(Go::On);
                        }
                        dropping = false;
                    }
                    visit(run, value)
                })?;
                // It ends, but its consumer goes on.
                Ok(if ended { Go::On } else { go })
            }
            (B::Enumerate, [source, rest @ ..]) => {
                let mut number = match (rest, &options.start) {
                    ([], None) => 0,
                    ([], Some(start)) | ([Source::Value(start)], None) => start.as_int().ok_or(ARGUMENTS)?,
                    _ => return Err(ARGUMENTS),
                };
                self.each(source, true, &mut |run, value| {
                    let pair = Value::pair(Value::Int(number), value);
                    number += 1;
                    visit(run, pair)
                })
            }
            (B::Reversed, [Source::Value(value)]) => self.reversed(value, visit),
            (B::Chain, several) => {
                for source in several {
                    if self.each(source, ordered, visit)? == Go::Stop {
                        return Ok(Go::Stop);
                    }
                }
                Ok(Go::On)
            }
            (B::ChainFromIterable, [source]) => {
                self.each(source, ordered, &mut |run, value| run.iterate_value(&value, ordered, visit))
            }
            (B::Pairwise, [source]) => {
                let mut before: Option<Value> = None;
                self.each(source, true, &mut |run, value| match before.replace(value.clone()) {
                    None => Ok(Go::On),
                    Some(first) => visit(run, Value::pair(first, value)),
                })
            }
            (B::Accumulate, [source, rest @ ..]) => {
                let function = match rest {
                    [] | [Source::Value(Value::None)] => None,
                    [Source::Value(function)] => Some(function),
                    _ => return Err(ARGUMENTS),
                };
                let mut total = options.initial.clone().filter(|initial| !matches!(initial, Value::None));
                if let Some(initial) = &total
                    && visit(self, initial.clone())? == Go::Stop
                {
                    return Ok(Go::Stop);
                }
                self.each(source, true, &mut |run, value| {
                    let next = match (total.take(), function) {
                        (None, _) => value,
                        (Some(before), Some(function)) => run.call_value(function, &[before, value])?,
                        (Some(before), None) => binary(Binary::Add, &before, &value)?,
                    };
                    total = Some(next.clone());
                    visit(run, next)
                })
            }
            (B::Islice, [source, bounds @ ..]) => self.islice(source, bounds, visit),
            (B::Repeat, [Source::Value(value), Source::Value(times)]) => {
                for _ in 0..times.as_int().ok_or(ARGUMENTS)? {
                    self.burn()?;
                    if visit(self, value.clone())? == Go::Stop {
                        return Ok(Go::Stop);
                    }
                }
                Ok(Go::On)
            }
            (B::Combinations | B::CombinationsWithReplacement, [source, Source::Value(size)]) => {
                let pool = self.collect(source, true)?;
                let size = usize::try_from(size.as_int().ok_or(ARGUMENTS)?).map_err(|_| ARGUMENTS)?;
                let again = builtin == B::CombinationsWithReplacement;
                self.combinations(&pool, size, again, visit)
            }
            (B::Permutations, [source, rest @ ..]) => {
                let pool = self.collect(source, true)?;
                let size = match rest {
                    [] | [Source::Value(Value::None)] => pool.len(),
                    [Source::Value(size)] => usize::try_from(size.as_int().ok_or(ARGUMENTS)?).map_err(|_| ARGUMENTS)?,
                    _ => return Err(ARGUMENTS),
                };
                let mut places = Vec::with_capacity(size);
                if size > pool.len() { Ok(Go::On) } else { self.permutations(&pool, size, &mut places, visit) }
            }
            (B::Product, several) => {
                let mut pools = Vec::new();
                for source in several {
                    pools.push(self.collect(source, true)?);
                }
                let times = match &options.repeat {
                    None => 1,
                    Some(times) => usize::try_from(times.as_int().ok_or(ARGUMENTS)?).map_err(|_| ARGUMENTS)?,
                };
                let pools: Vec<&[Value]> = (0..times).flat_map(|_| pools.iter().map(Vec::as_slice)).collect();
                self.product(&pools, &mut Vec::new(), visit)
            }
            _ => Err(ARGUMENTS),
        }
    }

    /// The values of several iterables side by side, until one ends.
    fn zipped(
        &mut self,
        sources: &[Source<'a>],
        options: &Options,
        strict: bool,
        each: &mut dyn FnMut(&mut Run<'a>, Vec<Value>) -> Answer<Go>,
    ) -> Answer<Go> {
        let mut cursors = Vec::with_capacity(sources.len());
        for source in sources {
            cursors.push(match source {
                Source::Value(value) => self.cursor(value, true)?,
                Source::Lazy(..) if options.pure => {
                    let items = self.collect(source, true)?;
                    crate::vm::run::Cursor::Collected(items.into_iter())
                }
                Source::Lazy(..) => return Err(Bail(&"zip of generators with effects")),
            });
        }
        if cursors.is_empty() {
            return Ok(Go::On);
        }
        loop {
            self.burn()?;
            let mut values = Vec::with_capacity(cursors.len());
            for cursor in &mut cursors {
                match cursor.next()? {
                    Some(value) => values.push(value),
                    None if strict => {
                        // All end together, or it is an error.
                        let others = values.is_empty() && all_ended(&mut cursors[1..])?;
                        return if others { Ok(Go::On) } else { Err(Bail(&"zip of different lengths")) };
                    }
                    None => return Ok(Go::On),
                }
            }
            if each(self, values)? == Go::Stop {
                return Ok(Go::Stop);
            }
        }
    }

    fn reversed(&mut self, value: &Value, visit: &mut Visit<'_, 'a>) -> Answer<Go> {
        if let Value::List(list) = value {
            // The list may change meanwhile: Python goes on by index.
            let mut place = list.read().len();
            while place > 0 {
                self.burn()?;
                place -= 1;
                let Some(item) = list.read().get(place).cloned() else { break };
                if visit(self, item)? == Go::Stop {
                    return Ok(Go::Stop);
                }
            }
            return Ok(Go::On);
        }
        match value {
            Value::Tuple(_) | Value::Named(_) | Value::Range(_) | Value::Str(_) | Value::Derived(_) => {}
            Value::Deque(deque) => {
                let version = deque.version();
                for item in self.items_of(value)?.into_iter().rev() {
                    if deque.version() != version {
                        return Err(Bail(&"a deque that changes while it is iterated"));
                    }
                    if visit(self, item)? == Go::Stop {
                        return Ok(Go::Stop);
                    }
                }
                // Python looks once more.
                let changed = deque.version() != version;
                return if changed { Err(Bail(&"a deque that changes while it is iterated")) } else { Ok(Go::On) };
            }
            _ => return Err(Bail(&"reversed of an unusual value")),
        }
        for item in self.items_of(value)?.into_iter().rev() {
            if visit(self, item)? == Go::Stop {
                return Ok(Go::Stop);
            }
        }
        Ok(Go::On)
    }

    fn islice(&mut self, source: &Source<'a>, bounds: &[Source<'a>], visit: &mut Visit<'_, 'a>) -> Answer<Go> {
        let bound = |source: &Source<'a>| match source {
            Source::Value(Value::None) => Ok(None),
            Source::Value(value) => {
                let number = value.as_int().and_then(|number| usize::try_from(number).ok());
                number.map(Some).ok_or(ARGUMENTS)
            }
            Source::Lazy(..) => Err(ARGUMENTS),
        };
        let (start, stop, step) = match bounds {
            [stop] => (0, bound(stop)?, 1),
            [start, stop] => (bound(start)?.unwrap_or(0), bound(stop)?, 1),
            [start, stop, step] => (bound(start)?.unwrap_or(0), bound(stop)?, bound(step)?.unwrap_or(1)),
            _ => return Err(ARGUMENTS),
        };
        if step == 0 {
            return Err(ARGUMENTS);
        }
        let stop = stop.unwrap_or(usize::MAX);
        let (mut place, mut next) = (0, start);
        if next >= stop && start == 0 {
            return Ok(Go::On);
        }
        let mut ended = false;
        let go = self.each(source, true, &mut |run, value| {
            if place == next && place < stop {
                next = next.saturating_add(step);
                if visit(run, value)? == Go::Stop {
                    return Ok(Go::Stop);
                }
            }
            place += 1;
            // Nothing more is taken from the iterable than is needed.
            ended = next >= stop && place >= stop.min(next);
            Ok(if ended { Go::Stop } else { Go::On })
        })?;
        Ok(if ended { Go::On } else { go })
    }

    fn combinations(&mut self, pool: &[Value], size: usize, again: bool, visit: &mut Visit<'_, 'a>) -> Answer<Go> {
        let count = pool.len();
        if !again && size > count || again && count == 0 && size > 0 {
            return Ok(Go::On);
        }
        let mut places: Vec<usize> = if again { vec![0; size] } else { (0..size).collect() };
        loop {
            self.burn()?;
            if visit(self, Value::tuple(places.iter().map(|&place| pool[place].clone())))? == Go::Stop {
                return Ok(Go::Stop);
            }
            let last = |place: usize| if again { count - 1 } else { place + count - size };
            let Some(moved) = (0..size).rev().find(|&place| places[place] != last(place)) else {
                return Ok(Go::On);
            };
            places[moved] += 1;
            for place in moved + 1..size {
                places[place] = if again { places[moved] } else { places[place - 1] + 1 };
            }
        }
    }

    fn permutations(
        &mut self,
        pool: &[Value],
        size: usize,
        places: &mut Vec<usize>,
        visit: &mut Visit<'_, 'a>,
    ) -> Answer<Go> {
        if places.len() == size {
            self.burn()?;
            return visit(self, Value::tuple(places.iter().map(|&place| pool[place].clone())));
        }
        for place in 0..pool.len() {
            if !places.contains(&place) {
                places.push(place);
                let go = self.permutations(pool, size, places, visit)?;
                places.pop();
                if go == Go::Stop {
                    return Ok(Go::Stop);
                }
            }
        }
        Ok(Go::On)
    }

    fn product(&mut self, pools: &[&[Value]], chosen: &mut Vec<Value>, visit: &mut Visit<'_, 'a>) -> Answer<Go> {
        let Some((pool, rest)) = pools.split_first() else {
            self.burn()?;
            return visit(self, Value::tuple(chosen.iter().cloned()));
        };
        for value in *pool {
            chosen.push(value.clone());
            let go = self.product(rest, chosen, visit)?;
            chosen.pop();
            if go == Go::Stop {
                return Ok(Go::Stop);
            }
        }
        Ok(Go::On)
    }
}

fn all_ended(cursors: &mut [crate::vm::run::Cursor]) -> Answer<bool> {
    for cursor in cursors {
        if cursor.next()?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

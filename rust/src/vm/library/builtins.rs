//! Calls of built-in functions: arguments, and the functions that compute a value from values.

use super::copies::{deep, shallow};
use super::{Builtin, Method};
use crate::vm::program::{Binary, BuiltinCall, Expression, Keywords};
use crate::vm::run::fractions::{fraction, fractions};
use crate::vm::run::operators::{as_float, binary, float_divmod, floor_divide, modulo};
use crate::vm::run::sequence::length;
use crate::vm::run::{Frame, Go, Run, Visit};
use crate::vm::value::library::{Factory, Flavour, Fraction};
use crate::vm::value::table::Map;
use crate::vm::value::text::{write_repr, write_str};
use crate::vm::value::{Range, Value};
use crate::vm::{Answer, Bail};
use smallvec::SmallVec;
use std::rc::Rc;

pub const ARGUMENTS: Bail = Bail(&"unusual arguments of a built-in function");

/// An argument: a value, or an iterable that is evaluated while it is consumed.
#[derive(Clone)]
pub enum Source<'a> {
    Value(Value),
    Lazy(&'a Expression, Frame),
}

pub type Sources<'a> = SmallVec<[Source<'a>; 2]>;

/// Keyword arguments, evaluated.
#[derive(Default)]
pub struct Options {
    pub key: Option<Value>,
    pub reverse: Option<Value>,
    pub default: Option<Value>,
    pub start: Option<Value>,
    pub strict: Option<Value>,
    pub repeat: Option<Value>,
    pub initial: Option<Value>,
    /// `maxlen`, `last` or `n`.
    pub only: Option<Value>,
    /// No argument has effects, so that the order of evaluation cannot matter.
    pub pure: bool,
}

impl Builtin {
    /// Whether it returns an iterator.
    pub fn is_lazy(self) -> bool {
        use Builtin as B;
        matches!(
            self,
            B::Map
                | B::Filter
                | B::Zip
                | B::Enumerate
                | B::Reversed
                | B::Iter
                | B::Accumulate
                | B::Chain
                | B::ChainFromIterable
                | B::Combinations
                | B::CombinationsWithReplacement
                | B::DropWhile
                | B::FilterFalse
                | B::Islice
                | B::Pairwise
                | B::Permutations
                | B::Product
                | B::Repeat
                | B::Starmap
                | B::TakeWhile
        )
    }
}

/// Whether an expression is an iterator, which is evaluated while it is consumed.
pub fn is_lazy(argument: &Expression) -> bool {
    match argument {
        Expression::Generator(_) => true,
        Expression::CallBuiltin(call) => call.builtin.is_lazy(),
        _ => false,
    }
}

impl<'a> Run<'a> {
    pub fn call_builtin(&mut self, call: &'a BuiltinCall, frame: Frame) -> Answer<Value> {
        if call.builtin.is_lazy() {
            return Err(Bail(&"an iterator as a value"));
        }
        let (sources, options) = self.sources(call, frame)?;
        self.builtin(call.builtin, &sources, &options)
    }

    /// The arguments of a call.
    pub fn sources(&mut self, call: &'a BuiltinCall, frame: Frame) -> Answer<(Sources<'a>, Options)> {
        let sources = self.argument_sources(&call.arguments, frame)?;
        let mut options = self.options(&call.keywords, frame)?;
        options.pure = call.pure;
        let alone = call.arguments.len() == 1 && !has_options(&options);
        if !call.pure && !alone && sources.iter().any(|source| matches!(source, Source::Lazy(..))) {
            // The other arguments were evaluated first.
            return Err(Bail(&"a generator among arguments with effects"));
        }
        Ok((sources, options))
    }

    pub fn argument_sources(&mut self, arguments: &'a [Expression], frame: Frame) -> Answer<Sources<'a>> {
        let mut sources = Sources::new();
        for argument in arguments {
            if is_lazy(argument) {
                sources.push(Source::Lazy(argument, frame));
            } else if let Expression::Starred(iterable) = argument {
                self.iterate(iterable, frame, true, &mut |_, value| {
                    sources.push(Source::Value(value));
                    Ok(Go::On)
                })?;
            } else {
                let value = self.evaluate(argument, frame)?;
                sources.push(Source::Value(value));
            }
        }
        Ok(sources)
    }

    pub fn options(&mut self, keywords: &'a Keywords, frame: Frame) -> Answer<Options> {
        if !keywords.any {
            return Ok(Options::default());
        }
        let mut value = |expression: &'a Option<Expression>| {
            expression.as_ref().map(|expression| self.evaluate(expression, frame)).transpose()
        };
        Ok(Options {
            key: value(&keywords.key)?.filter(|key| !matches!(key, Value::None)),
            reverse: value(&keywords.reverse)?,
            default: value(&keywords.default)?,
            start: value(&keywords.start)?,
            strict: value(&keywords.strict)?,
            repeat: value(&keywords.repeat)?,
            initial: value(&keywords.initial)?,
            only: value(&keywords.only)?,
            pure: false,
        })
    }

    /// Call a built-in function that is a value.
    pub fn apply_builtin(&mut self, builtin: Builtin, arguments: &[Value]) -> Answer<Value> {
        if builtin.is_lazy() {
            return Err(Bail(&"an iterator as a value"));
        }
        let sources: Sources<'a> = arguments.iter().cloned().map(Source::Value).collect();
        self.builtin(builtin, &sources, &Options::default())
    }

    /// Iterate an argument.
    pub fn each(&mut self, source: &Source<'a>, ordered: bool, visit: &mut Visit<'_, 'a>) -> Answer<Go> {
        match source {
            Source::Value(value) => self.iterate_value(value, ordered, visit),
            Source::Lazy(expression, frame) => {
                // Effects of a generator come in the order of its values.
                let pure = match expression {
                    Expression::Generator(inner) => inner.pure,
                    _ => true,
                };
                self.iterate(expression, *frame, ordered || !pure, visit)
            }
        }
    }

    pub fn collect(&mut self, source: &Source<'a>, ordered: bool) -> Answer<Vec<Value>> {
        let mut items = Vec::new();
        self.each(source, ordered, &mut |_, value| {
            items.push(value);
            Ok(Go::On)
        })?;
        Ok(items)
    }

    fn builtin(&mut self, builtin: Builtin, sources: &[Source<'a>], options: &Options) -> Answer<Value> {
        use Builtin as B;
        match builtin {
            B::All | B::Any | B::Sum | B::Min | B::Max | B::Sorted | B::Reduce | B::Next | B::Prod => {
                return self.reduced(builtin, sources, options);
            }
            B::Set | B::FrozenSet | B::Tuple | B::List | B::Dict | B::FromKeys => {
                return self.collection(builtin, sources, options);
            }
            B::Deque | B::OrderedDict | B::DefaultDict | B::Counter => {
                return self.library_collection(builtin, sources, options);
            }
            _ => {}
        }
        if has_options(options) {
            return Err(ARGUMENTS);
        }
        let mut values = values(sources)?;
        if !matches!(builtin, B::Copy | B::DeepCopy) {
            values.iter_mut().for_each(|value| *value = value.plain().clone());
        }
        Ok(match (builtin, &*values) {
            (B::Len, [value]) => Value::Int(length(value)? as i64),
            (B::Range, bounds) => range(bounds)?,
            (B::Abs, [value]) => match value {
                Value::Float(x) => Value::Float(x.abs()),
                Value::Fraction(x) => fraction(i128::from(x.numerator).abs(), i128::from(x.denominator))?,
                _ => Value::Int(value.as_int().and_then(i64::checked_abs).ok_or(ARGUMENTS)?),
            },
            (B::Bool, []) => Value::Bool(false),
            (B::Bool, [value]) => Value::Bool(value.truth()),
            (B::Int, []) => Value::Int(0),
            (B::Int, [value]) => to_int(value)?,
            (B::Float, [value @ (Value::Int(_) | Value::Bool(_) | Value::Float(_))]) => Value::Float(as_float(value)?),
            (B::Float, [Value::Fraction(x)]) => Value::Float(x.as_float().ok_or(ARGUMENTS)?),
            (B::Floor, [Value::Fraction(x)]) => Value::Int(floor_divide(x.numerator, x.denominator)?),
            (B::Fraction, [number @ Value::Fraction(_)]) => number.clone(),
            (B::Fraction, [number]) => fraction(i128::from(number.as_int().ok_or(ARGUMENTS)?), 1)?,
            (B::Fraction, [a, b]) => fractions(Binary::Divide, &fraction_of(a)?, &fraction_of(b)?)?,
            (B::Str, []) => Value::str(""),
            (B::Str, [value]) => {
                let mut text = String::new();
                write_str(self.program, value, &mut text)?;
                Value::str(&text)
            }
            (B::Repr, [value]) => {
                let mut text = String::new();
                write_repr(self.program, value, &mut text, 0)?;
                Value::str(&text)
            }
            (B::Ord, [Value::Str(text)]) => {
                let mut characters = text.chars();
                match (characters.next(), characters.next()) {
                    (Some(one), None) => Value::Int(i64::from(u32::from(one))),
                    _ => return Err(ARGUMENTS),
                }
            }
            (B::Chr, [value]) => {
                let code = value.as_int().and_then(|code| u32::try_from(code).ok()).and_then(char::from_u32);
                Value::str(code.ok_or(ARGUMENTS)?.encode_utf8(&mut [0; 4]))
            }
            (B::Divmod, [a, b]) => match (a.as_int(), b.as_int()) {
                (Some(a), Some(b)) => Value::pair(Value::Int(floor_divide(a, b)?), Value::Int(modulo(a, b)?)),
                _ => {
                    let (quotient, rest) = float_divmod(as_float(a)?, as_float(b)?)?;
                    Value::pair(Value::Float(quotient), Value::Float(rest))
                }
            },
            (B::Pow, [a, b]) => return binary(Binary::Power, a, b),
            (B::Round, [value]) => Value::Int(value.as_int().ok_or(Bail(&"round of a float"))?),
            (B::Ceil, [Value::Float(x)]) => float_to_int(x.ceil())?,
            (B::Floor, [Value::Float(x)]) => float_to_int(x.floor())?,
            (B::Ceil | B::Floor, [value]) => Value::Int(value.as_int().ok_or(ARGUMENTS)?),
            (B::Copy, [value]) => shallow(value)?,
            (B::DeepCopy, [value]) => deep(value)?,
            (B::Gcd, [a, b]) => {
                let (mut a, mut b) = (a.as_int().ok_or(ARGUMENTS)?, b.as_int().ok_or(ARGUMENTS)?);
                while b != 0 {
                    (a, b) = (b, a.checked_rem(b).unwrap_or(0));
                }
                Value::Int(a.checked_abs().ok_or(ARGUMENTS)?)
            }
            (B::Isqrt, [value]) => {
                let number = value.as_int().filter(|number| (0..1 << 52).contains(number)).ok_or(ARGUMENTS)?;
                let mut root = (number as f64).sqrt() as i64;
                while root * root > number {
                    root -= 1;
                }
                while (root + 1) * (root + 1) <= number {
                    root += 1;
                }
                Value::Int(root)
            }
            _ => return Err(ARGUMENTS),
        })
    }

    fn collection(&mut self, builtin: Builtin, sources: &[Source<'a>], options: &Options) -> Answer<Value> {
        use Builtin as B;
        if has_options(options) {
            return Err(ARGUMENTS);
        }
        Ok(match (builtin, sources) {
            (B::Set, []) => Value::set(Default::default()),
            (B::FrozenSet, []) => Value::frozen_set(Default::default()),
            (B::Tuple, []) => Value::tuple([]),
            (B::List, []) => Value::list(Vec::new()),
            (B::Dict, []) => Value::dict(Map::default()),
            (B::FrozenSet, [Source::Value(value @ Value::FrozenSet(_))]) => value.clone(),
            (B::Tuple, [Source::Value(value @ Value::Tuple(_))]) => value.clone(),
            (B::Set | B::FrozenSet, [source]) => {
                let table = self.table_of(source)?;
                if builtin == B::Set { Value::set(table) } else { Value::frozen_set(table) }
            }
            (B::Tuple, [source]) => Value::tuple(self.collect(source, true)?),
            (B::List, [source]) => Value::list(self.collect(source, true)?),
            (B::Dict, [Source::Value(Value::Dict(dict))]) => Value::dict(dict.read().clone()),
            (B::Dict, [source]) => {
                let mut map = Map::default();
                self.each_pair(source, &mut |key, value| map.set(key, value))?;
                Value::dict(map)
            }
            (B::FromKeys, [keys, rest @ ..]) => {
                let value = match rest {
                    [] => Value::None,
                    [Source::Value(value)] => value.clone(),
                    _ => return Err(ARGUMENTS),
                };
                let mut map = Map::default();
                self.each(keys, true, &mut |_, key| {
                    map.set(key, value.clone())?;
                    Ok(Go::On)
                })?;
                Value::dict(map)
            }
            _ => return Err(ARGUMENTS),
        })
    }

    fn library_collection(&mut self, builtin: Builtin, sources: &[Source<'a>], options: &Options) -> Answer<Value> {
        use Builtin as B;
        let longest = match (builtin, sources, &options.only) {
            (B::Deque, [_, Source::Value(longest)], None) | (B::Deque, [] | [_], Some(longest)) => longest.clone(),
            (B::Deque, [] | [_], None) => Value::None,
            (B::Deque, ..) | (_, _, Some(_)) => return Err(ARGUMENTS),
            _ if has_options(options) => return Err(ARGUMENTS),
            _ => Value::None,
        };
        if builtin == B::Deque {
            let longest = match longest {
                Value::None => None,
                number => Some(usize::try_from(number.as_int().ok_or(ARGUMENTS)?).map_err(|_| ARGUMENTS)?),
            };
            let mut items = sources.first().map_or(Ok(Vec::new()), |source| self.collect(source, true))?;
            let dropped = longest.map_or(0, |longest| items.len().saturating_sub(longest));
            return Ok(Value::deque(items.drain(dropped..).collect(), longest, false));
        }
        let (flavour, sources) = match (builtin, sources) {
            (B::DefaultDict, [Source::Value(Value::None), rest @ ..]) => (Flavour::Default(None), rest),
            (B::DefaultDict, [Source::Value(Value::Str(name)), rest @ ..]) => {
                let class = || self.program.class_numbers.get(&***name).map(|&class| Factory::Class(class));
                let factory = Factory::from_name(name).or_else(class).ok_or(ARGUMENTS)?;
                (Flavour::Default(Some(factory)), rest)
            }
            (B::OrderedDict, sources) => (Flavour::Ordered, sources),
            (B::Counter, sources) => (Flavour::Counter, sources),
            _ => return Err(ARGUMENTS),
        };
        let made = Value::dict_of(Map::default(), flavour, false);
        let Value::Dict(dict) = &made else { return Err(ARGUMENTS) };
        match sources {
            [] => {}
            [source] if builtin == B::Counter => self.count(dict, Binary::Add, source)?,
            [Source::Value(Value::Dict(other))] => *dict.write()? = other.read().clone(),
            [source] => self.each_pair(source, &mut |key, value| dict.write()?.set(key, value))?,
            _ => return Err(ARGUMENTS),
        }
        Ok(made)
    }

    /// The set of the values of an iterable, whose order does not matter.
    pub fn table_of(&mut self, source: &Source<'a>) -> Answer<crate::vm::value::table::Table> {
        match source {
            Source::Value(Value::Set(set)) => return Ok(set.read().clone()),
            Source::Value(Value::FrozenSet(table)) => return Ok((**table).clone()),
            _ => {}
        }
        let mut table = Default::default();
        self.each(source, false, &mut |run, value| {
            run.add_to_set(&mut table, value)?;
            Ok(Go::On)
        })?;
        Ok(table)
    }

    /// Hand the keys and values of an iterable of pairs to a function.
    pub fn each_pair(&mut self, source: &Source<'a>, set: &mut dyn FnMut(Value, Value) -> Answer<()>) -> Answer<()> {
        self.each(source, true, &mut |run, pair| {
            let mut items = run.items_of(&pair)?.into_iter();
            match (items.next(), items.next(), items.next()) {
                (Some(key), Some(value), None) => set(key, value)?,
                _ => return Err(ARGUMENTS),
            }
            Ok(Go::On)
        })?;
        Ok(())
    }

    /// Call a method that is a value, such as `str.lower`.
    pub fn apply_method(&mut self, value: &Value, method: Method, arguments: &[Value]) -> Answer<Value> {
        let sources: Sources<'a> = arguments.iter().cloned().map(Source::Value).collect();
        self.method(value, method, &sources, &Options::default())
    }
}

pub fn has_options(options: &Options) -> bool {
    let Options { key, reverse, default, start, strict, repeat, initial, only, pure: _ } = options;
    [key, reverse, default, start, strict, repeat, initial, only].iter().any(|option| option.is_some())
}

/// The arguments, if none is an iterator.
pub fn values(sources: &[Source<'_>]) -> Answer<SmallVec<[Value; 3]>> {
    sources
        .iter()
        .map(|source| match source {
            Source::Value(value) => Ok(value.clone()),
            Source::Lazy(..) => Err(ARGUMENTS),
        })
        .collect()
}

fn range(bounds: &[Value]) -> Answer<Value> {
    let number = |value: &Value| value.as_int().ok_or(ARGUMENTS);
    let (start, stop, step) = match bounds {
        [stop] => (0, number(stop)?, 1),
        [start, stop] => (number(start)?, number(stop)?, 1),
        [start, stop, step] => (number(start)?, number(stop)?, number(step)?),
        _ => return Err(ARGUMENTS),
    };
    if step == 0 || [start, stop, step].iter().any(|bound| bound.unsigned_abs() > 1 << 60) {
        return Err(ARGUMENTS);
    }
    Ok(Value::Range(Rc::new(Range { start, stop, step })))
}

fn float_to_int(number: f64) -> Answer<Value> {
    if number.abs() < 9.0e18 { Ok(Value::Int(number as i64)) } else { Err(ARGUMENTS) }
}

fn fraction_of(value: &Value) -> Answer<Value> {
    let found = Fraction::of(value).ok_or(ARGUMENTS)?;
    fraction(i128::from(found.numerator), i128::from(found.denominator))
}

fn to_int(value: &Value) -> Answer<Value> {
    match value {
        Value::Fraction(x) => x.numerator.checked_div(x.denominator).map(Value::Int).ok_or(ARGUMENTS),
        Value::Float(x) => float_to_int(x.trunc()),
        Value::Str(text) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(ARGUMENTS);
            }
            text.parse().map(Value::Int).map_err(|_| ARGUMENTS)
        }
        _ => value.as_int().map(Value::Int).ok_or(ARGUMENTS),
    }
}

//! Loads expressions.

use super::json::{Loaded, array, at, bytes, node, number, optional, positions, text};
use super::load::Loader;
use super::{
    Binary, BuiltinCall, Choice, Clause, Comparison, Comprehension, Conversion, Expression, Keywords, Kind, Lambda,
    MethodCall, Slot, TypeTest, Unary,
};
use crate::vm::Bail;
use crate::vm::library::{Builtin, Method};
use crate::vm::value::compare::Relation;
use crate::vm::value::{Member, Pid};
use serde_json::Value as Json;
use std::collections::BTreeMap;

type Bounds = [Option<Expression>; 3];

impl Loader {
    fn expressions(&mut self, json: &Json) -> Loaded<Box<[Expression]>> {
        array(json)?.iter().map(|item| self.expression(item)).collect()
    }

    fn boxed(&mut self, fields: &[Json], place: usize) -> Loaded<Box<Expression>> {
        Ok(Box::new(self.expression(at(fields, place)?)?))
    }

    fn two(&mut self, fields: &[Json], first: usize) -> Loaded<Box<(Expression, Expression)>> {
        Ok(Box::new((self.expression(at(fields, first)?)?, self.expression(at(fields, first + 1)?)?)))
    }

    pub(super) fn slot(&self, json: &Json) -> Loaded<Slot> {
        let slot = number(json)?;
        if slot < self.slots { Ok(slot as Slot) } else { Err(format!("the frame has no slot {slot}")) }
    }

    fn class_number(&self, json: &Json) -> Loaded<u32> {
        let class = number(json)?;
        if class < self.kinds.len() { Ok(class as u32) } else { Err(format!("there is no class {class}")) }
    }

    fn function(&self, json: &Json) -> Loaded<u32> {
        let function = number(json)?;
        if function < self.parameters.len() { Ok(function as u32) } else { Err(format!("no function {function}")) }
    }

    fn known_positions(&self, json: &Json) -> Loaded<Box<[u16]>> {
        let found = positions(json)?;
        if found.iter().all(|&p| usize::from(p) < self.positions) { Ok(found) } else { Err("no such position".into()) }
    }

    /// The bounds of a slice, if the index is one.
    pub(super) fn bounds(&mut self, index: &Json) -> Loaded<Option<Bounds>> {
        let (name, fields) = node(index)?;
        if name != "Slice" {
            return Ok(None);
        }
        let mut bound = |place| optional(at(fields, place)?, |json| self.expression(json));
        Ok(Some([bound(0)?, bound(1)?, bound(2)?]))
    }

    pub(super) fn expression(&mut self, json: &Json) -> Loaded<Expression> {
        use Expression as E;
        let (name, fields) = node(json)?;
        Ok(match name {
            "Constant" => self.immediate(bytes(at(fields, 0)?)?),
            "Local" => E::Local(self.slot(at(fields, 0)?)?),
            "Attribute" => {
                let value = self.boxed(fields, 0)?;
                E::Attribute(value, self.symbol(text(at(fields, 1)?)?))
            }
            "Subscript" => {
                let value = self.expression(at(fields, 0)?)?;
                match self.bounds(at(fields, 1)?)? {
                    Some(bounds) => E::Sliced(Box::new((value, bounds))),
                    None => E::Subscript(Box::new((value, self.expression(at(fields, 1)?)?))),
                }
            }
            "UnaryOperation" => E::Unary(unary(text(at(fields, 0)?)?)?, self.boxed(fields, 1)?),
            "BinaryOperation" => E::Binary(binary(text(at(fields, 0)?)?)?, self.two(fields, 1)?),
            "And" => E::And(self.expressions(at(fields, 0)?)?),
            "Or" => E::Or(self.expressions(at(fields, 0)?)?),
            "Compare" => {
                let comparison = self.comparison(fields)?;
                self.tested(comparison)
            }
            "Conditional" => {
                let test = self.test(at(fields, 0)?)?;
                let branches = self.two(fields, 1)?;
                E::Conditional(Box::new((test, branches.0, branches.1)))
            }
            "Assigned" => E::Assigned(self.slot(at(fields, 0)?)?, self.boxed(fields, 1)?),
            "Starred" => E::Starred(self.boxed(fields, 0)?),
            "TupleDisplay" => E::Tuple(self.expressions(at(fields, 0)?)?),
            "ListDisplay" => E::List(self.expressions(at(fields, 0)?)?),
            "SetDisplay" => E::Set(self.expressions(at(fields, 0)?)?),
            "DictDisplay" => {
                let pairs = array(at(fields, 0)?)?.iter().zip(array(at(fields, 1)?)?);
                let pairs = pairs
                    .map(|(key, value)| Ok((optional(key, |json| self.expression(json))?, self.expression(value)?)));
                E::Dict(pairs.collect::<Loaded<_>>()?)
            }
            "ListComprehension" => E::ListComprehension(Box::new(self.comprehension(fields, 1)?)),
            "SetComprehension" => E::SetComprehension(Box::new(self.comprehension(fields, 1)?)),
            "Generator" => E::Generator(Box::new(self.comprehension(fields, 1)?)),
            "DictComprehension" => {
                let value = self.expression(at(fields, 1)?)?;
                E::DictComprehension(Box::new((self.comprehension(fields, 2)?, value)))
            }
            "FormattedValue" => {
                let value = self.expression(at(fields, 0)?)?;
                match (text(at(fields, 1)?)?, at(fields, 2)?.is_null()) {
                    ("" | "s", true) => E::Formatted(Box::new((value, Conversion::Str))),
                    ("r", true) => E::Formatted(Box::new((value, Conversion::Repr))),
                    _ => E::Unsupported(Bail(&"a format of an f-string")),
                }
            }
            "JoinedString" => E::Joined(self.expressions(at(fields, 0)?)?),
            "Lambda" => self.lambda(fields)?,
            "FunctionValue" => {
                let bound = optional(at(fields, 1)?, |json| self.expression(json))?;
                E::Function(self.function(at(fields, 0)?)?, bound.map(Box::new))
            }
            "BuiltinValue" => self.builtin_value(text(at(fields, 0)?)?),
            "CallValue" => {
                let function = self.expression(at(fields, 0)?)?;
                E::CallValue(Box::new((function, self.expressions(at(fields, 1)?)?)))
            }
            "CallFunction" => {
                let function = self.function(at(fields, 0)?)?;
                let arguments = self.expressions(at(fields, 1)?)?;
                if arguments.len() != self.parameters[function as usize] || has_star(&arguments) {
                    return Err(format!("a call of function {function} has {} arguments", arguments.len()));
                }
                E::CallFunction(function, arguments)
            }
            "CallMethod" => {
                let value = self.expression(at(fields, 0)?)?;
                let name = text(at(fields, 1)?)?;
                let arguments = self.expressions(at(fields, 2)?)?;
                match self.keywords(at(fields, 3)?)? {
                    Some(keywords) => {
                        // A name with a number of arguments means a method of the program or a built-in one.
                        let built_in = name.split_once('/').filter(|(_, count)| !count.contains('/'));
                        let method = Method::from_name(built_in.map_or(name, |(name, _)| name));
                        let name = self.symbol(name);
                        E::CallMethod(Box::new(MethodCall { value, name, method, arguments, keywords }))
                    }
                    None => E::Unsupported(unsupported("keyword of method", name)),
                }
            }
            "CallBuiltin" => {
                let name = text(at(fields, 0)?)?;
                let arguments = self.expressions(at(fields, 1)?)?;
                match (Builtin::from_name(name), self.keywords(at(fields, 2)?)?) {
                    (Some(builtin), Some(keywords)) => {
                        E::CallBuiltin(Box::new(BuiltinCall { builtin, arguments, keywords, pure: false }))
                    }
                    (None, _) => E::Unsupported(unsupported("function", name)),
                    (_, None) => E::Unsupported(unsupported("keyword of function", name)),
                }
            }
            "IsInstance" => self.is_instance(fields)?,
            "Construct" => {
                let class = self.class_number(at(fields, 0)?)?;
                let values = self.expressions(at(fields, 1)?)?;
                let count = match self.kinds[class as usize] {
                    Kind::Tuple | Kind::Record | Kind::Message => Some(self.members[class as usize].len()),
                    Kind::Flag | Kind::Derived => Some(1),
                    _ => None,
                };
                if Some(values.len()) != count || has_star(&values) {
                    return Err(format!("an instance of class {class} is made of {} values", values.len()));
                }
                E::Construct(class, values)
            }
            "Replace" => {
                let value = self.expression(at(fields, 0)?)?;
                let changes = ordered(at(fields, 1)?)?.map(|(name, change)| {
                    let change = self.expression(change)?;
                    Ok((self.symbol(name), change))
                });
                E::Replace(Box::new((value, changes.collect::<Loaded<_>>()?)))
            }
            "SelfId" => E::SelfId,
            "Send" => E::Send(self.two(fields, 0)?),
            "Broadcast" => {
                let message = self.expression(at(fields, 1)?)?;
                let myself = optional(at(fields, 2)?, |json| self.expression(json))?;
                E::Broadcast(Box::new((self.known_positions(at(fields, 0)?)?, message, myself)))
            }
            "Announce" => E::Announce(self.boxed(fields, 0)?),
            "Choose" => E::Choose(Box::new(Choice { options: *self.boxed(fields, 0)?, pure: false })),
            "Spawn" => {
                let class = self.class_number(at(fields, 0)?)?;
                let values = self.expressions(at(fields, 1)?)?;
                if values.len() != self.members[class as usize].len() || has_star(&values) {
                    return Err(format!("a process of class {class} is made of {} values", values.len()));
                }
                E::Spawn(class, values)
            }
            "ViewRole" => E::ViewRole(self.known_positions(at(fields, 0)?)?, number(at(fields, 1)?)? as u16),
            "ViewProcess" => E::ViewProcess(self.boxed(fields, 0)?),
            "ViewMonitor" => {
                let monitor = number(at(fields, 0)?)?;
                if monitor >= self.monitors {
                    return Err(format!("there is no monitor {monitor}"));
                }
                E::ViewMonitor(monitor as u16)
            }
            "ViewMessages" => E::ViewMessages(self.known_positions(at(fields, 0)?)?, number(at(fields, 1)?)? as u16),
            other => E::Unsupported(unsupported("node", other)),
        })
    }

    /// A constant. The simple ones are part of the tree.
    fn immediate(&mut self, content: Vec<u8>) -> Expression {
        self.simple(&content).unwrap_or_else(|| Expression::Constant(self.constant(content)))
    }

    pub(super) fn simple(&self, content: &[u8]) -> Option<Expression> {
        let (&tag, rest) = content.split_first()?;
        Some(match tag {
            b'N' => Expression::None,
            b'T' => Expression::Bool(true),
            b'F' => Expression::Bool(false),
            b'i' => {
                let (folded, _) = varint(rest)?;
                Expression::Int((folded >> 1) as i64 ^ -((folded & 1) as i64))
            }
            b'f' => Expression::Float(f64::from_le_bytes(rest.try_into().ok()?)),
            b'P' => {
                let (role, rest) = short_text(rest)?;
                let role = self.roles.binary_search_by(|known| (**known).cmp(role)).ok()? as u32;
                Expression::Pid(Pid { role, index: u32::try_from(varint(rest)?.0).ok()? })
            }
            b'E' => {
                let (class, rest) = short_text(rest)?;
                let class = *self.class_numbers.get(class)?;
                let (b's', rest) = rest.split_first().map(|(&tag, rest)| (tag, rest))? else { return None };
                let (member, _) = short_text(rest)?;
                let member = self.members[class as usize].iter().position(|m| &**m == member)? as u32;
                self.usual_enum[class as usize].then_some(Expression::Enum(Member { class, member }))?
            }
            _ => return None,
        })
    }

    /// An expression of which only the truth is used.
    pub(super) fn test(&mut self, json: &Json) -> Loaded<Expression> {
        let test = self.expression(json)?;
        Ok(self.tested(test))
    }

    fn tested(&mut self, test: Expression) -> Expression {
        if matches!(test, Expression::Tested(..)) {
            return test;
        }
        self.tests = self.tests.wrapping_add(1);
        Expression::Tested(self.tests, Box::new(test))
    }

    fn comparison(&mut self, fields: &[Json]) -> Loaded<Expression> {
        let left = self.expression(at(fields, 0)?)?;
        let operators = array(at(fields, 1)?)?.iter().map(|op| comparison(text(op)?));
        let operators = operators.collect::<Loaded<Vec<_>>>()?;
        let mut rights = self.expressions(at(fields, 2)?)?.into_vec();
        if operators.len() != rights.len() || rights.is_empty() {
            return Err("a comparison has other operators than operands".to_owned());
        }
        if let ([operator], 1) = (&operators[..], rights.len()) {
            return Ok(Expression::Compare(*operator, Box::new((left, rights.remove(0)))));
        }
        Ok(Expression::Chain(Box::new((left, operators.into_iter().zip(rights).collect()))))
    }

    fn comprehension(&mut self, fields: &[Json], clauses: usize) -> Loaded<Comprehension> {
        let element = self.expression(at(fields, 0)?)?;
        let clauses = array(at(fields, clauses)?)?.iter().map(|json| {
            let (_, fields) = node(json)?;
            Ok(Clause {
                target: self.target(at(fields, 0)?)?,
                iterable: self.expression(at(fields, 1)?)?,
                conditions: array(at(fields, 2)?)?.iter().map(|test| self.test(test)).collect::<Loaded<_>>()?,
            })
        });
        Ok(Comprehension { element, clauses: clauses.collect::<Loaded<_>>()?, pure: false })
    }

    fn lambda(&mut self, fields: &[Json]) -> Loaded<Expression> {
        let parameters: Box<[Slot]> =
            array(at(fields, 0)?)?.iter().map(|slot| self.slot(slot)).collect::<Loaded<_>>()?;
        let defaults = self.expressions(at(fields, 1)?)?;
        if defaults.len() > parameters.len() {
            return Err("a lambda has more defaults than parameters".to_owned());
        }
        let place = self.lambdas.len();
        self.lambdas.push(None);
        let body = self.block(at(fields, 2)?)?;
        self.lambdas[place] = Some(Lambda { parameters, body });
        Ok(Expression::Lambda(place as u32, defaults))
    }

    fn builtin_value(&mut self, name: &str) -> Expression {
        if let Some(builtin) = Builtin::from_name(name) {
            return Expression::Builtin(builtin);
        }
        let method = name.split_once('.').and_then(|(class, method)| {
            let of_builtin = ["str", "list", "tuple", "dict", "set", "frozenset"].contains(&class);
            Method::from_name(method).filter(|_| of_builtin)
        });
        method.map_or_else(|| Expression::Unsupported(unsupported("function", name)), Expression::UnboundMethod)
    }

    /// None if one of them is unknown.
    fn keywords(&mut self, json: &Json) -> Loaded<Option<Keywords>> {
        let mut found = Keywords::default();
        let mut complex = 0;
        for (name, value) in ordered(json)? {
            let value = self.expression(value)?;
            // The machine evaluates keywords in an order of its own: only one of them may do more than name a value.
            complex += u32::from(!is_simple(&value));
            found.any = true;
            let value = Some(value);
            match name {
                "key" => found.key = value,
                "reverse" => found.reverse = value,
                "default" => found.default = value,
                "start" => found.start = value,
                "strict" => found.strict = value,
                "repeat" => found.repeat = value,
                "initial" => found.initial = value,
                "maxlen" | "last" | "n" => found.only = value,
                _ => return Ok(None),
            }
        }
        Ok((complex <= 1).then_some(found))
    }

    fn is_instance(&mut self, fields: &[Json]) -> Loaded<Expression> {
        let value = self.expression(at(fields, 0)?)?;
        let mut tests = Vec::new();
        for name in array(at(fields, 1)?)? {
            tests.push(match text(name)? {
                "int" => TypeTest::Int,
                "bool" => TypeTest::Bool,
                "float" => TypeTest::Float,
                "str" => TypeTest::Str,
                "bytes" => TypeTest::Bytes,
                "tuple" => TypeTest::Tuple,
                "list" => TypeTest::List,
                "dict" => TypeTest::Dict,
                "set" => TypeTest::Set,
                "frozenset" => TypeTest::FrozenSet,
                "NoneType" | "None" => TypeTest::None,
                "range" => TypeTest::Range,
                "collections.deque" => TypeTest::Deque,
                "collections.OrderedDict" => TypeTest::OrderedDict,
                "collections.defaultdict" => TypeTest::DefaultDict,
                "collections.Counter" => TypeTest::Counter,
                "fractions.Fraction" => TypeTest::Fraction,
                "Pid" | "plait.Pid" | "plait.kernel.pid.Pid" => TypeTest::Pid,
                other => return Ok(Expression::Unsupported(unsupported("type", other))),
            });
        }
        for class in array(at(fields, 2)?)? {
            tests.push(TypeTest::Class(self.class_number(class)?));
        }
        Ok(self.tested(Expression::IsInstance(Box::new((value, tests.into())))))
    }
}

fn is_simple(value: &Expression) -> bool {
    use Expression as E;
    match value {
        E::None | E::Bool(_) | E::Int(_) | E::Float(_) | E::Pid(_) | E::Enum(_) | E::Constant(_) | E::Local(_) => true,
        E::Builtin(_) | E::UnboundMethod(_) | E::Function(_, None) => true,
        E::Lambda(_, defaults) => defaults.is_empty(),
        _ => false,
    }
}

pub(super) fn has_star(items: &[Expression]) -> bool {
    items.iter().any(|item| matches!(item, Expression::Starred(_)))
}

/// The entries of an object, in their order in the text: arguments are evaluated in this order.
fn ordered(json: &Json) -> Loaded<impl Iterator<Item = (&str, &Json)>> {
    let entries = json.as_object().ok_or("expected an object")?;
    Ok(entries.iter().map(|(name, value)| (name.as_str(), value)))
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0)?;
    let value = bytes[..=end].iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f));
    Some((value, &bytes[end + 1..]))
}

fn short_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = varint(bytes)?;
    let (head, tail) = rest.split_at_checked(length as usize)?;
    Some((std::str::from_utf8(head).ok()?, tail))
}

fn unary(name: &str) -> Loaded<Unary> {
    Ok(match name {
        "-" => Unary::Negative,
        "+" => Unary::Positive,
        "~" => Unary::Invert,
        "not" => Unary::Not,
        other => return Err(format!("unknown operator {other}")),
    })
}

pub(super) fn binary(name: &str) -> Loaded<Binary> {
    Ok(match name {
        "+" => Binary::Add,
        "-" => Binary::Subtract,
        "*" => Binary::Multiply,
        "/" => Binary::Divide,
        "//" => Binary::FloorDivide,
        "%" => Binary::Modulo,
        "**" => Binary::Power,
        "&" => Binary::And,
        "|" => Binary::Or,
        "^" => Binary::Xor,
        "<<" => Binary::ShiftLeft,
        ">>" => Binary::ShiftRight,
        other => return Err(format!("unknown operator {other}")),
    })
}

fn comparison(name: &str) -> Loaded<Comparison> {
    Ok(match name {
        "==" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        "<" => Comparison::Ordered(Relation::Less),
        "<=" => Comparison::Ordered(Relation::LessOrEqual),
        ">" => Comparison::Ordered(Relation::Greater),
        ">=" => Comparison::Ordered(Relation::GreaterOrEqual),
        "is" => Comparison::Is,
        "is not" => Comparison::IsNot,
        "in" => Comparison::In,
        "not in" => Comparison::NotIn,
        other => return Err(format!("unknown operator {other}")),
    })
}

/// A reason that names what is unsupported. Reasons live for ever, so each is made once.
pub(super) fn unsupported(what: &str, name: &str) -> Bail {
    use parking_lot::Mutex;
    static REASONS: Mutex<BTreeMap<String, &'static &'static str>> = Mutex::new(BTreeMap::new());
    let reason = format!("{what} {name}");
    let mut reasons = REASONS.lock();
    Bail(reasons.entry(reason.clone()).or_insert_with(|| Box::leak(Box::new(&*Box::leak(reason.into_boxed_str())))))
}

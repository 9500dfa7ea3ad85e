//! `str(value)` and `repr(value)` of simple values.

use super::Value;
use super::library::Flavour;
use crate::vm::program::Program;
use crate::vm::{Answer, Bail};
use std::fmt::Write;

const UNKNOWN: Bail = Bail(&"the text of an unusual value");

/// Append `str(value)`.
pub fn write_str(program: &Program, value: &Value, out: &mut String) -> Answer<()> {
    match value {
        Value::Str(text) => {
            out.push_str(text);
            Ok(())
        }
        Value::Derived(derived) => write_str(program, &derived.content, out),
        Value::Fraction(fraction) => match fraction.denominator {
            1 => write!(out, "{}", fraction.numerator).map_err(|_| UNKNOWN),
            denominator => write!(out, "{}/{denominator}", fraction.numerator).map_err(|_| UNKNOWN),
        },
        _ => write_repr(program, value, out, 0),
    }
}

/// Append `repr(value)`.
pub fn write_repr(program: &Program, value: &Value, out: &mut String, depth: u32) -> Answer<()> {
    if depth > 20 {
        return Err(UNKNOWN);
    }
    match value {
        Value::None => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        Value::Int(number) => write!(out, "{number}").map_err(|_| UNKNOWN)?,
        Value::Pid(pid) => {
            write!(out, "{}{}", program.roles[pid.role as usize], pid.index).map_err(|_| UNKNOWN)?;
        }
        Value::Str(text) if text.chars().all(|c| (' '..='~').contains(&c) && c != '\'' && c != '\\') => {
            write!(out, "'{text}'").map_err(|_| UNKNOWN)?;
        }
        Value::Tuple(items) => {
            out.push('(');
            write_items(program, items, out, depth)?;
            out.push_str(if items.len() == 1 { ",)" } else { ")" });
        }
        Value::List(list) => {
            out.push('[');
            write_items(program, &list.read(), out, depth)?;
            out.push(']');
        }
        Value::Derived(derived) => write_repr(program, &derived.content, out, depth)?,
        Value::Fraction(fraction) => {
            write!(out, "Fraction({}, {})", fraction.numerator, fraction.denominator).map_err(|_| UNKNOWN)?;
        }
        Value::Dict(dict) if dict.flavour == Flavour::Plain => {
            out.push('{');
            let map = dict.read();
            for (place, (key, value)) in map.keys().iter().zip(map.values()).enumerate() {
                out.push_str(if place == 0 { "" } else { ", " });
                write_repr(program, key, out, depth + 1)?;
                out.push_str(": ");
                write_repr(program, value, out, depth + 1)?;
            }
            out.push('}');
        }
        _ => return Err(UNKNOWN),
    }
    Ok(())
}

fn write_items(program: &Program, items: &[Value], out: &mut String, depth: u32) -> Answer<()> {
    for (place, item) in items.iter().enumerate() {
        out.push_str(if place == 0 { "" } else { ", " });
        write_repr(program, item, out, depth + 1)?;
    }
    Ok(())
}

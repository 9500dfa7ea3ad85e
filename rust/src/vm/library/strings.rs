//! Methods of strings: those that need no tables of Unicode, or only for ASCII.

use super::Method;
use super::builtins::{ARGUMENTS, Source, values};
use crate::vm::run::{Go, Run};
use crate::vm::value::Value;
use crate::vm::{Answer, Bail};

impl<'a> Run<'a> {
    pub(super) fn str_method(&mut self, text: &str, method: Method, arguments: &[Source<'a>]) -> Answer<Value> {
        use Method as M;
        if let (M::Join, [source]) = (method, arguments) {
            let mut joined = String::new();
            let mut first = true;
            self.each(source, true, &mut |_, part| {
                let Value::Str(part) = part.plain() else { return Err(Bail(&"join of something that is no text")) };
                if !first {
                    joined.push_str(text);
                }
                first = false;
                joined.push_str(part);
                Ok(Go::On)
            })?;
            return Ok(Value::str(&joined));
        }
        let mut values = values(arguments)?;
        values.iter_mut().for_each(|value| *value = value.plain().clone());
        // The others need no tables of Unicode, and do not count characters.
        let simple = matches!(
            (method, values.len()),
            (M::StartsWith | M::EndsWith | M::Replace | M::RemovePrefix | M::RemoveSuffix | M::Partition | M::Count, _)
                | (M::Split, 1)
        );
        let ascii = text.is_ascii() && values.iter().all(|v| !matches!(v, Value::Str(part) if !part.is_ascii()));
        if !simple && !ascii {
            return Err(Bail(&"a method of a text beyond ASCII"));
        }
        let number = |place: Option<usize>| Value::Int(place.map_or(-1, |place| place as i64));
        Ok(match (method, &*values) {
            (M::Lower, []) => Value::str(&text.to_ascii_lowercase()),
            (M::Upper, []) => Value::str(&text.to_ascii_uppercase()),
            (M::Strip, []) => Value::str(text.trim_matches(is_space)),
            (M::LStrip, []) => Value::str(text.trim_start_matches(is_space)),
            (M::RStrip, []) => Value::str(text.trim_end_matches(is_space)),
            (M::Strip, [Value::Str(all)]) => Value::str(text.trim_matches(|c| all.contains(c))),
            (M::LStrip, [Value::Str(all)]) => Value::str(text.trim_start_matches(|c| all.contains(c))),
            (M::RStrip, [Value::Str(all)]) => Value::str(text.trim_end_matches(|c| all.contains(c))),
            (M::StartsWith, [Value::Str(part)]) => Value::Bool(text.starts_with(&***part)),
            (M::EndsWith, [Value::Str(part)]) => Value::Bool(text.ends_with(&***part)),
            (M::Replace, [Value::Str(old), Value::Str(new)]) if !old.is_empty() => {
                Value::str(&text.replace(&***old, new))
            }
            (M::Find, [Value::Str(part)]) => number(text.find(&***part)),
            (M::RFind, [Value::Str(part)]) => number(text.rfind(&***part)),
            (M::Index, [Value::Str(part)]) => {
                let place = text.find(&***part).ok_or(Bail(&"a value that is missing"))?;
                Value::Int(place as i64)
            }
            (M::Count, [Value::Str(part)]) if !part.is_empty() => Value::Int(text.matches(&***part).count() as i64),
            (M::IsDigit | M::IsDecimal, []) => {
                Value::Bool(!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
            }
            (M::IsAlpha, []) => Value::Bool(!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())),
            (M::RemovePrefix, [Value::Str(part)]) => Value::str(text.strip_prefix(&***part).unwrap_or(text)),
            (M::RemoveSuffix, [Value::Str(part)]) => Value::str(text.strip_suffix(&***part).unwrap_or(text)),
            (M::Partition, [Value::Str(part)]) if !part.is_empty() => match text.split_once(&***part) {
                Some((before, after)) => Value::tuple([before, part, after].map(Value::str)),
                None => Value::tuple([text, "", ""].map(Value::str)),
            },
            (M::Split, []) => {
                Value::list(text.split(is_space).filter(|part| !part.is_empty()).map(Value::str).collect())
            }
            (M::Split, [Value::Str(part)]) if !part.is_empty() => {
                Value::list(text.split(&***part).map(Value::str).collect())
            }
            (M::Join, _) => return Err(ARGUMENTS),
            _ => return Err(Bail(&"a method of a string")),
        })
    }
}

/// White space of ASCII, as Python sees it.
fn is_space(character: char) -> bool {
    matches!(character, '\t'..='\r' | '\x1c'..='\x1f' | ' ')
}

//! Access to the JSON of a program, with errors that say what is wrong.

use serde_json::Value as Json;

/// Why a program cannot be loaded.
pub type LoadError = String;
pub type Loaded<T> = Result<T, LoadError>;

/// The name and the fields of a node.
pub fn node(json: &Json) -> Loaded<(&str, &[Json])> {
    let parts = array(json)?;
    let (name, fields) = parts.split_first().ok_or("an empty node")?;
    Ok((text(name)?, fields))
}

pub fn array(json: &Json) -> Loaded<&[Json]> {
    json.as_array().map(Vec::as_slice).ok_or_else(|| format!("expected an array, not {}", short(json)))
}

pub fn text(json: &Json) -> Loaded<&str> {
    json.as_str().ok_or_else(|| format!("expected a string, not {}", short(json)))
}

pub fn number(json: &Json) -> Loaded<usize> {
    let found = json.as_u64().and_then(|n| u32::try_from(n).ok());
    found.map(|n| n as usize).ok_or_else(|| format!("expected a number, not {}", short(json)))
}

pub fn position(json: &Json) -> Loaded<u16> {
    u16::try_from(number(json)?).map_err(|_| "a position is too large".to_owned())
}

pub fn positions(json: &Json) -> Loaded<Box<[u16]>> {
    array(json)?.iter().map(position).collect()
}

pub fn truth(json: &Json) -> Loaded<bool> {
    json.as_bool().ok_or_else(|| format!("expected true or false, not {}", short(json)))
}

pub fn field<'a>(json: &'a Json, name: &str) -> Loaded<&'a Json> {
    json.get(name).ok_or_else(|| format!("the field {name} is missing"))
}

pub fn at(fields: &[Json], place: usize) -> Loaded<&Json> {
    fields.get(place).ok_or_else(|| format!("a node has only {} fields", fields.len()))
}

/// None for null.
pub fn optional<'a, T>(json: &'a Json, read: impl FnOnce(&'a Json) -> Loaded<T>) -> Loaded<Option<T>> {
    if json.is_null() { Ok(None) } else { read(json).map(Some) }
}

fn short(json: &Json) -> String {
    json.to_string().chars().take(60).collect()
}

/// The bytes of base64 (with padding).
pub fn bytes(json: &Json) -> Loaded<Vec<u8>> {
    let mut out = Vec::new();
    let (mut buffer, mut bits) = (0u32, 0u32);
    for character in text(json)?.bytes() {
        let digit = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => continue,
            _ => return Err("content is not base64".to_owned()),
        };
        buffer = buffer << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((buffer >> bits) as u8);
        }
    }
    Ok(out)
}

//! What can be read from canonical bytes without making values of them.

/// The parts of a local state: its status, and the content of each field.
pub fn fields(local: &[u8]) -> Vec<&[u8]> {
    let (status, content) = local.split_at(1);
    let mut parts = vec![status];
    if !content.is_empty() {
        let (count, mut rest) = varint(&content[1..]);
        for _ in 0..count {
            let length = length(rest);
            parts.push(&rest[..length]);
            rest = &rest[length..];
        }
    }
    parts
}

pub fn varint(bytes: &[u8]) -> (usize, &[u8]) {
    let end = bytes.iter().position(|b| b & 0x80 == 0).expect("a number ends");
    let value = bytes[..=end].iter().rev().fold(0, |value, b| value << 7 | usize::from(b & 0x7f));
    (value, &bytes[end + 1..])
}

/// How many bytes the first value takes.
pub fn length(bytes: &[u8]) -> usize {
    let rest = &bytes[1..];
    let after_values = |count: usize, from: &[u8]| {
        let mut from = from;
        for _ in 0..count {
            from = &from[length(from)..];
        }
        bytes.len() - from.len()
    };
    let after_text = |from: &[u8]| {
        let (size, from) = varint(from);
        bytes.len() - from.len() + size
    };
    match bytes[0] {
        b'N' | b'T' | b'F' => 1,
        b'i' => bytes.len() - varint(rest).1.len(),
        b'f' => 9,
        b'I' | b's' | b'b' | b'X' => after_text(rest),
        tag @ (b't' | b'l' | b'S' | b'Z' | b'd' | b'o' | b'c' | b'q' | b'm') => {
            // The limit of a deque, and the factory of a defaultdict, come first.
            let from = if matches!(tag, b'q' | b'm') { &rest[length(rest)..] } else { rest };
            let (count, from) = varint(from);
            after_values(if matches!(tag, b'd' | b'o' | b'c' | b'm') { 2 * count } else { count }, from)
        }
        b'R' => after_values(2, rest),
        b'P' => {
            let index = &bytes[after_text(rest)..];
            bytes.len() - varint(index).1.len()
        }
        b'E' | b'n' | b'u' => after_values(1, &bytes[after_text(rest)..]),
        b'D' => {
            let (count, from) = varint(&bytes[after_text(rest)..]);
            after_values(count, from)
        }
        tag => unreachable!("unknown tag {tag}"),
    }
}

/// Append the canonical bytes of a tuple of values.
pub fn tuple<'a>(items: impl ExactSizeIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    out.push(b't');
    number(items.len(), out);
    items.for_each(|item| out.extend_from_slice(item));
}

/// Append the canonical bytes of an integer that is not negative.
pub fn natural(value: usize, out: &mut Vec<u8>) {
    out.push(b'i');
    number(value << 1, out);
}

fn number(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The name of the class of a record (a dataclass, a message); none for other values.
pub fn record_name(content: &[u8]) -> Option<&[u8]> {
    let (b'D', rest) = content.split_first()? else { return None };
    let (size, rest) = varint(rest);
    Some(&rest[..size])
}

/// The name of the class of a record, and the contents of its fields; none for other values.
pub fn record(content: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let name = record_name(content)?;
    let (size, rest) = varint(&content[1..]);
    let (count, mut rest) = varint(&rest[size..]);
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        let (field, after) = rest.split_at(length(rest));
        fields.push(field);
        rest = after;
    }
    Some((name, fields))
}

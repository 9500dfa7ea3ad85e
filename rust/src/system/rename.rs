//! Renames processes inside canonical bytes (`canon`): replaces every process id, and sorts sets and dicts again. This
//! is how a permutation of symmetric processes acts on local states, messages and monitors.

use crate::system::encoding::{length, varint};

/// Content with every process id (role, index) replaced by the index that `renamed` gives.
pub fn rename(content: &[u8], renamed: &dyn Fn(&[u8], usize) -> usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len());
    value(content, renamed, &mut out);
    out
}

/// The same for a local state: its status comes first, and an unborn process has no more.
pub fn rename_local(local: &[u8], renamed: &dyn Fn(&[u8], usize) -> usize) -> Vec<u8> {
    let mut out = vec![local[0]];
    if local.len() > 1 {
        value(&local[1..], renamed, &mut out);
    }
    out
}

/// Rename the first value, and return the rest.
fn value<'a>(bytes: &'a [u8], renamed: &dyn Fn(&[u8], usize) -> usize, out: &mut Vec<u8>) -> &'a [u8] {
    let copy = |until: &'a [u8], out: &mut Vec<u8>| out.extend_from_slice(&bytes[..bytes.len() - until.len()]);
    match bytes[0] {
        tag @ (b't' | b'l' | b'q' | b'o') => {
            // The limit of a deque names nobody.
            let from = 1 + if tag == b'q' { length(&bytes[1..]) } else { 0 };
            let (count, rest) = varint(&bytes[from..]);
            copy(rest, out);
            let count = if tag == b'o' { 2 * count } else { count };
            (0..count).fold(rest, |rest, _| value(rest, renamed, out))
        }
        tag @ (b'S' | b'Z' | b'd' | b'c' | b'm') => {
            // Nor does the factory of a defaultdict.
            let from = 1 + if tag == b'm' { length(&bytes[1..]) } else { 0 };
            let (count, mut rest) = varint(&bytes[from..]);
            copy(rest, out);
            let start = out.len();
            let mut parts = Vec::with_capacity(count);
            for _ in 0..count {
                rest = value(rest, renamed, out);
                if matches!(tag, b'd' | b'c' | b'm') {
                    rest = value(rest, renamed, out);
                }
                parts.push(out.split_off(start));
            }
            parts.sort_unstable();
            parts.iter().for_each(|part| out.extend_from_slice(part));
            rest
        }
        b'P' => {
            let (size, rest) = varint(&bytes[1..]);
            let (role, rest) = rest.split_at(size);
            let (index, after) = varint(rest);
            copy(rest, out);
            let mut number = renamed(role, index);
            while number >= 0x80 {
                out.push(number as u8 | 0x80);
                number >>= 7;
            }
            out.push(number as u8);
            after
        }
        // An enum stands by its member's name; other records by their class, and then their fields.
        b'n' | b'u' | b'D' => {
            let (size, rest) = varint(&bytes[1..]);
            let rest = &rest[size..];
            if bytes[0] != b'D' {
                copy(rest, out);
                return value(rest, renamed, out);
            }
            let (count, rest) = varint(rest);
            copy(rest, out);
            (0..count).fold(rest, |rest, _| value(rest, renamed, out))
        }
        _ => {
            let rest = &bytes[length(bytes)..];
            copy(rest, out);
            rest
        }
    }
}

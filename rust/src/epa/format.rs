//! Records as the recorder (`src/plait/epa/runtime.c`) writes them: 64-bit words, the first of which has the kind in its top
//! byte, a detail in the next 24 bits and the site in the low half.

pub const VALUE: u8 = 1;
pub const LOAD: u8 = 2;
pub const STORE: u8 = 3;
pub const ALLOCA: u8 = 4;
pub const ENTER: u8 = 5;
pub const RETURN: u8 = 6;
pub const CALL: u8 = 7;
pub const ARGUMENT: u8 = 8;
pub const LANDING: u8 = 9;
pub const RANGE: u8 = 10;
pub const COPY: u8 = 11;
pub const FAULT: u8 = 12;
pub const SEQUENCE: u8 = 13;
/// The memory that a copy reads; `COPY` stands for what it writes once a trace is sanitized.
pub const COPY_FROM: u8 = 14;
pub const SYNC: u8 = 32;
pub const ALLOC: u8 = 33;
pub const FREE: u8 = 34;
/// Added to the kind of a record whose last word is small enough to stand in its first, in place of the detail.
pub const SMALL: u8 = 64;
pub const PAD: u8 = 255;

pub const RANGE_WRITE: u32 = 1;
pub const RANGE_STACK: u32 = 2;
pub const RANGE_LOCAL: u32 = 3;

/// What a `SYNC` record did.
pub mod op {
    pub const START: u32 = 1;
    pub const END: u32 = 2;
    pub const CREATE: u32 = 3;
    pub const CREATED: u32 = 4;
    pub const JOIN_BEGIN: u32 = 5;
    pub const JOIN: u32 = 6;
    pub const LOCK: u32 = 7;
    pub const UNLOCK: u32 = 8;
    pub const READ_LOCK: u32 = 9;
    pub const WRITE_LOCK: u32 = 10;
    pub const RW_UNLOCK: u32 = 11;
    pub const BARRIER_IN: u32 = 12;
    pub const BARRIER_OUT: u32 = 13;
    pub const WAIT: u32 = 14;
    pub const SIGNAL: u32 = 15;
    pub const ONCE: u32 = 16;
    pub const TRY_FAILED: u32 = 17;
    pub const BARRIER_INIT: u32 = 18;
}

/// One record in a stream of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: u8,
    pub detail: u32,
    pub site: u32,
    pub words: [u64; 3],
}

/// How many words follow the first one of a record; none for a kind that nobody writes.
#[inline]
fn length(kind: u8) -> Option<usize> {
    Some(match kind {
        VALUE | ENTER | RETURN | CALL | ARGUMENT | LANDING | SEQUENCE => 1,
        LOAD | STORE | ALLOCA => 2,
        COPY | RANGE | FAULT | SYNC | ALLOC | FREE => 3,
        _ => return None,
    })
}

/// The record at a place, and the place after it. None at the end, which is a zero word, and before anything torn.
#[inline]
pub fn record(words: &[u64], mut at: usize) -> Option<(Record, usize)> {
    loop {
        let head = *words.get(at)?;
        let kind = (head >> 56) as u8;
        if kind == PAD {
            if head & 0xffff_ffff == 0 {
                return None;
            }
            at = at.checked_add((head & 0xffff_ffff) as usize)?;
            continue;
        }
        let small = kind & SMALL != 0;
        let length = length(kind & !SMALL)?;
        let mut detail = (head >> 32) as u32 & 0xff_ffff;
        let mut found = [0; 3];
        let stored = length - usize::from(small);
        let end = at + 1 + stored;
        found[..stored].copy_from_slice(words.get(at + 1..end)?);
        if small {
            found[stored] = u64::from(detail);
            detail = 0;
        }
        let record = Record { kind: kind & !SMALL, detail, site: head as u32, words: found };
        return Some((record, end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_at_zero_and_before_a_torn_record() {
        let head = |kind: u8, detail: u64, site: u64| (u64::from(kind) << 56) | (detail << 32) | site;
        let words = [
            head(VALUE, 0, 3),
            1 << 40,
            head(PAD, 0, 2),
            0,
            head(LOAD, 0, 4),
            8,
            9,
            head(STORE | SMALL, 7, 5),
            16,
            0,
            0,
        ];
        let (first, next) = record(&words, 0).unwrap();
        assert_eq!((first.kind, first.site, first.words[0]), (VALUE, 3, 1 << 40));
        let (second, next) = record(&words, next).unwrap();
        assert_eq!((second.kind, second.site, second.words), (LOAD, 4, [8, 9, 0]));
        let (third, next) = record(&words, next).unwrap();
        assert_eq!((third.kind, third.detail, third.words), (STORE, 0, [16, 7, 0]));
        assert!(record(&words, next).is_none());
        assert!(record(&words[..6], 4).is_none());
        assert!(record(&[head(47, 0, 1), 2], 0).is_none());
        assert!(record(&[head(PAD, 0, 0)], 0).is_none());
    }
}

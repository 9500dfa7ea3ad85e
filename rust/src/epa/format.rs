//! Records as the recorder (`src/plait/epa/runtime.c`) writes them: 64-bit words, the first of which has the kind in its top
//! byte, a detail in the next 36 bits and the site in the low 20.

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
/// Added to the kind of a load, a store or an alloca whose address stands there too, from `BELOW` below the last frame.
pub const FRAME: u8 = 128;
const BELOW: u64 = 32_768;
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

/// Reads records one after the other. It ends at a zero word and before anything torn.
#[derive(Clone, Copy)]
pub struct Cursor<'a> {
    words: &'a [u64],
    pub at: usize,
    /// Where short addresses count from.
    pub base: u64,
}

impl<'a> Cursor<'a> {
    pub fn new(words: &'a [u64], at: usize, base: u64) -> Self {
        Self { words, at, base }
    }

    /// The words of a record after its first, given that and how many the kind has.
    #[inline]
    fn payload(&self, head: u64, kind: u8, length: usize) -> Option<([u64; 3], usize)> {
        let detail = (head >> 20) & 0xf_ffff_ffff;
        let mut found = [0; 3];
        match (kind & FRAME != 0, kind & SMALL != 0) {
            (true, true) => {
                found[0] = self.base.wrapping_add(detail >> 20);
                found[1] = detail & 0xf_ffff;
                Some((found, 0))
            }
            (true, false) => {
                found[0] = self.base.wrapping_add(detail);
                found[1] = *self.words.get(self.at + 1)?;
                Some((found, 1))
            }
            (false, small) => {
                let stored = length - usize::from(small);
                found[..stored].copy_from_slice(self.words.get(self.at + 1..self.at + 1 + stored)?);
                if small {
                    found[stored] = detail;
                }
                Some((found, stored))
            }
        }
    }
}

impl Iterator for Cursor<'_> {
    type Item = Record;

    #[inline]
    fn next(&mut self) -> Option<Record> {
        let mut head = *self.words.get(self.at)?;
        while (head >> 56) as u8 == PAD {
            let skip = (head & 0xffff_ffff) as usize;
            if skip == 0 {
                return None;
            }
            self.at = self.at.checked_add(skip)?;
            head = *self.words.get(self.at)?;
        }
        let tagged = (head >> 56) as u8;
        let kind = tagged & !(SMALL | FRAME);
        let length = length(kind)?;
        if tagged & FRAME != 0 && length != 2 {
            return None;
        }
        let (words, stored) = self.payload(head, tagged, length)?;
        self.at += 1 + stored;
        if kind == ENTER {
            self.base = words[0].wrapping_sub(BELOW);
        }
        let detail = if tagged & (SMALL | FRAME) == 0 { (head >> 20) as u32 & 0xff_ffff } else { 0 };
        Some(Record { kind, detail, site: head as u32 & 0xf_ffff, words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: u8, detail: u64, site: u64) -> u64 {
        (u64::from(kind) << 56) | (detail << 20) | site
    }

    #[test]
    fn all_forms_of_a_record() {
        let frame = 0x7fff_0000_1000;
        let words = [
            head(ENTER, 0, 1),
            frame,
            head(VALUE, 0, 3),
            1 << 40,
            head(PAD, 0, 2),
            0,
            head(LOAD, 0, 4),
            8,
            1 << 50,
            head(STORE | SMALL, 7, 5),
            16,
            head(LOAD | FRAME | SMALL, ((BELOW - 8) << 20) | 42, 6),
            head(STORE | FRAME, BELOW + 24, 7),
            1 << 60,
            head(VALUE | SMALL, 1 << 35, 8),
            0,
            0,
        ];
        let found: Vec<_> = Cursor::new(&words, 0, 0).map(|r| (r.kind, r.site, r.words)).collect();
        assert_eq!(
            found,
            [
                (ENTER, 1, [frame, 0, 0]),
                (VALUE, 3, [1 << 40, 0, 0]),
                (LOAD, 4, [8, 1 << 50, 0]),
                (STORE, 5, [16, 7, 0]),
                (LOAD, 6, [frame - 8, 42, 0]),
                (STORE, 7, [frame + 24, 1 << 60, 0]),
                (VALUE, 8, [1 << 35, 0, 0]),
            ]
        );
    }

    #[test]
    fn torn_and_unknown_records_end_a_stream() {
        let read = |words: &[u64]| Cursor::new(words, 0, 0).count();
        assert_eq!(read(&[head(LOAD, 0, 4), 8]), 0);
        assert_eq!(read(&[head(VALUE | SMALL, 1, 4), head(VALUE, 0, 4)]), 1);
        assert_eq!(read(&[head(47, 0, 1), 2]), 0);
        assert_eq!(read(&[head(PAD, 0, 0)]), 0);
        assert_eq!(read(&[head(VALUE | FRAME, 0, 1), 2]), 0);
        assert_eq!(read(&[]), 0);
    }
}

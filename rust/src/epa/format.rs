//! The events of a trace, and the records that the recorder (`src/plait/epa/recorder`) writes.
//!
//! A record begins with a 32-bit word. If bit 31 is set, the record is a single event: its kind is in bits 25 to 30,
//! its detail in bits 20 to 24, its site in the lower bits. 64-bit words follow. If bit 31 is not set, the word is the
//! number of a piece of the program (`program.rs`), and bits 29 and 30 say how much of the piece the record has.

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
/// A fault strikes the next event. No record: the head of the thread's file has it.
pub const FAULT: u8 = 12;
pub const SEQUENCE: u8 = 13;
/// The memory that a copy reads; `COPY` stands for what it writes once a trace is sanitized.
pub const COPY_FROM: u8 = 14;
pub const SYNC: u8 = 32;
pub const ALLOC: u8 = 33;
pub const FREE: u8 = 34;

pub const RANGE_WRITE: u32 = 1;
pub const RANGE_STACK: u32 = 2;
pub const RANGE_LOCAL: u32 = 3;
/// The call prints an address (`%p`).
pub const RANGE_ADDRESS: u32 = 4;

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
    /// Accesses to a file, a pipe, the offset of a descriptor, or the table of descriptors.
    pub const FILE_READ: u32 = 19;
    pub const FILE_WRITE: u32 = 20;
    /// The begin and the end of an ordered operation: an atomic access, an operation on a file or a semaphore. Replay keeps
    /// their order.
    pub const ORDERED_IN: u32 = 21;
    pub const ORDERED_OUT: u32 = 22;
}

/// One event, or what else a stream has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: u8,
    pub detail: u32,
    pub site: u32,
    pub words: [u64; 3],
}

/// How much a record of a piece has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layout {
    Everything,
    /// Nothing of variables: they held what they were given.
    Known,
    /// And nothing of what is loaded again: it was as before.
    Expected,
}

/// What a record begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    Piece(u32, Layout),
    Own { kind: u8, detail: u32, site: u32, words: usize },
}

impl Head {
    /// Bytes of a record of its own.
    pub const fn own(words: usize) -> usize {
        4 + 8 * words
    }
}

/// Up to eight bytes, little-endian; None behind the end.
#[inline]
pub fn bytes(from: &[u8], at: usize, count: usize) -> Option<u64> {
    let mut word = [0; 8];
    word[..count].copy_from_slice(from.get(at..at + count)?);
    Some(u64::from_le_bytes(word))
}

/// The head of the record at a position; None after the end, and for an unknown kind.
#[inline]
pub fn head(from: &[u8], at: usize) -> Option<Head> {
    let word = bytes(from, at, 4)? as u32;
    if word >> 31 == 0 {
        let layout = match word >> 29 {
            0 => Layout::Everything,
            1 => Layout::Known,
            2 => Layout::Expected,
            _ => return None,
        };
        return Some(Head::Piece(word & 0x1fff_ffff, layout));
    }
    let kind = (word >> 25 & 0x3f) as u8;
    let words = match kind {
        SEQUENCE => 1,
        COPY | RANGE | SYNC | ALLOC | FREE => 3,
        _ => return None,
    };
    Some(Head::Own { kind, detail: word >> 20 & 0x1f, site: word & 0xf_ffff, words })
}

/// A record of its own; None if there is none, or less than all of it.
pub fn own(from: &[u8], at: usize) -> Option<Record> {
    let Head::Own { kind, detail, site, words: count } = head(from, at)? else { return None };
    let mut words = [0; 3];
    for (i, word) in words[..count].iter_mut().enumerate() {
        *word = bytes(from, at + 4 + 8 * i, 8)?;
    }
    Some(Record { kind, detail, site, words })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_their_own() {
        let word = 0x8000_0000u32 | u32::from(SYNC) << 25 | op::BARRIER_INIT << 20 | 0xf_fff0;
        let mut raw = word.to_le_bytes().to_vec();
        raw.extend([7u64, 1 << 60, 9].iter().flat_map(|w| w.to_le_bytes()));
        let found = Record { kind: SYNC, detail: op::BARRIER_INIT, site: 0xf_fff0, words: [7, 1 << 60, 9] };
        assert_eq!(own(&raw, 0), Some(found));
        assert_eq!(own(&raw[..27], 0), None, "torn");
        assert_eq!(head(&[0xff; 4], 0), None, "nobody writes it");
        assert_eq!(head(&5u32.to_le_bytes(), 0), Some(Head::Piece(5, Layout::Everything)));
        assert_eq!(head(&(5 | 2u32 << 29).to_le_bytes(), 0), Some(Head::Piece(5, Layout::Expected)));
        assert_eq!(head(&(5 | 3u32 << 29).to_le_bytes(), 0), None, "nobody writes it");
        assert_eq!(head(&[0; 3], 0), None);
    }
}

//! Content hashes, and how they combine into the fingerprint of a state.
//!
//! A fingerprint is the wrapping sum of one well-mixed hash per component. The hash includes the position of the component. The
//! fingerprint of a successor follows from that of its parent and the few components that changed.
//!
//! Sums have 64 bits, or 128 where 64 are too few (`search::width`). The lower half of the wide hash of a component is its narrow
//! hash, so that the lower half of a wide fingerprint is the narrow one. The upper half is a hash of the same contents by
//! another function. The hashes of contents have 64 bits: `intern` gives distinct contents distinct ones.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A sum of hashes, or one hash.
pub trait Sum: Copy + PartialEq + Send + Sync + 'static {
    const ZERO: Self;
    /// The hash of one part.
    fn single(kind: u64, part: u64) -> Self;
    /// The hash of a sequence of parts.
    fn sequence(kind: u64, parts: &[u64]) -> Self;
    /// A sum by its halves.
    fn of(low: u64, high: u64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn low(self) -> u64;
    /// 0 if there is none.
    fn high(self) -> u64;
    /// The visited set marks an empty slot by 0, so no narrow fingerprint may be 0. (Of wide ones, it has a key that is not.)
    fn marked(self) -> Self;
}

impl Sum for u64 {
    const ZERO: u64 = 0;

    #[inline]
    fn single(kind: u64, part: u64) -> u64 {
        single(kind, part) & KEPT.load(Relaxed)
    }

    #[inline]
    fn sequence(kind: u64, parts: &[u64]) -> u64 {
        sequence(kind, parts) & KEPT.load(Relaxed)
    }

    #[inline]
    fn of(low: u64, _: u64) -> u64 {
        low
    }

    #[inline]
    fn plus(self, other: u64) -> u64 {
        self.wrapping_add(other)
    }

    #[inline]
    fn minus(self, other: u64) -> u64 {
        self.wrapping_sub(other)
    }

    #[inline]
    fn low(self) -> u64 {
        self
    }

    #[inline]
    fn high(self) -> u64 {
        0
    }

    #[inline]
    fn marked(self) -> u64 {
        if self == 0 { 1 } else { self }
    }
}

impl Sum for u128 {
    const ZERO: u128 = 0;

    fn single(kind: u64, part: u64) -> u128 {
        u128::of(u64::single(kind, part), sequence(kind, &[part, UPPER]))
    }

    fn sequence(kind: u64, parts: &[u64]) -> u128 {
        u128::of(u64::sequence(kind, parts), sequence(kind, &[parts, &[UPPER]].concat()))
    }

    #[inline]
    fn of(low: u64, high: u64) -> u128 {
        u128::from(low) | u128::from(high) << 64
    }

    #[inline]
    fn plus(self, other: u128) -> u128 {
        self.wrapping_add(other)
    }

    #[inline]
    fn minus(self, other: u128) -> u128 {
        self.wrapping_sub(other)
    }

    #[inline]
    fn low(self) -> u64 {
        self as u64
    }

    #[inline]
    fn high(self) -> u64 {
        (self >> 64) as u64
    }

    #[inline]
    fn marked(self) -> u128 {
        self
    }
}

/// The bits that narrow hashes of components keep. Only tests drop some, so that fingerprints collide.
static KEPT: AtomicU64 = AtomicU64::new(u64::MAX);

/// For tests: keep so many upper bits of narrow hashes from now on.
pub fn keep(bits: u32) {
    KEPT.store(u64::MAX << (u64::BITS - bits.clamp(1, u64::BITS)), Relaxed);
}

pub fn content(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// A value that consists of parts, by their hashes.
pub fn parts(parts: &[u64]) -> u64 {
    sequence(PARTS, parts)
}

/// `sequence` of one part.
fn single(kind: u64, part: u64) -> u64 {
    xxh3_64_with_seed(&part.to_le_bytes(), kind)
}

/// Hash a sequence of hashes; `kind` keeps components of different kinds and positions apart.
pub fn sequence(kind: u64, parts: &[u64]) -> u64 {
    let mut bytes = Vec::with_capacity(parts.len() * 8);
    for part in parts {
        bytes.extend_from_slice(&part.to_le_bytes());
    }
    xxh3_64_with_seed(&bytes, kind)
}

const LOCAL: u64 = 1 << 32;
const MONITOR: u64 = 2 << 32;
const BUDGET: u64 = 3 << 32;
const PENDING: u64 = 4 << 32;
const QUEUE: u64 = 5 << 32;
const LAST: u64 = 6 << 32;
const PARTS: u64 = 7 << 32;
const LEAD: u64 = 8 << 32;
/// The last part of what upper halves are hashes of.
const UPPER: u64 = 0x9e6c_63d0_876a_46ad;

pub fn local<S: Sum>(process: usize, content: u64) -> S {
    S::single(LOCAL + process as u64, content)
}

/// A message that is pending for a process. An inbox that is a bag or a set adds up its messages, so that a send changes
/// the fingerprint by the same amount whatever else is pending.
pub fn pending<S: Sum>(process: usize, content: u64) -> S {
    S::single(PENDING + process as u64, content)
}

/// The queues of a process, in order.
pub fn queues<S: Sum>(process: usize, contents: &[u64]) -> S {
    S::sequence(QUEUE + process as u64, contents)
}

/// What the last step of a process consumed, in any order.
pub fn last<S: Sum>(process: usize, contents: &mut [u64]) -> S {
    contents.sort_unstable();
    S::sequence(LAST + process as u64, contents)
}

pub fn monitor<S: Sum>(index: usize, state: u64) -> S {
    S::single(MONITOR + index as u64, state)
}

pub fn budget<S: Sum>(index: usize, left: u32) -> S {
    S::single(BUDGET + index as u64, u64::from(left))
}

/// How many ticks a process is ahead. Nothing, if it is not: models without drift have no leads.
pub fn lead<S: Sum>(process: usize, lead: u8) -> S {
    if lead == 0 { S::ZERO } else { S::single(LEAD + process as u64, u64::from(lead)) }
}

/// The fingerprint of a state from the sum of its components.
#[inline]
pub fn fingerprint<S: Sum>(sum: S) -> S {
    sum.marked()
}

/// The fingerprint of an orbit from the least of its images'. Least ones are small, and the visited set wants fingerprints
/// to be spread evenly: mix the bits, in a way that can be undone.
#[inline]
pub fn orbit(least: u64) -> u64 {
    let mut mixed = least;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    fingerprint(mixed ^ mixed >> 31)
}

/// A place for a key in a table whose size is a power of two.
#[inline]
pub fn place(key: u64, size: usize) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (size - 1)
}

/// Mix a number into a key. Never 0.
#[inline]
pub fn mixed(key: u64, number: u32) -> u64 {
    let mut mixed = (key ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 32).wrapping_mul(0x94d0_49bb_1331_11eb);
    fingerprint(mixed ^ mixed >> 29)
}

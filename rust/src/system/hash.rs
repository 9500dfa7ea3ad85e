//! Content hashes, and how they combine into the fingerprint of a state.
//!
//! A fingerprint is the wrapping sum of one well-mixed 64-bit hash per component. The hash includes the position of the
//! component. The fingerprint of a successor follows from that of its parent and the few components that changed.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

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

pub fn local(process: usize, content: u64) -> u64 {
    single(LOCAL + process as u64, content)
}

/// A message that is pending for a process. An inbox that is a bag or a set adds up its messages, so that a send changes
/// the fingerprint by the same amount whatever else is pending.
pub fn pending(process: usize, content: u64) -> u64 {
    single(PENDING + process as u64, content)
}

/// The queues of a process, in order.
pub fn queues(process: usize, contents: &[u64]) -> u64 {
    sequence(QUEUE + process as u64, contents)
}

/// What the last step of a process consumed, in any order.
pub fn last(process: usize, contents: &mut [u64]) -> u64 {
    contents.sort_unstable();
    sequence(LAST + process as u64, contents)
}

pub fn monitor(index: usize, state: u64) -> u64 {
    single(MONITOR + index as u64, state)
}

pub fn budget(index: usize, left: u32) -> u64 {
    single(BUDGET + index as u64, u64::from(left))
}

/// How many ticks a process is ahead. Nothing, if it is not: models without drift have no leads.
pub fn lead(process: usize, lead: u8) -> u64 {
    if lead == 0 { 0 } else { single(LEAD + process as u64, u64::from(lead)) }
}

/// The visited set marks an empty slot by 0, so no state may have it.
#[inline]
pub fn fingerprint(sum: u64) -> u64 {
    if sum == 0 { 1 } else { sum }
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

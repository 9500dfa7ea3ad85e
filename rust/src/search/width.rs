//! How many bits of a fingerprint the visited set keeps: 64, 96 or 128.
//!
//! An entry has a 64-bit *key*, the *rest* of the fingerprint if there is one, and the parent hint. The entries of a bucket
//! fill one cache line: five of 64 bits, four of 96, three of 128.

use crate::system::hash::Sum;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

pub trait Width: Send + Sync + 'static {
    type Sum: Sum;
    type Bucket: Bucket;
    const BITS: usize;
    /// 32-bit numbers that a fingerprint takes where states are laid end to end.
    const NUMBERS: usize;

    /// What is kept of the upper half. Never 0 if something is: that says that it is not there yet.
    fn rest(sum: Self::Sum) -> u64;
}

/// The part of a fingerprint that finds its bucket. 0 marks an empty slot.
#[inline]
pub fn key<S: Sum>(sum: S) -> u64 {
    sum.low().max(1)
}

/// Append a fingerprint to a state.
#[inline]
pub fn append<W: Width>(numbers: &mut Vec<u32>, sum: W::Sum) {
    let (low, high) = (sum.low(), sum.high());
    let all = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32];
    numbers.extend_from_slice(&all[..W::NUMBERS]);
}

/// A state, and its fingerprint.
#[inline]
pub fn parts<W: Width>(entry: &[u32]) -> (&[u32], W::Sum) {
    let (state, numbers) = entry.split_at(entry.len() - W::NUMBERS);
    let number = |at: usize| if at < W::NUMBERS { u64::from(numbers[at]) } else { 0 };
    (state, W::Sum::of(number(0) | number(1) << 32, number(2) | number(3) << 32))
}

pub struct Bits64;
pub struct Bits96;
pub struct Bits128;

impl Width for Bits64 {
    type Sum = u64;
    type Bucket = Bucket64;
    const BITS: usize = 64;
    const NUMBERS: usize = 2;

    #[inline]
    fn rest(_: u64) -> u64 {
        0
    }
}

impl Width for Bits96 {
    type Sum = u128;
    type Bucket = Bucket96;
    const BITS: usize = 96;
    const NUMBERS: usize = 3;

    #[inline]
    fn rest(sum: u128) -> u64 {
        (sum.high() & u64::from(u32::MAX)).max(1)
    }
}

impl Width for Bits128 {
    type Sum = u128;
    type Bucket = Bucket128;
    const BITS: usize = 128;
    const NUMBERS: usize = 4;

    #[inline]
    fn rest(sum: u128) -> u64 {
        sum.high().max(1)
    }
}

/// The entries of a cache line. Filled from the front; nothing is ever removed, so a bucket with room ends a probe. Where no
/// key is, rest and hint are 0.
pub trait Bucket {
    const ENTRIES: usize;

    fn keys(&self) -> &[AtomicU64];
    fn hints(&self) -> &[AtomicU32];
    /// 0 if there is no rest, or the worker that made the entry is about to set it.
    fn rest(&self, at: usize) -> u64;
    fn set_rest(&self, at: usize, rest: u64);

    /// Whether the entry whose key it is belongs to a fingerprint with this rest.
    #[inline]
    fn has_rest(&self, at: usize, rest: u64) -> bool {
        loop {
            match self.rest(at) {
                found if found == rest => return true,
                0 => std::hint::spin_loop(),
                _ => return false,
            }
        }
    }
}

#[repr(C, align(64))]
pub struct Bucket64 {
    keys: [AtomicU64; 5],
    hints: [AtomicU32; 5],
}

#[repr(C, align(64))]
pub struct Bucket96 {
    keys: [AtomicU64; 4],
    rests: [AtomicU32; 4],
    hints: [AtomicU32; 4],
}

#[repr(C, align(64))]
pub struct Bucket128 {
    keys: [AtomicU64; 3],
    rests: [AtomicU64; 3],
    hints: [AtomicU32; 3],
}

impl Bucket for Bucket64 {
    const ENTRIES: usize = 5;

    #[inline]
    fn keys(&self) -> &[AtomicU64] {
        &self.keys
    }

    #[inline]
    fn hints(&self) -> &[AtomicU32] {
        &self.hints
    }

    #[inline]
    fn rest(&self, _: usize) -> u64 {
        0
    }

    #[inline]
    fn set_rest(&self, _: usize, _: u64) {}
}

impl Bucket for Bucket96 {
    const ENTRIES: usize = 4;

    #[inline]
    fn keys(&self) -> &[AtomicU64] {
        &self.keys
    }

    #[inline]
    fn hints(&self) -> &[AtomicU32] {
        &self.hints
    }

    #[inline]
    fn rest(&self, at: usize) -> u64 {
        u64::from(self.rests[at].load(Relaxed))
    }

    #[inline]
    fn set_rest(&self, at: usize, rest: u64) {
        self.rests[at].store(rest as u32, Relaxed);
    }
}

impl Bucket for Bucket128 {
    const ENTRIES: usize = 3;

    #[inline]
    fn keys(&self) -> &[AtomicU64] {
        &self.keys
    }

    #[inline]
    fn hints(&self) -> &[AtomicU32] {
        &self.hints
    }

    #[inline]
    fn rest(&self, at: usize) -> u64 {
        self.rests[at].load(Relaxed)
    }

    #[inline]
    fn set_rest(&self, at: usize, rest: u64) {
        self.rests[at].store(rest, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_a_cache_line() {
        assert_eq!(size_of::<Bucket64>(), 64);
        assert_eq!(size_of::<Bucket96>(), 64);
        assert_eq!(size_of::<Bucket128>(), 64);
    }

    #[test]
    fn a_fingerprint_comes_back_from_the_end_of_a_state() {
        fn there_and_back<W: Width>(sum: W::Sum) -> (u64, u64) {
            let mut numbers = vec![7, 8];
            append::<W>(&mut numbers, sum);
            let (state, sum) = parts::<W>(&numbers);
            assert_eq!(state, [7, 8]);
            (sum.low(), sum.high())
        }
        const LOW: u64 = 0x0123_4567_89ab_cdef;
        const HIGH: u64 = 0xfedc_ba98_7654_3210;
        assert_eq!(there_and_back::<Bits64>(LOW), (LOW, 0));
        assert_eq!(there_and_back::<Bits96>(u128::of(LOW, HIGH)), (LOW, HIGH & 0xffff_ffff));
        assert_eq!(there_and_back::<Bits128>(u128::of(LOW, HIGH)), (LOW, HIGH));
    }
}

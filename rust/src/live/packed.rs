//! Compact lists and sets for the data of each state. First-time access to fresh memory dominates the cost of a graph,
//! so every byte counts.

use crate::util::mapped_array::{MappedArray, prefetch};
use std::io;

/// Lists of a fixed number of numbers, in 1, 2 or 4 bytes each: the least that the greatest number needs.
pub(crate) struct States {
    len: usize,
    width: usize,
    size: usize,
    bytes: MappedArray<u8>,
}

impl States {
    pub fn new(width: usize) -> io::Result<States> {
        Ok(States { len: 0, width, size: 1, bytes: MappedArray::zeros(0)? })
    }

    /// Make it longer, with room for numbers up to the greatest that will come; what is new is zeros.
    pub fn grow(&mut self, len: usize, greatest: u32) -> io::Result<()> {
        let size = match greatest {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            _ => 4,
        };
        if size > self.size {
            let mut wider = States { size, bytes: MappedArray::zeros(0)?, ..*self };
            wider.bytes.grow(len * self.width * size)?;
            let mut state = Vec::new();
            for at in 0..self.len {
                state.clear();
                self.read(at, &mut state);
                wider.set(at, &state);
            }
            *self = wider;
        }
        self.len = len;
        self.bytes.grow(len * self.width * self.size)
    }

    #[inline]
    pub fn component(&self, at: usize, place: usize) -> u32 {
        let from = at * self.width + place;
        match self.size {
            1 => self.bytes[from].into(),
            2 => number::<2>(&self.bytes[from * 2..]),
            _ => number::<4>(&self.bytes[from * 4..]),
        }
    }

    /// Append one.
    #[inline]
    pub fn read(&self, at: usize, into: &mut Vec<u32>) {
        let len = self.width * self.size;
        let bytes = &self.bytes[at * len..][..len];
        match self.size {
            1 => into.extend(bytes.iter().map(|&byte| u32::from(byte))),
            2 => into.extend(bytes.chunks_exact(2).map(number::<2>)),
            _ => into.extend(bytes.chunks_exact(4).map(number::<4>)),
        }
    }

    #[inline]
    pub fn set(&mut self, at: usize, state: &[u32]) {
        let (size, len) = (self.size, self.width * self.size);
        let bytes = &mut self.bytes[at * len..][..len];
        match size {
            1 => bytes.iter_mut().zip(state).for_each(|(byte, &number)| *byte = number as u8),
            2 => write::<2>(bytes, state),
            _ => write::<4>(bytes, state),
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes.bytes()
    }
}

/// The number that some bytes begin with.
#[inline]
fn number<const SIZE: usize>(bytes: &[u8]) -> u32 {
    let mut number = [0; 4];
    number[..SIZE].copy_from_slice(&bytes[..SIZE]);
    u32::from_le_bytes(number)
}

#[inline]
fn write<const SIZE: usize>(bytes: &mut [u8], numbers: &[u32]) {
    for (bytes, number) in bytes.chunks_exact_mut(SIZE).zip(numbers) {
        bytes.copy_from_slice(&number.to_le_bytes()[..SIZE]);
    }
}

/// Sets of a fixed number of bits, in whole bytes.
pub(crate) struct Labels {
    width: usize,
    bytes: MappedArray<u8>,
}

impl Labels {
    pub fn new(bits: usize) -> io::Result<Labels> {
        Ok(Labels { width: bits.div_ceil(8), bytes: MappedArray::zeros(0)? })
    }

    pub fn len(&self) -> usize {
        self.bytes.len() / self.width
    }

    /// Make it longer; what is new is empty.
    pub fn grow(&mut self, len: usize) -> io::Result<()> {
        self.bytes.grow(len * self.width)
    }

    #[inline]
    pub fn get(&self, at: usize) -> u64 {
        if self.width == 1 {
            return self.bytes[at].into();
        }
        let mut label = [0; 8];
        label[..self.width].copy_from_slice(&self.bytes[at * self.width..][..self.width]);
        u64::from_le_bytes(label)
    }

    #[inline]
    pub fn set(&mut self, at: usize, label: u64) {
        self.bytes[at * self.width..][..self.width].copy_from_slice(&label.to_le_bytes()[..self.width]);
    }

    pub fn bytes(&self) -> usize {
        self.bytes.bytes()
    }
}

/// Numbers that never decrease: those of a block by what they exceed its first one.
pub(crate) struct Offsets {
    firsts: Vec<u64>,
    within: MappedArray<u32>,
}

impl Offsets {
    const BLOCK: usize = 1 << 10;

    pub fn new() -> io::Result<Offsets> {
        Ok(Offsets { firsts: Vec::new(), within: MappedArray::zeros(0)? })
    }

    pub fn len(&self) -> usize {
        self.within.len()
    }

    pub fn extend(&mut self, more: impl ExactSizeIterator<Item = u64>) -> io::Result<()> {
        let len = self.len();
        self.within.grow(len + more.len())?;
        for (at, offset) in (len..).zip(more) {
            if at % Self::BLOCK == 0 {
                self.firsts.push(offset);
            }
            let within = offset - self.firsts[at / Self::BLOCK];
            self.within[at] =
                u32::try_from(within).map_err(|_| io::Error::other("a thousand states have more than 2**32 edges"))?;
        }
        Ok(())
    }

    #[inline]
    pub fn get(&self, at: usize) -> u64 {
        self.firsts[at / Self::BLOCK] + u64::from(self.within[at])
    }

    #[inline]
    pub fn prefetch(&self, at: usize) {
        prefetch(&self.within, at);
    }

    pub fn bytes(&self) -> usize {
        self.within.bytes() + self.firsts.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_as_they_were_set_while_their_numbers_grow() {
        let mut states = States::new(3).unwrap();
        let state = |at: u32| [at, at.wrapping_mul(at), at.wrapping_mul(0x9e37_79b9) >> 8];
        let greatest = [(100, 255), (200, 255), (300, 256), (400, 65_535), (500, 65_536), (600, 9), (700, u32::MAX)];
        let mut expected: Vec<u32> = Vec::new();
        for (len, greatest) in greatest {
            let before = states.len as u32;
            states.grow(len, greatest).unwrap();
            for at in before..len as u32 {
                let fitting = state(at).map(|number| number.min(greatest));
                states.set(at as usize, &fitting);
                expected.extend(fitting);
            }
            let mut all = Vec::new();
            (0..len).for_each(|at| states.read(at, &mut all));
            assert_eq!(all, expected);
            assert!((0..len * 3).all(|at| states.component(at / 3, at % 3) == expected[at]));
        }
    }

    #[test]
    fn labels_are_as_they_were_set_whatever_their_width() {
        for bits in 1..=64 {
            let mut labels = Labels::new(bits).unwrap();
            labels.grow(100).unwrap();
            let label = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits);
            (0..100).filter(|at| at % 3 > 0).for_each(|at| labels.set(at as usize, label(at)));
            assert!((0..100).all(|at| labels.get(at as usize) == if at % 3 > 0 { label(at) } else { 0 }));
            assert_eq!(labels.len(), 100);
        }
    }

    #[test]
    fn offsets_go_beyond_four_bytes() {
        let mut offsets = Offsets::new().unwrap();
        let number = |at: u64| at * at * 400;
        (0..5000)
            .step_by(50)
            .for_each(|at| offsets.extend((at..at + 50).map(number).collect::<Vec<_>>().into_iter()).unwrap());
        assert!(number(4999) > u64::from(u32::MAX));
        assert!((0..5000).all(|at| offsets.get(at as usize) == number(at)));
        assert!(offsets.extend([u64::MAX].into_iter()).is_err());
    }
}

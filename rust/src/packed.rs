//! What a graph knows of each state, in few bytes: memory that is touched for the first time is most of what a graph costs.

use crate::large::{Large, prefetch};
use std::io;

/// Sets of so many bits each, in whole bytes.
pub(crate) struct Labels {
    width: usize,
    bytes: Large<u8>,
}

impl Labels {
    pub fn new(bits: usize) -> io::Result<Labels> {
        Ok(Labels { width: bits.div_ceil(8), bytes: Large::zeros(0)? })
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
    within: Large<u32>,
}

impl Offsets {
    const BLOCK: usize = 1 << 10;

    pub fn new() -> io::Result<Offsets> {
        Ok(Offsets { firsts: Vec::new(), within: Large::zeros(0)? })
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
            self.within[at] = u32::try_from(within).map_err(|_| io::Error::other("too many edges"))?;
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
        let number = |at: u64| at * at * 1000;
        (0..5000)
            .step_by(50)
            .for_each(|at| offsets.extend((at..at + 50).map(number).collect::<Vec<_>>().into_iter()).unwrap());
        assert!(number(4999) > u64::from(u32::MAX));
        assert!((0..5000).all(|at| offsets.get(at as usize) == number(at)));
        assert!(offsets.extend([u64::MAX].into_iter()).is_err());
    }
}

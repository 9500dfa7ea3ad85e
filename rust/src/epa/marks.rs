//! The bytes of memory that are parts of addresses, as far as recorded events wrote them. A program that reads a part of an
//! address, or reads an address as a number with a fraction, gets another value in each run.

use rustc_hash::FxHashMap;

/// Bytes that one mask covers.
const CHUNK: u64 = 64;

#[derive(Default)]
pub struct Marks {
    chunks: FxHashMap<u64, u64>,
}

/// The bytes of a chunk that are in a range.
#[inline]
fn mask(chunk: u64, from: u64, to: u64) -> u64 {
    let first = from.saturating_sub(chunk * CHUNK);
    let behind = (to - chunk * CHUNK).min(CHUNK);
    if first >= behind { 0 } else { (u64::MAX >> (CHUNK - behind)) & (u64::MAX << first) }
}

impl Marks {
    /// An address was written.
    #[inline]
    pub fn mark(&mut self, at: u64, length: u64) {
        let to = at.saturating_add(length);
        for chunk in at / CHUNK..to.div_ceil(CHUNK) {
            *self.chunks.entry(chunk).or_default() |= mask(chunk, at, to);
        }
    }

    /// Something else was written.
    #[inline]
    pub fn clear(&mut self, at: u64, length: u64) {
        let to = at.saturating_add(length);
        let range = at / CHUNK..to.div_ceil(CHUNK);
        if range.end - range.start > self.chunks.len() as u64 {
            for (&chunk, found) in self.chunks.iter_mut().filter(|(chunk, _)| range.contains(chunk)) {
                *found &= !mask(chunk, at, to);
            }
            return;
        }
        for chunk in range {
            if let Some(found) = self.chunks.get_mut(&chunk) {
                *found &= !mask(chunk, at, to);
            }
        }
    }

    /// Whether a byte of the range is part of an address.
    #[inline]
    pub fn any(&self, at: u64, length: u64) -> bool {
        let to = at.saturating_add(length);
        let range = at / CHUNK..to.div_ceil(CHUNK);
        if range.end - range.start > self.chunks.len() as u64 {
            return self
                .chunks
                .iter()
                .any(|(&chunk, &found)| range.contains(&chunk) && found & mask(chunk, at, to) != 0);
        }
        range.into_iter().any(|chunk| self.chunks.get(&chunk).is_some_and(|&found| found & mask(chunk, at, to) != 0))
    }

    /// Memory was copied.
    pub fn copy(&mut self, to: u64, from: u64, length: u64) {
        let marked: Vec<u64> = if self.any(from, length) {
            let here = |at: &u64| self.chunks.get(&(at / CHUNK)).is_some_and(|found| found >> (at % CHUNK) & 1 != 0);
            (from..from.saturating_add(length)).filter(here).map(|at| at - from).collect()
        } else {
            Vec::new()
        };
        self.clear(to, length);
        for offset in marked {
            self.mark(to + offset, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_marked_copied_and_cleared() {
        let mut marks = Marks::default();
        marks.mark(60, 8);
        assert!(marks.any(67, 1) && marks.any(0, 61) && !marks.any(0, 60) && !marks.any(68, 100));
        marks.copy(1000, 56, 10);
        assert!(marks.any(1004, 1) && marks.any(1009, 1) && !marks.any(1000, 4) && !marks.any(1010, 90));
        marks.clear(62, 100_000);
        assert!(marks.any(60, 2) && !marks.any(62, 1) && !marks.any(1004, 6));
        marks.copy(60, 2000, 2);
        assert!(!marks.any(0, u64::MAX - 1));
    }

    #[test]
    fn an_overlapping_copy_moves_the_marks() {
        let mut marks = Marks::default();
        marks.mark(8, 8);
        marks.copy(12, 8, 8);
        assert!(marks.any(8, 4) && marks.any(12, 8) && !marks.any(20, 8));
    }
}

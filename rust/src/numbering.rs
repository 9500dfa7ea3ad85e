//! Numbers for fingerprints: an open-addressing table that can be asked to have a slot at hand before it is looked at.

/// Fingerprints with their numbers; a number of `FREE` marks a free slot.
pub struct Numbering {
    slots: Vec<(u64, u32)>,
    len: usize,
}

const FREE: u32 = u32::MAX;

impl Default for Numbering {
    fn default() -> Self {
        Numbering { slots: vec![(0, FREE); 1 << 12], len: 0 }
    }
}

impl Numbering {
    /// Slots are in the order of the fingerprints, scaled to the size of the table.
    #[inline]
    fn home(&self, fingerprint: u64) -> usize {
        ((u128::from(fingerprint) * self.slots.len() as u128) >> 64) as usize
    }

    #[inline]
    fn slot(&self, fingerprint: u64) -> usize {
        let mut at = self.home(fingerprint);
        while self.slots[at].1 != FREE && self.slots[at].0 != fingerprint {
            at += 1;
            if at == self.slots.len() {
                at = 0;
            }
        }
        at
    }

    #[inline]
    pub fn prefetch(&self, fingerprint: u64) {
        prefetch(&self.slots, self.home(fingerprint));
    }

    #[inline]
    pub fn get(&self, fingerprint: u64) -> Option<u32> {
        Some(self.slots[self.slot(fingerprint)].1).filter(|&number| number != FREE)
    }

    /// The number of a fingerprint; if it has none, it gets this one, and none is returned.
    #[inline]
    pub fn get_or_insert(&mut self, fingerprint: u64, number: u32) -> Option<u32> {
        let at = self.slot(fingerprint);
        let known = self.slots[at].1;
        if known != FREE {
            return Some(known);
        }
        self.slots[at] = (fingerprint, number);
        self.len += 1;
        if self.len * 10 > self.slots.len() * 7 {
            self.grow();
        }
        None
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![(0, FREE); self.slots.len() * 2];
        for (fingerprint, number) in std::mem::replace(&mut self.slots, larger) {
            if number != FREE {
                let at = self.slot(fingerprint);
                self.slots[at] = (fingerprint, number);
            }
        }
    }
}

/// Ask the processor to have an element at hand soon.
#[inline]
pub fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = slice.get(at) {
        // SAFETY: a prefetch has no effect but on the cache, and the address is inside the slice.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_when_it_grows() {
        let mut numbering = Numbering::default();
        let fingerprint = |n: u32| u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for n in 0..50_000 {
            assert_eq!(numbering.get(fingerprint(n)), None);
            assert_eq!(numbering.get_or_insert(fingerprint(n), n), None);
        }
        assert!((0..50_000).all(|n| numbering.get_or_insert(fingerprint(n), 7) == Some(n)));
    }

    #[test]
    fn fingerprints_at_the_end_wrap_round() {
        let mut numbering = Numbering::default();
        for n in 0..1000 {
            assert_eq!(numbering.get_or_insert(u64::MAX - u64::from(n), n), None);
        }
        assert!((0..1000).all(|n| numbering.get(u64::MAX - u64::from(n)) == Some(n)));
    }
}

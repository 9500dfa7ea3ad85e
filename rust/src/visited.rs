//! The visited set: an open-addressing table of 64-bit fingerprints that several workers fill without locks.
//!
//! Each entry has a 32-bit *parent hint*, the upper half of the fingerprint of the state it was reached from. A slot follows
//! from a fingerprint by multiplication, so that the table is nearly sorted: entries that share their upper half are
//! neighbours, the parent of any entry can be looked up by its hint, and growing is one sequential pass. Twelve bytes a
//! slot at a load of 54 % to 75 % make 16 to 22.4 bytes a state.

use crate::control::resident;
use memmap2::MmapMut;
use parking_lot::{RwLock, RwLockReadGuard};
use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

const MAX_LOAD: f64 = 0.75;
const GROWTH: f64 = 1.4;
const SLOT_BYTES: usize = size_of::<u64>() + size_of::<u32>();
/// After the last home slot there is room for probes to run on, so that no probe wraps around.
const OVERFLOW: usize = 1024;

struct Slots {
    keys: MmapMut,
    hints: MmapMut,
    capacity: usize,
    limit: usize,
}

impl Slots {
    fn new(capacity: usize) -> io::Result<Slots> {
        let slots = capacity + OVERFLOW;
        let keys = MmapMut::map_anon(slots * size_of::<u64>())?;
        let hints = MmapMut::map_anon(slots * size_of::<u32>())?;
        #[cfg(target_os = "linux")]
        {
            // Fewer misses of the address translation cache; only advice.
            let _ = keys.advise(memmap2::Advice::HugePage);
        }
        Ok(Slots { keys, hints, capacity, limit: (capacity as f64 * MAX_LOAD) as usize })
    }

    #[inline]
    fn keys(&self) -> &[AtomicU64] {
        let length = self.keys.len() / size_of::<u64>();
        // SAFETY: the mapping is page-aligned, zeroed, owned by self, and only ever accessed through atomics.
        unsafe { std::slice::from_raw_parts(self.keys.as_ptr().cast::<AtomicU64>(), length) }
    }

    #[inline]
    fn hints(&self) -> &[AtomicU32] {
        let length = self.hints.len() / size_of::<u32>();
        // SAFETY: as for keys.
        unsafe { std::slice::from_raw_parts(self.hints.as_ptr().cast::<AtomicU32>(), length) }
    }

    #[inline]
    fn home(&self, fingerprint: u64) -> usize {
        ((u128::from(fingerprint) * self.capacity as u128) >> 64) as usize
    }

    #[inline]
    fn insert(&self, fingerprint: u64, hint: u32) -> bool {
        let keys = self.keys();
        let mut slot = self.home(fingerprint);
        loop {
            let mut key = keys[slot].load(Relaxed);
            if key == 0 {
                match keys[slot].compare_exchange(0, fingerprint, Relaxed, Relaxed) {
                    Ok(_) => {
                        self.hints()[slot].store(hint, Relaxed);
                        return true;
                    }
                    Err(other) => key = other,
                }
            }
            if key == fingerprint {
                return false;
            }
            slot += 1;
        }
    }

    /// Room for all entries of `old`, whose pages are given back on the way.
    fn grow_from(&self, old: &mut Slots) {
        const STRIDE: usize = 1 << 22;
        let slots = old.capacity + OVERFLOW;
        for start in (0..slots).step_by(STRIDE) {
            let end = (start + STRIDE).min(slots);
            for slot in start..end {
                let key = old.keys()[slot].load(Relaxed);
                if key != 0 {
                    self.insert(key, old.hints()[slot].load(Relaxed));
                }
            }
            #[cfg(target_os = "linux")]
            // SAFETY: this part of the old table is not read again.
            unsafe {
                let advice = memmap2::UncheckedAdvice::DontNeed;
                let _ = old.keys.unchecked_advise_range(advice, start * 8, (end - start) * 8);
                let _ = old.hints.unchecked_advise_range(advice, start * 4, (end - start) * 4);
            }
        }
    }
}

pub struct Visited {
    slots: RwLock<Slots>,
    count: AtomicUsize,
    /// The process may use so many bytes in all.
    memory: usize,
}

impl Visited {
    pub fn new(memory: usize) -> io::Result<Visited> {
        Ok(Visited { slots: RwLock::new(Slots::new(1 << 16)?), count: AtomicUsize::new(0), memory })
    }

    /// Access for a while, with room for `room` more entries; other sessions may insert `others` meanwhile.
    pub fn session(&self, room: usize, others: usize) -> io::Result<Session<'_>> {
        loop {
            let slots = self.slots.read();
            if self.count.load(Relaxed) + room + others <= slots.limit {
                return Ok(Session { slots, count: &self.count, added: 0 });
            }
            drop(slots);
            self.grow(room + others)?;
        }
    }

    fn grow(&self, room: usize) -> io::Result<()> {
        let mut slots = self.slots.write();
        let needed = self.count.load(Relaxed) + room;
        if needed <= slots.limit {
            return Ok(()); // Another worker did it.
        }
        let mut capacity = slots.capacity;
        while (capacity as f64 * MAX_LOAD) as usize <= needed {
            capacity = (capacity as f64 * GROWTH) as usize;
        }
        let more = (capacity - slots.capacity) * SLOT_BYTES;
        if self.memory != usize::MAX && resident().unwrap_or(0) + more > self.memory {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let bigger = Slots::new(capacity)?;
        bigger.grow_from(&mut slots);
        *slots = bigger;
        Ok(())
    }

    /// How many fingerprints are in; exact while no session is open.
    pub fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> usize {
        (self.slots.read().capacity + OVERFLOW) * SLOT_BYTES
    }

    pub fn fingerprints(&self) -> Vec<u64> {
        self.slots.read().keys().iter().map(|k| k.load(Relaxed)).filter(|&k| k != 0).collect()
    }

    /// The states that the hint of this one may mean: nearly always exactly one.
    pub fn parents(&self, fingerprint: u64) -> Vec<u64> {
        let slots = self.slots.read();
        let keys = slots.keys();
        let mut slot = slots.home(fingerprint);
        while keys[slot].load(Relaxed) != fingerprint {
            if keys[slot].load(Relaxed) == 0 {
                return Vec::new();
            }
            slot += 1;
        }
        let hint = u64::from(slots.hints()[slot].load(Relaxed));
        let last = slots.home(hint << 32 | u64::from(u32::MAX));
        let mut found = Vec::new();
        let mut slot = slots.home(hint << 32);
        loop {
            let key = keys[slot].load(Relaxed);
            if key >> 32 == hint && key != 0 {
                found.push(key);
            }
            if key == 0 && slot >= last {
                return found;
            }
            slot += 1;
        }
    }
}

/// A time in which the table does not move.
pub struct Session<'a> {
    slots: RwLockReadGuard<'a, Slots>,
    count: &'a AtomicUsize,
    added: usize,
}

impl Session<'_> {
    /// Ask the processor to have the slot at hand soon.
    #[inline]
    pub fn prefetch(&self, fingerprint: u64) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch has no effect but on the cache, and the address is inside the mapping.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let slot = self.slots.keys.as_ptr().cast::<u64>().add(self.slots.home(fingerprint));
            _mm_prefetch::<_MM_HINT_T0>(slot.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = fingerprint;
    }

    /// Whether the fingerprint is new; it is in afterwards.
    #[inline]
    pub fn insert(&mut self, fingerprint: u64, parent: u64) -> bool {
        let new = self.slots.insert(fingerprint, (parent >> 32) as u32);
        self.added += usize::from(new);
        new
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.count.fetch_add(self.added, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash;

    fn number(i: u64) -> u64 {
        hash::fingerprint(hash::sequence(0, &[i]))
    }

    #[test]
    fn each_is_new_once_and_parents_are_found_across_growth() {
        let visited = Visited::new(usize::MAX).unwrap();
        for round in 0..2 {
            for i in 0..200_000u64 {
                let mut session = visited.session(1, 0).unwrap();
                assert_eq!(session.insert(number(i), number(i / 2)), round == 0);
            }
        }
        assert_eq!(visited.len(), 200_000);
        assert_eq!(visited.fingerprints().len(), 200_000);
        for i in 0..200_000u64 {
            assert!(visited.parents(number(i)).contains(&number(i / 2)));
        }
        let per_state = visited.bytes() as f64 / visited.len() as f64;
        assert!(per_state <= 24.0, "{per_state} bytes a state");
    }

    #[test]
    fn workers_agree_on_who_was_first() {
        let visited = Visited::new(usize::MAX).unwrap();
        let new: usize = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut new = 0;
                        for start in (0..100_000u64).step_by(100) {
                            let mut session = visited.session(100, 300).unwrap();
                            new += (start..start + 100).filter(|&i| session.insert(number(i), 1)).count();
                        }
                        new
                    })
                })
                .collect();
            workers.into_iter().map(|w| w.join().unwrap()).sum()
        });
        assert_eq!(new, 100_000);
    }
}

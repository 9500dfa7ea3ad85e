//! The visited set: an open-addressing table of 64-bit fingerprints that several workers fill without locks.
//!
//! Each entry has a 32-bit *parent hint*, the upper half of the fingerprint of the state it was reached from. Five entries
//! share a bucket of one cache line, so that a look-up is one miss. The bucket follows from the fingerprint by
//! multiplication, so that the table is nearly sorted: entries that share their upper half are neighbours, the parent of
//! any entry can be looked up by its hint, and growing is one sequential pass in place. 12.8 bytes a slot at a load of 57 % to
//! 80 % make 16 to 22.4 bytes a state. Where states are numbered (`graph`), the number takes the place of the hint.

use crate::util::mapped_array;
use crate::util::memory::resident;
use memmap2::MmapMut;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

const MAX_LOAD: f64 = 0.8;
const GROWTH: f64 = 1.4;
/// A table below this many bytes grows faster: time matters more than space there.
const SMALL_TABLE: usize = 16 << 20;
const ENTRIES: usize = 5;
/// After the last home bucket there is room for probes to run on, so that no probe wraps around.
const OVERFLOW: usize = 256;

/// Filled from the front; nothing is ever removed, so a bucket with room ends a probe. Where no key is, the hint is 0.
#[repr(C, align(64))]
struct Bucket {
    keys: [AtomicU64; ENTRIES],
    hints: [AtomicU32; ENTRIES],
}

const BUCKET_BYTES: usize = size_of::<Bucket>();

struct Slots {
    memory: MmapMut,
    /// Home buckets; there are OVERFLOW more.
    buckets: usize,
    limit: usize,
}

impl Slots {
    fn new(buckets: usize) -> io::Result<Slots> {
        let memory = mapped_array::mapped((buckets + OVERFLOW) * BUCKET_BYTES)?;
        Ok(Slots { memory, buckets, limit: limit(buckets) })
    }

    #[inline]
    fn all(&self) -> &[Bucket] {
        // SAFETY: the mapping is page-aligned, zeroed, owned by self, and only ever accessed through atomics.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast::<Bucket>(), self.buckets + OVERFLOW) }
    }

    #[inline]
    fn home(&self, fingerprint: u64) -> usize {
        ((u128::from(fingerprint) * self.buckets as u128) >> 64) as usize
    }

    /// The hint of a fingerprint, if that is in.
    #[inline]
    fn find(&self, fingerprint: u64) -> Option<&AtomicU32> {
        let mut index = self.home(fingerprint);
        loop {
            let bucket = &self.all()[index];
            for (key, hint) in bucket.keys.iter().zip(&bucket.hints) {
                match key.load(Relaxed) {
                    0 => return None,
                    found if found == fingerprint => return Some(hint),
                    _ => {}
                }
            }
            index += 1;
        }
    }

    /// Insert a fingerprint. Returns whether it is new, and its hint, which the caller sets if it is new. `alone`: no
    /// other worker inserts meanwhile.
    #[inline]
    fn insert(&self, fingerprint: u64, alone: bool) -> (bool, &AtomicU32) {
        let all = self.all();
        let mut index = self.home(fingerprint);
        loop {
            let bucket = &all[index];
            for (key, hint) in bucket.keys.iter().zip(&bucket.hints) {
                let mut found = key.load(Relaxed);
                if found == 0 && alone {
                    key.store(fingerprint, Relaxed);
                    return (true, hint);
                }
                if found == 0 {
                    match key.compare_exchange(0, fingerprint, Relaxed, Relaxed) {
                        Ok(_) => return (true, hint),
                        Err(other) => found = other,
                    }
                }
                if found == fingerprint {
                    return (false, hint);
                }
            }
            index += 1;
        }
    }

    /// Insert a fingerprint that is not in the set, while no other worker uses it.
    #[inline]
    fn put(&self, fingerprint: u64, hint: u32) {
        let all = self.all();
        let mut index = self.home(fingerprint);
        loop {
            let bucket = &all[index];
            if let Some(free) = bucket.keys.iter().position(|key| key.load(Relaxed) == 0) {
                bucket.keys[free].store(fingerprint, Relaxed);
                bucket.hints[free].store(hint, Relaxed);
                return;
            }
            index += 1;
        }
    }

    /// Make room for more buckets. `helped`: a second thread fetches the new memory, which takes as long as the moving.
    fn grow(&mut self, buckets: usize, helped: bool) -> io::Result<()> {
        let old = self.buckets + OVERFLOW;
        self.resize(buckets)?;
        std::thread::scope(|scope| {
            if helped {
                scope.spawn(|| self.fetch(old));
            }
            self.move_up(old);
        });
        Ok(())
    }

    /// The table is nearly sorted, and every entry's home moves up: from the top down, each of the entries in the first
    /// `old` buckets has a free place above all that have not moved yet.
    fn move_up(&self, old: usize) {
        /// Below this, an entry may have been displaced further than its home moves: these wait outside.
        const LOW: usize = 16 * OVERFLOW;
        let mut entries: Vec<(u64, u32)> = Vec::new();
        for index in (0..old).rev() {
            let bucket = &self.all()[index];
            for (slot, hint) in bucket.keys.iter().zip(&bucket.hints) {
                let key = slot.load(Relaxed);
                if key == 0 {
                    break;
                }
                entries.push((key, hint.load(Relaxed)));
                slot.store(0, Relaxed);
                hint.store(0, Relaxed);
            }
            if index >= LOW || index == 0 {
                entries.drain(..).for_each(|(key, hint)| self.put(key, hint));
            }
        }
    }

    /// Have the system provide the memory behind the first `old` buckets, from the top down; only advice.
    fn fetch(&self, old: usize) {
        #[cfg(target_os = "linux")]
        {
            const STRIDE: usize = 4 << 20;
            let mut end = self.memory.len();
            while end > old * BUCKET_BYTES {
                let start = (end - 1) / STRIDE * STRIDE;
                let _ = self.memory.advise_range(memmap2::Advice::PopulateWrite, start, end - start);
                end = start;
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = old;
    }

    /// More memory with the same content; what is new is zero.
    fn resize(&mut self, buckets: usize) -> io::Result<()> {
        mapped_array::remap(&mut self.memory, (buckets + OVERFLOW) * BUCKET_BYTES)?;
        self.buckets = buckets;
        self.limit = limit(buckets);
        Ok(())
    }
}

/// The maximal number of entries in this many buckets.
fn limit(buckets: usize) -> usize {
    ((buckets * ENTRIES) as f64 * MAX_LOAD) as usize
}

pub struct Visited {
    slots: RwLock<Slots>,
    count: AtomicUsize,
    /// The maximal memory of the process, in bytes.
    memory: usize,
    /// The maximal number of entries. A session that could reach it has the gate for itself, and knows the exact count.
    most: usize,
    gate: RwLock<()>,
    refused: AtomicBool,
}

impl Visited {
    pub fn new(memory: usize, most: usize) -> io::Result<Visited> {
        let (slots, count) = (RwLock::new(Slots::new(1 << 13)?), AtomicUsize::new(0));
        Ok(Visited { slots, count, memory, most, gate: RwLock::new(()), refused: AtomicBool::new(false) })
    }

    /// Begin again with nothing.
    pub fn clear(&self) -> io::Result<()> {
        let mut slots = self.slots.write();
        self.refused.store(false, Relaxed);
        if self.count.swap(0, Relaxed) > 0 {
            *slots = Slots::new(1 << 13)?;
        }
        Ok(())
    }

    /// Access for a while, with room for `room` more entries; other sessions may insert `others` meanwhile (0: there are
    /// none).
    pub fn session(&self, room: usize, others: usize) -> io::Result<Session<'_>> {
        let gate = self.gate(room + others);
        loop {
            let slots = self.slots.read();
            let count = self.count.load(Relaxed);
            if count + room + others <= slots.limit {
                let left = if let Gate::Alone(_) = gate { self.most - count } else { usize::MAX };
                return Ok(Session { _gate: gate, slots, alone: others == 0, visited: self, added: 0, left });
            }
            drop(slots);
            self.grow(room + others, others > 0)?;
        }
    }

    /// Access for sessions that together may insert this many entries.
    fn gate(&self, more: usize) -> Gate<'_> {
        if self.most == usize::MAX {
            return Gate::Open;
        }
        let shared = self.gate.read();
        if self.count.load(Relaxed) + more <= self.most {
            return Gate::Shared(shared);
        }
        drop(shared);
        Gate::Alone(self.gate.write())
    }

    /// Whether a new entry was refused, because there are as many as are allowed.
    #[inline]
    pub fn refused(&self) -> bool {
        self.refused.load(Relaxed)
    }

    fn grow(&self, room: usize, helped: bool) -> io::Result<()> {
        let mut slots = self.slots.write();
        let needed = self.count.load(Relaxed) + room;
        if needed <= slots.limit {
            return Ok(()); // Another worker did it.
        }
        let mut buckets = slots.buckets;
        while limit(buckets) < needed {
            let growth = if buckets * BUCKET_BYTES < SMALL_TABLE { 4.0 } else { GROWTH };
            buckets = (buckets as f64 * growth) as usize;
        }
        let more = (buckets - slots.buckets) * BUCKET_BYTES;
        if self.memory != usize::MAX && resident().unwrap_or(0) + more > self.memory {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        slots.grow(buckets, helped && buckets * BUCKET_BYTES > SMALL_TABLE)
    }

    /// How many fingerprints are in; exact while no session is open.
    pub fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn bytes(&self) -> usize {
        (self.slots.read().buckets + OVERFLOW) * BUCKET_BYTES
    }

    pub fn fingerprints(&self) -> Vec<u64> {
        let slots = self.slots.read();
        slots.all().iter().flat_map(|b| &b.keys).map(|k| k.load(Relaxed)).filter(|&k| k != 0).collect()
    }

    /// The states that the hint of this one may mean: nearly always exactly one.
    pub fn parents(&self, fingerprint: u64) -> Vec<u64> {
        let slots = self.slots.read();
        let hint = slots.entries(fingerprint, fingerprint).find(|&(key, _)| key == fingerprint).map(|(_, hint)| hint);
        let Some(hint) = hint.map(u64::from) else {
            return Vec::new();
        };
        let range = (hint << 32, hint << 32 | u64::from(u32::MAX));
        slots.entries(range.0, range.1).map(|(key, _)| key).filter(|key| key >> 32 == hint).collect()
    }
}

impl Slots {
    /// The entries among which all fingerprints from `first` to `last` are, if they are in at all.
    fn entries(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, u32)> {
        let (start, end) = (self.home(first), self.home(last));
        let full = |bucket: &Bucket| bucket.keys[ENTRIES - 1].load(Relaxed) != 0;
        let overflow = self.all()[end..].iter().take_while(|b| full(b)).count();
        let buckets = &self.all()[start..=end + overflow];
        let entry = |(key, hint): (&AtomicU64, &AtomicU32)| (key.load(Relaxed), hint.load(Relaxed));
        buckets.iter().flat_map(move |b| b.keys.iter().zip(&b.hints).map(entry)).filter(|&(key, _)| key != 0)
    }
}

/// What a session holds while it is open: nothing if there is no limit, else the gate, with others or alone.
enum Gate<'a> {
    Open,
    Shared(#[expect(dead_code, reason = "held")] RwLockReadGuard<'a, ()>),
    Alone(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'a, ()>),
}

/// A time in which the table does not move.
pub struct Session<'a> {
    _gate: Gate<'a>,
    slots: RwLockReadGuard<'a, Slots>,
    alone: bool,
    visited: &'a Visited,
    added: usize,
    /// How many more entries are allowed.
    left: usize,
}

impl Session<'_> {
    /// Ask the processor to have the bucket at hand soon.
    #[inline]
    pub fn prefetch(&self, fingerprint: u64) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch has no effect but on the cache, and the address is inside the mapping.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let bucket = self.slots.memory.as_ptr().cast::<Bucket>().add(self.slots.home(fingerprint));
            _mm_prefetch::<_MM_HINT_T0>(bucket.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = fingerprint;
    }

    /// Whether the fingerprint is in.
    #[inline]
    pub fn contains(&self, fingerprint: u64) -> bool {
        self.slots.find(fingerprint).is_some()
    }

    /// Whether the fingerprint is new; it is in afterwards. Beyond the maximal number of entries, nothing is new.
    #[inline]
    pub fn insert(&mut self, fingerprint: u64, parent: u64) -> bool {
        if self.left == 0 {
            return self.refuse(fingerprint);
        }
        let (new, hint) = self.slots.insert(fingerprint, self.alone);
        if new {
            hint.store((parent >> 32) as u32, Relaxed);
        }
        self.added += usize::from(new);
        self.left -= usize::from(new);
        new
    }

    #[cold]
    fn refuse(&self, fingerprint: u64) -> bool {
        self.visited.refused.fetch_or(!self.contains(fingerprint), Relaxed);
        false
    }

    /// The number of a fingerprint, where each has a number instead of a parent.
    #[inline]
    pub fn number(&self, fingerprint: u64) -> Option<u32> {
        self.slots.find(fingerprint).map(number)
    }

    /// The number of a fingerprint, and whether it is new: then it got the `next` one.
    #[inline]
    pub fn number_or(&mut self, fingerprint: u64, next: &AtomicU32) -> (u32, bool) {
        let (new, hint) = self.slots.insert(fingerprint, self.alone);
        if !new {
            return (number(hint), false);
        }
        let own = next.fetch_add(1, Relaxed);
        hint.store(own + 1, Relaxed);
        self.added += 1;
        (own, true)
    }
}

/// The hint of an entry as a number; the worker that made the entry may be about to set it.
#[inline]
fn number(hint: &AtomicU32) -> u32 {
    loop {
        match hint.load(Relaxed) {
            0 => std::thread::yield_now(),
            known => return known - 1,
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.visited.count.fetch_add(self.added, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::hash;

    fn number(i: u64) -> u64 {
        hash::fingerprint(hash::sequence(0, &[i]))
    }

    #[test]
    fn each_is_new_once_and_parents_are_found_across_growth() {
        const COUNT: u64 = 2_000_000;
        let visited = Visited::new(usize::MAX, usize::MAX).unwrap();
        for round in 0..2 {
            for i in 0..COUNT {
                let mut session = visited.session(1, 0).unwrap();
                assert_eq!(session.insert(number(i), number(i / 2)), round == 0);
            }
        }
        assert_eq!(visited.len() as u64, COUNT);
        assert_eq!(visited.fingerprints().len() as u64, COUNT);
        for i in 0..COUNT {
            assert!(visited.parents(number(i)).contains(&number(i / 2)));
        }
        let per_state = visited.bytes() as f64 / visited.len() as f64;
        assert!(per_state <= 24.0, "{per_state} bytes a state");
    }

    #[test]
    fn workers_agree_on_who_was_first() {
        let visited = Visited::new(usize::MAX, usize::MAX).unwrap();
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

    #[test]
    fn there_are_never_more_than_allowed() {
        for most in [1, 99, 1_000, 99_999, 100_000] {
            let visited = Visited::new(usize::MAX, most).unwrap();
            let new: usize = std::thread::scope(|scope| {
                let work = || {
                    let mut new = 0;
                    for start in (0..100_000u64).step_by(100) {
                        let mut session = visited.session(100, 300).unwrap();
                        new += (start..start + 100).filter(|&i| session.insert(number(i), 1)).count();
                    }
                    new
                };
                let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
                workers.into_iter().map(|w| w.join().unwrap()).sum()
            });
            assert_eq!((new, visited.len(), visited.refused()), (most, most, most < 100_000));
        }
    }

    #[test]
    fn workers_agree_on_numbers() {
        let visited = Visited::new(usize::MAX, usize::MAX).unwrap();
        let next = AtomicU32::new(0);
        let numbers: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let work = || {
                let mut numbers = Vec::new();
                for start in (0..100_000u64).step_by(100) {
                    let mut session = visited.session(100, 300).unwrap();
                    numbers.extend((start..start + 100).map(|i| session.number_or(number(i), &next).0));
                }
                numbers
            };
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
            workers.into_iter().map(|w| w.join().unwrap()).collect()
        });
        assert!(numbers.iter().all(|one| *one == numbers[0]));
        let mut each = numbers[0].clone();
        each.sort_unstable();
        assert!(each.into_iter().eq(0..100_000));
        // Where nothing is, growing has left no number behind that could be taken for that of what comes there.
        let slots = visited.slots.read();
        let entries = slots.all().iter().flat_map(|bucket| bucket.keys.iter().zip(&bucket.hints));
        assert!(entries.into_iter().all(|(key, hint)| key.load(Relaxed) != 0 || hint.load(Relaxed) == 0));
        drop(slots);
        let session = visited.session(1, 0).unwrap();
        assert!((0..100_000).all(|i| session.number(number(i)) == Some(numbers[0][i as usize])));
        assert_eq!(session.number(number(100_000)), None);
    }
}

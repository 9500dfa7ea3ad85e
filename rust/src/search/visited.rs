//! The visited set: an open-addressing table of fingerprints that several workers fill without locks.
//!
//! Each entry has a 32-bit *parent hint*, the upper half of the key of the state it was reached from. The entries of a bucket
//! share one cache line (`width`), so that a look-up is one miss. The bucket follows from the 64-bit key by multiplication, so
//! that the table is nearly sorted: entries that share the upper half of their keys are neighbours, the parent of any entry can
//! be looked up by its hint, and growing is one sequential pass in place. With 96 bits, 16 bytes a slot at a load of 57 % to
//! 80 % make 20 to 28 bytes a state; with 64 bits, 16 to 22.4. Where states are numbered (`graph`), the number takes the place
//! of the hint.

use crate::search::width::{self, Bits64, Bits96, Bits128, Bucket, Bucket64, Bucket96, Bucket128, Width};
use crate::util::mapped_array;
use crate::util::memory::resident;
use memmap2::MmapMut;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};

const MAX_LOAD: f64 = 0.8;
const GROWTH: f64 = 1.4;
/// A table below this many bytes grows faster: time matters more than space there.
const SMALL_TABLE: usize = 16 << 20;
/// After the last home bucket there is room for probes to run on, so that no probe wraps around.
const OVERFLOW: usize = 256;

const BUCKET_BYTES: usize = 64;

/// Call a method of `Slots` for its width.
macro_rules! by_width {
    ($slots:expr, $method:ident $arguments:tt) => {
        match $slots.bits {
            64 => $slots.$method::<Bits64> $arguments,
            96 => $slots.$method::<Bits96> $arguments,
            _ => $slots.$method::<Bits128> $arguments,
        }
    };
}

/// A key, its rest and its hint.
pub type Entry = (u64, u64, u32);

struct Slots {
    memory: MmapMut,
    /// Of the fingerprints: 64, 96 or 128.
    bits: u32,
    /// Home buckets; there are OVERFLOW more.
    buckets: usize,
    limit: usize,
}

impl Slots {
    fn new(buckets: usize, bits: u32) -> io::Result<Slots> {
        let memory = mapped_array::mapped((buckets + OVERFLOW) * BUCKET_BYTES)?;
        Ok(Slots { memory, bits, buckets, limit: limit(buckets, bits) })
    }

    #[inline]
    fn all<W: Width>(&self) -> &[W::Bucket] {
        const { assert!(size_of::<W::Bucket>() == BUCKET_BYTES) };
        // SAFETY: the mapping is page-aligned, zeroed, owned by self, and only ever accessed through atomics.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast::<W::Bucket>(), self.buckets + OVERFLOW) }
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        ((u128::from(key) * self.buckets as u128) >> 64) as usize
    }

    /// The hint of a fingerprint, if that is in.
    #[inline]
    fn find<W: Width>(&self, fingerprint: W::Sum) -> Option<&AtomicU32> {
        let (key, rest) = (width::key(fingerprint), W::rest(fingerprint));
        let mut index = self.home(key);
        loop {
            let bucket = &self.all::<W>()[index];
            for at in 0..W::Bucket::ENTRIES {
                match bucket.keys()[at].load(Relaxed) {
                    0 => return None,
                    found if found == key && bucket.has_rest(at, rest) => return Some(&bucket.hints()[at]),
                    _ => {}
                }
            }
            index += 1;
        }
    }

    /// Insert a fingerprint. Returns whether it is new, and its hint, which the caller sets if it is new. `alone`: no
    /// other worker inserts meanwhile.
    #[inline]
    fn insert<W: Width>(&self, fingerprint: W::Sum, alone: bool) -> (bool, &AtomicU32) {
        let (key, rest) = (width::key(fingerprint), W::rest(fingerprint));
        let all = self.all::<W>();
        let mut index = self.home(key);
        loop {
            let bucket = &all[index];
            for at in 0..W::Bucket::ENTRIES {
                let slot = &bucket.keys()[at];
                let mut found = slot.load(Relaxed);
                if found == 0 {
                    let taken = if alone {
                        slot.store(key, Relaxed);
                        Ok(0)
                    } else {
                        slot.compare_exchange(0, key, Relaxed, Relaxed)
                    };
                    match taken {
                        Ok(_) => {
                            bucket.set_rest(at, rest);
                            return (true, &bucket.hints()[at]);
                        }
                        Err(other) => found = other,
                    }
                }
                if found == key && bucket.has_rest(at, rest) {
                    return (false, &bucket.hints()[at]);
                }
            }
            index += 1;
        }
    }

    /// Insert an entry that is not in the set, while no other worker uses it.
    #[inline]
    fn put<W: Width>(&self, (key, rest, hint): Entry) {
        let all = self.all::<W>();
        let mut index = self.home(key);
        loop {
            let bucket = &all[index];
            if let Some(free) = bucket.keys().iter().position(|key| key.load(Relaxed) == 0) {
                bucket.keys()[free].store(key, Relaxed);
                bucket.set_rest(free, rest);
                bucket.hints()[free].store(hint, Relaxed);
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
            by_width!(self, move_up(old));
        });
        Ok(())
    }

    /// The table is nearly sorted, and every entry's home moves up: from the top down, each of the entries in the first
    /// `old` buckets has a free place above all that have not moved yet.
    fn move_up<W: Width>(&self, old: usize) {
        /// Below this, an entry may have been displaced further than its home moves: these wait outside.
        const LOW: usize = 16 * OVERFLOW;
        let mut entries: Vec<Entry> = Vec::new();
        for index in (0..old).rev() {
            let bucket = &self.all::<W>()[index];
            for (at, (slot, hint)) in bucket.keys().iter().zip(bucket.hints()).enumerate() {
                let key = slot.load(Relaxed);
                if key == 0 {
                    break;
                }
                entries.push((key, bucket.rest(at), hint.load(Relaxed)));
                slot.store(0, Relaxed);
                bucket.set_rest(at, 0);
                hint.store(0, Relaxed);
            }
            if index >= LOW || index == 0 {
                entries.drain(..).for_each(|entry| self.put::<W>(entry));
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
        self.limit = limit(buckets, self.bits);
        Ok(())
    }
}

/// The maximal number of entries in this many buckets.
fn limit(buckets: usize, bits: u32) -> usize {
    let entries = match bits {
        64 => Bucket64::ENTRIES,
        96 => Bucket96::ENTRIES,
        _ => Bucket128::ENTRIES,
    };
    ((buckets * entries) as f64 * MAX_LOAD) as usize
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
    /// `bits`: of the fingerprints, 64, 96 or 128.
    pub fn new(memory: usize, most: usize, bits: u32) -> io::Result<Visited> {
        let (slots, count) = (RwLock::new(Slots::new(1 << 13, bits)?), AtomicUsize::new(0));
        Ok(Visited { slots, count, memory, most, gate: RwLock::new(()), refused: AtomicBool::new(false) })
    }

    /// Begin again with nothing.
    pub fn clear(&self) -> io::Result<()> {
        let mut slots = self.slots.write();
        self.refused.store(false, Relaxed);
        if self.count.swap(0, Relaxed) > 0 {
            *slots = Slots::new(1 << 13, slots.bits)?;
        }
        Ok(())
    }

    /// How many bits the fingerprints have.
    pub fn bits(&self) -> u32 {
        self.slots.read().bits
    }

    /// Have what another set has.
    pub fn replace(&self, other: Visited) {
        self.count.store(other.len(), Relaxed);
        *self.slots.write() = other.slots.into_inner();
    }

    /// Access for a while to fingerprints of 64 bits, with room for `room` more entries; other sessions may insert `others`
    /// meanwhile (0: there are none).
    pub fn session(&self, room: usize, others: usize) -> io::Result<Session<'_, Bits64>> {
        self.session_of(room, others)
    }

    /// The same for fingerprints of any width, the one of the set.
    pub fn session_of<W: Width>(&self, room: usize, others: usize) -> io::Result<Session<'_, W>> {
        let gate = self.gate(room + others);
        loop {
            let slots = self.slots.read();
            let count = self.count.load(Relaxed);
            if count + room + others <= slots.limit {
                let left = if let Gate::Alone(_) = gate { self.most - count } else { usize::MAX };
                assert_eq!(slots.bits as usize, W::BITS, "fingerprints have the width of the set");
                let alone = others == 0;
                return Ok(Session { _gate: gate, slots, alone, visited: self, added: 0, left, width: PhantomData });
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
        while limit(buckets, slots.bits) < needed {
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
        by_width!(slots, entries(0, u64::MAX)).into_iter().map(|(key, _, _)| key).collect()
    }

    /// The states that the hint of this one may mean, by their keys: nearly always exactly one.
    pub fn parents(&self, fingerprint: u64) -> Vec<u64> {
        let slots = self.slots.read();
        let mut found = Vec::new();
        for (_, _, hint) in by_width!(slots, entries(fingerprint, fingerprint)) {
            let hint = u64::from(hint) << 32;
            found
                .extend(by_width!(slots, entries(hint, hint | u64::from(u32::MAX))).into_iter().map(|(key, _, _)| key));
        }
        found
    }
}

impl Slots {
    /// The entries whose keys are from `first` to `last`.
    fn entries<W: Width>(&self, first: u64, last: u64) -> Vec<Entry> {
        let (start, end) = (self.home(first), self.home(last));
        let all = self.all::<W>();
        let full = |bucket: &W::Bucket| bucket.keys()[W::Bucket::ENTRIES - 1].load(Relaxed) != 0;
        let overflow = all[end..].iter().take_while(|b| full(b)).count();
        let mut found = Vec::new();
        for bucket in &all[start..=end + overflow] {
            for (at, (key, hint)) in bucket.keys().iter().zip(bucket.hints()).enumerate() {
                let key = key.load(Relaxed);
                if key != 0 && (first..=last).contains(&key) {
                    found.push((key, bucket.rest(at), hint.load(Relaxed)));
                }
            }
        }
        found
    }
}

/// What a session holds while it is open: nothing if there is no limit, else the gate, with others or alone.
enum Gate<'a> {
    Open,
    Shared(#[expect(dead_code, reason = "held")] RwLockReadGuard<'a, ()>),
    Alone(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'a, ()>),
}

/// A time in which the table does not move.
pub struct Session<'a, W: Width = Bits64> {
    _gate: Gate<'a>,
    slots: RwLockReadGuard<'a, Slots>,
    alone: bool,
    visited: &'a Visited,
    added: usize,
    /// How many more entries are allowed.
    left: usize,
    width: PhantomData<W>,
}

impl<W: Width> Session<'_, W> {
    /// Ask the processor to have the bucket at hand soon.
    #[inline]
    pub fn prefetch(&self, fingerprint: W::Sum) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch has no effect but on the cache, and the address is inside the mapping.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let bucket = self.slots.memory.as_ptr().cast::<W::Bucket>().add(self.slots.home(width::key(fingerprint)));
            _mm_prefetch::<_MM_HINT_T0>(bucket.cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = fingerprint;
    }

    /// Whether the fingerprint is in.
    #[inline]
    pub fn contains(&self, fingerprint: W::Sum) -> bool {
        self.slots.find::<W>(fingerprint).is_some()
    }

    /// Whether the fingerprint is new; it is in afterwards. Beyond the maximal number of entries, nothing is new.
    #[inline]
    pub fn insert(&mut self, fingerprint: W::Sum, parent: u64) -> bool {
        if self.left == 0 {
            return self.refuse(fingerprint);
        }
        let (new, hint) = self.slots.insert::<W>(fingerprint, self.alone);
        if new {
            hint.store((parent >> 32) as u32, Relaxed);
        }
        self.added += usize::from(new);
        self.left -= usize::from(new);
        new
    }

    #[cold]
    fn refuse(&self, fingerprint: W::Sum) -> bool {
        self.visited.refused.fetch_or(!self.contains(fingerprint), Relaxed);
        false
    }

    /// The number of a fingerprint, where each has a number instead of a parent.
    #[inline]
    pub fn number(&self, fingerprint: W::Sum) -> Option<u32> {
        self.slots.find::<W>(fingerprint).map(number)
    }

    /// The number of a fingerprint, and whether it is new: then it got the `next` one.
    #[inline]
    pub fn number_or(&mut self, fingerprint: W::Sum, next: &AtomicU32) -> (u32, bool) {
        let (new, hint) = self.slots.insert::<W>(fingerprint, self.alone);
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

impl<W: Width> Drop for Session<'_, W> {
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
        let visited = Visited::new(usize::MAX, usize::MAX, 64).unwrap();
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

    /// Fingerprints whose keys are alike in groups of 16.
    fn alike(i: u64) -> u128 {
        hash::Sum::of(number(i / 16), number(i))
    }

    fn alike_are_told_apart<W: Width<Sum = u128>>(bytes: f64) {
        const COUNT: u64 = 300_000;
        let visited = Visited::new(usize::MAX, usize::MAX, W::BITS as u32).unwrap();
        let new: usize = std::thread::scope(|scope| {
            let work = || {
                let mut new = 0;
                for start in (0..COUNT).step_by(100) {
                    let mut session = visited.session_of::<W>(100, 300).unwrap();
                    new += (start..start + 100).filter(|&i| session.insert(alike(i), number(i / 32))).count();
                }
                new
            };
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
            workers.into_iter().map(|w| w.join().unwrap()).sum()
        });
        assert_eq!((new, visited.len()), (COUNT as usize, COUNT as usize));
        let session = visited.session_of::<W>(0, 0).unwrap();
        assert!((0..COUNT).all(|i| session.contains(alike(i))));
        assert!((COUNT..2 * COUNT).all(|i| !session.contains(alike(i))));
        drop(session);
        // A key in 16 entries has the parents of all.
        assert!((0..COUNT).step_by(16).all(|i| visited.parents(number(i / 16)).contains(&number(i / 32))));
        let per_state = visited.bytes() as f64 / visited.len() as f64;
        assert!(per_state <= bytes, "{per_state} bytes a state");
    }

    #[test]
    fn wide_fingerprints_with_one_key_are_told_apart() {
        alike_are_told_apart::<Bits96>(80.0);
        alike_are_told_apart::<Bits128>(107.0);
    }

    #[test]
    fn workers_agree_on_who_was_first() {
        let visited = Visited::new(usize::MAX, usize::MAX, 64).unwrap();
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
            let visited = Visited::new(usize::MAX, most, 64).unwrap();
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
        let visited = Visited::new(usize::MAX, usize::MAX, 64).unwrap();
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
        let entries = slots.all::<Bits64>().iter().flat_map(|bucket| bucket.keys().iter().zip(bucket.hints()));
        assert!(entries.into_iter().all(|(key, hint)| key.load(Relaxed) != 0 || hint.load(Relaxed) == 0));
        drop(slots);
        let session = visited.session(1, 0).unwrap();
        assert!((0..100_000).all(|i| session.number(number(i)) == Some(numbers[0][i as usize])));
        assert_eq!(session.number(number(100_000)), None);
    }
}

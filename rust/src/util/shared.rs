//! Arrays and maps that several workers fill and read at the same time. Reading an array takes no lock.

use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::mem;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// The first segment has this many elements, and each further one twice as many as the one before.
const FIRST: usize = 1 << 10;
const SEGMENTS: usize = 33 - FIRST.ilog2() as usize;

/// The segment of an element, and its place there.
#[inline]
fn place(index: usize) -> (usize, usize) {
    let shifted = index + FIRST;
    let segment = (shifted.ilog2() - FIRST.ilog2()) as usize;
    (segment, shifted - (FIRST << segment))
}

/// Memory in segments that never move. An element is written once, before its index is handed out.
struct Segments<T> {
    segments: [AtomicPtr<T>; SEGMENTS],
    zeroed: bool,
}

impl<T> Segments<T> {
    fn new(zeroed: bool) -> Segments<T> {
        Segments { segments: [const { AtomicPtr::new(ptr::null_mut()) }; SEGMENTS], zeroed }
    }

    fn layout(segment: usize) -> Layout {
        Layout::array::<T>(FIRST << segment).expect("an array of 2^32 elements fits into memory addresses")
    }

    /// Where an element is, in a segment that exists or is made now.
    #[inline]
    fn at(&self, index: usize) -> *mut T {
        let (segment, place) = place(index);
        let mut start = self.segments[segment].load(Ordering::Acquire);
        if start.is_null() {
            start = self.make(segment);
        }
        // SAFETY: a segment has 2^segment times FIRST elements, and `place` is below that.
        unsafe { start.add(place) }
    }

    #[cold]
    fn make(&self, segment: usize) -> *mut T {
        let layout = Self::layout(segment);
        // SAFETY: the layout is not of size zero: no element type here is.
        let made = unsafe { if self.zeroed { alloc_zeroed(layout) } else { alloc(layout) } }.cast::<T>();
        if made.is_null() {
            handle_alloc_error(layout);
        }
        match self.segments[segment].compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: it was allocated above with this layout, and nobody else has seen it.
                unsafe { dealloc(made.cast(), layout) };
                other
            }
        }
    }
}

impl<T> Drop for Segments<T> {
    fn drop(&mut self) {
        for (segment, start) in self.segments.iter_mut().enumerate() {
            if !start.get_mut().is_null() {
                // SAFETY: allocated by `make` with this layout.
                unsafe { dealloc(start.get_mut().cast(), Self::layout(segment)) };
            }
        }
    }
}

/// An array that grows at its end. An index is valid once `push` has returned it. A thread that gets the index from another
/// thread gets it through a lock or an atomic, and so sees the element.
pub struct SharedVec<T> {
    segments: Segments<T>,
    len: AtomicUsize,
}

// SAFETY: elements are written once, before their index is known to anyone else, and only read after that.
unsafe impl<T: Send + Sync> Sync for SharedVec<T> {}
// SAFETY: it owns its elements.
unsafe impl<T: Send> Send for SharedVec<T> {}

impl<T> Default for SharedVec<T> {
    fn default() -> Self {
        SharedVec { segments: Segments::new(false), len: AtomicUsize::new(0) }
    }
}

impl<T> SharedVec<T> {
    pub fn push(&self, value: T) -> u32 {
        let index = self.len.fetch_add(1, Ordering::Relaxed);
        let id = u32::try_from(index).expect("fewer than 2^32 elements");
        // SAFETY: this index is ours alone, and nobody reads it before it is returned.
        unsafe { self.segments.at(index).write(value) };
        id
    }

    #[inline]
    pub fn get(&self, index: u32) -> &T {
        debug_assert!((index as usize) < self.len());
        // SAFETY: `push` returned this index, so the element is written, and it is never moved.
        unsafe { &*self.segments.at(index as usize) }
    }

    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}

impl<T> Drop for SharedVec<T> {
    fn drop(&mut self) {
        if mem::needs_drop::<T>() {
            for index in 0..self.len() {
                // SAFETY: nobody else has access any more, and every push has written its element.
                unsafe { self.segments.at(index).drop_in_place() };
            }
        }
    }
}

/// Slices one after the other. A slice is in one piece, and is found by where it begins.
pub struct SharedSlices<T: Copy> {
    segments: Segments<T>,
    /// Where the next slice begins.
    next: Mutex<usize>,
}

// SAFETY: as for `SharedVec`.
unsafe impl<T: Copy + Send + Sync> Sync for SharedSlices<T> {}
// SAFETY: it owns its elements.
unsafe impl<T: Copy + Send> Send for SharedSlices<T> {}

impl<T: Copy> Default for SharedSlices<T> {
    fn default() -> Self {
        SharedSlices { segments: Segments::new(false), next: Mutex::new(0) }
    }
}

impl<T: Copy> SharedSlices<T> {
    pub fn push(&self, slice: &[T]) -> u32 {
        let begin = {
            let mut next = self.next.lock();
            let (mut segment, mut begin) = (place(*next).0, *next);
            // A slice that does not fit into the rest of a segment begins in a later one.
            while place(begin + slice.len().saturating_sub(1)).0 != segment {
                segment += 1;
                begin = (FIRST << segment) - FIRST;
            }
            *next = begin + slice.len();
            begin
        };
        let id = u32::try_from(begin).expect("fewer than 2^32 elements");
        if !slice.is_empty() {
            // SAFETY: these places are in one segment and ours alone, and nobody reads them before they are returned.
            unsafe { ptr::copy_nonoverlapping(slice.as_ptr(), self.segments.at(begin), slice.len()) };
        }
        id
    }

    /// The slice of this length that begins at a place that `push` returned.
    #[inline]
    pub fn get(&self, begin: u32, len: usize) -> &[T] {
        if len == 0 {
            return &[];
        }
        // SAFETY: `push` returned this place for a slice of this length (or for one that it is a part of).
        unsafe { slice::from_raw_parts(self.segments.at(begin as usize), len) }
    }

    pub fn len(&self) -> usize {
        *self.next.lock()
    }
}

/// Numbers that are zero at first, as many as are needed.
pub struct SharedNumbers {
    segments: Segments<AtomicU64>,
}

impl Default for SharedNumbers {
    fn default() -> Self {
        SharedNumbers { segments: Segments::new(true) }
    }
}

impl SharedNumbers {
    #[inline]
    pub fn get(&self, index: u32) -> &AtomicU64 {
        // SAFETY: segments are zeroed, and zeros are a number.
        unsafe { &*self.segments.at(index as usize) }
    }
}

const SHARDS: usize = 64;

/// A map in parts, each with a lock of its own.
pub struct SharedMap<K, V> {
    shards: Box<[Mutex<FxHashMap<K, V>>]>,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        SharedMap { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }
}

impl<K: Hash + Eq, V: Clone> SharedMap<K, V> {
    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> &Mutex<FxHashMap<K, V>> {
        // The map itself uses the top bits and the lowest ones.
        &self.shards[(FxBuildHasher.hash_one(key) >> 40) as usize % SHARDS]
    }

    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.shard(key).lock().get(key).cloned()
    }

    /// The value of a key, which is made if there is none. `make` must not use this map.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        self.shard(&key).lock().entry(key).or_insert_with(make).clone()
    }

    /// Set a value, unless there is one. Returns the value that is there now.
    pub fn insert(&self, key: K, value: V) -> V {
        self.shard(&key).lock().entry(key).or_insert(value).clone()
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    pub fn for_each(&self, mut each: impl FnMut(&K, &V)) {
        for shard in &self.shards {
            shard.lock().iter().for_each(|(key, value)| each(key, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn places_are_consecutive() {
        let mut expected = (0, 0);
        for index in 0..20 * FIRST {
            assert_eq!(place(index), expected);
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn workers_push_and_read_at_the_same_time() {
        let shared = SharedVec::default();
        thread::scope(|scope| {
            for worker in 0..4u64 {
                let shared = &shared;
                scope.spawn(move || {
                    for number in 0..5_000u64 {
                        let id = shared.push(Box::new(worker << 32 | number));
                        assert_eq!(**shared.get(id), worker << 32 | number);
                    }
                });
            }
        });
        let mut all: Vec<u64> = (0..shared.len() as u32).map(|id| **shared.get(id)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 20_000);
    }

    #[test]
    fn elements_are_dropped_once() {
        let witness = Arc::new(());
        let shared = SharedVec::default();
        (0..3_000).for_each(|_| {
            shared.push(witness.clone());
        });
        assert_eq!(Arc::strong_count(&witness), 3_001);
        drop(shared);
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn slices_are_in_one_piece() {
        let shared = SharedSlices::default();
        let slices: Vec<Vec<usize>> = (0..900).map(|n| (n..n + n % 37).collect()).collect();
        let begins: Vec<u32> = slices.iter().map(|slice| shared.push(slice)).collect();
        let long: Vec<usize> = (0..5_000).collect();
        let begin = shared.push(&long);
        assert_eq!(shared.get(begin, long.len()), long);
        for (slice, begin) in slices.iter().zip(begins) {
            assert_eq!(shared.get(begin, slice.len()), slice);
        }
    }

    #[test]
    fn the_first_value_stays() {
        let map = SharedMap::default();
        assert_eq!((map.insert("a", 1), map.insert("a", 2), map.get("a"), map.get("b")), (1, 1, Some(1), None));
    }
}

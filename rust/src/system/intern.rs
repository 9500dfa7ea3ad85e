//! Interning: equal content gets one small id. Ids are given in the order of first use. Workers intern at the same time, and
//! read without a lock.

use crate::system::hash;
use crate::util::shared::SharedVec;
use hashbrown::HashTable;
use parking_lot::Mutex;
use std::mem::{size_of, size_of_val};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const SHARDS: usize = 32;

struct Entry<T> {
    content: Box<[T]>,
    hash: u64,
}

/// Sequences of `T`, each once.
pub struct Interner<T> {
    ids: Box<[Mutex<HashTable<u32>>]>,
    entries: SharedVec<Entry<T>>,
    bytes: AtomicUsize,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        let ids = (0..SHARDS).map(|_| Mutex::default()).collect();
        Interner { ids, entries: SharedVec::default(), bytes: AtomicUsize::new(0) }
    }
}

impl<T: Copy + Eq> Interner<T> {
    /// The id of content with this hash. Equal content must come with equal hashes. If other content came with the same hash
    /// before, this one gets another hash.
    pub fn intern(&self, content: &[T], mut hash: u64) -> u32 {
        let mut ids = self.ids[(hash >> 32) as usize % SHARDS].lock();
        let entry = |id: u32| self.entries.get(id);
        while let Some(&id) = ids.find(hash, |&id| entry(id).hash == hash) {
            if *entry(id).content == *content {
                return id;
            }
            hash = hash::mixed(hash, 1);
        }
        let id = self.entries.push(Entry { content: content.into(), hash });
        ids.insert_unique(hash, id, |&id| entry(id).hash);
        self.bytes.fetch_add(size_of_val(content) + size_of::<Entry<T>>() + 8, Relaxed);
        id
    }

    #[inline]
    pub fn content(&self, id: u32) -> &[T] {
        &self.entries.get(id).content
    }

    #[inline]
    pub fn hash(&self, id: u32) -> u64 {
        self.entries.get(id).hash
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Approximate memory in use.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn intern(interner: &Interner<u8>, content: &[u8]) -> u32 {
        interner.intern(content, hash::content(content))
    }

    #[test]
    fn equal_content_has_one_id() {
        let interner = Interner::default();
        let ids: Vec<u32> = [&b"a"[..], b"b", b"a", b"", b"b"].iter().map(|v| intern(&interner, v)).collect();
        assert_eq!(ids, [0, 1, 0, 2, 1]);
        assert_eq!(interner.content(1), b"b");
    }

    #[test]
    fn contents_that_come_with_one_hash_get_two() {
        let interner = Interner::default();
        let ids: Vec<u32> = [b"a", b"b", b"c", b"b", b"a", b"c"].iter().map(|&v| interner.intern(v, 7)).collect();
        assert_eq!(ids, [0, 1, 2, 1, 0, 2]);
        assert_eq!(interner.hash(0), 7);
        let mut hashes: Vec<u64> = ids.iter().map(|&id| interner.hash(id)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 3);
    }

    #[test]
    fn hashes_do_not_depend_on_the_order_of_discovery() {
        let (a, b) = (Interner::default(), Interner::default());
        let (x, _) = (intern(&a, b"x"), intern(&a, b"y"));
        let (_, x2) = (intern(&b, b"y"), intern(&b, b"x"));
        assert_ne!(x, x2);
        assert_eq!(a.hash(x), b.hash(x2));
    }

    #[test]
    fn workers_agree_on_ids() {
        let interner = Interner::default();
        let numbers = |_| (0..20_000u32).map(|n| intern(&interner, &(n % 777).to_le_bytes())).collect::<Vec<_>>();
        let numbers = &numbers;
        let (one, other) = thread::scope(|scope| {
            let (one, other) = (scope.spawn(move || numbers(0)), scope.spawn(move || numbers(1)));
            (one.join().unwrap(), other.join().unwrap())
        });
        assert_eq!(one, other);
        assert_eq!(interner.count(), 777);
    }
}

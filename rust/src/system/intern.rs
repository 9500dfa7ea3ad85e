//! Interning: equal content gets one small id. Ids are given in the order of first use.

use crate::system::hash;
use hashbrown::HashTable;

#[derive(Default)]
pub struct Interner {
    ids: HashTable<u32>,
    values: Vec<Box<[u8]>>,
    hashes: Vec<u64>,
    bytes: usize,
}

impl Interner {
    pub fn intern(&mut self, content: &[u8]) -> u32 {
        let hash = hash::content(content);
        let (values, hashes) = (&self.values, &self.hashes);
        if let Some(&id) = self.ids.find(hash, |&id| &*values[id as usize] == content) {
            return id;
        }
        let id = u32::try_from(self.values.len()).expect("fewer than 2^32 distinct values");
        self.ids.insert_unique(hash, id, |&id| hashes[id as usize]);
        self.values.push(content.into());
        self.hashes.push(hash);
        self.bytes += content.len() + 32;
        id
    }

    pub fn content(&self, id: u32) -> &[u8] {
        &self.values[id as usize]
    }

    pub fn hash(&self, id: u32) -> u64 {
        self.hashes[id as usize]
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Approximate memory in use.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_content_has_one_id() {
        let mut interner = Interner::default();
        let ids: Vec<u32> = [&b"a"[..], b"b", b"a", b"", b"b"].iter().map(|v| interner.intern(v)).collect();
        assert_eq!(ids, [0, 1, 0, 2, 1]);
        assert_eq!(interner.content(1), b"b");
    }

    #[test]
    fn hashes_do_not_depend_on_the_order_of_discovery() {
        let (mut a, mut b) = (Interner::default(), Interner::default());
        let (x, _) = (a.intern(b"x"), a.intern(b"y"));
        let (_, x2) = (b.intern(b"y"), b.intern(b"x"));
        assert_ne!(x, x2);
        assert_eq!(a.hash(x), b.hash(x2));
    }
}

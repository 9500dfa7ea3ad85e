//! The states that were seen, packed one after the other, each with the state that it was reached from; and a hash table of
//! their numbers. The table is exact: states with equal hashes are compared.

use super::state::Layout;

/// The parent of an initial state.
pub const NONE: u32 = u32::MAX;

pub struct Arena {
    words: Vec<u64>,
    stride: usize,
    parents: Vec<u32>,
    /// 32 bits of the hash, then the number of the state plus 1. 0: empty.
    table: Vec<u64>,
    /// The slots are the first bits of the hash.
    shift: u32,
}

impl Arena {
    pub fn new(stride: usize) -> Self {
        const BITS: u32 = 10;
        Self { words: Vec::new(), stride, parents: Vec::new(), table: vec![0; 1 << BITS], shift: 32 - BITS }
    }

    /// The number of states.
    pub fn count(&self) -> usize {
        self.parents.len()
    }

    #[inline(always)]
    pub fn state(&self, number: usize) -> &[u64] {
        &self.words[number * self.stride..][..self.stride]
    }

    pub fn parent(&self, number: usize) -> u32 {
        self.parents[number]
    }

    /// The memory in use.
    pub fn bytes(&self) -> usize {
        self.words.len() * 8 + self.parents.len() * 4 + self.table.len() * 8
    }

    /// The memory that is in use at most while one more state is inserted.
    pub fn bytes_to_grow(&self) -> usize {
        self.bytes() + if self.is_full() { self.table.len() * 16 } else { 0 }
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.count() * 4 >= self.table.len() * 3
    }

    /// The 32 bits of a hash that the table uses.
    #[inline(always)]
    pub fn hash(state: &[u64]) -> u32 {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut found = 0x2545_f491_4f6c_dd1d_u64;
        for word in state {
            let product = u128::from(found ^ word) * u128::from(FACTOR);
            // The low half alone would not mix the high bits, and a zero would absorb everything.
            found = (product as u64 ^ (product >> 64) as u64).wrapping_add(FACTOR);
        }
        ((found ^ found >> 32).wrapping_mul(FACTOR) >> 32) as u32
    }

    /// Read what a look-up of a hash reads first: its slot.
    ///
    /// Several in a row overlap their waits for memory, and the look-up finds it in the cache. So with `touch_state`.
    #[inline(always)]
    pub fn touch(&self, hash: u32) -> u64 {
        self.table[(hash >> self.shift) as usize]
    }

    /// Read the state of a slot, if a look-up of the hash would compare it.
    #[inline(always)]
    pub fn touch_state(&self, hash: u32, entry: u64) -> u64 {
        if (entry >> 32) as u32 == hash && entry != 0 { self.state((entry as u32 - 1) as usize)[0] } else { 0 }
    }

    /// The slot of a state, and whether the state is there.
    #[inline(always)]
    fn slot(&self, state: &[u64], hash: u32) -> (usize, Option<usize>) {
        let mask = self.table.len() - 1;
        let mut slot = (hash >> self.shift) as usize;
        loop {
            let entry = self.table[slot];
            if entry == 0 {
                return (slot, None);
            }
            if (entry >> 32) as u32 == hash {
                let number = (entry as u32 - 1) as usize;
                if equal(self.state(number), state) {
                    return (slot, Some(number));
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    pub fn contains(&self, state: &[u64], hash: u32) -> bool {
        self.slot(state, hash).1.is_some()
    }

    /// Insert a state. Its number if it is new.
    #[inline(always)]
    pub fn insert(&mut self, state: &[u64], hash: u32, parent: u32) -> Option<usize> {
        if self.is_full() {
            self.grow();
        }
        let (slot, None) = self.slot(state, hash) else { return None };
        let number = self.count();
        self.words.extend_from_slice(state);
        self.parents.push(parent);
        self.table[slot] = u64::from(hash) << 32 | (number as u64 + 1);
        Some(number)
    }

    fn grow(&mut self) {
        self.shift = self.shift.checked_sub(1).expect("fewer than 2^32 slots: `search` stops before");
        let larger = vec![0; self.table.len() * 2];
        let old = std::mem::replace(&mut self.table, larger);
        for entry in old.into_iter().filter(|&entry| entry != 0) {
            self.place(entry);
        }
    }

    fn place(&mut self, entry: u64) {
        let mask = self.table.len() - 1;
        let mut slot = (entry >> 32 >> self.shift) as usize;
        while self.table[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.table[slot] = entry;
    }

    /// Pack all states again.
    pub fn repack(&mut self, old: &Layout, new: &Layout) {
        let mut words = vec![0; self.count() * new.words];
        self.table.fill(0);
        for (number, to) in words.chunks_exact_mut(new.words).enumerate() {
            new.repack(old, self.state(number), to);
            self.place(u64::from(Self::hash(to)) << 32 | (number as u64 + 1));
        }
        (self.words, self.stride) = (words, new.words);
    }
}

/// Whether two states are equal. They have few words: a call of memcmp would take longer.
#[inline(always)]
fn equal(one: &[u64], other: &[u64]) -> bool {
    one.iter().zip(other).all(|(a, b)| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_stored_once() {
        let mut arena = Arena::new(2);
        for round in 0..2 {
            for n in 0..50_000_u64 {
                let state = [n % 100, n / 100];
                let found = arena.insert(&state, Arena::hash(&state), NONE);
                assert_eq!(found.is_some(), round == 0, "{n}");
            }
        }
        assert_eq!(arena.count(), 50_000);
        assert_eq!(arena.state(4321), [21, 43]);
    }

    /// States with the same hash are different states.
    #[test]
    fn equal_hashes_do_not_merge_states() {
        let mut arena = Arena::new(1);
        assert!((0..100).all(|n| arena.insert(&[n], 7, NONE).is_some()));
        assert!(arena.insert(&[55], 7, NONE).is_none());
        assert!(arena.contains(&[99], 7) && !arena.contains(&[100], 7));
    }
}

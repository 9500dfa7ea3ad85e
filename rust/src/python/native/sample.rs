//! Which questions CPython answers too, after the virtual machine: few, but each way through a function is among them.
//!
//! A way is the set of branches that a question took, that is, how each test in the function went. A fault of the machine in a
//! branch that is rarely taken would be missed by a sample at random.

use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// The first questions to a function, this many, are in the sample, and later one in `STEADY`.
const FIRST: u64 = 8;
const STEADY: u64 = 4096;
/// So are the first questions of each way through a function, for as many ways.
const FIRST_OF_WAY: u64 = 2;
const MOST_WAYS: usize = 1024;

/// A function that the engine asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// All guards of a class that need no message.
    Armed(usize),
    /// Class and handler.
    Guard(usize, u16),
    Accept(usize, u16),
    Step(usize, u16),
    Observe(usize),
    /// Property, and whether it is asked as a whole. Its parts say the same about other processes.
    Property(usize, bool),
}

/// The questions so far, by function. Those that iterated a set of several elements are counted apart.
#[derive(Default)]
pub struct Sample {
    asked: FxHashMap<(Function, bool), Asked>,
}

#[derive(Default)]
struct Asked {
    count: u64,
    /// How many there were of each way.
    ways: FxHashMap<u128, u64>,
}

impl Sample {
    /// Note a question, and decide whether it is in the sample.
    pub fn takes(&mut self, function: Function, ordered_sets: bool, way: u128) -> bool {
        let asked = self.asked.entry((function, ordered_sets)).or_default();
        asked.count += 1;
        let known = asked.ways.len();
        let of_way = match asked.ways.entry(way) {
            Entry::Vacant(_) if known >= MOST_WAYS => u64::MAX,
            entry => {
                let count = entry.or_insert(0);
                *count += 1;
                *count
            }
        };
        asked.count <= FIRST || of_way <= FIRST_OF_WAY || asked.count.is_multiple_of(STEADY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUNCTION: Function = Function::Step(0, 0);

    #[test]
    fn each_way_is_in_the_sample() {
        let mut sample = Sample::default();
        let taken = (0..1000).filter(|_| sample.takes(FUNCTION, false, 1)).count();
        assert_eq!(taken as u64, FIRST);
        let rare: Vec<bool> = (0..4).map(|_| sample.takes(FUNCTION, false, 2)).collect();
        assert_eq!(rare, [true, true, false, false]);
        assert!(sample.takes(FUNCTION, true, 1), "questions about sets are counted apart");
    }

    #[test]
    fn a_function_with_very_many_ways_has_a_steady_sample() {
        let mut sample = Sample::default();
        let taken = (0..20_000).filter(|&way| sample.takes(FUNCTION, false, way)).count();
        assert_eq!(taken, MOST_WAYS + 20_000 / STEADY as usize);
    }
}

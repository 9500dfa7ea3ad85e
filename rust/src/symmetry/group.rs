//! The permutations of processes that a model declares to be symmetries.
//!
//! A permutation acts on a state: it moves local states and inboxes to their new owners, and renames every process id
//! inside them. A group is given by sets of processes, all of whose permutations belong to it, and by rings, whose
//! rotations do. Some permutations generate it: the exchanges of neighbours in a set, and one rotation of each ring.
//! All elements are listed only if they are few (`LISTED`). Nothing enumerates a larger group.

use rustc_hash::FxHashMap;

/// Groups up to this size are listed, and the fingerprints of all images of a state are computed (`orbit`). States of larger
/// groups are brought into a canonical form (`canonical`), which costs more per state and does not grow with the group.
pub const LISTED: u64 = 120;

/// Permutations of processes, each as the new position of every process.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The identity, and after it all others if they are few, else the generators.
    pub elements: Vec<Vec<u16>>,
    /// Places in `elements` of permutations that make up all others.
    pub generators: Vec<usize>,
    /// How they do, in a group that is listed: each element but the identity is an earlier element followed by a generator.
    pub words: Vec<(usize, usize)>,
    /// Processes that may be exchanged, each set in ascending order.
    pub sets: Vec<Vec<u16>>,
    /// All combinations of rotations of the rings, the identity first.
    pub rotations: Vec<Vec<u16>>,
    /// The number of permutations, or the largest number if there are more.
    pub order: u64,
    /// Per process, the positions that it can be moved to.
    places: Vec<Vec<u16>>,
    listed: bool,
}

impl Group {
    /// All permutations of processes within each set, and all rotations of each ring; listed if they are at most so many.
    pub fn new(processes: usize, sets: &[Vec<u16>], rings: &[Vec<u16>], listed: u64) -> Group {
        let identity: Vec<u16> = (0..processes as u16).collect();
        let mut places: Vec<Vec<u16>> = identity.iter().map(|&process| vec![process]).collect();
        for together in sets.iter().chain(rings) {
            together.iter().for_each(|&process| places[process as usize].clone_from(together));
        }
        let mut generators = Vec::new();
        for pair in sets.iter().flat_map(|set| set.windows(2)) {
            let mut swap = identity.clone();
            swap.swap(pair[0] as usize, pair[1] as usize);
            generators.push(swap);
        }
        let mut rotations = vec![identity.clone()];
        for ring in rings {
            let mut turn = identity.clone();
            ring.iter().zip(ring.iter().cycle().skip(1)).for_each(|(&from, &to)| turn[from as usize] = to);
            let mut round = rotations.clone();
            for _ in 1..ring.len() {
                round.iter_mut().for_each(|rotation| *rotation = after(rotation, &turn));
                rotations.extend(round.iter().cloned());
            }
            generators.push(turn);
        }
        let factorial = |set: &Vec<u16>| (1..=set.len() as u64).fold(1, u64::saturating_mul);
        let order = sets.iter().map(factorial).fold(rotations.len() as u64, u64::saturating_mul);
        let mut group =
            Group { elements: vec![identity], sets: sets.to_vec(), rotations, order, places, ..Group::default() };
        group.listed = order <= listed;
        group.sets.iter_mut().for_each(|set| set.sort_unstable());
        if group.listed {
            group.list(&generators);
        } else {
            group.generators = (1..=generators.len()).collect();
            group.elements.extend(generators);
        }
        group
    }

    /// List all elements, breadth first.
    fn list(&mut self, generators: &[Vec<u16>]) {
        let mut made_by = vec![(0, 0)];
        let mut known: FxHashMap<Vec<u16>, usize> = FxHashMap::from_iter([(self.elements[0].clone(), 0)]);
        let mut at = 0;
        while at < self.elements.len() {
            for (number, generator) in generators.iter().enumerate() {
                let next = after(&self.elements[at], generator);
                if !known.contains_key(&next) {
                    known.insert(next.clone(), self.elements.len());
                    self.elements.push(next);
                    made_by.push((at, number));
                }
            }
            at += 1;
        }
        self.generators = generators.iter().map(|generator| known[generator]).collect();
        self.words = made_by[1..].iter().map(|&(before, number)| (before, self.generators[number])).collect();
    }

    /// Whether there is nothing but the identity.
    pub fn is_trivial(&self) -> bool {
        self.order <= 1
    }

    /// Whether `elements` are all.
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// The positions that some permutation moves a process to, its own among them.
    pub fn places(&self, process: usize) -> &[u16] {
        self.places.get(process).map_or(&[], Vec::as_slice)
    }

    /// Whether some permutation moves a process to a place.
    pub fn moves(&self, process: usize, place: usize) -> bool {
        process == place || self.places(process).contains(&(place as u16))
    }

    /// Whether some permutation moves a process at all.
    pub fn is_movable(&self, process: usize) -> bool {
        self.places(process).len() > 1
    }
}

/// One permutation after another.
fn after(first: &[u16], second: &[u16]) -> Vec<u16> {
    first.iter().map(|&to| second[to as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_all_permutations_once() {
        let group = Group::new(6, &[vec![0, 2, 3], vec![4, 5]], &[], LISTED);
        assert_eq!((group.elements.len(), group.order), (12, 12));
        assert_eq!(group.elements[0], [0, 1, 2, 3, 4, 5]);
        assert_eq!(group.generators.len(), 3);
        let mut distinct = group.elements.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 12);
        assert!(distinct.iter().all(|element| element[1] == 1));
    }

    #[test]
    fn words_make_the_elements() {
        let group = Group::new(7, &[vec![0, 2, 3, 6]], &[vec![1, 4, 5]], LISTED);
        assert_eq!((group.elements.len(), group.words.len()), (72, 71));
        for (at, &(before, generator)) in group.words.iter().enumerate() {
            assert!(before <= at && group.generators.contains(&generator));
            assert_eq!(after(&group.elements[before], &group.elements[generator]), group.elements[at + 1]);
        }
    }

    #[test]
    fn a_ring_has_its_rotations() {
        let group = Group::new(5, &[], &[vec![1, 2, 4]], LISTED);
        assert_eq!(group.elements, [[0, 1, 2, 3, 4], [0, 2, 4, 3, 1], [0, 4, 1, 3, 2]]);
        assert_eq!(group.rotations.len(), 3);
        assert!(group.moves(1, 4) && !group.moves(1, 3) && !group.is_movable(0));
    }

    #[test]
    fn a_large_group_is_not_listed() {
        let group = Group::new(40, &[(0..30).collect()], &[(30..40).collect()], LISTED);
        assert_eq!((group.elements.len(), group.generators.len(), group.rotations.len()), (31, 30, 10));
        assert_eq!(group.order, u64::MAX);
    }
}

//! Properties as decision trees over components. Python evaluates a property once per distinct tuple of values that it
//! reads.
//!
//! `Tree` is exact, and for all workers. `Projection` is a worker's copy of it, made for speed.
//!
//! A property is a function, so the next component that it reads depends only on the values that it has read before.
//! The reads form a tree: inner nodes name a component, leaves are truth values (or that it raised an exception).

use crate::system::hash;
use crate::system::model::{Component, Truth};
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

/// A component that was read, and the id of the value found there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pub component: Component,
    pub id: u32,
}

/// What follows a read: nothing known yet, a truth value, or another read.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    #[default]
    Unknown,
    Leaf(Truth),
    Node(u32),
}

#[derive(Default)]
pub struct Tree {
    root: Next,
    components: Vec<Component>,
    /// Branches of the first node, by value id: a property that reads one component is one look-up.
    first: Vec<Next>,
    /// Branches of the others, by node and value id.
    branches: FxHashMap<u64, Next>,
}

impl Tree {
    /// The value at a state, if the tree knows it. `id` fetches a component's value.
    #[inline]
    pub fn find(&self, mut id: impl FnMut(Component) -> u32) -> Option<Truth> {
        let mut next = self.root;
        loop {
            match next {
                Next::Unknown => return None,
                Next::Leaf(value) => return Some(value),
                Next::Node(node) => next = self.branch(node, id(self.components[node as usize])),
            }
        }
    }

    #[inline]
    fn branch(&self, node: u32, value: u32) -> Next {
        if node == 0 {
            self.first.get(value as usize).copied().unwrap_or_default()
        } else {
            self.branches.get(&(u64::from(node) << 32 | u64::from(value))).copied().unwrap_or_default()
        }
    }

    /// Enter a value. A path that reads something else than a known path did after the same values is left out: the tree
    /// would be wrong. (A property that ran natively and one that ran in Python may read in different orders.)
    pub fn insert(&mut self, path: &[Value], value: Truth) {
        let mut at: Option<(u32, u32)> = None;
        for step in path {
            let node = match at.map_or(self.root, |(node, id)| self.branch(node, id)) {
                Next::Node(node) if self.components[node as usize] == step.component => node,
                Next::Unknown => {
                    let node = self.components.len() as u32;
                    self.components.push(step.component);
                    self.set(at, Next::Node(node));
                    node
                }
                Next::Node(_) | Next::Leaf(_) => return,
            };
            at = Some((node, step.id));
        }
        if !matches!(at.map_or(self.root, |(node, id)| self.branch(node, id)), Next::Node(_)) {
            self.set(at, Next::Leaf(value));
        }
    }

    fn set(&mut self, at: Option<(u32, u32)>, next: Next) {
        match at {
            None => self.root = next,
            Some((0, id)) => {
                if self.first.len() <= id as usize {
                    self.first.resize(id as usize + 1, Next::Unknown);
                }
                self.first[id as usize] = next;
            }
            Some((node, id)) => {
                self.branches.insert(u64::from(node) << 32 | u64::from(id), next);
            }
        }
    }
}

/// The values of a property (or of a part of one) that a worker has met, by all that the property reads in any state.
///
/// A property is a function of what it reads. So states that agree in all components that it has read so far, in any state,
/// have the same value, unless it reads something new there: then nothing is known about the state.
///
/// If it reads fields of one or two processes, the values are in a square, by what it reads of each. Otherwise the values of
/// the components are added up to a key of 96 bits, as the components of a state are to its fingerprint, and with the same
/// small probability of a mistake.
#[derive(Default)]
pub struct Projection {
    processes: Vec<Projected>,
    inboxes: Vec<u16>,
    monitors: Vec<u16>,
    values: HashTable<(Key, Truth)>,
    /// Whether the values are in the square.
    squared: bool,
    /// `width` rows of `width`, as places in `CODES`.
    square: Vec<u8>,
    width: usize,
}

/// The components of a state, by id.
pub trait Components<'t> {
    /// A local state, and its status and fields.
    fn local(&mut self, process: u16) -> (u32, &'t [u32]);
    fn inbox(&mut self, process: u16) -> u32;
    fn monitor(&mut self, monitor: u16) -> u32;
}

/// Where the value of a state is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Square(usize),
    Key(Key),
}

/// A sum of mixed ids, and another one, mixed in another way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    sum: u64,
    rest: u32,
}

impl Key {
    /// What is mixed into numbers for the rest of a key.
    const OTHER: u64 = 0x5851_f42d_4c95_7f2d;

    #[inline]
    fn mixed(kind: u64, ids: &[u32]) -> Key {
        let mixed = |kind: u64| ids.iter().fold(kind, |key, &id| hash::mixed(key, id));
        Key { sum: mixed(kind), rest: (mixed(kind ^ Key::OTHER) >> 32) as u32 }
    }

    #[inline]
    fn add(&mut self, other: Key) {
        self.sum = self.sum.wrapping_add(other.sum);
        self.rest = self.rest.wrapping_add(other.rest);
    }
}

/// Nothing known, and the truth values.
const CODES: [Option<Truth>; 4] = [None, Some(None), Some(Some(false)), Some(Some(true))];
/// A larger square takes too much memory.
const WIDEST: usize = 512;

/// The fields of a process that a property reads.
struct Projected {
    process: u16,
    fields: Vec<u16>,
    /// By local state, the number of what is read of it, plus one; 0 if it was not met.
    numbers: Vec<u32>,
    ids: FxHashMap<Box<[u32]>, u32>,
    /// By number.
    keys: Vec<Key>,
}

impl Projection {
    /// Where the value of a state is.
    #[inline]
    pub fn place<'t>(&mut self, state: &mut impl Components<'t>) -> Place {
        if self.squared {
            let mut numbers = [0; 2];
            for (number, projected) in numbers.iter_mut().zip(&mut self.processes) {
                let (local, parts) = state.local(projected.process);
                *number = projected.number(local, parts);
            }
            let [row, column] = numbers;
            if row.max(column) < self.width || self.grow(row.max(column)) {
                return Place::Square(row * self.width + column);
            }
        }
        let mut sum = Key::default();
        for projected in &mut self.processes {
            let (local, parts) = state.local(projected.process);
            let number = projected.number(local, parts);
            sum.add(projected.keys[number]);
        }
        for &process in &self.inboxes {
            sum.add(Key::mixed(0x1_0000 + u64::from(process), &[state.inbox(process)]));
        }
        for &monitor in &self.monitors {
            sum.add(Key::mixed(0x2_0000 + u64::from(monitor), &[state.monitor(monitor)]));
        }
        Place::Key(sum)
    }

    /// Make the square larger, so that it has a row of this number. False if it would be too large: then it is given up.
    #[cold]
    fn grow(&mut self, number: usize) -> bool {
        let width = (number + 1).next_power_of_two().max(16);
        let mut square = Vec::new();
        self.squared = width <= WIDEST;
        if self.squared {
            square.resize(width * width, 0);
            for (row, known) in self.square.chunks_exact(self.width.max(1)).enumerate() {
                square[row * width..][..known.len()].copy_from_slice(known);
            }
        }
        (self.square, self.width) = (square, width);
        self.squared
    }

    #[inline]
    pub fn find(&self, place: Place) -> Option<Truth> {
        match place {
            Place::Square(place) => CODES[self.square[place] as usize],
            Place::Key(key) => self.values.find(key.sum, |known| known.0 == key).map(|known| known.1),
        }
    }

    pub fn insert(&mut self, place: Place, value: Truth) {
        match place {
            Place::Square(place) => {
                let code = CODES.iter().position(|code| *code == Some(value)).expect("every truth value has a code");
                self.square[place] = code as u8;
            }
            Place::Key(key) => {
                self.values.insert_unique(key.sum, (key, value), |known| known.0.sum);
            }
        }
    }

    /// Take note of what an evaluation has read. False if all of that is known: then places stay as they are.
    pub fn widen(&mut self, reads: &[Value]) -> bool {
        let mut widened = false;
        for read in reads {
            widened |= match read.component {
                Component::Field(process, field) => self.widen_field(process, field),
                Component::Inbox(process) => add(&mut self.inboxes, process),
                Component::Monitor(monitor) => add(&mut self.monitors, monitor),
            };
        }
        if widened {
            self.values.clear();
            (self.square, self.width) = (Vec::new(), 0);
            let others = !self.inboxes.is_empty() || !self.monitors.is_empty();
            self.squared = matches!(self.processes.len(), 1 | 2) && !others;
        }
        widened
    }

    fn widen_field(&mut self, process: u16, field: u16) -> bool {
        let known = self.processes.iter_mut().find(|projected| projected.process == process);
        let Some(projected) = known else {
            self.processes.push(Projected::new(process, vec![field]));
            return true;
        };
        let new = add(&mut projected.fields, field);
        if new {
            *projected = Projected::new(process, std::mem::take(&mut projected.fields));
        }
        new
    }
}

impl Projected {
    fn new(process: u16, fields: Vec<u16>) -> Projected {
        Projected { process, fields, numbers: Vec::new(), ids: FxHashMap::default(), keys: Vec::new() }
    }

    /// The number of what is read of a local state.
    #[inline]
    fn number(&mut self, local: u32, parts: &[u32]) -> usize {
        match self.numbers.get(local as usize) {
            Some(&number) if number != 0 => number as usize - 1,
            _ => self.meet(local, parts),
        }
    }

    #[cold]
    fn meet(&mut self, local: u32, parts: &[u32]) -> usize {
        // A process that is unborn has no fields.
        let value = |&field: &u16| parts.get(field as usize).copied().unwrap_or(u32::MAX);
        let read: Box<[u32]> = self.fields.iter().map(value).collect();
        let next = self.keys.len() as u32;
        let number = *self.ids.entry(read).or_insert_with_key(|read| {
            self.keys.push(Key::mixed(u64::from(self.process) + 1, read));
            next
        });
        if self.numbers.len() <= local as usize {
            self.numbers.resize(local as usize + 1, 0);
        }
        self.numbers[local as usize] = number + 1;
        number as usize
    }
}

fn add(to: &mut Vec<u16>, one: u16) -> bool {
    let new = !to.contains(&one);
    if new {
        to.push(one);
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_decide_the_way() {
        // Reads a field of process 0; if it is 1, also one of process 1.
        let mut tree = Tree::default();
        let value = |i, id| Value { component: Component::Field(i, 1), id };
        assert_eq!(tree.find(|_| 0), None);
        tree.insert(&[value(0, 0)], Some(true));
        tree.insert(&[value(0, 1), value(1, 5)], Some(false));
        tree.insert(&[value(0, 3)], None);
        let ask = |a: u32, b: u32| {
            let mut reads = 0;
            let value = tree.find(|component| {
                reads += 1;
                if component == Component::Field(0, 1) { a } else { b }
            });
            value.map(|value| (value, reads))
        };
        assert_eq!(ask(0, 9), Some((Some(true), 1)));
        assert_eq!(ask(1, 5), Some((Some(false), 2)));
        assert_eq!(ask(3, 5), Some((None, 1)));
        assert_eq!(ask(1, 6), None);
        assert_eq!(ask(2, 0), None);
    }

    /// Local states by process.
    struct Locals<'t>(Vec<(u32, &'t [u32])>);

    impl<'t> Components<'t> for Locals<'t> {
        fn local(&mut self, process: u16) -> (u32, &'t [u32]) {
            self.0[process as usize]
        }

        fn inbox(&mut self, _: u16) -> u32 {
            unreachable!("no inbox is read")
        }

        fn monitor(&mut self, _: u16) -> u32 {
            unreachable!("no monitor is read")
        }
    }

    #[test]
    fn a_projection_knows_states_that_agree_in_all_that_was_read() {
        let locals: [(u32, &[u32]); 3] = [(0, &[0, 5, 1]), (1, &[0, 5, 2]), (2, &[0, 6, 1])];
        let read = |process, field| Value { component: Component::Field(process, field), id: 0 };
        // Two processes are in a square, three are not.
        for more in [&[][..], &[read(2, 1)]] {
            let mut projection = Projection::default();
            let place = |projection: &mut Projection, a: usize, b: usize| {
                projection.place(&mut Locals(vec![locals[a], locals[b], locals[0]]))
            };
            assert!(projection.widen(&[read(0, 1), read(1, 2)]));
            projection.widen(more);
            let known = place(&mut projection, 0, 1);
            assert_eq!(projection.find(known), None);
            projection.insert(known, Some(true));
            assert!(!projection.widen(&[read(0, 1)]));
            // The other fields do not matter, and the processes are told apart.
            assert_eq!(place(&mut projection, 1, 1), known);
            assert_eq!(projection.find(known), Some(Some(true)));
            for (a, b) in [(2, 1), (0, 0), (1, 0)] {
                let other = place(&mut projection, a, b);
                assert_eq!(projection.find(other), None);
            }
            // What reads more forgets: the value may depend on it.
            assert!(projection.widen(&[read(0, 2)]));
            let place = place(&mut projection, 0, 1);
            assert_eq!(projection.find(place), None);
        }
    }

    #[test]
    fn a_square_grows_and_is_given_up() {
        let mut projection = Projection::default();
        projection.widen(&[Value { component: Component::Field(0, 1), id: 0 }]);
        for local in 0..2_000 {
            let parts = [0, local];
            let place = projection.place(&mut Locals(vec![(local, &parts)]));
            assert_eq!(projection.find(place), None);
            projection.insert(place, Some(local % 3 == 0));
            assert_eq!(projection.find(place), Some(Some(local % 3 == 0)));
            if local == 300 {
                let place = projection.place(&mut Locals(vec![(6, &[0, 6])]));
                assert_eq!((projection.find(place), matches!(place, Place::Square(_))), (Some(Some(true)), true));
            }
        }
        assert!(matches!(projection.place(&mut Locals(vec![(6, &[0, 6])])), Place::Key(_)));
    }

    #[test]
    fn a_constant_property_reads_nothing() {
        let mut tree = Tree::default();
        tree.insert(&[], Some(true));
        assert_eq!(tree.find(|_| unreachable!()), Some(Some(true)));
    }
}

//! Properties as decision trees over components. Python evaluates a property once per distinct tuple of values that it
//! reads.
//!
//! A property is a function, so the next component that it reads depends only on the values that it has read before.
//! The reads form a tree: inner nodes name a component, leaves are truth values (or that it raised an exception).

use crate::system::model::{Component, Parts, Truth};
use rustc_hash::FxHashMap;

/// A component that was read, and the id of the value found there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    pub component: Component,
    pub id: u32,
}

impl Value {
    pub fn of(component: Component, parts: &Parts) -> Value {
        let id = match component {
            Component::Local(i) => parts.locals[i as usize],
            Component::Inbox(i) => parts.inboxes[i as usize],
            Component::Monitor(i) => parts.monitors[i as usize],
        };
        Value { component, id }
    }
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

    /// As `find`, with the values read on the way.
    pub fn path(&self, parts: &Parts) -> Option<(Truth, Vec<Value>)> {
        let mut path = Vec::new();
        let value = self.find(|component| {
            let value = Value::of(component, parts);
            path.push(value);
            value.id
        })?;
        Some((value, path))
    }

    pub fn insert(&mut self, path: &[Value], value: Truth) {
        let mut at: Option<(u32, u32)> = None;
        for step in path {
            let existing = at.map_or(self.root, |(node, id)| self.branch(node, id));
            let node = match existing {
                Next::Node(node) => node,
                _ => {
                    let node = self.components.len() as u32;
                    self.components.push(step.component);
                    self.set(at, Next::Node(node));
                    node
                }
            };
            at = Some((node, step.id));
        }
        self.set(at, Next::Leaf(value));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_decide_the_way() {
        // Reads local 0; if it is 1, also local 1.
        let mut tree = Tree::default();
        let value = |i, id| Value { component: Component::Local(i), id };
        assert_eq!(tree.find(|_| 0), None);
        tree.insert(&[value(0, 0)], Some(true));
        tree.insert(&[value(0, 1), value(1, 5)], Some(false));
        tree.insert(&[value(0, 3)], None);
        let ask = |a: u32, b: u32| {
            let ids = [a, b];
            tree.path(&Parts { locals: &ids, inboxes: &[], monitors: &[] }).map(|(value, path)| (value, path.len()))
        };
        assert_eq!(ask(0, 9), Some((Some(true), 1)));
        assert_eq!(ask(1, 5), Some((Some(false), 2)));
        assert_eq!(ask(3, 5), Some((None, 1)));
        assert_eq!(ask(1, 6), None);
        assert_eq!(ask(2, 0), None);
    }

    #[test]
    fn a_constant_property_reads_nothing() {
        let mut tree = Tree::default();
        tree.insert(&[], Some(true));
        assert_eq!(tree.find(|_| unreachable!()), Some(Some(true)));
    }
}

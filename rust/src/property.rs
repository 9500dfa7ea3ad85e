//! Properties as decision trees over components: evaluated in Python once per distinct tuple of the values really read.
//!
//! A property is a function, so what it reads next depends only on what it has read so far: the reads form a tree whose
//! inner nodes name a component and whose leaves are truth values.

use crate::model::{Component, Parts};
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

#[derive(Clone, Copy, Debug)]
enum Next {
    Leaf(bool),
    Node(u32),
}

#[derive(Default)]
pub struct Tree {
    root: Option<Next>,
    components: Vec<Component>,
    branches: FxHashMap<(u32, u32), Next>,
}

impl Tree {
    /// The value at a state, if the tree knows it. `id` fetches a component's value.
    #[inline]
    pub fn find(&self, mut id: impl FnMut(Component) -> u32) -> Option<bool> {
        let mut next = self.root?;
        loop {
            match next {
                Next::Leaf(value) => return Some(value),
                Next::Node(node) => {
                    let value = id(self.components[node as usize]);
                    next = *self.branches.get(&(node, value))?;
                }
            }
        }
    }

    /// As `find`, with the values read on the way.
    pub fn path(&self, parts: &Parts) -> Option<(bool, Vec<Value>)> {
        let mut path = Vec::new();
        let value = self.find(|component| {
            let value = Value::of(component, parts);
            path.push(value);
            value.id
        })?;
        Some((value, path))
    }

    pub fn insert(&mut self, path: &[Value], value: bool) {
        let mut at: Option<(u32, u32)> = None;
        for step in path {
            let existing = match at {
                None => self.root,
                Some(branch) => self.branches.get(&branch).copied(),
            };
            let node = match existing {
                Some(Next::Node(node)) => node,
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
            None => self.root = Some(next),
            Some(branch) => {
                self.branches.insert(branch, next);
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
        tree.insert(&[value(0, 0)], true);
        tree.insert(&[value(0, 1), value(1, 5)], false);
        let ask = |a: u32, b: u32| {
            let ids = [a, b];
            tree.path(&Parts { locals: &ids, inboxes: &[], monitors: &[] }).map(|(value, path)| (value, path.len()))
        };
        assert_eq!(ask(0, 9), Some((true, 1)));
        assert_eq!(ask(1, 5), Some((false, 2)));
        assert_eq!(ask(1, 6), None);
        assert_eq!(ask(2, 0), None);
    }

    #[test]
    fn a_constant_property_reads_nothing() {
        let mut tree = Tree::default();
        tree.insert(&[], true);
        assert_eq!(tree.find(|_| unreachable!()), Some(true));
    }
}

//! The components that properties read. After a step, only the properties that it can change are evaluated again.

use crate::search::control::Control;
use crate::system::model::{PropertyKind, Result};
use crate::system::successors::View;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the properties read, as bits of fields and of processes whose inbox they read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadSet {
    pub fields: u64,
    pub inboxes: u64,
}

impl ReadSet {
    pub fn covers(self, other: ReadSet) -> bool {
        other.fields & !self.fields == 0 && other.inboxes & !self.inboxes == 0
    }
}

/// Where a state differs from its parent.
#[derive(Clone, Copy, Debug)]
pub struct Changes {
    /// Fields and monitors, as `field_bit`s and `monitor_bit`s.
    pub(crate) altered: u64,
    /// Processes whose node changed, perhaps only in its inbox.
    pub(crate) changed: u64,
}

impl Changes {
    /// A state that has no parent.
    pub const EVERYWHERE: Changes = Changes { altered: u64::MAX, changed: u64::MAX };
}

/// Per property, what its evaluations have read so far, shared by all workers.
///
/// A successor that differs from its parent in nothing of this has the parent's value: the parent's evaluation read only
/// such parts, and that was entered here before the parent was handed on.
pub struct PropertyReads {
    pub(crate) fields: Vec<AtomicU64>,
    pub(crate) inboxes: Vec<AtomicU64>,
}

impl PropertyReads {
    pub fn new(properties: usize) -> PropertyReads {
        let none = || (0..properties).map(|_| AtomicU64::new(0)).collect();
        PropertyReads { fields: none(), inboxes: none() }
    }

    /// What the properties that still matter have read, other than in terminal states.
    pub fn read_set(&self, control: &Control) -> ReadSet {
        let mut read_set = ReadSet::default();
        for (property, &kind) in control.kinds.iter().enumerate() {
            if kind.of_states() && control.is_open(property) {
                read_set.fields |= self.fields[property].load(Relaxed);
                read_set.inboxes |= self.inboxes[property].load(Relaxed);
            }
        }
        read_set
    }

    /// The fields and the inboxes that a property has read.
    pub(crate) fn of(&self, property: usize) -> (u64, u64) {
        (self.fields[property].load(Relaxed), self.inboxes[property].load(Relaxed))
    }

    /// What some properties have read.
    pub fn seen(&self, properties: &[usize]) -> ReadSet {
        properties.iter().map(|&property| self.of(property)).fold(ReadSet::default(), |read_set, (fields, inboxes)| {
            ReadSet { fields: read_set.fields | fields, inboxes: read_set.inboxes | inboxes }
        })
    }

    #[inline]
    pub(crate) fn concern(&self, property: usize, changes: Changes) -> bool {
        changes.altered == u64::MAX
            || self.fields[property].load(Relaxed) & changes.altered != 0
            || self.inboxes[property].load(Relaxed) & changes.changed != 0
    }
}

/// Evaluate the open properties on a state: the `final` ones if it is terminal, else the others that the changes may have
/// touched. Hands every property that has a finding here to `found`; an exception is one of `control.exception()`.
pub fn evaluate_properties(
    view: &mut View,
    control: &Control,
    state: &[u32],
    changes: Changes,
    terminal: bool,
    mut found: impl FnMut(usize),
) -> Result<()> {
    for (property, &kind) in control.kinds.iter().enumerate() {
        let due = if terminal { kind == PropertyKind::Final } else { kind.of_states() };
        if !due || !control.is_open(property) {
            continue;
        }
        if !terminal && !control.reads.concern(property, changes) {
            continue;
        }
        let value = view.evaluate(property, state, &control.reads)?;
        if view.orbits.any() {
            view.audit_property(property, state, value, &control.reads)?;
        }
        match value {
            None => found(control.exception()),
            Some(value) if value == (kind == PropertyKind::Reachable) => found(property),
            Some(_) => {}
        }
    }
    Ok(())
}

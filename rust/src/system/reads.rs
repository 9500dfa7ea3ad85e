//! The components that properties read. After a step, only the properties that it can change are evaluated again.

use crate::search::control::Control;
use crate::symmetry::group::Group;
use crate::system::model::{Component, PropertyKind, Quantifier, Result, field_bit, monitor_bit};
use crate::system::successors::{View, bit};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

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

/// What partial-order reduction must know of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadSets {
    /// Of the properties: what changes this is visible.
    pub visible: ReadSet,
    /// Of the bound of the search: what changes this may lead out of it.
    pub bounds: ReadSet,
}

impl ReadSets {
    pub fn covers(self, other: ReadSets) -> bool {
        self.visible.covers(other.visible) && self.bounds.covers(other.bounds)
    }
}

/// Where a state differs from its parent.
#[derive(Clone, Copy, Debug)]
pub struct Changes {
    /// Fields and monitors, as `field_bit`s and `monitor_bit`s.
    pub(crate) altered: u64,
    /// Processes whose node changed, perhaps only in its inbox.
    pub(crate) changed: u64,
    /// The only process whose local state changed; `u16::MAX` if cells or all processes may have changed as well.
    pub(crate) process: u16,
}

impl Changes {
    /// A state that has no parent.
    pub const EVERYWHERE: Changes = Changes { altered: u64::MAX, changed: u64::MAX, process: u16::MAX };

    /// Whether they touch some of these fields or inboxes.
    #[inline]
    fn concern(self, fields: u64, inboxes: u64) -> bool {
        self.altered == u64::MAX || fields & self.altered != 0 || inboxes & self.changed != 0
    }
}

/// Per property, what its evaluations have read so far, shared by all workers.
///
/// A successor that differs from its parent in nothing of this has the parent's value: the parent's evaluation read only
/// such parts, and that was entered here before the parent was handed on.
pub struct PropertyReads {
    fields: Vec<AtomicU64>,
    inboxes: Vec<AtomicU64>,
    /// Per property, what each of its parts has read: fields and inboxes.
    parts: Vec<Vec<(AtomicU64, AtomicU64)>>,
    /// Per property, whether some part had no value in some state.
    undecided: Vec<AtomicBool>,
    /// How many values were entered by a key, which two of them may share.
    keys: AtomicU64,
}

impl PropertyReads {
    pub fn new(quantifiers: &[Quantifier]) -> PropertyReads {
        let none = || quantifiers.iter().map(|_| AtomicU64::new(0)).collect();
        let parts = |quantifier: &Quantifier| (0..=quantifier.parts).map(|_| Default::default()).collect();
        PropertyReads {
            fields: none(),
            inboxes: none(),
            parts: quantifiers.iter().map(parts).collect(),
            undecided: quantifiers.iter().map(|_| AtomicBool::new(false)).collect(),
            keys: AtomicU64::new(0),
        }
    }

    /// A part of a property has no value in some state: it may raise an exception there.
    pub(crate) fn note_undecided(&self, property: usize) {
        self.undecided[property].store(true, Relaxed);
    }

    pub(crate) fn note_key(&self) {
        self.keys.fetch_add(1, Relaxed);
    }

    /// How many values of properties were entered by a key.
    pub fn keys(&self) -> u64 {
        self.keys.load(Relaxed)
    }

    /// A part of a property has read a component. A property that is asked about images of a state reads their fields as well.
    pub(crate) fn note(&self, property: usize, part: usize, component: Component, group: &Group) {
        let (mut fields, mut inboxes) = (0, 0);
        match component {
            Component::Field(process, field) => {
                let images = group.places(process as usize).iter().copied().chain([process]);
                fields = images.fold(0, |bits, process| bits | field_bit(process as usize, field as usize));
            }
            Component::Inbox(process) => inboxes = bit(process as usize),
            Component::Monitor(monitor) => fields = monitor_bit(monitor as usize),
        }
        self.fields[property].fetch_or(fields, Relaxed);
        self.inboxes[property].fetch_or(inboxes, Relaxed);
        self.parts[property][part].0.fetch_or(fields, Relaxed);
        self.parts[property][part].1.fetch_or(inboxes, Relaxed);
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

    /// What the bound of the search has read.
    pub fn bounds(&self, control: &Control) -> ReadSet {
        self.seen(control.within.as_slice())
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
        changes.concern(self.fields[property].load(Relaxed), self.inboxes[property].load(Relaxed))
    }

    /// Whether a property looks at inboxes, as far as is known.
    #[inline]
    pub(crate) fn reads_inboxes(&self, property: usize) -> bool {
        self.inboxes[property].load(Relaxed) != 0
    }

    #[inline]
    pub(crate) fn part_concerned(&self, property: usize, part: usize, changes: Changes) -> bool {
        let (fields, inboxes) = &self.parts[property][part];
        changes.concern(fields.load(Relaxed), inboxes.load(Relaxed))
    }
}

/// Whether a state is within the bound of the search (`System(within=…)`): only then it is expanded. Hands the exception that
/// the bound raises to `raised`, as a property.
#[inline]
pub fn is_within(
    view: &mut View,
    control: &Control,
    state: &[u32],
    changes: Changes,
    raised: impl FnOnce(usize),
) -> Result<bool> {
    // The parent is within the bound.
    let Some(property) = control.within.filter(|&within| control.reads.concern(within, changes)) else {
        return Ok(true);
    };
    let neutral = view.tables.model.shape().quantifiers[property].every
        && !control.reads.undecided[property].load(Relaxed)
        && !view.orbits.any();
    let changes = if neutral { changes } else { Changes::EVERYWHERE };
    let value = view.evaluate_changed(property, state, changes, &control.reads)?;
    if view.orbits.any() {
        view.audit_property(property, state, value, &control.reads)?;
    }
    if value.is_none() {
        raised(control.exception());
    }
    Ok(value == Some(true))
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
        // In an open property, all parts of the parent had the value that decides nothing, or none if they raised.
        let neutral = view.tables.model.shape().quantifiers[property].every != (kind == PropertyKind::Reachable)
            && !control.reads.undecided[property].load(Relaxed)
            && !view.orbits.any();
        let changes = if neutral { changes } else { Changes::EVERYWHERE };
        let value = view.evaluate_changed(property, state, changes, &control.reads)?;
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

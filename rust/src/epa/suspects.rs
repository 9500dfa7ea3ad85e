//! Reasons why the input may not determine what the program does (Saissi 2019, Definition 5, condition 1), as far as events show
//! them: arithmetic on addresses, parts of addresses, memory that was left.

use super::super::format::{self, Record};
use super::super::recording::{Class, Computes};
use super::{Kind, OBJECT, PLAIN, Sanitizer, State, UNKNOWN};

/// Why the input may not determine what a site does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suspect {
    /// It reads memory that was freed.
    Freed,
    /// It reads memory without a known allocation.
    Unknown,
    /// An address, or the handle of a thread, is passed as an integer.
    Argument,
    /// It prints an address.
    Printed,
    /// It reads a part of an address, or an address as another type.
    Part,
    /// It calls the object with this number through a pointer.
    Pointer(u32),
}

/// The end of an object that several threads accessed.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// The run of the recording with the event that ends it.
    pub run: u32,
    /// How many events its thread had before the end.
    pub event: u32,
    pub site: u32,
    pub object: u32,
}

impl State {
    /// Whether an address of the stack is below all frames: frames that were there have been left. Threads one
    /// after the other may have the same stack.
    fn has_left(&self, address: u64) -> bool {
        let lowest = self.frames.last().map_or(self.high, |frame| {
            let objects = self.stack[frame.first..].iter().map(|object| object.0);
            objects.fold(frame.pointer, u64::min)
        });
        address < lowest
    }
}

impl Sanitizer<'_> {
    /// The object ends. In another order, other threads would access it later.
    pub(super) fn finished(&mut self, thread: usize, site: u32, object: u32) {
        if self.objects[object as usize].shared {
            let event = self.threads[thread].events.len() as u32;
            self.ends.push(End { run: self.run, event, site, object });
        }
    }

    /// Is the content of the memory that a site reads the same in every run?
    pub(super) fn doubt(&mut self, site: u32, tag: u8, address: u64) {
        if tag == UNKNOWN {
            let freed = self.freed.range(..=address).next_back().is_some_and(|(_, &to)| address < to);
            let mut stacks = self.states.iter().filter(|state| state.low <= address && address < state.high).peekable();
            let left = stacks.peek().is_some() && stacks.all(|state| state.has_left(address));
            self.suspects.insert((if freed || left { Suspect::Freed } else { Suspect::Unknown }, site));
        }
    }

    /// Note whether an access writes an address, or reads a part of one.
    #[inline]
    pub(super) fn share_address(&mut self, record: Record, class: Class, tag: u8) {
        let size = u64::from(self.sites[record.site as usize].size);
        if record.kind == format::LOAD {
            if class == Class::Plain && self.marks.any(record.words[0], size) {
                self.suspects.insert((Suspect::Part, record.site));
            }
        } else if tag == PLAIN {
            self.marks.clear(record.words[0], size);
        } else {
            self.marks.mark(record.words[0], size);
        }
    }

    /// Does a result depend on where objects lie?
    pub(super) fn compute(&mut self, thread: usize, site: u32, tag: u8, value: u64) {
        let what = &self.sites[site as usize];
        if what.computes == Computes::Offsets {
            return;
        }
        let state = &self.states[thread];
        let Some(frame) = state.frames.last() else { return };
        let made = |o: &u32| state.made.get(&self.watched, &frame.results, *o);
        let mut addresses = what.operands.iter().filter_map(made).filter(|(tag, _)| *tag != PLAIN);
        let (Some((first, one)), other) = (addresses.next(), addresses.next()) else { return };
        let apart = other.is_some_and(|(t, other)| t != first || t != OBJECT || self.strangers(one, other));
        let number = || what.operands.iter().filter_map(made).find(|(tag, _)| *tag == PLAIN);
        let wrong = match what.computes {
            Computes::Offsets => false,
            Computes::Anything => true,
            Computes::Order => apart || number().is_some_and(|(_, v)| may_be_address(v)),
            // The sum of an address and a distance is an address again, and the difference of two is a distance.
            Computes::Sum => other.is_some() || (tag == PLAIN && may_be_address(value)),
            Computes::Distance => apart || (other.is_none() && tag == PLAIN && value >= LEAST),
        };
        if wrong {
            self.mixed.insert(site);
        }
    }

    /// Whether two objects lie now here, now there to each other. Those of one stack do not, nor those of the program.
    fn strangers(&self, one: u64, other: u64) -> bool {
        let (one, other) = (&self.objects[(one >> 32) as usize], &self.objects[(other >> 32) as usize]);
        let fixed =
            matches!(one.kind, Kind::Stack | Kind::Global) && one.kind == other.kind && one.owner == other.owner;
        one.base != other.base && !fixed
    }
}

/// No address is smaller.
const LEAST: u64 = 0x1_0000;

/// Addresses are neither small, nor as large as those of the kernel.
#[inline]
pub(super) const fn may_be_address(value: u64) -> bool {
    value >= LEAST && value >> 47 == 0
}

//! Logs: the events of each process in their order, what they say of a step, and how many of them a step explains.
//!
//! A step explains a number of events of its process that follow each other. Together they must fit the step: one of them at
//! most names the handler, their received and sent messages are different messages of the step, and fields have the recorded
//! values after it. A loss or a copy of a message explains only events of which one names it. An event is *ready* when all events of other processes that come before it are explained.

use crate::system::model::{FieldId, LocalId, MessageId, Result};
use crate::system::values::Values;
use smallvec::SmallVec;

/// What a step is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    Handler(u16),
    Crash,
    Recover,
    Lose,
    Duplicate,
}

/// Which messages an item of an event may be.
#[derive(Clone, Debug)]
pub enum Matching {
    Any,
    /// One of these.
    Exact(Vec<MessageId>),
    /// Those that a pattern allows.
    Partial(u32),
}

/// A message that an event says was received or sent.
#[derive(Clone, Debug)]
pub struct Item {
    /// The sender of what was received, the receiver of what was sent, if the event says so.
    pub other: Option<u16>,
    pub matching: Matching,
}

impl Item {
    /// The only message that it can be, if there is only one.
    pub fn single(&self) -> Option<MessageId> {
        match &self.matching {
            Matching::Exact(messages) if messages.len() == 1 => Some(messages[0]),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Event {
    /// Its number in the whole log.
    pub number: u32,
    pub label: Option<Label>,
    pub receives: Vec<Item>,
    pub sends: Vec<Item>,
    /// Fields of the process after the step, counted from 0, with the contents that each may have.
    pub fields: Vec<(u16, Vec<FieldId>)>,
    /// Events of other processes that come before it: process, and number there.
    pub before: Vec<(u16, u32)>,
    /// So many events of its own process come before it by way of other processes: no step explains it and one of these.
    pub apart: u32,
}

impl Event {
    /// Whether it says nothing but what some fields are: then no step need explain it.
    pub fn is_state(&self) -> bool {
        self.label.is_none() && self.receives.is_empty() && self.sends.is_empty()
    }

    pub fn fits(&self, values: &Values, local: LocalId) -> bool {
        let parts = values.parts(local);
        self.fields
            .iter()
            .all(|(field, allowed)| parts.get(usize::from(*field) + 1).is_some_and(|content| allowed.contains(content)))
    }
}

/// What the log of a process leaves out nowhere.
#[derive(Clone, Debug, Default)]
pub struct Complete {
    /// By handler, whether an event names each of its steps.
    pub handlers: Vec<bool>,
    /// The same for crashes and recoveries.
    pub faults: bool,
    pub sends: bool,
    pub receives: bool,
}

impl Complete {
    /// Whether an event must name this step.
    pub fn demands(&self, label: Label) -> bool {
        match label {
            Label::Handler(handler) => self.handlers[usize::from(handler)],
            Label::Crash | Label::Recover => self.faults,
            Label::Lose | Label::Duplicate => false,
        }
    }

    /// Whether an event must name every step of the process.
    pub fn of_all_steps(&self) -> bool {
        self.faults && self.handlers.iter().all(|&named| named)
    }

    fn is_anything(&self) -> bool {
        self.faults || self.sends || self.receives || self.handlers.contains(&true)
    }
}

/// By process, its events, and what they leave out nowhere.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub events: Vec<Vec<Event>>,
    pub complete: Vec<Complete>,
    /// It may end early: after its last event, a process may do what the log leaves out nowhere else.
    pub open: bool,
}

impl Log {
    pub fn len(&self) -> usize {
        self.events.iter().map(Vec::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether some event of a process names a step so.
    pub fn names(&self, process: usize, label: Label) -> bool {
        self.events[process].iter().any(|event| event.label == Some(label))
    }

    /// The next event of a process, if so many of each are explained.
    pub fn next(&self, front: &[u32], process: usize) -> Option<&Event> {
        self.events[process].get(front[process] as usize)
    }

    /// Whether the log says nothing of a process any more, if so many of its events are explained.
    pub fn has_ended(&self, process: usize, explained: usize) -> bool {
        self.open && explained >= self.events[process].len()
    }

    pub fn is_ready(&self, front: &[u32], event: &Event) -> bool {
        event.before.iter().all(|&(process, number)| front[usize::from(process)] > number)
    }
}

/// Whether a pattern allows a message.
pub type Matcher<'a> = dyn FnMut(u32, MessageId) -> Result<bool> + 'a;

/// A step of a process, as far as events can say something of it.
pub struct Taken<'a> {
    pub process: usize,
    pub label: Label,
    pub consumed: &'a [MessageId],
    /// Receivers, and messages.
    pub sends: &'a [(u16, MessageId)],
    /// The local state after it.
    pub after: LocalId,
}

/// How many of the next events a step may explain.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// In ascending order.
    pub allowed: SmallVec<[u32; 4]>,
    /// It could explain more, if other events were explained first.
    pub open: bool,
}

impl Log {
    /// How many of the next events a step may explain, such that it leaves out nothing that is never left out.
    pub fn sizes(&self, values: &Values, front: &[u32], taken: &Taken, matcher: &mut Matcher) -> Result<Sizes> {
        let complete = &self.complete[taken.process];
        let begin = front[taken.process] as usize;
        let mut sizes = Sizes::default();
        let (mut received, mut sent) = (Pairing::new(taken.consumed.len()), Pairing::new(taken.sends.len()));
        let (mut named, mut size) = (false, 0);
        loop {
            let is_step = !matches!(taken.label, Label::Lose | Label::Duplicate);
            let owed = (complete.demands(taken.label) && !named)
                || (is_step && complete.receives && received.len() < taken.consumed.len())
                || (complete.sends && sent.len() < taken.sends.len());
            let nameless = !is_step && size > 0 && !named;
            if !nameless && (!owed || self.has_ended(taken.process, begin + size as usize)) {
                sizes.allowed.push(size);
            }
            let Some(event) = self.events[taken.process].get(begin + size as usize) else { break };
            let fits_label = event.label.is_none_or(|label| !named && label == taken.label);
            if event.apart as usize > begin || !fits_label || !event.fits(values, taken.after) {
                break;
            }
            if !received.add(&event.receives, |item, at| allows(values, item, taken.consumed[at], matcher))?
                || !sent.add(&event.sends, |item, at| {
                    let (to, message) = taken.sends[at];
                    Ok(item.other.is_none_or(|other| other == to) && matches(item, message, matcher)?)
                })?
            {
                break;
            }
            if !self.is_ready(front, event) {
                sizes.open = true;
                break;
            }
            named |= event.label.is_some();
            size += 1;
        }
        if !complete.is_anything() {
            // The more it explains, the better: what is explained need not be explained later.
            let most = sizes.allowed.pop().expect("none is allowed");
            if most > 0 {
                sizes.allowed = SmallVec::from_slice(&[0, most]);
            } else {
                sizes.allowed.push(0);
            }
        }
        Ok(sizes)
    }
}

/// Whether a received message may be this item.
pub fn allows(values: &Values, item: &Item, message: MessageId, matcher: &mut Matcher) -> Result<bool> {
    Ok(item.other.is_none_or(|other| other == values.sender(message)) && matches(item, message, matcher)?)
}

fn matches(item: &Item, message: MessageId, matcher: &mut Matcher) -> Result<bool> {
    match &item.matching {
        Matching::Any => Ok(true),
        Matching::Exact(messages) => Ok(messages.contains(&message)),
        Matching::Partial(pattern) => matcher(*pattern, message),
    }
}

/// Items, each with a message of its own (a matching of a bipartite graph, grown by augmenting paths).
struct Pairing {
    /// By item, the messages that it may be.
    allowed: Vec<Vec<usize>>,
    /// By message, its item.
    item: Vec<Option<usize>>,
}

impl Pairing {
    fn new(messages: usize) -> Pairing {
        Pairing { allowed: Vec::new(), item: vec![None; messages] }
    }

    fn len(&self) -> usize {
        self.allowed.len()
    }

    /// Add items; false if they have no messages of their own.
    fn add(&mut self, items: &[Item], mut fits: impl FnMut(&Item, usize) -> Result<bool>) -> Result<bool> {
        for item in items {
            let mut allowed = Vec::new();
            for at in 0..self.item.len() {
                if fits(item, at)? {
                    allowed.push(at);
                }
            }
            self.allowed.push(allowed);
            let mut met = vec![false; self.item.len()];
            if !self.augment(self.allowed.len() - 1, &mut met) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn augment(&mut self, item: usize, met: &mut [bool]) -> bool {
        for place in 0..self.allowed[item].len() {
            let at = self.allowed[item][place];
            if std::mem::replace(&mut met[at], true) {
                continue;
            }
            if self.item[at].is_none_or(|other| self.augment(other, met)) {
                self.item[at] = Some(item);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(messages: &[MessageId]) -> Item {
        Item { other: None, matching: Matching::Exact(messages.to_vec()) }
    }

    #[test]
    fn each_item_gets_a_message_of_its_own() {
        let sent = [7, 8, 9];
        let mut pairing = Pairing::new(sent.len());
        let mut add = |items: &[Item]| {
            pairing.add(items, |item, at| matches(item, sent[at], &mut |_, _| unreachable!())).expect("no error")
        };
        assert!(add(&[item(&[7, 8])]));
        assert!(add(&[item(&[7]), item(&[7, 8, 9])]));
        assert!(!add(&[item(&[7, 8])]));
    }

    #[test]
    fn a_step_explains_events_that_follow_each_other() {
        let values = Values::default();
        let local = values.local(b"\0t\x01i\x02");
        let one = values.field(b"i\x02");
        let named = |fields| Event { label: Some(Label::Handler(0)), fields, ..Event::default() };
        let sends = Event { sends: vec![item(&[7])], ..Event::default() };
        let events = vec![named(vec![(0, vec![one])]), sends, named(vec![])];
        let mut log = Log {
            events: vec![events],
            complete: vec![Complete { handlers: vec![false], ..Complete::default() }],
            open: false,
        };
        let taken = Taken { process: 0, label: Label::Handler(0), consumed: &[], sends: &[(0, 7)], after: local };
        let sizes = |log: &Log, front: u32| log.sizes(&values, &[front], &taken, &mut |_, _| unreachable!()).unwrap();
        assert_eq!(sizes(&log, 0).allowed[..], [0, 2]);
        log.complete[0].handlers[0] = true;
        assert_eq!(sizes(&log, 0).allowed[..], [1, 2]);
        log.complete[0].sends = true;
        assert_eq!(sizes(&log, 0).allowed[..], [2]);
        assert_eq!(sizes(&log, 1).allowed[..], [2]);
        assert!(sizes(&log, 2).allowed.is_empty());
        log.open = true;
        assert_eq!(sizes(&log, 2).allowed[..], [1]);
        assert_eq!(sizes(&log, 3).allowed[..], [0]);
        log.open = false;
        log.events[0][0].fields[0].1 = vec![one + 1];
        assert!(sizes(&log, 0).allowed.is_empty());
    }
}

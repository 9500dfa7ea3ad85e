//! The steps that a process can take in a state, with the events that each explains.
//!
//! If the next event of a process says which messages are taken, only these are looked for in the inbox.
//!
//! `sole` is the partial-order reduction: a process whose steps are the only ones that need be tried. Let the process have a next
//! event. Every run that explains the whole log has a step of the process, and its first step can be moved to the front if
//! (1) it is possible now, with the messages that are pending now, (2) it explains the same events now, and (3) steps of
//! other processes do not notice, and are not noticed. (1) holds if the log names each step of the process, and the messages
//! of this step, which are pending; or if it names each received message, and those of the next step are pending. (2) holds
//! if no step stops at an event that is not ready (`Sizes::open`). (3) is a property of the system (`independent`): messages
//! only add up. The process is taken alone if all its steps explain something, so that the search gets on with the log.

use crate::conform::log::{Item, Label, Log, Matcher, Taken, allows};
use crate::conform::state::{Move, State};
use crate::system::expander::Expander;
use crate::system::inbox::{self, Deliverable};
use crate::system::model::{Armed, FieldId, MessageId, Network, Result, Status};
use crate::system::quorum::Candidate;
use crate::system::tables::{Kind, OutcomesId, Tables};

/// Which steps are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Those that explain the next event of their process.
    Explaining,
    /// Those that explain nothing.
    Free,
}

pub struct Moves<'a, 'm> {
    pub tables: &'a Tables,
    pub log: &'a Log,
    pub matcher: &'a mut Matcher<'m>,
    /// Steps of different processes do not disturb each other.
    independent: bool,
    /// By process, whether events name losses and copies.
    named: Vec<(bool, bool)>,
}

/// The steps of a process.
#[derive(Default)]
struct Found {
    moves: Vec<Move>,
    /// A step could explain more, if other events were explained first.
    open: bool,
}

impl<'a, 'm> Moves<'a, 'm> {
    pub fn new(tables: &'a Tables, log: &'a Log, matcher: &'a mut Matcher<'m>, start: &State, reduced: bool) -> Self {
        let shape = tables.model.shape();
        let unborn = |&local: &u32| tables.model.values().status(local) == Status::Unborn;
        let ordered = match shape.network {
            Network::Bag | Network::Set => false,
            Network::Fifo => shape.lossy,
            Network::Mailbox => true,
        };
        let disturbed = ordered
            || shape.capacity.is_some()
            || shape.cells > 0
            || shape.duplications.is_some()
            || start.locals.iter().any(unborn);
        let named = (0..log.events.len())
            .map(|process| (log.names(process, Label::Lose), log.names(process, Label::Duplicate)))
            .collect();
        Moves { tables, log, matcher, independent: reduced && !disturbed, named }
    }

    /// The steps of a process that explain its next event.
    pub fn explaining(&mut self, state: &State, process: usize) -> Result<Vec<Move>> {
        Ok(self.of(state, process, Wanted::Explaining)?.moves)
    }

    /// The steps of a process that explain nothing.
    pub fn free(&mut self, state: &State, process: usize) -> Result<Vec<Move>> {
        Ok(self.of(state, process, Wanted::Free)?.moves)
    }

    /// The steps of a process, if no others need be tried.
    pub fn sole(&mut self, state: &State, process: usize) -> Result<Option<Vec<Move>>> {
        if !self.independent || !self.is_closed(state, process)? {
            return Ok(None);
        }
        let Found { moves, open } = self.of(state, process, Wanted::Explaining)?;
        Ok((!open && !moves.is_empty()).then_some(moves))
    }

    /// Whether messages that may still arrive cannot add to the steps of a process, and each of its steps explains something.
    fn is_closed(&mut self, state: &State, process: usize) -> Result<bool> {
        if self.named[process] != (false, false) {
            return Ok(false); // The message that is lost may still arrive.
        }
        let (log, complete) = (self.log, &self.log.complete[process]);
        let Some(event) = log.next(&state.front, process).filter(|event| log.is_ready(&state.front, event)) else {
            return Ok(false);
        };
        let armed = self.armed(state, process)?;
        let waits = |item: &Item| item.single().is_some_and(|message| state.inboxes[process].contains(&message));
        if complete.of_all_steps() {
            match event.label {
                Some(Label::Handler(handler)) => {
                    let takes = armed.iter().find(|armed| armed.handler == handler);
                    let all = |armed: &Armed| event.receives.len() >= usize::from(armed.most);
                    if takes.is_some_and(|armed| armed.least == 0 || all(armed)) && event.receives.iter().all(waits) {
                        return Ok(true);
                    }
                }
                Some(Label::Crash | Label::Recover) => return Ok(true),
                Some(Label::Lose | Label::Duplicate) | None => {}
            }
        }
        if !complete.receives {
            return Ok(false);
        }
        let most = armed.iter().map(|armed| usize::from(armed.most)).max().unwrap_or_default();
        if !self.next_items(state, process, most).is_some_and(|items| items.into_iter().all(waits)) {
            return Ok(false);
        }
        Ok(self.of(state, process, Wanted::Free)?.moves.is_empty())
    }

    /// The first received messages of the next events that one step may explain, up to a number. None if the log may end there,
    /// so that the step may take others.
    fn next_items(&self, state: &State, process: usize, most: usize) -> Option<Vec<&'a Item>> {
        let begin = state.front[process] as usize;
        let (mut items, mut named) = (Vec::new(), false);
        let mut ends = self.log.open;
        for event in &self.log.events[process][begin..] {
            if items.len() >= most || event.apart as usize > begin || (named && event.label.is_some()) {
                ends = false;
                break;
            }
            named |= event.label.is_some();
            items.extend(&event.receives);
        }
        items.truncate(most);
        (!ends).then_some(items)
    }

    fn armed(&self, state: &State, process: usize) -> Result<Vec<Armed>> {
        let local = state.locals[process];
        if self.tables.model.values().status(local) != Status::Up {
            return Ok(Vec::new());
        }
        let cells = state.cells(self.tables);
        Ok(Expander::new(self.tables, 0, &cells).armed(process as u16, local)?.to_vec())
    }

    fn of(&mut self, state: &State, process: usize, wanted: Wanted) -> Result<Found> {
        let mut found = Found::default();
        let (log, tables) = (self.log, self.tables);
        let event = log.next(&state.front, process).filter(|event| log.is_ready(&state.front, event));
        if wanted == Wanted::Explaining && event.is_none() {
            found.open = true;
            return Ok(found);
        }
        let cells = state.cells(tables);
        let asked = Asked { state, process, wanted, cells: &cells };
        // Whether steps of this name are wanted.
        let label = if wanted == Wanted::Explaining { event.and_then(|event| event.label) } else { None };
        let complete = &log.complete[process];
        let ended = log.has_ended(process, state.front[process] as usize);
        let may = |one: Label| match wanted {
            Wanted::Explaining => label.is_none_or(|label| label == one),
            Wanted::Free => ended || !complete.demands(one),
        };
        match tables.model.values().status(state.locals[process]) {
            Status::Up => {
                self.handlers(&asked, &may, &mut found)?;
                self.crashes(&asked, &may, &mut found)?;
            }
            Status::Down if may(Label::Recover) => {
                let expander = Expander::new(tables, 0, &cells);
                let outcomes = expander.recover(process as u16, state.locals[process])?;
                self.outcomes(&asked, Kind::Recover, 0, &[], outcomes, &mut found)?;
            }
            Status::Down | Status::Crashed | Status::Unborn => {}
        }
        self.network(&asked, &mut found)?;
        Ok(found)
    }

    fn handlers(&mut self, asked: &Asked, may: &dyn Fn(Label) -> bool, found: &mut Found) -> Result<()> {
        let Asked { state, process, wanted, cells } = *asked;
        let tables = self.tables;
        let expander = Expander::new(tables, 0, cells);
        let (index, local) = (process as u16, state.locals[process]);
        let armed = expander.armed(index, local)?;
        let receives =
            self.log.complete[process].receives && !self.log.has_ended(process, state.front[process] as usize);
        let mut all: Option<Vec<(u16, Candidate)>> = None;
        for &one in armed.iter() {
            let takes = one.least > 0;
            if !may(Label::Handler(one.handler)) || (wanted == Wanted::Free && receives && takes) {
                continue;
            }
            let mut sets: Vec<Vec<MessageId>> = Vec::new();
            let mut note = |set: &[MessageId]| {
                sets.push(set.to_vec());
                Ok(())
            };
            if !takes {
                note(&[])?;
            } else if let Some(items) = self.only(asked, one) {
                let messages = self.pending(state, process, &items)?;
                let candidates = expander.candidates(index, local, &[one], &messages)?;
                expander.consumable(index, local, one, &candidates, note)?;
            } else {
                if all.is_none() {
                    let messages = expander.deliverable(&state.inboxes[process], &armed);
                    all = Some(expander.candidates(index, local, &armed, &messages)?);
                }
                expander.consumable(index, local, one, all.as_deref().unwrap_or_default(), note)?;
            }
            for set in sets {
                let outcomes = expander.step(index, local, one.handler, &set)?;
                self.outcomes(asked, Kind::Step, one.handler, &set, outcomes, found)?;
            }
        }
        Ok(())
    }

    /// The items that all messages of a step are, if the log tells.
    fn only(&self, asked: &Asked, armed: Armed) -> Option<Vec<&'a Item>> {
        let Asked { state, process, wanted, .. } = *asked;
        if wanted == Wanted::Free || !armed.distinct || self.tables.model.shape().network == Network::Mailbox {
            return None; // Of a mailbox, the messages before it decide.
        }
        let most = usize::from(armed.most);
        if self.log.complete[process].receives
            && let Some(items) = self.next_items(state, process, most)
        {
            return Some(items);
        }
        let event = self.log.next(&state.front, process)?;
        (event.receives.len() >= most).then(|| event.receives.iter().collect())
    }

    /// The pending messages that are some of the items, and can be consumed now.
    fn pending(&mut self, state: &State, process: usize, items: &[&Item]) -> Result<Vec<Deliverable>> {
        let (model, inbox) = (&*self.tables.model, &state.inboxes[process]);
        let singles: Option<Vec<MessageId>> = items.iter().map(|item| item.single()).collect();
        let mut found: Vec<MessageId> = match singles {
            Some(singles) if !model.shape().network.is_ordered() => {
                singles.into_iter().filter(|message| inbox.binary_search(message).is_ok()).collect()
            }
            _ => {
                let mut found = Vec::new();
                for message in inbox::deliverable(model, inbox) {
                    for item in items {
                        if allows(model.values(), item, message, self.matcher)? {
                            found.push(message);
                            break;
                        }
                    }
                }
                found
            }
        };
        found.sort_by_cached_key(|&message| (model.sender(message), model.message_hash(message), message));
        found.dedup();
        Ok(found.into_iter().map(|message| Deliverable { message, copies: 1, place: 0 }).collect())
    }

    fn crashes(&mut self, asked: &Asked, may: &dyn Fn(Label) -> bool, found: &mut Found) -> Result<()> {
        let Asked { state, process, .. } = *asked;
        let shape = self.tables.model.shape();
        for (number, fault) in shape.faults.iter().enumerate() {
            if !fault.may_crash[process] || state.budgets[shape.crash_budget(number)] == 0 || !may(Label::Crash) {
                continue;
            }
            let expander = Expander::new(self.tables, 0, &[]);
            let after = expander.crash(process as u16, state.locals[process], fault.recovers)?;
            let step = Move {
                process: process as u16,
                kind: Kind::Crash,
                handler: number as u16,
                consumed: [].into(),
                outcome: None,
                explains: 0,
            };
            self.push(asked, step, &[], after, found)?;
        }
        Ok(())
    }

    /// Losses and copies. In a bag without bounds, a loss that no event names helps no run.
    fn network(&mut self, asked: &Asked, found: &mut Found) -> Result<()> {
        let Asked { state, process, wanted, .. } = *asked;
        let shape = self.tables.model.shape();
        let local = state.locals[process];
        let left = |budget: Option<usize>| budget.is_none_or(|budget| state.budgets[budget] > 0);
        let free = wanted == Wanted::Free;
        let helps = shape.network.is_ordered() || shape.capacity.is_some();
        if shape.lossy && left(shape.loss_budget()) && (if free { helps } else { self.named[process].0 }) {
            for (number, (lost, _)) in inbox::losses(&state.inboxes[process]).into_iter().enumerate() {
                let step = Move {
                    process: process as u16,
                    kind: Kind::Lose,
                    handler: number as u16,
                    consumed: [lost].into(),
                    outcome: None,
                    explains: 0,
                };
                self.push(asked, step, &[], local, found)?;
            }
        }
        let copies = shape.duplication_budget().is_some_and(|budget| left(Some(budget)));
        if copies && (free || self.named[process].1) {
            for message in inbox::distinct(&state.inboxes[process]) {
                let step = Move {
                    process: process as u16,
                    kind: Kind::Duplicate,
                    handler: 0,
                    consumed: [message].into(),
                    outcome: None,
                    explains: 0,
                };
                self.push(asked, step, &[], local, found)?;
            }
        }
        Ok(())
    }

    fn outcomes(
        &mut self,
        asked: &Asked,
        kind: Kind,
        handler: u16,
        consumed: &[MessageId],
        outcomes: OutcomesId,
        found: &mut Found,
    ) -> Result<()> {
        let Asked { state, process, .. } = *asked;
        for (number, outcome) in self.tables.outcomes(outcomes).iter().enumerate() {
            let fails = outcome.rare().failure.is_some();
            if fails || !state.allows(self.tables, process, consumed, outcome) {
                continue; // A step that fails leads nowhere.
            }
            let step = Move {
                process: process as u16,
                kind,
                handler,
                consumed: consumed.into(),
                outcome: Some((outcomes, number as u32)),
                explains: 0,
            };
            self.push(asked, step, &outcome.sends, outcome.local, found)?;
        }
        Ok(())
    }

    /// Keep a step with each number of events that it may explain.
    fn push(
        &mut self,
        asked: &Asked,
        step: Move,
        sends: &[(u16, MessageId)],
        after: u32,
        found: &mut Found,
    ) -> Result<()> {
        let Asked { state, process, wanted, .. } = *asked;
        let taken = Taken { process, label: step.label(), consumed: &step.consumed, sends, after };
        let sizes = self.log.sizes(self.tables.model.values(), &state.front, &taken, self.matcher)?;
        found.open |= sizes.open;
        for explains in sizes.allowed {
            if (explains == 0) == (wanted == Wanted::Free) {
                found.moves.push(Move { explains, ..step.clone() });
            }
        }
        Ok(())
    }
}

/// What steps are asked for.
struct Asked<'s> {
    state: &'s State,
    process: usize,
    wanted: Wanted,
    /// The contents of the cells.
    cells: &'s [FieldId],
}

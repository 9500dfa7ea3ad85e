//! The transitions of a node, computed once: with all sets of messages that its handlers may consume, and with faults.

use crate::symmetry::audit::Question;
use crate::system::hash::Sum;
use crate::system::inbox::Deliverable;
use crate::system::model::{
    Armed, CellSet, CrashFault, FieldId, LocalId, MessageId, Model, Network, RAISED, Result, Status, Truth, field_bit,
};
use crate::system::quorum::Candidate;
use crate::system::tables::{
    Bundle, Kind, NO_BUDGET, Node, NodeId, OutcomesId, StepKey, StoredDetails, Tables, Transition,
};
use crate::system::tick::TICK;
use crate::system::{hash, inbox, quorum};
use rustc_hash::FxHashMap;
use smallvec::smallvec;
use std::cell::RefCell;
use std::sync::Arc;

/// Computes the transitions of one node, or answers single questions about a process.
pub(crate) struct Expander<'t> {
    pub tables: &'t Tables,
    /// A node without cells.
    pub node: NodeId,
    /// The contents of all cells.
    pub cells: &'t [FieldId],
    /// By handler, the cells that were read so far.
    read: RefCell<FxHashMap<u16, CellSet>>,
}

/// In place of a handler: the recovery of a process.
pub const RECOVERY: u16 = u16::MAX;

/// The transitions so far, and their details.
#[derive(Default)]
struct Found {
    transitions: Vec<Transition>,
    details: Vec<StoredDetails>,
}

impl<'t> Expander<'t> {
    fn model(&self) -> &'t dyn Model {
        &*self.tables.model
    }

    pub fn new(tables: &'t Tables, node: NodeId, cells: &'t [FieldId]) -> Self {
        Expander { tables, node, cells, read: RefCell::default() }
    }

    /// The cells that were read so far.
    pub fn read(&self) -> CellSet {
        self.read.borrow().values().fold(0, |all, read| all | read)
    }

    /// The same by handler, in order.
    pub fn read_by_handler(&self) -> Vec<(u16, CellSet)> {
        let mut read: Vec<(u16, CellSet)> = self.read.borrow().iter().map(|(&h, &read)| (h, read)).collect();
        read.retain(|&(_, read)| read != 0);
        read.sort_unstable();
        read
    }

    pub(super) fn expand(&self) -> Result<(Vec<Transition>, Vec<StoredDetails>)> {
        let node = *self.tables.node(self.node);
        let pending = self.tables.inbox(node.inbox);
        let mut found = Found::default();
        if node.process as usize >= self.model().shape().movers() {
            return Ok(Default::default()); // A cell has no transitions.
        }
        match node.status {
            Status::Up => {
                self.steps(node, pending, &mut found)?;
                self.crashes(node, pending, &mut found)?;
            }
            Status::Down => {
                let outcomes = self.recover(node.process, node.local)?;
                self.outcomes(Kind::Recover, 0, &[], pending, outcomes, &mut found);
            }
            Status::Crashed | Status::Unborn => {}
        }
        self.network(node, pending, &mut found);
        if self.model().shape().time.as_ref().is_some_and(|time| time.ticks(node.process as usize)) {
            let details = StoredDetails { kind: Kind::Tick, handler: TICK, consumed: (0, 0), outcome: None };
            // What it does depends on all processes: `View::tick` finds out.
            self.push(&mut found, self.node, NO_BUDGET, Vec::new(), details, true);
        }
        Ok((found.transitions, found.details))
    }

    fn steps(&self, node: Node, pending: &[MessageId], found: &mut Found) -> Result<()> {
        let process = node.process;
        let armed = self.armed(process, node.local)?;
        let deliverable = self.deliverable(pending, &armed);
        let candidates = self.candidates(process, node.local, &armed, &deliverable)?;
        for &armed in armed.iter() {
            self.consumable(process, node.local, armed, &candidates, |consumed| {
                let outcomes = self.step(process, node.local, armed.handler, consumed)?;
                let rest = inbox::remove(self.model(), pending, consumed);
                self.outcomes(Kind::Step, armed.handler, consumed, &rest, outcomes, found);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The messages that these handlers may consume now. By content, not by id: the order of transitions must not depend on
    /// the order of discovery.
    pub fn deliverable(&self, pending: &[MessageId], armed: &[Armed]) -> Vec<Deliverable> {
        let model = self.model();
        let mut deliverable = if armed.iter().all(|armed| armed.distinct) {
            let alone = |message| Deliverable { message, copies: 1, place: 0 };
            inbox::deliverable(model, pending).into_iter().map(alone).collect()
        } else {
            inbox::deliverable_together(model, pending)
        };
        if deliverable.len() > 1 && model.shape().network != Network::Mailbox {
            deliverable.sort_by_cached_key(|d| (model.sender(d.message), d.place, model.message_hash(d.message)));
        }
        deliverable
    }

    /// Hand each set of messages that a handler may consume to `each`.
    pub fn consumable(
        &self,
        process: u16,
        local: LocalId,
        armed: Armed,
        candidates: &[(u16, Candidate)],
        mut each: impl FnMut(&[MessageId]) -> Result<()>,
    ) -> Result<()> {
        if !armed.accepts {
            return self.possible(process, armed, candidates, |set, _| each(set));
        }
        let (mut sets, mut raised) = (Vec::new(), Vec::new());
        self.possible(process, armed, candidates, |set, raises| {
            if raises {
                raised.push(set.to_vec())
            } else {
                sets.push(set.to_vec())
            }
            Ok(())
        })?;
        for (set, accepted) in sets.iter().zip(self.accepts(process, local, armed.handler, &sets)?) {
            if accepted != Some(false) {
                each(set)?;
            }
        }
        raised.iter().try_for_each(|set| each(set))
    }

    /// Hand each set of messages to `each` that a handler may consume, as far as all but the guard over the whole set tells. A
    /// message on which the guard raised an exception is a set of its own, and is told apart.
    pub fn possible(
        &self,
        process: u16,
        armed: Armed,
        candidates: &[(u16, Candidate)],
        mut each: impl FnMut(&[MessageId], bool) -> Result<()>,
    ) -> Result<()> {
        if armed.least == 0 {
            return each(&[], false);
        }
        let mine =
            || candidates.iter().filter(|(handler, _)| *handler == armed.handler).map(|&(_, candidate)| candidate);
        let Some(first) = mine().next() else { return Ok(()) };
        if armed.most == 1 && mine().all(|candidate| candidate.group == first.group) {
            let raises = first.group == RAISED;
            return mine().filter(|c| c.place == 0).try_for_each(|candidate| each(&[candidate.message], raises));
        }
        let (raised, allowed): (Vec<Candidate>, Vec<Candidate>) = mine().partition(|c| c.group == RAISED);
        let sets = quorum::sets(&allowed, armed);
        let sets = sets.ok_or_else(|| self.model().too_many_sets(process as usize, armed.handler))?;
        sets.iter().try_for_each(|set| each(set, false))?;
        raised.iter().try_for_each(|candidate| each(&[candidate.message], true))
    }

    /// One transition per outcome of a handler that left `rest` in the inbox.
    fn outcomes(
        &self,
        kind: Kind,
        handler: u16,
        consumed: &[MessageId],
        rest: &[MessageId],
        outcomes: OutcomesId,
        found: &mut Found,
    ) {
        let Node { process, lead, .. } = *self.tables.node(self.node);
        let last = self.tables.last(consumed);
        let consumed = self.tables.push_consumed(consumed);
        for (number, outcome) in self.tables.outcomes(outcomes).iter().enumerate() {
            let mut others: Vec<(u16, Bundle)> = Vec::new();
            for &(slot, local) in &outcome.rare().spawns {
                others.push((slot, Bundle { birth: Some(local), messages: Vec::new() }));
            }
            let mut own = Vec::new();
            for &(to, message) in &outcome.sends {
                if to == process {
                    own.push(message);
                } else if let Some((_, bundle)) = others.iter_mut().find(|(other, _)| *other == to) {
                    bundle.messages.push(message);
                } else {
                    others.push((to, Bundle { birth: None, messages: vec![message] }));
                }
            }
            let target = if own.is_empty() {
                self.tables.node_of(process as usize, outcome.local, rest, last, lead)
            } else if !inbox::has_room(self.model(), rest, &own) {
                continue;
            } else {
                let rest = inbox::insert(self.model(), rest, &own);
                self.tables.node_of(process as usize, outcome.local, &rest, last, lead)
            };
            let details = StoredDetails { kind, handler, consumed, outcome: Some((outcomes, number as u32)) };
            self.push(found, target, NO_BUDGET, others, details, outcome.is_involved());
        }
    }

    fn crashes(&self, node: Node, pending: &[MessageId], found: &mut Found) -> Result<()> {
        for (index, fault) in self.model().shape().faults.iter().enumerate() {
            if fault.may_crash[node.process as usize] {
                let local = self.crash(node.process, node.local, fault.recovers)?;
                let last = self.tables.last(&[]);
                let target = self.tables.node_of(node.process as usize, local, pending, last, node.lead);
                let budget = self.model().shape().crash_budget(index) as u8;
                let details =
                    StoredDetails { kind: Kind::Crash, handler: index as u16, consumed: (0, 0), outcome: None };
                self.push(found, target, budget, Vec::new(), details, false);
            }
        }
        Ok(())
    }

    /// Losses and copies of pending messages.
    fn network(&self, node: Node, pending: &[MessageId], found: &mut Found) {
        let shape = self.model().shape();
        let mut changes: Vec<(Kind, u8, MessageId, Vec<MessageId>)> = Vec::new();
        if shape.lossy {
            let budget = shape.loss_budget().map_or(NO_BUDGET, |b| b as u8);
            changes.extend(inbox::losses(pending).into_iter().map(|(lost, rest)| (Kind::Lose, budget, lost, rest)));
        }
        if let Some(budget) = shape.duplication_budget() {
            changes.extend(inbox::distinct(pending).into_iter().map(|message| {
                (Kind::Duplicate, budget as u8, message, inbox::insert(self.model(), pending, &[message]))
            }));
        }
        changes.sort_by_key(|(kind, _, message, _)| (*kind as u8, self.model().message_hash(*message)));
        for (kind, budget, message, after) in changes {
            let target = self.tables.node_of(node.process as usize, node.local, &after, node.last, node.lead);
            let consumed = self.tables.push_consumed(&[message]);
            let details = StoredDetails { kind, handler: 0, consumed, outcome: None };
            self.push(found, target, budget, Vec::new(), details, false);
        }
    }

    /// `involved`: it has events, expectations or a failure.
    fn push(
        &self,
        found: &mut Found,
        target: NodeId,
        budget: u8,
        others: Vec<(u16, Bundle)>,
        details: StoredDetails,
        involved: bool,
    ) {
        let (model, tables) = (self.model(), self.tables);
        let shape = model.shape();
        let additive = shape.network == Network::Bag
            && others.iter().all(|(to, bundle)| {
                let stops = |f: &CrashFault| !f.recovers && f.may_crash[*to as usize];
                bundle.birth.is_none() && !shape.faults.iter().any(stops)
            });
        let (mut sent, mut written) = (0u128, 0);
        let mut deliveries = Vec::with_capacity(others.len());
        for (to, bundle) in others {
            if to as usize >= shape.movers() {
                written |= field_bit(to as usize, 1);
            }
            for &message in bundle.messages.iter().filter(|_| additive) {
                sent = sent.plus(hash::pending(to as usize, model.message_hash(message)));
            }
            deliveries.push((to, tables.bundle(bundle)));
        }
        let (before, after) = (tables.node(self.node), tables.node(target));
        let blocked = shape.blocks().is_some() && !deliveries.is_empty();
        let moves = match details.kind {
            Kind::Step => true,
            Kind::Recover => shape.returning[before.process as usize],
            _ => false,
        };
        let history = tables.history(self.node, target);
        let delta = after.sum::<u128>().minus(before.sum()).plus(sent);
        let plain = budget == NO_BUDGET && !involved && !blocked && (additive || deliveries.is_empty());
        found.transitions.push(Transition {
            low: delta.low(),
            high: delta.high(),
            altered: model.values().altered(before.process as usize, before.local, after.local) | written,
            target,
            deliveries: tables.push_deliveries(&deliveries),
            delivered: deliveries.len() as u16,
            details: 0,
            budget,
            moves,
            additive,
            // Whether the history is all that changes depends on more, if the transition is not plain.
            simple: plain || (budget == NO_BUDGET && !involved && !blocked && history == 0),
            plain,
            leads_on: moves && delta != history,
        });
        found.details.push(details);
    }

    /// The answer to a question about a local state: the known one, if the question was asked with the same contents of
    /// the cells that it reads.
    fn answer<T>(
        &self,
        question: impl FnOnce(LocalId) -> Question,
        local: LocalId,
        known: impl Fn(LocalId) -> Option<T>,
        ask: impl FnOnce(LocalId, &mut CellSet) -> Result<T>,
        keep: impl FnOnce(LocalId, T) -> T,
    ) -> Result<T> {
        if self.cells.is_empty() {
            return match known(local) {
                Some(found) => Ok(found),
                None => Ok(keep(local, ask(local, &mut 0)?)),
            };
        }
        let (values, question) = (self.model().values(), question(local));
        let note = |read: CellSet| *self.read.borrow_mut().entry(question.handler()).or_default() |= read;
        let seen = |read: CellSet| values.with_cells(local, self.cells, read);
        for read in self.tables.answers.read_by(&question) {
            if let Some(found) = known(seen(read)) {
                note(read);
                return Ok(found);
            }
        }
        let mut read = 0;
        let answer = ask(seen(CellSet::MAX), &mut read)?;
        note(read);
        let kept = keep(seen(read), answer);
        self.tables.answers.note_read(question, read);
        Ok(kept)
    }

    pub fn armed(&self, process: u16, local: LocalId) -> Result<Arc<[Armed]>> {
        if !self.cells.is_empty() {
            // One by one: each reads cells of its own.
            let handlers = 0..self.model().shape().handlers[process as usize];
            let armed = handlers.filter_map(|handler| self.arm(process, local, handler).transpose());
            return Ok(armed.collect::<Result<Vec<Armed>>>()?.into());
        }
        let known = &self.tables.answers.armed;
        if let Some(found) = known.get(&(process, local)) {
            return Ok(found);
        }
        Ok(known.insert((process, local), self.model().armed(process as usize, local, None, &mut 0)?.into()))
    }

    /// Whether one handler may run, in a system with cells.
    pub fn arm(&self, process: u16, local: LocalId, handler: u16) -> Result<Option<Armed>> {
        let known = &self.tables.answers.arms;
        self.answer(
            |local| Question::Arm(process, local, handler),
            local,
            |local| known.get(&(process, local, handler)),
            |local, read| Ok(self.model().armed(process as usize, local, Some(handler), read)?.first().copied()),
            |local, armed| known.insert((process, local, handler), armed),
        )
    }

    /// The messages that the guards of armed handlers allow, each with its handler, in the order of the messages.
    pub fn candidates(
        &self,
        process: u16,
        local: LocalId,
        armed: &[Armed],
        messages: &[Deliverable],
    ) -> Result<Vec<(u16, Candidate)>> {
        let known = &self.tables.answers.guards;
        let (mut candidates, mut questions, mut places) = (Vec::new(), Vec::new(), Vec::new());
        if !self.cells.is_empty() {
            // One by one: each reads cells of its own.
            for &Deliverable { message, copies, place } in messages {
                let handlers = self.handlers(process, message)?;
                let takes = |a: &&Armed| a.least > 0 && handlers.contains(&a.handler) && (place == 0 || !a.distinct);
                for armed in armed.iter().filter(takes) {
                    if let Some(group) = self.group(process, local, armed.handler, message)? {
                        let sender = self.model().sender(message);
                        candidates.push((armed.handler, Candidate { message, sender, group, copies, place }));
                    }
                }
            }
            if messages.iter().any(|message| message.place > 0) {
                drop_unreachable(&mut candidates);
            }
            self.keep_first(&mut candidates);
            return Ok(candidates);
        }
        for &Deliverable { message, copies, place } in messages {
            let handlers = self.handlers(process, message)?;
            let takes = |a: &&Armed| a.least > 0 && handlers.contains(&a.handler) && (place == 0 || !a.distinct);
            for armed in armed.iter().filter(takes) {
                let handler = armed.handler;
                let group = known.get(&(process, local, handler, message));
                if group.is_none() {
                    questions.push((handler, message));
                    places.push(candidates.len());
                }
                if group != Some(None) {
                    let sender = self.model().sender(message);
                    let group = group.flatten().unwrap_or_default();
                    candidates.push((handler, Candidate { message, sender, group, copies, place }));
                }
            }
        }
        if !questions.is_empty() {
            let groups = self.model().guards(process as usize, local, &questions, &mut 0)?;
            for ((&(handler, message), &place), &group) in questions.iter().zip(&places).zip(&groups).rev() {
                match known.insert((process, local, handler, message), group) {
                    Some(group) => candidates[place].1.group = group,
                    None => drop(candidates.remove(place)),
                }
            }
        }
        if messages.iter().any(|message| message.place > 0) {
            drop_unreachable(&mut candidates);
        }
        self.keep_first(&mut candidates);
        Ok(candidates)
    }

    /// Of a mailbox, keep the first message that a handler accepts. The candidates are in the order of the messages.
    fn keep_first(&self, candidates: &mut Vec<(u16, Candidate)>) {
        if self.model().shape().network == Network::Mailbox
            && let Some(first) = candidates.first().map(|(_, candidate)| candidate.message)
        {
            candidates.retain(|(_, candidate)| candidate.message == first);
        }
    }

    /// What the guard over the whole set says about these sets.
    pub fn accepts(&self, process: u16, local: LocalId, handler: u16, sets: &[Vec<MessageId>]) -> Result<Vec<Truth>> {
        let known = &self.tables.answers.accepted;
        if !self.cells.is_empty() {
            // One by one: each reads cells of its own.
            return sets.iter().map(|set| self.accept(process, local, handler, set)).collect();
        }
        let keys: Vec<StepKey> = sets.iter().map(|set| step_key(process, local, handler, set)).collect();
        let mut answers: Vec<Option<Truth>> = keys.iter().map(|key| known.get(&**key)).collect();
        let unknown: Vec<usize> = (0..sets.len()).filter(|&at| answers[at].is_none()).collect();
        if !unknown.is_empty() {
            let asked: Vec<Vec<MessageId>> = unknown.iter().map(|&at| sets[at].clone()).collect();
            let found = self.model().accepts(process as usize, local, handler, &asked, &mut 0)?;
            for (&at, &answer) in unknown.iter().zip(&found) {
                answers[at] = Some(known.insert(keys[at].clone(), answer));
            }
        }
        Ok(answers.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn accept(&self, process: u16, local: LocalId, handler: u16, set: &Vec<MessageId>) -> Result<Truth> {
        let known = &self.tables.answers.accepted;
        let one = std::slice::from_ref(set);
        self.answer(
            |local| Question::Accept(process, local, handler, set.clone()),
            local,
            |local| known.get(&*step_key(process, local, handler, set)),
            |local, read| Ok(self.model().accepts(process as usize, local, handler, one, read)?[0]),
            |local, accepted| known.insert(step_key(process, local, handler, set), accepted),
        )
    }

    pub fn handlers(&self, process: u16, message: MessageId) -> Result<Arc<[u16]>> {
        let known = &self.tables.answers.handlers;
        if let Some(found) = known.get(&(process, message)) {
            return Ok(found);
        }
        Ok(known.insert((process, message), self.model().handlers(process as usize, message)?.into()))
    }

    /// Whether a guard allows a message that the handler is for.
    pub fn guard(&self, process: u16, local: LocalId, handler: u16, message: MessageId) -> Result<Truth> {
        let group = self.group(process, local, handler, message)?;
        Ok((group != Some(RAISED)).then_some(group.is_some()))
    }

    /// The group of a message that a guard allows.
    pub fn group(&self, process: u16, local: LocalId, handler: u16, message: MessageId) -> Result<Option<u32>> {
        let known = &self.tables.answers.guards;
        self.answer(
            |local| Question::Guard(process, local, handler, message),
            local,
            |local| known.get(&(process, local, handler, message)),
            |local, read| Ok(self.model().guards(process as usize, local, &[(handler, message)], read)?[0]),
            |local, group| known.insert((process, local, handler, message), group),
        )
    }

    pub fn crash(&self, process: u16, local: LocalId, recovers: bool) -> Result<LocalId> {
        let (known, key) = (&self.tables.answers.crashes, (process, local, recovers));
        if let Some(found) = known.get(&key) {
            return Ok(found);
        }
        Ok(known.insert(key, self.model().crash(process as usize, local, recovers)?))
    }

    pub fn recover(&self, process: u16, local: LocalId) -> Result<OutcomesId> {
        let known = &self.tables.answers.recoveries;
        self.answer(
            |local| Question::Recover(process, local),
            local,
            |local| known.get(&(process, local)),
            |local, read| Ok(self.tables.push_outcomes(self.model().recover(process as usize, local, read)?)),
            |local, outcomes| known.insert((process, local), outcomes),
        )
    }

    pub fn step(&self, process: u16, local: LocalId, handler: u16, consumed: &[MessageId]) -> Result<OutcomesId> {
        let known = &self.tables.answers.steps;
        let key = |local: LocalId| step_key(process, local, handler, consumed);
        let ask = |local: LocalId, read: &mut CellSet| {
            let outcomes = self.model().step(process as usize, local, handler, consumed, read)?;
            Ok(self.tables.push_outcomes(outcomes))
        };
        self.answer(
            |local| Question::Step(process, local, handler, consumed.to_vec()),
            local,
            |local| known.get(&*key(local)),
            ask,
            |local, outcomes| known.insert(key(local), outcomes),
        )
    }
}

fn step_key(process: u16, local: LocalId, handler: u16, consumed: &[MessageId]) -> StepKey {
    let mut key: StepKey = smallvec![u32::from(process) << 16 | u32::from(handler), local];
    key.extend_from_slice(consumed);
    key
}

/// Drop the messages that wait in a queue behind one that their handler cannot take. They come in the order of the queues.
fn drop_unreachable(candidates: &mut Vec<(u16, Candidate)>) {
    let mut next: FxHashMap<(u16, u16), u16> = FxHashMap::default();
    candidates.retain(|(handler, candidate)| {
        let next = next.entry((*handler, candidate.sender)).or_default();
        let reached = candidate.place == *next;
        if reached {
            *next = if candidate.group == RAISED { u16::MAX } else { *next + 1 };
        }
        reached
    });
}

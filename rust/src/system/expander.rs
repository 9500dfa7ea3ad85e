//! The transitions of a node, computed once: with all sets of messages that its handlers may consume, and with faults.

use crate::system::model::{
    Armed, CrashFault, LocalId, MessageId, Model, Network, Outcome, RAISED, Result, Status, Truth,
};
use crate::system::quorum::Candidate;
use crate::system::tables::{Bundle, Details, Expansion, Inner, Kind, NO_BUDGET, Node, NodeId, Transition};
use crate::system::{hash, inbox, quorum};
use parking_lot::MutexGuard;
use std::sync::Arc;

/// Computes the transitions of one node.
pub(crate) struct Expander<'a, 'b> {
    pub model: &'a dyn Model,
    pub inner: &'a mut MutexGuard<'b, Inner>,
    pub node: NodeId,
}

impl Expander<'_, '_> {
    /// Ask the model, with the tables open to others meanwhile.
    fn ask<T>(&mut self, question: impl FnOnce(&dyn Model) -> T) -> T {
        let model = self.model;
        MutexGuard::unlocked(self.inner, || question(model))
    }

    pub(super) fn expand(mut self) -> Result<Expansion> {
        let node = self.inner.nodes[self.node as usize];
        let pending = self.inner.inboxes[node.inbox as usize].clone();
        let mut expansion = Expansion::default();
        match node.status {
            Status::Up => {
                self.steps(node, &pending, &mut expansion)?;
                self.crashes(node, &pending, &mut expansion)?;
            }
            Status::Down => {
                let outcomes = self.recover(node.process, node.local)?;
                self.outcomes(Kind::Recover, 0, &[], &pending, &outcomes, &mut expansion);
            }
            Status::Crashed | Status::Unborn => {}
        }
        self.network(node, &pending, &mut expansion);
        Ok(expansion)
    }

    fn steps(&mut self, node: Node, pending: &[MessageId], expansion: &mut Expansion) -> Result<()> {
        let process = node.process;
        let deliverable = self.deliverable(pending);
        let armed = self.armed(process, node.local)?;
        self.ask_guards(process, node.local, &armed, &deliverable)?;
        for &armed in armed.iter() {
            for consumed in self.consumable(process, node.local, armed, &deliverable) {
                let outcomes = self.step(process, node.local, armed.handler, &consumed)?;
                let rest = inbox::remove(self.model, pending, &consumed);
                self.outcomes(Kind::Step, armed.handler, &consumed, &rest, &outcomes, expansion);
            }
        }
        Ok(())
    }

    /// The messages that may be consumed now. By content, not by id: the order of transitions must not depend on the order of
    /// discovery.
    pub fn deliverable(&self, pending: &[MessageId]) -> Vec<MessageId> {
        let mut deliverable = inbox::deliverable(self.model, pending);
        deliverable.sort_by_cached_key(|&m| (self.model.sender(m), self.model.message_hash(m)));
        deliverable
    }

    /// The sets of messages that a handler may consume, once its guards are known (`ask_guards`). A message on which the guard
    /// raised an exception is a set of its own.
    pub fn consumable(
        &self,
        process: u16,
        local: LocalId,
        armed: Armed,
        deliverable: &[MessageId],
    ) -> Vec<Vec<MessageId>> {
        if armed.count == 0 {
            return vec![Vec::new()];
        }
        let candidate = |&message: &MessageId| {
            let group = (*self.inner.guards.get(&(process, local, armed.handler, message))?)?;
            Some(Candidate { message, sender: self.model.sender(message), group })
        };
        let (raised, candidates): (Vec<Candidate>, Vec<Candidate>) =
            deliverable.iter().filter_map(candidate).partition(|candidate| candidate.group == RAISED);
        let mut sets = quorum::sets(&candidates, armed.count as usize);
        sets.extend(raised.into_iter().map(|candidate| vec![candidate.message]));
        sets
    }

    /// One transition per outcome of a handler that left `rest` in the inbox.
    fn outcomes(
        &mut self,
        kind: Kind,
        handler: u16,
        consumed: &[MessageId],
        rest: &[MessageId],
        outcomes: &Arc<[Outcome]>,
        expansion: &mut Expansion,
    ) {
        let process = self.inner.nodes[self.node as usize].process;
        for (choice, outcome) in outcomes.iter().enumerate() {
            let mut others: Vec<(u16, Bundle)> = Vec::new();
            for &(slot, local) in &outcome.spawns {
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
            let rest = inbox::insert(self.model, rest, &own);
            let last = self.inner.last(self.model, consumed);
            let target = self.inner.node(self.model, process as usize, outcome.local, rest, last);
            let outcome = Some((outcomes.clone(), choice));
            let details = Details { kind, handler, consumed: consumed.to_vec(), outcome };
            self.push(expansion, target, NO_BUDGET, others, details);
        }
    }

    fn crashes(&mut self, node: Node, pending: &[MessageId], expansion: &mut Expansion) -> Result<()> {
        for (index, fault) in self.model.shape().faults.iter().enumerate() {
            if fault.may_crash[node.process as usize] {
                let local = self.crash(node.process, node.local, fault.recovers)?;
                let last = self.inner.last(self.model, &[]);
                let target = self.inner.node(self.model, node.process as usize, local, pending.to_vec(), last);
                let budget = self.model.shape().crash_budget(index) as u8;
                let details = Details { kind: Kind::Crash, handler: index as u16, consumed: vec![], outcome: None };
                self.push(expansion, target, budget, Vec::new(), details);
            }
        }
        Ok(())
    }

    /// Losses and copies of pending messages.
    fn network(&mut self, node: Node, pending: &[MessageId], expansion: &mut Expansion) {
        let shape = self.model.shape();
        let mut changes: Vec<(Kind, u8, MessageId, Vec<MessageId>)> = Vec::new();
        if shape.lossy {
            let budget = shape.loss_budget().map_or(NO_BUDGET, |b| b as u8);
            changes.extend(inbox::losses(pending).into_iter().map(|(lost, rest)| (Kind::Lose, budget, lost, rest)));
        }
        if let Some(budget) = shape.duplication_budget() {
            changes.extend(inbox::distinct(pending).into_iter().map(|message| {
                (Kind::Duplicate, budget as u8, message, inbox::insert(self.model, pending, &[message]))
            }));
        }
        changes.sort_by_key(|(kind, _, message, _)| (*kind as u8, self.model.message_hash(*message)));
        for (kind, budget, message, after) in changes {
            let target = self.inner.node(self.model, node.process as usize, node.local, after, node.last);
            let details = Details { kind, handler: 0, consumed: vec![message], outcome: None };
            self.push(expansion, target, budget, Vec::new(), details);
        }
    }

    fn push(
        &mut self,
        expansion: &mut Expansion,
        target: NodeId,
        budget: u8,
        others: Vec<(u16, Bundle)>,
        details: Details,
    ) {
        let start = expansion.deliveries.len() as u32;
        let shape = self.model.shape();
        let additive = shape.network == Network::Bag
            && others.iter().all(|(to, bundle)| {
                let stops = |f: &CrashFault| !f.recovers && f.may_crash[*to as usize];
                bundle.birth.is_none() && !shape.faults.iter().any(stops)
            });
        let mut sent = 0u64;
        for (to, bundle) in others {
            for &message in bundle.messages.iter().filter(|_| additive) {
                sent = sent.wrapping_add(hash::pending(to as usize, self.model.message_hash(message)));
            }
            let bundle = self.inner.bundle(bundle);
            expansion.deliveries.push((to, bundle));
        }
        let altered = self.altered(target);
        let node = |id: NodeId| self.inner.nodes[id as usize];
        expansion.transitions.push(Transition {
            target,
            deliveries: (start, expansion.deliveries.len() as u32),
            budget,
            moves: details.kind == Kind::Step,
            altered,
            special: !details.events().is_empty() || !details.expected().is_empty() || details.failure().is_some(),
            additive,
            delta: node(target).hash.wrapping_sub(node(self.node).hash).wrapping_add(sent),
            history: node(target).last_hash.wrapping_sub(node(self.node).last_hash),
        });
        expansion.details.push(details);
    }

    fn altered(&mut self, target: NodeId) -> u64 {
        let (before, after) = (self.inner.nodes[self.node as usize], self.inner.nodes[target as usize]);
        let model = self.model;
        let bits = || model.altered(before.process as usize, before.local, after.local);
        *self.inner.altered.entry((before.process, before.local, after.local)).or_insert_with(bits)
    }

    pub fn armed(&mut self, process: u16, local: LocalId) -> Result<Arc<[Armed]>> {
        if let Some(found) = self.inner.armed.get(&(process, local)) {
            return Ok(found.clone());
        }
        let armed: Arc<[Armed]> = self.ask(|m| m.armed(process as usize, local))?.into();
        self.inner.armed.insert((process, local), armed.clone());
        Ok(armed)
    }

    /// Make sure that the guards of all armed handlers are known for all messages that they are for.
    pub fn ask_guards(&mut self, process: u16, local: LocalId, armed: &[Armed], messages: &[MessageId]) -> Result<()> {
        let mut questions = Vec::new();
        for &message in messages {
            let handlers = self.handlers(process, message)?;
            for armed in armed.iter().filter(|a| a.count > 0 && handlers.contains(&a.handler)) {
                if !self.inner.guards.contains_key(&(process, local, armed.handler, message)) {
                    questions.push((armed.handler, message));
                }
            }
        }
        if !questions.is_empty() {
            let groups = self.ask(|m| m.guards(process as usize, local, &questions))?;
            for ((handler, message), group) in questions.into_iter().zip(groups) {
                self.inner.guards.insert((process, local, handler, message), group);
            }
        }
        Ok(())
    }

    pub fn handlers(&mut self, process: u16, message: MessageId) -> Result<Arc<[u16]>> {
        if let Some(found) = self.inner.handlers.get(&(process, message)) {
            return Ok(found.clone());
        }
        let handlers: Arc<[u16]> = self.ask(|m| m.handlers(process as usize, message))?.into();
        self.inner.handlers.insert((process, message), handlers.clone());
        Ok(handlers)
    }

    /// Whether a guard allows a message that the handler is for.
    pub fn guard(&mut self, process: u16, local: LocalId, handler: u16, message: MessageId) -> Result<Truth> {
        let key = (process, local, handler, message);
        if !self.inner.guards.contains_key(&key) {
            let groups = self.ask(|m| m.guards(process as usize, local, &[(handler, message)]))?;
            self.inner.guards.insert(key, groups[0]);
        }
        let group = self.inner.guards[&key];
        Ok((group != Some(RAISED)).then_some(group.is_some()))
    }

    pub fn crash(&mut self, process: u16, local: LocalId, recovers: bool) -> Result<LocalId> {
        if let Some(&found) = self.inner.crashes.get(&(process, local, recovers)) {
            return Ok(found);
        }
        let after = self.ask(|m| m.crash(process as usize, local, recovers))?;
        self.inner.crashes.insert((process, local, recovers), after);
        Ok(after)
    }

    pub fn recover(&mut self, process: u16, local: LocalId) -> Result<Arc<[Outcome]>> {
        if let Some(found) = self.inner.recoveries.get(&(process, local)) {
            return Ok(found.clone());
        }
        let outcomes: Arc<[Outcome]> = self.ask(|m| m.recover(process as usize, local))?.into();
        self.inner.recoveries.insert((process, local), outcomes.clone());
        Ok(outcomes)
    }

    pub fn step(
        &mut self,
        process: u16,
        local: LocalId,
        handler: u16,
        consumed: &[MessageId],
    ) -> Result<Arc<[Outcome]>> {
        let key = (process, local, handler, consumed.to_vec());
        if let Some(found) = self.inner.steps.get(&key) {
            return Ok(found.clone());
        }
        let outcomes: Arc<[Outcome]> = self.ask(|m| m.step(process as usize, local, handler, consumed))?.into();
        self.inner.steps.insert(key, outcomes.clone());
        Ok(outcomes)
    }
}

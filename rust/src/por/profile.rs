//! The profile of a node and the effects of its transitions (`effects`), for static partial-order reduction.

use crate::por::effects::{Effects, KnownEffects, Label, Mail, Profile, Tag};
use crate::system::expander::Expander;
use crate::system::inbox;
use crate::system::model::{Armed, LocalId, MessageId, Network, Result, Status};
use crate::system::tables::{Details, Kind, NO_BUDGET, Node, NodeId, ReductionTables, Tables, Transition};
use std::sync::Arc;

impl Tables {
    /// What partial-order reduction needs to know of a node. The effects of its transitions become known; with symmetry also
    /// those of its images, which are in no state that the search visits.
    pub fn profile(&self, node: NodeId) -> Result<Arc<Profile>> {
        if let Some(found) = self.reductions.lock().profiles.get(&node) {
            return Ok(found.clone());
        }
        let mut waiting = vec![node];
        while let Some(next) = waiting.pop() {
            self.profile_one(next)?;
            let images = self.model.shape().group.generators.iter().map(|&element| self.image(next, element));
            waiting.extend(images.filter(|image| !self.reductions.lock().profiles.contains_key(image)));
        }
        self.profile_one(node)
    }

    fn profile_one(&self, node: NodeId) -> Result<Arc<Profile>> {
        let known = |tables: &ReductionTables| tables.profiles.get(&node).cloned();
        if let Some(found) = known(&self.reductions.lock()) {
            return Ok(found);
        }
        let transitions = self.transitions(node)?;
        let _filling = self.fill();
        let (base, cells) = self.without_cells(node);
        let profile = Expander::new(self, base, &cells).profile(transitions)?;
        let mut tables = self.reductions.lock();
        if let Some(found) = known(&tables) {
            return Ok(found);
        }
        let shared = tables.shared_profiles.get(&profile).cloned().unwrap_or_else(|| Arc::new(profile));
        tables.shared_profiles.insert(shared.clone());
        tables.profiles.insert(node, shared.clone());
        Ok(shared)
    }

    /// The effects of the transitions that were profiled so far.
    pub fn known_effects<T>(&self, look: impl FnOnce(&KnownEffects) -> T) -> T {
        look(&self.known_effects.lock())
    }
}

impl Expander<'_> {
    /// The profile of the node. Notes the effects of its transitions.
    fn profile(self, transitions: &[Transition]) -> Result<Profile> {
        let (tables, model) = (self.tables, &*self.tables.model);
        let node = *tables.node(self.node);
        let pending = tables.inbox(node.inbox);
        let armed = self.armed_in(node.process, node.local)?;
        let mut profile = Profile { process: node.process, armed: armed.to_vec(), ..Profile::default() };
        // A tick is no transition of a class: it is only possible where all transitions are taken.
        let transitions = || transitions.iter().filter(|&transition| tables.details(transition).kind != Kind::Tick);
        profile.transitions = transitions().count() as u32;
        for &armed in armed.iter() {
            tables.known_effects.lock().note_armed(node.process, armed);
        }
        let deliverable = inbox::deliverable(model, pending);
        for &message in pending.iter() {
            let sender = model.sender(message);
            for &handler in self.handlers(node.process, message)?.iter() {
                tables.known_effects.lock().note_sender((node.process, handler), sender);
                let asked = armed.iter().any(|a| a.handler == handler && a.least > 0) && deliverable.contains(&message);
                let accepted = asked && self.guard(node.process, node.local, handler, message)? == Some(true);
                profile.mail.push(Mail { handler, sender, accepted });
            }
        }
        profile.mail.sort_unstable();
        profile.mail.dedup();
        for transition in transitions() {
            let details = tables.details(transition);
            let label = self.label(node.process, &details);
            profile.steps += u32::from(details.kind == Kind::Step && details.failure().is_none());
            let effects = self.effects(node, &armed, transition, &details)?;
            tables.known_effects.lock().note(&label, effects);
            profile.enabled.push(label);
        }
        if !self.cells.is_empty() {
            self.read_again(node, &armed, pending)?;
            profile.reads = self.read_by_handler();
            for &(handler, cells) in &profile.reads {
                let positions = model.shape().positions(cells);
                tables.known_effects.lock().note_reads((node.process, handler), positions);
            }
        }
        profile.enabled.sort_unstable();
        profile.enabled.dedup();
        Ok(profile)
    }

    /// Ask everything again that decides which transitions the node has: to learn which cells that reads.
    fn read_again(&self, node: Node, armed: &[Armed], pending: &[MessageId]) -> Result<()> {
        let candidates = self.candidates(node.process, node.local, armed, &self.deliverable(pending, armed))?;
        for &armed in armed {
            self.consumable(node.process, node.local, armed, &candidates, |consumed| {
                self.step(node.process, node.local, armed.handler, consumed).map(|_| ())
            })?;
        }
        if node.status == Status::Down {
            self.recover(node.process, node.local)?;
        }
        Ok(())
    }

    fn label(&self, process: u16, details: &Details) -> Label {
        let mut senders: Vec<u16> = details.consumed.iter().map(|&m| self.tables.model.sender(m)).collect();
        senders.sort_unstable();
        senders.dedup();
        let (tag, senders) = match details.kind {
            Kind::Step => (Tag::Step(details.handler), senders),
            Kind::Crash => (Tag::Crash(details.handler), Vec::new()),
            Kind::Recover => (Tag::Recover, Vec::new()),
            Kind::Lose => (Tag::Lose, Vec::new()),
            Kind::Duplicate => (Tag::Duplicate, Vec::new()),
            Kind::Tick => unreachable!("a tick has no class"),
        };
        Label { process, tag, senders }
    }

    fn effects(&self, node: Node, armed: &[Armed], transition: &Transition, details: &Details) -> Result<Effects> {
        let (tables, model) = (self.tables, &*self.tables.model);
        let shape = model.shape();
        let after = tables.node(transition.target);
        let births = || details.spawns().iter().filter(|&&(slot, _)| (slot as usize) < shape.movers());
        let mut effects = Effects {
            altered: if births().next().is_none() { transition.altered } else { u64::MAX },
            announces: shape.monitors > 0 && !details.events().is_empty(),
            ..Effects::default()
        };
        for &(to, message) in details.sends() {
            effects.reaches.insert(to);
            effects.initiates |= !details.consumed.iter().any(|&m| model.sender(m) == to);
            effects.feeds.extend(self.handlers(to, message)?.iter().map(|&handler| (to, handler)));
        }
        let mut arms = |process: u16, now: &[Armed], before: &[Armed]| {
            let fresh = now.iter().filter(|a| before.iter().all(|b| b.handler != a.handler));
            effects.arms.extend(fresh.map(|a| (process, a.handler)));
        };
        // What is armed after a step may depend on cells: then there is a rule of its own (`Relations::freeing`).
        if details.failure().is_none() && shape.cells == 0 {
            arms(node.process, &self.armed_in(node.process, after.local)?, armed);
        }
        for &(slot, local) in births().filter(|_| shape.cells == 0) {
            arms(slot, &self.armed_in(slot, local)?, &[]);
        }
        effects.spawns.extend(details.spawns().iter().map(|&(slot, _)| slot));
        effects.expects.extend(details.expected().iter().map(|&(slot, _)| slot));
        let mut known_effects = tables.known_effects.lock();
        if transition.budget == NO_BUDGET && details.failure().is_none() {
            if node.local != after.local {
                known_effects.note_move(node.process, node.local, after.local);
            } else if shape.network == Network::Set && details.kind == Kind::Step {
                known_effects.note_turn(&[], std::iter::empty()); // It consumes nothing.
            } else {
                known_effects.note_turn(details.consumed, details.sends().iter().map(|&(_, message)| message));
            }
        }
        Ok(effects)
    }

    /// The handlers that may run in a local state; none where the process does not run.
    fn armed_in(&self, process: u16, local: LocalId) -> Result<Arc<[Armed]>> {
        if self.tables.model.status(local) == Status::Up { self.armed(process, local) } else { Ok(Arc::new([])) }
    }
}

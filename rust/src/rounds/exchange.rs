//! Whether the numbers of created processes matter. The search gives them in the order of rounds; a run of the protocol may
//! create them in another order. That makes no difference if each step and each property is the same up to names: so all that
//! was asked is asked again with names exchanged (`src/plait/rounds/program/creation_order.py` has the argument).

use crate::rounds::search::Search;
use crate::system::inbox;
use crate::system::model::{LocalId, MessageId, Result, Status};
use crate::system::tables::{NodeId, Tables};
use rustc_hash::FxHashMap;

/// A way to exchange the names of created processes.
pub struct Exchange {
    /// By process, its new place.
    pub places: Vec<u16>,
    /// By role, the new index of each index.
    pub roles: Vec<(Vec<u8>, Vec<usize>)>,
    images: FxHashMap<NodeId, NodeId>,
}

/// What a step does, apart from the slots that it expects.
type Compared = (u16, Vec<MessageId>, LocalId, Vec<(u16, MessageId)>, Vec<(u16, LocalId)>, bool);

impl Exchange {
    pub fn new(places: Vec<u16>, roles: Vec<(Vec<u8>, Vec<usize>)>) -> Exchange {
        Exchange { places, roles, images: FxHashMap::default() }
    }

    fn index(&self, role: &[u8], index: usize) -> usize {
        let renamed = self.roles.iter().find(|(name, _)| name == role).and_then(|(_, indices)| indices.get(index));
        renamed.copied().unwrap_or(index)
    }

    fn local(&self, tables: &Tables, local: LocalId) -> LocalId {
        tables.model.values().local_image(local, &|role, index| self.index(role, index))
    }

    fn message(&self, tables: &Tables, message: MessageId) -> MessageId {
        tables.model.values().message_image(message, &self.places, &|role, index| self.index(role, index))
    }

    /// The process with its messages under its new name.
    pub fn node(&mut self, tables: &Tables, node: NodeId) -> NodeId {
        if let Some(&known) = self.images.get(&node) {
            return known;
        }
        let before = *tables.node(node);
        let moved: Vec<MessageId> = tables.inbox(before.inbox).iter().map(|&m| self.message(tables, m)).collect();
        let moved = inbox::insert(&*tables.model, &[], &moved);
        let local = self.local(tables, before.local);
        let image = tables.node_of(self.places[before.process as usize] as usize, local, &moved, before.last, 0);
        self.images.insert(node, image);
        image
    }

    /// The processes of a state under their new names.
    fn state(&mut self, tables: &Tables, state: &[NodeId]) -> Vec<NodeId> {
        let mut image = state.to_vec();
        for (process, &node) in state.iter().enumerate() {
            image[self.places[process] as usize] = self.node(tables, node);
        }
        image
    }

    /// Whether a process does the same under its new name. Also if its image is the process itself: what it does may depend on
    /// the number that its child gets, or name a created process that it was never told of.
    pub fn agrees(&mut self, tables: &Tables, node: NodeId) -> Result<bool> {
        if tables.node(node).status != Status::Up {
            return Ok(true);
        }
        let image = self.node(tables, node);
        Ok(self.steps(tables, node, true)? == self.steps(tables, image, false)?)
    }

    /// The steps of a process with its messages, under new names if they are `renamed`.
    fn steps(&self, tables: &Tables, node: NodeId, renamed: bool) -> Result<Vec<Compared>> {
        let local = |id| if renamed { self.local(tables, id) } else { id };
        let message = |id| if renamed { self.message(tables, id) } else { id };
        let place = |process: u16| if renamed { self.places[process as usize] } else { process };
        let mut steps = Vec::new();
        for transition in tables.transitions(node)? {
            let details = tables.details(transition);
            let fails = details.failure().is_some();
            let mut consumed: Vec<MessageId> = details.consumed.iter().map(|&id| message(id)).collect();
            let mut sends: Vec<_> = details.sends().iter().map(|&(to, id)| (place(to), message(id))).collect();
            let mut spawns: Vec<_> = details.spawns().iter().map(|&(slot, id)| (place(slot), local(id))).collect();
            consumed.sort_unstable();
            sends.sort_unstable();
            spawns.sort_unstable();
            let after = if fails { 0 } else { local(tables.node(transition.target).local) };
            steps.push((details.handler, consumed, after, sends, spawns, fails));
        }
        steps.sort_unstable();
        steps.dedup();
        Ok(steps)
    }
}

impl Search<'_, '_> {
    /// Compare what the properties say of a state and of the state with names exchanged.
    pub(crate) fn compare_exchanged(&mut self, state: &[NodeId]) -> Result<()> {
        let (tables, control) = (self.protocol.tables, self.control);
        let unborn = |node: NodeId| tables.node(node).status == Status::Unborn;
        for exchange in &mut self.exchanges {
            let image = exchange.state(tables, state);
            // Created processes have the first numbers.
            if image == state || image.iter().zip(state).any(|(&one, &other)| unborn(one) != unborn(other)) {
                continue;
            }
            for property in 0..control.kinds.len() {
                let there = self.view.evaluate(property, &image, &control.reads)?;
                self.differs |= there != self.view.evaluate(property, state, &control.reads)?;
            }
        }
        Ok(())
    }

    /// Whether the numbers of created processes may matter.
    pub fn numbers_matter(&mut self) -> Result<bool> {
        let tables = self.protocol.tables;
        let initial = tables.initial()?;
        let initial = &initial[0].state[..self.protocol.processes()];
        for exchange in &mut self.exchanges {
            self.differs = self.differs || exchange.state(tables, initial) != initial;
            for &node in &self.protocol.asked {
                self.differs = self.differs || !exchange.agrees(tables, node)?;
            }
        }
        Ok(self.differs)
    }
}

//! The processes between two rounds: local states with what the program knows besides.

use crate::rounds::unsupported;
use crate::system::model::{LocalId, MessageId, Result, Status};
use crate::system::tables::{NodeId, Tables, Transition};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A round, counted through all phases from 1.
pub type Place = u32;
pub type RoundNodeId = u32;
/// In place of a message of a round after the last phase: nobody receives it.
pub const BEYOND: MessageId = MessageId::MAX;

/// A message that was created and waits for its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Letter {
    pub place: Place,
    pub to: u16,
    pub message: MessageId,
}

/// A process between two rounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoundNode {
    pub process: u16,
    pub local: LocalId,
    /// Its clock if this is later than the round: 2 u after a send in u, 2 t + 1 after a receipt in t. Else 0.
    pub clock: u32,
    /// The round in which it was created takes its first turn; 0 after this turn.
    pub born: Place,
    /// Its messages of this round and of later ones, sorted.
    pub letters: Box<[Letter]>,
}

/// Where the actions of a local state send.
#[derive(Clone, Debug, Default)]
pub struct Prospects {
    /// The rounds of the earliest messages of its actions.
    pub firsts: Vec<Place>,
    /// Whether some action sends nothing.
    pub silent: bool,
}

/// What a search between rounds needs to know of the protocol.
pub struct Protocol<'t> {
    pub tables: &'t Tables,
    /// The place of a message by its id, from Python.
    pub place_of: &'t (dyn Fn(MessageId) -> Result<Place> + Sync),
    /// The last round.
    pub end: Place,
    /// By message; 0: not asked yet.
    places: Vec<Place>,
    prospects: FxHashMap<(u16, LocalId), Arc<Prospects>>,
    /// The processes, with the messages that they hear, whose steps were asked for.
    pub asked: FxHashSet<NodeId>,
}

impl<'t> Protocol<'t> {
    pub fn new(
        tables: &'t Tables,
        place_of: &'t (dyn Fn(MessageId) -> Result<Place> + Sync),
        end: Place,
    ) -> Protocol<'t> {
        Protocol {
            tables,
            place_of,
            end,
            places: Vec::new(),
            prospects: FxHashMap::default(),
            asked: FxHashSet::default(),
        }
    }

    pub fn processes(&self) -> usize {
        self.tables.model.shape().movers()
    }

    /// The place of a message.
    pub fn place(&mut self, message: MessageId) -> Result<Place> {
        let index = message as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, 0);
        }
        if self.places[index] == 0 {
            self.places[index] = (self.place_of)(message)?;
        }
        Ok(self.places[index])
    }

    /// The earliest place of the messages of a step; none if it sends nothing.
    pub fn first(&mut self, sends: &[(u16, MessageId)]) -> Result<Option<Place>> {
        let mut first = None;
        for &(_, message) in sends {
            let place = self.place(message)?;
            first = Some(first.map_or(place, |first: Place| first.min(place)));
        }
        Ok(first)
    }

    /// The steps of a process that hears these messages.
    pub fn transitions(&mut self, process: u16, local: LocalId, heard: &[MessageId]) -> Result<&'t [Transition]> {
        let tables = self.tables;
        let node = tables.node_of(process as usize, local, heard, tables.last(&[]), 0);
        self.asked.insert(node);
        tables.transitions(node)
    }

    pub fn prospects(&mut self, process: u16, local: LocalId) -> Result<Arc<Prospects>> {
        if let Some(found) = self.prospects.get(&(process, local)) {
            return Ok(found.clone());
        }
        let mut found = Prospects::default();
        if self.tables.model.status(local) == Status::Up {
            let tables = self.tables;
            for transition in self.transitions(process, local, &[])? {
                let details = tables.details(transition);
                if details.failure().is_some() {
                    if details.expected().is_empty() {
                        return unsupported("a step of the protocol fails");
                    }
                    continue;
                }
                let after = tables.node(transition.target).local;
                match self.first(details.sends())? {
                    Some(place) => found.firsts.push(place),
                    None if after != local || !details.spawns().is_empty() => found.silent = true,
                    None => {}
                }
            }
        }
        found.firsts.sort_unstable();
        found.firsts.dedup();
        Ok(self.prospects.entry((process, local)).or_insert(Arc::new(found)).clone())
    }
}

/// The processes between rounds by number.
#[derive(Default)]
pub struct RoundNodes {
    ids: FxHashMap<Arc<RoundNode>, RoundNodeId>,
    nodes: Vec<Arc<RoundNode>>,
}

impl RoundNodes {
    pub fn get(&self, id: RoundNodeId) -> &Arc<RoundNode> {
        &self.nodes[id as usize]
    }

    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The number of a process as it waits for a round: what no later step can tell apart is left out.
    pub fn id(&mut self, mut node: RoundNode, place: Place, end: Place) -> RoundNodeId {
        if node.clock <= 2 * place {
            node.clock = 0;
        }
        if place > end {
            // No step sends or consumes any more.
            node.letters = Box::default();
            node.clock = 0;
        }
        if let Some(&id) = self.ids.get(&node) {
            return id;
        }
        let (id, node) = (self.nodes.len() as RoundNodeId, Arc::new(node));
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        id
    }
}

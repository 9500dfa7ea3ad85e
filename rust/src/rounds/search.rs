//! The search for all states between rounds, in the order of rounds.
//!
//! A round leads only to later ones. So the states of a round are complete before the first of them is expanded, and two
//! states are compared only if they wait for the same round.

use crate::rounds::audit::Audit;
use crate::rounds::exchange::Exchange;
use crate::rounds::node::{BEYOND, Letter, Place, Prospects, Protocol, RoundNode, RoundNodeId, RoundNodes};
use crate::rounds::turn::{Birth, Turn, TurnOutcome, TurnStep};
use crate::rounds::unsupported;
use crate::search::control::{Control, Finding};
use crate::system::model::{LocalId, MessageId, Result, Status, field_bit};
use crate::system::reads::{Changes, evaluate_properties};
use crate::system::successors::View;
use crate::system::tables::{NodeId, Tables};
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// How many expanded states are between two looks at the limits.
const PULSE: usize = 256;

/// The states that wait for one round: for each its processes, then the round and the number of the state before it.
#[derive(Default)]
pub(crate) struct Layer {
    pub entries: Vec<u32>,
    numbers: HashTable<u32>,
}

/// What is looked up for each process of each state.
#[derive(Clone)]
struct Known {
    /// With an empty inbox, for properties.
    plain: NodeId,
    /// The round of its earliest message or of its first turn; 0 if it has none.
    waits: Place,
    unborn: bool,
    prospects: Option<Arc<Prospects>>,
    /// The round that it was last moved to, and its number there.
    moved: (Place, RoundNodeId),
}

/// What the processes of a state may do in a round.
pub(crate) type Turns = SmallVec<[u32; 8]>;

/// What the processes may do in one round.
#[derive(Default)]
pub(crate) struct RoundTurns {
    /// By what a process is and what it hears, the number of its turns.
    ids: FxHashMap<(RoundNodeId, SmallVec<[MessageId; 8]>), u32>,
    pub(crate) turns: Vec<Arc<[TurnOutcome]>>,
    /// Equal turns have one number.
    numbers: FxHashMap<Arc<[TurnOutcome]>, u32>,
    /// What the processes of the states of this round may do, of those that were expanded.
    expanded: FxHashSet<Turns>,
}

pub struct Search<'a, 't> {
    pub(crate) protocol: &'a mut Protocol<'t>,
    pub(crate) nodes: RoundNodes,
    pub audit: Audit,
    /// Whether the protocol goes beyond the last phase.
    pub beyond: bool,
    pub(crate) layers: BTreeMap<Place, Layer>,
    pub(crate) view: View<'t>,
    pub(crate) control: &'a Control,
    known: Vec<Known>,
    /// Of the round that is expanded.
    pub(crate) round: RoundTurns,
    /// By property, the steps of a run that decides it.
    pub runs: BTreeMap<usize, Vec<TurnStep>>,
    /// By process, all its fields as bits.
    fields: Vec<u64>,
    pub(crate) exchanges: Vec<Exchange>,
    /// Whether something depends on the numbers of created processes.
    pub differs: bool,
}

impl<'a, 't> Search<'a, 't> {
    pub fn new(protocol: &'a mut Protocol<'t>, control: &'a Control, exchanges: Vec<Exchange>) -> Search<'a, 't> {
        Search {
            view: View::new(protocol.tables),
            fields: vec![0; protocol.processes()],
            protocol,
            nodes: RoundNodes::default(),
            audit: Audit::default(),
            beyond: false,
            layers: BTreeMap::new(),
            control,
            known: Vec::new(),
            round: RoundTurns::default(),
            runs: BTreeMap::new(),
            exchanges,
            differs: false,
        }
    }

    fn processes(&self) -> usize {
        self.protocol.processes()
    }

    fn width(&self) -> usize {
        self.processes() + 2
    }

    /// Search all rounds. `Stopped` if a limit was reached meanwhile: `runs` has what was found before.
    pub fn run(&mut self) -> Result<()> {
        let result = self.search();
        // Between rounds, messages of other rounds may be pending in a run of the protocol, which are not kept here.
        if (0..self.control.kinds.len()).any(|property| self.control.reads.reads_inboxes(property)) {
            return unsupported("a property reads messages");
        }
        result
    }

    fn search(&mut self) -> Result<()> {
        self.begin()?;
        let mut next = self.layers.keys().next().copied();
        while let Some(at) = next {
            self.expand(at)?;
            if self.control.stopped() {
                return Ok(());
            }
            next = self.layers.range(at + 1..).next().map(|(&place, _)| place);
        }
        Ok(())
    }

    /// The state after the `@init` methods.
    fn begin(&mut self) -> Result<()> {
        let tables = self.protocol.tables;
        let initial = tables.initial()?;
        let state = &initial[0].state;
        let processes = self.processes();
        let mut letters = vec![Vec::new(); processes];
        for (to, &node) in state[..processes].iter().enumerate() {
            for &message in tables.inbox(tables.node(node).inbox) {
                let place = self.protocol.place(message)?;
                let late = place > self.protocol.end;
                self.beyond |= late;
                let letter = Letter { place, to: to as u16, message: if late { BEYOND } else { message } };
                letters[tables.model.sender(message) as usize].push(letter);
            }
        }
        let mut nodes = Vec::with_capacity(processes);
        for (process, mut letters) in letters.into_iter().enumerate() {
            letters.sort_unstable();
            if letters.windows(2).any(|pair| (pair[0].place, pair[0].to) == (pair[1].place, pair[1].to)) {
                return unsupported("a condition is broken");
            }
            let local = tables.node(state[process]).local;
            let clock = 2 * letters.iter().map(|letter| letter.place).max().unwrap_or(0);
            if tables.model.status(local) == Status::Up {
                self.audit.start(process as u16, local, clock);
            }
            let node = RoundNode { process: process as u16, local, clock, born: 0, letters: letters.into() };
            nodes.push(self.nodes.id(node, 0, self.protocol.end));
        }
        self.insert(0, &nodes, None)
    }

    /// What is looked up for a process.
    fn know(&mut self, id: RoundNodeId) -> &Known {
        while self.known.len() < self.nodes.count() {
            let node = self.nodes.get(self.known.len() as RoundNodeId);
            let tables = self.protocol.tables;
            let first = node.letters.first().map_or(0, |letter| letter.place);
            let waits = match (first, node.born) {
                (0, place) | (place, 0) => place,
                (one, other) => one.min(other),
            };
            let count = tables.model.values().parts(node.local).len();
            let bits = (0..count).fold(0, |bits, field| bits | field_bit(node.process as usize, field));
            self.fields[node.process as usize] |= bits;
            self.known.push(Known {
                plain: tables.node_of(node.process as usize, node.local, &[], tables.last(&[]), 0),
                waits,
                unborn: tables.model.status(node.local) == Status::Unborn,
                prospects: None,
                moved: (u32::MAX, 0),
            });
        }
        &self.known[id as usize]
    }

    /// Expand the states that wait for a round.
    fn expand(&mut self, at: Place) -> Result<()> {
        let (width, processes) = (self.width(), self.processes());
        let layer = self.layers.get_mut(&at).expect("the layer exists");
        layer.numbers = HashTable::new();
        // No state is added to it: each step leads to a later round.
        let count = layer.entries.len() / width;
        self.control.depth.store(at, Relaxed);
        self.round = RoundTurns::default();
        let (mut transitions, mut terminals) = (0u64, 0u64);
        let mut current: Vec<RoundNodeId> = vec![0; processes];
        for number in 0..count {
            if number.is_multiple_of(PULSE) {
                self.control.frontier.store(count - number, Relaxed);
                if self.control.stopped() {
                    break;
                }
            }
            let state: SmallVec<[RoundNodeId; 8]> =
                SmallVec::from_slice(&self.layers[&at].entries[number * width..][..processes]);
            if at > self.protocol.end && state.iter().all(|&node| self.nodes.get(node).born != at) {
                terminals += 1;
                continue;
            }
            let turns = self.turns_of(&state, at)?;
            if !self.round.expanded.insert(turns.clone()) {
                continue; // Another state leads to the same states.
            }
            let table = std::mem::take(&mut self.round.turns);
            let mut failed = Ok(());
            current.copy_from_slice(&state);
            let mut product = Product { search: self, turns: &turns, table: &table, at, state: &state };
            let ended = product.each(0, &mut current, 0, &mut SmallVec::new(), &mut |search, current, _| {
                transitions += 1;
                match search.arrive(at, current, &state, number as u32) {
                    Ok(()) => search.control.ended(),
                    Err(fault) => {
                        failed = Err(fault);
                        true
                    }
                }
            })?;
            self.round.turns = table;
            failed?;
            if ended {
                break;
            }
        }
        self.control.transitions.fetch_add(transitions, Relaxed);
        self.control.terminal.fetch_add(terminals, Relaxed);
        Ok(())
    }

    /// The memory that the states take.
    pub fn bytes(&self) -> usize {
        self.layers.values().map(|layer| layer.entries.capacity() * 4 + layer.numbers.capacity() * 5).sum()
    }

    /// Which messages of a round may reach each process.
    pub(crate) fn heard(&self, state: &[RoundNodeId], at: Place) -> Vec<SmallVec<[MessageId; 8]>> {
        let mut heard = vec![SmallVec::new(); state.len()];
        for &node in state {
            for letter in self.nodes.get(node).letters.iter().take_while(|letter| letter.place <= at) {
                heard[letter.to as usize].push(letter.message);
            }
        }
        heard
    }

    /// What each process of a state may do in a round.
    pub(crate) fn turns_of(&mut self, state: &[RoundNodeId], at: Place) -> Result<Turns> {
        let heard = self.heard(state, at);
        let mut turns = Turns::new();
        for (&node, heard) in state.iter().zip(heard) {
            let key = (node, heard);
            if let Some(&known) = self.round.ids.get(&key) {
                turns.push(known);
                continue;
            }
            let before = self.nodes.get(node).clone();
            if !key.1.is_empty() && self.know(node).unborn {
                return unsupported("a message is sent to a process before it is created");
            }
            let Search { protocol, nodes, audit, beyond, .. } = self;
            let outcomes = Turn { protocol, nodes, audit, at, beyond }.outcomes(&before, &key.1)?;
            let outcomes: Arc<[TurnOutcome]> = outcomes.into();
            let next = self.round.turns.len() as u32;
            let id = *self.round.numbers.entry(outcomes.clone()).or_insert(next);
            if id == next {
                self.round.turns.push(outcomes);
            }
            self.round.ids.insert(key, id);
            turns.push(id);
        }
        Ok(turns)
    }

    /// Whether some step could break one of the conditions 1, 2, 3 and 5.
    pub fn suspects(&mut self) -> Result<bool> {
        self.audit.suspects(self.protocol)
    }

    /// The round that processes wait for after a round: one in which a message is pending, or in which one may be sent next.
    fn next_place(&mut self, at: Place, nodes: &[RoundNodeId]) -> Result<Place> {
        let (goal, end) = (at + 1, self.protocol.end);
        if goal > end {
            return Ok(goal);
        }
        let mut next = end + 1;
        for &id in nodes {
            let waits = self.know(id).waits;
            if waits == goal {
                return Ok(goal);
            }
            if waits > goal {
                next = next.min(waits);
            }
        }
        for &id in nodes {
            let prospects = match self.know(id).prospects.clone() {
                Some(known) => known,
                None => {
                    let node = self.nodes.get(id);
                    let found = self.protocol.prospects(node.process, node.local)?;
                    self.known[id as usize].prospects = Some(found.clone());
                    found
                }
            };
            if prospects.silent {
                next = next.min(goal + 1);
            }
            if let Some(&first) = prospects.firsts.iter().find(|&&first| first > goal) {
                next = next.min(first);
            }
        }
        Ok(next - 1)
    }

    /// A process as it waits for a later round.
    pub(crate) fn moved_to(&mut self, id: RoundNodeId, place: Place) -> RoundNodeId {
        if self.know(id).moved.0 != place {
            let node = RoundNode::clone(self.nodes.get(id));
            self.known[id as usize].moved = (place, self.nodes.id(node, place, self.protocol.end));
        }
        self.known[id as usize].moved.1
    }

    /// The state that a round leads to, as it waits for its next round.
    pub(crate) fn settled(&mut self, at: Place, nodes: &[RoundNodeId]) -> Result<(Place, SmallVec<[RoundNodeId; 8]>)> {
        let place = self.next_place(at, nodes)?;
        let settled = if place == at + 1 {
            SmallVec::from_slice(nodes)
        } else {
            nodes.iter().map(|&node| self.moved_to(node, place)).collect()
        };
        Ok((place, settled))
    }

    /// Take note of a state that a round leads to.
    fn arrive(&mut self, at: Place, nodes: &[RoundNodeId], before: &[RoundNodeId], number: u32) -> Result<()> {
        let (place, settled) = self.settled(at, nodes)?;
        self.insert(place, &settled, Some((at, number, before)))
    }

    fn insert(
        &mut self,
        place: Place,
        nodes: &[RoundNodeId],
        parent: Option<(Place, u32, &[RoundNodeId])>,
    ) -> Result<()> {
        let (width, processes) = (self.width(), self.processes());
        let layer = self.layers.entry(place).or_default();
        let Layer { entries, numbers } = layer;
        let hash = hash_of(nodes);
        let same = |&number: &u32| &entries[number as usize * width..][..processes] == nodes;
        if numbers.find(hash, same).is_some() {
            return Ok(());
        }
        let number = (entries.len() / width) as u32;
        numbers.insert_unique(hash, number, |&number| hash_of(&entries[number as usize * width..][..processes]));
        entries.extend_from_slice(nodes);
        entries.extend(parent.map_or([u32::MAX; 2], |(at, number, _)| [at, number]));
        if !self.control.visit() {
            return Ok(());
        }
        let plain: SmallVec<[NodeId; 8]> = nodes.iter().map(|&node| self.know(node).plain).collect();
        let changes = match parent {
            None => Changes::EVERYWHERE,
            Some((_, _, before)) => {
                let (mut altered, mut changed, mut process, mut count) = (0, 0, u16::MAX, 0);
                for (index, (&node, &old)) in plain.iter().zip(before).enumerate() {
                    if self.known[old as usize].plain != node {
                        altered |= self.fields[index];
                        changed |= 1 << (index % 64);
                        count += 1;
                        process = index as u16;
                    }
                }
                if count == 0 {
                    return Ok(());
                }
                Changes { altered, changed, process: if count == 1 { process } else { u16::MAX } }
            }
        };
        let control = self.control;
        let mut found: SmallVec<[usize; 4]> = SmallVec::new();
        evaluate_properties(&mut self.view, control, &plain, changes, false, |property| found.push(property))?;
        self.conclude(place, number, &found)?;
        if control.ended() { Ok(()) } else { self.compare_exchanged(&plain) }
    }

    /// Take note of the properties that a state decides, and of a run to it. A violation may end the search, and then the
    /// model is no longer asked: so all properties are evaluated before, and the run is found before.
    fn conclude(&mut self, place: Place, number: u32, found: &[usize]) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        if found.iter().any(|&property| property >= self.control.kinds.len()) {
            return unsupported("a property raises an exception");
        }
        let steps = self.steps_to(place, number)?;
        for &property in found {
            self.runs.insert(property, steps.clone());
        }
        for &property in found {
            let fingerprint = u64::from(place) << 32 | u64::from(number);
            self.control.record(Finding { property, fingerprint, depth: place, run: None });
        }
        Ok(())
    }
}

fn hash_of(nodes: &[RoundNodeId]) -> u64 {
    let mut hasher = FxHasher::default();
    for &node in nodes {
        hasher.write_u32(node);
    }
    hasher.finish()
}

/// The combinations of what the processes do in a round.
pub(crate) struct Product<'p, 'a, 't> {
    pub search: &'p mut Search<'a, 't>,
    pub turns: &'p [u32],
    pub table: &'p [Arc<[TurnOutcome]>],
    pub at: Place,
    pub state: &'p [RoundNodeId],
}

type Leaf<'f, 'a, 't> = dyn FnMut(&mut Search<'a, 't>, &[RoundNodeId], &[u32]) -> bool + 'f;

impl<'a, 't> Product<'_, 'a, 't> {
    /// Hand each combination to `leaf`, with the numbers of the outcomes; true if it wants no more.
    pub fn each(
        &mut self,
        process: usize,
        current: &mut Vec<RoundNodeId>,
        born: u64,
        chosen: &mut SmallVec<[u32; 8]>,
        leaf: &mut Leaf<'_, 'a, 't>,
    ) -> Result<bool> {
        if process == current.len() {
            return Ok(leaf(self.search, current, chosen));
        }
        let table = self.table;
        if born >> process & 1 == 1 {
            chosen.push(u32::MAX);
            let done = self.each(process + 1, current, born, chosen, leaf);
            chosen.pop();
            return done;
        }
        for (number, outcome) in table[self.turns[process] as usize].iter().enumerate() {
            let simple = outcome.births.is_empty() && outcome.expected.is_empty();
            if !simple && !self.possible(outcome, born) {
                continue;
            }
            if outcome.fails {
                return unsupported("a step of the protocol fails");
            }
            let (mut born, mut before) = (born, SmallVec::<[(u16, RoundNodeId); 2]>::new());
            for &Birth { slot, local, clock } in &outcome.births {
                before.push((slot, current[slot as usize]));
                current[slot as usize] = self.child(slot, local, clock);
                born |= 1 << slot;
            }
            let own = std::mem::replace(&mut current[process], outcome.node);
            chosen.push(number as u32);
            let done = self.each(process + 1, current, born, chosen, leaf)?;
            chosen.pop();
            current[process] = own;
            for (slot, node) in before {
                current[slot as usize] = node;
            }
            if done {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the slots are as an outcome expects them.
    fn possible(&mut self, outcome: &TurnOutcome, born: u64) -> bool {
        outcome.expected.iter().all(|&(slot, unborn)| {
            let is_unborn = born >> slot & 1 == 0 && self.search.know(self.state[slot as usize]).unborn;
            is_unborn == unborn
        })
    }

    fn child(&mut self, slot: u16, local: LocalId, clock: u32) -> RoundNodeId {
        let (place, end) = (self.at + 1, self.search.protocol.end);
        let node = RoundNode { process: slot, local, clock, born: place, letters: Box::default() };
        // Its clock is later than its first round: it is kept.
        self.search.nodes.id(node, place, end)
    }
}

/// The tables that a search reads.
pub fn supported(tables: &Tables) -> bool {
    tables.model.shape().movers() <= 64
}

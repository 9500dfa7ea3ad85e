//! The graph of all states with their transitions, for what asks about infinite runs (`liveness`).
//!
//! States are numbered in the order of a breadth-first search; the transitions of a state are the targets in the order in
//! which `Lens::successors` lists them, so that the number of an edge says which transition it is.

use crate::control::{Control, Limit};
use crate::lens::{Lens, Successor, Way};
use crate::model::Result;
use crate::stubborn::ALL;
use hashbrown::HashTable;
use std::sync::atomic::Ordering::Relaxed;

pub type StateId = u32;

pub struct Graph {
    width: usize,
    states: Vec<u32>,
    fingerprints: Vec<u64>,
    /// Where the edges of each state begin; one more than there are states.
    offsets: Vec<usize>,
    targets: Vec<StateId>,
    /// Per state, which of the predicates are true, as bits; the last bit says that it is terminal.
    labels: Vec<u64>,
    /// There is a step that changes nothing. (After a decomposition: nothing relevant.)
    pub silent: bool,
}

/// Predicates of a graph, at most: the last bit of a label is taken.
pub const MOST_PREDICATES: usize = 63;
const TERMINAL: u64 = 1 << MOST_PREDICATES;
/// States between two looks at the limits.
const PULSE: usize = 1024;

impl Graph {
    /// All states that can be reached, up to the limits of the search; those beyond have no edges, and are not terminal.
    pub fn new(lens: &mut Lens, control: &Control, predicates: &[usize]) -> Result<Graph> {
        let initial = lens.tables.initial()?;
        let mut graph = Graph {
            width: initial.len(),
            states: Vec::new(),
            fingerprints: Vec::new(),
            offsets: vec![0],
            targets: Vec::new(),
            labels: Vec::new(),
            silent: false,
        };
        let mut index: HashTable<StateId> = HashTable::new();
        let root = lens.fingerprint(&initial);
        graph.add(lens, control, predicates, initial, root)?;
        index.insert_unique(root, 0, |&id| graph.fingerprints[id as usize]);
        let mut successors: Vec<Successor> = Vec::new();
        while graph.offsets.len() <= graph.len() {
            let id = graph.offsets.len() - 1;
            if id.is_multiple_of(PULSE) {
                control.frontier.store(graph.len() - id, Relaxed);
                control.visits.store(graph.len() as u64, Relaxed);
                control.transitions.store(graph.targets.len() as u64, Relaxed);
                if graph.len() > control.options.max_states {
                    control.stop_at(Limit::MaxStates);
                }
                if control.stopped() {
                    graph.offsets.resize(graph.len() + 1, graph.targets.len());
                    break;
                }
            }
            graph.silent |= edges(lens, graph.state(id as StateId), graph.fingerprints[id], &mut successors)?;
            if !successors.iter().any(|successor| successor.moves) {
                graph.labels[id] |= TERMINAL;
            }
            for &Successor { fingerprint, way, .. } in &successors {
                let known = index.find(fingerprint, |&id| graph.fingerprints[id as usize] == fingerprint).copied();
                let target = match known {
                    Some(known) => known,
                    None => {
                        let mut state = graph.state(id as StateId).to_vec();
                        lens.take(&mut state, way)?;
                        let new = graph.add(lens, control, predicates, state, fingerprint)?;
                        index.insert_unique(fingerprint, new, |&id| graph.fingerprints[id as usize]);
                        new
                    }
                };
                graph.targets.push(target);
            }
            graph.offsets.push(graph.targets.len());
        }
        Ok(graph)
    }

    fn add(
        &mut self,
        lens: &mut Lens,
        control: &Control,
        predicates: &[usize],
        state: Vec<u32>,
        fingerprint: u64,
    ) -> Result<StateId> {
        let mut label = 0;
        for (bit, &predicate) in predicates.iter().enumerate() {
            let value = lens.evaluate(predicate, &state, &control.reads)?;
            if lens.orbits.any() {
                lens.audit_property(predicate, &state, value, &control.reads)?;
            }
            label |= u64::from(value) << bit;
        }
        self.states.extend(state);
        self.fingerprints.push(fingerprint);
        self.labels.push(label);
        Ok(self.labels.len() as StateId - 1)
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    pub fn state(&self, id: StateId) -> &[u32] {
        &self.states[id as usize * self.width..][..self.width]
    }

    /// Which predicates are true, as bits.
    #[inline]
    pub fn label(&self, id: StateId) -> u64 {
        self.labels[id as usize] & !TERMINAL
    }

    /// Whether no step of a process leads out of the state.
    #[inline]
    pub fn is_terminal(&self, id: StateId) -> bool {
        self.labels[id as usize] & TERMINAL != 0
    }

    #[inline]
    pub fn targets(&self, id: StateId) -> &[StateId] {
        &self.targets[self.offsets[id as usize]..self.offsets[id as usize + 1]]
    }

    /// The transitions of a state, in the order of its targets.
    pub fn ways(&self, lens: &mut Lens, id: StateId) -> Result<Vec<Way>> {
        let mut successors = Vec::new();
        edges(lens, self.state(id), self.fingerprints[id as usize], &mut successors)?;
        Ok(successors.into_iter().map(|successor| successor.way).collect())
    }
}

/// The successors that are edges. A step that changes nothing is none, and one that fails leads nowhere. Tells whether there
/// is one that changes nothing.
fn edges(lens: &mut Lens, state: &[u32], fingerprint: u64, found: &mut Vec<Successor>) -> Result<bool> {
    let mut silent = false;
    found.clear();
    lens.successors(state, fingerprint, ALL, |successor| {
        let moves = successor.moves || successor.fingerprint != fingerprint;
        silent |= !moves;
        if moves && !successor.fails {
            found.push(successor);
        }
    })?;
    Ok(silent)
}

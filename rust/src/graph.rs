//! The graph of all states with their transitions, for what asks about infinite runs (`liveness`).
//!
//! States are numbered in the order of a breadth-first search, which is the order in which they are expanded (`building`);
//! the transitions of a state are the targets in the order in which `Lens::successors` lists them, so that the number of an
//! edge says which transition it is.
//!
//! With symmetry, a state stands for its orbit. With partial-order reduction, some states have the transitions of some
//! processes only (`docs/liveness.md` has the proof): no visible step is among them, and all of them lead to states that are
//! expanded later, so that on every cycle there is a state with all its transitions.

use crate::building::build;
use crate::control::{Control, Por};
use crate::large::{Large, prefetch};
use crate::lens::{Lens, Successor, Way};
use crate::model::Result;
use crate::stubborn::{ALL, Relations, Rules, Stubborn};
use std::io;
use std::sync::Arc;

pub type StateId = u32;
/// The edge of a terminal state that stays.
pub const STUTTER: u32 = u32::MAX;

pub struct Graph {
    pub(crate) width: usize,
    pub(crate) states: Large<u32>,
    pub(crate) fingerprints: Large<u64>,
    /// Where the edges of each state begin; one more than there are states.
    pub(crate) offsets: Large<u64>,
    pub(crate) targets: Large<StateId>,
    /// Per state, which of the predicates are true, as bits; the last bit says that it is terminal.
    pub(crate) labels: Large<u64>,
    /// Per state, the processes whose transitions it has; empty without partial-order reduction.
    pub(crate) taken: Vec<u64>,
    /// There is a step that changes nothing. (After a decomposition: nothing relevant.)
    pub silent: bool,
    /// The length of the longest of the shortest runs to states.
    pub depth: u32,
}

/// What is looked at in each state.
#[derive(Clone, Copy)]
pub struct Looks<'a> {
    pub control: &'a Control,
    /// Evaluated everywhere: the labels.
    pub predicates: &'a [usize],
    /// The properties of states are looked at as well, as in a search; what is found is recorded.
    pub safety: bool,
}

/// Predicates of a graph, at most: the last bit of a label is taken.
pub const MOST_PREDICATES: usize = 63;
pub(crate) const TERMINAL: u64 = 1 << MOST_PREDICATES;

impl Graph {
    /// All states that can be reached, up to the limits of the search, or as many as partial-order reduction leaves. As in
    /// other searches there are passes, until one has met nothing that its relations do not cover.
    pub fn explored(lens: &mut Lens, looks: Looks, por: Option<Por>) -> Result<Graph> {
        let Looks { control, predicates, .. } = looks;
        let Some(por) = por else { return build(lens, looks, None) };
        let rules = Rules { strict: !control.forgets("strict"), ..Rules::without(&control.options.forget) };
        let shape = lens.tables.model.shape();
        // What the predicates read at first is a start.
        let initial = lens.tables.initial()?;
        for &predicate in predicates {
            lens.evaluate(predicate, &initial, &control.reads)?;
        }
        loop {
            let sight = control.reads.seen(predicates);
            let relations =
                lens.tables.facts(|facts| Relations::new(facts, shape, por.split, por.seeds, rules, sight))?;
            let relations = Arc::new(relations);
            let graph = build(lens, looks, Some(Stubborn::new(relations.clone(), shape)))?;
            let sight = control.reads.seen(predicates);
            if control.stopped() || lens.tables.facts(|facts| relations.covers(facts, sight)) {
                return Ok(graph);
            }
        }
    }

    /// A state with its label, and no edges yet.
    pub(crate) fn new(state: &[u32], fingerprint: u64, label: u64) -> io::Result<Graph> {
        Ok(Graph {
            width: state.len(),
            states: Large::of(state)?,
            fingerprints: Large::of(&[fingerprint])?,
            offsets: Large::of(&[0])?,
            targets: Large::zeros(0)?,
            labels: Large::of(&[label])?,
            taken: Vec::new(),
            silent: false,
            depth: 0,
        })
    }

    /// Per state, the first that leads to it.
    fn parents(&self) -> Vec<StateId> {
        let mut parents = vec![StateId::MAX; self.len()];
        parents[0] = 0;
        for id in 0..self.len() as StateId {
            for &target in self.targets(id) {
                // Those that are less deep have lesser numbers.
                if parents[target as usize] == StateId::MAX {
                    parents[target as usize] = id;
                }
            }
        }
        parents
    }

    /// The fingerprints of a shortest run to each of some states.
    pub fn runs_to(&self) -> impl FnMut(u64) -> Option<Vec<u64>> {
        let mut parents = None;
        move |fingerprint| {
            let parents = parents.get_or_insert_with(|| self.parents());
            let mut at = self.fingerprints.iter().position(|&one| one == fingerprint)?;
            let mut run = vec![fingerprint];
            while at != 0 {
                at = parents[at] as usize;
                run.push(self.fingerprints[at]);
            }
            run.reverse();
            Some(run)
        }
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        let edges = self.offsets.bytes() + self.targets.bytes();
        self.states.bytes() + self.fingerprints.bytes() + self.labels.bytes() + edges + self.taken.len() * 8
    }

    pub fn terminals(&self) -> usize {
        self.labels.iter().filter(|label| **label & TERMINAL != 0).count()
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    #[inline]
    pub fn state(&self, id: StateId) -> &[u32] {
        &self.states[id as usize * self.width..][..self.width]
    }

    pub fn fingerprint(&self, id: StateId) -> u64 {
        self.fingerprints[id as usize]
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
        &self.targets[self.offsets[id as usize] as usize..self.offsets[id as usize + 1] as usize]
    }

    /// The edges of a state by number, with their targets. A terminal state, which may have edges by faults, stays as well.
    #[inline]
    pub fn edges(&self, id: StateId) -> impl Iterator<Item = (u32, StateId)> + '_ {
        let stays = self.is_terminal(id).then_some((STUTTER, id));
        (0..).zip(self.targets(id).iter().copied()).chain(stays)
    }

    /// Have at hand soon where the edges of a state are.
    #[inline]
    pub(crate) fn prefetch(&self, id: StateId) {
        prefetch(&self.offsets, id as usize);
    }

    /// The transitions of a state, in the order of its targets.
    pub fn ways(&self, lens: &mut Lens, id: StateId) -> Result<Vec<Way>> {
        let mut successors = Vec::new();
        let processes = self.taken.get(id as usize).copied().unwrap_or(ALL);
        edges(lens, self.state(id), self.fingerprint(id), processes, |s| successors.push(s.way))?;
        Ok(successors)
    }
}

/// Of the transitions of a state: how many there are, whether an edge is a step of a process, whether a step changes
/// nothing, and whether one fails.
#[derive(Clone, Copy, Default)]
pub(crate) struct Told {
    pub met: u64,
    pub moves: bool,
    pub silent: bool,
    pub fails: bool,
}

/// The successors that are edges. A step that changes nothing is none, and one that fails leads nowhere.
#[inline]
pub(crate) fn edges(
    lens: &mut Lens,
    state: &[u32],
    fingerprint: u64,
    processes: u64,
    mut each: impl FnMut(Successor),
) -> Result<Told> {
    let mut told = Told::default();
    lens.successors(state, fingerprint, processes, |successor| {
        let moves = successor.moves || successor.fingerprint != fingerprint;
        told.met += 1;
        told.silent |= !moves;
        told.fails |= successor.fails;
        if moves && !successor.fails {
            told.moves |= successor.moves;
            each(successor);
        }
    })?;
    Ok(told)
}

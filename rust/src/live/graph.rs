//! The graph of all states with their transitions, for properties of infinite runs (`product`).
//!
//! States are numbered in the order of a breadth-first search, in which they are expanded (`build`). The transitions of
//! a state are stored as targets, in the order of `View::successors`. So the number of an edge identifies its
//! transition.
//!
//! With symmetry, a state represents its orbit. With partial-order reduction, some states have the transitions of some
//! processes only (`docs/internals/liveness.md` has the proof). These transitions are invisible, and all of them lead
//! to states that are expanded later. So every cycle has a state with all its transitions.

use crate::live::build::build;
use crate::live::packed::{Labels, Offsets, States};
use crate::por::relations::{Relations, Rules};
use crate::por::stubborn::{ALL, Stubborn};
use crate::search::control::{Control, Por};
use crate::system::model::Result;
use crate::system::reads::{ReadSet, ReadSets};
use crate::system::successors::{Successor, TransitionRef, View};
use crate::system::tables::Transition;
use crate::util::mapped_array::MappedArray;
use rustc_hash::FxHashSet;
use std::io;
use std::sync::Arc;

pub type StateId = u32;
/// The edge of a terminal state that stays.
pub const STUTTER: u32 = u32::MAX;

pub struct Graph {
    pub(crate) states: States,
    /// Where the edges of each state begin; one more than there are states.
    pub(crate) offsets: Offsets,
    pub(crate) targets: MappedArray<StateId>,
    /// Per state, whether it is terminal (or a run may stay there, because time goes on for ever), and after that bit, which of the predicates are true.
    pub(crate) labels: Labels,
    /// Per state, the processes whose transitions it has; empty without partial-order reduction.
    pub(crate) taken: Vec<u64>,
    /// There is a step that changes nothing. (After a decomposition: nothing relevant.)
    pub silent: bool,
    /// How many states are not terminal, and a run may stay there all the same.
    pub rests: usize,
    /// The length of the longest of the shortest runs to states.
    pub depth: u32,
    /// How many initial states there are. They come first.
    pub(crate) roots: usize,
    /// States outside of the bound of the search. They have no edges, and are not terminal.
    pub(crate) outside: FxHashSet<StateId>,
}

/// What is looked at in each state.
#[derive(Clone, Copy)]
pub struct Labelling<'a> {
    pub control: &'a Control,
    /// Evaluated everywhere: the labels.
    pub predicates: &'a [usize],
    /// Bits of labels after those of the predicates.
    pub spare: usize,
    /// The properties of states are looked at as well, as in a search; what is found is recorded.
    pub safety: bool,
}

/// Predicates of a graph, at most: the first bit of a label is taken.
pub const MOST_PREDICATES: usize = 63;
pub(crate) const TERMINAL: u64 = 1;

impl Graph {
    /// All states that can be reached, up to the limits of the search, or as many as partial-order reduction leaves. As in
    /// other searches there are passes, until one has met nothing that its relations do not cover.
    pub fn explored(view: &mut View, labelling: Labelling, por: Option<Por>) -> Result<Graph> {
        let Labelling { control, predicates, .. } = labelling;
        let Some(por) = por else { return build(view, labelling, None) };
        let rules = Rules { strict: !control.leaves_out("strict"), ..Rules::of(control) };
        let shape = view.tables.model.shape();
        // What the predicates read at first is a start.
        let initial = view.tables.initial()?;
        for &predicate in predicates {
            view.evaluate(predicate, &initial[0].state, &control.reads)?;
        }
        // The bound counts as a predicate: it is true in all states of a run that stays within it.
        let watched: Vec<usize> = predicates.iter().copied().chain(control.within).collect();
        let seen = || ReadSets { visible: control.reads.seen(&watched), bounds: ReadSet::default() };
        loop {
            let read_sets = seen();
            let relations = view
                .tables
                .known_effects(|known| Relations::new(known, shape, por.split, por.seeds, rules, read_sets))?;
            let relations = Arc::new(relations);
            let graph = build(view, labelling, Some(Stubborn::new(relations.clone(), shape)))?;
            if control.stopped() || view.tables.known_effects(|known| relations.covers(known, seen())) {
                return Ok(graph);
            }
        }
    }

    /// An empty graph for states with this many components and predicates.
    pub(crate) fn new(width: usize, predicates: usize) -> io::Result<Graph> {
        let mut offsets = Offsets::new()?;
        offsets.extend([0].into_iter())?;
        Ok(Graph {
            states: States::new(width)?,
            offsets,
            targets: MappedArray::zeros(0)?,
            labels: Labels::new(predicates + 1)?,
            taken: Vec::new(),
            silent: false,
            rests: 0,
            depth: 0,
            roots: 0,
            outside: FxHashSet::default(),
        })
    }

    /// Per state, the first that leads to it.
    fn parents(&self) -> Vec<StateId> {
        let mut parents = vec![StateId::MAX; self.len()];
        (0..self.roots).for_each(|root| parents[root] = root as StateId);
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

    /// A shortest run that ends with an edge: each step is a state and the number of its edge.
    pub fn path_by(&self, last: (StateId, u32)) -> Vec<(StateId, u32)> {
        let (parents, mut path) = (self.parents(), vec![last]);
        while let Some(&(at, _)) = path.last().filter(|(at, _)| *at as usize >= self.roots) {
            let parent = parents[at as usize];
            let edge = self.targets(parent).iter().position(|&target| target == at).expect("it leads there");
            path.push((parent, edge as u32));
        }
        path.reverse();
        path
    }

    /// A shortest run to each of these states: the initial state, and the steps as in `path_by`.
    pub fn shortest_runs(&self, targets: impl Iterator<Item = StateId>) -> Vec<(StateId, Vec<(StateId, u32)>)> {
        let parents = self.parents();
        let run = |target: StateId| {
            let (mut at, mut run) = (target, Vec::new());
            while at as usize >= self.roots {
                let parent = parents[at as usize];
                let edge = self.targets(parent).iter().position(|&next| next == at).expect("it leads there");
                run.push((parent, edge as u32));
                at = parent;
            }
            run.reverse();
            (at, run)
        };
        targets.map(run).collect()
    }

    /// The nearest state with a transition that fits, and the number of its edge.
    pub fn first_edge(
        &self,
        view: &mut View,
        mut fits: impl FnMut(&View, TransitionRef, &Transition) -> bool,
    ) -> Result<Option<(StateId, u32)>> {
        for id in 0..self.len() as StateId {
            let state = self.state(id);
            for (edge, via) in (0..self.targets(id).len() as u32).zip(self.transition_refs(view, id)?) {
                let transition = view.transition(&state, via)?;
                if fits(view, via, &transition) {
                    return Ok(Some((id, edge)));
                }
            }
        }
        Ok(None)
    }

    /// The fingerprints of a shortest run to each of some states.
    pub fn runs_to(&self, view: &mut View) -> impl FnMut(u64) -> Option<Vec<u64>> {
        let mut parents = None;
        move |fingerprint| {
            let parents = parents.get_or_insert_with(|| self.parents());
            let mut at = (0..self.len() as StateId).find(|&id| view.fingerprint(&self.state(id)) == fingerprint)?;
            let mut run = vec![fingerprint];
            while at as usize >= self.roots {
                at = parents[at as usize];
                run.push(view.fingerprint(&self.state(at)));
            }
            run.reverse();
            Some(run)
        }
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        let edges = self.offsets.bytes() + self.targets.bytes();
        self.states.bytes() + self.labels.bytes() + edges + self.taken.len() * 8
    }

    pub fn terminals(&self) -> usize {
        (0..self.len() as StateId).filter(|&id| self.is_terminal(id)).count() - self.rests
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn state(&self, id: StateId) -> Vec<u32> {
        let mut state = Vec::new();
        self.states.read(id as usize, &mut state);
        state
    }

    /// A component of a state.
    #[inline]
    pub fn component(&self, id: StateId, place: usize) -> u32 {
        self.states.component(id as usize, place)
    }

    /// Which predicates are true, as bits.
    #[inline]
    pub fn label(&self, id: StateId) -> u64 {
        self.labels.get(id as usize) >> 1
    }

    /// Whether no step of a process leads out of the state, or a run may stay there because time goes on for ever.
    #[inline]
    pub fn is_terminal(&self, id: StateId) -> bool {
        self.labels.get(id as usize) & TERMINAL != 0
    }

    #[inline]
    pub fn targets(&self, id: StateId) -> &[StateId] {
        let (start, end) = (self.offsets.get(id as usize), self.offsets.get(id as usize + 1));
        &self.targets[start as usize..end as usize]
    }

    /// The edges of a state by number, with their targets. A terminal state, which may have edges by faults, stays as well.
    #[inline]
    pub fn edges(&self, id: StateId) -> impl Iterator<Item = (u32, StateId)> + '_ {
        let stays = self.is_terminal(id).then_some((STUTTER, id));
        (0..).zip(self.targets(id).iter().copied()).chain(stays)
    }

    /// The processes whose transitions are edges of a state, as bits.
    #[inline]
    pub(crate) fn taken(&self, id: StateId) -> u64 {
        self.taken.get(id as usize).copied().unwrap_or(ALL)
    }

    /// Have at hand soon where the edges of a state are.
    #[inline]
    pub(crate) fn prefetch(&self, id: StateId) {
        self.offsets.prefetch(id as usize);
    }

    /// The transitions of a state, in the order of its targets.
    pub fn transition_refs(&self, view: &mut View, id: StateId) -> Result<Vec<TransitionRef>> {
        let mut successors = Vec::new();
        let state = self.state(id);
        let fingerprint = view.fingerprint(&state);
        edges(view, &state, fingerprint, self.taken(id), |s| successors.push(s.via))?;
        Ok(successors)
    }
}

/// Of the transitions of a state: how many there are, whether an edge is a step of a process, whether a step changes
/// nothing, and whether one fails.
#[derive(Clone, Copy, Default)]
pub(crate) struct EdgeSummary {
    pub met: u64,
    pub moves: bool,
    pub silent: bool,
    pub fails: bool,
}

/// The successors that are edges. A step that changes nothing is none, and one that fails leads nowhere.
#[inline]
pub(crate) fn edges(
    view: &mut View,
    state: &[u32],
    fingerprint: u64,
    processes: u64,
    mut each: impl FnMut(Successor),
) -> Result<EdgeSummary> {
    let mut summary = EdgeSummary::default();
    view.successors(state, fingerprint, processes, |successor| {
        let moves = successor.moves || successor.fingerprint != fingerprint;
        summary.met += 1;
        summary.silent |= !moves;
        summary.fails |= successor.fails;
        if moves && !successor.fails {
            summary.moves |= successor.moves;
            each(successor);
        }
    })?;
    Ok(summary)
}

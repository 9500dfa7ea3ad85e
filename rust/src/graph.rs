//! The graph of all states with their transitions, for what asks about infinite runs (`liveness`).
//!
//! States are numbered in the order of a breadth-first search, which is the order in which they are expanded; the
//! transitions of a state are the targets in the order in which `Lens::successors` lists them, so that the number of an edge
//! says which transition it is.
//!
//! With symmetry, a state stands for its orbit. With partial-order reduction, some states have the transitions of some
//! processes only (`docs/liveness.md` has the proof): no visible step is among them, and all of them lead to states that are
//! expanded later, so that on every cycle there is a state with all its transitions.

use crate::control::{Control, Finding, Limit, Por};
use crate::lens::{Lens, Successor, Touched, Way, look};
use crate::model::Result;
use crate::numbering::Numbering;
use crate::stubborn::{ALL, Relations, Rules, Stubborn};
use std::sync::Arc;
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
    /// Per state, the processes whose transitions it has; empty without partial-order reduction.
    taken: Vec<u64>,
    /// There is a step that changes nothing. (After a decomposition: nothing relevant.)
    pub silent: bool,
    /// All transitions met, those that are no edges as well.
    pub met: u64,
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
const TERMINAL: u64 = 1 << MOST_PREDICATES;
/// States between two looks at the limits.
const PULSE: usize = 1024;
/// States whose successors are looked up together, so that the misses of the cache overlap.
const BATCH: usize = 64;
/// Fingerprints that were looked up a short while ago: siblings' successors meet at once.
const RECENT: usize = 1 << 14;

impl Graph {
    /// All states that can be reached, up to the limits of the search, or as many as partial-order reduction leaves. As in
    /// other searches there are passes, until one has met nothing that its relations do not cover.
    pub fn explored(lens: &mut Lens, looks: Looks, por: Option<Por>) -> Result<Graph> {
        let Looks { control, predicates, .. } = looks;
        let Some(por) = por else { return Graph::new(lens, looks, None) };
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
            let graph = Graph::new(lens, looks, Some(Stubborn::new(relations.clone(), shape)))?;
            let sight = control.reads.seen(predicates);
            if control.stopped() || lens.tables.facts(|facts| relations.covers(facts, sight)) {
                return Ok(graph);
            }
        }
    }

    /// States beyond the limits have no edges, and are not terminal.
    fn new(lens: &mut Lens, looks: Looks, stubborn: Option<Stubborn>) -> Result<Graph> {
        let control = looks.control;
        let initial = lens.tables.initial()?;
        let root = lens.fingerprint(&initial);
        let mut graph = Graph {
            width: initial.len(),
            states: initial,
            fingerprints: vec![root],
            offsets: vec![0],
            targets: Vec::new(),
            labels: vec![0],
            taken: Vec::new(),
            silent: false,
            met: 0,
        };
        graph.judge(lens, looks, 0, Touched::EVERYWHERE)?;
        let mut builder = Builder {
            graph,
            numbering: Numbering::default(),
            recent: vec![(0, 0); RECENT].into(),
            batch: Vec::new(),
            ends: Vec::new(),
            stubborn,
            all_forward: !control.forgets("every-cycle"),
        };
        builder.numbering.get_or_insert(root, 0);
        let mut beat = 0;
        while builder.graph.offsets.len() <= builder.graph.len() {
            let (next, len) = (builder.graph.offsets.len() - 1, builder.graph.len());
            if next >= beat {
                beat = next + PULSE;
                control.frontier.store(len - next, Relaxed);
                control.visits.store(len as u64, Relaxed);
                control.transitions.store(builder.graph.met, Relaxed);
                if len > control.options.max_states {
                    control.stop_at(Limit::MaxStates);
                }
                if control.stopped() {
                    let edges = builder.graph.targets.len();
                    builder.graph.offsets.resize(len + 1, edges);
                    builder.graph.taken.resize(if builder.stubborn.is_some() { len } else { 0 }, ALL);
                    break;
                }
            }
            let end = if builder.stubborn.is_some() { next + 1 } else { len.min(next + BATCH) };
            builder.expand(lens, looks, next..end)?;
        }
        control.visits.store(builder.graph.len() as u64, Relaxed);
        control.transitions.store(builder.graph.met, Relaxed);
        Ok(builder.graph)
    }

    /// Evaluate the predicates that a change may have touched; of the others it has its parent's values.
    fn judge(&mut self, lens: &mut Lens, looks: Looks, id: usize, touched: Touched) -> Result<()> {
        let control = looks.control;
        if looks.safety {
            let state = &self.states[id * self.width..][..self.width];
            look(lens, control, state, touched, false, |property| control.record(self.finding(id, property)))?;
        }
        for (bit, &predicate) in looks.predicates.iter().enumerate() {
            if !control.reads.concern(predicate, touched) {
                continue;
            }
            let state = &self.states[id * self.width..][..self.width];
            let value = lens.evaluate(predicate, state, &control.reads)?;
            if lens.orbits.any() {
                lens.audit_property(predicate, state, value, &control.reads)?;
            }
            self.labels[id] = self.labels[id] & !(1 << bit) | u64::from(value) << bit;
        }
        Ok(())
    }

    fn finding(&self, id: usize, property: usize) -> Finding {
        Finding { property, fingerprint: self.fingerprints[id], depth: 0, run: None }
    }

    /// Per state, the one that it was first met from.
    pub fn parents(&self) -> Vec<StateId> {
        let mut parents = Vec::with_capacity(self.len());
        parents.push(0);
        for id in 0..self.len() as StateId {
            for &target in self.targets(id) {
                // Numbers are given in the order in which states are met.
                if target as usize == parents.len() {
                    parents.push(id);
                }
            }
        }
        parents
    }

    /// The fingerprints of a shortest run to a state.
    pub fn run_to(&self, parents: &[StateId], fingerprint: u64) -> Option<Vec<u64>> {
        let mut at = self.fingerprints.iter().position(|&one| one == fingerprint)?;
        let mut run = vec![fingerprint];
        while at != 0 {
            at = parents[at] as usize;
            run.push(self.fingerprints[at]);
        }
        run.reverse();
        Some(run)
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        let words = self.states.len() + self.targets.len();
        words * 4 + (self.fingerprints.len() + self.offsets.len() + self.labels.len() + self.taken.len()) * 8
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
        &self.targets[self.offsets[id as usize]..self.offsets[id as usize + 1]]
    }

    /// The transitions of a state, in the order of its targets.
    pub fn ways(&self, lens: &mut Lens, id: StateId) -> Result<Vec<Way>> {
        let mut successors = Vec::new();
        let processes = self.taken.get(id as usize).copied().unwrap_or(ALL);
        edges(lens, self.state(id), self.fingerprint(id), processes, |s| successors.push(s.way))?;
        Ok(successors)
    }
}

/// A graph that is being built.
struct Builder {
    graph: Graph,
    numbering: Numbering,
    recent: Box<[(u64, StateId)]>,
    /// Successors of some states, and where those of each end.
    batch: Vec<Successor>,
    ends: Vec<usize>,
    stubborn: Option<Stubborn>,
    /// The cycle proviso is that of whole runs, and not the one that is enough for states. (A test leaves it out.)
    all_forward: bool,
}

impl Builder {
    /// Find the edges of some states.
    fn expand(&mut self, lens: &mut Lens, looks: Looks, ids: std::ops::Range<usize>) -> Result<()> {
        let control = looks.control;
        self.batch.clear();
        self.ends.clear();
        for id in ids.clone() {
            let processes = self.processes(lens, id)?;
            if self.stubborn.is_some() {
                self.graph.taken.push(processes);
            }
            let told = self.list(lens, id, processes)?;
            self.graph.met += told.met;
            if told.fails && looks.safety {
                // It is a violation, or a mistake of the model, which ends the search here.
                let state = self.graph.state(id as StateId);
                lens.outlook(state, self.graph.fingerprints[id], ALL, |_, _| {})?;
                control.record(self.graph.finding(id, control.assertion()));
            }
            self.ends.push(self.batch.len());
        }
        let mut start = 0;
        for (id, place) in ids.zip(0..) {
            let end = self.ends[place];
            if !self.batch[start..end].iter().any(|successor| successor.moves) {
                self.graph.labels[id] |= TERMINAL;
                if looks.safety {
                    let graph = &self.graph;
                    look(lens, control, graph.state(id as StateId), Touched::EVERYWHERE, true, |property| {
                        control.record(graph.finding(id, property));
                    })?;
                }
            }
            for at in start..end {
                let Successor { fingerprint, way, .. } = self.batch[at];
                let target = self.number(lens, looks, id, fingerprint, way)?;
                self.graph.targets.push(target);
            }
            self.graph.offsets.push(self.graph.targets.len());
            start = end;
        }
        Ok(())
    }

    /// Put the edges by transitions of some processes into the batch.
    #[inline]
    fn list(&mut self, lens: &mut Lens, id: usize, processes: u64) -> Result<Told> {
        let Builder { graph, numbering, batch, .. } = self;
        let fingerprint = graph.fingerprints[id];
        let state = &graph.states[id * graph.width..][..graph.width];
        let told = edges(lens, state, fingerprint, processes, |successor| {
            numbering.prefetch(successor.fingerprint);
            batch.push(successor);
        })?;
        graph.silent |= told.silent;
        Ok(told)
    }

    /// The processes whose transitions are enough in a state.
    fn processes(&mut self, lens: &mut Lens, id: usize) -> Result<u64> {
        let Some(stubborn) = &mut self.stubborn else { return Ok(ALL) };
        let processes = stubborn.processes(lens.tables, self.graph.state(id as StateId))?;
        if processes == ALL {
            return Ok(ALL);
        }
        let proviso = stubborn.relations().needs_proviso();
        self.list(lens, id, processes)?;
        // What leaves its own process as it is may be silent elsewhere, in a state that is left out.
        let state = self.graph.state(id as StateId);
        let stays = self.batch.iter().any(|successor| lens.stays(state, successor.way));
        let moves = self.batch.iter().any(|successor| successor.moves);
        let mut later =
            self.batch.iter().map(|s| self.numbering.get(s.fingerprint).is_none_or(|known| known as usize > id));
        let forward = !proviso || if self.all_forward { later.all(|later| later) } else { later.any(|later| later) };
        self.batch.clear();
        self.graph.silent |= stays;
        Ok(if moves && forward { processes } else { ALL })
    }

    /// The number of a successor; a new one is judged.
    #[inline]
    fn number(&mut self, lens: &mut Lens, looks: Looks, parent: usize, fingerprint: u64, way: Way) -> Result<StateId> {
        let recent = &mut self.recent[fingerprint as usize & (RECENT - 1)];
        if recent.0 == fingerprint {
            return Ok(recent.1);
        }
        let graph = &mut self.graph;
        let new = graph.labels.len();
        let known = self.numbering.get_or_insert(fingerprint, new as StateId);
        *recent = (fingerprint, known.unwrap_or(new as StateId));
        if let Some(known) = known {
            return Ok(known);
        }
        graph.states.extend_from_within(parent * graph.width..(parent + 1) * graph.width);
        let touched = lens.take(&mut graph.states[new * graph.width..], way)?;
        graph.fingerprints.push(fingerprint);
        graph.labels.push(graph.labels[parent] & !TERMINAL);
        graph.judge(lens, looks, new, touched)?;
        Ok(new as StateId)
    }
}

/// Of the transitions of a state: how many there are, whether a step changes nothing, and whether one fails.
#[derive(Clone, Copy, Default)]
struct Told {
    met: u64,
    silent: bool,
    fails: bool,
}

/// The successors that are edges. A step that changes nothing is none, and one that fails leads nowhere.
#[inline]
fn edges(
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
            each(successor);
        }
    })?;
    Ok(told)
}

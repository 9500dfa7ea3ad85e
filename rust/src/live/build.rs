//! Building the graph of all states, breadth first, by several workers.
//!
//! A round expands some states of one layer, in chunks. A worker lists the successors of a chunk and looks their numbers up
//! in a batch, with their slots prefetched; a state that has none gets the next one. Layers follow each other, so that a
//! state that is deeper has a greater number; within a layer, numbers are in the order in which states are met, which is
//! the same each time only with one worker, or if the layer is small. After the round, what the workers have found is put
//! into the graph.
//!
//! Partial-order reduction needs to know of each successor whether it will be expanded later, and is done by one worker.

use crate::live::graph::{Graph, Labelling, StateId, edges};
use crate::live::merge::{Frontier, RoundOutput, merge};
use crate::por::stubborn::{ALL, Stubborn};
use crate::search::control::{Finding, Limit};
use crate::search::visited::{Session, Visited};
use crate::system::model::{Fault, Result};
use crate::system::reads::{Changes, evaluate_properties};
use crate::system::view::{Successor, TransitionRef, View};
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};

/// Edges that are found in a round, as far as can be said before: they are kept apart until it ends.
const ROUND: usize = 1 << 21;
const CHUNK: usize = 256;
/// Successors that are looked up together.
const BATCH: usize = 512;
const AHEAD: usize = 16;
/// In one session of the numbering, at most: a state may have many successors.
const MOST: usize = 2 * BATCH;
/// Rounds of fewer states are not worth waking the other workers for, nor are those in which the model is asked more often
/// than once in so many states (see `bfs`).
const SMALL: usize = 4 * CHUNK;
const ASKING: usize = 128;
/// Fingerprints that were met a short while ago: siblings' successors meet at once.
const RECENT: usize = 1 << 14;
const MOST_STATES: u32 = 1 << 31;

/// States beyond the limits have no edges, and are not terminal.
pub(crate) fn build(view: &mut View, labelling: Labelling, stubborn: Option<Stubborn>) -> Result<Graph> {
    let control = labelling.control;
    let initial = view.tables.initial()?;
    let root = view.fingerprint(&initial);
    let label = judge(view, labelling, &initial, root, Changes::EVERYWHERE, 0)?;
    let mut graph = Graph::new(initial.len(), labelling.predicates.len())?;
    let mut frontier = Frontier { start: 0, end: 1, these: vec![root], next: Vec::new() };
    graph.states.grow(1, initial.iter().copied().max().unwrap_or(0))?;
    graph.states.set(0, &initial);
    graph.labels.grow(1)?;
    graph.labels.set(0, label << 1);
    let numbering = Visited::new(control.options.memory)?;
    let next = AtomicU32::new(0);
    numbering.session(1, 0)?.number_or(root, &next);
    control.visits.store(1, Relaxed);
    control.transitions.store(0, Relaxed);

    let tables = view.tables;
    let workers = if stubborn.is_some() { 1 } else { control.options.workers.max(1) };
    let mut others: Vec<View> = (1..workers).map(|_| View::new(tables)).collect();
    let mut crew: Vec<Worker> = std::iter::once(view).chain(&mut others).map(Worker::new).collect();
    crew[0].stubborn = stubborn;
    let (mut start, mut busy) = (0, false);
    while start < graph.len() && !control.stopped() {
        let degree = graph.targets.len() / start.max(1) + 1;
        let end = frontier.end.min(start + (ROUND / degree).max(SMALL));
        let asked = tables.fillings();
        let alone = workers == 1 || end - start < SMALL || busy;
        let round = Round {
            graph: &graph,
            frontier: &frontier,
            labelling,
            numbering: &numbering,
            next: &next,
            alone,
            end,
            at: start.into(),
        };
        if alone {
            crew[0].work(&round);
        } else {
            std::thread::scope(|scope| {
                for worker in &mut crew {
                    let round = &round;
                    scope.spawn(move || tables.model.in_thread(&mut || worker.work(round)));
                }
            });
        }
        if let Some(fault) = crew.iter_mut().find_map(|worker| worker.fault.take()) {
            return Err(fault);
        }
        busy = (tables.fillings() - asked) * ASKING > end - start;
        let output: Vec<&RoundOutput> = crew.iter().map(|worker| &worker.output).collect();
        merge(&mut graph, &mut frontier, &output, start..end, !alone)?;
        crew.iter_mut().for_each(Worker::begin);
        start = end;
        if start == frontier.end && start < graph.len() {
            frontier.advance();
            graph.depth += 1;
        }
        control.depth.store(graph.depth, Relaxed);
    }
    control.frontier.store(0, Relaxed);
    let edges = graph.targets.len() as u64;
    let expanded = graph.offsets.len();
    graph.offsets.extend(std::iter::repeat_n(edges, graph.len() + 1 - expanded))?;
    if crew[0].stubborn.is_some() {
        graph.taken.resize(graph.len(), ALL);
    }
    Ok(graph)
}

/// What the workers share in a round.
struct Round<'a> {
    graph: &'a Graph,
    frontier: &'a Frontier,
    labelling: Labelling<'a>,
    numbering: &'a Visited,
    next: &'a AtomicU32,
    /// One worker does it.
    alone: bool,
    /// The states that nobody has begun with yet.
    at: AtomicUsize,
    end: usize,
}

impl Round<'_> {
    fn session(&self, count: usize) -> Result<Session<'_>> {
        let others = if self.alone { 0 } else { self.labelling.control.options.workers - 1 };
        Ok(self.numbering.session(count, others * MOST)?)
    }
}

/// A successor that waits to be looked up.
struct Pending {
    fingerprint: u64,
    parent: StateId,
    via: TransitionRef,
}

/// Aligned, so that two workers share no cache line.
#[repr(align(128))]
struct Worker<'a, 't> {
    view: &'a mut View<'t>,
    /// The one that is expanded.
    state: Vec<u32>,
    /// Fingerprints with their places among the numbers that were looked up, in all rounds; so many were in earlier ones.
    recent: Box<[(u64, u64)]>,
    earlier: u64,
    batch: Vec<Pending>,
    /// What of the batch has no number, and what is new.
    unknown: Vec<usize>,
    fresh: Vec<usize>,
    output: RoundOutput,
    fault: Option<Fault>,
    stubborn: Option<Stubborn>,
}

impl<'a, 't> Worker<'a, 't> {
    fn new(view: &'a mut View<'t>) -> Self {
        Worker {
            view,
            state: Vec::new(),
            recent: vec![(0, 0); RECENT].into(),
            earlier: 0,
            batch: Vec::new(),
            unknown: Vec::new(),
            fresh: Vec::new(),
            output: RoundOutput::default(),
            fault: None,
            stubborn: None,
        }
    }

    /// Forget what was found in the last round.
    fn begin(&mut self) {
        self.earlier += self.output.numbers.len() as u64;
        self.output.clear();
    }

    /// Expand chunks until none is left.
    fn work(&mut self, round: &Round) {
        let control = round.labelling.control;
        while !control.stopped() {
            let first = round.at.fetch_add(CHUNK, Relaxed);
            if first >= round.end {
                break;
            }
            if let Err(fault) = self.expand(round, first..round.end.min(first + CHUNK)) {
                self.fault = Some(fault);
                round.at.store(round.end, Relaxed);
                break;
            }
            let met = round.next.load(Relaxed) as usize;
            control.visits.store(met as u64, Relaxed);
            control.frontier.store(met - first, Relaxed);
            if met > control.options.max_states {
                control.stop_at(Limit::MaxStates);
            }
        }
    }

    /// Find the edges of some states.
    fn expand(&mut self, round: &Round, ids: Range<usize>) -> Result<()> {
        let Labelling { control, safety, .. } = round.labelling;
        let graph = round.graph;
        let begin = self.output.targets.len();
        self.output.chunks.push((ids.start, begin, self.output.ends.len()));
        let mut met = 0;
        for id in ids {
            let fingerprint = round.frontier.fingerprint(id);
            self.state.clear();
            graph.states.read(id, &mut self.state);
            let mut processes = ALL;
            if self.stubborn.is_some() {
                processes = self.processes(round, id)?;
                self.output.taken.push(processes);
            }
            let Worker { view, state, recent, earlier, batch, output: RoundOutput { targets, numbers, .. }, .. } = self;
            let summary = edges(view, state, fingerprint, processes, |successor| {
                let met = &mut recent[successor.fingerprint as usize & (RECENT - 1)];
                if met.0 != successor.fingerprint || met.1 < *earlier {
                    *met = (successor.fingerprint, *earlier + (numbers.len() + batch.len()) as u64);
                    let Successor { fingerprint, via, .. } = successor;
                    batch.push(Pending { fingerprint, parent: id as StateId, via });
                }
                targets.push((met.1 - *earlier) as u32);
            })?;
            self.output.ends.push((targets.len() - begin) as u32);
            met += summary.met;
            self.output.silent |= summary.silent;
            let finding = |property| Finding { property, fingerprint, depth: 0, run: None };
            if summary.fails && safety {
                // It is a violation, or a mistake of the model, which ends the search here.
                view.for_each_successor(state, fingerprint, ALL, |_, _| {})?;
                control.record(finding(control.assertion()));
            }
            if !summary.moves {
                self.output.terminals.push(id);
                if safety {
                    evaluate_properties(view, control, state, Changes::EVERYWHERE, true, |property| {
                        control.record(finding(property));
                    })?;
                }
            }
            if self.batch.len() >= BATCH || self.stubborn.is_some() {
                self.look_up(round)?;
            }
        }
        self.look_up(round)?;
        control.transitions.fetch_add(met, Relaxed);
        Ok(())
    }

    /// Look up the numbers of the batch; what is new is judged.
    ///
    /// With other workers, reads come first, so that their misses overlap: see `bfs`.
    fn look_up(&mut self, round: &Round) -> Result<()> {
        let Worker { batch, unknown, fresh, output: RoundOutput { numbers, .. }, .. } = self;
        let begin = numbers.len();
        fresh.clear();
        for (part, first) in batch.chunks(MOST).zip((0..).step_by(MOST)) {
            let mut session = round.session(part.len())?;
            part.iter().take(AHEAD).for_each(|pending| session.prefetch(pending.fingerprint));
            unknown.clear();
            for (place, pending) in (first..).zip(part) {
                if let Some(later) = batch.get(place + AHEAD) {
                    session.prefetch(later.fingerprint);
                }
                if round.alone {
                    let (number, new) = session.number_or(pending.fingerprint, round.next);
                    numbers.push(number);
                    if new {
                        fresh.push(place);
                    }
                } else {
                    let known = session.number(pending.fingerprint);
                    numbers.push(known.unwrap_or(0));
                    if known.is_none() {
                        unknown.push(place);
                    }
                }
            }
            for &place in unknown.iter() {
                let (number, new) = session.number_or(batch[place].fingerprint, round.next);
                numbers[begin + place] = number;
                if new {
                    fresh.push(place);
                }
            }
        }
        if round.next.load(Relaxed) >= MOST_STATES {
            return Err("the graph has more than 2**31 states".into());
        }
        self.keep_fresh(round, begin)?;
        self.batch.clear();
        Ok(())
    }

    /// Build and judge the new states of the batch, whose numbers begin there.
    fn keep_fresh(&mut self, round: &Round, begin: usize) -> Result<()> {
        let Worker { view, batch, fresh, output, .. } = self;
        for &place in fresh.iter() {
            let Pending { fingerprint, parent, via } = batch[place];
            let start = output.states.len();
            round.graph.states.read(parent as usize, &mut output.states);
            let state = &mut output.states[start..];
            let changes = view.take(state, via)?;
            let label = judge(view, round.labelling, state, fingerprint, changes, round.graph.label(parent))?;
            output.new.push(output.numbers[begin + place]);
            output.fingerprints.push(fingerprint);
            output.labels.push(label);
        }
        Ok(())
    }

    /// The processes whose transitions are enough in a state.
    fn processes(&mut self, round: &Round, id: usize) -> Result<u64> {
        let Some(stubborn) = &mut self.stubborn else { return Ok(ALL) };
        let processes = stubborn.processes(self.view.tables, &self.state)?;
        if processes == ALL {
            return Ok(ALL);
        }
        let proviso = stubborn.relations().needs_proviso();
        let mut successors = Vec::new();
        let fingerprint = round.frontier.fingerprint(id);
        let summary = edges(self.view, &self.state, fingerprint, processes, |successor| successors.push(successor))?;
        // What leaves its own process as it is may be silent elsewhere, in a state that is left out.
        let stays = successors.iter().any(|successor| self.view.stays(&self.state, successor.via));
        self.output.silent |= summary.silent || stays;
        let session = round.session(0)?;
        let later = |fingerprint: u64| session.number(fingerprint).is_none_or(|known| known as usize > id);
        // The cycle proviso is that of whole runs, and not the one that is enough for states. (A test leaves it out.)
        let mut later = successors.iter().map(|successor| later(successor.fingerprint));
        let every = !round.labelling.control.leaves_out("every-cycle");
        let forward = !proviso || if every { later.all(|later| later) } else { later.any(|later| later) };
        Ok(if summary.moves && forward { processes } else { ALL })
    }
}

/// The label of a state, from that of its parent: evaluate the predicates that a change may have touched. Properties of
/// states are looked at as well, if that is asked for.
fn judge(
    view: &mut View,
    labelling: Labelling,
    state: &[u32],
    fingerprint: u64,
    changes: Changes,
    mut label: u64,
) -> Result<u64> {
    let control = labelling.control;
    if labelling.safety {
        evaluate_properties(view, control, state, changes, false, |property| {
            control.record(Finding { property, fingerprint, depth: 0, run: None });
        })?;
    }
    for (bit, &predicate) in labelling.predicates.iter().enumerate() {
        if !control.reads.concern(predicate, changes) {
            continue;
        }
        let value = view.evaluate(predicate, state, &control.reads)?;
        if view.orbits.any() {
            view.audit_property(predicate, state, value, &control.reads)?;
        }
        label = label & !(1 << bit) | u64::from(value) << bit;
    }
    Ok(label)
}

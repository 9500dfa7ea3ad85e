//! Builds the graph of all states, breadth first, with several workers (`search::layers` has the driver).
//!
//! A round expands some states of one layer. The visited set numbers the states: a successor without a number gets the
//! next one. Layers follow each other, so a deeper state has a greater number. Within a layer, states are numbered in
//! the order in which workers reach them. This order is the same in each run only with one worker, or if the layer is
//! small. After the round, the edges and the new states of all workers are merged into the graph (`merge`).
//!
//! Partial-order reduction must know for each successor whether it will be expanded later, so it uses one worker.

use crate::live::graph::{Graph, Labelling, StateId, edges};
use crate::live::merge::{Frontier, RoundOutput, merge};
use crate::por::stubborn::{ALL, Stubborn};
use crate::search::control::{Finding, Limit};
use crate::search::layers::{self, BATCH, Batch, CHUNK, Layered, Origin};
use crate::search::visited::Visited;
use crate::system::initial::InitialState;
use crate::system::model::{Fault, Result};
use crate::system::reads::{Changes, evaluate_properties, is_within};
use crate::system::successors::View;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};

/// Edges that a round finds, by estimate: they are kept apart until the round ends.
const ROUND: usize = 1 << 21;
/// Fingerprints that were met a short while ago: siblings' successors meet at once.
const RECENT: usize = 1 << 14;
const MOST_STATES: u32 = 1 << 31;

/// Build the graph. States beyond the limits have no edges, and are not terminal.
pub(crate) fn build(view: &mut View, labelling: Labelling, stubborn: Option<Stubborn>) -> Result<Graph> {
    let control = labelling.control;
    let mut graph = Graph::new(view.width, labelling.predicates.len() + labelling.spare)?;
    let numbering = Visited::new(control.options.memory, usize::MAX, 64)?;
    let next = AtomicU32::new(0);
    let mut roots = Vec::new();
    for InitialState { state, .. } in view.tables.initial()?.iter() {
        let root = view.fingerprint(state);
        // With symmetry, several may be one.
        if !numbering.session(1, 0)?.number_or(root, &next).1 {
            continue;
        }
        let label = judge(view, labelling, state, root, Changes::EVERYWHERE, 0)?;
        graph.states.grow(roots.len() + 1, state.iter().copied().max().unwrap_or(0))?;
        graph.states.set(roots.len(), state);
        graph.labels.grow(roots.len() + 1)?;
        graph.labels.set(roots.len(), label << 1);
        if !is_within(view, control, state, Changes::EVERYWHERE, |p| control.record(Finding::of_state(p, root)))? {
            graph.outside.insert(roots.len() as StateId);
            control.note_outside(view.tables, None);
        }
        roots.push(root);
    }
    graph.roots = roots.len();
    control.visits.store(roots.len().min(control.options.max_states) as u64, Relaxed);
    if roots.len() > control.options.max_states {
        control.stop_at(Limit::MaxStates);
    }
    control.transitions.store(0, Relaxed);

    let tables = view.tables;
    let reduced = stubborn.is_some();
    let count = if reduced { 1 } else { control.options.workers.max(1) };
    let mut others: Vec<View> = (1..count).map(|_| View::new(tables)).collect();
    let mut workers: Vec<Worker> = std::iter::once(view).chain(&mut others).map(Worker::new).collect();
    workers[0].stubborn = stubborn;
    let frontier = Frontier { start: 0, end: roots.len(), these: roots, next: Vec::new() };
    let mut builder = Builder { graph, frontier, labelling, numbering, next, round: 0..0, at: 0.into() };
    layers::run(tables, control, &mut builder, &mut workers)?;

    let mut graph = builder.graph;
    control.frontier.store(0, Relaxed);
    let edges = graph.targets.len() as u64;
    let expanded = graph.offsets.len();
    graph.offsets.extend(std::iter::repeat_n(edges, graph.len() + 1 - expanded))?;
    if reduced {
        graph.taken.resize(graph.len(), ALL);
    }
    Ok(graph)
}

/// What the workers share.
struct Builder<'a> {
    graph: Graph,
    frontier: Frontier,
    labelling: Labelling<'a>,
    numbering: Visited,
    /// The number of the next new state.
    next: AtomicU32,
    /// The states of this round, and the first that no worker has taken yet.
    round: Range<usize>,
    at: AtomicUsize,
}

impl<'v, 't> Layered<Worker<'v, 't>> for Builder<'_> {
    const SMALL: usize = 4 * CHUNK;

    /// A round has states of one layer, and about as many edges as memory is set aside for.
    fn begin(&mut self) -> Option<usize> {
        let start = self.round.end;
        if start == self.graph.len() {
            return None;
        }
        let degree = self.graph.targets.len() / start.max(1) + 1;
        self.round = start..self.frontier.end.min(start + (ROUND / degree).max(Self::SMALL));
        self.at = start.into();
        Some(self.round.len())
    }

    fn expand(&self, worker: &mut Worker<'v, 't>, alone: bool) {
        let control = self.labelling.control;
        let others = if alone { 0 } else { control.options.workers - 1 };
        while !control.stopped() {
            let first = self.at.fetch_add(CHUNK, Relaxed);
            if first >= self.round.end {
                break;
            }
            if let Err(fault) = worker.expand(self, first..self.round.end.min(first + CHUNK), others) {
                worker.fault = Some(fault);
                self.at.store(self.round.end, Relaxed);
                break;
            }
            let met = self.next.load(Relaxed) as usize;
            control.visits.fetch_max(met.min(control.options.max_states) as u64, Relaxed);
            control.frontier.store(met - first, Relaxed);
            if met > control.options.max_states {
                control.stop_at(Limit::MaxStates);
            }
        }
    }

    fn merge(&mut self, workers: &mut [Worker<'v, 't>], alone: bool) -> Result<()> {
        if let Some(fault) = workers.iter_mut().find_map(|worker| worker.fault.take()) {
            return Err(fault);
        }
        let outputs: Vec<&RoundOutput> = workers.iter().map(|worker| &worker.output).collect();
        merge(&mut self.graph, &mut self.frontier, &outputs, self.round.clone(), !alone)?;
        self.graph.outside.extend(outputs.iter().flat_map(|output| &output.outside));
        workers.iter_mut().for_each(Worker::begin);
        if self.round.end == self.frontier.end && self.round.end < self.graph.len() {
            self.frontier.advance();
            self.graph.depth += 1;
        }
        self.labelling.control.depth.store(self.graph.depth, Relaxed);
        Ok(())
    }
}

/// Aligned, so that two workers share no cache line.
#[repr(align(128))]
struct Worker<'v, 't> {
    view: &'v mut View<'t>,
    /// The one that is expanded.
    state: Vec<u32>,
    /// Fingerprints with their places among the numbers that were looked up, in all rounds. `earlier` counts the numbers of
    /// earlier rounds.
    recent: Box<[(u64, u64)]>,
    earlier: u64,
    /// Its parents are states of the graph.
    batch: Batch,
    output: RoundOutput,
    fault: Option<Fault>,
    stubborn: Option<Stubborn>,
}

impl<'v, 't> Worker<'v, 't> {
    fn new(view: &'v mut View<'t>) -> Self {
        Worker {
            view,
            state: Vec::new(),
            recent: vec![(0, 0); RECENT].into(),
            earlier: 0,
            batch: Batch::default(),
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

    /// Find the edges of some states.
    fn expand(&mut self, round: &Builder, ids: Range<usize>, others: usize) -> Result<()> {
        let Labelling { control, safety, .. } = round.labelling;
        let graph = &round.graph;
        let begin = self.output.targets.len();
        self.output.chunks.push((ids.start, begin, self.output.ends.len()));
        let mut met = 0;
        for id in ids {
            let fingerprint = round.frontier.fingerprint(id);
            self.state.clear();
            graph.states.read(id, &mut self.state);
            let mut processes = ALL;
            if graph.outside.contains(&(id as StateId)) {
                self.output.ends.push((self.output.targets.len() - begin) as u32);
                if self.stubborn.is_some() {
                    self.output.taken.push(ALL);
                }
                continue;
            }
            if self.stubborn.is_some() {
                processes = self.processes(round, id)?;
                self.output.taken.push(processes);
            }
            let Worker { view, state, recent, earlier, batch, output: RoundOutput { targets, numbers, .. }, .. } = self;
            let summary = edges(view, state, fingerprint, processes, |successor| {
                let met = &mut recent[successor.fingerprint as usize & (RECENT - 1)];
                if met.0 != successor.fingerprint || met.1 < *earlier {
                    *met = (successor.fingerprint, *earlier + (numbers.len() + batch.len()) as u64);
                    batch.push(successor.fingerprint, id as StateId, successor.via);
                }
                targets.push((met.1 - *earlier) as u32);
            })?;
            self.output.ends.push((targets.len() - begin) as u32);
            met += summary.met;
            self.output.silent |= summary.silent;
            let finding = |property| Finding::of_state(property, fingerprint);
            if summary.fails && safety {
                // It is a violation, or a mistake of the model, which ends the search here.
                let summary = view.for_each_successor(state, fingerprint, ALL, |_, _| {})?;
                control.failed(summary).for_each(|property| control.record(finding(property)));
            }
            if summary.moves && view.rests(state)? {
                self.output.terminals.push(id);
                self.output.rests += 1;
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
                self.look_up(round, others)?;
            }
        }
        self.look_up(round, others)?;
        control.transitions.fetch_add(met, Relaxed);
        Ok(())
    }

    /// Look up the numbers of the batch; what is new is judged.
    fn look_up(&mut self, round: &Builder, others: usize) -> Result<()> {
        let Worker { batch, output: RoundOutput { numbers, .. }, .. } = self;
        let begin = numbers.len();
        batch.look_up(
            &round.numbering,
            others,
            numbers,
            |session, fingerprint| session.number(fingerprint),
            |session, fingerprint, _| session.number_or(fingerprint, &round.next),
        )?;
        if round.next.load(Relaxed) >= MOST_STATES {
            return Err("the graph has more than 2**31 states".into());
        }
        self.keep_fresh(round, begin)?;
        self.batch.clear();
        Ok(())
    }

    /// Build and judge the new states of the batch, whose numbers begin there.
    fn keep_fresh(&mut self, round: &Builder, begin: usize) -> Result<()> {
        let Worker { view, batch, output, .. } = self;
        for &place in &batch.fresh {
            let (fingerprint, Origin { parent, via }) = (batch.fingerprints[place], batch.origins[place]);
            let start = output.states.len();
            round.graph.states.read(parent as usize, &mut output.states);
            let state = &mut output.states[start..];
            let changes = view.take(state, via)?;
            let number = output.numbers[begin + place];
            // A state beyond the limit has a number, because an edge leads to it. It is not looked at, and has no edges.
            let label = if (number as usize) < round.labelling.control.options.max_states {
                judge(view, round.labelling, state, fingerprint, changes, round.graph.label(parent))?
            } else {
                0
            };
            let control = round.labelling.control;
            if !is_within(view, control, state, changes, |p| control.record(Finding::of_state(p, fingerprint)))? {
                output.outside.push(number);
                let node = view.situated(&round.graph.state(parent), via.process as usize)?;
                control.note_outside(view.tables, Some((node, via)));
            }
            output.new.push(number);
            output.fingerprints.push(fingerprint);
            output.labels.push(label);
        }
        Ok(())
    }

    /// The processes whose transitions are enough in a state.
    fn processes(&mut self, round: &Builder, id: usize) -> Result<u64> {
        let Some(stubborn) = &mut self.stubborn else { return Ok(ALL) };
        let processes = stubborn.processes(self.view, &self.state)?;
        if processes == ALL {
            return Ok(ALL);
        }
        let proviso = stubborn.relations().needs_proviso();
        let mut successors = Vec::new();
        let fingerprint = round.frontier.fingerprint(id);
        let summary = edges(self.view, &self.state, fingerprint, processes, |successor| successors.push(successor))?;
        // What leaves its own process as it is may be silent elsewhere, in a state that is left out.
        let mut stays = false;
        for successor in &successors {
            stays |= self.view.stays(&self.state, successor.via)?;
        }
        self.output.silent |= summary.silent || stays;
        let session = round.numbering.session(0, 0)?;
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
            control.record(Finding::of_state(property, fingerprint));
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
        if value.is_none() {
            control.record(Finding::of_state(control.exception(), fingerprint));
        }
        label = label & !(1 << bit) | u64::from(value == Some(true)) << bit;
    }
    Ok(label)
}

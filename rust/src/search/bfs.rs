//! Breadth-first search (`layers` has the driver). Every counterexample is a shortest one, with any number of workers.
//!
//! A search may begin with narrow fingerprints, which are faster, and *widen* them between two layers. What was visited is
//! visited again for that, layer by layer, but not judged again: the steps are tabulated, so that the model is asked nothing.
//! If there are more states this time, two had one narrow fingerprint, and the search starts over with wide ones. So what
//! counts at the end is the probability of wide fingerprints.

use crate::por::stubborn::{ALL, Stubborn};
use crate::search::control::{Control, Finding, Limit};
use crate::search::layers::{self, BATCH, Batch, CHUNK, Layered};
use crate::search::visited::Visited;
use crate::search::width::{self, Bits64, Bits96, Bits128, Width};
use crate::system::hash::Sum;
use crate::system::initial::InitialState;
use crate::system::model::Result;
use crate::system::reads::{Changes, evaluate_properties, is_within};
use crate::system::successors::{SuccessorSummary, View};
use crate::system::tables::Tables;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::sync::atomic::Ordering::Relaxed;

/// The bits that narrow fingerprints are widened to.
const WIDER: u32 = 96;

/// States laid end to end; each is its components and its fingerprint.
type Chunk = Vec<u32>;

/// Aligned, so that two workers share no cache line.
#[repr(align(128))]
struct Worker<'t, W: Width> {
    view: View<'t>,
    recent: Recent,
    /// Its parents are places in the chunk.
    batch: Batch<W>,
    next: Chunk,
    stubborn: Option<Stubborn>,
    /// States of the chunk that were expanded in part, with the processes whose transitions were taken, where a run may
    /// come back to a state: if none of these lead to a new state, the others must be taken too.
    partial: Vec<(u32, u64)>,
}

/// Fingerprints that this worker met a short while ago, in a table that stays in the cache: states that follow each other
/// in a layer are often siblings, whose successors meet again at once, and need not be looked up twice. Of a wide fingerprint,
/// it has 64 bits that depend on all.
struct Recent(Box<[u64]>);

impl Recent {
    fn new() -> Recent {
        Recent(vec![0; 1 << 15].into())
    }

    /// Whether the fingerprint was met; it is remembered afterwards.
    #[inline]
    fn meet<S: Sum>(&mut self, fingerprint: S) -> bool {
        let fingerprint = fingerprint.low() ^ fingerprint.high();
        let slot = fingerprint as usize & (self.0.len() - 1);
        std::mem::replace(&mut self.0[slot], fingerprint) == fingerprint
    }
}

/// The layer that is expanded, and the states met for the next one.
struct Layer<'c> {
    control: &'c Control,
    visited: &'c Visited,
    /// How many layers were expanded before, and are not judged again: 0 in a search.
    again: u32,
    /// The search ends when there are more states than this between two layers: then fingerprints are to become wider.
    narrow: usize,
    depth: u32,
    /// How many states.
    size: usize,
    chunks: Mutex<Vec<Chunk>>,
    next: Mutex<Vec<Chunk>>,
    /// Numbers per state in a chunk.
    width: usize,
    /// It is known that the layer at the limit of the depth leads to no new state.
    nothing_beyond: bool,
}

pub fn search(tables: &Tables, control: &Control) -> Result<()> {
    match control.visited.bits() {
        64 => {
            let mut workers = workers::<Bits64>(tables, control, views(tables, control));
            let mut layer = begun(tables, control, &control.visited, &mut workers[0])?;
            finish(tables, control, &mut layer, &mut workers)?;
            if !control.stopped() && control.visited.len() > layer.narrow {
                return widen(tables, control, &layer, workers);
            }
            Ok(())
        }
        96 => search_of::<Bits96>(tables, control, views(tables, control)),
        _ => search_of::<Bits128>(tables, control, views(tables, control)),
    }
}

fn search_of<'t, W: Width>(tables: &'t Tables, control: &Control, views: Vec<View<'t>>) -> Result<()> {
    let mut workers = workers::<W>(tables, control, views);
    let mut layer = begun(tables, control, &control.visited, &mut workers[0])?;
    finish(tables, control, &mut layer, &mut workers)
}

fn views<'t>(tables: &'t Tables, control: &Control) -> Vec<View<'t>> {
    (0..control.options.workers).map(|_| View::new(tables)).collect()
}

fn workers<'t, W: Width>(tables: &'t Tables, control: &Control, views: Vec<View<'t>>) -> Vec<Worker<'t, W>> {
    views
        .into_iter()
        .map(|view| Worker {
            view,
            recent: Recent::new(),
            batch: Batch::default(),
            next: Vec::new(),
            stubborn: control.relations().map(|relations| Stubborn::new(relations, tables.model.shape())),
            partial: Vec::new(),
        })
        .collect()
}

/// The first layer.
fn begun<'c, W: Width>(
    tables: &Tables,
    control: &'c Control,
    visited: &'c Visited,
    worker: &mut Worker<W>,
) -> Result<Layer<'c>> {
    begun_again(tables, control, visited, worker, 0)
}

/// The first layer, of a search that expands so many layers again.
fn begun_again<'c, W: Width>(
    tables: &Tables,
    control: &'c Control,
    visited: &'c Visited,
    worker: &mut Worker<W>,
    again: u32,
) -> Result<Layer<'c>> {
    let mut layer = Layer {
        control,
        visited,
        again,
        narrow: if W::BITS == 64 { control.options.narrow } else { usize::MAX },
        depth: 0,
        size: 0,
        chunks: Mutex::default(),
        next: Mutex::default(),
        width: tables.model.shape().width() + W::NUMBERS,
        nothing_beyond: false,
    };
    worker.begin(&mut layer, &tables.initial()?)?;
    Ok(layer)
}

/// Go on with wide fingerprints after a layer.
fn widen(tables: &Tables, control: &Control, layer: &Layer, narrow: Vec<Worker<Bits64>>) -> Result<()> {
    let visited = Visited::new(control.options.memory, usize::MAX, WIDER)?;
    let views = narrow.into_iter().map(|worker| worker.view).collect();
    let mut workers = workers::<Bits96>(tables, control, views);
    let mut wide = begun_again(tables, control, &visited, &mut workers[0], layer.depth)?;
    layers::run(tables, control, &mut wide, &mut workers)?;
    if control.stopped() {
        return Ok(()); // What the narrow fingerprints say stays.
    }
    let equal = (visited.len(), wide.size, wide.depth) == (control.visited.len(), layer.size, layer.depth);
    let Layer { depth, size, chunks, .. } = wide;
    control.visited.replace(visited);
    if !equal {
        control.begin(None)?;
        return search_of::<Bits96>(tables, control, workers.into_iter().map(|worker| worker.view).collect());
    }
    let (visited, width) = (&control.visited, tables.model.shape().width() + Bits96::NUMBERS);
    let next = Mutex::default();
    let (again, narrow, nothing_beyond) = (0, usize::MAX, false);
    let mut wide = Layer { control, visited, again, narrow, depth, size, chunks, next, width, nothing_beyond };
    finish(tables, control, &mut wide, &mut workers)
}

/// Expand layers until the end.
fn finish<'t, W: Width>(
    tables: &'t Tables,
    control: &Control,
    layer: &mut Layer,
    workers: &mut Vec<Worker<'t, W>>,
) -> Result<()> {
    layers::run(tables, control, layer, workers)?;
    if layer.size > 0
        && layer.visited.len() <= layer.narrow
        && layer.depth >= control.options.max_depth
        && !control.stopped()
    {
        layer.nothing_beyond = !workers[0].leads_beyond(layer)?;
        if !layer.nothing_beyond {
            control.cut(Limit::MaxDepth);
        }
        layers::run(tables, control, layer, workers)?;
    }
    Ok(())
}

impl<'t, W: Width> Layered<Worker<'t, W>> for Layer<'_> {
    const SMALL: usize = 2 * CHUNK;

    /// A round is a layer.
    fn begin(&mut self) -> Option<usize> {
        if self.again > 0 {
            return (self.size > 0 && self.depth < self.again).then_some(self.size);
        }
        if self.size == 0 || self.visited.len() > self.narrow {
            return None;
        }
        self.control.depth.store(self.depth, Relaxed);
        self.control.frontier.store(self.size, Relaxed);
        if self.depth >= self.control.options.max_depth && !self.nothing_beyond {
            return None;
        }
        Some(self.size)
    }

    fn expand(&self, worker: &mut Worker<'t, W>, alone: bool) {
        let others = if alone { 0 } else { self.control.options.workers - 1 };
        while !self.control.stopped() {
            let Some(chunk) = self.chunks.lock().pop() else {
                break;
            };
            if let Err(fault) = worker.expand(self, &chunk, others) {
                self.control.fail(fault);
            }
        }
        if !worker.next.is_empty() {
            self.next.lock().push(std::mem::take(&mut worker.next));
        }
    }

    fn merge(&mut self, _: &mut [Worker<'t, W>], _: bool) -> Result<()> {
        let chunks = std::mem::take(self.next.get_mut());
        self.size = chunks.iter().map(|chunk| chunk.len() / self.width).sum();
        *self.chunks.get_mut() = chunks;
        self.depth += 1;
        Ok(())
    }
}

impl<W: Width> Worker<'_, W> {
    /// Make the first layer, from the initial states.
    fn begin(&mut self, layer: &mut Layer, initial: &[InitialState]) -> Result<()> {
        let control = layer.control;
        let mut states: Chunk = Vec::new();
        for InitialState { state, .. } in initial {
            let sum: W::Sum = self.view.fingerprint_of(state);
            let fingerprint = sum.low();
            // With symmetry, several may be one.
            if !layer.visited.session_of::<W>(1, 0)?.insert(sum, fingerprint) {
                continue;
            }
            let raised = |property| control.record(Finding::of_state(property, fingerprint));
            if layer.again == 0 {
                evaluate_properties(&mut self.view, control, state, Changes::EVERYWHERE, false, raised)?;
            }
            if !is_within(&mut self.view, control, state, Changes::EVERYWHERE, raised)? {
                if layer.again == 0 {
                    control.note_outside(self.view.tables, None);
                }
                continue;
            }
            states.extend_from_slice(state);
            width::append::<W>(&mut states, sum);
        }
        control.pulse(self.view.tables);
        layer.size = states.len() / layer.width;
        *layer.chunks.get_mut() = states.chunks(CHUNK * layer.width).map(<[u32]>::to_vec).collect();
        Ok(())
    }

    /// Expand the states of a chunk.
    fn expand(&mut self, layer: &Layer, chunk: &[u32], others: usize) -> Result<()> {
        let control = layer.control;
        let (mut transitions, mut terminals, mut partial) = (0, 0, 0);
        for (index, entry) in chunk.chunks_exact(layer.width).enumerate() {
            let (state, sum) = width::parts::<W>(entry);
            let fingerprint = sum.low();
            let processes = match &mut self.stubborn {
                Some(stubborn) => stubborn.processes(&mut self.view, state)?,
                None => ALL,
            };
            let mut summary = self.push_successors(index, state, sum, processes)?;
            if !summary.leads_on && processes != ALL {
                summary.add(self.push_successors(index, state, sum, !processes)?);
            } else if processes != ALL && self.stubborn.as_ref().is_some_and(|s| s.relations().needs_proviso()) {
                self.partial.push((index as u32, processes));
            }
            if layer.again > 0 {
                if self.batch.len() >= BATCH {
                    self.flush(layer, chunk, others)?;
                }
                continue;
            }
            transitions += summary.transitions;
            partial += u64::from(processes != ALL);
            for property in control.failed(summary) {
                control.record(Finding { property, fingerprint, depth: layer.depth + 1, run: None });
            }
            if !summary.moves {
                terminals += 1;
                control.note_terminal(fingerprint);
                evaluate_properties(&mut self.view, control, state, Changes::EVERYWHERE, true, |property| {
                    control.record(Finding { property, fingerprint, depth: layer.depth, run: None });
                })?;
            }
            if self.batch.len() >= BATCH {
                self.flush(layer, chunk, others)?;
            }
        }
        self.flush(layer, chunk, others)?;
        control.transitions.fetch_add(transitions, Relaxed);
        control.terminal.fetch_add(terminals, Relaxed);
        control.partial.fetch_add(partial, Relaxed);
        control.pulse(self.view.tables);
        Ok(())
    }

    /// Whether a step from this layer leads to a state that was not met, or fails: then a limit on the depth cuts it off.
    fn leads_beyond(&mut self, layer: &Layer) -> Result<bool> {
        let visited = layer.visited;
        for chunk in layer.chunks.lock().iter() {
            for entry in chunk.chunks_exact(layer.width) {
                let (state, sum) = width::parts::<W>(entry);
                let session = visited.session_of::<W>(0, 0)?;
                let mut new = false;
                let summary = self.view.for_each_successor(state, sum, ALL, |there, _| {
                    new |= !session.contains(there);
                })?;
                if new || summary.fails || summary.raises {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Put the successors of a state of the chunk into the batch.
    #[inline]
    fn push_successors(
        &mut self,
        index: usize,
        state: &[u32],
        sum: W::Sum,
        processes: u64,
    ) -> Result<SuccessorSummary> {
        let (recent, batch) = (&mut self.recent, &mut self.batch);
        self.view.for_each_successor(state, sum, processes, |there, via| {
            if !recent.meet(there) {
                batch.push(there, index as u32, via);
            }
        })
    }

    /// Look the batch up, and then what follows from the states that turned out to be expanded too little.
    fn flush(&mut self, layer: &Layer, chunk: &[u32], others: usize) -> Result<()> {
        let control = layer.control;
        let mut partial = std::mem::take(&mut self.partial);
        if !partial.is_empty() {
            self.look_up(layer, chunk, others)?;
            let led_on: FxHashSet<u32> = self.batch.fresh.iter().map(|&at| self.batch.origins[at].parent).collect();
            self.batch.clear();
            partial.retain(|(index, _)| !led_on.contains(index));
            for (index, processes) in partial {
                let from = index as usize * layer.width;
                let (state, sum) = width::parts::<W>(&chunk[from..from + layer.width]);
                let fingerprint = sum.low();
                let summary = self.push_successors(index as usize, state, sum, !processes)?;
                control.transitions.fetch_add(summary.transitions, Relaxed);
                for property in control.failed(summary) {
                    control.record(Finding { property, fingerprint, depth: layer.depth + 1, run: None });
                }
            }
        }
        self.look_up(layer, chunk, others)?;
        self.batch.clear();
        Ok(())
    }

    /// Look the batch up in the visited set; what is new is judged and goes into the next layer. (The new states are built
    /// without holding the visited set.)
    fn look_up(&mut self, layer: &Layer, chunk: &[u32], others: usize) -> Result<()> {
        let Worker { view, batch, next, .. } = self;
        let (control, width) = (layer.control, layer.width);
        let parent = |index: u32| &chunk[index as usize * width..][..width];
        batch.look_up(
            layer.visited,
            others,
            &mut Vec::new(),
            |session, fingerprint| session.contains(fingerprint).then_some(()),
            // The hint is the upper half of the parent's key.
            |session, fingerprint, origin| {
                let hint = u64::from(parent(origin.parent)[width - W::NUMBERS + 1]) << 32;
                ((), session.insert(fingerprint, hint))
            },
        )?;
        for &at in &batch.fresh {
            let (sum, origin) = (batch.fingerprints[at], batch.origins[at]);
            let fingerprint = sum.low();
            let start = next.len();
            next.extend_from_slice(&parent(origin.parent)[..width - W::NUMBERS]);
            let changes = view.take(&mut next[start..], origin.via)?;
            let found = |property| control.record(Finding { property, fingerprint, depth: layer.depth + 1, run: None });
            if layer.again == 0 {
                evaluate_properties(view, control, &next[start..], changes, false, found)?;
            }
            if !is_within(view, control, &next[start..], changes, found)? {
                next.truncate(start);
                if layer.again > 0 {
                    continue;
                }
                let node = view.situated(parent(origin.parent), origin.via.process as usize)?;
                control.note_outside(view.tables, Some((node, origin.via)));
                continue;
            }
            width::append::<W>(next, sum);
            if next.len() >= CHUNK * width {
                layer.next.lock().push(std::mem::replace(next, Vec::with_capacity(CHUNK * width)));
            }
        }
        Ok(())
    }
}

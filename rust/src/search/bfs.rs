//! Breadth-first search (`layers` has the driver). Every counterexample is a shortest one, with any number of workers.

use crate::por::stubborn::{ALL, Stubborn};
use crate::search::control::{Control, Finding, Limit};
use crate::search::layers::{self, BATCH, Batch, CHUNK, Layered};
use crate::system::initial::InitialState;
use crate::system::model::Result;
use crate::system::reads::{Changes, evaluate_properties, is_within};
use crate::system::successors::{SuccessorSummary, View};
use crate::system::tables::Tables;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::sync::atomic::Ordering::Relaxed;

/// States laid end to end; each is its components and the two halves of its fingerprint.
type Chunk = Vec<u32>;

/// Aligned, so that two workers share no cache line.
#[repr(align(128))]
struct Worker<'t> {
    view: View<'t>,
    recent: Recent,
    /// Its parents are places in the chunk.
    batch: Batch,
    next: Chunk,
    stubborn: Option<Stubborn>,
    /// States of the chunk that were expanded in part, with the processes whose transitions were taken, where a run may
    /// come back to a state: if none of these lead to a new state, the others must be taken too.
    partial: Vec<(u32, u64)>,
}

/// Fingerprints that this worker met a short while ago, in a table that stays in the cache: states that follow each other
/// in a layer are often siblings, whose successors meet again at once, and need not be looked up twice.
struct Recent(Box<[u64]>);

impl Recent {
    fn new() -> Recent {
        Recent(vec![0; 1 << 15].into())
    }

    /// Whether the fingerprint was met; it is remembered afterwards.
    #[inline]
    fn meet(&mut self, fingerprint: u64) -> bool {
        let slot = fingerprint as usize & (self.0.len() - 1);
        std::mem::replace(&mut self.0[slot], fingerprint) == fingerprint
    }
}

/// The layer that is expanded, and the states met for the next one.
struct Layer<'c> {
    control: &'c Control,
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
    let mut workers: Vec<Worker> = (0..control.options.workers)
        .map(|_| Worker {
            view: View::new(tables),
            recent: Recent::new(),
            batch: Batch::default(),
            next: Vec::new(),
            stubborn: control.relations().map(|relations| Stubborn::new(relations, tables.model.shape())),
            partial: Vec::new(),
        })
        .collect();

    let width = tables.model.shape().width() + 2;
    let mut layer = Layer {
        control,
        depth: 0,
        size: 0,
        chunks: Mutex::default(),
        next: Mutex::default(),
        width,
        nothing_beyond: false,
    };
    workers[0].begin(&mut layer, &tables.initial()?)?;
    layers::run(tables, control, &mut layer, &mut workers)?;
    if layer.size > 0 && layer.depth >= control.options.max_depth && !control.stopped() {
        layer.nothing_beyond = !workers[0].leads_beyond(&layer)?;
        if !layer.nothing_beyond {
            control.cut(Limit::MaxDepth);
        }
        layers::run(tables, control, &mut layer, &mut workers)?;
    }
    Ok(())
}

impl<'t> Layered<Worker<'t>> for Layer<'_> {
    const SMALL: usize = 2 * CHUNK;

    /// A round is a layer.
    fn begin(&mut self) -> Option<usize> {
        if self.size == 0 {
            return None;
        }
        self.control.depth.store(self.depth, Relaxed);
        self.control.frontier.store(self.size, Relaxed);
        if self.depth >= self.control.options.max_depth && !self.nothing_beyond {
            return None;
        }
        Some(self.size)
    }

    fn expand(&self, worker: &mut Worker<'t>, alone: bool) {
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

    fn merge(&mut self, _: &mut [Worker<'t>], _: bool) -> Result<()> {
        let chunks = std::mem::take(self.next.get_mut());
        self.size = chunks.iter().map(|chunk| chunk.len() / self.width).sum();
        *self.chunks.get_mut() = chunks;
        self.depth += 1;
        Ok(())
    }
}

impl Worker<'_> {
    /// Make the first layer, from the initial states.
    fn begin(&mut self, layer: &mut Layer, initial: &[InitialState]) -> Result<()> {
        let control = layer.control;
        let mut states: Chunk = Vec::new();
        for InitialState { state, .. } in initial {
            let fingerprint = self.view.fingerprint(state);
            // With symmetry, several may be one.
            if !control.visited.session(1, 0)?.insert(fingerprint, fingerprint) {
                continue;
            }
            evaluate_properties(&mut self.view, control, state, Changes::EVERYWHERE, false, |property| {
                control.record(Finding { property, fingerprint, depth: 0, run: None });
            })?;
            let raised = |property| control.record(Finding::of_state(property, fingerprint));
            if !is_within(&mut self.view, control, state, Changes::EVERYWHERE, raised)? {
                control.note_outside(self.view.tables, None);
                continue;
            }
            states.extend_from_slice(state);
            states.extend([fingerprint as u32, (fingerprint >> 32) as u32]);
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
            let (state, fingerprint) = parts(entry);
            let processes = match &mut self.stubborn {
                Some(stubborn) => stubborn.processes(&mut self.view, state)?,
                None => ALL,
            };
            let mut summary = self.push_successors(index, state, fingerprint, processes)?;
            if !summary.leads_on && processes != ALL {
                summary.add(self.push_successors(index, state, fingerprint, !processes)?);
            } else if processes != ALL && self.stubborn.as_ref().is_some_and(|s| s.relations().needs_proviso()) {
                self.partial.push((index as u32, processes));
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
        let visited = &layer.control.visited;
        for chunk in layer.chunks.lock().iter() {
            for entry in chunk.chunks_exact(layer.width) {
                let (state, fingerprint) = parts(entry);
                let session = visited.session(0, 0)?;
                let mut new = false;
                let summary = self.view.for_each_successor(state, fingerprint, ALL, |there, _| {
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
        fingerprint: u64,
        processes: u64,
    ) -> Result<SuccessorSummary> {
        let (recent, batch) = (&mut self.recent, &mut self.batch);
        self.view.for_each_successor(state, fingerprint, processes, |there, via| {
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
                let (state, fingerprint) = parts(&chunk[from..from + layer.width]);
                let summary = self.push_successors(index as usize, state, fingerprint, !processes)?;
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
            &control.visited,
            others,
            &mut Vec::new(),
            |session, fingerprint| session.contains(fingerprint).then_some(()),
            // The hint is the upper half of the parent's fingerprint.
            |session, fingerprint, origin| {
                let hint = u64::from(parent(origin.parent)[width - 1]) << 32;
                ((), session.insert(fingerprint, hint))
            },
        )?;
        for &at in &batch.fresh {
            let (fingerprint, origin) = (batch.fingerprints[at], batch.origins[at]);
            let start = next.len();
            next.extend_from_slice(&parent(origin.parent)[..width - 2]);
            let changes = view.take(&mut next[start..], origin.via)?;
            let found = |property| control.record(Finding { property, fingerprint, depth: layer.depth + 1, run: None });
            evaluate_properties(view, control, &next[start..], changes, false, found)?;
            if !is_within(view, control, &next[start..], changes, found)? {
                next.truncate(start);
                let node = view.situated(parent(origin.parent), origin.via.process as usize)?;
                control.note_outside(view.tables, Some((node, origin.via)));
                continue;
            }
            next.extend([fingerprint as u32, (fingerprint >> 32) as u32]);
            if next.len() >= CHUNK * width {
                layer.next.lock().push(std::mem::replace(next, Vec::with_capacity(CHUNK * width)));
            }
        }
        Ok(())
    }
}

/// A state of a chunk, and its fingerprint.
fn parts(entry: &[u32]) -> (&[u32], u64) {
    let (state, halves) = entry.split_at(entry.len() - 2);
    (state, u64::from(halves[0]) | u64::from(halves[1]) << 32)
}

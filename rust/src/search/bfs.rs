//! Breadth-first search, layer by layer: every counterexample is a shortest one, with any number of workers.
//!
//! A worker expands a chunk of the layer into a batch of successor fingerprints, and only then looks them up, with their
//! slots prefetched: what bounds the speed is the latency of the visited set, and this way many misses overlap.

use crate::por::stubborn::{ALL, Stubborn};
use crate::search::control::{Control, Finding, Limit};
use crate::search::visited::Session;
use crate::system::model::Result;
use crate::system::reads::{Changes, evaluate_properties};
use crate::system::tables::Tables;
use crate::system::view::{SuccessorSummary, TransitionRef, View};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::sync::atomic::Ordering::Relaxed;

const BATCH: usize = 512;
const AHEAD: usize = 16;
const CHUNK: usize = 256;
/// Layers of fewer states are not worth waking the other workers for.
const SMALL: usize = 2 * CHUNK;
/// Nor are layers in which the model is asked more often than once in so many states: it is asked by one worker at a time,
/// and asking takes longer than expanding this many.
const ASKING: usize = 128;

/// States laid end to end; each is its components and the two halves of its fingerprint.
type Chunk = Vec<u32>;

/// Aligned, so that two workers share no cache line.
#[repr(align(128))]
struct Worker<'t> {
    view: View<'t>,
    recent: Recent,
    batch: Batch,
    /// Indices of what is new in the batch.
    fresh: Vec<usize>,
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

/// Successors that wait to be looked up.
#[derive(Default)]
struct Batch {
    fingerprints: Vec<u64>,
    /// Where in the chunk the parent is, and how to get from it to here.
    origins: Vec<(u32, TransitionRef)>,
}

struct Layer {
    depth: u32,
    chunks: Mutex<Vec<Chunk>>,
    next: Mutex<Vec<Chunk>>,
}

pub fn search(tables: &Tables, control: &Control) -> Result<()> {
    let workers = control.options.workers;
    let mut crew: Vec<Worker> = (0..workers)
        .map(|_| Worker {
            view: View::new(tables),
            recent: Recent::new(),
            batch: Batch::default(),
            fresh: Vec::new(),
            next: Vec::new(),
            stubborn: control.relations().map(|relations| Stubborn::new(relations, tables.model.shape())),
            partial: Vec::new(),
        })
        .collect();
    let width = crew[0].view.width + 2;

    let mut chunk = tables.initial()?;
    let fingerprint = crew[0].view.fingerprint(&chunk);
    control.visited.session(1, 0)?.insert(fingerprint, fingerprint);
    evaluate_properties(&mut crew[0].view, control, &chunk, Changes::EVERYWHERE, false, |property| {
        control.record(Finding { property, fingerprint, depth: 0, run: None });
    })?;
    chunk.extend([fingerprint as u32, (fingerprint >> 32) as u32]);

    let mut layer = Layer { depth: 0, chunks: Mutex::new(vec![chunk]), next: Mutex::default() };
    let (mut size, mut busy) = (1, false);
    while size > 0 && !control.stopped() {
        control.depth.store(layer.depth, Relaxed);
        control.frontier.store(size, Relaxed);
        if layer.depth >= control.options.max_depth {
            control.cut(Limit::MaxDepth);
            return Ok(());
        }
        let asked = tables.fillings();
        if workers == 1 || size < SMALL || busy {
            crew[0].work(control, &layer);
        } else {
            std::thread::scope(|scope| {
                for worker in &mut crew {
                    let layer = &layer;
                    scope.spawn(move || tables.model.in_thread(&mut || worker.work(control, layer)));
                }
            });
        }
        busy = (tables.fillings() - asked) * ASKING > size;
        let chunks = std::mem::take(&mut *layer.next.lock());
        size = chunks.iter().map(|c| c.len() / width).sum();
        layer = Layer { depth: layer.depth + 1, chunks: Mutex::new(chunks), next: Mutex::default() };
    }
    Ok(())
}

impl Worker<'_> {
    /// Expand chunks of the layer until none is left.
    fn work(&mut self, control: &Control, layer: &Layer) {
        while !control.stopped() {
            let Some(chunk) = layer.chunks.lock().pop() else {
                break;
            };
            if let Err(fault) = self.expand(control, layer, &chunk) {
                control.fail(fault);
            }
        }
        if !self.next.is_empty() {
            layer.next.lock().push(std::mem::take(&mut self.next));
        }
    }

    fn expand(&mut self, control: &Control, layer: &Layer, chunk: &[u32]) -> Result<()> {
        let width = self.view.width;
        let (mut transitions, mut terminals, mut partial) = (0, 0, 0);
        for (index, entry) in chunk.chunks_exact(width + 2).enumerate() {
            let (state, fingerprint) = parts(entry);
            let processes = match &mut self.stubborn {
                Some(stubborn) => stubborn.processes(self.view.tables, state)?,
                None => ALL,
            };
            let mut summary = self.for_each_successor(index, state, fingerprint, processes)?;
            if !summary.moves && processes != ALL {
                summary.add(self.for_each_successor(index, state, fingerprint, !processes)?);
            } else if processes != ALL && self.stubborn.as_ref().is_some_and(|s| s.relations().needs_proviso()) {
                self.partial.push((index as u32, processes));
            }
            transitions += summary.transitions;
            partial += u64::from(processes != ALL);
            if summary.fails {
                let property = control.assertion();
                control.record(Finding { property, fingerprint, depth: layer.depth + 1, run: None });
            }
            if !summary.moves {
                terminals += 1;
                control.note_terminal(fingerprint);
                evaluate_properties(&mut self.view, control, state, Changes::EVERYWHERE, true, |property| {
                    control.record(Finding { property, fingerprint, depth: layer.depth, run: None });
                })?;
            }
            if self.batch.fingerprints.len() >= BATCH {
                self.flush(control, layer, chunk)?;
            }
        }
        self.flush(control, layer, chunk)?;
        control.transitions.fetch_add(transitions, Relaxed);
        control.terminal.fetch_add(terminals, Relaxed);
        control.partial.fetch_add(partial, Relaxed);
        control.pulse(self.view.tables);
        Ok(())
    }

    /// Put the successors of a state of the chunk into the batch.
    #[inline]
    fn for_each_successor(
        &mut self,
        index: usize,
        state: &[u32],
        fingerprint: u64,
        processes: u64,
    ) -> Result<SuccessorSummary> {
        let (recent, batch) = (&mut self.recent, &mut self.batch);
        self.view.for_each_successor(state, fingerprint, processes, |there, via| {
            if !recent.meet(there) {
                batch.fingerprints.push(there);
                batch.origins.push((index as u32, via));
            }
        })
    }

    /// Look the batch up, and then what follows from the states that turned out to be expanded too little.
    fn flush(&mut self, control: &Control, layer: &Layer, chunk: &[u32]) -> Result<()> {
        let mut partial = std::mem::take(&mut self.partial);
        if !partial.is_empty() {
            let mut led_on = FxHashSet::default();
            self.look_up(control, layer, chunk, |index| {
                led_on.insert(index);
            })?;
            partial.retain(|(index, _)| !led_on.contains(index));
            for (index, processes) in partial {
                let from = index as usize * (self.view.width + 2);
                let (state, fingerprint) = parts(&chunk[from..from + self.view.width + 2]);
                let summary = self.for_each_successor(index as usize, state, fingerprint, !processes)?;
                control.transitions.fetch_add(summary.transitions, Relaxed);
                if summary.fails {
                    let property = control.assertion();
                    control.record(Finding { property, fingerprint, depth: layer.depth + 1, run: None });
                }
            }
        }
        self.look_up(control, layer, chunk, drop)
    }

    /// Look the batch up in the visited set; what is new is judged and goes into the next layer.
    ///
    /// With other workers, reads come first, so that their misses overlap, and then the inserts, each of which waits for all
    /// memory before it. The new states are built without holding the visited set.
    /// Tells `led_on` the places in the chunk of the states that led to them.
    fn look_up(&mut self, control: &Control, layer: &Layer, chunk: &[u32], mut led_on: impl FnMut(u32)) -> Result<()> {
        let Worker { view, batch, fresh, next, .. } = self;
        let (width, count) = (view.width, batch.fingerprints.len());
        let entry = |index: usize| {
            let from = batch.origins[index].0 as usize * (width + 2);
            &chunk[from..from + width + 2]
        };
        let insert = |session: &mut Session, index: usize| {
            session.insert(batch.fingerprints[index], u64::from(entry(index)[width + 1]) << 32)
        };
        let alone = control.options.workers == 1;
        let others = (control.options.workers - 1) * count.max(2 * BATCH);
        let mut session = control.visited.session(count, others)?;
        for &fingerprint in batch.fingerprints.iter().take(AHEAD) {
            session.prefetch(fingerprint);
        }
        fresh.clear();
        for (index, &fingerprint) in batch.fingerprints.iter().enumerate() {
            if let Some(&later) = batch.fingerprints.get(index + AHEAD) {
                session.prefetch(later);
            }
            let new = if alone { insert(&mut session, index) } else { !session.contains(fingerprint) };
            if new {
                fresh.push(index);
            }
        }
        if !alone {
            fresh.retain(|&index| insert(&mut session, index));
        }
        drop(session);
        for &index in fresh.iter() {
            let fingerprint = batch.fingerprints[index];
            let start = next.len();
            next.extend_from_slice(&entry(index)[..width]);
            let changes = view.take(&mut next[start..], batch.origins[index].1)?;
            evaluate_properties(view, control, &next[start..], changes, false, |property| {
                control.record(Finding { property, fingerprint, depth: layer.depth + 1, run: None });
            })?;
            next.extend([fingerprint as u32, (fingerprint >> 32) as u32]);
            if next.len() >= CHUNK * (width + 2) {
                layer.next.lock().push(std::mem::replace(next, Vec::with_capacity(CHUNK * (width + 2))));
            }
        }
        fresh.iter().for_each(|&index| led_on(batch.origins[index].0));
        batch.fingerprints.clear();
        batch.origins.clear();
        Ok(())
    }
}

/// A state of a chunk, and its fingerprint.
fn parts(entry: &[u32]) -> (&[u32], u64) {
    let (state, halves) = entry.split_at(entry.len() - 2);
    (state, u64::from(halves[0]) | u64::from(halves[1]) << 32)
}

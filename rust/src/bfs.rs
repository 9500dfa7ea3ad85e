//! Breadth-first search, layer by layer: every counterexample is a shortest one, with any number of workers.
//!
//! A worker expands a chunk of the layer into a batch of successor fingerprints, and only then looks them up, with their
//! slots prefetched: what bounds the speed is the latency of the visited set, and this way many misses overlap.

use crate::control::{Limit, Control, Finding};
use crate::lens::{EVERYWHERE, Lens, look, positions};
use crate::model::{Failure, Result};
use crate::tables::Tables;
use parking_lot::Mutex;
use std::sync::atomic::Ordering::Relaxed;

const BATCH: usize = 512;
const AHEAD: usize = 16;
const CHUNK: usize = 256;
/// Layers of fewer states are not worth waking the other workers for.
const SMALL: usize = 2 * CHUNK;

/// States laid end to end; each is its components and the two halves of its fingerprint.
type Chunk = Vec<u32>;

struct Worker<'t> {
    lens: Lens<'t>,
    batch: Batch,
    next: Chunk,
}

/// Successors that wait to be looked up.
#[derive(Default)]
struct Batch {
    fingerprints: Vec<u64>,
    /// Where in the chunk the parent is, and where its changes begin.
    origins: Vec<(u32, u32)>,
    changes: Vec<(u16, u32)>,
}

impl Batch {
    fn changes(&self, index: usize) -> &[(u16, u32)] {
        let end = self.origins.get(index + 1).map_or(self.changes.len(), |o| o.1 as usize);
        &self.changes[self.origins[index].1 as usize..end]
    }

    fn clear(&mut self) {
        self.fingerprints.clear();
        self.origins.clear();
        self.changes.clear();
    }
}

struct Layer {
    depth: u32,
    chunks: Mutex<Vec<Chunk>>,
    next: Mutex<Vec<Chunk>>,
}

pub fn search(tables: &Tables, control: &Control) -> Result<()> {
    let workers = control.options.workers;
    let mut crew: Vec<Worker> = (0..workers)
        .map(|_| Worker { lens: Lens::new(tables), batch: Batch::default(), next: Vec::new() })
        .collect();
    let width = crew[0].lens.width + 2;

    let mut chunk = tables.initial()?;
    let fingerprint = crew[0].lens.fingerprint(&chunk);
    control.visited.session(1, 0)?.insert(fingerprint, fingerprint);
    look(&mut crew[0].lens, control, &chunk, EVERYWHERE, false, |property| {
        control.record(Finding { property, fingerprint, depth: 0, run: None });
    })?;
    chunk.extend([fingerprint as u32, (fingerprint >> 32) as u32]);

    let mut layer = Layer { depth: 0, chunks: Mutex::new(vec![chunk]), next: Mutex::default() };
    let mut size = 1;
    while size > 0 && !control.stopped() {
        control.depth.store(layer.depth, Relaxed);
        control.frontier.store(size, Relaxed);
        if layer.depth >= control.options.max_depth {
            control.cut(Limit::MaxDepth);
            return Ok(());
        }
        if workers == 1 || size < SMALL {
            crew[0].work(control, &layer);
        } else {
            std::thread::scope(|scope| {
                for worker in &mut crew {
                    scope.spawn(|| worker.work(control, &layer));
                }
            });
        }
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
            let Some(chunk) = layer.chunks.lock().pop() else { break };
            if let Err(fault) = self.expand(control, layer, &chunk) {
                control.fail(fault);
            }
        }
        if !self.next.is_empty() {
            layer.next.lock().push(std::mem::take(&mut self.next));
        }
    }

    fn expand(&mut self, control: &Control, layer: &Layer, chunk: &[u32]) -> Result<()> {
        let width = self.lens.width;
        let (mut transitions, mut terminals) = (0, 0);
        for (index, entry) in chunk.chunks_exact(width + 2).enumerate() {
            let (state, halves) = entry.split_at(width);
            let fingerprint = u64::from(halves[0]) | u64::from(halves[1]) << 32;
            let mut moved = false;
            let mut failed: Option<Failure> = None;
            let batch = &mut self.batch;
            self.lens.successors(state, fingerprint, |successor| {
                transitions += 1;
                if let Some(failure) = successor.failure {
                    failed = Some(failure.clone());
                    moved = true;
                    return;
                }
                moved |= successor.moves && successor.fingerprint != fingerprint;
                batch.fingerprints.push(successor.fingerprint);
                batch.origins.push((index as u32, batch.changes.len() as u32));
                batch.changes.extend_from_slice(successor.changes);
            })?;
            if let Some(failure) = failed {
                if !failure.violation {
                    return Err(failure.text.into());
                }
                let property = control.assertion();
                control.record(Finding { property, fingerprint, depth: layer.depth + 1, run: None });
            }
            if !moved {
                terminals += 1;
                look(&mut self.lens, control, state, EVERYWHERE, true, |property| {
                    control.record(Finding { property, fingerprint, depth: layer.depth, run: None });
                })?;
            }
            if self.batch.fingerprints.len() >= BATCH {
                self.flush(control, layer, chunk, width)?;
            }
        }
        self.flush(control, layer, chunk, width)?;
        control.transitions.fetch_add(transitions, Relaxed);
        control.terminal.fetch_add(terminals, Relaxed);
        control.check_states();
        Ok(())
    }

    /// Look the batch up in the visited set; what is new is judged and goes into the next layer.
    fn flush(&mut self, control: &Control, layer: &Layer, chunk: &[u32], width: usize) -> Result<()> {
        let Worker { lens, batch, next } = self;
        let count = batch.fingerprints.len();
        let others = (control.options.workers - 1) * count.max(2 * BATCH);
        let mut session = control.visited.session(count, others)?;
        for &fingerprint in batch.fingerprints.iter().take(AHEAD) {
            session.prefetch(fingerprint);
        }
        for index in 0..count {
            if let Some(&later) = batch.fingerprints.get(index + AHEAD) {
                session.prefetch(later);
            }
            let fingerprint = batch.fingerprints[index];
            let from = batch.origins[index].0 as usize * (width + 2);
            let parent = &chunk[from..from + width + 2];
            if !session.insert(fingerprint, u64::from(parent[width + 1]) << 32) {
                continue;
            }
            let start = next.len();
            next.extend_from_slice(&parent[..width]);
            let changes = batch.changes(index);
            for &(position, value) in changes {
                next[start + position as usize] = value;
            }
            look(lens, control, &next[start..], positions(changes), false, |property| {
                control.record(Finding { property, fingerprint, depth: layer.depth + 1, run: None });
            })?;
            next.extend([fingerprint as u32, (fingerprint >> 32) as u32]);
            if next.len() >= CHUNK * (width + 2) {
                layer.next.lock().push(std::mem::replace(next, Vec::with_capacity(CHUNK * (width + 2))));
            }
        }
        batch.clear();
        Ok(())
    }
}

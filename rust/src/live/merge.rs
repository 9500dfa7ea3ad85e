//! Merges the results of the workers of a round of `build` into the graph.

use crate::live::graph::{Graph, StateId, TERMINAL};
use parking_lot::Mutex;
use std::io;
use std::ops::Range;

/// The fingerprints of the states of the layer that is expanded, and of those that were met for the next one.
pub(crate) struct Frontier {
    pub start: usize,
    pub end: usize,
    pub these: Vec<u64>,
    pub next: Vec<u64>,
}

impl Frontier {
    /// Of a state of the layer.
    #[inline]
    pub fn fingerprint(&self, id: usize) -> u64 {
        self.these[id - self.start]
    }

    /// Go on to the next layer.
    pub fn advance(&mut self) {
        std::mem::swap(&mut self.these, &mut self.next);
        self.next.clear();
        (self.start, self.end) = (self.end, self.end + self.these.len());
    }
}

/// What a worker has found in a round. Its memory is used again in the next one.
#[derive(Default)]
pub(crate) struct RoundOutput {
    /// Chunks of states that follow each other: the first state, and where its edges and its ends begin.
    pub chunks: Vec<(usize, usize, usize)>,
    /// Where the edges lead to: places among the numbers that were looked up.
    pub targets: Vec<u32>,
    pub numbers: Vec<StateId>,
    /// Per state, how many targets the chunk has up to its last one.
    pub ends: Vec<u32>,
    pub terminals: Vec<usize>,
    /// How many of these are not terminal, but states where time may go on for ever.
    pub rests: usize,
    /// With partial-order reduction, per state the processes whose transitions it has.
    pub taken: Vec<u64>,
    /// New states: their numbers, components, fingerprints and labels.
    pub new: Vec<StateId>,
    pub states: Vec<u32>,
    pub fingerprints: Vec<u64>,
    pub labels: Vec<u64>,
    pub silent: bool,
    /// New states outside of the bound of the search.
    pub outside: Vec<StateId>,
}

/// States that follow each other.
struct Chunk<'a> {
    first: usize,
    /// Of the worker that found it, as in `Found`.
    targets: &'a [u32],
    numbers: &'a [StateId],
    ends: &'a [u32],
}

impl RoundOutput {
    fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> {
        let end = (0, self.targets.len(), self.ends.len());
        // Each with the next one, which begins where it ends.
        let after = self.chunks.iter().skip(1).copied().chain([end]);
        self.chunks.iter().zip(after).map(|(&(first, target, end), (_, to_target, to_end))| Chunk {
            first,
            targets: &self.targets[target..to_target],
            numbers: &self.numbers,
            ends: &self.ends[end..to_end],
        })
    }

    pub fn clear(&mut self) {
        self.chunks.clear();
        self.targets.clear();
        self.ends.clear();
        self.terminals.clear();
        self.rests = 0;
        self.taken.clear();
        self.numbers.clear();
        self.new.clear();
        self.states.clear();
        self.fingerprints.clear();
        self.labels.clear();
        self.outside.clear();
    }
}

/// Put what was found in a round into the graph; with help, by two threads.
pub(crate) fn merge(
    graph: &mut Graph,
    frontier: &mut Frontier,
    output: &[&RoundOutput],
    round: Range<usize>,
    helped: bool,
) -> io::Result<()> {
    graph.silent |= output.iter().any(|one| one.silent);
    graph.rests += output.iter().map(|one| one.rests).sum::<usize>();
    let Graph { states, labels, offsets, targets, taken, .. } = graph;
    let mut chunks: Vec<Chunk> = output.iter().flat_map(|one| one.chunks()).collect();
    chunks.sort_unstable_by_key(|chunk| chunk.first);
    let begin = targets.len();
    let mut ends = Vec::with_capacity(round.len());
    let mut base = begin as u64;
    for chunk in &chunks {
        // If it was stopped, some may be missing.
        ends.resize(chunk.first - round.start, base);
        ends.extend(chunk.ends.iter().map(|&end| base + u64::from(end)));
        base += chunk.targets.len() as u64;
    }
    ends.resize(round.len(), base);
    offsets.extend(ends.into_iter())?;
    output.iter().for_each(|one| taken.extend(&one.taken));
    targets.grow(base as usize)?;
    let new: usize = output.iter().map(|one| one.new.len()).sum();
    let mut nodes = || -> io::Result<()> {
        let len = labels.len() + new;
        let greatest = output.iter().flat_map(|one| &one.states).copied().max().unwrap_or(0);
        states.grow(len, greatest)?;
        labels.grow(len)?;
        frontier.next.resize(len - frontier.end, 0);
        for one in output {
            let width = one.states.len() / one.new.len().max(1);
            for (at, &number) in one.new.iter().enumerate() {
                let number = number as usize;
                states.set(number, &one.states[at * width..][..width]);
                frontier.next[number - frontier.end] = one.fingerprints[at];
                labels.set(number, one.labels[at] << 1);
            }
            one.terminals.iter().for_each(|&id| labels.set(id, labels.get(id) | TERMINAL));
        }
        Ok(())
    };
    // Each chunk with its place. Memory that is touched for the first time makes some of them slow: who is free takes one.
    let mut rest = &mut targets[begin..];
    let places = chunks.iter().map(|chunk| rest.split_off_mut(..chunk.targets.len()).expect("there is room"));
    let places: Vec<&mut [StateId]> = places.collect();
    let left = Mutex::new(chunks.iter().zip(places));
    let put = || {
        let next = || left.lock().next();
        while let Some((Chunk { targets, numbers, .. }, place)) = next() {
            place.iter_mut().zip(*targets).for_each(|(target, &number)| *target = numbers[number as usize]);
        }
    };
    if helped {
        std::thread::scope(|scope| {
            scope.spawn(put);
            nodes()?;
            put();
            Ok::<_, io::Error>(())
        })?;
    } else {
        nodes()?;
        put();
    }
    Ok(())
}

//! The driver of searches that go layer by layer: breadth-first search (`bfs`), and building the graph of all states
//! (`live::build`).
//!
//! A search goes on in *rounds*. In a round, workers expand states of one layer; after it, one thread merges what they found.
//! A layer is finished before the next one begins. So every finding is one of the shortest, with any number of workers.
//!
//! A worker collects the successors of a chunk of states in a `Batch`, and only then looks them up in the visited set, with
//! their slots prefetched. The latency of memory bounds the speed of a search, and this way many misses overlap.

use crate::search::control::Control;
use crate::search::visited::{Session, Visited};
use crate::search::width::{Bits64, Width};
use crate::system::model::Result;
use crate::system::successors::TransitionRef;
use crate::system::tables::Tables;
use std::io;

/// States that a worker takes at a time.
pub(crate) const CHUNK: usize = 256;
/// Successors that are looked up together.
pub(crate) const BATCH: usize = 512;
/// Successors that are looked up in one session of the visited set: a state may have many.
const MOST: usize = 2 * BATCH;
/// How far ahead slots are prefetched.
const AHEAD: usize = 16;
/// One worker expands a round alone if Python was asked more often than once in this many states of the last round. Python
/// answers one worker at a time, and a question takes longer than to expand this many states.
const ASKING: usize = 128;

/// A search layer by layer, with workers of type `W`.
pub(crate) trait Layered<W: Send>: Sync {
    /// One worker expands rounds of fewer states alone: it would take longer to wake the others.
    const SMALL: usize;

    /// Begin a round. Returns how many states are to be expanded in it; none if the search is over.
    fn begin(&mut self) -> Option<usize>;

    /// Expand states of the round until none is left. All workers do this at the same time, unless one is alone.
    fn expand(&self, worker: &mut W, alone: bool);

    /// End a round: take over what the workers found.
    fn merge(&mut self, workers: &mut [W], alone: bool) -> Result<()>;
}

/// Search until there is nothing left to expand, or the search is to stop.
pub(crate) fn run<W: Send, L: Layered<W>>(
    tables: &Tables,
    control: &Control,
    search: &mut L,
    workers: &mut [W],
) -> Result<()> {
    let mut asking = false;
    while !control.stopped() {
        let Some(size) = search.begin() else { break };
        let asked = tables.model.asked();
        let alone = workers.len() == 1 || size < L::SMALL || asking;
        if alone {
            search.expand(&mut workers[0], true);
        } else {
            let search = &*search;
            std::thread::scope(|scope| {
                for worker in workers.iter_mut() {
                    scope.spawn(move || tables.model.in_thread(&mut || search.expand(worker, false)));
                }
            });
        }
        asking = (tables.model.asked() - asked) as usize * ASKING > size;
        search.merge(workers, alone)?;
    }
    Ok(())
}

/// Where a successor comes from.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    /// The state it follows, by a number that the search chooses.
    pub parent: u32,
    pub via: TransitionRef,
}

/// Successors that wait to be looked up.
pub(crate) struct Batch<W: Width = Bits64> {
    pub fingerprints: Vec<W::Sum>,
    pub origins: Vec<Origin>,
    /// After a look-up, the places of those that are new.
    pub fresh: Vec<usize>,
    unknown: Vec<usize>,
}

impl<W: Width> Default for Batch<W> {
    fn default() -> Self {
        Batch { fingerprints: Vec::new(), origins: Vec::new(), fresh: Vec::new(), unknown: Vec::new() }
    }
}

impl<W: Width> Batch<W> {
    #[inline]
    pub fn push(&mut self, fingerprint: W::Sum, parent: u32, via: TransitionRef) {
        self.fingerprints.push(fingerprint);
        self.origins.push(Origin { parent, via });
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.fingerprints.len()
    }

    pub fn clear(&mut self) {
        self.fingerprints.clear();
        self.origins.clear();
    }

    /// Look all successors up, and add what is new. Appends to `entries` what the visited set has of each.
    ///
    /// With other workers, reads (`find`) come first, so that their misses overlap, and then writes (`add`), each of which
    /// waits for all memory before it. `add` also says whether the successor was new.
    pub fn look_up<T: Copy + Default>(
        &mut self,
        visited: &Visited,
        others: usize,
        entries: &mut Vec<T>,
        find: impl Fn(&Session<W>, W::Sum) -> Option<T>,
        add: impl Fn(&mut Session<W>, W::Sum, Origin) -> (T, bool),
    ) -> io::Result<()> {
        let Batch { fingerprints, origins, fresh, unknown } = self;
        let begin = entries.len();
        fresh.clear();
        for first in (0..fingerprints.len()).step_by(MOST) {
            let places = first..fingerprints.len().min(first + MOST);
            let mut session = visited.session_of::<W>(places.len(), others * MOST)?;
            fingerprints[first..].iter().take(AHEAD).for_each(|&fingerprint| session.prefetch(fingerprint));
            unknown.clear();
            for place in places {
                if let Some(&later) = fingerprints.get(place + AHEAD) {
                    session.prefetch(later);
                }
                if others == 0 {
                    let (entry, new) = add(&mut session, fingerprints[place], origins[place]);
                    entries.push(entry);
                    if new {
                        fresh.push(place);
                    }
                } else {
                    let known = find(&session, fingerprints[place]);
                    entries.push(known.unwrap_or_default());
                    if known.is_none() {
                        unknown.push(place);
                    }
                }
            }
            for &place in unknown.iter() {
                let (entry, new) = add(&mut session, fingerprints[place], origins[place]);
                entries[begin + place] = entry;
                if new {
                    fresh.push(place);
                }
            }
        }
        Ok(())
    }
}

//! The canonical image of a state under a group that is too large to list, by refinement of ordered partitions as in graph
//! canonical labelling (McKay and Piperno 2014).
//!
//! The processes of each symmetric set are put in order as far as the state tells them apart: by what they are, and by how
//! local states, messages and monitors refer to them. Every order of such cells places them, which makes an image of the state.
//! In a cell whose members remain alike, one is singled out, and the others are told apart by it; each in turn, unless an
//! automorphism shows that another has led to the same. The least fingerprint of these images represents the orbit. All that
//! decides is independent of names, so all states of an orbit have the same images. `docs/internals/reductions/symmetry.md`
//! has the proof.

use crate::symmetry::group::Group;
use crate::system::hash;
use crate::system::model::{Content, LocalId, MessageId, Model, MonitorId, Network, Shape};
use crate::system::tables::{NodeId, Tables};
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering::Relaxed;
use xxhash_rust::xxh3::xxh3_128;

/// Remembered hashes, at most; then they are forgotten.
const MOST_REMEMBERED: usize = 1 << 22;
const UNMET: u32 = u32::MAX;

/// A component of a state, with the processes in it that can be moved.
struct Piece {
    kind: Kind,
    hash: u64,
    names: Vec<u16>,
}

enum Kind {
    Node { process: u16, local: LocalId, inbox: Box<[MessageId]>, last: Option<Box<[MessageId]>>, lead: u8 },
    Monitor { number: usize, state: MonitorId },
}

/// Finds canonical images, and remembers what it needs for them.
#[derive(Default)]
pub(crate) struct Canonical {
    pieces: Vec<Piece>,
    /// Places in `pieces`, by node.
    of_nodes: Vec<u32>,
    of_monitors: FxHashMap<(usize, MonitorId), u32>,
    /// The hash of the image of a piece, by the piece and the places of those it names.
    images: FxHashMap<u128, u64>,
    /// How a piece refers to each of those it names, by the piece and their colours: where that begins in `references`.
    signatures: FxHashMap<u128, u32>,
    references: Vec<u64>,
    /// The pieces of the state at hand.
    state: Vec<u32>,
    /// Of the others, what they add to the fingerprint.
    rest: u64,
    identity: Vec<u16>,
    /// The fingerprints of the images of the state, in order of discovery; only if more than one must be looked at.
    leaves: FxHashMap<u64, usize>,
    /// Of any state, at most.
    most: usize,
    least: u64,
}

/// The processes of all symmetric sets, in order as far as they are told apart.
#[derive(Clone)]
struct Partition {
    order: Vec<u16>,
    /// Per process, its colour if it is in a symmetric set: a place that no process has, equal for all of a cell, and two more
    /// for each process before the cell. For others, their new place.
    colours: Vec<u16>,
}

impl Canonical {
    /// The least fingerprint of the canonical images of a state.
    pub fn fingerprint(&mut self, tables: &Tables, state: &[u32]) -> u64 {
        let shape = tables.model.shape();
        let (nodes, others) = state.split_at(shape.processes);
        let (monitors, budgets) = others.split_at(shape.monitors);
        if self.images.len() + self.references.len() > MOST_REMEMBERED {
            self.images.clear();
            self.signatures.clear();
            self.references.clear();
        }
        let mut pieces = std::mem::take(&mut self.state);
        pieces.clear();
        pieces.extend(nodes.iter().map(|&node| self.node(tables, node)));
        pieces.extend(monitors.iter().enumerate().map(|(number, &state)| self.monitor(tables, number, state)));
        self.state = pieces;
        self.rest = budgets.iter().enumerate().fold(0, |sum, (i, &left)| sum.wrapping_add(hash::budget(i, left)));
        self.least = u64::MAX;
        self.identity.clear();
        self.identity.extend(0..shape.processes as u16);
        for rotation in &shape.group.rotations {
            self.leaves.clear();
            let mut partition = Partition::new(&shape.group, rotation);
            self.refine(&*tables.model, &mut partition);
            self.descend(&*tables.model, partition, &mut Vec::new());
            if self.leaves.len() > self.most {
                self.most = self.leaves.len();
                tables.leaves.fetch_max(self.most as u64, Relaxed);
            }
        }
        self.least
    }

    /// Look at the images below a partition. Some level: what else is below the one that was singled out at this level is
    /// known. `levels` are the levels above, each as the number of images that were known before that one was singled out.
    fn descend(&mut self, model: &dyn Model, partition: Partition, levels: &mut Vec<usize>) -> Option<usize> {
        let Some((cell, candidates)) = self.undecided(model, &partition) else {
            return self.leaf(model, &partition, levels);
        };
        let level = levels.len();
        levels.push(0);
        for candidate in candidates {
            levels[level] = self.leaves.len();
            let mut below = partition.clone();
            below.single_out(cell, candidate);
            self.refine(model, &mut below);
            match self.descend(model, below, levels) {
                Some(above) if above < level => {
                    levels.pop();
                    return Some(above);
                }
                _ => {}
            }
        }
        levels.pop();
        None
    }

    fn leaf(&mut self, model: &dyn Model, partition: &Partition, levels: &[usize]) -> Option<usize> {
        let mut places = partition.colours.clone();
        let slots = model.shape().group.sets.iter().flatten();
        partition.order.iter().zip(slots).for_each(|(&process, &slot)| places[process as usize] = slot);
        let mut sum = self.rest;
        for at in 0..self.state.len() {
            sum = sum.wrapping_add(self.image(model, self.state[at], &places));
        }
        self.least = self.least.min(sum);
        if levels.is_empty() {
            return None;
        }
        let number = self.leaves.len();
        let known = *self.leaves.entry(sum).or_insert(number);
        levels.iter().position(|&before| known < before)
    }

    /// The first cell whose order matters, where it begins, and those in it that may come first: one of each class of
    /// processes that can be exchanged without any change.
    fn undecided(&mut self, model: &dyn Model, partition: &Partition) -> Option<(usize, Vec<u16>)> {
        let mut begin = 0;
        while begin < partition.order.len() {
            let end = partition.end(begin);
            let mut different: Vec<u16> = Vec::new();
            for &process in partition.order[begin..end].iter().filter(|_| end - begin > 1) {
                if !different.iter().any(|&other| self.exchangeable(model, process, other)) {
                    different.push(process);
                }
            }
            if different.len() > 1 {
                return Some((begin, different));
            }
            begin = end;
        }
        None
    }

    /// Whether the state stays as it is if two processes are exchanged.
    fn exchangeable(&mut self, model: &dyn Model, one: u16, other: u16) -> bool {
        let mut places = std::mem::take(&mut self.identity);
        places.swap(one as usize, other as usize);
        let same = (0..self.state.len()).all(|at| {
            let piece = self.state[at];
            let names = &self.pieces[piece as usize].names;
            let there = places.get(at).map_or(at, |&place| place as usize);
            there == at && !names.contains(&one) && !names.contains(&other)
                || self.image(model, piece, &places) == self.pieces[self.state[there] as usize].hash
        });
        places.swap(one as usize, other as usize);
        self.identity = places;
        same
    }

    /// Tell processes apart by how the pieces refer to them, until nothing more is told apart.
    fn refine(&mut self, model: &dyn Model, partition: &mut Partition) {
        let mut sums = vec![0u64; partition.colours.len()];
        while !partition.is_discrete() {
            sums.fill(0);
            for at in 0..self.state.len() {
                let piece = self.state[at];
                let start = self.signature(model, piece, &mut partition.colours);
                for (&name, reference) in self.pieces[piece as usize].names.iter().zip(&self.references[start..]) {
                    sums[name as usize] = sums[name as usize].wrapping_add(*reference);
                }
            }
            if !partition.split(&sums) {
                return;
            }
        }
    }

    /// The hash of the image of a piece.
    fn image(&mut self, model: &dyn Model, piece: u32, places: &[u16]) -> u64 {
        let there = &self.pieces[piece as usize];
        if there.names.iter().all(|&name| places[name as usize] == name) {
            return there.hash;
        }
        *self.images.entry(key(piece, &there.names, places)).or_insert_with(|| there.renamed(model, places, true))
    }

    /// How a piece refers to those it names: where that begins in `references`.
    fn signature(&mut self, model: &dyn Model, piece: u32, colours: &mut [u16]) -> usize {
        let there = &self.pieces[piece as usize];
        let key = key(piece, &there.names, colours);
        if let Some(&start) = self.signatures.get(&key) {
            return start as usize;
        }
        let start = self.references.len();
        for &name in &there.names {
            // The one in question has a colour of its own.
            colours[name as usize] += 1;
            self.references.push(there.renamed(model, colours, false));
            colours[name as usize] -= 1;
        }
        self.signatures.insert(key, start as u32);
        start
    }

    fn node(&mut self, tables: &Tables, node: NodeId) -> u32 {
        if let Some(&known) = self.of_nodes.get(node as usize)
            && known != UNMET
        {
            return known;
        }
        let there = tables.node(node);
        let last = tables.model.shape().history.then(|| tables.inbox(there.last).into());
        let (inbox, lead) = (tables.inbox(there.inbox).into(), there.lead);
        let kind = Kind::Node { process: there.process, local: there.local, inbox, last, lead };
        if self.of_nodes.len() <= node as usize {
            self.of_nodes.resize(node as usize + 1, UNMET);
        }
        self.of_nodes[node as usize] = self.piece(&*tables.model, kind, there.hash);
        self.of_nodes[node as usize]
    }

    fn monitor(&mut self, tables: &Tables, number: usize, state: MonitorId) -> u32 {
        if let Some(&known) = self.of_monitors.get(&(number, state)) {
            return known;
        }
        let hash = hash::monitor(number, tables.model.monitor_hash(state));
        let piece = self.piece(&*tables.model, Kind::Monitor { number, state }, hash);
        self.of_monitors.insert((number, state), piece);
        piece
    }

    fn piece(&mut self, model: &dyn Model, kind: Kind, hash: u64) -> u32 {
        let mut names = Vec::new();
        match &kind {
            Kind::Node { process, local, inbox, last, .. } => {
                names.push(*process);
                names.extend(model.names(Content::Local(*local)));
                let messages = inbox.iter().chain(last.iter().flat_map(|last| last.iter()));
                names.extend(messages.flat_map(|&message| model.names(Content::Message(message))));
            }
            Kind::Monitor { state, .. } => names.extend(model.names(Content::Monitor(*state))),
        }
        names.sort_unstable();
        names.dedup();
        names.retain(|&name| model.shape().group.is_movable(name as usize));
        self.pieces.push(Piece { kind, hash, names });
        self.pieces.len() as u32 - 1
    }
}

impl Piece {
    /// The hash after processes were given other places: that of the image, if these are places of a permutation (`exact`).
    fn renamed(&self, model: &dyn Model, places: &[u16], exact: bool) -> u64 {
        let (process, local, inbox, last, lead) = match &self.kind {
            Kind::Monitor { number, state } => {
                return hash::monitor(*number, model.renamed_hash(Content::Monitor(*state), places));
            }
            Kind::Node { process, local, inbox, last, lead } => (*process, *local, inbox, last, *lead),
        };
        let Shape { network, .. } = model.shape();
        let at = places[process as usize] as usize;
        let message = |&message: &MessageId| model.renamed_hash(Content::Message(message), places);
        let mut sum: u64 = hash::local(at, model.renamed_hash(Content::Local(local), places));
        sum = sum.wrapping_add(hash::lead(at, lead));
        if *network == Network::Mailbox {
            sum = sum.wrapping_add(hash::queues(at, &inbox.iter().map(message).collect::<Vec<_>>()));
        } else if *network != Network::Fifo {
            sum = inbox.iter().fold(sum, |sum, m| sum.wrapping_add(hash::pending(at, message(m))));
        } else if exact {
            let mut moved = inbox.to_vec();
            moved.sort_by_key(|&message| places[model.sender(message) as usize]);
            sum = sum.wrapping_add(hash::queues(at, &moved.iter().map(message).collect::<Vec<_>>()));
        } else {
            // Senders of one colour have no order.
            for queue in inbox.chunk_by(|&a, &b| model.sender(a) == model.sender(b)) {
                sum = sum.wrapping_add(hash::queues(at, &queue.iter().map(message).collect::<Vec<_>>()));
            }
        }
        if let Some(last) = last {
            sum = sum.wrapping_add(hash::last(at, &mut last.iter().map(message).collect::<Vec<_>>()));
        }
        sum
    }
}

impl Partition {
    /// Each set is a cell. Rings are already placed.
    fn new(group: &Group, rotation: &[u16]) -> Partition {
        let mut partition = Partition { order: group.sets.concat(), colours: rotation.to_vec() };
        let mut begin = 0;
        for set in &group.sets {
            set.iter().for_each(|&process| partition.paint(process, begin));
            begin += set.len();
        }
        partition
    }

    /// Put a process into the cell that begins at a place.
    fn paint(&mut self, process: u16, begin: usize) {
        self.colours[process as usize] = (self.colours.len() + 2 * begin) as u16;
    }

    fn colour(&self, at: usize) -> u16 {
        self.colours[self.order[at] as usize]
    }

    /// Where the cell ends that begins at a place.
    fn end(&self, begin: usize) -> usize {
        let alike = (begin..self.order.len()).take_while(|&at| self.colour(at) == self.colour(begin));
        begin + alike.count()
    }

    fn is_discrete(&self) -> bool {
        (1..self.order.len()).all(|at| self.colour(at) != self.colour(at - 1))
    }

    /// Split cells by a number that each process has, and tell whether any was.
    fn split(&mut self, numbers: &[u64]) -> bool {
        let (mut begin, mut any) = (0, false);
        while begin < self.order.len() {
            let end = self.end(begin);
            self.order[begin..end].sort_unstable_by_key(|&process| numbers[process as usize]);
            let mut part = begin;
            for at in begin + 1..end {
                if numbers[self.order[at] as usize] != numbers[self.order[at - 1] as usize] {
                    (part, any) = (at, true);
                }
                self.paint(self.order[at], part);
            }
            begin = end;
        }
        any
    }

    /// Put a process before the others of the cell that begins at a place.
    fn single_out(&mut self, begin: usize, process: u16) {
        let end = self.end(begin);
        self.order[begin..end].sort_by_key(|&other| other != process);
        for at in begin + 1..end {
            self.paint(self.order[at], begin + 1);
        }
    }
}

/// A piece with the places of those it names: as they are if they are few, else as a hash.
fn key(piece: u32, names: &[u16], places: &[u16]) -> u128 {
    if names.len() <= 6 {
        let places = names.iter().fold(0, |key, &name| key << 16 | u128::from(places[name as usize]));
        return u128::from(piece) << 96 | places;
    }
    let mut bytes = [0u8; 256];
    let mut long = Vec::new();
    let room = if 4 + 2 * names.len() <= bytes.len() {
        &mut bytes[..4 + 2 * names.len()]
    } else {
        long.resize(4 + 2 * names.len(), 0);
        &mut long[..]
    };
    room[..4].copy_from_slice(&piece.to_le_bytes());
    for (&name, place) in names.iter().zip(room[4..].chunks_exact_mut(2)) {
        place.copy_from_slice(&places[name as usize].to_le_bytes());
    }
    xxh3_128(room)
}

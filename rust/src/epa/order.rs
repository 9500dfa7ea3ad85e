//! The order of synchronisation events that holds in every permutation of a trace (Saissi 2019, section 5.4.3).
//!
//! The nodes are the synchronisation events. Program order, thread creation, joins and barriers are edges. Critical
//! sections of one lock can come in any order, but cannot overlap. Vector clocks give the transitive closure of the
//! edges. Then this rule is applied up to a fixpoint: if the acquisition of one section must precede the release of
//! another section of the same lock, the whole first section must precede the second one.
//!
//! If the run can be replayed, sections of one lock keep their observed order instead.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::format::op;

pub const NONE: u32 = u32::MAX;

/// A synchronisation event.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub thread: u32,
    pub op: u32,
    pub object: u64,
    pub site: u32,
    /// Its place among the nodes of its thread.
    pub position: u32,
}

/// A critical section; one that is never left has no release.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    pub lock: u64,
    pub thread: u32,
    pub exclusive: bool,
    pub acquire: u32,
    pub release: u32,
}

#[derive(Default)]
pub struct Skeleton {
    /// In the order in which they were observed.
    pub nodes: Vec<Node>,
    pub threads: Vec<Vec<u32>>,
    /// Edges that lead to a node, besides program order.
    pub before: Vec<Vec<u32>>,
    pub sections: Vec<Section>,
    pub warnings: Vec<String>,
    /// Sections keep the observed order, because replay enforces it.
    replay: bool,
    by_lock: FxHashMap<u64, Vec<u32>>,
    last_exclusive: FxHashMap<u64, u32>,
    depth: FxHashMap<(u64, u32), (u32, u32)>,
    creates: FxHashMap<u32, u32>,
    ends: FxHashMap<u32, u32>,
    barriers: FxHashMap<u64, Barrier>,
}

#[derive(Default)]
struct Barrier {
    count: u64,
    arrivals: Vec<u32>,
    /// Per departure, which arrival of the same thread it belongs to.
    departures: Vec<(u32, usize)>,
    last: FxHashMap<u32, usize>,
}

impl Skeleton {
    /// No events yet. `replay`: sections keep the observed order.
    pub fn new(replay: bool) -> Self {
        Self { replay, ..Self::default() }
    }

    /// Note a synchronisation event; `object` of a create or a join is the other thread.
    pub fn push(&mut self, thread: u32, op: u32, object: u64, extra: u64, site: u32) {
        if op == op::BARRIER_INIT {
            let barrier = self.barriers.entry(object).or_default();
            if !barrier.arrivals.is_empty() {
                let old = std::mem::take(barrier);
                self.close_barrier(object, &old);
            }
            self.barriers.entry(object).or_default().count = extra;
            return;
        }
        if self.threads.len() <= thread as usize {
            self.threads.resize(thread as usize + 1, Vec::new());
        }
        let number = self.nodes.len() as u32;
        let line = &mut self.threads[thread as usize];
        self.nodes.push(Node { thread, op, object, site, position: line.len() as u32 });
        line.push(number);
        self.before.push(Vec::new());
        match op {
            op::CREATE => {
                self.creates.insert(object as u32, number);
            }
            op::START => {
                if let Some(&create) = self.creates.get(&thread) {
                    self.before[number as usize].push(create);
                }
            }
            op::END => {
                self.ends.insert(thread, number);
            }
            op::JOIN => {
                if let Some(&end) = self.ends.get(&(object as u32)) {
                    self.before[number as usize].push(end);
                }
            }
            op::LOCK | op::WRITE_LOCK | op::READ_LOCK | op::ORDERED_IN => {
                self.acquire(thread, object, op != op::READ_LOCK, number)
            }
            op::UNLOCK | op::RW_UNLOCK | op::ORDERED_OUT => self.release(thread, object, number),
            op::BARRIER_IN => {
                let barrier = self.barriers.entry(object).or_default();
                barrier.last.insert(thread, barrier.arrivals.len());
                barrier.arrivals.push(number);
            }
            op::BARRIER_OUT => {
                let barrier = self.barriers.entry(object).or_default();
                if let Some(&arrival) = barrier.last.get(&thread) {
                    barrier.departures.push((number, arrival));
                }
            }
            _ => {}
        }
    }

    fn acquire(&mut self, thread: u32, lock: u64, exclusive: bool, node: u32) {
        let number = self.sections.len() as u32;
        let held = self.depth.entry((lock, thread)).or_insert((0, NONE));
        held.0 += 1;
        if held.0 > 1 {
            return;
        }
        held.1 = number;
        let section = Section { lock, thread, exclusive, acquire: node, release: NONE };
        if self.replay {
            self.keep_order(&section);
            if exclusive {
                self.last_exclusive.insert(lock, number);
            }
        }
        self.by_lock.entry(lock).or_default().push(number);
        self.sections.push(section);
    }

    /// A section follows the conflicting sections of its lock that were left before. Back to the last exclusive one is enough.
    fn keep_order(&mut self, new: &Section) {
        let last = self.last_exclusive.get(&new.lock).copied();
        let shared = self.by_lock.get(&new.lock).into_iter().flatten().rev().copied();
        let shared = shared.take_while(|&number| new.exclusive && Some(number) != last);
        for number in shared.chain(last) {
            let old = self.sections[number as usize];
            if self.conflict(&old, new) && old.release != NONE {
                self.before[new.acquire as usize].push(old.release);
            }
        }
    }

    fn release(&mut self, thread: u32, lock: u64, node: u32) {
        if let Some(held) = self.depth.get_mut(&(lock, thread)).filter(|held| held.0 > 0) {
            held.0 -= 1;
            if held.0 == 0 {
                self.sections[held.1 as usize].release = node;
            }
        }
    }

    /// All events were noted.
    pub fn finish(&mut self) {
        let mut barriers: Vec<(u64, Barrier)> = std::mem::take(&mut self.barriers).into_iter().collect();
        barriers.sort_unstable_by_key(|(object, _)| *object);
        for (object, barrier) in barriers {
            self.close_barrier(object, &barrier);
        }
    }

    /// Everyone who leaves a round of a barrier leaves after all have arrived. Which threads meet is certain only if as many
    /// threads use the barrier as it waits for; otherwise it orders nothing.
    fn close_barrier(&mut self, object: u64, barrier: &Barrier) {
        let mut users: Vec<u32> = barrier.arrivals.iter().map(|&n| self.nodes[n as usize].thread).collect();
        users.sort_unstable();
        users.dedup();
        let count = barrier.count as usize;
        if count == 0 || users.len() != count {
            if !users.is_empty() {
                self.warnings.push(format!(
                    "the barrier at {object:#x} waits for {count} threads, but {} use it: it is treated as no barrier",
                    users.len()
                ));
            }
            return;
        }
        for &(node, arrival) in &barrier.departures {
            let round = arrival / count * count;
            for &other in &barrier.arrivals[round..(round + count).min(barrier.arrivals.len())] {
                self.before[node as usize].push(other);
            }
        }
    }

    fn conflict(&self, one: &Section, other: &Section) -> bool {
        one.thread != other.thread && (one.exclusive || other.exclusive)
    }
}

/// What must precede what: per node and thread, how many of the thread's nodes must come first or are the node itself.
pub struct Clocks {
    width: usize,
    counts: Vec<u32>,
    /// Edges that were added, by the node they lead to.
    before: Vec<Vec<u32>>,
    pub rounds: u32,
}

impl Clocks {
    /// How many nodes of a thread are at or before a node.
    #[inline]
    pub fn count(&self, node: u32, thread: u32) -> u32 {
        self.counts[node as usize * self.width + thread as usize]
    }

    /// Close the order of a skeleton with one more edge, if there is one. None if nothing satisfies it.
    pub fn close(skeleton: &Skeleton, edge: Option<(u32, u32)>) -> Option<Self> {
        let width = skeleton.threads.len();
        let mut this =
            Self { width, counts: vec![0; skeleton.nodes.len() * width], before: skeleton.before.clone(), rounds: 0 };
        if let Some((first, second)) = edge {
            this.before[second as usize].push(first);
        }
        let lanes = Lanes::new(skeleton);
        loop {
            this.rounds += 1;
            this.propagate(skeleton)?;
            if !this.lock_edges(skeleton, &lanes)? {
                return Some(this);
            }
        }
    }

    /// Vector clocks along all edges; None if they form a cycle.
    fn propagate(&mut self, skeleton: &Skeleton) -> Option<()> {
        let order = topological(skeleton, &self.before)?;
        let width = self.width;
        for node in order {
            let n = node as usize;
            let (thread, position) = (skeleton.nodes[n].thread, skeleton.nodes[n].position);
            let line = &skeleton.threads[thread as usize];
            let previous = position.checked_sub(1).map(|p| line[p as usize]);
            for source in self.before[n].iter().copied().chain(previous) {
                let (s, t) = (source as usize * width, n * width);
                for i in 0..width {
                    if self.counts[s + i] > self.counts[t + i] {
                        self.counts[t + i] = self.counts[s + i];
                    }
                }
            }
            self.counts[n * width + thread as usize] = position + 1;
        }
        Some(())
    }

    /// Edges between sections of a lock that the clocks force. Whether there were new ones; None if there is no way.
    fn lock_edges(&mut self, skeleton: &Skeleton, lanes: &Lanes) -> Option<bool> {
        let mut changed = false;
        for (lock, numbers) in &skeleton.by_lock {
            for &number in numbers {
                let second = skeleton.sections[number as usize];
                for (thread, lane) in &lanes.of[lock] {
                    if *thread == second.thread {
                        continue;
                    }
                    let candidates = if second.exclusive { &lane.all } else { &lane.exclusive };
                    // Sections of that thread whose acquisition must precede this release.
                    let bound = if second.release == NONE { u32::MAX } else { self.count(second.release, *thread) };
                    let many = candidates.partition_point(|&c| {
                        skeleton.nodes[skeleton.sections[c as usize].acquire as usize].position < bound
                    });
                    let Some(last) = many.checked_sub(1) else { continue };
                    let first = skeleton.sections[candidates[last] as usize];
                    debug_assert!(skeleton.conflict(&first, &second));
                    if first.release == NONE {
                        if second.release == NONE {
                            continue; // two sections that are never left: only in a trace that was cut off
                        }
                        return None;
                    }
                    let position = skeleton.nodes[first.release as usize].position;
                    if self.count(second.acquire, *thread) <= position {
                        self.before[second.acquire as usize].push(first.release);
                        changed = true;
                    }
                }
            }
        }
        Some(changed)
    }

    /// A schedule of all nodes that keeps the edges and lets no sections overlap, which puts what must precede `goal` first.
    /// None if it gets stuck, which proves nothing.
    pub fn schedule(&self, skeleton: &Skeleton, goal: u32) -> Option<Vec<u32>> {
        let total = skeleton.nodes.len();
        let mut missing: Vec<u32> =
            (0..total).map(|n| self.before[n].len() as u32 + u32::from(skeleton.nodes[n].position > 0)).collect();
        let after = followers(total, &self.before);
        let urgent = |n: u32| {
            let node = &skeleton.nodes[n as usize];
            u8::from(node.position >= self.count(goal, node.thread))
        };
        let section_at: FxHashMap<u32, u32> = (skeleton.sections.iter().enumerate())
            .flat_map(|(i, s)| [(s.acquire, i as u32), (s.release, i as u32)])
            .filter(|(node, _)| *node != NONE)
            .collect();
        let mut ready: BinaryHeap<Reverse<(u8, u32)>> = BinaryHeap::new();
        for n in 0..total as u32 {
            if missing[n as usize] == 0 {
                ready.push(Reverse((urgent(n), n)));
            }
        }
        let mut writers: FxHashMap<u64, u32> = FxHashMap::default();
        let mut readers: FxHashMap<u64, u32> = FxHashMap::default();
        let mut waiting: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        let mut order = Vec::with_capacity(total);
        while let Some(Reverse((_, n))) = ready.pop() {
            if let Some(section) = section_at.get(&n).map(|&s| skeleton.sections[s as usize]) {
                let (w, r) = (writers.entry(section.lock).or_default(), readers.entry(section.lock).or_default());
                if section.acquire == n {
                    if *w > 0 || (section.exclusive && *r > 0) {
                        waiting.entry(section.lock).or_default().push(n);
                        continue;
                    }
                    *(if section.exclusive { w } else { r }) += 1;
                } else {
                    *(if section.exclusive { w } else { r }) -= 1;
                    for blocked in waiting.remove(&section.lock).unwrap_or_default() {
                        ready.push(Reverse((urgent(blocked), blocked)));
                    }
                }
            }
            order.push(n);
            let node = &skeleton.nodes[n as usize];
            let next = skeleton.threads[node.thread as usize].get(node.position as usize + 1);
            for &m in after[n as usize].iter().chain(next) {
                missing[m as usize] -= 1;
                if missing[m as usize] == 0 {
                    ready.push(Reverse((urgent(m), m)));
                }
            }
        }
        (order.len() == total).then_some(order)
    }
}

/// Sections by lock and thread, in program order.
struct Lanes {
    of: FxHashMap<u64, Vec<(u32, Lane)>>,
}

#[derive(Default)]
struct Lane {
    all: Vec<u32>,
    exclusive: Vec<u32>,
}

impl Lanes {
    fn new(skeleton: &Skeleton) -> Self {
        let mut of = FxHashMap::default();
        for (&lock, numbers) in &skeleton.by_lock {
            let mut lanes: Vec<(u32, Lane)> = Vec::new();
            for &number in numbers {
                let section = &skeleton.sections[number as usize];
                let at = match lanes.iter().position(|(thread, _)| *thread == section.thread) {
                    Some(at) => at,
                    None => {
                        lanes.push((section.thread, Lane::default()));
                        lanes.len() - 1
                    }
                };
                lanes[at].1.all.push(number);
                if section.exclusive {
                    lanes[at].1.exclusive.push(number);
                }
            }
            of.insert(lock, lanes);
        }
        Self { of }
    }
}

fn followers(total: usize, before: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut after = vec![Vec::new(); total];
    for (n, sources) in before.iter().enumerate() {
        for &source in sources {
            after[source as usize].push(n as u32);
        }
    }
    after
}

/// The nodes so that every edge leads forward; None if there is a cycle.
fn topological(skeleton: &Skeleton, before: &[Vec<u32>]) -> Option<Vec<u32>> {
    let total = skeleton.nodes.len();
    let after = followers(total, before);
    let mut missing: Vec<u32> =
        (0..total).map(|n| before[n].len() as u32 + u32::from(skeleton.nodes[n].position > 0)).collect();
    let mut stack: Vec<u32> = (0..total as u32).filter(|&n| missing[n as usize] == 0).collect();
    let mut order = Vec::with_capacity(total);
    while let Some(n) = stack.pop() {
        order.push(n);
        let node = &skeleton.nodes[n as usize];
        let next = skeleton.threads[node.thread as usize].get(node.position as usize + 1);
        for &m in after[n as usize].iter().chain(next) {
            missing[m as usize] -= 1;
            if missing[m as usize] == 0 {
                stack.push(m);
            }
        }
    }
    (order.len() == total).then_some(order)
}

//! How errors spread in a faulty run: which deviation of an instruction came from which other one. Errors spread
//! through registers, memory, arguments, results and control flow, within and across threads.
//!
//! A node is an instruction of a thread, with all its deviating executions. An edge says that a deviating execution
//! used a value that another one made. Only deviating events are followed. A corrupted value that is masked (multiplied
//! by zero, overwritten) has no outgoing edges, because the later events are equal to the golden run.
//!
//! A write that only the golden run performs is a node too: who reads the memory afterwards lacks its value. So is a
//! write that went elsewhere. A node of a thread that only the golden run has gets a number behind those of the faulty
//! run.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::compare::{Comparison, Difference};
use super::format::{self, op};
use super::recording::Recording;
use super::sanitize::{OBJECT, Sanitized};

pub type Node = (u32, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Via {
    Register,
    Memory,
    Argument,
    Result,
    Control,
}

#[derive(Clone, Debug)]
pub struct Spread {
    pub events: u64,
    /// The first deviating execution: its place in its thread, and its rank in the whole run.
    pub first: u32,
    pub rank: u64,
    /// Whether the fault struck here.
    pub root: bool,
    /// Writes that the faulty run lacks.
    pub missing: u64,
}

#[derive(Default)]
pub struct Propagation {
    pub nodes: FxHashMap<Node, Spread>,
    /// From, to, how, and through which object: how often.
    pub edges: FxHashMap<(Node, Node, Via, u32), u64>,
}

pub const NO_OBJECT: u32 = u32::MAX;

#[derive(Default)]
struct Frame {
    pointer: u64,
    values: FxHashSet<u32>,
    arguments: Vec<Node>,
    last: Option<Node>,
}

#[derive(Default)]
struct Lane {
    frames: Vec<Frame>,
    given: Vec<Node>,
    returned: Option<Node>,
    event: usize,
    /// How many gaps and moved writes are behind the thread.
    gap: usize,
    moved: usize,
    last: Option<Node>,
}

struct Walk<'a> {
    recording: &'a Recording,
    sanitized: &'a Sanitized,
    golden: &'a Sanitized,
    /// Per thread of the faulty run.
    differences: Vec<Option<&'a Difference>>,
    /// Threads that only the golden run has.
    absent: Vec<u32>,
    /// Per object of the golden run, that of the faulty run.
    twins: Vec<Option<u32>>,
    struck: FxHashSet<(u32, u32)>,
    lanes: Vec<Lane>,
    /// Deviating bytes of memory: who wrote them.
    memory: FxHashMap<u64, Node>,
    inherited: FxHashMap<u32, Vec<Node>>,
    found: Propagation,
    rank: u64,
}

pub fn propagate(
    recording: &Recording,
    sanitized: &Sanitized,
    golden: &Sanitized,
    comparison: &Comparison,
) -> Propagation {
    let mut differences = vec![None; sanitized.threads.len()];
    for thread in &comparison.threads {
        if let Some(faulty) = thread.faulty {
            differences[faulty as usize] = Some(thread);
        }
    }
    let absent = (comparison.threads.iter()).filter(|t| t.faulty.is_none()).filter_map(|t| t.golden).collect();
    let mut walk = Walk {
        recording,
        sanitized,
        golden,
        differences,
        absent,
        twins: twins(golden, sanitized),
        struck: sanitized.faults.iter().map(|f| (f.thread, f.event)).collect(),
        lanes: sanitized.threads.iter().map(|_| Lane::default()).collect(),
        memory: FxHashMap::default(),
        inherited: FxHashMap::default(),
        found: Propagation::default(),
        rank: 0,
    };
    recording.walk(|_, thread, record| walk.record(thread, record));
    walk.found
}

/// The objects of the faulty run with the names of those of the golden run.
fn twins(golden: &Sanitized, faulty: &Sanitized) -> Vec<Option<u32>> {
    let known: FxHashMap<_, u32> = (faulty.objects.iter().enumerate())
        .map(|(i, o)| ((o.kind, name(faulty, o.owner), o.site, o.nth), i as u32))
        .collect();
    (golden.objects.iter()).map(|o| known.get(&(o.kind, name(golden, o.owner), o.site, o.nth)).copied()).collect()
}

fn name(sanitized: &Sanitized, thread: u32) -> &str {
    sanitized.threads.get(thread as usize).map_or("", |t| t.name.as_str())
}

impl Walk<'_> {
    fn record(&mut self, thread: u32, record: format::Record) {
        let w = record.words;
        let t = thread as usize;
        match record.kind {
            format::SYNC if record.detail == op::CREATE => {
                let given = self.lanes[t].given.clone();
                self.inherited.insert(w[1] as u32, given);
                return;
            }
            format::SYNC if record.detail == op::START => {
                let uid = self.sanitized.threads[t].uid;
                self.lanes[t].given = self.inherited.remove(&uid).unwrap_or_default();
                return;
            }
            format::SYNC if record.detail == op::END => return self.omissions(t, usize::MAX),
            format::RANGE if record.detail >= format::RANGE_STACK => return,
            format::FAULT | format::SEQUENCE | format::SYNC | format::ALLOC | format::FREE => return,
            _ => {}
        }
        let at = self.lanes[t].event;
        self.lanes[t].event += 1 + usize::from(record.kind == format::COPY);
        self.rank += 1;
        self.omissions(t, at);
        let flag = self.differences[t].and_then(|d| d.flags.get(at).copied()).unwrap_or(0);
        let node = (thread, record.site);
        let site = &self.recording.sites[record.site as usize];
        match record.kind {
            format::ENTER => {
                let arguments = std::mem::take(&mut self.lanes[t].given);
                self.leave(t, w[0]);
                self.lanes[t].frames.push(Frame { pointer: w[0], arguments, ..Frame::default() });
                return;
            }
            format::LANDING => return self.leave(t, w[0].saturating_sub(1)),
            format::CALL => {
                self.lanes[t].given.clear();
                self.lanes[t].returned = None;
            }
            _ => {}
        }
        let mut written: Option<(u64, u64)> = None;
        let mut sources: Vec<(Node, Via, u32)> = Vec::new();
        if flag != 0 {
            self.registers(t, thread, &site.operands, &mut sources);
        }
        match record.kind {
            format::LOAD if flag != 0 => self.bytes(w[0], u64::from(site.size), self.object(t, at), &mut sources),
            format::STORE => written = Some((w[0], u64::from(site.size))),
            format::RANGE if record.detail == format::RANGE_WRITE => written = Some((w[0], w[1])),
            format::COPY if !self.memory.is_empty() => self.copy(t, at, node, w),
            format::VALUE if flag != 0 => {
                if let Some(from) = self.lanes[t].returned.take() {
                    sources.push((from, Via::Result, NO_OBJECT));
                }
                let of_this_call: Vec<Node> = (self.lanes[t].given.iter().copied())
                    .filter(|given| self.recording.sites[given.1 as usize].parent == record.site)
                    .collect();
                sources.extend(of_this_call.into_iter().map(|from| (from, Via::Argument, NO_OBJECT)));
            }
            _ => {}
        }
        if let Some((address, length)) = written {
            if flag != 0 {
                for byte in address..address.saturating_add(length.min(1 << 24)) {
                    self.memory.insert(byte, node);
                }
            } else if !self.memory.is_empty() {
                for byte in address..address.saturating_add(length.min(1 << 24)) {
                    self.memory.remove(&byte);
                }
            }
        }
        if flag != 0 {
            self.note(t, node, at, flag, sources);
        }
        let lane = &mut self.lanes[t];
        if flag != 0 {
            lane.last = Some(node);
        }
        if record.kind == format::ARGUMENT && flag != 0 {
            lane.given.push(node);
        }
        if let Some(frame) = lane.frames.last_mut() {
            if flag == 0 {
                frame.values.remove(&record.site);
            } else {
                frame.values.insert(record.site);
                frame.last = Some(node);
            }
        }
        if record.kind == format::RETURN {
            lane.frames.pop();
            lane.returned = (flag != 0).then_some(node);
            lane.given.clear();
        }
    }

    /// What the golden run wrote before this event of the thread, and the faulty run did not.
    fn omissions(&mut self, t: usize, at: usize) {
        let Some(difference) = self.differences[t] else { return };
        let Some(twin) = difference.golden else { return };
        while let Some(&(before, from, to)) = difference.gaps.get(self.lanes[t].gap)
            && before as usize <= at
        {
            self.lanes[t].gap += 1;
            let lane = &self.lanes[t];
            let cause = lane.frames.last().and_then(|f| f.last).or(lane.last);
            self.omit(t as u32, twin, from as usize..to as usize, cause, true);
            // A thread that was not created would have been created here.
            self.without(twin, cause);
        }
        while let Some(&(moved, from)) = difference.moved.get(self.lanes[t].moved)
            && moved as usize <= at
        {
            self.lanes[t].moved += 1;
            self.omit(t as u32, twin, from as usize..from as usize + 1, None, false);
        }
    }

    /// All writes of the threads that a thread creates only in the golden run.
    fn without(&mut self, parent: u32, cause: Option<Node>) {
        let (children, rest): (Vec<u32>, Vec<u32>) =
            self.absent.iter().partition(|&&t| self.golden.threads[t as usize].parent == parent);
        self.absent = rest;
        for child in children {
            let number = self.sanitized.threads.len() as u32 + child;
            self.omit(number, child, 0..self.golden.threads[child as usize].events.len(), cause, true);
            self.without(child, cause);
        }
    }

    /// Memory lacks what events of a golden thread wrote.
    fn omit(&mut self, thread: u32, golden: u32, events: Range<usize>, cause: Option<Node>, missing: bool) {
        let events = &self.golden.threads[golden as usize].events[events];
        for event in events.iter().filter(|e| e.writes && e.tag_a == OBJECT) {
            let Some(twin) = self.twins[(event.a >> 32) as usize] else { continue };
            let object = &self.sanitized.objects[twin as usize];
            let single = event.kind == format::STORE;
            let length = if single { u64::from(self.recording.sites[event.site as usize].size) } else { event.b };
            let from = object.base.wrapping_add(event.a & 0xffff_ffff);
            let node = (thread, event.site);
            for byte in from..from.saturating_add(length.min(object.size).min(1 << 24)) {
                self.memory.insert(byte, node);
            }
            if missing {
                let first = events.len() as u32;
                let fresh = Spread { events: 0, first, rank: self.rank, root: false, missing: 0 };
                self.found.nodes.entry(node).or_insert(fresh).missing += 1;
                if let Some(from) = cause.filter(|&from| from != node) {
                    *self.found.edges.entry((from, node, Via::Control, NO_OBJECT)).or_insert(0) += 1;
                }
            }
        }
    }

    fn note(&mut self, t: usize, node: Node, at: usize, flag: u8, mut sources: Vec<(Node, Via, u32)>) {
        let root = self.struck.contains(&(node.0, at as u32));
        if sources.is_empty()
            && let Some(frame) = self.lanes[t].frames.last()
        {
            if flag == 1 && !root {
                sources.extend(frame.arguments.iter().map(|&from| (from, Via::Argument, NO_OBJECT)));
            }
            if flag == 2 || (sources.is_empty() && !root) {
                sources.extend(frame.last.map(|from| (from, Via::Control, NO_OBJECT)));
            }
        }
        let spread = self.found.nodes.entry(node).or_insert(Spread {
            events: 0,
            first: at as u32,
            rank: self.rank,
            root: false,
            missing: 0,
        });
        spread.events += 1;
        spread.root |= root;
        for (from, via, object) in sources {
            if from != node {
                *self.found.edges.entry((from, node, via, object)).or_insert(0) += 1;
            }
        }
    }

    fn registers(&self, t: usize, thread: u32, operands: &[u32], sources: &mut Vec<(Node, Via, u32)>) {
        if let Some(frame) = self.lanes[t].frames.last() {
            for &operand in operands {
                if frame.values.contains(&operand) {
                    sources.push(((thread, operand), Via::Register, NO_OBJECT));
                }
            }
        }
    }

    fn bytes(&self, address: u64, length: u64, object: u32, sources: &mut Vec<(Node, Via, u32)>) {
        if self.memory.is_empty() {
            return;
        }
        for byte in address..address.saturating_add(length) {
            if let Some(&from) = self.memory.get(&byte)
                && !sources.contains(&(from, Via::Memory, object))
            {
                sources.push((from, Via::Memory, object));
            }
        }
    }

    /// Deviating bytes move along; the copy is a node if any does.
    fn copy(&mut self, t: usize, at: usize, node: Node, w: [u64; 3]) {
        let length = w[2].min(1 << 24);
        let mut sources = Vec::new();
        self.bytes(w[1], length, self.object(t, at), &mut sources);
        for i in 0..length {
            if self.memory.contains_key(&w[1].wrapping_add(i)) {
                self.memory.insert(w[0].wrapping_add(i), node);
            } else {
                self.memory.remove(&w[0].wrapping_add(i));
            }
        }
        if !sources.is_empty() {
            self.note(t, node, at, 1, sources);
        }
    }

    fn object(&self, t: usize, at: usize) -> u32 {
        let event = &self.sanitized.threads[t].events[at];
        if event.tag_a == OBJECT { (event.a >> 32) as u32 } else { NO_OBJECT }
    }

    fn leave(&mut self, t: usize, pointer: u64) {
        while self.lanes[t].frames.last().is_some_and(|f| f.pointer <= pointer) {
            self.lanes[t].frames.pop();
        }
    }
}

//! How errors spread in a faulty run: which deviation of an instruction came from which other one. Errors spread
//! through registers, memory, arguments, results and control flow, within and across threads.
//!
//! A node is an instruction of a thread, with all its deviating executions. An edge says that a deviating execution
//! used a value that another one made. Only deviating events are followed. A corrupted value that is masked (multiplied
//! by zero, overwritten) has no outgoing edges, because the later events are equal to the golden run.

use rustc_hash::{FxHashMap, FxHashSet};

use super::compare::Comparison;
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
}

struct Walk<'a> {
    recording: &'a Recording,
    sanitized: &'a Sanitized,
    flags: Vec<&'a [u8]>,
    struck: FxHashSet<(u32, u32)>,
    lanes: Vec<Lane>,
    /// Deviating bytes of memory: who wrote them.
    memory: FxHashMap<u64, Node>,
    inherited: FxHashMap<u32, Vec<Node>>,
    found: Propagation,
    rank: u64,
}

pub fn propagate(recording: &Recording, sanitized: &Sanitized, comparison: &Comparison) -> Propagation {
    let mut flags: Vec<&[u8]> = vec![&[]; sanitized.threads.len()];
    for thread in &comparison.threads {
        if let Some(faulty) = thread.faulty {
            flags[faulty as usize] = &thread.flags;
        }
    }
    let mut walk = Walk {
        recording,
        sanitized,
        flags,
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
            format::RANGE if record.detail >= format::RANGE_STACK => return,
            format::FAULT | format::SEQUENCE | format::SYNC | format::ALLOC | format::FREE => return,
            _ => {}
        }
        let at = self.lanes[t].event;
        self.lanes[t].event += 1 + usize::from(record.kind == format::COPY);
        self.rank += 1;
        let flag = self.flags[t].get(at).copied().unwrap_or(0);
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

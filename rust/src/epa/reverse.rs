//! The reversibility check (Saissi 2019, Definition 5, condition 2): can two dependent events of different threads come
//! in another order?
//!
//! Of the accesses of another thread to a location, only the last one before an access matters: if the access could
//! come before an earlier one, it could come before the last one as well. Accesses between the same two synchronisation
//! events of a thread behave alike. So each access is compared with one or two epochs per thread. If the clocks do not
//! order the two, a question about two synchronisation events remains, and is decided once: can `late` come before
//! `early`?

use rustc_hash::{FxHashMap, FxHashSet};

use super::format::{self, op};
use super::order::{Clocks, NONE, Node, Skeleton};
use super::recording::Recording;
use super::sanitize::{OBJECT, PLAIN, Sanitized, UNKNOWN};

/// What a step of a trace does, for this check.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    Sync {
        op: u32,
        object: u64,
        extra: u64,
    },
    Access {
        object: u64,
        offset: u64,
        length: u64,
        writes: bool,
        value: Option<u64>,
    },
    /// The object ends: as if all of it was written.
    End {
        object: u64,
        size: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub thread: u32,
    pub site: u32,
    /// Its place among the events of its thread.
    pub event: u32,
    pub action: Action,
}

/// An access, and where its thread was.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub thread: u32,
    pub site: u32,
    pub event: u32,
    pub writes: bool,
    pub value: Option<u64>,
    position: u32,
    mask: u8,
}

/// Two dependent accesses, the first observed first, that no edge orders.
#[derive(Clone, Debug)]
pub struct Pair {
    pub object: u64,
    pub offset: u64,
    pub first: Access,
    pub second: Access,
    /// The node after the first access, and the one before the second: the second can come first iff `late` can precede
    /// `early`. A first access that nothing follows has no `early`.
    pub early: u32,
    pub late: u32,
    pub answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This order of the synchronisation events lets it.
    Reversible(Vec<u32>),
    Irreversible,
    /// Neither closure nor a greedy schedule decided it.
    Open,
}

#[derive(Default)]
pub struct Report {
    pub skeleton: Skeleton,
    pub rounds: u32,
    /// Pairs of dependent accesses of different threads that were compared.
    pub dependencies: u64,
    pub accesses: u64,
    pub locations: u64,
    /// Unordered pairs that were decided one by one.
    pub candidates: u64,
    pub pairs: Vec<Pair>,
    /// Pairs that were irreversible only together with locks.
    pub refuted: u64,
    /// More unordered pairs were found than are kept.
    pub overflow: bool,
    /// Threads that need not have ended when the program exits, or have not.
    pub loose: Vec<u32>,
}

pub const UNKNOWN_MEMORY: u64 = u64::MAX - 1;
/// Files, by the numbers that the recorder gives them.
pub const FILES: u64 = u64::MAX - 2;
/// The object of an end with which the whole program ends.
const EXITS: u64 = 1;
const MOST: usize = 20_000;

#[derive(Default)]
struct Location {
    reads: Vec<Access>,
    writes: Vec<Access>,
}

/// A source of the steps of a trace, in order. It can be read any number of times.
pub type Steps<'a> = dyn Fn(&mut dyn FnMut(Step)) + 'a;

/// Decide reversibility for the steps that `each` visits, twice, in the order in which they were observed. At most `limit`
/// reversible pairs are looked for. `replay`: critical sections keep the observed order.
pub fn reversible(each: &Steps<'_>, benign: bool, limit: usize, replay: bool) -> Report {
    let mut report = Report::default();
    let mut skeleton = Skeleton::new(replay);
    each(&mut |step| {
        if let Action::Sync { op, object, extra } = step.action {
            skeleton.push(step.thread, op, object, extra, step.site);
        }
    });
    skeleton.finish();
    let Some(clocks) = Clocks::close(&skeleton, None) else {
        // The observed order satisfies all edges, unless the trace is damaged.
        skeleton.warnings.push("the synchronisation events of this trace contradict each other".into());
        report.skeleton = skeleton;
        report.overflow = true;
        return report;
    };
    report.rounds = clocks.rounds;
    report.loose = loose(&skeleton, &clocks);
    let mut search = Search {
        skeleton: &skeleton,
        clocks: &clocks,
        benign,
        reached: vec![0; skeleton.threads.len()],
        locations: FxHashMap::default(),
        asked: FxHashSet::default(),
        once: FxHashSet::default(),
        found: Vec::new(),
        report: &mut report,
    };
    each(&mut |step| search.step(step));
    let found = std::mem::take(&mut search.found);
    report.locations = search.locations.len() as u64;
    report.candidates = found.len() as u64;
    let mut witnesses = 0;
    for mut pair in found {
        if witnesses >= limit {
            break;
        }
        pair.answer = decide(&skeleton, &pair);
        match pair.answer {
            Answer::Irreversible => {
                report.refuted += 1;
                continue;
            }
            Answer::Reversible(_) => witnesses += 1,
            Answer::Open => {}
        }
        report.pairs.push(pair);
    }
    report.skeleton = skeleton;
    report
}

fn decide(skeleton: &Skeleton, pair: &Pair) -> Answer {
    if pair.early == NONE {
        return Answer::Reversible((0..skeleton.nodes.len() as u32).collect());
    }
    match Clocks::close(skeleton, Some((pair.late, pair.early))) {
        None => Answer::Irreversible,
        Some(closed) => closed.schedule(skeleton, pair.late).map_or(Answer::Open, Answer::Reversible),
    }
}

/// An exit ends all threads: those whose own end nothing puts before it may be cut off in another schedule.
fn loose(skeleton: &Skeleton, clocks: &Clocks) -> Vec<u32> {
    let Some(exit) = (skeleton.nodes.iter()).position(|n| n.op == op::END && n.object == EXITS) else {
        return Vec::new();
    };
    let late = |n: &&Node| n.op == op::END && n.object != EXITS && clocks.count(exit as u32, n.thread) <= n.position;
    let ended: FxHashSet<u64> =
        (skeleton.nodes.iter()).filter(|n| n.op == op::END).map(|n| u64::from(n.thread)).collect();
    let never = |n: &&Node| n.op == op::CREATE && n.object != u64::from(NONE) && !ended.contains(&n.object);
    let ends = skeleton.nodes.iter().filter(late).map(|n| n.thread);
    ends.chain(skeleton.nodes.iter().filter(never).map(|n| n.object as u32)).collect()
}

struct Search<'a> {
    skeleton: &'a Skeleton,
    clocks: &'a Clocks,
    benign: bool,
    /// Per thread, how many of its nodes are behind it.
    reached: Vec<u32>,
    locations: FxHashMap<(u64, u64), Location>,
    asked: FxHashSet<(u32, u32)>,
    /// Controls of `pthread_once` that were seen.
    once: FxHashSet<u64>,
    found: Vec<Pair>,
    report: &'a mut Report,
}

impl Search<'_> {
    fn step(&mut self, step: Step) {
        match step.action {
            Action::Sync { op: op::BARRIER_INIT, .. } => {}
            Action::Sync { op, object, .. } => {
                self.reached[step.thread as usize] += 1;
                if op == op::ONCE {
                    // Who comes first runs the routine: as if that call wrote, and the others read.
                    let first = self.once.insert(object);
                    self.access(step, (u64::MAX, object), 0, 0xff, first, None);
                }
                if matches!(op, op::FILE_READ | op::FILE_WRITE) {
                    self.access(step, (FILES, object), object, 0xff, op == op::FILE_WRITE, None);
                }
            }
            Action::Access { object, offset, length, writes, value } => {
                let end = offset.saturating_add(length.max(1));
                let mut at = offset;
                while at < end {
                    let next = ((at >> 3) + 1) << 3;
                    let stop = next.min(end);
                    let mask = (((1u16 << (stop - at)) - 1) << (at & 7)) as u8;
                    self.access(step, (object, at >> 3), at, mask, writes, value);
                    at = stop;
                }
            }
            // Only what was accessed matters.
            Action::End { object, size } => {
                for cell in 0..size.div_ceil(8) {
                    if self.locations.contains_key(&(object, cell)) {
                        self.access(step, (object, cell), cell << 3, 0xff, true, None);
                    }
                }
            }
        }
    }

    fn access(&mut self, step: Step, key: (u64, u64), offset: u64, mask: u8, writes: bool, value: Option<u64>) {
        let reached = self.reached.get(step.thread as usize).copied().unwrap_or(0);
        let Some(position) = reached.checked_sub(1) else { return };
        self.report.accesses += 1;
        let access = Access { thread: step.thread, site: step.site, event: step.event, writes, value, position, mask };
        let location = self.locations.entry(key).or_default();
        let own = if writes { &location.writes } else { &location.reads };
        if own.iter().any(|a| same(a, &access) && a.position == position && (!self.benign || a.value == value)) {
            return;
        }
        let node = self.skeleton.threads[step.thread as usize][position as usize];
        let others = location.writes.iter().chain(if writes { location.reads.iter() } else { [].iter() });
        for other in others {
            if other.thread == step.thread || other.mask & mask == 0 {
                continue;
            }
            if self.benign && writes && other.writes && value.is_some() && other.value == value {
                continue;
            }
            self.report.dependencies += 1;
            // The node after the other access must be at or before the last node of this thread.
            if self.clocks.count(node, other.thread) >= other.position + 2 {
                continue;
            }
            let early = self.skeleton.threads[other.thread as usize].get(other.position as usize + 1);
            let early = early.copied().unwrap_or(NONE);
            if !self.asked.insert((early, node)) {
                continue;
            }
            if self.found.len() >= MOST {
                self.report.overflow = true;
                continue;
            }
            self.found.push(Pair {
                object: key.0,
                offset,
                first: *other,
                second: access,
                early,
                late: node,
                answer: Answer::Open,
            });
        }
        let own = if writes { &mut location.writes } else { &mut location.reads };
        remember(own, access, self.benign);
    }
}

fn same(one: &Access, other: &Access) -> bool {
    one.thread == other.thread && one.mask == other.mask
}

/// Keep a thread's last access, and (where equal values are no conflict) its last one of another value.
fn remember(kept: &mut Vec<Access>, access: Access, benign: bool) {
    if benign {
        if let Some(equal) = kept.iter().position(|a| same(a, &access) && a.value == access.value) {
            kept.remove(equal);
        }
        while kept.iter().filter(|a| same(a, &access)).count() > 1 {
            let oldest = kept.iter().position(|a| same(a, &access)).expect("there are two");
            kept.remove(oldest);
        }
        kept.push(access);
    } else if let Some(mine) = kept.iter_mut().find(|a| same(a, &access)) {
        *mine = access;
    } else {
        kept.push(access);
    }
}

/// What of a trace matters.
#[derive(Default)]
pub struct Scope {
    /// Files that do not matter.
    pub ignored: Vec<u64>,
    /// The order of ordered operations matters.
    pub replay: bool,
}

/// The steps of a sanitized trace that matter here: synchronisation, and accesses to objects that threads share.
pub fn steps(recording: &Recording, sanitized: &Sanitized, scope: &Scope, visit: &mut dyn FnMut(Step)) {
    let mut reached = vec![0usize; sanitized.threads.len()];
    let mut joining = vec![NONE; sanitized.threads.len()];
    let mut handles: FxHashMap<u64, u32> = FxHashMap::default();
    let by_uid: FxHashMap<u32, u32> = (sanitized.threads.iter().enumerate()).map(|(i, t)| (t.uid, i as u32)).collect();
    let mut ends = sanitized.ends.iter().peekable();
    for (number, (run, &length)) in recording.runs.iter().zip(&sanitized.lengths).enumerate() {
        let thread = run.stream;
        if let Some(record) = recording.sync(*run) {
            let mut object = record.words[1];
            match record.detail {
                op::START => {
                    handles.insert(record.words[2], thread);
                }
                op::CREATED => {
                    if let Some(&child) = by_uid.get(&(object as u32)) {
                        handles.insert(record.words[2], child);
                    }
                }
                op::JOIN_BEGIN => joining[thread as usize] = handles.get(&object).copied().unwrap_or(NONE),
                op::JOIN => object = u64::from(joining[thread as usize]),
                op::CREATE => object = by_uid.get(&(object as u32)).map_or(u64::from(NONE), |&t| u64::from(t)),
                _ => {}
            }
            let file = matches!(record.detail, op::FILE_READ | op::FILE_WRITE) && scope.ignored.contains(&object);
            let ordered = matches!(record.detail, op::ORDERED_IN | op::ORDERED_OUT) && !scope.replay;
            let silent = matches!(record.detail, op::CREATED | op::JOIN_BEGIN | op::WAIT | op::SIGNAL | op::TRY_FAILED);
            if !file && !ordered && !silent {
                visit(Step {
                    thread,
                    site: record.site,
                    event: reached[thread as usize] as u32,
                    action: Action::Sync { op: record.detail, object, extra: record.words[2] },
                });
            }
        }
        let from = reached[thread as usize];
        let data = &sanitized.threads[thread as usize];
        let mut finish = |until: usize, visit: &mut dyn FnMut(Step)| {
            while let Some(end) = ends.next_if(|end| end.run as usize == number && end.event as usize <= until) {
                let size = sanitized.objects[end.object as usize].size;
                let action = Action::End { object: u64::from(end.object), size };
                visit(Step { thread, site: end.site, event: end.event, action });
            }
        };
        for (i, event) in data.events[from..from + length as usize].iter().enumerate() {
            finish(from + i, visit);
            let accesses =
                matches!(event.kind, format::LOAD | format::STORE | format::RANGE | format::COPY | format::COPY_FROM);
            if !accesses {
                continue;
            }
            let (number, offset) = match event.tag_a {
                OBJECT => (event.a >> 32, event.a & 0xffff_ffff),
                // All memory without a known allocation is one object. Its addresses are the offsets.
                UNKNOWN => {
                    let met = data.unknown[(event.a >> 32) as usize];
                    (UNKNOWN_MEMORY, sanitized.objects[met as usize].base)
                }
                _ => continue,
            };
            if number != UNKNOWN_MEMORY && !sanitized.objects[number as usize].shared {
                continue;
            }
            let single = matches!(event.kind, format::LOAD | format::STORE);
            let length = if single { u64::from(recording.sites[event.site as usize].size) } else { event.b };
            // An external function that may access the rest of an object has no length.
            let rest = if number == UNKNOWN_MEMORY { 1 << 12 } else { sanitized.objects[number as usize].size };
            let length = length.min(rest.saturating_sub(if number == UNKNOWN_MEMORY { 0 } else { offset })).max(1);
            visit(Step {
                thread,
                site: event.site,
                event: (from + i) as u32,
                action: Action::Access {
                    object: number,
                    offset,
                    length,
                    writes: event.writes,
                    value: (single && event.tag_b == PLAIN).then_some(event.b),
                },
            });
        }
        finish(from + length as usize, visit);
        reached[thread as usize] = from + length as usize;
    }
}

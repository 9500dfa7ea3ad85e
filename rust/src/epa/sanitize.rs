//! The two sanitizing algorithms of Saissi 2019, section 5.4.3: memory objects (Algorithm 4) and thread names
//! (Algorithm 5).
//!
//! An address becomes an object and an offset. The name of an object does not depend on the schedule: it consists of
//! the thread, the site that made the object, and the number of objects that the thread made there before. (Saissi 2019
//! counts the instructions of a thread instead. Names by site are unique as well, and they do not all change when a
//! faulty run makes one object more.) A thread is named by its parent and its place among the children of its parent.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

use super::format::{self, Record, op};
use super::made::{Made, Results, Watched};
use super::marks::Marks;
use super::recording::{Class, Module, Placed, Recording, Site};
use suspects::may_be_address;
pub use suspects::{End, Suspect};

#[path = "suspects.rs"]
mod suspects;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Global,
    Heap,
    Stack,
    /// A thread's own variable (`thread_local`).
    Local,
    /// What belongs to a library: named by the library.
    Library,
    /// Memory without a known allocation (the object of default size in Saissi 2019).
    Default,
}

pub const NOBODY: u32 = u32::MAX;

/// A memory object `(base, thread, local index, size, validity)`, with the parts of its name.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    pub kind: Kind,
    pub owner: u32,
    /// The site that made it, the number of the global, or that of the library.
    pub site: u32,
    pub nth: u32,
    pub base: u64,
    pub size: u64,
    /// Position of its allocation among the events of its thread.
    pub local: u32,
    pub from: u64,
    pub to: u64,
    /// Whether threads other than the first that accessed it did so as well.
    pub shared: bool,
    toucher: u32,
}

pub const PLAIN: u8 = 0;
/// An object in the upper half, an offset in the lower.
pub const OBJECT: u8 = 1;
/// A thread.
pub const THREAD: u8 = 2;
/// Unknown memory: in the upper half how many the thread had met before, in the lower whether it lies in a stack.
pub const UNKNOWN: u8 = 3;

/// An event with symbols in place of addresses. `tags` says what the two words are.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub site: u32,
    pub kind: u8,
    pub tag_a: u8,
    pub tag_b: u8,
    pub writes: bool,
    pub a: u64,
    pub b: u64,
}

/// A value that a fault changed.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub thread: u32,
    pub event: u32,
    pub site: u32,
    pub before: u64,
    pub after: u64,
}

pub struct Thread {
    pub uid: u32,
    pub name: String,
    pub parent: u32,
    pub events: Vec<Event>,
    pub ended: bool,
    /// Objects of unknown memory, in the order in which this thread met them.
    pub unknown: Vec<u32>,
}

pub struct Sanitized {
    pub threads: Vec<Thread>,
    pub objects: Vec<Object>,
    pub faults: Vec<Fault>,
    /// Sites that computed with the place of an object, sorted.
    pub mixed: Vec<u32>,
    /// Sites with other reasons for doubt, sorted.
    pub suspects: Vec<(Suspect, u32)>,
    /// Per run of the recording, how many events it became.
    pub lengths: Vec<u32>,
    /// In the order of the whole run.
    pub ends: Vec<End>,
    pub total: u64,
}

struct Frame {
    pointer: u64,
    first: usize,
    results: Results,
}

#[derive(Default)]
struct State {
    frames: Vec<Frame>,
    /// Objects on the stack: from, to, number.
    stack: Vec<(u64, u64, u32)>,
    low: u64,
    high: u64,
    /// Of the watched sites of all frames.
    made: Made,
    counts: FxHashMap<u32, u32>,
    met: FxHashMap<u32, u32>,
    locals: Vec<(u64, u64, u32)>,
    /// The last block that was freed, if nothing was allocated since: the site, and the place of the block.
    given_back: Option<(u32, u64, u64)>,
}

struct Sanitizer<'a> {
    sites: &'a [Site],
    globals: &'a [Placed],
    modules: &'a [Module],
    threads: Vec<Thread>,
    states: Vec<State>,
    objects: Vec<Object>,
    global_objects: Vec<u32>,
    module_objects: Vec<u32>,
    heap: BTreeMap<u64, u32>,
    unknown: FxHashMap<u64, u32>,
    handles: FxHashMap<u64, u32>,
    faults: Vec<Fault>,
    /// Sites whose results matter to those that could compute with addresses.
    watched: Watched,
    /// The smallest and the largest handle.
    handle_range: (u64, u64),
    mixed: FxHashSet<u32>,
    suspects: FxHashSet<(Suspect, u32)>,
    /// Freed heap blocks: from, to.
    freed: BTreeMap<u64, u64>,
    marks: Marks,
    ends: Vec<End>,
    run: u32,
    now: u64,
    end: u64,
}

/// Name threads (Algorithm 5) and objects (Algorithm 4), and replace them in all events.
pub fn sanitize(recording: &Recording) -> Sanitized {
    let names = thread_names(recording);
    let mut sanitizer = Sanitizer::new(recording, names);
    let mut lengths = vec![0; recording.runs.len()];
    recording.walk(|run, thread, record| {
        sanitizer.run = run as u32;
        lengths[run] += sanitizer.record(thread as usize, record);
    });
    let mut mixed: Vec<u32> = sanitizer.mixed.into_iter().collect();
    mixed.sort_unstable();
    let mut suspects: Vec<(Suspect, u32)> = sanitizer.suspects.into_iter().collect();
    suspects.sort_unstable();
    Sanitized {
        mixed,
        suspects,
        threads: sanitizer.threads,
        objects: sanitizer.objects,
        faults: sanitizer.faults,
        lengths,
        ends: sanitizer.ends,
        total: sanitizer.now,
    }
}

/// Parent and name of every stream. Children are numbered by their parent when it creates them, so that the breadth-first
/// walk of Algorithm 5 is one look at each thread: parents come before their children.
pub fn thread_names(recording: &Recording) -> Vec<(u32, String)> {
    let mut names: Vec<(u32, String)> = Vec::new();
    for stream in &recording.streams {
        let found = recording.parents.get(&stream.uid).copied();
        let parent = found.and_then(|(uid, ordinal)| {
            let at = recording.streams.iter().position(|s| s.uid == uid)?;
            names.get(at).map(|(_, name)| (at as u32, format!("{name}_{ordinal}")))
        });
        names.push(match parent {
            Some(known) => known,
            None if stream.uid == 0 => (NOBODY, "T_0".into()),
            None => (NOBODY, format!("T_?{}", stream.uid)),
        });
    }
    names
}

impl<'a> Sanitizer<'a> {
    fn new(recording: &'a Recording, names: Vec<(u32, String)>) -> Self {
        let mut threads = Vec::new();
        for (stream, (parent, name)) in recording.streams.iter().zip(names) {
            let events = Vec::with_capacity(stream.events as usize);
            threads.push(Thread { uid: stream.uid, name, parent, events, ended: stream.ended, unknown: Vec::new() });
        }
        let mut this = Self {
            sites: &recording.sites,
            globals: &recording.globals,
            modules: &recording.modules,
            states: threads.iter().map(|_| State::default()).collect(),
            threads,
            objects: Vec::new(),
            global_objects: Vec::new(),
            module_objects: Vec::new(),
            heap: BTreeMap::new(),
            unknown: FxHashMap::default(),
            handles: FxHashMap::default(),
            faults: Vec::new(),
            watched: Watched::new(&recording.sites, recording.functions()),
            handle_range: (u64::MAX, 0),
            mixed: FxHashSet::default(),
            suspects: FxHashSet::default(),
            freed: BTreeMap::new(),
            marks: Marks::default(),
            ends: Vec::new(),
            run: 0,
            now: 0,
            end: recording.records,
        };
        for placed in this.globals {
            let number = this.object(Kind::Global, NOBODY, placed.id, 0, placed.address, placed.size);
            this.global_objects.push(number);
        }
        for module in this.modules {
            // Not by address, which is random: by name.
            let rank = this.modules.iter().filter(|m| m.name < module.name).count() as u32;
            let number = this.object(Kind::Library, NOBODY, rank, 0, module.from, module.to - module.from);
            this.module_objects.push(number);
        }
        this
    }

    fn object(&mut self, kind: Kind, owner: u32, site: u32, nth: u32, base: u64, size: u64) -> u32 {
        let local = if owner == NOBODY { 0 } else { self.threads[owner as usize].events.len() as u32 };
        self.objects.push(Object {
            kind,
            owner,
            site,
            nth,
            base,
            size,
            local,
            from: self.now,
            to: self.end,
            shared: false,
            toucher: NOBODY,
        });
        (self.objects.len() - 1) as u32
    }

    /// Take an event; how many events it is once it is sanitized.
    fn record(&mut self, thread: usize, record: Record) -> u32 {
        let before = self.threads[thread].events.len();
        self.take(thread, record);
        (self.threads[thread].events.len() - before) as u32
    }

    fn take(&mut self, thread: usize, record: Record) {
        if record.kind == format::SEQUENCE {
            return;
        }
        let w = record.words;
        let mut event =
            Event { site: record.site, kind: record.kind, tag_a: PLAIN, tag_b: PLAIN, writes: false, a: 0, b: 0 };
        let class = self.sites.get(record.site as usize).map_or(Class::Plain, |s| s.class);
        match record.kind {
            format::VALUE | format::RETURN | format::ARGUMENT => {
                (event.tag_a, event.a) = self.symbol(thread, w[0], class);
                if record.kind == format::VALUE {
                    self.compute(thread, record.site, event.tag_a, event.a);
                    self.made(thread, record.site, event.tag_a, event.a);
                }
                if record.kind == format::ARGUMENT && class == Class::Word && event.tag_a != PLAIN {
                    self.suspects.insert((Suspect::Argument, record.site));
                }
            }
            format::CALL => {
                (event.tag_a, event.a) = self.symbol(thread, w[0], Class::Pointer);
                match event.tag_a {
                    OBJECT => drop(self.suspects.insert((Suspect::Pointer((event.a >> 32) as u32), record.site))),
                    PLAIN if w[0] == 0 => {}
                    _ => drop(self.suspects.insert((Suspect::Pointer(NOBODY), record.site))),
                }
            }
            format::LOAD | format::STORE => {
                (event.tag_a, event.a) = self.symbol(thread, w[0], Class::Pointer);
                (event.tag_b, event.b) = self.symbol(thread, w[1], class);
                event.writes = record.kind == format::STORE;
                self.touch(thread, &event);
                self.share_address(record, class, event.tag_b);
                if record.kind == format::LOAD {
                    self.made(thread, record.site, event.tag_b, event.b);
                    self.doubt(record.site, event.tag_a, w[0]);
                }
            }
            format::ALLOCA => {
                let nth = self.count(thread, record.site);
                let number = self.object(Kind::Stack, thread as u32, record.site, nth, w[0], w[1]);
                self.marks.clear(w[0], w[1]);
                self.states[thread].stack.push((w[0], w[0] + w[1].max(1), number));
                (event.tag_a, event.a) = (OBJECT, u64::from(number) << 32);
                event.b = w[1];
                self.made(thread, record.site, event.tag_a, event.a);
            }
            format::ENTER => {
                // A frame that is entered at or above another has left it behind (longjmp, an exception).
                self.leave(thread, record.site, w[0]);
                let first = self.states[thread].stack.len();
                let state = &mut self.states[thread];
                let results = state.made.enter(&self.watched, record.site);
                state.frames.push(Frame { pointer: w[0], first, results });
            }
            format::LANDING => self.leave(thread, record.site, w[0].saturating_sub(1)),
            format::RANGE if record.detail == format::RANGE_STACK => {
                (self.states[thread].low, self.states[thread].high) = (w[0], w[0] + w[1]);
                return;
            }
            format::RANGE if record.detail == format::RANGE_LOCAL => {
                let number = self.object(Kind::Local, thread as u32, record.site, 0, w[0], w[1]);
                self.states[thread].locals.push((w[0], w[0] + w[1].max(1), number));
                return;
            }
            format::RANGE if record.detail == format::RANGE_ADDRESS => {
                self.suspects.insert((Suspect::Printed, record.site));
                return;
            }
            format::RANGE => {
                (event.tag_a, event.a) = self.symbol(thread, w[0], Class::Pointer);
                event.b = w[1];
                event.writes = record.detail == format::RANGE_WRITE;
                self.touch(thread, &event);
                if event.writes {
                    self.marks.clear(w[0], w[1]);
                } else {
                    self.doubt(record.site, event.tag_a, w[0]);
                    if self.marks.any(w[0], w[1]) {
                        self.suspects.insert((Suspect::Part, record.site));
                    }
                }
            }
            format::COPY => {
                self.marks.copy(w[0], w[1], w[2]);
                let mut from = event;
                from.kind = format::COPY_FROM;
                (from.tag_a, from.a) = self.symbol(thread, w[1], Class::Pointer);
                from.b = w[2];
                self.touch(thread, &from);
                self.doubt(record.site, from.tag_a, w[1]);
                self.threads[thread].events.push(from);
                (event.tag_a, event.a) = self.symbol(thread, w[0], Class::Pointer);
                event.b = w[2];
                event.writes = true;
                self.touch(thread, &event);
            }
            format::FAULT => {
                let event = self.threads[thread].events.len() as u32;
                self.faults.push(Fault { thread: thread as u32, event, site: record.site, before: w[0], after: w[1] });
                return;
            }
            _ => {
                self.numbered(thread, record);
                self.now += 1;
                return;
            }
        }
        self.threads[thread].events.push(event);
        if record.kind == format::RETURN {
            let state = &self.states[thread];
            let pointer = state.frames.last().map_or(0, |f| f.pointer);
            self.leave(thread, record.site, pointer);
        }
        self.now += 1;
    }

    fn numbered(&mut self, thread: usize, record: Record) {
        let w = record.words;
        match (record.kind, record.detail) {
            (format::ALLOC, 0) => {
                let nth = self.count(thread, record.site);
                let number = self.object(Kind::Heap, thread as u32, record.site, nth, w[1], w[2]);
                self.heap.insert(w[1], number);
                match self.states[thread].given_back.take() {
                    // A realloc keeps the content of the block.
                    Some((site, old, size)) if site == record.site => self.marks.copy(w[1], old, size.min(w[2])),
                    _ => self.marks.clear(w[1], w[2]),
                }
                let end = w[1].saturating_add(w[2].max(1));
                while let Some((&from, &to)) = self.freed.range(..end).next_back() {
                    if to <= w[1] {
                        break;
                    }
                    self.freed.remove(&from);
                }
            }
            (format::ALLOC, _) => {
                self.freed.remove(&w[1]);
                // A failed realloc: the block that was noted as freed is still there.
                if let Some(at) = (0..self.objects.len()).rev().find(|&i| self.objects[i].base == w[1]) {
                    self.objects[at].to = self.end;
                    self.heap.insert(w[1], at as u32);
                }
            }
            (format::FREE, _) => {
                if let Some(number) = self.heap.remove(&w[1]) {
                    let size = self.objects[number as usize].size;
                    self.objects[number as usize].to = self.now;
                    self.freed.insert(w[1], w[1].saturating_add(size));
                    self.states[thread].given_back = Some((record.site, w[1], size));
                    self.touched(thread, number);
                    self.finished(thread, record.site, number);
                }
            }
            (format::SYNC, op::START) => {
                self.handle(w[2], thread as u32);
            }
            (format::SYNC, op::CREATED) => {
                let uid = w[1] as u32;
                if let Some(at) = self.threads.iter().position(|t| t.uid == uid) {
                    self.handle(w[2], at as u32);
                }
            }
            (format::SYNC, op::END) => self.leave(thread, record.site, u64::MAX),
            _ => {}
        }
    }

    fn handle(&mut self, handle: u64, thread: u32) {
        self.handles.insert(handle, thread);
        self.handle_range = (self.handle_range.0.min(handle), self.handle_range.1.max(handle));
    }

    fn made(&mut self, thread: usize, site: u32, tag: u8, value: u64) {
        if self.watched.contains(site) {
            let state = &mut self.states[thread];
            if let Some(frame) = state.frames.last() {
                state.made.keep(&self.watched, &frame.results, site, (tag, value));
            }
        }
    }

    /// How many objects a thread has made at a site so far.
    fn count(&mut self, thread: usize, site: u32) -> u32 {
        let count = self.states[thread].counts.entry(site).or_insert(0);
        *count += 1;
        *count - 1
    }

    /// Leave all frames at or below (in addresses) a frame: their objects are no longer valid.
    fn leave(&mut self, thread: usize, site: u32, pointer: u64) {
        let state = &mut self.states[thread];
        while let Some(frame) = state.frames.last() {
            if frame.pointer > pointer {
                break;
            }
            let event = self.threads[thread].events.len() as u32;
            for (_, _, number) in state.stack.drain(frame.first..) {
                let object = &mut self.objects[number as usize];
                object.to = self.now;
                if object.shared {
                    self.ends.push(End { run: self.run, event, site, object: number });
                }
            }
            state.made.leave(&frame.results);
            state.frames.pop();
        }
    }

    fn touch(&mut self, thread: usize, event: &Event) {
        let number = match event.tag_a {
            OBJECT => (event.a >> 32) as u32,
            UNKNOWN => self.threads[thread].unknown[(event.a >> 32) as usize],
            _ => return,
        };
        self.touched(thread, number);
    }

    fn touched(&mut self, thread: usize, number: u32) {
        let object = &mut self.objects[number as usize];
        if object.toucher == NOBODY {
            object.toucher = thread as u32;
        } else if object.toucher != thread as u32 {
            object.shared = true;
        }
    }

    /// The symbol of a value: what it points to, the thread it names, or itself.
    #[inline]
    fn symbol(&mut self, thread: usize, value: u64, class: Class) -> (u8, u64) {
        // The numbers of programs mostly are no addresses.
        if class == Class::Plain || !may_be_address(value) {
            return (PLAIN, value);
        }
        let (least, most) = self.handle_range;
        if (least..=most).contains(&value)
            && let Some(&other) = self.handles.get(&value)
        {
            return (THREAD, u64::from(other));
        }
        if let Some((number, base)) = self.find(thread, value) {
            return (OBJECT, (u64::from(number) << 32) | (value.wrapping_sub(base) & 0xffff_ffff));
        }
        let known = self.unknown.get(&value).copied();
        // Whether an integer is an address must not depend on what other threads have met.
        if class == Class::Word && known.is_none_or(|number| !self.states[thread].met.contains_key(&number)) {
            return (PLAIN, value);
        }
        let number = known.unwrap_or_else(|| {
            let number = self.object(Kind::Default, NOBODY, 0, 0, value, 8);
            self.unknown.insert(value, number);
            number
        });
        let names = &mut self.threads[thread].unknown;
        let nth = *self.states[thread].met.entry(number).or_insert_with(|| {
            names.push(number);
            (names.len() - 1) as u32
        });
        let within = |s: &State| s.low <= value && value < s.high;
        let place = if within(&self.states[thread]) { 1 } else { u64::from(self.states.iter().any(within)) * 2 };
        (UNKNOWN, (u64::from(nth) << 32) | place)
    }

    /// The object that an address lies in, or just behind the end of which it lies.
    #[inline]
    fn find(&self, thread: usize, address: u64) -> Option<(u32, u64)> {
        let own = &self.states[thread];
        if own.low <= address && address < own.high {
            return in_stack(own, address).or_else(|| self.placed(address));
        }
        if let Some((&base, &number)) = self.heap.range(..=address).next_back() {
            let object = &self.objects[number as usize];
            if address <= base + object.size {
                return Some((number, base));
            }
        }
        if let Some(found) = self.placed(address) {
            return Some(found);
        }
        for state in &self.states {
            if state.low <= address && address < state.high {
                return in_stack(state, address);
            }
            if let Some(&(base, _, number)) = state.locals.iter().find(|l| l.0 <= address && address < l.1) {
                return Some((number, base));
            }
        }
        let at = self.globals.partition_point(|g| g.address <= address);
        if at > 0 && address == self.globals[at - 1].address + self.globals[at - 1].size {
            return Some((self.global_objects[at - 1], self.globals[at - 1].address));
        }
        let at = self.modules.partition_point(|m| m.from <= address);
        let module = self.modules.get(at.checked_sub(1)?)?;
        (address < module.to).then(|| (self.module_objects[at - 1], module.from))
    }
}

impl Sanitizer<'_> {
    /// The global that an address lies in.
    fn placed(&self, address: u64) -> Option<(u32, u64)> {
        let at = self.globals.partition_point(|g| g.address <= address).checked_sub(1)?;
        let placed = &self.globals[at];
        (address < placed.address + placed.size.max(1)).then(|| (self.global_objects[at], placed.address))
    }
}

fn in_stack(state: &State, address: u64) -> Option<(u32, u64)> {
    if let Some(&(base, _, number)) = state.locals.iter().find(|l| l.0 <= address && address < l.1) {
        return Some((number, base));
    }
    // Frames lie one below the other: the innermost one that begins above the address has it.
    let at = state.frames.partition_point(|f| f.pointer > address);
    let frame = at.checked_sub(1)?;
    let to = state.frames.get(at).map_or(state.stack.len(), |f| f.first);
    let objects = &state.stack[state.frames[frame].first..to];
    let inside = objects.iter().rev().find(|o| o.0 <= address && address < o.1);
    let found = inside.or_else(|| objects.iter().rev().find(|o| o.1 == address));
    found.map(|&(base, _, number)| (number, base))
}

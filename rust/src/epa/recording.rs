//! A recorded trace: the streams of all threads, and their order.
//!
//! A stream is divided into runs. Each run begins with a sequence number, the value of the global counter at that time.
//! The runs of all threads, sorted by these numbers, give an order of all events. Among runs with the same number, the
//! run that took the number comes first. This order extends every order that the program enforces by synchronisation.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;
use rustc_hash::FxHashMap;

use super::format::{self, Head, Layout, Record, op};
use super::program::{Decoder, FormulaRow, How, Program, StepRow, Struck};

/// What the sanitizer must know of a site.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pub class: Class,
    /// Bytes that a load or a store accesses.
    pub size: u32,
    pub operands: Vec<u32>,
    /// The call that an argument belongs to.
    pub parent: u32,
    pub computes: Computes,
}

/// Whether a result depends on where objects happen to lie, if operands are addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Computes {
    #[default]
    Offsets,
    /// Addresses are subtracted: it does unless they are of one object.
    Distance,
    /// Addresses are compared: likewise, and if one is compared with a number.
    Order,
    /// A number is added to an address: it does not as long as the sum is an address.
    Sum,
    /// Multiplications, remainders and the like.
    Anything,
}

/// Whether a value may be an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    #[default]
    Plain,
    Pointer,
    /// An integer as wide as a pointer: an address if it happens to lie in an object.
    Word,
}

/// A global variable or a function at its address in this run.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    pub address: u64,
    pub size: u64,
    pub id: u32,
}

/// A loaded library.
#[derive(Clone, Debug)]
pub struct Module {
    pub from: u64,
    pub to: u64,
    pub name: String,
}

/// One thread's records.
pub struct Stream {
    pub uid: u32,
    content: Content,
    /// Where the last whole record ends, in bytes.
    pub used: usize,
    /// How many events of the next record have happened.
    partial: usize,
    pub events: u64,
    pub ended: bool,
    pub fault: Option<Struck>,
}

enum Content {
    Mapped(Mmap),
    /// Of a thread that did not end, the last records are in its window.
    Read(Vec<u8>),
}

/// Bytes of the head of a file (`HEAD` of the recorder): part of the format, whatever the page size of the machine.
const HEAD: usize = 4096;
const HALF: usize = 64 << 10;
const MAGIC: u64 = 0x3441_5045_4543_4152;
const DATA: usize = HEAD + 2 * HALF;

impl Stream {
    /// A thread that has recorded nothing.
    fn empty(uid: u32) -> Self {
        let content = Content::Read(Vec::new());
        Self { uid, content, used: 0, partial: 0, events: 0, ended: false, fault: None }
    }

    /// Look at the head of a thread's file (`struct thread` of the recorder).
    fn open(uid: u32, path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let empty = Self::empty(uid);
        match file.metadata().map_err(|error| error.to_string())?.len() as usize {
            0 => return Ok(empty),
            length if length < DATA => return Err("it is shorter than the trace of a thread".into()),
            _ => {}
        }
        // SAFETY: the file belongs to a finished run. If another program changes it, the reader can see other content, but
        // it checks any content record by record.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| error.to_string())?;
        let word = |at: usize| format::bytes(&map, at, 8).unwrap_or(0);
        let half = |at: usize| format::bytes(&map, at, 4).unwrap_or(0);
        if word(0) == 0 && word(8) == 0 {
            return Ok(empty); // killed before it began
        }
        let offset = word(8).wrapping_sub(word(40)) as usize;
        if word(0) != MAGIC || offset >= 2 * HALF {
            return Err("it does not begin like the trace of a thread".into());
        }
        let which = offset / HALF;
        let begin = word(48 + 8 * which) as usize;
        if map.len() < DATA.saturating_add(begin) {
            return Err("it is shorter than its head says".into());
        }
        let fault = (half(92) != 0).then(|| Struck {
            at: word(64) as usize,
            before: word(72),
            after: word(80),
            site: half(88) as u32,
            how: match half(92) {
                2 => How::Ones(word(96)),
                3 => How::Zeros(word(96)),
                4 => How::Store,
                _ => How::Once,
            },
        });
        let (used, partial) = (begin + offset % HALF, half(32) as usize);
        let content = if offset.is_multiple_of(HALF) {
            Content::Mapped(map)
        } else {
            let window = &map[HEAD + which * HALF..HEAD + (which + 1) * HALF];
            Content::Read([&map[DATA..DATA + begin], window].concat())
        };
        Ok(Self { content, used, partial, fault, ..empty })
    }

    /// Its records, and what is left of the one that was not whole.
    pub fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Mapped(map) => &map[DATA..DATA + self.used],
            Content::Read(bytes) => bytes,
        }
    }
}

/// A part of a stream with one sequence number.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub number: u64,
    /// Whether the first record took the number, or only saw it.
    pub took: bool,
    pub stream: u32,
    pub from: usize,
    pub to: usize,
}

pub struct Recording {
    pub streams: Vec<Stream>,
    pub sites: Vec<Site>,
    program: Program,
    /// Sorted by address.
    pub globals: Vec<Placed>,
    pub modules: Vec<Module>,
    pub runs: Vec<Run>,
    pub records: u64,
    /// Per number of a thread that was created: the number of its parent, and its place among the children.
    pub parents: FxHashMap<u32, (u32, u32)>,
}

/// What a table says of its program: functions, pieces, formulas.
pub type Rows = (Vec<(u32, u32)>, Vec<(u32, Vec<StepRow>)>, Vec<FormulaRow>);

impl Recording {
    /// Read a folder that the recorder wrote. `sites[0]` is not used: sites are numbered from 1.
    pub fn open(folder: &Path, sites: Vec<Site>, rows: Rows) -> Result<Self, String> {
        let (globals, modules) = layout(folder)?;
        let places: FxHashMap<u64, u64> = globals.iter().map(|g| (u64::from(g.id), g.address)).collect();
        let program = Program::new(rows.0, rows.1, rows.2, sites.len(), &|id| places.get(&id).copied())?;
        let mut uids: Vec<u32> = std::fs::read_dir(folder)
            .map_err(|error| format!("{}: {error}", folder.display()))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| name.strip_prefix("thread-")?.strip_suffix(".bin")?.parse().ok())
            .collect();
        uids.sort_unstable();
        let mut streams = Vec::new();
        let mut runs = Vec::new();
        let mut records = 0;
        for uid in uids {
            let path = folder.join(format!("thread-{uid}.bin"));
            let name = |error| format!("{}: {error}", path.display());
            let mut stream = Stream::open(uid, &path).map_err(name)?;
            split(&mut stream, streams.len() as u32, sites.len(), &program, &mut runs).map_err(name)?;
            records += stream.events;
            streams.push(stream);
        }
        if streams.is_empty() {
            return Err(format!("{} has no thread-0.bin: it is not a trace", folder.display()));
        }
        runs.sort_unstable_by_key(|run| (run.number, !run.took, run.stream, run.from));
        let mut this = Self { streams, sites, program, globals, modules, runs, records, parents: FxHashMap::default() };
        this.family();
        Ok(this)
    }

    /// Who created whom. A thread that was killed before it began has nothing to say, but others speak of it.
    fn family(&mut self) {
        let mut children: FxHashMap<u32, u32> = FxHashMap::default();
        for &run in &self.runs {
            let Some(record) = self.sync(run) else { continue };
            let (parent, uid) = (self.streams[run.stream as usize].uid, record.words[1] as u32);
            if record.detail == op::CREATE {
                let count = children.entry(parent).or_default();
                self.parents.insert(uid, (parent, *count));
                *count += 1;
            } else if record.detail == op::CREATED && self.streams.iter().all(|s| s.uid != uid) {
                self.streams.push(Stream::empty(uid));
            }
        }
    }

    /// Show all events in the order of the whole run: number of the run, thread, event.
    pub fn walk(&self, mut visit: impl FnMut(usize, u32, Record)) {
        let mut decoders: Vec<Decoder> =
            (self.streams.iter()).map(|s| Decoder::new(&self.program, s.bytes(), s.partial, s.fault)).collect();
        for (i, run) in self.runs.iter().enumerate() {
            let whole = self.streams[run.stream as usize].used;
            decoders[run.stream as usize].run(run.to, whole, &mut |record| visit(i, run.stream, record));
        }
    }

    /// The first site and the number of sites of each function.
    pub fn functions(&self) -> &[(u32, u32)] {
        &self.program.functions
    }

    /// What synchronised at the begin of a run, if that is what it begins with.
    pub fn sync(&self, run: Run) -> Option<Record> {
        let record = format::own(self.streams[run.stream as usize].bytes(), run.from)?;
        (run.took && record.kind == format::SYNC).then_some(record)
    }
}

/// Find the runs of a stream, and count its events.
fn split(stream: &mut Stream, index: u32, sites: usize, program: &Program, runs: &mut Vec<Run>) -> Result<(), String> {
    let (mut events, mut ended, mut at) = (0, false, 0);
    let mut open: Option<Run> = None;
    let bytes = stream.bytes();
    // The record that is not whole belongs to the last run, if the numbers in it are right.
    let rest = (stream.partial > 0 && open_piece(bytes, stream.used, program, stream.partial)).then_some(stream.used);
    while at < stream.used {
        let head = format::head(bytes, at).ok_or_else(|| format!("the record at byte {at} has an unknown kind"))?;
        let length = match head {
            Head::Piece(number, layout) => {
                let piece = (program.pieces.get(number as usize)).ok_or_else(|| {
                    format!("the record at byte {at} names piece {number}, which the table does not have")
                })?;
                events += piece.events();
                piece.size(layout)
            }
            Head::Own { kind, detail, site, words } => {
                if site as usize >= sites && kind != format::RANGE {
                    return Err(format!("the record at byte {at} names site {site}, which the table does not have"));
                }
                if kind == format::SEQUENCE || kind >= format::SYNC {
                    runs.extend(open.take().map(|run| Run { to: at, ..run }));
                    let number = format::bytes(bytes, at + 4, 8).unwrap_or(0);
                    open = Some(Run { number, took: kind >= format::SYNC, stream: index, from: at, to: 0 });
                    ended = kind == format::SYNC && detail == op::END;
                }
                events += u64::from(kind != format::SEQUENCE);
                Head::own(words)
            }
        };
        if open.is_none() {
            return Err("the first record has no sequence number".into());
        }
        at += length;
    }
    if at != stream.used {
        return Err(format!("its last record ends at byte {at}, its head says {}", stream.used));
    }
    if rest.is_none() {
        stream.partial = 0;
    }
    events += stream.partial as u64;
    runs.extend(open.map(|run| Run { to: at + usize::from(stream.partial > 0), ..run }));
    (stream.events, stream.ended) = (events, ended);
    Ok(())
}

/// Whether a piece begins at a position, given how many of its events can have happened.
fn open_piece(bytes: &[u8], at: usize, program: &Program, events: usize) -> bool {
    let Some(Head::Piece(number, _)) = format::head(bytes, at) else { return false };
    let piece = program.pieces.get(number as usize);
    piece.is_some_and(|p| events as u64 <= p.events() && at + p.size(Layout::Everything) <= bytes.len())
}

fn layout(folder: &Path) -> Result<(Vec<Placed>, Vec<Module>), String> {
    let path = folder.join("layout.txt");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut globals = Vec::new();
    let mut modules = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(4, ' ');
        let kind = parts.next();
        let mut number = || parts.next().and_then(|p| p.parse::<u64>().ok());
        match kind {
            Some("g") => {
                let (Some(address), Some(size), Some(id)) = (number(), number(), number()) else {
                    return Err(format!("{}: cannot read {line:?}", path.display()));
                };
                globals.push(Placed { address, size, id: id as u32 });
            }
            Some("m") => {
                let (Some(from), Some(to)) = (number(), number()) else {
                    return Err(format!("{}: cannot read {line:?}", path.display()));
                };
                let name = parts.next().unwrap_or("").to_owned();
                modules.push(Module { from, to, name });
            }
            _ => return Err(format!("{}: cannot read {line:?}", path.display())),
        }
    }
    globals.sort_unstable_by_key(|g| g.address);
    modules.sort_unstable_by_key(|m| m.from);
    Ok((globals, modules))
}

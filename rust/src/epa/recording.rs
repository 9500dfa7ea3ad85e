//! A recorded trace: the streams of all threads, and their order.
//!
//! A stream falls into runs: each begins with a sequence number, and what follows it was done when the counter stood there.
//! Runs sorted by number (the event that took the number first) are an order of all events that extends every order that
//! the program itself enforced by synchronising.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use super::format::{self, Cursor, Record, op};

/// What the sanitizer must know of a site.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pub class: Class,
    /// Bytes that a load or a store accesses.
    pub size: u32,
    pub operands: Vec<u32>,
    /// The call that an argument belongs to.
    pub parent: u32,
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
    words: Words,
    /// Where the last whole record ends, in words.
    pub used: usize,
    pub ended: bool,
}

enum Words {
    Mapped(Mmap),
    Empty,
}

impl Stream {
    pub fn words(&self) -> &[u64] {
        match &self.words {
            // SAFETY: a mapping begins at a page, and any bytes are a u64; the length is rounded down.
            Words::Mapped(map) => unsafe { std::slice::from_raw_parts(map.as_ptr().cast::<u64>(), map.len() / 8) },
            Words::Empty => &[],
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
    /// Where short addresses count from at its begin.
    base: u64,
}

pub struct Recording {
    pub streams: Vec<Stream>,
    pub sites: Vec<Site>,
    /// Sorted by address.
    pub globals: Vec<Placed>,
    pub modules: Vec<Module>,
    pub runs: Vec<Run>,
    pub records: u64,
}

impl Recording {
    /// Read a folder that the recorder wrote. `sites[0]` is not used: sites are numbered from 1.
    pub fn open(folder: &Path, sites: Vec<Site>) -> Result<Self, String> {
        let (globals, modules) = layout(folder)?;
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
            let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let empty = file.metadata().map_or(true, |m| m.len() < 8);
            let words = if empty {
                Words::Empty
            } else {
                // SAFETY: the file belongs to a finished run; whoever changes it meanwhile may change what is read, but any
                // content is checked record by record.
                Words::Mapped(unsafe { Mmap::map(&file) }.map_err(|error| format!("{}: {error}", path.display()))?)
            };
            let mut stream = Stream { uid, words, used: 0, ended: false };
            records += split(&mut stream, streams.len() as u32, sites.len(), &mut runs)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            streams.push(stream);
        }
        if streams.is_empty() {
            return Err(format!("{} has no thread-0.bin: it is not a trace", folder.display()));
        }
        runs.sort_unstable_by_key(|run| (run.number, !run.took, run.stream, run.from));
        Ok(Self { streams, sites, globals, modules, runs, records })
    }

    /// The records of a run.
    pub fn run(&self, run: Run) -> Cursor<'_> {
        Cursor::new(&self.streams[run.stream as usize].words()[..run.to], run.from, run.base)
    }
}

impl Stream {
    /// The first record, if there is one.
    pub fn first(&self) -> Option<Record> {
        Cursor::new(self.words(), 0, 0).next()
    }
}

/// Find the runs of a stream; the number of its records.
fn split(stream: &mut Stream, index: u32, sites: usize, runs: &mut Vec<Run>) -> Result<u64, String> {
    let mut records = 0;
    let mut ended = false;
    let mut open: Option<Run> = None;
    let mut cursor = Cursor::new(stream.words(), 0, 0);
    loop {
        let (at, base) = (cursor.at, cursor.base);
        let Some(record) = cursor.next() else { break };
        if record.site as usize >= sites && record.kind != format::RANGE {
            let site = record.site;
            return Err(format!("the record at byte {} names site {site}, which the table does not have", at * 8));
        }
        if record.kind == format::SEQUENCE || record.kind >= format::SYNC {
            if let Some(run) = open.take() {
                runs.push(Run { to: at, ..run });
            }
            open = Some(Run {
                number: record.words[0],
                took: record.kind >= format::SYNC,
                stream: index,
                from: at,
                to: 0,
                base,
            });
            ended = record.kind == format::SYNC && record.detail == op::END;
        } else if open.is_none() {
            return Err("the first record has no sequence number".into());
        }
        records += u64::from(record.kind != format::SEQUENCE);
    }
    let used = cursor.at;
    if let Some(run) = open {
        runs.push(Run { to: used, ..run });
    }
    stream.used = used;
    stream.ended = ended;
    Ok(records)
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

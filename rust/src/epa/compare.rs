//! Compares two sanitized traces, thread by thread (Saissi 2019, section 5.4.3, Trace Comparison).
//!
//! Two events are equal if they have the same site and equal words. Objects and threads are compared by name. Where a
//! thread took another path, the two sequences are aligned again at the nearest place from which several sites agree.
//! So later events can be compared too. Only the events before the first such place are certain; both parts are
//! reported.

use rustc_hash::FxHashMap;

use super::sanitize::{Event, Fault, Kind, NOBODY, OBJECT, PLAIN, Sanitized, THREAD};

/// How a thread of the faulty run differs from the thread of the same name.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    pub name: String,
    pub golden: Option<u32>,
    pub faulty: Option<u32>,
    /// The first events that differ; one of the two is missing where a trace ended.
    pub first: Option<(Option<u32>, Option<u32>)>,
    /// The first place where the thread took another path.
    pub parted: Option<(u32, u32)>,
    pub changed: u64,
    pub missing: u64,
    pub extra: u64,
    /// Per event of the faulty thread: 0 equal, 1 changed, 2 extra.
    pub flags: Vec<u8>,
    /// The golden event next to a changed one, for the first few.
    pub samples: Vec<(u32, u32)>,
    /// Golden events that the faulty thread lacks: before which of its events, and from where to where.
    pub gaps: Vec<(u32, u32, u32)>,
    /// Writes that went elsewhere: the event of the faulty thread, and the golden one.
    pub moved: Vec<(u32, u32)>,
}

pub struct Comparison {
    pub threads: Vec<Difference>,
}

impl Comparison {
    pub fn equal(&self) -> bool {
        self.threads.iter().all(|t| t.first.is_none() && t.golden.is_some() && t.faulty.is_some())
    }

    /// Whether anything deviates besides the values that faults changed themselves.
    pub fn propagated(&self, faults: &[Fault]) -> bool {
        self.threads.iter().any(|t| {
            let own = |f: &&Fault| Some(f.thread) == t.faulty && f.before != f.after;
            let struck = faults.iter().filter(own).filter(|f| t.flags.get(f.event as usize) == Some(&1));
            t.golden.is_none() || t.faulty.is_none() || t.missing + t.extra > 0 || t.changed > struck.count() as u64
        })
    }
}

const WINDOW: usize = 400;
const AGREE: usize = 10;
const PARTINGS: usize = 2_000;
const SAMPLES: usize = 200;

/// What objects and threads of one trace are in the other.
struct Names {
    objects: Vec<u32>,
    threads: Vec<u32>,
}

impl Names {
    fn new(golden: &Sanitized, faulty: &Sanitized) -> Self {
        let by_name: FxHashMap<&str, u32> =
            (golden.threads.iter().enumerate()).map(|(i, t)| (t.name.as_str(), i as u32)).collect();
        let threads: Vec<u32> =
            (faulty.threads.iter()).map(|t| by_name.get(t.name.as_str()).copied().unwrap_or(NOBODY - 1)).collect();
        let known: FxHashMap<(Kind, u32, u32, u32), u32> =
            (golden.objects.iter().enumerate()).map(|(i, o)| ((o.kind, o.owner, o.site, o.nth), i as u32)).collect();
        let objects = (faulty.objects.iter())
            .map(|o| {
                let owner = if o.owner == NOBODY { NOBODY } else { threads[o.owner as usize] };
                known.get(&(o.kind, owner, o.site, o.nth)).copied().unwrap_or(NOBODY)
            })
            .collect();
        Self { objects, threads }
    }

    #[inline]
    fn word(&self, tag: u8, golden: u64, faulty: u64) -> bool {
        match tag {
            OBJECT => golden as u32 == faulty as u32 && self.objects[(faulty >> 32) as usize] == (golden >> 32) as u32,
            THREAD => u64::from(self.threads[faulty as usize]) == golden,
            PLAIN => golden == faulty,
            _ => golden == faulty,
        }
    }

    #[inline]
    fn equal(&self, golden: &Event, faulty: &Event) -> bool {
        golden.tag_a == faulty.tag_a
            && golden.tag_b == faulty.tag_b
            && self.word(golden.tag_a, golden.a, faulty.a)
            && self.word(golden.tag_b, golden.b, faulty.b)
    }
}

#[inline]
fn aligned(golden: &Event, faulty: &Event) -> bool {
    golden.site == faulty.site && golden.kind == faulty.kind
}

pub fn compare(golden: &Sanitized, faulty: &Sanitized) -> Comparison {
    let names = Names::new(golden, faulty);
    let mut threads = Vec::new();
    for (i, thread) in golden.threads.iter().enumerate() {
        let other = faulty.threads.iter().position(|t| t.name == thread.name);
        let mut difference = Difference {
            name: thread.name.clone(),
            golden: Some(i as u32),
            faulty: other.map(|o| o as u32),
            ..Difference::default()
        };
        match other {
            Some(other) => walk(&names, &thread.events, &faulty.threads[other].events, &mut difference),
            None => {
                difference.missing = thread.events.len() as u64;
                difference.first = Some((Some(0), None));
            }
        }
        threads.push(difference);
    }
    for (i, thread) in faulty.threads.iter().enumerate() {
        if golden.threads.iter().all(|t| t.name != thread.name) {
            threads.push(Difference {
                name: thread.name.clone(),
                faulty: Some(i as u32),
                first: Some((None, Some(0))),
                extra: thread.events.len() as u64,
                flags: vec![2; thread.events.len()],
                ..Difference::default()
            });
        }
    }
    Comparison { threads }
}

fn walk(names: &Names, golden: &[Event], faulty: &[Event], found: &mut Difference) {
    found.flags = vec![0; faulty.len()];
    let (mut i, mut j) = (0, 0);
    let mut partings = 0;
    while i < golden.len() && j < faulty.len() {
        if aligned(&golden[i], &faulty[j]) {
            if !names.equal(&golden[i], &faulty[j]) {
                found.first.get_or_insert((Some(i as u32), Some(j as u32)));
                found.changed += 1;
                found.flags[j] = 1;
                let (one, other) = (&golden[i], &faulty[j]);
                if one.writes && !(one.tag_a == other.tag_a && names.word(one.tag_a, one.a, other.a)) {
                    found.moved.push((j as u32, i as u32));
                }
                if found.samples.len() < SAMPLES {
                    found.samples.push((i as u32, j as u32));
                }
            }
            (i, j) = (i + 1, j + 1);
            continue;
        }
        found.first.get_or_insert((Some(i as u32), Some(j as u32)));
        found.parted.get_or_insert((i as u32, j as u32));
        partings += 1;
        let (a, b) = if partings > PARTINGS { None } else { meet(&golden[i..], &faulty[j..]) }
            .unwrap_or((golden.len() - i, faulty.len() - j));
        found.missing += a as u64;
        found.extra += b as u64;
        found.flags[j..j + b].fill(2);
        if a > 0 {
            found.gaps.push((j as u32, i as u32, (i + a) as u32));
        }
        (i, j) = (i + a, j + b);
    }
    if i < golden.len() || j < faulty.len() {
        let at = |k: usize, all: &[Event]| (k < all.len()).then_some(k as u32);
        found.first.get_or_insert((at(i, golden), at(j, faulty)));
        if i < golden.len() {
            found.gaps.push((j as u32, i as u32, golden.len() as u32));
        }
        found.missing += (golden.len() - i) as u64;
        found.extra += (faulty.len() - j) as u64;
        found.flags[j..].fill(2);
    }
}

/// The nearest place where both sequences agree for a while: how much to skip of each.
fn meet(golden: &[Event], faulty: &[Event]) -> Option<(usize, usize)> {
    for distance in 1..WINDOW {
        for a in 0..=distance {
            let b = distance - a;
            let (Some(g), Some(f)) = (golden.get(a..), faulty.get(b..)) else { continue };
            let length = AGREE.min(g.len()).min(f.len());
            if length > 0 && g[..length].iter().zip(&f[..length]).all(|(x, y)| aligned(x, y)) {
                return Some((a, b));
            }
        }
    }
    None
}

/// A number that is equal for equal sanitized traces: every event of every thread, with names in place of numbers.
pub fn digest(sanitized: &Sanitized) -> u64 {
    use std::hash::{Hash, Hasher};
    let hash = |parts: &dyn Fn(&mut rustc_hash::FxHasher)| {
        let mut hasher = rustc_hash::FxHasher::default();
        parts(&mut hasher);
        hasher.finish()
    };
    let names: Vec<u64> = sanitized.threads.iter().map(|t| hash(&|h| t.name.hash(h))).collect();
    let objects: Vec<u64> = (sanitized.objects.iter())
        .map(|o| {
            let owner = names.get(o.owner as usize).copied().unwrap_or(0);
            hash(&|h| (o.kind, owner, o.site, o.nth).hash(h))
        })
        .collect();
    let word = |tag: u8, value: u64| match tag {
        OBJECT => objects[(value >> 32) as usize].wrapping_add(value & 0xffff_ffff),
        THREAD => names[value as usize],
        _ => value,
    };
    let mut total = 0u64;
    for (thread, name) in sanitized.threads.iter().zip(&names) {
        let mut hasher = rustc_hash::FxHasher::default();
        name.hash(&mut hasher);
        for event in &thread.events {
            (event.site, event.kind, event.tag_a, event.tag_b).hash(&mut hasher);
            (word(event.tag_a, event.a), word(event.tag_b, event.b)).hash(&mut hasher);
        }
        total = total.wrapping_add(hasher.finish());
    }
    total
}

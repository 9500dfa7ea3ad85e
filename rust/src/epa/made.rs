//! The last results of sites, per frame, for the sanitizer: only those that arithmetic on addresses uses. Every result of a
//! trace passes here, so the results of a frame are a part of one vector, with a place for each such site of the function.

use rustc_hash::{FxHashMap, FxHashSet};

use super::recording::{Computes, Site};

/// The sites whose results are kept.
pub struct Watched {
    /// Per site, how many of the sites before it are watched; one more at the end.
    before: Vec<u32>,
    /// The number of sites of the function that begins at a site.
    sizes: FxHashMap<u32, u32>,
}

impl Watched {
    pub fn new(sites: &[Site], functions: &[(u32, u32)]) -> Self {
        let computing = sites.iter().filter(|s| s.computes != Computes::Offsets);
        let found: FxHashSet<u32> = computing.flat_map(|s| s.operands.iter().copied()).collect();
        let mut before = Vec::with_capacity(sites.len() + 1);
        let mut count = 0;
        for site in 0..=sites.len() as u32 {
            before.push(count);
            count += u32::from(found.contains(&site));
        }
        Self { before, sizes: functions.iter().copied().collect() }
    }

    fn rank(&self, site: u32) -> u32 {
        let last = self.before.len() - 1;
        self.before[(site as usize).min(last)]
    }

    #[inline]
    pub fn contains(&self, site: u32) -> bool {
        self.rank(site + 1) > self.rank(site)
    }
}

/// The place of the results of a frame.
pub struct Results {
    from: usize,
    depth: usize,
    /// The sites of its function.
    sites: (u32, u32),
    rank: u32,
}

/// A tag and a value.
type Word = (u8, u64);

/// The results of all frames of a thread.
#[derive(Default)]
pub struct Made {
    words: Vec<Option<Word>>,
    depth: usize,
    /// Results of sites of another function: a frame that was left without a return is still the last one.
    others: FxHashMap<(usize, u32), Word>,
}

impl Made {
    /// Enter the function whose first site is given.
    pub fn enter(&mut self, watched: &Watched, first: u32) -> Results {
        let from = self.words.len();
        let end = first + watched.sizes.get(&first).copied().unwrap_or(0);
        let rank = watched.rank(first);
        self.words.resize(from + (watched.rank(end) - rank) as usize, None);
        self.depth += 1;
        Results { from, depth: self.depth, sites: (first, end), rank }
    }

    /// Leave the last frame.
    pub fn leave(&mut self, frame: &Results) {
        self.words.truncate(frame.from);
        if !self.others.is_empty() {
            self.others.retain(|&(depth, _), _| depth < frame.depth);
        }
        self.depth = frame.depth - 1;
    }

    #[inline]
    pub fn keep(&mut self, watched: &Watched, frame: &Results, site: u32, word: Word) {
        if (frame.sites.0..frame.sites.1).contains(&site) {
            self.words[frame.from + (watched.rank(site) - frame.rank) as usize] = Some(word);
        } else {
            self.others.insert((frame.depth, site), word);
        }
    }

    pub fn get(&self, watched: &Watched, frame: &Results, site: u32) -> Option<Word> {
        if !watched.contains(site) {
            None
        } else if (frame.sites.0..frame.sites.1).contains(&site) {
            self.words[frame.from + (watched.rank(site) - frame.rank) as usize]
        } else {
            self.others.get(&(frame.depth, site)).copied()
        }
    }
}

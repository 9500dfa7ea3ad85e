//! The search for a run that explains a log: depth first along the log, with memory of the states that led nowhere.
//!
//! A state is a state of the system with the explained events. The state that has explained most comes next. Each step that
//! explains nothing counts against it, so that the search cannot run away where such steps never end. Steps that explain
//! something are tried first; among these, the one whose event is first in the log. Events that only say what fields are need
//! no step: they are explained as soon as they are true, which is never too early.

use crate::conform::log::{Log, Matcher};
use crate::conform::moves::Moves;
use crate::conform::state::{Move, State};
use crate::system::model::Result;
use crate::system::tables::Tables;
use rustc_hash::FxHashSet;
use std::collections::BinaryHeap;

/// What ends a search early.
pub struct Limits {
    pub states: usize,
    /// For tests: without it, all steps of all processes are tried in each state.
    pub reduced: bool,
}

/// A state that was met, by the step that led to it.
struct Met {
    parent: u32,
    step: Option<Move>,
    explained: u32,
    /// Steps that explained nothing since the last one that did.
    gap: u32,
    depth: u32,
    /// Kept for some; the others are made again.
    kept: Option<Box<State>>,
}

/// The least number of steps between states that are kept, if they are large.
const KEPT: u32 = 64;
/// Pending messages of a state that is small.
const SMALL: usize = 64;
/// Longest explained beginnings that are remembered.
const BEST: usize = 8;
/// States between two looks at limits and signals.
const BREATH: usize = 256;

/// A beginning of the log that a run explains, and the run.
pub struct Reached {
    pub root: usize,
    pub steps: Vec<Move>,
    pub state: State,
}

/// What a search found.
pub struct Found {
    /// A run that explains all; or those that explain most.
    pub reached: Vec<Reached>,
    pub explained: usize,
    pub states: usize,
    pub steps: usize,
    /// All states were searched, or a run was found.
    pub decided: bool,
    /// What ended it early: "states", or what the watch said.
    pub bound: Option<&'static str>,
}

pub struct Search<'a, 'm> {
    moves: Moves<'a, 'm>,
    log: &'a Log,
    tables: &'a Tables,
    met: Vec<Met>,
    /// The initial states, with their numbers.
    roots: Vec<(u32, usize)>,
    seen: FxHashSet<u128>,
    /// Priority, number of the entry, state, and whether its other steps are tried.
    open: BinaryHeap<(i64, u64, u32, bool)>,
    entries: u64,
    /// The last state that was made.
    last: Option<(u32, State)>,
    /// Those that explain most, with what each process has explained.
    best: Vec<(u32, Vec<u32>)>,
    steps: usize,
}

impl<'a, 'm> Search<'a, 'm> {
    /// Search from these initial states. `watch` is asked now and then whether something ends the search.
    pub fn run(
        tables: &'a Tables,
        log: &'a Log,
        matcher: &'a mut Matcher<'m>,
        starts: Vec<State>,
        limits: &Limits,
        watch: &mut dyn FnMut(usize, usize) -> Option<&'static str>,
    ) -> Result<Found> {
        let moves = Moves::new(tables, log, matcher, &starts[0], limits.reduced);
        let mut search = Search {
            moves,
            log,
            tables,
            met: Vec::new(),
            roots: Vec::new(),
            seen: FxHashSet::default(),
            open: BinaryHeap::new(),
            entries: 0,
            last: None,
            best: Vec::new(),
            steps: 0,
        };
        let mut goal = None;
        for (number, start) in starts.into_iter().enumerate().rev() {
            let id = search.met.len() as u32;
            goal = search.meet(start, None, None)?.or(goal);
            if search.met.len() > id as usize {
                search.roots.push((id, number));
            }
        }
        let mut bound = None;
        let mut looked = 0;
        while goal.is_none() {
            if search.met.len() >= limits.states {
                bound = Some("states");
                break;
            }
            if looked % BREATH == 0 {
                let explained = search.best.first().map_or(0, |(id, _)| search.met[*id as usize].explained);
                bound = watch(search.met.len(), explained as usize);
                if bound.is_some() {
                    break;
                }
            }
            looked += 1;
            let Some((_, _, id, others)) = search.open.pop() else { break };
            goal = search.expand(id, others)?;
        }
        search.found(goal, bound)
    }

    fn found(mut self, goal: Option<u32>, bound: Option<&'static str>) -> Result<Found> {
        let ends = goal.map_or_else(|| self.best.iter().map(|&(id, _)| id).collect(), |goal| vec![goal]);
        let explained = ends.first().map_or(0, |&id| self.met[id as usize].explained as usize);
        let mut reached = Vec::new();
        for end in ends {
            let state = self.state(end)?;
            let mut steps = Vec::new();
            let mut id = end;
            while let Some(step) = &self.met[id as usize].step {
                steps.push(step.clone());
                id = self.met[id as usize].parent;
            }
            steps.reverse();
            let root = self.roots.iter().find(|(root, _)| *root == id).expect("a run begins in an initial state").1;
            reached.push(Reached { root, steps, state });
        }
        Ok(Found {
            reached,
            explained,
            states: self.met.len(),
            steps: self.steps,
            decided: goal.is_some() || bound.is_none(),
            bound,
        })
    }

    /// Try the steps that explain something, or the other ones. Return a state in which all is explained.
    fn expand(&mut self, id: u32, others: bool) -> Result<Option<u32>> {
        let state = self.state(id)?;
        let processes = self.log.events.len();
        if others {
            for process in (0..processes).rev() {
                for step in self.moves.free(&state, process)?.into_iter().rev() {
                    self.steps += 1;
                    if let Some(goal) = self.take(id, &state, step)? {
                        return Ok(Some(goal));
                    }
                }
            }
            return Ok(None);
        }
        let mut next: Vec<(u32, usize)> = (0..processes)
            .filter_map(|process| Some((self.log.next(&state.front, process)?.number, process)))
            .collect();
        next.sort_unstable();
        let mut steps = Vec::new();
        let mut alone = false;
        for &(_, process) in &next {
            if let Some(sole) = self.moves.sole(&state, process)? {
                (steps, alone) = (sole, true);
                break;
            }
        }
        if !alone {
            for &(_, process) in &next {
                steps.extend(self.moves.explaining(&state, process)?);
            }
            self.push(id, 1, true);
        }
        for step in steps.into_iter().rev() {
            self.steps += 1;
            if let Some(goal) = self.take(id, &state, step)? {
                return Ok(Some(goal));
            }
        }
        Ok(None)
    }

    fn take(&mut self, parent: u32, before: &State, step: Move) -> Result<Option<u32>> {
        let mut state = before.clone();
        state.take(self.tables, &step)?;
        self.meet(state, Some(parent), Some(step))
    }

    /// Explain what needs no step, and remember the state if it is new. Return it if all is explained.
    fn meet(&mut self, mut state: State, parent: Option<u32>, step: Option<Move>) -> Result<Option<u32>> {
        state.settle(self.tables, self.log);
        if !self.seen.insert(state.key()) {
            return Ok(None);
        }
        let id = self.met.len() as u32;
        let explained: u32 = state.front.iter().sum();
        let (before, gap, depth) = parent.map_or((0, 0, 0), |parent| {
            let parent = &self.met[parent as usize];
            (parent.explained, parent.gap + 1, parent.depth + 1)
        });
        let gap = if explained > before { 0 } else { gap };
        let keeps = parent.is_none() || depth % KEPT == 0 || state.pending() <= SMALL;
        self.met.push(Met {
            parent: parent.unwrap_or(id),
            step,
            explained,
            gap,
            depth,
            kept: keeps.then(|| Box::new(state.clone())),
        });
        self.note_best(id, &state);
        let all = explained as usize == self.log.len();
        self.last = Some((id, state));
        if all {
            return Ok(Some(id));
        }
        self.push(id, 0, false);
        Ok(None)
    }

    fn push(&mut self, id: u32, less: i64, others: bool) {
        let Met { explained, gap, .. } = self.met[id as usize];
        self.entries += 1;
        self.open.push((i64::from(explained) - i64::from(gap) - less, self.entries, id, others));
    }

    fn note_best(&mut self, id: u32, state: &State) {
        let Met { explained, gap, .. } = self.met[id as usize];
        match self.best.first().map(|(best, _)| self.met[*best as usize].explained) {
            Some(best) if explained < best => {}
            Some(best) if explained == best => {
                if self.best.len() < BEST && gap == 0 && self.best.iter().all(|(_, front)| *front != state.front) {
                    self.best.push((id, state.front.clone()));
                }
            }
            _ => self.best = vec![(id, state.front.clone())],
        }
    }

    /// A state that was met: kept, or made again from one before it.
    fn state(&mut self, id: u32) -> Result<State> {
        if let Some((last, state)) = &self.last
            && *last == id
        {
            return Ok(state.clone());
        }
        let mut steps = Vec::new();
        let mut at = id;
        let mut state = loop {
            let met = &self.met[at as usize];
            if let Some(kept) = &met.kept {
                break State::clone(kept);
            }
            steps.push(met.step.clone().expect("initial states are kept"));
            at = met.parent;
        };
        for step in steps.iter().rev() {
            state.take(self.tables, step)?;
            state.settle(self.tables, self.log);
        }
        Ok(state)
    }
}

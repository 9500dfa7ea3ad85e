//! Random search: many seeded walks from the initial states, for state spaces that are too large to exhaust.
//!
//! Walk number i depends only on the seed and i, not on the number of workers. The visited set only counts states.

use crate::por::stubborn::ALL;
use crate::search::control::{Control, Finding, Limit};
use crate::system::hash;
use crate::system::initial::InitialState;
use crate::system::model::Result;
use crate::system::reads::{Changes, evaluate_properties, is_within};
use crate::system::successors::{TransitionRef, View};
use crate::system::tables::Tables;
use std::sync::atomic::Ordering::Relaxed;

/// Walks end here even if the model does not, unless the user says otherwise.
pub const DEFAULT_DEPTH: u32 = 1000;

pub fn search(tables: &Tables, control: &Control) -> Result<()> {
    let initial = tables.initial()?;
    std::thread::scope(|scope| {
        for _ in 0..control.options.workers {
            scope.spawn(|| tables.model.in_thread(&mut || walks(tables, control, &initial)));
        }
    });
    control.cut(Limit::Walks);
    Ok(())
}

/// Walk until enough walks were begun by all workers together.
fn walks(tables: &Tables, control: &Control, initial: &[InitialState]) {
    let mut view = View::new(tables);
    while !control.stopped() {
        let number = control.walks.fetch_add(1, Relaxed);
        if number >= control.options.walks {
            control.walks.fetch_sub(1, Relaxed);
            return;
        }
        if let Err(fault) = walk(&mut view, control, initial, number) {
            control.fail(fault);
        }
    }
}

fn walk(view: &mut View, control: &Control, initial: &[InitialState], number: u64) -> Result<()> {
    let mut dice = Dice(hash::sequence(control.options.seed, &[number]));
    let limit = if control.options.max_depth == u32::MAX { DEFAULT_DEPTH } else { control.options.max_depth };
    let mut state = dice.start(initial).to_vec();
    let mut run = vec![view.fingerprint(&state)];
    let (mut changes, mut step) = (Changes::EVERYWHERE, None);
    let mut successors: Vec<(u64, TransitionRef)> = Vec::new();
    loop {
        let here = *run.last().expect("a run has a last state");
        let depth = run.len() as u32 - 1;
        let parent = run[run.len().saturating_sub(2)];
        let new = control.visited.session(1, control.options.workers * 8)?.insert(here, parent);
        if control.visited.refused() {
            control.stop_at(Limit::MaxStates);
            return Ok(());
        }
        let finding =
            |property, depth, run: &Vec<u64>| Finding { property, fingerprint: here, depth, run: Some(run.clone()) };
        evaluate_properties(view, control, &state, changes, false, |property| {
            control.record(finding(property, depth, &run))
        })?;
        let raised = |property| control.record(finding(property, depth, &run));
        if !is_within(view, control, &state, changes, raised)? {
            if new {
                control.note_outside(view.tables, step);
            }
            control.depth.fetch_max(depth, Relaxed);
            return Ok(());
        }

        successors.clear();
        let summary = view.for_each_successor(&state, here, ALL, |there, via| successors.push((there, via)))?;
        for property in control.failed(summary) {
            control.record(finding(property, depth + 1, &run));
        }
        if !summary.moves {
            control.terminal.fetch_add(1, Relaxed);
            evaluate_properties(view, control, &state, Changes::EVERYWHERE, true, |property| {
                control.record(finding(property, depth, &run))
            })?;
        }
        control.transitions.fetch_add(summary.transitions, Relaxed);
        control.depth.fetch_max(depth, Relaxed);
        control.pulse(view.tables);
        if successors.is_empty() || depth >= limit || control.stopped() {
            return Ok(());
        }
        let (next, via) = successors[dice.below(successors.len())];
        step = Some((view.situated(&state, via.process as usize)?, via));
        changes = view.take(&mut state, via)?;
        run.push(next);
    }
}

/// Take walks until several in a row showed nothing new, so that partial-order reduction knows most of what the steps do
/// before it begins.
pub fn learn(tables: &Tables, control: &Control) -> Result<()> {
    const WALKS: u64 = 2000;
    const STEPS: usize = 300;
    const IN_VAIN: u32 = 30;
    let mut view = View::new(tables);
    let initial = tables.initial()?;
    let mut vain = 0;
    for number in 0..WALKS {
        let mut dice = Dice(hash::sequence(0, &[number]));
        let (mut state, mut changes) = (dice.start(&initial).to_vec(), Changes::EVERYWHERE);
        let mut here = view.fingerprint(&state);
        let known = (tables.known_effects(|known| known.version), control.read_sets());
        for _ in 0..STEPS {
            evaluate_properties(&mut view, control, &state, changes, false, |_| {})?;
            if !is_within(&mut view, control, &state, changes, |_| {})? {
                break;
            }
            for process in 0..tables.model.shape().movers() {
                tables.profile(view.situated(&state, process)?)?;
            }
            let mut transition_refs: Vec<(u64, TransitionRef)> = Vec::new();
            view.for_each_successor(&state, here, ALL, |there, via| transition_refs.push((there, via)))?;
            if transition_refs.is_empty() || control.stopped() {
                break;
            }
            let (there, via) = transition_refs[dice.below(transition_refs.len())];
            changes = view.take(&mut state, via)?;
            here = there;
        }
        let news = known != (tables.known_effects(|known| known.version), control.read_sets());
        vain = if news { 0 } else { vain + 1 };
        if vain == IN_VAIN || control.stopped() {
            break;
        }
    }
    Ok(())
}

/// A small, fast generator (splitmix64).
struct Dice(u64);

impl Dice {
    /// One of the initial states. If there is only one, nothing is thrown.
    fn start<'a>(&mut self, initial: &'a [InitialState]) -> &'a [u32] {
        let number = if initial.len() == 1 { 0 } else { self.below(initial.len()) };
        &initial[number].state
    }

    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ z >> 31) * count as u128) >> 64) as usize
    }
}

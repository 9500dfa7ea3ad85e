//! Reconstructs a run from a fingerprint: follows parent hints back, then executes forward.

use crate::por::stubborn::ALL;
use crate::search::control::Control;
use crate::system::model::{Failure, Result};
use crate::system::successors::{Successor, View};
use crate::system::tables::{Tables, Transition};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// One step of a run: which transition of which process's node was taken, and the state after it.
pub struct Step {
    pub process: usize,
    pub transition: usize,
    pub record: Transition,
    pub state: Vec<u32>,
    pub fingerprint: u64,
    /// Why it failed; then it leads nowhere.
    pub failure: Option<Arc<Failure>>,
}

/// A run: the initial state that it begins with, and its steps.
pub struct Run {
    pub start: Vec<u32>,
    pub steps: Vec<Step>,
}

/// The run from an initial state to a visited state. None only if hash collisions broke the chain.
pub fn to(tables: &Tables, control: &Control, fingerprint: u64) -> Result<Option<Run>> {
    let mut view = View::new(tables);
    let roots: FxHashSet<u64> = tables.initial()?.iter().map(|one| view.fingerprint(&one.state)).collect();
    // Backwards, over the few candidates that share a hint; a chain counts when it can be executed.
    let mut chain = vec![fingerprint];
    let mut choices: Vec<Vec<u64>> = vec![vec![]];
    loop {
        let last = *chain.last().expect("never empty");
        if roots.contains(&last) {
            let run: Vec<u64> = chain.iter().rev().copied().collect();
            if let Some(run) = along(tables, &run)? {
                return Ok(Some(run));
            }
        } else if chain.len() <= control.visited.len() {
            let parents = control.visited.parents(last);
            choices.push(parents.into_iter().filter(|p| !chain.contains(p) || roots.contains(p)).collect());
            if let Some(next) = choices.last_mut().and_then(Vec::pop) {
                chain.push(next);
                continue;
            }
            choices.pop();
        }
        // Back to the last place with another candidate.
        loop {
            chain.pop();
            if chain.is_empty() {
                return Ok(None);
            }
            if let Some(next) = choices.last_mut().and_then(Vec::pop) {
                chain.push(next);
                break;
            }
            choices.pop();
        }
    }
}

/// A run given by the fingerprints of its states, the initial one first.
pub fn along(tables: &Tables, run: &[u64]) -> Result<Option<Run>> {
    let mut view = View::new(tables);
    // With symmetry, several initial states have one fingerprint, and the run is possible from each of them.
    let initial = tables.initial()?;
    let Some(start) = initial.iter().find(|one| view.fingerprint(&one.state) == run[0]) else { return Ok(None) };
    let start = start.state.clone();
    let (mut state, mut here, mut steps) = (start.clone(), run[0], Vec::new());
    for &next in &run[1..] {
        let mut steps_here = successors(&mut view, &state, here)?.into_iter();
        let found = steps_here.find(|step| step.fingerprint == next && step.failure.is_none());
        let Some(step) = found else { return Ok(None) };
        state.clone_from(&step.state);
        here = next;
        steps.push(step);
    }
    Ok(Some(Run { start, steps }))
}

/// All transitions out of a state. A step that failed leads back to the state itself.
pub fn successors(view: &mut View, state: &[u32], fingerprint: u64) -> Result<Vec<Step>> {
    let mut found = Vec::new();
    view.successors(state, fingerprint, ALL, |successor| found.push(successor))?;
    let mut steps = Vec::new();
    for Successor { fingerprint: there, via, fails, .. } in found {
        let mut after = state.to_vec();
        if !fails {
            view.take(&mut after, via)?;
        }
        steps.push(Step {
            process: via.process as usize,
            transition: via.index as usize,
            record: view.transition(state, via)?,
            state: after,
            fingerprint: if fails { fingerprint } else { there },
            failure: if fails { Some(view.failure(state, via)?) } else { None },
        });
    }
    Ok(steps)
}

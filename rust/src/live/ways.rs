//! How many runs lead to a state.

use crate::live::graph::{Graph, StateId};

/// The runs from initial states to a state. Numbers that are too large stay at the largest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// The length of the shortest runs.
    pub length: u32,
    pub shortest: u128,
    /// All runs that reach it for the first time at their end; None if there are infinitely many, because of a loop on the way.
    pub all: Option<u128>,
}

/// Count the runs to a state; None if none leads there.
pub fn ways(graph: &Graph, target: StateId) -> Option<Ways> {
    let states = graph.len();
    // The states from which the target can be reached, and the edges among them.
    let mut before: Vec<Vec<StateId>> = vec![Vec::new(); states];
    for id in (0..states as StateId).filter(|&id| id != target) {
        for &next in graph.targets(id) {
            before[next as usize].push(id);
        }
    }
    let mut leads = vec![false; states];
    let mut waiting = vec![target];
    leads[target as usize] = true;
    while let Some(id) = waiting.pop() {
        for &previous in &before[id as usize] {
            if !std::mem::replace(&mut leads[previous as usize], true) {
                waiting.push(previous);
            }
        }
    }
    let is_root = |id: StateId| (id as usize) < graph.roots;
    let count = |id: StateId, from: &[u128], counted: &dyn Fn(StateId) -> bool| {
        let start = u128::from(is_root(id));
        let previous = before[id as usize].iter().filter(|&&p| counted(p));
        previous.fold(start, |sum, &p| sum.saturating_add(from[p as usize]))
    };

    // The shortest runs, layer by layer.
    let mut depth = vec![u32::MAX; states];
    let mut layer: Vec<StateId> = (0..graph.roots as StateId).filter(|&id| leads[id as usize]).collect();
    layer.iter().for_each(|&id| depth[id as usize] = 0);
    let (mut shortest, mut length) = (vec![0; states], 0);
    while !layer.is_empty() && depth[target as usize] > length {
        layer.iter().for_each(|&id| shortest[id as usize] = count(id, &shortest, &|p| depth[p as usize] < length));
        length += 1;
        let mut next = Vec::new();
        for &id in layer.iter() {
            for &to in graph.targets(id) {
                if leads[to as usize] && depth[to as usize] == u32::MAX {
                    depth[to as usize] = length;
                    next.push(to);
                }
            }
        }
        layer = next;
    }
    let length = Some(depth[target as usize]).filter(|&depth| depth != u32::MAX)?;
    let at_target = count(target, &shortest, &|p| depth[p as usize] < length);

    // All runs, in an order in which the predecessors of a state come first. In a loop, none comes first.
    let mut open: Vec<usize> =
        (0..states).map(|id| before[id].iter().filter(|&&p| leads[p as usize]).count()).collect();
    let mut ready: Vec<StateId> =
        (0..states as StateId).filter(|&id| leads[id as usize] && open[id as usize] == 0).collect();
    let (mut all, mut done) = (vec![0; states], 0);
    while let Some(id) = ready.pop() {
        all[id as usize] = count(id, &all, &|p| leads[p as usize]);
        done += 1;
        for &to in graph.targets(id).iter().filter(|&&to| id != target && leads[to as usize]) {
            open[to as usize] -= 1;
            if open[to as usize] == 0 {
                ready.push(to);
            }
        }
    }
    let finite = done == leads.iter().filter(|&&leads| leads).count();
    Some(Ways { length, shortest: at_target, all: finite.then_some(all[target as usize]) })
}

//! Refinement: does each step of the system map to a step of an abstract system, or to none?
//!
//! A mapping gives each state of the graph the number of an abstract state. It is a function of the state and says what it
//! read, so it is asked once per tuple of values of everything that it has ever read. Then all edges are looked at: each
//! distinct change of the abstract state, with the first edge that makes it, goes to the abstract system for a decision.
//! States are numbered breadth first. So where a change begins at an abstract state, an earlier change has led there.
//!
//! If the abstract system assumes fairness, some abstract states are *unstable*: a run must not stay there for ever, because
//! a fair step is enabled. A run that does is one of the product with an automaton for "from some time on, unstable", in
//! which edges that change the abstract state are left out (`Region::constant`).

use crate::live::automaton::{Automaton, AutomatonNode};
use crate::live::fairness::Fairness;
use crate::live::graph::{Graph, StateId};
use crate::live::lasso::Lasso;
use crate::live::product::Product;
use crate::search::control::Control;
use crate::system::model::{Component, Result};
use crate::system::successors::View;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

pub trait Mapping {
    /// The number of the abstract state that a state maps to, and what was read to know it.
    fn value(&self, state: &[u32]) -> Result<(u32, Vec<Component>)>;
    /// Whether an abstract state is an initial one.
    fn starts(&self, number: u32) -> Result<bool>;
    /// The first of some changes that is no step of the abstract system.
    fn forbidden(&self, changes: &[(u32, u32)]) -> Result<Option<usize>>;
    /// Per abstract state, whether a fair step is enabled there.
    fn unstable(&self) -> Result<Vec<bool>>;
}

/// How a run violates a refinement: it is the last step of its stem, or its loop, unless the initial state is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    Initial,
    Step,
    Stuttering,
}

/// A run that violates a refinement, if there is one. The graph has room for a label with this bit.
pub fn violation(
    view: &mut View,
    control: &Control,
    graph: &mut Graph,
    mapping: &dyn Mapping,
    fairness: &[Fairness],
    bit: usize,
) -> Result<Option<(Violation, Lasso)>> {
    let numbers = numbers(view, control, graph, mapping)?;
    if control.stopped() && numbers.len() < graph.len() {
        return Ok(None);
    }
    for start in 0..graph.roots as StateId {
        if !mapping.starts(numbers[start as usize])? {
            return Ok(Some((Violation::Initial, Lasso { start, ..Lasso::default() })));
        }
    }
    let (mut known, mut changes, mut edges) = (FxHashSet::default(), Vec::new(), Vec::new());
    for id in 0..graph.len() as StateId {
        for (edge, &target) in (0..).zip(graph.targets(id)) {
            let change = (numbers[id as usize], numbers[target as usize]);
            if change.0 != change.1 && known.insert(change) {
                changes.push(change);
                edges.push((id, edge));
            }
        }
    }
    if let Some(first) = mapping.forbidden(&changes)? {
        let stem = graph.path_by(edges[first]);
        return Ok(Some((Violation::Step, Lasso { start: stem[0].0, stem, cycle: Vec::new() })));
    }
    let unstable = mapping.unstable()?;
    if !unstable.contains(&true) {
        return Ok(None);
    }
    for (id, &number) in numbers.iter().enumerate() {
        if unstable[number as usize] {
            graph.labels.set(id, graph.labels.get(id) | 2 << bit);
        }
    }
    let node = |yes, next, accepting| AutomatonNode { yes, no: 0, next, accepting };
    let automaton =
        Automaton { nodes: vec![node(0, vec![0, 1], 0), node(1 << bit, vec![1], 1)], initial: vec![0, 1], sets: 1 };
    let mut product = Product::new(view, control, graph, &automaton, fairness)?;
    product.constant = Some(numbers.into());
    Ok(product.lasso()?.map(|lasso| (Violation::Stuttering, lasso)))
}

/// Per state, the number of its abstract state.
fn numbers(view: &mut View, control: &Control, graph: &Graph, mapping: &dyn Mapping) -> Result<Vec<u32>> {
    let mut reads: Vec<Component> = Vec::new();
    let mut known: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
    let mut numbers = Vec::with_capacity(graph.len());
    for id in 0..graph.len() as StateId {
        let state = graph.state(id);
        let key = |view: &mut View, reads: &[Component]| -> Box<[u32]> {
            reads.iter().map(|&component| view.value(&state, component)).collect()
        };
        let place = key(view, &reads);
        if let Some(&number) = known.get(&place) {
            numbers.push(number);
            continue;
        }
        if control.stopped() {
            break;
        }
        let (number, new) = mapping.value(&state)?;
        let before = reads.len();
        for component in new {
            if !reads.contains(&component) {
                reads.push(component);
            }
        }
        if reads.len() > before {
            known.clear(); // Two states that differ in what is read now may have been one place.
        }
        known.insert(key(view, &reads), number);
        numbers.push(number);
    }
    Ok(numbers)
}

/// Numbers that an edge of a run may not change.
pub(crate) type Constant = Option<Arc<[u32]>>;

//! The graph of all states, collapsed: states that agree on some places of the state are one node, and an edge stands for
//! the transitions of one handler between two nodes. So a large space becomes a small picture.

use crate::live::graph::{Graph, StateId, edges};
use crate::por::stubborn::ALL;
use crate::search::control::Control;
use crate::system::model::{PropertyKind, Result};
use crate::system::successors::View;
use crate::system::tables::Kind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A part of a state that tells nodes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A process (or a cell): its status (0), or a field, counted from 1.
    Part(usize, usize),
    Inbox(usize),
    /// A monitor and a field, counted from 0.
    Monitor(usize, usize),
}

/// States that agree on the places.
pub struct Collapsed {
    /// The first of them: no other one is nearer to an initial state.
    pub first: StateId,
    pub count: u64,
    pub initial: bool,
    pub terminal: u64,
    /// How many of them violate a property, or have a step that fails.
    pub violating: u64,
}

/// Between which nodes, by which process, kind of step and handler.
pub type Edge = (u32, u32, u16, Kind, u16);

#[derive(Default)]
pub struct Projection {
    pub nodes: Vec<Collapsed>,
    pub edges: BTreeMap<Edge, u64>,
    /// Whether some states are in no node, because there would be too many nodes.
    pub cut: bool,
}

const NONE: u32 = u32::MAX;

/// Collapse a graph to at most `most` nodes. `always` are the invariants, which the labels of the graph have in this order.
pub fn project(
    view: &mut View,
    control: &Control,
    graph: &Graph,
    places: &[Place],
    always: &[usize],
    most: usize,
) -> Result<Projection> {
    let mut found = Projection::default();
    let mut numbers: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
    let mut node_of = Vec::with_capacity(graph.len());
    let mut key = Vec::with_capacity(places.len());
    for id in 0..graph.len() as StateId {
        key.clear();
        key.extend(places.iter().map(|&place| content(view, graph, id, place)));
        let number = match numbers.get(key.as_slice()) {
            Some(&number) => number,
            None if found.nodes.len() == most => {
                found.cut = true;
                NONE
            }
            None => {
                let number = found.nodes.len() as u32;
                numbers.insert(key.as_slice().into(), number);
                found.nodes.push(Collapsed { first: id, count: 0, initial: false, terminal: 0, violating: 0 });
                number
            }
        };
        node_of.push(number);
    }
    let finals: Vec<usize> = (0..control.kinds.len()).filter(|&p| control.kinds[p] == PropertyKind::Final).collect();
    let holds = (1u64 << always.len()) - 1;
    let mut taken = Vec::new();
    for id in 0..graph.len() as StateId {
        let number = node_of[id as usize];
        let state = graph.state(id);
        let fingerprint = view.fingerprint(&state);
        taken.clear();
        let summary = edges(view, &state, fingerprint, ALL, |successor| taken.push(successor.via))?;
        if number == NONE {
            continue;
        }
        // To the graph, a state is terminal if all its steps fail, too.
        let terminal = graph.is_terminal(id) && !summary.fails;
        let mut violating = summary.fails || graph.label(id) & holds != holds;
        for &property in finals.iter().filter(|_| terminal) {
            violating |= view.evaluate(property, &state, &control.reads)? == Some(false);
        }
        let node = &mut found.nodes[number as usize];
        node.count += 1;
        node.initial |= (id as usize) < graph.roots;
        node.terminal += u64::from(terminal);
        node.violating += u64::from(violating);
        // States outside of the bound, or beyond a limit, have no edges.
        for (via, &target) in taken.drain(..).zip(graph.targets(id)) {
            let target = node_of[target as usize];
            if target != NONE {
                let record = view.transition(&state, via)?;
                let details = view.tables.details(&record);
                let by = (number, target, via.process, details.kind, details.handler);
                *found.edges.entry(by).or_default() += 1;
            }
        }
    }
    Ok(found)
}

impl Projection {
    /// The same with fewer nodes: those with the same number become one. Those without a number are left out.
    pub fn merged(self, numbers: &[Option<u32>]) -> Projection {
        let mut found = Projection { cut: self.cut || numbers.contains(&None), ..Projection::default() };
        let mut place_of: FxHashMap<u32, u32> = FxHashMap::default();
        let mut places = Vec::with_capacity(numbers.len());
        for (node, number) in self.nodes.into_iter().zip(numbers) {
            places.push(number.map(|number| {
                let place = *place_of.entry(number).or_insert(found.nodes.len() as u32);
                match found.nodes.get_mut(place as usize) {
                    None => found.nodes.push(node),
                    Some(known) => {
                        known.count += node.count;
                        known.initial |= node.initial;
                        known.terminal += node.terminal;
                        known.violating += node.violating;
                    }
                }
                place
            }));
        }
        for ((from, to, process, kind, handler), count) in self.edges {
            if let (Some(from), Some(to)) = (places[from as usize], places[to as usize]) {
                *found.edges.entry((from, to, process, kind, handler)).or_default() += count;
            }
        }
        found
    }
}

/// The id of what is at a place.
fn content(view: &View, graph: &Graph, id: StateId, place: Place) -> u32 {
    let values = view.tables.model.values();
    match place {
        Place::Part(process, part) => {
            let local = view.tables.node(graph.component(id, process)).local;
            values.parts(local).get(part).copied().unwrap_or(NONE)
        }
        Place::Inbox(process) => view.tables.node(graph.component(id, process)).inbox,
        Place::Monitor(monitor, field) => {
            let state = graph.component(id, view.tables.model.shape().processes + monitor);
            values.fields(state)[field]
        }
    }
}

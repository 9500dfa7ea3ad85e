//! Infinite runs: does a fair run of the system satisfy a temporal formula? (DESIGN section 5; paper 000, III-B (c))
//!
//! The negation of the formula comes as a generalized Büchi automaton. Its product with the graph of states has a run that
//! violates the property if and only if it has a strongly connected component, reachable and not trivial, that has a node
//! of each acceptance set and in which the fairness assumptions can be met. A *weak* assumption about a class of steps (if it
//! stays enabled it happens again and again) fails in a component in which the class is enabled everywhere and never
//! happens; then it fails in every part of it too. A *strong* one (if it is enabled again and again it happens again and
//! again) fails in a component in which the class is enabled somewhere and never happens; a part of the component without
//! the nodes where it is enabled may still be fair, so these are taken out and the rest is decomposed again. Whatever
//! component remains has a run that goes round all its nodes and edges for ever, which is fair and accepted.
//!
//! A terminal state, which no step of a process leads out of, stutters: the run stays there. Faults need not happen.

use crate::control::Control;
use crate::graph::{Graph, StateId};
use crate::lens::{Lens, Way};
use crate::model::{MessageId, Result};
use crate::path::Step;
use crate::tables::Kind;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A generalized Büchi automaton whose nodes say which predicates must hold.
#[derive(Clone, Debug)]
pub struct Automaton {
    pub nodes: Vec<AutomatonNode>,
    pub initial: Vec<u32>,
    /// How many acceptance sets there are.
    pub sets: u32,
}

#[derive(Clone, Debug)]
pub struct AutomatonNode {
    /// Predicates that must be true, and those that must be false.
    pub yes: u64,
    pub no: u64,
    pub next: Vec<u32>,
    /// The acceptance sets that it is in, as bits.
    pub accepting: u64,
}

/// An assumption about steps of these handlers, each with its process.
#[derive(Clone, Debug)]
pub struct Fairness {
    pub strong: bool,
    pub handlers: Vec<(u16, u16)>,
    /// One assumption for each message: steps that take it.
    pub by_message: bool,
}

/// A run that ends in a loop. Each step is the state that it leaves and the number of its edge there.
#[derive(Clone, Debug, Default)]
pub struct Lasso {
    pub stem: Vec<(StateId, u32)>,
    /// Empty if the run ends in a terminal state.
    pub cycle: Vec<(StateId, u32)>,
}

impl Lasso {
    /// The transitions of the stem and of the cycle.
    pub fn steps(&self, lens: &mut Lens, graph: &Graph) -> Result<(Vec<Step>, Vec<Step>)> {
        let mut step = |&(state, edge): &(StateId, u32)| -> Result<Step> {
            let way = graph.ways(lens, state)?[edge as usize];
            let here = graph.state(state);
            let mut after = here.to_vec();
            lens.take(&mut after, way)?;
            Ok(Step {
                process: way.process as usize,
                transition: way.transition as usize,
                expansion: lens.expansion(here[way.process as usize])?,
                fingerprint: lens.fingerprint(&after),
                state: after,
                fails: false,
            })
        };
        let stem = self.stem.iter().map(&mut step).collect::<Result<Vec<Step>>>()?;
        Ok((stem, self.cycle.iter().map(step).collect::<Result<Vec<Step>>>()?))
    }
}

/// The steps that one assumption is about: its number, and where there is one for each message, which and whose.
type Class = (usize, Option<(u16, MessageId)>);

/// What a component does with a class.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Nodes where it is enabled.
    enabled: usize,
    happens: bool,
}

/// Per class that is enabled in a state, the edges that are steps of it.
type Enabled = FxHashMap<Class, Vec<u32>>;
type Records = FxHashMap<Class, Record>;

/// A node of the product: state times the number of automaton nodes, plus the automaton node.
type Node = u32;
const STUTTER: u32 = u32::MAX;
const NOWHERE: u32 = u32::MAX;

pub struct Product<'a, 't> {
    lens: &'a mut Lens<'t>,
    control: &'a Control,
    graph: &'a Graph,
    automaton: &'a Automaton,
    fairness: &'a [Fairness],
    /// Per node: the component that is being looked at; 0 for none.
    region: Vec<u32>,
    regions: u32,
    /// Rules that a test leaves out.
    forgets_strong: bool,
    forgets_weak: bool,
}

impl<'a, 't> Product<'a, 't> {
    pub fn new(
        lens: &'a mut Lens<'t>,
        control: &'a Control,
        graph: &'a Graph,
        automaton: &'a Automaton,
        fairness: &'a [Fairness],
    ) -> std::result::Result<Self, String> {
        let size = graph.len() * automaton.nodes.len();
        if size >= NOWHERE as usize {
            return Err(format!("the product of graph and formula has {size} nodes, more than 2**32"));
        }
        Ok(Product {
            forgets_strong: control.forgets("strong-fairness"),
            forgets_weak: control.forgets("weak-fairness"),
            lens,
            control,
            graph,
            automaton,
            fairness,
            region: vec![0; size],
            regions: 0,
        })
    }

    /// A fair run that the automaton accepts, with a shortest stem to the component it was found in.
    pub fn lasso(&mut self) -> Result<Option<Lasso>> {
        let roots: Vec<Node> = self.roots();
        let mut waiting = self.components(&roots, 0);
        while let Some(component) = waiting.pop() {
            if self.control.stopped() {
                break;
            }
            self.regions += 1;
            let region = self.regions;
            component.iter().for_each(|&node| self.region[node as usize] = region);
            let records = match self.judge(&component, region)? {
                Judgement::Fair(records) => records,
                Judgement::Unfair => continue,
                Judgement::Without(classes) => {
                    let rest = self.without(&component, &classes)?;
                    self.regions += 1;
                    let region = self.regions;
                    rest.iter().for_each(|&node| self.region[node as usize] = region);
                    waiting.extend(self.components(&rest, region));
                    continue;
                }
            };
            return self.run(&component, region, &roots, &records).map(Some);
        }
        Ok(None)
    }

    fn parts(&self, node: Node) -> (StateId, usize) {
        let count = self.automaton.nodes.len() as u32;
        (node / count, (node % count) as usize)
    }

    fn node(&self, state: StateId, automaton: u32) -> Option<Node> {
        let label = self.graph.label(state);
        let wanted = &self.automaton.nodes[automaton as usize];
        let fits = label & wanted.yes == wanted.yes && label & wanted.no == 0;
        fits.then(|| state * self.automaton.nodes.len() as u32 + automaton)
    }

    fn roots(&self) -> Vec<Node> {
        self.automaton.initial.iter().filter_map(|&automaton| self.node(0, automaton)).collect()
    }

    /// The edge of a node with a number, which counts the edges of the state times those of the automaton node; none after the
    /// last. `Some(None)` where the automaton does not fit.
    fn edge(&self, node: Node, number: usize) -> Option<Option<(u32, Node)>> {
        let (state, automaton) = self.parts(node);
        let next = &self.automaton.nodes[automaton].next;
        let targets = self.graph.targets(state);
        let (edge, choice) = (number / next.len().max(1), number % next.len().max(1));
        let after = *next.get(choice)?;
        let (edge, target) = match targets.get(edge) {
            Some(&target) => (edge as u32, target),
            None if edge == targets.len() && self.graph.is_terminal(state) => (STUTTER, state),
            None => return None,
        };
        Some(self.node(target, after).map(|node| (edge, node)))
    }

    fn edges(&self, node: Node) -> impl Iterator<Item = (u32, Node)> + '_ {
        (0..).map_while(move |number| self.edge(node, number)).flatten()
    }

    /// The strongly connected components, but for trivial ones, of what can be reached from the roots within a region, by
    /// Tarjan's algorithm without recursion.
    fn components(&self, roots: &[Node], region: u32) -> Vec<Vec<Node>> {
        let mut found = Vec::new();
        // Order of discovery, from 1; the least order that is known to be reachable; MAX once the component is complete.
        let mut order: Orders = Orders::new(self.region.len(), region == 0);
        let mut path: Vec<Node> = Vec::new();
        let mut count = 0;
        for &root in roots {
            if order.get(root).0 != 0 || self.region[root as usize] != region {
                continue;
            }
            count += 1;
            order.set(root, (count, count));
            path.push(root);
            let mut stack: Vec<(Node, usize)> = vec![(root, 0)];
            while let Some(&mut (node, ref mut number)) = stack.last_mut() {
                let edge = self.edge(node, *number);
                *number += 1;
                match edge {
                    Some(None) => {}
                    Some(Some((_, target))) if self.region[target as usize] != region => {}
                    Some(Some((_, target))) => {
                        let (found_at, low) = order.get(target);
                        if found_at == 0 {
                            count += 1;
                            order.set(target, (count, count));
                            path.push(target);
                            stack.push((target, 0));
                            if count.is_multiple_of(1 << 16) && self.control.stopped() {
                                return found;
                            }
                        } else if low != u32::MAX {
                            let (own, least) = order.get(node);
                            order.set(node, (own, least.min(found_at)));
                        }
                    }
                    None => {
                        stack.pop();
                        let (own, least) = order.get(node);
                        if let Some(&(parent, _)) = stack.last() {
                            let (at, low) = order.get(parent);
                            order.set(parent, (at, low.min(least)));
                        }
                        if own == least {
                            let from = path.iter().rposition(|&other| other == node).expect("it is on the path");
                            for &member in &path[from..] {
                                let at = order.get(member).0;
                                order.set(member, (at, u32::MAX));
                            }
                            let alone = path.len() - from == 1;
                            if !alone || self.edges(node).any(|(_, target)| target == node) {
                                found.push(path[from..].to_vec());
                            }
                            path.truncate(from);
                        }
                    }
                }
            }
        }
        found
    }

    /// The classes that a step is in.
    fn classes(&mut self, state: StateId, way: Way) -> Result<Vec<Class>> {
        let node = self.graph.state(state)[way.process as usize];
        let expansion = self.lens.expansion(node)?;
        let details = &expansion.details[way.transition as usize];
        let mut found = Vec::new();
        for (number, fairness) in self.fairness.iter().enumerate() {
            if details.kind == Kind::Step && fairness.handlers.contains(&(way.process, details.handler)) {
                match fairness.by_message {
                    true => found.extend(details.consumed.iter().map(|&m| (number, Some((way.process, m))))),
                    false => found.push((number, None)),
                }
            }
        }
        Ok(found)
    }

    /// What is enabled in a state, with the edges that take it.
    fn enabled(&mut self, state: StateId) -> Result<Enabled> {
        let mut enabled = Enabled::default();
        if self.fairness.is_empty() {
            return Ok(enabled);
        }
        for (edge, way) in self.graph.ways(self.lens, state)?.into_iter().enumerate() {
            for class in self.classes(state, way)? {
                enabled.entry(class).or_default().push(edge as u32);
            }
        }
        Ok(enabled)
    }

    fn judge(&mut self, component: &[Node], region: u32) -> Result<Judgement> {
        let all = (1u64 << self.automaton.sets) - 1;
        let met = component.iter().fold(0, |met, &node| met | self.automaton.nodes[self.parts(node).1].accepting);
        if met & all != all {
            return Ok(Judgement::Unfair);
        }
        let mut records = Records::default();
        for &node in component {
            let enabled = self.enabled(self.parts(node).0)?;
            if enabled.is_empty() {
                continue;
            }
            let inside: Vec<u32> =
                self.edges(node).filter(|&(_, t)| self.region[t as usize] == region).map(|e| e.0).collect();
            for (class, edges) in enabled {
                let record = records.entry(class).or_default();
                record.enabled += 1;
                record.happens |= edges.iter().any(|edge| inside.contains(edge));
            }
        }
        let starved = |record: &Record| !record.happens && record.enabled > 0;
        let everywhere = |record: &Record| starved(record) && record.enabled == component.len();
        if !self.forgets_weak && records.values().any(everywhere) {
            return Ok(Judgement::Unfair);
        }
        let fails = |(class, record): &(&Class, &Record)| self.fairness[class.0].strong && starved(record);
        let strong: Vec<Class> = records.iter().filter(fails).map(|(class, _)| *class).collect();
        if self.forgets_weak || self.forgets_strong {
            return Ok(Judgement::Fair(Records::default()));
        }
        Ok(if strong.is_empty() { Judgement::Fair(records) } else { Judgement::Without(strong) })
    }

    /// The nodes of a component where none of the classes is enabled.
    fn without(&mut self, component: &[Node], classes: &[Class]) -> Result<Vec<Node>> {
        let mut rest = Vec::new();
        for &node in component {
            let enabled = self.enabled(self.parts(node).0)?;
            if !classes.iter().any(|class| enabled.contains_key(class)) {
                rest.push(node);
            }
        }
        Ok(rest)
    }

    /// A run to a component, and round it: by way of all that makes it fair and accepted, unless it comes by anyway.
    fn run(&mut self, component: &[Node], region: u32, roots: &[Node], records: &Records) -> Result<Lasso> {
        let mut enabled: FxHashMap<Node, Enabled> = FxHashMap::default();
        if !records.is_empty() {
            for &node in component {
                enabled.insert(node, self.enabled(self.parts(node).0)?);
            }
        }
        let product = &*self;
        let takes = |class: &Class, node: Node, edge: u32| enabled[&node].get(class).is_some_and(|e| e.contains(&edge));
        let meets = |goal: &Goal, node: Node, edge: Option<u32>| match goal {
            Goal::Set(set) => product.automaton.nodes[product.parts(node).1].accepting >> set & 1 == 1,
            Goal::Happens(class) => edge.is_some_and(|edge| takes(class, node, edge)),
            Goal::Ceases(class) => {
                !enabled[&node].contains_key(class) || edge.is_some_and(|edge| takes(class, node, edge))
            }
        };
        let inside = |node: Node| product.edges(node).filter(move |&(_, t)| product.region[t as usize] == region);
        let to_entry = product.way(roots, None, |node| product.region[node as usize] == region);
        let (stem, entry) = to_entry.expect("the component was reached");
        let (mut cycle, mut here): (Vec<(Node, u32)>, Node) = (Vec::new(), entry);
        let mut classes: Vec<(&Class, &Record)> = records.iter().collect();
        classes.sort_unstable_by_key(|(class, _)| **class);
        let of_class = |(class, record): (&Class, &Record)| match record.happens && product.fairness[class.0].strong {
            true => Goal::Happens(*class),
            false => Goal::Ceases(*class),
        };
        for goal in (0..product.automaton.sets).map(Goal::Set).chain(classes.into_iter().map(of_class)) {
            if cycle.iter().any(|&(node, edge)| meets(&goal, node, Some(edge))) {
                continue;
            }
            let by_edge = |node: Node| inside(node).find(|&(edge, _)| meets(&goal, node, Some(edge)));
            let there = product.way(&[here], Some(region), |node| meets(&goal, node, None) || by_edge(node).is_some());
            let (steps, node) = there.expect("a component is connected");
            cycle.extend(steps);
            here = node;
            if let Some((edge, target)) = by_edge(node).filter(|_| !meets(&goal, node, None)) {
                cycle.push((node, edge));
                here = target;
            }
        }
        if cycle.is_empty() {
            let (edge, target) = inside(entry).next().expect("the component is not trivial");
            cycle.push((entry, edge));
            here = target;
        }
        let home = product.way(&[here], Some(region), |node| node == entry);
        cycle.extend(home.expect("a component is connected").0);
        let plain = |steps: Vec<(Node, u32)>| -> Vec<(StateId, u32)> {
            let real = steps.into_iter().filter(|&(_, edge)| edge != STUTTER);
            real.map(|(node, edge)| (product.parts(node).0, edge)).collect()
        };
        Ok(Lasso { stem: plain(stem), cycle: plain(cycle) })
    }

    /// A shortest way from some nodes to a goal, within a region.
    fn way(&self, from: &[Node], region: Option<u32>, goal: impl Fn(Node) -> bool) -> Option<(Vec<(Node, u32)>, Node)> {
        let mut parents: FxHashMap<Node, (Node, u32)> = FxHashMap::default();
        let mut queue: VecDeque<Node> = from.iter().copied().collect();
        from.iter().for_each(|&node| {
            parents.insert(node, (NOWHERE, 0));
        });
        while let Some(node) = queue.pop_front() {
            if goal(node) {
                let mut steps = Vec::new();
                let mut at = node;
                while let Some(&(parent, edge)) = parents.get(&at).filter(|(parent, _)| *parent != NOWHERE) {
                    steps.push((parent, edge));
                    at = parent;
                }
                steps.reverse();
                return Some((steps, node));
            }
            for (edge, target) in self.edges(node) {
                if region.is_none_or(|region| self.region[target as usize] == region) && !parents.contains_key(&target)
                {
                    parents.insert(target, (node, edge));
                    queue.push_back(target);
                }
            }
        }
        None
    }
}

/// What a run has to come by in a component.
enum Goal {
    Set(u32),
    /// A step of the class.
    Happens(Class),
    /// A step of the class, or a node where it is not enabled.
    Ceases(Class),
}

enum Judgement {
    Fair(Records),
    Unfair,
    /// These strong assumptions fail: look at what is left without the nodes where their classes are enabled.
    Without(Vec<Class>),
}

/// Two numbers per node: for all nodes, or for few of many.
enum Orders {
    All(Vec<(u32, u32)>),
    Few(FxHashMap<Node, (u32, u32)>),
}

impl Orders {
    fn new(size: usize, all: bool) -> Orders {
        if all { Orders::All(vec![(0, 0); size]) } else { Orders::Few(FxHashMap::default()) }
    }

    #[inline]
    fn get(&self, node: Node) -> (u32, u32) {
        match self {
            Orders::All(orders) => orders[node as usize],
            Orders::Few(orders) => orders.get(&node).copied().unwrap_or_default(),
        }
    }

    #[inline]
    fn set(&mut self, node: Node, value: (u32, u32)) {
        match self {
            Orders::All(orders) => orders[node as usize] = value,
            Orders::Few(orders) => {
                orders.insert(node, value);
            }
        }
    }
}

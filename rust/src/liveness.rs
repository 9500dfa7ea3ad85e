//! Infinite runs: does a fair run of the system satisfy a temporal formula? (DESIGN section 5; paper 000, III-B (c))
//!
//! The negation of the formula comes as a generalized Büchi automaton. Its product with the graph of states has a run that
//! violates the property if and only if it has a strongly connected component, reachable and not trivial, that has a node
//! of each acceptance set and in which the fairness assumptions can be met. A *weak* assumption about a class of steps (if it
//! stays enabled it happens again and again) fails in a component in which the class is enabled everywhere and never
//! happens; then it fails in every part of it too. A *strong* one (if it is enabled again and again it happens again and
//! again) fails in a component in which the class is enabled somewhere and never happens; a part of the component without
//! the nodes where it is enabled may still be fair, so these are taken out and the rest is decomposed again. Whatever
//! component remains has a run that goes round all its nodes and edges for ever, which is fair and accepted (`lasso`).
//!
//! Only the parts of the automaton that a run can stay in and be accepted are looked at so: from where it just waits for the
//! beginning of what it accepts, it is enough to know what can be reached.
//!
//! A terminal state, which no step of a process leads out of, stutters: the run stays there. Faults need not happen.

use crate::control::Control;
use crate::graph::{Graph, StateId};
use crate::lasso::Lasso;
use crate::lens::Lens;
use crate::model::Result;
use crate::numbering::prefetch;
use crate::offers::{ClassId, Fairness, Offers};

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

/// A node of the product: state times the number of automaton nodes, plus the automaton node.
pub type Node = u32;
/// The edge of a terminal state that stays.
pub const STUTTER: u32 = u32::MAX;

/// Marks of nodes: not met yet; while their component is being looked for, the order in which they were met, from 1; then
/// the number of the component, from the top down. Those whose predicates do not fit are no nodes.
type Mark = u32;
const UNMET: Mark = 0;
const NONE: Mark = u32::MAX;

pub struct Product<'a, 't> {
    pub(crate) lens: &'a mut Lens<'t>,
    pub(crate) graph: &'a Graph,
    pub(crate) automaton: &'a Automaton,
    pub(crate) offers: Offers<'a>,
    control: &'a Control,
    parts: Parts,
    marks: Vec<Mark>,
    /// The number of the next component.
    component: Mark,
    /// Rules that a test leaves out.
    pub(crate) forgets_strong: bool,
    pub(crate) forgets_weak: bool,
}

/// The strongly connected parts of the automaton.
struct Parts {
    /// It is one part, from the beginning.
    whole: bool,
    /// Per node: whether its part has nodes of all acceptance sets, and an edge.
    promising: Vec<bool>,
    /// Per node: where to go within the part.
    inside: Vec<Vec<u32>>,
}

impl Parts {
    fn new(automaton: &Automaton) -> Parts {
        let nodes = &automaton.nodes;
        let reached: Vec<Vec<bool>> = (0..nodes.len())
            .map(|from| {
                let mut reached = vec![false; nodes.len()];
                let mut waiting = nodes[from].next.clone();
                while let Some(node) = waiting.pop() {
                    if !std::mem::replace(&mut reached[node as usize], true) {
                        waiting.extend(&nodes[node as usize].next);
                    }
                }
                reached
            })
            .collect();
        let together = |a: usize, b: usize| reached[a][b] && reached[b][a];
        let all = (1u64 << automaton.sets) - 1;
        let promising = |from: usize| {
            let part = (0..nodes.len()).filter(|&other| together(from, other));
            reached[from][from] && part.fold(0, |sets, node| sets | nodes[node].accepting) & all == all
        };
        let inside = |from: usize| nodes[from].next.iter().copied().filter(|&to| together(from, to as usize)).collect();
        Parts {
            whole: (0..nodes.len()).all(|node| together(0, node)),
            promising: (0..nodes.len()).map(promising).collect(),
            inside: (0..nodes.len()).map(inside).collect(),
        }
    }
}

/// A strongly connected component: its number and its nodes.
pub(crate) struct Component {
    pub number: Mark,
    pub nodes: Vec<Node>,
}

enum Judgement {
    Fair,
    Unfair,
    /// These strong assumptions fail: look at what is left without the nodes where their classes are enabled.
    Without(Vec<ClassId>),
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
        if size >= (NONE - 1) as usize {
            return Err(format!("the product of graph and formula has {size} nodes, more than 2**32"));
        }
        if automaton.nodes.len() > u16::MAX as usize {
            return Err(format!("the formula is too large: its automaton has {} nodes", automaton.nodes.len()));
        }
        let mut marks = Vec::with_capacity(size);
        for state in 0..graph.len() as StateId {
            let label = graph.label(state);
            let fits = |node: &AutomatonNode| label & node.yes == node.yes && label & node.no == 0;
            marks.extend(automaton.nodes.iter().map(|node| if fits(node) { UNMET } else { NONE }));
        }
        Ok(Product {
            forgets_strong: control.forgets("strong-fairness"),
            forgets_weak: control.forgets("weak-fairness"),
            lens,
            control,
            graph,
            automaton,
            offers: Offers::new(fairness),
            parts: Parts::new(automaton),
            marks,
            component: NONE - 1,
        })
    }

    /// A fair run that the automaton accepts, with a shortest stem to the component it was found in.
    pub fn lasso(&mut self) -> Result<Option<Lasso>> {
        let roots = self.roots();
        let promising = if self.parts.whole { roots.clone() } else { self.promising(&roots) };
        let mut waiting = self.components(promising);
        // States are numbered breadth first: the run to the one with the least number is a shortest one.
        waiting.sort_by_key(|component| std::cmp::Reverse(component.nodes.iter().min().copied()));
        while let Some(component) = waiting.pop() {
            if self.control.stopped() {
                break;
            }
            match self.judge(&component)? {
                Judgement::Fair => return self.run(&component, &roots).map(Some),
                Judgement::Unfair => {}
                Judgement::Without(classes) => {
                    let rest = self.without(&component, &classes)?;
                    rest.iter().for_each(|&node| self.marks[node as usize] = UNMET);
                    waiting.extend(self.components(rest));
                }
            }
        }
        Ok(None)
    }

    /// The nodes that can be reached, in order, of parts of the automaton that a run can stay in and be accepted.
    fn promising(&self, roots: &[Node]) -> Vec<Node> {
        let mut met = vec![0u64; self.marks.len() / 64 + 1];
        let mut meet = |node: Node| {
            let (word, bit) = (&mut met[node as usize / 64], 1 << (node % 64));
            let new = *word & bit == 0;
            *word |= bit;
            new
        };
        let count = self.automaton.nodes.len() as u32;
        let mut queue: Vec<Node> = roots.iter().copied().filter(|&node| meet(node)).collect();
        let mut at = 0;
        while let Some(&node) = queue.get(at) {
            at += 1;
            let (state, automaton) = self.parts(node);
            let stays = self.graph.is_terminal(state).then_some(state);
            for &target in self.graph.targets(state).iter().chain(&stays) {
                for &after in &self.automaton.nodes[automaton].next {
                    let target = target * count + after;
                    if self.marks[target as usize] != NONE && meet(target) {
                        queue.push(target);
                    }
                }
            }
            if at.is_multiple_of(1 << 16) && self.control.stopped() {
                break;
            }
        }
        queue.retain(|&node| self.parts.promising[self.parts(node).1]);
        queue.sort_unstable();
        queue
    }

    /// The components, of what is unmet and can be reached from some nodes, that are not trivial and are accepted.
    fn components(&mut self, from: Vec<Node>) -> Vec<Component> {
        let mut search = Search::new(from);
        std::iter::from_fn(|| search.next(self)).collect()
    }

    #[inline]
    pub(crate) fn parts(&self, node: Node) -> (StateId, usize) {
        let count = self.automaton.nodes.len() as u32;
        (node / count, (node % count) as usize)
    }

    #[inline]
    fn node(&self, state: StateId, automaton: u32) -> Node {
        state * self.automaton.nodes.len() as u32 + automaton
    }

    /// How many nodes there may be.
    pub(crate) fn size(&self) -> usize {
        self.marks.len()
    }

    fn roots(&self) -> Vec<Node> {
        let roots = self.automaton.initial.iter().map(|&automaton| self.node(0, automaton));
        roots.filter(|&node| self.marks[node as usize] != NONE).collect()
    }

    /// Whether a node is in a component.
    #[inline]
    pub(crate) fn is_in(&self, node: Node, component: &Component) -> bool {
        self.marks[node as usize] == component.number
    }

    /// The nodes that an edge of the state leads to.
    fn by(&self, node: Node, edge: u32) -> impl Iterator<Item = Node> + '_ {
        let (state, automaton) = self.parts(node);
        let target = if edge == STUTTER { state } else { self.graph.targets(state)[edge as usize] };
        let after = self.automaton.nodes[automaton].next.iter().map(move |&after| self.node(target, after));
        after.filter(|&node| self.marks[node as usize] != NONE)
    }

    /// All edges of a node.
    pub(crate) fn edges(&self, node: Node) -> impl Iterator<Item = (u32, Node)> + '_ {
        let state = self.parts(node).0;
        let stays = self.graph.is_terminal(state).then_some(STUTTER);
        let edges = (0..self.graph.targets(state).len() as u32).chain(stays);
        edges.flat_map(move |edge| self.by(node, edge).map(move |target| (edge, target)))
    }

    /// Whether an edge of a node leads to a node of the component.
    pub(crate) fn leads_inside(&self, node: Node, edge: u32, component: &Component) -> bool {
        self.by(node, edge).any(|target| self.is_in(target, component))
    }

    fn judge(&mut self, component: &Component) -> Result<Judgement> {
        if self.offers.none() {
            return Ok(Judgement::Fair);
        }
        if !self.forgets_weak && self.starves(component)? {
            return Ok(Judgement::Unfair);
        }
        if self.forgets_weak || self.forgets_strong || !self.offers.any_strong() {
            return Ok(Judgement::Fair);
        }
        let classes = self.fruitless(component)?;
        Ok(if classes.is_empty() { Judgement::Fair } else { Judgement::Without(classes) })
    }

    /// Whether a class is enabled in all nodes of a component, and never happens there.
    fn starves(&mut self, component: &Component) -> Result<bool> {
        let mut offered = Vec::new();
        let mut starved: Option<Vec<ClassId>> = None;
        for &node in &component.nodes {
            self.offers.list(self.lens, self.graph, self.parts(node).0, &mut offered)?;
            let mut here: Vec<ClassId> = match starved.take() {
                Some(mut classes) => {
                    classes.retain(|class| offered.iter().any(|(one, _)| one == class));
                    classes
                }
                None => {
                    let mut classes: Vec<ClassId> = offered.iter().map(|&(class, _)| class).collect();
                    classes.dedup();
                    classes
                }
            };
            here.retain(|class| {
                let mut steps = offered.iter().filter(|(one, _)| one == class);
                !steps.any(|&(_, edge)| self.leads_inside(node, edge, component))
            });
            if here.is_empty() {
                return Ok(false);
            }
            starved = Some(here);
        }
        Ok(true)
    }

    /// The classes with a strong assumption that are enabled somewhere in a component, and never happen there.
    fn fruitless(&mut self, component: &Component) -> Result<Vec<ClassId>> {
        let mut offered = Vec::new();
        let (mut enabled, mut happens): (Vec<bool>, Vec<bool>) = (Vec::new(), Vec::new());
        for &node in &component.nodes {
            self.offers.list(self.lens, self.graph, self.parts(node).0, &mut offered)?;
            enabled.resize(self.offers.len(), false);
            happens.resize(self.offers.len(), false);
            for &(class, edge) in &offered {
                if self.offers.is_strong(class) && !happens[class as usize] {
                    enabled[class as usize] = true;
                    happens[class as usize] = self.leads_inside(node, edge, component);
                }
            }
        }
        Ok((0..enabled.len()).filter(|&c| enabled[c] && !happens[c]).map(|c| c as ClassId).collect())
    }

    /// The nodes of a component where none of the classes is enabled.
    fn without(&mut self, component: &Component, classes: &[ClassId]) -> Result<Vec<Node>> {
        let mut offered = Vec::new();
        let mut rest = Vec::new();
        for &node in &component.nodes {
            self.offers.list(self.lens, self.graph, self.parts(node).0, &mut offered)?;
            if !offered.iter().any(|(class, _)| classes.contains(class)) {
                rest.push(node);
            }
        }
        Ok(rest)
    }
}

/// The search for strongly connected components: Tarjan's algorithm in Pearce's form, with one number per node, and
/// without recursion. It is within the nodes that are unmet when it begins.
struct Search {
    roots: Vec<Node>,
    frames: Vec<Frame>,
    /// Nodes whose component is not complete, but for those that it may be named after.
    open: Vec<Node>,
    count: Mark,
    visits: u32,
}

/// A node whose edges are being followed.
struct Frame {
    node: Node,
    state: StateId,
    /// The next edge of the state, and of the automaton's node.
    edge: u32,
    choice: u16,
    automaton: u16,
    /// No node met earlier can be reached so far.
    is_root: bool,
}

impl Search {
    fn new(mut roots: Vec<Node>) -> Search {
        roots.reverse();
        Search { roots, frames: Vec::new(), open: Vec::new(), count: 1, visits: 0 }
    }

    /// The next component that has an edge, and a node of each acceptance set.
    fn next(&mut self, product: &mut Product) -> Option<Component> {
        let graph = product.graph;
        let count = product.automaton.nodes.len() as u32;
        loop {
            let Some(frame) = self.frames.last_mut() else {
                let root = self.roots.pop()?;
                if product.marks[root as usize] == UNMET {
                    self.enter(product, root);
                }
                continue;
            };
            let targets = graph.targets(frame.state);
            let next = &product.parts.inside[frame.automaton as usize];
            // Follow edges until one leads to a node that was not met.
            let mut own = product.marks[frame.node as usize];
            let mut fresh = None;
            while fresh.is_none() && !next.is_empty() {
                let target = match targets.get(frame.edge as usize) {
                    Some(&target) => target,
                    None if frame.edge as usize == targets.len() && graph.is_terminal(frame.state) => frame.state,
                    None => break,
                };
                let target = target * count + next[frame.choice as usize];
                let mark = product.marks[target as usize];
                if mark == UNMET {
                    fresh = Some(target);
                    break; // and look at it again afterwards
                }
                if mark < own {
                    own = mark;
                    frame.is_root = false;
                }
                frame.choice += 1;
                if frame.choice as usize == next.len() {
                    frame.choice = 0;
                    frame.edge += 1;
                }
            }
            product.marks[frame.node as usize] = own;
            if let Some(target) = fresh {
                self.enter(product, target);
                self.visits = self.visits.wrapping_add(1);
                if self.visits.is_multiple_of(1 << 16) && product.control.stopped() {
                    return None;
                }
            } else if let Some(component) = self.leave(product) {
                return Some(component);
            }
        }
    }

    #[inline]
    fn enter(&mut self, product: &mut Product, node: Node) {
        let (state, automaton) = product.parts(node);
        product.marks[node as usize] = self.count;
        self.count += 1;
        let count = product.automaton.nodes.len();
        for &target in product.graph.targets(state) {
            prefetch(&product.marks, target as usize * count);
        }
        self.frames.push(Frame { node, state, edge: 0, choice: 0, automaton: automaton as u16, is_root: true });
    }

    /// Done with a node; its component, if that is complete now and may be a finding.
    #[inline]
    fn leave(&mut self, product: &mut Product) -> Option<Component> {
        let frame = self.frames.pop().expect("it is being left");
        let own = product.marks[frame.node as usize];
        if !frame.is_root {
            self.open.push(frame.node);
            return None;
        }
        let met = self.open.iter().rev().take_while(|&&node| own <= product.marks[node as usize]).count();
        let rest = self.open.len() - met;
        let number = product.component;
        product.component -= 1;
        self.count -= met as u32 + 1;
        for &node in &self.open[rest..] {
            product.marks[node as usize] = number;
        }
        product.marks[frame.node as usize] = number;
        let all = (1u64 << product.automaton.sets) - 1;
        let accepting = |node: Node| product.automaton.nodes[product.parts(node).1].accepting;
        let accepted = self.open[rest..].iter().fold(accepting(frame.node), |sets, &node| sets | accepting(node));
        let returns = || met > 0 || product.edges(frame.node).any(|(_, target)| target == frame.node);
        let mut component = None;
        if accepted & all == all && returns() {
            let nodes = std::iter::once(frame.node).chain(self.open[rest..].iter().rev().copied()).collect();
            component = Some(Component { number, nodes });
        }
        self.open.truncate(rest);
        component
    }
}

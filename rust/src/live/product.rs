//! Infinite runs: is there a fair run of the system that violates a temporal formula? (DBSS, section III-B (c))
//!
//! The negation of the formula comes as a generalized Büchi automaton. Its product with the graph of states has a run
//! that violates the property if and only if it has a strongly connected component with these properties: it is
//! reachable and not trivial, it has a node of each acceptance set, and the fairness assumptions can be met in it
//! (`fairness`). If a strong assumption fails in a component, the nodes where its class is enabled are removed, and the
//! rest is decomposed again. If fair loss fails, the edges that lose the message are removed instead. A component that remains has a run that visits all its nodes and edges for ever. This run
//! is fair and accepted (`lasso`).
//!
//! Components lie within the strongly connected parts of the automaton. Only the parts in which a run can stay and be
//! accepted are searched for components (`scc`). For the other parts, the reachable nodes are enough (`reach`).
//!
//! A terminal state has no step of a process. The run stutters there: it stays in the state. Faults need not happen. In a
//! model with clocks, a run may also stay in a state in which ticks are possible and change nothing.

use crate::live::automaton::{Automaton, Part};
use crate::live::fair_classes::FairClasses;
use crate::live::fairness::{Fairness, Judgement};
use crate::live::graph::{Graph, StateId};
use crate::live::lasso::Lasso;
use crate::live::reach::Reach;
use crate::live::refinement::Constant;
use crate::live::scc::{Component, Local, Region};
use crate::search::control::Control;
use crate::system::model::Result;
use crate::system::successors::View;
use std::io;

/// A node of the product: state times the number of automaton nodes, plus the automaton node.
pub type Node = u32;

pub struct Product<'a, 't> {
    pub(crate) view: &'a mut View<'t>,
    pub(crate) graph: &'a Graph,
    pub(crate) automaton: &'a Automaton,
    pub(crate) fair_classes: FairClasses<'a>,
    control: &'a Control,
    /// The promising parts of the automaton, and per node of the automaton, its region and its number there.
    pub(crate) regions: Vec<Region>,
    homes: Vec<Option<(usize, u32)>>,
    /// Per state, a number that the edges of a loop may not change.
    pub(crate) constant: Constant,
    /// Rules that a test leaves out.
    pub(crate) without_strong: bool,
    pub(crate) without_weak: bool,
    /// A distance of more nodes than this is far. (Tests set a smaller number.)
    pub(crate) far: usize,
}

impl<'a, 't> Product<'a, 't> {
    pub fn new(
        view: &'a mut View<'t>,
        control: &'a Control,
        graph: &'a Graph,
        automaton: &'a Automaton,
        fairness: &'a [Fairness],
    ) -> std::result::Result<Self, String> {
        let size = graph.len() * automaton.nodes.len();
        if size >= u32::MAX as usize - 1 {
            return Err(format!("the product of graph and formula has {size} nodes, more than 2**32"));
        }
        if automaton.nodes.len() > u16::MAX as usize {
            return Err(format!("the formula is too large: its automaton has {} nodes", automaton.nodes.len()));
        }
        Ok(Product {
            without_strong: control.leaves_out("strong-fairness"),
            without_weak: control.leaves_out("weak-fairness"),
            far: if control.leaves_out("near") { 3 } else { 1 << 20 },
            view,
            control,
            graph,
            automaton,
            fair_classes: FairClasses::new(fairness),
            regions: Vec::new(),
            homes: vec![None; automaton.nodes.len()],
            constant: None,
        })
    }

    /// A fair run that the automaton accepts, with a shortest stem to the component it was found in.
    pub fn lasso(&mut self) -> Result<Option<Lasso>> {
        let mut waiting = self.components()?;
        // Of states, the deeper ones have greater numbers: the run to the one with the least number is a shortest one.
        let least = |regions: &[Region], one: &Component| regions[one.region].split(one.nodes[0]);
        waiting.sort_by_key(|component| std::cmp::Reverse(least(&self.regions, component)));
        while let Some(component) = waiting.pop() {
            if self.control.stopped() {
                break;
            }
            match self.judge(&component)? {
                Judgement::Fair => return self.run(&component).map(Some),
                Judgement::Unfair => {}
                Judgement::Without(classes) => {
                    let rest = self.without(&component, &classes)?;
                    waiting.extend(self.components_of(component.region, &rest));
                }
                Judgement::WithoutLosses(classes) => {
                    self.ban(&component, &classes)?;
                    waiting.extend(self.components_of(component.region, &component.nodes));
                }
            }
        }
        Ok(None)
    }

    /// The components of some nodes of a region.
    fn components_of(&mut self, region: usize, nodes: &[Local]) -> Vec<Component> {
        let Product { regions, control, graph, .. } = self;
        regions[region].forget(nodes);
        regions[region].components(control, graph, region, nodes.iter().copied(), Some(nodes))
    }

    /// The components that can be reached, are not trivial, and are accepted.
    fn components(&mut self) -> Result<Vec<Component>> {
        let Product { graph, automaton, control, .. } = *self;
        let parts = automaton.parts();
        let mut reach = Reach::new(graph, automaton, &parts);
        let mut found = Vec::new();
        // The parts that lead to no other are searched in the end, at the same time if there are workers.
        let mut last: Vec<&Part> = Vec::new();
        for part in &parts {
            if !part.promising {
                reach.pass(control, part);
            } else if reach.is_last(part) {
                last.push(part);
            } else {
                let (region, components) =
                    searched(control, graph, automaton, &reach, part, self.regions.len(), &self.constant)?;
                for (place, &node) in (0..).zip(&part.nodes) {
                    reach.leave(part, node, |state| region.is_met(graph, state, place));
                }
                self.keep(part, region);
                found.extend(components);
            }
        }
        for some in last.chunks(control.options.workers.max(1)) {
            let (first, reach) = (self.regions.len(), &reach);
            let constant = &self.constant;
            let search =
                |(at, &part): (usize, &&Part)| searched(control, graph, automaton, reach, part, first + at, constant);
            let done: Vec<_> = match some {
                [_] => some.iter().enumerate().map(search).collect(),
                _ => std::thread::scope(|scope| {
                    let begun = some.iter().enumerate().map(|one| scope.spawn(move || search(one)));
                    let begun: Vec<_> = begun.collect();
                    begun.into_iter().map(|one| one.join().expect("it does not panic")).collect()
                }),
            };
            for (part, done) in some.iter().zip(done) {
                let (region, components) = done?;
                self.keep(part, region);
                found.extend(components);
            }
        }
        Ok(found)
    }

    /// Know a part that was searched by its region.
    fn keep(&mut self, part: &Part, region: Region) {
        for (place, &node) in (0..).zip(&part.nodes) {
            self.homes[node as usize] = Some((self.regions.len(), place));
        }
        self.regions.push(region);
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
        self.graph.len() * self.automaton.nodes.len()
    }

    pub(crate) fn roots(&self) -> Vec<Node> {
        let fits = |state: StateId, node: u32| self.automaton.nodes[node as usize].fits(self.graph.label(state));
        let pairs = (0..self.graph.roots as StateId)
            .flat_map(|state| self.automaton.initial.iter().map(move |&node| (state, node)));
        pairs.filter(|&(state, node)| fits(state, node)).map(|(state, node)| self.node(state, node)).collect()
    }

    /// The node as one of the component, if it is in it.
    pub(crate) fn inside(&self, node: Node, component: &Component) -> Option<Local> {
        let (state, automaton) = self.parts(node);
        let (region, number) = self.homes[automaton].filter(|&(region, _)| region == component.region)?;
        let region = &self.regions[region];
        region.is_in(self.graph, state, number, component).then(|| region.local(state, number))
    }

    /// Hand the edges of a node to `each`, with the nodes that they lead to, until it says that this is the one.
    pub(crate) fn edges(&self, node: Node, mut each: impl FnMut(u32, Node) -> bool) -> Option<(u32, Node)> {
        let (state, automaton) = self.parts(node);
        for (edge, target) in self.graph.edges(state) {
            for &after in &self.automaton.nodes[automaton].next {
                let fits = self.automaton.nodes[after as usize].fits(self.graph.label(target));
                let target = self.node(target, after);
                if fits && each(edge, target) {
                    return Some((edge, target));
                }
            }
        }
        None
    }
}

/// The region of a part of the automaton, with this number, and its components.
fn searched(
    control: &Control,
    graph: &Graph,
    automaton: &Automaton,
    reach: &Reach,
    part: &Part,
    number: usize,
    constant: &Constant,
) -> io::Result<(Region, Vec<Component>)> {
    let mut region = Region::new(graph, automaton, part)?;
    region.constant.clone_from(constant);
    let met = |(place, &node): (u32, &u32)| reach.states(node).map(region.locals(place));
    let from: Vec<_> = (0..).zip(&part.nodes).map(met).collect();
    let components = region.components(control, graph, number, from.into_iter().flatten(), None);
    Ok((region, components))
}

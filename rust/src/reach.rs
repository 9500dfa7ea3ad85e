//! Which nodes of the product of graph and automaton can be reached, by the parts of the automaton.

use crate::automaton::{Automaton, Part};
use crate::bits::Bits;
use crate::control::Control;
use crate::graph::{Graph, StateId};

pub(crate) struct Reach<'a> {
    graph: &'a Graph,
    automaton: &'a Automaton,
    /// Per node of the automaton, the states that were met there, and whether its part is one of those given.
    met: Vec<Bits>,
    matters: Vec<bool>,
}

impl<'a> Reach<'a> {
    /// What is met at the beginning.
    pub fn new(graph: &'a Graph, automaton: &'a Automaton, parts: &[Part]) -> Self {
        let mut matters = vec![false; automaton.nodes.len()];
        parts.iter().flat_map(|part| &part.nodes).for_each(|&node| matters[node as usize] = true);
        let met = matters.iter().map(|&matters| Bits::none(if matters { graph.len() } else { 0 })).collect();
        let mut reach = Reach { graph, automaton, met, matters };
        for &node in &automaton.initial {
            reach.meet(node, 0);
        }
        reach
    }

    /// The states that were met in a node of the automaton, in order.
    pub fn states(&self, node: u32) -> impl Iterator<Item = StateId> + '_ {
        self.met[node as usize].iter()
    }

    /// Meet all that can be reached within a part, and the next of those that follow.
    pub fn pass(&mut self, control: &Control, part: &Part) {
        if let [node] = part.nodes[..]
            && self.automaton.idles(node)
        {
            return self.leave_anywhere(node);
        }
        let (graph, automaton) = (self.graph, self.automaton);
        let nodes = part.nodes.iter();
        let mut queue: Vec<(u32, StateId)> =
            nodes.flat_map(|&node| self.states(node).map(move |state| (node, state)).collect::<Vec<_>>()).collect();
        let mut at = 0;
        while let Some(&(node, state)) = queue.get(at) {
            at += 1;
            for &after in automaton.nodes[node as usize].next.iter().filter(|after| part.nodes.contains(after)) {
                for (_, target) in graph.edges(state) {
                    if self.meet(after, target) {
                        queue.push((after, target));
                    }
                }
            }
            if at.is_multiple_of(1 << 16) && control.stopped() {
                break;
            }
        }
        for &node in &part.nodes {
            let met = std::mem::take(&mut self.met[node as usize]);
            self.leave(part, node, |state| met.contains(state));
        }
    }

    /// Go on from a node of the automaton, with the states that are there, to other parts.
    pub fn leave(&mut self, part: &Part, node: u32, is_here: impl Fn(StateId) -> bool) {
        let graph = self.graph;
        for after in self.outside(part, node) {
            for state in (0..graph.len() as StateId).filter(|&state| is_here(state)) {
                for (_, target) in graph.edges(state) {
                    self.meet(after, target);
                }
            }
        }
    }

    /// The same from where all states are: each but the first one follows another.
    fn leave_anywhere(&mut self, node: u32) {
        let graph = self.graph;
        let part = Part { nodes: vec![node], promising: false };
        for after in self.outside(&part, node) {
            for state in 1..graph.len() as StateId {
                self.meet(after, state);
            }
            if graph.is_terminal(0) || graph.targets.contains(&0) {
                self.meet(after, 0);
            }
        }
    }

    fn outside(&self, part: &Part, node: u32) -> Vec<u32> {
        let next = self.automaton.nodes[node as usize].next.iter().copied();
        next.filter(|&after| self.matters[after as usize] && !part.nodes.contains(&after)).collect()
    }

    /// Whether a state is new in a node of the automaton; it was met there afterwards.
    #[inline]
    fn meet(&mut self, node: u32, state: StateId) -> bool {
        let fits = self.matters[node as usize] && self.automaton.nodes[node as usize].fits(self.graph.label(state));
        fits && self.met[node as usize].insert(state)
    }
}

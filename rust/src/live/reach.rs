//! The reachable nodes of the product of graph and automaton, one part of the automaton after the other.

use crate::live::automaton::{Automaton, Part};
use crate::live::graph::{Graph, StateId};
use crate::search::control::Control;
use crate::util::bits::Bits;

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
            if reach.matters[node as usize] {
                for root in 0..graph.roots as StateId {
                    reach.meet(node, root);
                }
            }
        }
        reach
    }

    /// The states that were met in a node of the automaton, in order.
    pub fn states(&self, node: u32) -> impl Iterator<Item = StateId> + '_ {
        self.met[node as usize].iter()
    }

    /// Whether a part leads to no other.
    pub fn is_last(&self, part: &Part) -> bool {
        part.nodes.iter().all(|&node| self.outside(part, node).is_empty())
    }

    /// Meet all that can be reached within a part, and the next of those that follow.
    pub fn pass(&mut self, control: &Control, part: &Part) {
        if let [node] = part.nodes[..]
            && self.automaton.idles(node)
        {
            return self.leave_anywhere(part, node);
        }
        let (graph, width) = (self.graph, part.nodes.len() as u32);
        // Per node of the part, where it leads to, and where in the part that is.
        let next: Vec<Vec<(u32, Option<u32>)>> = part.nodes.iter().map(|&node| self.next(part, node)).collect();
        // Per node of the part, the states that one comes to from there.
        let mut targets = vec![Bits::none(graph.len()); part.nodes.len()];
        // States times the size of the part, plus the place of the node there.
        let mut queue: Vec<u32> = Vec::new();
        for (place, &node) in (0..).zip(&part.nodes) {
            queue.extend(self.states(node).map(|state| state * width + place));
        }
        let mut at = 0;
        while let Some(&met) = queue.get(at) {
            at += 1;
            let (state, place) = (met / width, (met % width) as usize);
            for (_, target) in graph.edges(state) {
                if !targets[place].insert(target) {
                    continue;
                }
                for &(after, place) in &next[place] {
                    if self.meet(after, target)
                        && let Some(place) = place
                    {
                        queue.push(target * width + place);
                    }
                }
            }
            if at.is_multiple_of(1 << 16) && control.stopped() {
                break;
            }
        }
        part.nodes.iter().for_each(|&node| self.met[node as usize] = Bits::default());
    }

    /// Go on from a node of the automaton, with the states that are there, to other parts.
    pub fn leave(&mut self, part: &Part, node: u32, is_here: impl Fn(StateId) -> bool) {
        let graph = self.graph;
        let next = self.outside(part, node);
        if next.is_empty() {
            return;
        }
        let mut targets = Bits::none(graph.len());
        for state in (0..graph.len() as StateId).filter(|&state| is_here(state)) {
            for (_, target) in graph.edges(state) {
                if targets.insert(target) {
                    for &after in &next {
                        self.meet(after, target);
                    }
                }
            }
        }
    }

    /// The same from where all states are: each but the first one follows another.
    fn leave_anywhere(&mut self, part: &Part, node: u32) {
        let graph = self.graph;
        for after in self.outside(part, node) {
            for state in 1..graph.len() as StateId {
                self.meet(after, state);
            }
            if graph.is_terminal(0) || graph.targets.contains(&0) {
                self.meet(after, 0);
            }
        }
    }

    /// The nodes that matter and that one leads to, with their places in a part.
    fn next(&self, part: &Part, node: u32) -> Vec<(u32, Option<u32>)> {
        let place = |after: u32| (0..).zip(&part.nodes).find_map(|(place, &one)| (one == after).then_some(place));
        let next = self.automaton.nodes[node as usize].next.iter().copied();
        next.filter(|&after| self.matters[after as usize]).map(|after| (after, place(after))).collect()
    }

    fn outside(&self, part: &Part, node: u32) -> Vec<u32> {
        self.next(part, node).into_iter().filter(|(_, place)| place.is_none()).map(|(after, _)| after).collect()
    }

    /// Whether a state is new in a node of the automaton; it was met there afterwards.
    #[inline]
    fn meet(&mut self, node: u32, state: StateId) -> bool {
        let met = &mut self.met[node as usize];
        if met.contains(state) || !self.automaton.nodes[node as usize].fits(self.graph.label(state)) {
            return false;
        }
        met.insert(state)
    }
}

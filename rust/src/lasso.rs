//! A run that ends in a loop: found in a component of the product, and executed on the system.

use crate::graph::{Graph, StateId};
use crate::lens::Lens;
use crate::liveness::{Component, Node, Product, STUTTER};
use crate::model::Result;
use crate::offers::ClassId;
use crate::path::{self, Step};
use std::collections::VecDeque;

/// Each step is the state that it leaves and the number of its edge there.
#[derive(Clone, Debug, Default)]
pub struct Lasso {
    pub stem: Vec<(StateId, u32)>,
    /// Empty if the run ends in a terminal state.
    pub cycle: Vec<(StateId, u32)>,
}

impl Lasso {
    /// The transitions of the stem and of the cycle.
    ///
    /// With symmetry, a state of the graph stands for its orbit, and where the run comes back to a state of the graph it may
    /// have come to another state of the orbit. It goes on, by the same steps but for the names, until it comes to a state
    /// where a round began; what came before the round belongs to the stem.
    pub fn steps(&self, lens: &mut Lens, graph: &Graph) -> Result<(Vec<Step>, Vec<Step>)> {
        let mut run = Run { state: lens.tables.initial()?, steps: Vec::new() };
        run.follow(lens, graph, &self.stem)?;
        let mut rounds: Vec<(Vec<u32>, usize)> = Vec::new();
        let mut begin = run.steps.len();
        while !self.cycle.is_empty() {
            if let Some(earlier) = rounds.iter().find(|(state, _)| *state == run.state) {
                begin = earlier.1;
                break;
            }
            rounds.push((run.state.clone(), run.steps.len()));
            run.follow(lens, graph, &self.cycle)?;
        }
        let cycle = run.steps.split_off(begin);
        Ok((run.steps, cycle))
    }
}

/// A run of the system along a path of the graph.
struct Run {
    state: Vec<u32>,
    steps: Vec<Step>,
}

impl Run {
    fn follow(&mut self, lens: &mut Lens, graph: &Graph, path: &[(StateId, u32)]) -> Result<()> {
        for &(from, edge) in path {
            let way = graph.ways(lens, from)?[edge as usize];
            let expansion = lens.expansion(graph.state(from)[way.process as usize])?;
            let wanted = &expansion.details[way.transition as usize];
            let there = graph.fingerprint(graph.targets(from)[edge as usize]);
            let shape = lens.tables.model.shape();
            let image = |process: usize| shape.group.moves(way.process as usize, process);
            let here = lens.fingerprint(&self.state);
            let fits = |step: &Step| {
                let details = &step.expansion.details[step.transition];
                let alike = details.kind == wanted.kind && details.handler == wanted.handler && image(step.process);
                let exact = graph.state(from) != self.state
                    || (step.process, step.transition) == (way.process as usize, way.transition as usize);
                !step.fails && alike && exact && step.fingerprint == there
            };
            let found = path::successors(lens, &self.state, here)?.into_iter().find(fits);
            let step = found.ok_or("a step of the graph is none of the system: two states share a fingerprint")?;
            self.state.clone_from(&step.state);
            self.steps.push(step);
        }
        Ok(())
    }
}

/// Nodes with the edges that are taken there, and the node that they lead to.
type Way = (Vec<(Node, u32)>, Node);

/// What a run has to come by in a component.
enum Goal {
    /// A node of an acceptance set.
    Set(u32),
    /// A step of the class.
    Happens(ClassId),
    /// A step of the class, or a node where it is not enabled.
    Ceases(ClassId),
}

impl Product<'_, '_> {
    /// A run to a component, and round it: by way of all that makes it fair and accepted, unless it comes by anyway.
    pub(crate) fn run(&mut self, component: &Component, roots: &[Node]) -> Result<Lasso> {
        let to_entry = self.way(roots, None, |product, node| Ok(product.is_in(node, component)))?;
        let (stem, entry) = to_entry.expect("the component was reached");
        let (mut path, mut here): (Vec<(Node, u32)>, Node) = (Vec::new(), entry);
        for set in 0..self.automaton.sets {
            self.go(component, &mut path, &mut here, &Goal::Set(set))?;
        }
        let cycle = loop {
            // Before it goes home, which may be far: it goes on as long as it has neglected something all the way.
            let so_far: Vec<(Node, u32)> = path.iter().copied().chain([(here, STUTTER)]).collect();
            if !path.is_empty()
                && let Some(goal @ Goal::Ceases(_)) = self.neglected(&so_far)?
            {
                self.go(component, &mut path, &mut here, &goal)?;
                continue;
            }
            let home = self.way(&[here], Some(component), |_, node| Ok(node == entry))?;
            let mut cycle = path.clone();
            cycle.extend(home.expect("a component is connected").0);
            if cycle.is_empty() {
                let mut edges = self.edges(entry).filter(|&(_, target)| self.is_in(target, component));
                let (edge, target) = edges.next().expect("the component is not trivial");
                drop(edges);
                path.push((entry, edge));
                here = target;
                continue;
            }
            match self.neglected(&cycle)? {
                Some(goal) => self.go(component, &mut path, &mut here, &goal)?,
                None => break cycle,
            }
        };
        let plain = |steps: Vec<(Node, u32)>| -> Vec<(StateId, u32)> {
            let real = steps.into_iter().filter(|&(_, edge)| edge != STUTTER);
            real.map(|(node, edge)| (self.parts(node).0, edge)).collect()
        };
        Ok(Lasso { stem: plain(stem), cycle: plain(cycle) })
    }

    /// What a cycle has to come by in order to be fair, if it is not.
    fn neglected(&mut self, cycle: &[(Node, u32)]) -> Result<Option<Goal>> {
        if self.forgets_weak || self.forgets_strong {
            return Ok(None);
        }
        let mut offered = Vec::new();
        // Per class: in how many nodes it is enabled, and whether it happens.
        let mut records: Vec<(usize, bool)> = Vec::new();
        for &(node, edge) in cycle {
            self.offers.list(self.lens, self.graph, self.parts(node).0, &mut offered)?;
            records.resize(self.offers.len(), (0, false));
            for &(class, step) in &offered {
                records[class as usize].1 |= step == edge;
            }
            offered.sort_unstable();
            offered.dedup_by_key(|(class, _)| *class);
            offered.iter().for_each(|&(class, _)| records[class as usize].0 += 1);
        }
        Ok(records.iter().zip(0..).find_map(|(&(enabled, happens), class)| match self.offers.is_strong(class) {
            _ if happens || enabled == 0 => None,
            true => Some(Goal::Happens(class)),
            false => (enabled == cycle.len()).then_some(Goal::Ceases(class)),
        }))
    }

    /// Go on to where a goal is met.
    fn go(&mut self, component: &Component, path: &mut Vec<(Node, u32)>, here: &mut Node, goal: &Goal) -> Result<()> {
        if let Goal::Set(set) = goal {
            let met = |&(node, _): &(Node, u32)| self.accepts(node, *set);
            if path.iter().any(met) {
                return Ok(());
            }
        }
        let there = self.way(&[*here], Some(component), |product, node| Ok(product.meets(component, goal, node)?.0))?;
        let (steps, node) = there.expect("a component is connected");
        path.extend(steps);
        *here = node;
        if let (true, Some(edge)) = self.meets(component, goal, node)? {
            let mut after = self.edges(node).filter(|&(e, target)| e == edge && self.is_in(target, component));
            let target = after.next().expect("it leads inside").1;
            drop(after);
            path.push((node, edge));
            *here = target;
        }
        Ok(())
    }

    fn accepts(&self, node: Node, set: u32) -> bool {
        self.automaton.nodes[self.parts(node).1].accepting >> set & 1 == 1
    }

    /// Whether a goal is met in a node, and if by a step, by which edge.
    fn meets(&mut self, component: &Component, goal: &Goal, node: Node) -> Result<(bool, Option<u32>)> {
        let (class, may_cease) = match goal {
            Goal::Set(set) => return Ok((self.accepts(node, *set), None)),
            Goal::Happens(class) => (*class, false),
            Goal::Ceases(class) => (*class, true),
        };
        let mut offered = Vec::new();
        self.offers.list(self.lens, self.graph, self.parts(node).0, &mut offered)?;
        offered.retain(|(one, _)| *one == class);
        if offered.is_empty() {
            return Ok((may_cease, None));
        }
        let edge = offered.iter().map(|&(_, edge)| edge).find(|&edge| self.leads_inside(node, edge, component));
        Ok((edge.is_some(), edge))
    }

    /// A shortest way from some nodes to a goal, within a component.
    fn way(
        &mut self,
        from: &[Node],
        within: Option<&Component>,
        mut goal: impl FnMut(&mut Self, Node) -> Result<bool>,
    ) -> Result<Option<Way>> {
        // How a node was met: one more than the parent, and the edge. Memory that is not written to is not taken.
        const UNMET: u64 = 0;
        const START: u64 = u64::MAX;
        let mut parents = vec![UNMET; self.size()];
        from.iter().for_each(|&node| parents[node as usize] = START);
        let mut queue: VecDeque<Node> = from.iter().copied().collect();
        while let Some(node) = queue.pop_front() {
            if goal(self, node)? {
                let mut steps = Vec::new();
                let mut at = node;
                while parents[at as usize] != START {
                    let met = parents[at as usize];
                    at = (met >> 32) as Node - 1;
                    steps.push((at, met as u32));
                }
                steps.reverse();
                return Ok(Some((steps, node)));
            }
            for (edge, target) in self.edges(node) {
                if parents[target as usize] == UNMET && within.is_none_or(|component| self.is_in(target, component)) {
                    parents[target as usize] = u64::from(node + 1) << 32 | u64::from(edge);
                    queue.push_back(target);
                }
            }
        }
        Ok(None)
    }
}

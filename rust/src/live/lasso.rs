//! Finds a run that ends in a loop, in a component of the product, and executes it on the system.

use crate::live::fair_classes::{ClassId, SILENT};
use crate::live::fairness::Demand;
use crate::live::graph::{Graph, STUTTER, StateId};
use crate::live::product::{Node, Product};
use crate::live::scc::{Component, Local};
use crate::search::path::{self, Step};
use crate::system::model::Result;
use crate::system::successors::View;
use crate::util::bits::Bits;

/// Each step is the state that it leaves and the number of its edge there.
#[derive(Clone, Debug, Default)]
pub struct Lasso {
    /// The initial state that it begins with.
    pub start: StateId,
    pub stem: Vec<(StateId, u32)>,
    /// Empty if the run ends in a terminal state.
    pub cycle: Vec<(StateId, u32)>,
}

impl Lasso {
    /// The initial state, and the transitions of the stem and of the cycle.
    ///
    /// With symmetry, a state of the graph stands for its orbit, and where the run comes back to a state of the graph it may
    /// have come to another state of the orbit. It goes on, by the same steps but for the names, until it comes to a state
    /// where a round began; what came before the round belongs to the stem.
    pub fn steps(&self, view: &mut View, graph: &Graph) -> Result<(Vec<u32>, Vec<Step>, Vec<Step>)> {
        let start = graph.state(self.start);
        let mut run = Run { state: start.clone(), steps: Vec::new() };
        run.follow(view, graph, &self.stem)?;
        let mut rounds: Vec<(Vec<u32>, usize)> = Vec::new();
        let mut begin = run.steps.len();
        while !self.cycle.is_empty() {
            if let Some(earlier) = rounds.iter().find(|(state, _)| *state == run.state) {
                begin = earlier.1;
                break;
            }
            rounds.push((run.state.clone(), run.steps.len()));
            run.follow(view, graph, &self.cycle)?;
        }
        let cycle = run.steps.split_off(begin);
        Ok((start, run.steps, cycle))
    }
}

/// A run of the system along a path of the graph.
struct Run {
    state: Vec<u32>,
    steps: Vec<Step>,
}

impl Run {
    fn follow(&mut self, view: &mut View, graph: &Graph, path: &[(StateId, u32)]) -> Result<()> {
        for &(from, edge) in path {
            let via = graph.transition_refs(view, from)?[edge as usize];
            let wanted = view.tables.details(&view.transition(&graph.state(from), via)?);
            let tables = view.tables;
            let there = view.fingerprint(&graph.state(graph.targets(from)[edge as usize]));
            let shape = view.tables.model.shape();
            let image = |process: usize| shape.group.moves(via.process as usize, process);
            let here = view.fingerprint(&self.state);
            let fits = |step: &Step| {
                let details = tables.details(&step.record);
                let alike = details.kind == wanted.kind && details.handler == wanted.handler && image(step.process);
                let exact = graph.state(from) != self.state
                    || (step.process, step.transition) == (via.process as usize, via.index as usize);
                step.failure.is_none() && alike && exact && step.fingerprint == there
            };
            let found = path::successors(view, &self.state, here)?.into_iter().find(fits);
            let step =
                found.ok_or("a step of the graph is not a step of the system: two states share a fingerprint")?;
            self.state.clone_from(&step.state);
            self.steps.push(step);
        }
        Ok(())
    }
}

/// Nodes with the edges that are taken there, and the node that they lead to.
type Path = (Vec<(u32, u32)>, u32);

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
    pub(crate) fn run(&mut self, component: &Component) -> Result<Lasso> {
        let edges = |product: &Self, node: Node, each: &mut Each| product.edges(node, each);
        let enters = |product: &mut Self, node: Node| Ok(product.inside(node, component).is_some());
        let (stem, entry) =
            self.way(Bits::all(self.size()), &self.roots(), edges, enters)?.expect("the component was reached");
        let start = self.parts(stem.first().map_or(entry, |&(node, _)| node)).0;
        let stem = stem.into_iter().map(|(node, edge)| (self.parts(node).0, edge)).collect();
        let entry = self.inside(entry, component).expect("it is entered");
        let cycle = self.round(component, entry)?;
        let region = &self.regions[component.region];
        let cycle = cycle.into_iter().map(|(node, edge)| (region.split(node).0, edge)).collect();
        let plain = |steps: Vec<(StateId, u32)>| steps.into_iter().filter(|&(_, edge)| edge != STUTTER).collect();
        Ok(Lasso { start, stem: plain(stem), cycle: plain(cycle) })
    }

    /// The way round a component, from a node.
    fn round(&mut self, component: &Component, entry: Local) -> Result<Vec<(Local, u32)>> {
        let mut nodes = Bits::none(self.regions[component.region].size());
        for &node in &component.nodes {
            nodes.insert(node);
        }
        let mut tour = Tour { component, nodes, path: Vec::new(), here: entry };
        for set in 0..self.automaton.sets {
            self.go(&mut tour, &Goal::Set(set))?;
        }
        loop {
            // Before it goes home, which may be far: it goes on as long as it has neglected something all the way.
            let so_far: Vec<(Local, u32)> = tour.path.iter().copied().chain([(tour.here, STUTTER)]).collect();
            if !tour.path.is_empty()
                && let Some(goal @ Goal::Ceases(_)) = self.neglected(component, &so_far)?
            {
                self.go(&mut tour, &goal)?;
                continue;
            }
            let mut cycle = tour.path.clone();
            cycle.extend(self.home(&tour, entry)?);
            if cycle.is_empty() {
                let (edge, target) = self.edges_within(component, entry, &mut |_, _| true).expect("it is not trivial");
                tour.path.push((entry, edge));
                tour.here = target;
                continue;
            }
            match self.neglected(component, &cycle)? {
                Some(goal) => self.go(&mut tour, &goal)?,
                None => return Ok(cycle),
            }
        }
    }

    /// What a cycle has to come by in order to be fair, if it is not.
    fn neglected(&mut self, component: &Component, cycle: &[(Local, u32)]) -> Result<Option<Goal>> {
        if self.without_weak || self.without_strong {
            return Ok(None);
        }
        let mut offered = Vec::new();
        // Per class: in how many nodes it is enabled, and whether it happens.
        let mut records: Vec<(usize, bool)> = Vec::new();
        for &(node, edge) in cycle {
            let state = self.regions[component.region].split(node).0;
            self.fair_classes.list(self.view, self.graph, state, &mut offered)?;
            records.resize(self.fair_classes.len(), (0, false));
            for &(class, step) in &offered {
                records[class as usize].1 |= step == edge || step == SILENT;
            }
            offered.sort_unstable();
            offered.dedup_by_key(|(class, _)| *class);
            offered.iter().for_each(|&(class, _)| records[class as usize].0 += 1);
        }
        for (&(enabled, happens), class) in records.iter().zip(0..) {
            match self.fair_classes.demand(class) {
                Demand::Strong if enabled > 0 && !happens => return Ok(Some(Goal::Happens(class))),
                Demand::Weak if enabled == cycle.len() && !happens => return Ok(Some(Goal::Ceases(class))),
                Demand::FairLoss if happens => {
                    let taken = self.fair_classes.taken(class);
                    let missed = |&taken: &ClassId| !records.get(taken as usize).is_some_and(|(_, happens)| *happens);
                    if let Some(taken) = taken.filter(missed) {
                        return Ok(Some(Goal::Happens(taken)));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Go on to where a goal is met.
    fn go(&mut self, tour: &mut Tour, goal: &Goal) -> Result<()> {
        let component = tour.component;
        if let Goal::Set(set) = goal
            && tour.path.iter().any(|&(node, _)| self.accepts(component, node, *set))
        {
            return Ok(());
        }
        let met = |product: &mut Self, node| Ok(product.meets(component, goal, node)?.0);
        let (steps, node) = self.way_within(tour, tour.here, met)?;
        tour.path.extend(steps);
        tour.here = node;
        if let (true, Some(edge)) = self.meets(component, goal, node)? {
            let step = self.edges_within(component, node, &mut |other, _| other == edge);
            tour.path.push((node, edge));
            tour.here = step.expect("it leads inside").1;
        }
        Ok(())
    }

    /// The way home from where a tour is: a shortest one unless it is far, and else from each node to the next one that is
    /// more like home.
    fn home(&mut self, tour: &Tour, entry: Local) -> Result<Vec<(Local, u32)>> {
        let region = tour.component.region;
        let likeness = |product: &Self, node: Local| {
            let [here, there] = [node, entry].map(|node| product.graph.state(product.regions[region].split(node).0));
            here.iter().zip(&there).filter(|(here, there)| here == there).count()
        };
        let (mut path, mut here, mut looked) = (Vec::new(), tour.here, 0);
        while here != entry {
            let so_far = likeness(self, here);
            let (steps, node) = self.way_within(tour, here, |product, node| {
                looked += 1;
                Ok(node == entry || looked > product.far && likeness(product, node) > so_far)
            })?;
            path.extend(steps);
            here = node;
        }
        Ok(path)
    }

    fn accepts(&self, component: &Component, node: Local, set: u32) -> bool {
        self.regions[component.region].accepting(self.graph, node) >> set & 1 == 1
    }

    /// Whether a goal is met in a node, and if by a step, by which edge.
    fn meets(&mut self, component: &Component, goal: &Goal, node: Local) -> Result<(bool, Option<u32>)> {
        let (class, may_cease) = match goal {
            Goal::Set(set) => return Ok((self.accepts(component, node, *set), None)),
            Goal::Happens(class) => (*class, false),
            Goal::Ceases(class) => (*class, true),
        };
        let mut offered = Vec::new();
        let state = self.regions[component.region].split(node).0;
        self.fair_classes.list(self.view, self.graph, state, &mut offered)?;
        offered.retain(|(one, _)| *one == class);
        if offered.is_empty() {
            return Ok((may_cease, None));
        }
        if offered.iter().any(|&(_, edge)| edge == SILENT) {
            return Ok((true, None));
        }
        let is_step = &mut |edge, _| offered.iter().any(|&(_, step)| step == edge);
        let edge = self.edges_within(component, node, is_step).map(|(edge, _)| edge);
        Ok((edge.is_some(), edge))
    }

    fn edges_within(&self, component: &Component, node: Local, each: &mut Each) -> Option<(u32, Local)> {
        self.regions[component.region].edges_within(self.graph, component, node, each)
    }

    /// A shortest way from a node to a goal, within the component of a tour.
    fn way_within(
        &mut self,
        tour: &Tour,
        from: Local,
        goal: impl FnMut(&mut Self, Local) -> Result<bool>,
    ) -> Result<Path> {
        let region = tour.component.region;
        let edges =
            |product: &Self, node: Local, each: &mut Each| product.regions[region].edges(product.graph, node, each);
        Ok(self.way(tour.nodes.clone(), &[from], edges, goal)?.expect("a component is connected"))
    }

    /// A shortest way from some nodes to a goal, by way of nodes that are `left`.
    fn way(
        &mut self,
        mut left: Bits,
        from: &[u32],
        edges: impl Fn(&Self, u32, &mut Each) -> Option<(u32, u32)>,
        mut goal: impl FnMut(&mut Self, u32) -> Result<bool>,
    ) -> Result<Option<Path>> {
        // The nodes that were met, and the places here of those that they were met from.
        let mut met: Vec<u32> = from.iter().copied().filter(|&node| left.remove(node)).collect();
        let roots = met.len();
        let mut parents: Vec<u32> = vec![0; roots];
        let mut at = 0;
        while let Some(&node) = met.get(at) {
            if goal(self, node)? {
                let mut steps = Vec::new();
                while at >= roots {
                    let (target, place) = (met[at], parents[at]);
                    at = place as usize;
                    let (edge, _) = edges(self, met[at], &mut |_, other| other == target).expect("it leads here");
                    steps.push((met[at], edge));
                }
                steps.reverse();
                return Ok(Some((steps, node)));
            }
            edges(self, node, &mut |_, target| {
                if left.remove(target) {
                    met.push(target);
                    parents.push(at as u32);
                }
                false
            });
            at += 1;
        }
        Ok(None)
    }
}

/// A way round a component, as far as it is known.
struct Tour<'a> {
    component: &'a Component,
    nodes: Bits,
    path: Vec<(Local, u32)>,
    here: Local,
}

/// Told of an edge and where it leads, whether this is the one.
type Each<'a> = dyn FnMut(u32, u32) -> bool + 'a;

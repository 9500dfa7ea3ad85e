//! The strongly connected components of a part of the product of graph and automaton: Tarjan's algorithm in Pearce's
//! form, with one number per node, and without recursion.
//!
//! The latency of memory limits the speed. So when the search enters a node, it prefetches the marks of all successors.
//! When it leaves a node, it prefetches the data of the nodes below it on the stack.

use crate::live::automaton::{Automaton, AutomatonNode, Part};
use crate::live::fair_classes::{LEFT_OUT, SILENT};
use crate::live::graph::{Graph, StateId};
use crate::live::refinement::Constant;
use crate::search::control::Control;
use crate::util::mapped_array::{MappedArray, prefetch};
use rustc_hash::FxHashSet;
use std::io;

/// A node of a region: state times the width of the region, plus the place of the automaton node there.
pub(crate) type Local = u32;

/// Marks of nodes: not met yet; while their component is being looked for, the order in which they were met, from 1; then
/// the number of the component, from the top down, or that it is trivial. Those whose predicates do not fit are no nodes.
pub(crate) type Mark = u32;
const UNMET: Mark = 0;
const NONE: Mark = u32::MAX;
const TRIVIAL: Mark = NONE - 1;

/// How far below the node that is left those are of which something is fetched: where their edges are, their edges, and the
/// marks of the nodes that these lead to.
const OFFSETS: usize = 8;
const TARGETS: usize = 6;
const MARKS: usize = 4;

/// The nodes of the product in a part of the automaton.
pub(crate) struct Region {
    nodes: Vec<AutomatonNode>,
    /// Per place, the places that it leads to within the part.
    next: Vec<Vec<u32>>,
    /// If no state fits two nodes of the part, and each of them leads to all, then a state has one place, and it need not
    /// be said which.
    plain: bool,
    width: u32,
    all: u64,
    marks: MappedArray<Mark>,
    /// The number of the next component.
    component: Mark,
    /// Edges of nodes that no run may take again and again.
    pub(super) banned: FxHashSet<(Local, u32)>,
    /// Per state, a number that no such edge may change.
    pub(super) constant: Constant,
}

/// A component that has an edge, and a node of each acceptance set: its number, and its nodes in order.
pub(crate) struct Component {
    pub region: usize,
    pub number: Mark,
    pub nodes: Vec<Local>,
}

impl Region {
    pub fn new(graph: &Graph, automaton: &Automaton, part: &Part) -> io::Result<Region> {
        let nodes: Vec<_> = part.nodes.iter().map(|&node| automaton.nodes[node as usize].clone()).collect();
        let place = |node: &u32| part.nodes.iter().position(|one| one == node).map(|place| place as u32);
        let mut next: Vec<Vec<u32>> = nodes.iter().map(|node| node.next.iter().filter_map(place).collect()).collect();
        let apart = |a: usize, b: usize| a == b || nodes[a].excludes(&nodes[b]);
        let plain = next.iter().all(|next| next.len() == nodes.len())
            && (0..nodes.len()).all(|a| (0..nodes.len()).all(|b| apart(a, b)));
        if plain {
            next = vec![vec![0]];
        }
        let width = next.len();
        let mut marks = MappedArray::<Mark>::zeros(graph.len() * width)?;
        for (state, marks) in (0..).zip(marks.chunks_exact_mut(width)) {
            let label = graph.label(state);
            if plain {
                marks[0] = if nodes.iter().any(|node| node.fits(label)) { UNMET } else { NONE };
            } else {
                let fits = nodes.iter().map(|node| node.fits(label));
                marks.iter_mut().zip(fits).for_each(|(mark, fits)| *mark = if fits { UNMET } else { NONE });
            }
        }
        let (width, all) = (width as u32, automaton.all());
        Ok(Region {
            nodes,
            next,
            plain,
            width,
            all,
            marks,
            component: TRIVIAL - 1,
            banned: FxHashSet::default(),
            constant: None,
        })
    }

    /// The node of a state and a node of the part that it fits.
    #[inline]
    pub fn local(&self, state: StateId, number: u32) -> Local {
        self.locals(number)(state)
    }

    /// The same for all states.
    #[inline]
    pub fn locals(&self, number: u32) -> impl Fn(StateId) -> Local + use<> {
        let (times, plus) = if self.plain { (1, 0) } else { (self.width, number) };
        move |state| state * times + plus
    }

    /// The state of a node, and its place.
    #[inline]
    pub fn split(&self, node: Local) -> (StateId, usize) {
        match self.width {
            1 => (node, 0),
            width => (node / width, (node % width) as usize),
        }
    }

    /// The mark of a state and a node of the part, whether it fits or not.
    #[inline]
    fn mark(&self, graph: &Graph, state: StateId, number: u32) -> Mark {
        if self.plain && !self.nodes[number as usize].fits(graph.label(state)) {
            return NONE;
        }
        self.marks[self.local(state, number) as usize]
    }

    /// Whether a state and a node of the part were met by a search.
    #[inline]
    pub fn is_met(&self, graph: &Graph, state: StateId, number: u32) -> bool {
        !matches!(self.mark(graph, state, number), UNMET | NONE)
    }

    /// Whether a state and a node of the part are in a component.
    pub fn is_in(&self, graph: &Graph, state: StateId, number: u32, component: &Component) -> bool {
        self.mark(graph, state, number) == component.number
    }

    /// How many nodes there may be.
    pub fn size(&self) -> usize {
        self.marks.len()
    }

    #[inline]
    fn is_banned(&self, node: Local, edge: u32, target: StateId) -> bool {
        let changes = |numbers: &[u32]| numbers[self.split(node).0 as usize] != numbers[target as usize];
        (!self.banned.is_empty() && self.banned.contains(&(node, edge)))
            || self.constant.as_deref().is_some_and(changes)
    }

    /// Whether a node leads to one of its component by an edge of its state, or by a step that changes nothing.
    #[inline]
    pub fn stays(&self, graph: &Graph, component: &Component, node: Local, edge: u32) -> bool {
        if edge == SILENT || edge == LEFT_OUT {
            return edge == SILENT;
        }
        let (state, place) = self.split(node);
        let target = graph.targets(state)[edge as usize];
        if self.is_banned(node, edge, target) {
            return false;
        }
        let target = target * self.width;
        self.next[place].iter().any(|&after| self.marks[(target + after) as usize] == component.number)
    }

    /// Hand the edges of a node to `each`, with the nodes that they lead to, until it says that this is the one. What does not
    /// fit is among them.
    #[inline]
    pub fn edges(&self, graph: &Graph, node: Local, mut each: impl FnMut(u32, Local) -> bool) -> Option<(u32, Local)> {
        let (state, place) = self.split(node);
        for (edge, target) in graph.edges(state) {
            if self.is_banned(node, edge, target) {
                continue;
            }
            for &after in &self.next[place] {
                let target = target * self.width + after;
                if each(edge, target) {
                    return Some((edge, target));
                }
            }
        }
        None
    }

    /// The edges within a component.
    pub fn edges_within(
        &self,
        graph: &Graph,
        component: &Component,
        node: Local,
        mut each: impl FnMut(u32, Local) -> bool,
    ) -> Option<(u32, Local)> {
        self.edges(graph, node, |edge, target| self.marks[target as usize] == component.number && each(edge, target))
    }

    /// Whether an edge of a node leads back to it.
    fn returns(&self, graph: &Graph, node: Local) -> bool {
        let (state, place) = self.split(node);
        self.next[place].contains(&(place as u32)) && graph.edges(state).any(|(_, target)| target == state)
    }

    /// The acceptance sets that a node is in.
    #[inline]
    pub fn accepting(&self, graph: &Graph, node: Local) -> u64 {
        let (state, place) = self.split(node);
        match &self.nodes[..] {
            [node] => node.accepting,
            nodes if !self.plain => nodes[place].accepting,
            nodes => {
                let label = graph.label(state);
                nodes.iter().find(|node| node.fits(label)).map_or(0, |node| node.accepting)
            }
        }
    }

    /// Have the marks of some states at hand soon.
    #[inline]
    fn prefetch(&self, states: &[StateId]) {
        states.iter().rev().for_each(|&state| prefetch(&self.marks, (state * self.width) as usize));
    }

    /// Look at some nodes again.
    pub fn forget(&mut self, nodes: &[Local]) {
        nodes.iter().for_each(|&node| self.marks[node as usize] = UNMET);
    }

    /// The components, of what is unmet and can be reached from some nodes, that are not trivial and are accepted. If they
    /// were met before, `within` are the nodes that may be met.
    pub fn components(
        &mut self,
        control: &Control,
        graph: &Graph,
        region: usize,
        from: impl Iterator<Item = Local>,
        within: Option<&[Local]>,
    ) -> Vec<Component> {
        let first = self.component;
        let mut search = Search { frames: Vec::new(), open: Vec::new(), count: 1, sizes: Vec::new() };
        search.run(self, control, graph, from);
        let new = |(at, size)| (0, Component { region, number: first - at, nodes: Vec::with_capacity(size) });
        let mut found: Vec<(u64, Component)> = (0..).zip(search.sizes).map(new).collect();
        let mut sort = |node: Local, mark: Mark| {
            if mark <= first && mark > self.component {
                let (accepted, component) = &mut found[(first - mark) as usize];
                component.nodes.push(node);
                *accepted |= self.accepting(graph, node);
            }
        };
        match within {
            Some(within) => within.iter().for_each(|&node| sort(node, self.marks[node as usize])),
            None => (0..).zip(self.marks.iter()).for_each(|(node, &mark)| sort(node, mark)),
        }
        found.into_iter().filter(|(sets, _)| sets & self.all == self.all).map(|(_, component)| component).collect()
    }
}

struct Search {
    frames: Vec<Frame>,
    /// Nodes whose component is not complete, but for those that it may be named after.
    open: Vec<Local>,
    count: Mark,
    /// Of the components that are not trivial.
    sizes: Vec<usize>,
}

/// A node that was entered and not left, how many of its edges were not looked at, and the least mark of an open node that it
/// leads to as far as is known: its own, if no node met earlier can be reached.
struct Frame {
    node: Local,
    left: u32,
    least: Mark,
}

impl Search {
    /// Mark all that can be reached with its component.
    fn run(&mut self, region: &mut Region, control: &Control, graph: &Graph, from: impl Iterator<Item = Local>) {
        let mut visits = 0u32;
        for root in from {
            if region.marks[root as usize] == UNMET {
                self.enter(region, graph, root);
            }
            while let Some(frame) = self.frames.last_mut() {
                match frame.advance(region, graph) {
                    Some(node) => self.enter(region, graph, node),
                    None => self.leave(region, graph),
                }
                visits = visits.wrapping_add(1);
                if visits.is_multiple_of(1 << 16) && control.stopped() {
                    return;
                }
            }
        }
    }

    #[inline]
    fn enter(&mut self, region: &mut Region, graph: &Graph, node: Local) {
        let (state, place) = region.split(node);
        let targets = graph.targets(state);
        // The last one is the first to be entered.
        targets.iter().rev().take(2).for_each(|&target| graph.prefetch(target));
        region.prefetch(targets);
        region.marks[node as usize] = self.count;
        let edges = targets.len() + usize::from(graph.is_terminal(state));
        self.frames.push(Frame { node, left: (edges * region.next[place].len()) as u32, least: self.count });
        self.count += 1;
    }

    /// Done with a node, and with its component if that is complete now.
    #[inline]
    fn leave(&mut self, region: &mut Region, graph: &Graph) {
        self.fetch(region, graph);
        let Frame { node, least, .. } = self.frames.pop().expect("it is being left");
        if least < region.marks[node as usize] {
            region.marks[node as usize] = least;
            self.open.push(node);
            return;
        }
        // What was entered after it, and is in no component yet.
        let others = (self.count - least - 1) as usize;
        self.count = least;
        let mut number = TRIVIAL;
        if others > 0 || region.returns(graph, node) {
            number = region.component;
            region.component -= 1;
            self.sizes.push(others + 1);
        }
        region.marks[node as usize] = number;
        let rest = self.open.len() - others;
        self.open.drain(rest..).for_each(|node| region.marks[node as usize] = number);
    }
    /// Have at hand soon what is needed of the nodes below.
    #[inline]
    fn fetch(&self, region: &Region, graph: &Graph) {
        let below = |by: usize| self.frames.len().checked_sub(by).map(|at| &self.frames[at]);
        if let Some(frame) = below(OFFSETS) {
            graph.prefetch(region.split(frame.node).0);
        }
        if let Some(frame) = below(TARGETS) {
            prefetch(graph.targets(region.split(frame.node).0), 0);
            prefetch(&region.marks, frame.node as usize);
        }
        if let Some(frame) = below(MARKS) {
            region.prefetch(graph.targets(region.split(frame.node).0));
        }
    }
}

impl Frame {
    /// The next node that was not met and that an edge leads to; the last edge comes first. (States met together have
    /// numbers that are close to each other, and this is where the last edges of states lead.)
    #[inline]
    fn advance(&mut self, region: &Region, graph: &Graph) -> Option<Local> {
        let (state, place) = region.split(self.node);
        let (next, targets) = (&region.next[place][..], graph.targets(state));
        while let Some(at) = self.left.checked_sub(1) {
            let (edge, after) = match next {
                &[after] => (at as usize, after),
                _ => (at as usize / next.len(), next[at as usize % next.len()]),
            };
            // A terminal state stays, after all edges.
            let target = targets.get(edge).copied().unwrap_or(state);
            if region.is_banned(self.node, edge as u32, target) {
                self.left = at;
                continue;
            }
            let target = target * region.width + after;
            match region.marks[target as usize] {
                // It is looked at again afterwards.
                UNMET => return Some(target),
                mark => self.least = self.least.min(mark),
            }
            self.left = at;
        }
        None
    }
}

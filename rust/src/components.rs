//! The strongly connected components of a part of the product of graph and automaton: Tarjan's algorithm in Pearce's form,
//! with one number per node, and without recursion.

use crate::automaton::{Automaton, Part};
use crate::control::Control;
use crate::graph::{Graph, StateId};
use crate::large::{Large, prefetch};
use std::io;

/// A node of a region: state times the number of automaton nodes of the part, plus the place of the automaton node there.
pub(crate) type Local = u32;

/// Marks of nodes: not met yet; while their component is being looked for, the order in which they were met, from 1; then
/// the number of the component, from the top down, or that it is none that counts. Those whose predicates do not fit are no
/// nodes.
pub(crate) type Mark = u32;
const UNMET: Mark = 0;
const NONE: Mark = u32::MAX;
const CLOSED: Mark = NONE - 1;

/// The nodes of the product in a part of the automaton.
pub(crate) struct Region {
    /// The nodes of the automaton, and per node, the places that it leads to within the part, and its acceptance sets.
    pub nodes: Vec<u32>,
    next: Vec<Vec<u32>>,
    accepting: Vec<u64>,
    /// All acceptance sets.
    all: u64,
    marks: Large<Mark>,
    /// The number of the next component.
    component: Mark,
}

/// A component that has an edge, and a node of each acceptance set: its number, and its nodes in order.
pub(crate) struct Component {
    pub region: usize,
    pub number: Mark,
    pub nodes: Vec<Local>,
}

impl Region {
    pub fn new(graph: &Graph, automaton: &Automaton, part: &Part) -> io::Result<Region> {
        let place = |node: &u32| part.nodes.iter().position(|one| one == node).map(|place| place as u32);
        let nodes: Vec<_> = part.nodes.iter().map(|&node| &automaton.nodes[node as usize]).collect();
        let mut marks = Large::<Mark>::zeros(graph.len() * nodes.len())?;
        for (state, marks) in (0..).zip(marks.chunks_exact_mut(nodes.len())) {
            let label = graph.label(state);
            for (mark, node) in marks.iter_mut().zip(&nodes) {
                *mark = if node.fits(label) { UNMET } else { NONE };
            }
        }
        Ok(Region {
            next: nodes.iter().map(|node| node.next.iter().filter_map(place).collect()).collect(),
            accepting: nodes.iter().map(|node| node.accepting).collect(),
            nodes: part.nodes.clone(),
            all: automaton.all(),
            marks,
            component: CLOSED - 1,
        })
    }

    #[inline]
    pub fn width(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The state of a node, and the place of its automaton node.
    #[inline]
    pub fn split(&self, node: Local) -> (StateId, usize) {
        match self.width() {
            1 => (node, 0),
            width => (node / width, (node % width) as usize),
        }
    }

    #[inline]
    pub fn mark(&self, state: StateId, place: u32) -> Mark {
        self.marks[(state * self.width() + place) as usize]
    }

    /// Whether a node was met by a search.
    #[inline]
    pub fn is_met(&self, node: Local) -> bool {
        !matches!(self.marks[node as usize], UNMET | NONE)
    }

    /// Whether a node leads to one of the component by an edge to a state.
    #[inline]
    pub fn leads_to(&self, place: usize, target: StateId, number: Mark) -> bool {
        self.next[place].iter().any(|&after| self.mark(target, after) == number)
    }

    /// Whether an edge of a node leads back to it.
    fn returns(&self, graph: &Graph, node: Local) -> bool {
        let (state, place) = self.split(node);
        self.next[place].contains(&(place as u32)) && graph.after(state).any(|target| target == state)
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
        let sizes = self.search(control, graph, from);
        let mut found: Vec<Component> = (0..)
            .zip(sizes)
            .map(|(at, size)| Component { region, number: first - at, nodes: Vec::with_capacity(size) })
            .collect();
        let mut sort = |node: Local, mark: Mark| {
            if mark <= first && mark > self.component {
                found[(first - mark) as usize].nodes.push(node);
            }
        };
        match within {
            Some(within) => within.iter().for_each(|&node| sort(node, self.marks[node as usize])),
            None => (0..).zip(self.marks.iter()).for_each(|(node, &mark)| sort(node, mark)),
        }
        found
    }

    /// Mark all that can be reached with its component. Returns the sizes of those that count, by number.
    fn search(&mut self, control: &Control, graph: &Graph, from: impl Iterator<Item = Local>) -> Vec<usize> {
        let mut search = Search { frames: Vec::new(), open: Vec::new(), count: 1, sizes: Vec::new() };
        let mut visits = 0u32;
        for root in from {
            if self.marks[root as usize] != UNMET {
                continue;
            }
            search.enter(self, graph, root);
            while !search.frames.is_empty() {
                if let Some(fresh) = search.follow(self, graph) {
                    search.enter(self, graph, fresh);
                    visits = visits.wrapping_add(1);
                    if visits.is_multiple_of(1 << 16) && control.stopped() {
                        return search.sizes;
                    }
                } else {
                    search.leave(self, graph);
                }
            }
        }
        search.sizes
    }
}

struct Search {
    frames: Vec<Frame>,
    /// Nodes whose component is not complete, but for those that it may be named after.
    open: Vec<Local>,
    count: Mark,
    sizes: Vec<usize>,
}

/// A node whose edges are being followed.
struct Frame {
    node: Local,
    /// The next edge of the state, and of the automaton's node.
    edge: u32,
    choice: u16,
    /// No node met earlier can be reached so far.
    is_root: bool,
}

impl Search {
    #[inline]
    fn enter(&mut self, region: &mut Region, graph: &Graph, node: Local) {
        let state = region.split(node).0;
        region.marks[node as usize] = self.count;
        self.count += 1;
        let width = region.nodes.len();
        for &target in graph.targets(state) {
            prefetch(&region.marks, target as usize * width);
            graph.prefetch(target);
        }
        self.frames.push(Frame { node, edge: 0, choice: 0, is_root: true });
    }

    /// Follow edges of the last node until one leads to a node that was not met.
    #[inline]
    fn follow(&mut self, region: &mut Region, graph: &Graph) -> Option<Local> {
        let frame = self.frames.last_mut().expect("a node was entered");
        let (state, place) = region.split(frame.node);
        let (targets, next, width) = (graph.targets(state), &region.next[place], region.width());
        let mut own = region.marks[frame.node as usize];
        let mut fresh = None;
        while !next.is_empty() {
            let target = match targets.get(frame.edge as usize) {
                Some(&target) => target,
                None if frame.edge as usize == targets.len() && graph.is_terminal(state) => state,
                None => break,
            };
            let target = target * width + next[frame.choice as usize];
            let mark = region.marks[target as usize];
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
        region.marks[frame.node as usize] = own;
        fresh
    }

    /// Done with a node, and with its component if that is complete now.
    #[inline]
    fn leave(&mut self, region: &mut Region, graph: &Graph) {
        let frame = self.frames.pop().expect("it is being left");
        if !frame.is_root {
            self.open.push(frame.node);
            return;
        }
        let own = region.marks[frame.node as usize];
        let met = self.open.iter().rev().take_while(|&&node| own <= region.marks[node as usize]).count();
        let rest = self.open.len() - met;
        self.count -= met as u32 + 1;
        let accepting = |node: Local| region.accepting[region.split(node).1];
        let accepted = self.open[rest..].iter().fold(accepting(frame.node), |sets, &node| sets | accepting(node));
        let counts = accepted & region.all == region.all && (met > 0 || region.returns(graph, frame.node));
        let mut number = CLOSED;
        if counts {
            number = region.component;
            region.component -= 1;
            self.sizes.push(met + 1);
        }
        region.marks[frame.node as usize] = number;
        self.open.drain(rest..).for_each(|node| region.marks[node as usize] = number);
    }
}

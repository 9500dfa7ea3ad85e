//! Classes of steps that fairness assumptions name: which classes are enabled in a state, and which edges are steps of
//! a class.
//!
//! A class is the set of steps of one process that an assumption names. If there is an assumption for each message, a
//! class is the set of steps that take this message. The enabled classes of a process almost always depend only on its
//! node, so they are computed once per node.

use crate::live::fairness::Fairness;
use crate::live::graph::{Graph, StateId};
use crate::system::model::{MessageId, Result};
use crate::system::successors::{TransitionRef, View};
use crate::system::tables::{Kind, NodeId};
use rustc_hash::FxHashMap;
use std::ops::Range;

pub type ClassId = u32;

/// The number of the assumption, and where there is one for each message, which and whose.
type Class = (usize, Option<(u16, MessageId)>);

pub struct FairClasses<'a> {
    fairness: &'a [Fairness],
    ids: FxHashMap<Class, ClassId>,
    /// By number.
    known: Vec<Class>,
    /// Per node, what its process offers there; `UNKNOWN` if that was not asked yet.
    of_node: Vec<Local>,
    classes: Vec<(ClassId, u32)>,
}

/// What a process offers in a node, wherever the others are: how many edges, and of which classes they are, as a range of
/// `FairClasses::classes`.
#[derive(Clone, Copy)]
struct Local {
    edges: u32,
    classes: (u32, u32),
}

/// In place of the number of edges: not known yet; and: that depends on other nodes.
const UNKNOWN: u32 = u32::MAX;
const VARIES: u32 = u32::MAX - 1;
const NOTHING: Local = Local { edges: UNKNOWN, classes: (0, 0) };

impl<'a> FairClasses<'a> {
    pub fn new(fairness: &'a [Fairness]) -> Self {
        FairClasses { fairness, ids: FxHashMap::default(), known: Vec::new(), of_node: Vec::new(), classes: Vec::new() }
    }

    /// Whether nothing is assumed.
    pub fn none(&self) -> bool {
        self.fairness.is_empty()
    }

    pub fn any_strong(&self) -> bool {
        self.fairness.iter().any(|fairness| fairness.strong)
    }

    pub fn is_strong(&self, class: ClassId) -> bool {
        self.fairness[self.known[class as usize].0].strong
    }

    /// How many classes were met so far.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// The processes whose steps are in some classes, as a range that has them all.
    pub fn processes(&self, classes: &[ClassId]) -> Range<usize> {
        let whose = |&class: &ClassId| match self.known[class as usize] {
            (_, Some((process, _))) => vec![usize::from(process)],
            (number, None) => self.fairness[number].handlers.iter().map(|&(process, _)| process.into()).collect(),
        };
        let all: Vec<usize> = classes.iter().flat_map(whose).collect();
        all.iter().copied().min().unwrap_or(0)..all.iter().copied().max().map_or(0, |last| last + 1)
    }

    /// The classes that are enabled in a state, each with the numbers of the edges that are steps of it.
    pub fn list(&mut self, view: &mut View, graph: &Graph, id: StateId, found: &mut Vec<(ClassId, u32)>) -> Result<()> {
        self.list_of(view, graph, id, 0..view.processes, found)
    }

    /// The same for the steps of some processes; those of others may be among them.
    pub fn list_of(
        &mut self,
        view: &mut View,
        graph: &Graph,
        id: StateId,
        processes: Range<usize>,
        found: &mut Vec<(ClassId, u32)>,
    ) -> Result<()> {
        found.clear();
        if self.none() {
            return Ok(());
        }
        let mut first = 0;
        for process in 0..processes.end {
            let node = graph.component(id, process);
            let mut local = self.of_node.get(node as usize).copied().unwrap_or(NOTHING);
            if local.edges == UNKNOWN {
                local = self.local(view, process, node)?;
            }
            if local.edges == VARIES {
                return self.whole(view, graph, id, found);
            }
            if process >= processes.start {
                let classes = &self.classes[local.classes.0 as usize..local.classes.1 as usize];
                found.extend(classes.iter().map(|&(class, edge)| (class, first + edge)));
            }
            first += local.edges;
        }
        Ok(())
    }

    /// The same from all transitions of the state.
    fn whole(&mut self, view: &mut View, graph: &Graph, id: StateId, found: &mut Vec<(ClassId, u32)>) -> Result<()> {
        found.clear();
        for (via, edge) in graph.transition_refs(view, id)?.into_iter().zip(0..) {
            let node = graph.component(id, via.process as usize);
            self.classes(view, node, via, |class| found.push((class, edge)))?;
        }
        Ok(())
    }

    /// Work out what a node offers.
    #[cold]
    fn local(&mut self, view: &mut View, process: usize, node: NodeId) -> Result<Local> {
        let mut local = Local { edges: VARIES, classes: (0, 0) };
        if let Some(moves) = view.local_moves(node)? {
            let mut classes = Vec::new();
            local.edges = 0;
            for (index, _) in (0..).zip(moves).filter(|(_, moves)| *moves) {
                let via = TransitionRef { process: process as u16, index };
                self.classes(view, node, via, |class| classes.push((class, local.edges)))?;
                local.edges += 1;
            }
            local.classes.0 = self.classes.len() as u32;
            self.classes.extend(classes);
            local.classes.1 = self.classes.len() as u32;
        }
        if self.of_node.len() <= node as usize {
            self.of_node.resize(node as usize + 1, NOTHING);
        }
        self.of_node[node as usize] = local;
        Ok(local)
    }

    /// The classes that a step is in.
    fn classes(
        &mut self,
        view: &mut View,
        node: NodeId,
        via: TransitionRef,
        mut each: impl FnMut(ClassId),
    ) -> Result<()> {
        let details = view.tables.details(&view.tables.transitions(node)?[via.index as usize]);
        if details.kind != Kind::Step {
            return Ok(());
        }
        for (number, fairness) in self.fairness.iter().enumerate() {
            if !fairness.handlers.contains(&(via.process, details.handler)) {
                continue;
            }
            let Some(heads) = &fairness.messages else {
                each(self.id((number, None)));
                continue;
            };
            for (number_of, &message) in details.consumed.iter().enumerate() {
                let again = details.consumed[..number_of].contains(&message);
                if again || !view.tables.model.begins(message, heads) {
                    continue;
                }
                each(self.id((number, Some((via.process, message)))));
            }
        }
        Ok(())
    }

    fn id(&mut self, class: Class) -> ClassId {
        let known = &mut self.known;
        *self.ids.entry(class).or_insert_with(|| {
            known.push(class);
            known.len() as ClassId - 1
        })
    }
}

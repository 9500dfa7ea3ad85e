//! Classes of steps that fairness assumptions name: which classes are enabled in a state, and which edges are steps of
//! a class.
//!
//! A class is the set of steps of one process that an assumption names. If there is an assumption for each message, a
//! class is the set of steps that take this message; fair loss also has a class of the transitions that lose it. The
//! enabled classes of a process almost always depend only on its node, so they are computed once per node.
//!
//! With partial-order reduction, a class may be enabled in a state by transitions that are no edges there (`LEFT_OUT`). For
//! fair loss, a step that takes a message and changes nothing is a delivery all the same, although it is no edge (`SILENT`).

use crate::live::fairness::{Demand, Fairness, RECOVERY};
use crate::live::graph::{Graph, StateId};
use crate::por::stubborn::ALL;
use crate::system::model::{MessageId, Result};
use crate::system::successors::{TransitionRef, View, bit};
use crate::system::tables::{Kind, NodeId};
use rustc_hash::FxHashMap;
use std::ops::Range;

pub type ClassId = u32;

/// In place of the number of an edge: the transition is no edge of the graph.
pub const LEFT_OUT: u32 = u32::MAX - 1;
/// The same: the step can be taken, and changes nothing.
pub const SILENT: u32 = u32::MAX - 2;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Class {
    assumption: usize,
    /// Where there is one for each message: whose and which.
    message: Option<(u16, MessageId)>,
    /// It is lost. Otherwise it is taken.
    lost: bool,
}

pub struct FairClasses<'a> {
    fairness: &'a [Fairness],
    ids: FxHashMap<Class, ClassId>,
    /// By number.
    known: Vec<Class>,
    /// Per node, what its process offers there; `UNKNOWN` if that was not asked yet.
    of_node: Vec<Local>,
    classes: Vec<(ClassId, u32)>,
    /// Some assumption is fair loss.
    any_loss: bool,
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
        FairClasses {
            fairness,
            ids: FxHashMap::default(),
            known: Vec::new(),
            of_node: Vec::new(),
            classes: Vec::new(),
            any_loss: fairness.iter().any(|fairness| fairness.demand == Demand::FairLoss),
        }
    }

    /// Whether nothing is assumed.
    pub fn none(&self) -> bool {
        self.fairness.is_empty()
    }

    /// Whether all assumptions are weak.
    pub fn all_weak(&self) -> bool {
        self.fairness.iter().all(|fairness| fairness.demand == Demand::Weak)
    }

    pub fn demand(&self, class: ClassId) -> Demand {
        self.fairness[self.known[class as usize].assumption].demand
    }

    /// Of the steps that take a message, if these transitions lose it.
    pub fn taken(&mut self, class: ClassId) -> Option<ClassId> {
        let class = self.known[class as usize];
        class.lost.then(|| self.id(Class { lost: false, ..class }))
    }

    /// How many classes were met so far.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// The processes whose steps are in some classes, as a range that has them all.
    pub fn processes(&self, classes: &[ClassId]) -> Range<usize> {
        let whose = |&class: &ClassId| match self.known[class as usize] {
            Class { message: Some((process, _)), .. } => vec![usize::from(process)],
            Class { assumption, .. } => {
                self.fairness[assumption].handlers.iter().map(|&(process, _)| process.into()).collect()
            }
        };
        let all: Vec<usize> = classes.iter().flat_map(whose).collect();
        all.iter().copied().min().unwrap_or(0)..all.iter().copied().max().map_or(0, |last| last + 1)
    }

    /// The classes that are enabled in a state, each with the numbers of the edges that are steps of it.
    pub fn list(&mut self, view: &mut View, graph: &Graph, id: StateId, found: &mut Vec<(ClassId, u32)>) -> Result<()> {
        self.list_of(view, graph, id, 0..view.movers, found)
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
        if view.movers < view.processes {
            return self.whole(view, graph, id, found); // What a process offers depends on cells, too.
        }
        let (mut first, edges_of) = (0, graph.taken(id));
        for process in 0..processes.end {
            let node = graph.component(id, process);
            let mut local = self.of_node.get(node as usize).copied().unwrap_or(NOTHING);
            if local.edges == UNKNOWN {
                local = self.local(view, process, node)?;
            }
            if local.edges == VARIES {
                return self.whole(view, graph, id, found);
            }
            let has_edges = edges_of & bit(process) != 0;
            if process >= processes.start {
                let classes = &self.classes[local.classes.0 as usize..local.classes.1 as usize];
                let edge = |edge: u32| match edge {
                    SILENT => SILENT,
                    _ if has_edges => first + edge,
                    _ => LEFT_OUT,
                };
                found.extend(classes.iter().map(|&(class, number)| (class, edge(number))));
            }
            first += if has_edges { local.edges } else { 0 };
        }
        Ok(())
    }

    /// The same from all transitions of the state.
    fn whole(&mut self, view: &mut View, graph: &Graph, id: StateId, found: &mut Vec<(ClassId, u32)>) -> Result<()> {
        found.clear();
        let (state, edges_of) = (graph.state(id), graph.taken(id));
        let fingerprint = view.fingerprint(&state);
        let mut transitions = Vec::new();
        view.successors(&state, fingerprint, ALL, |successor| {
            let moves = successor.moves || successor.fingerprint != fingerprint;
            if !successor.fails && (moves || self.any_loss) {
                transitions.push((successor.via, moves));
            }
        })?;
        let mut next = 0;
        for (via, moves) in transitions {
            let edge = match moves {
                false => SILENT,
                true if edges_of & bit(via.process as usize) != 0 => next,
                true => LEFT_OUT,
            };
            next += u32::from(edge == next);
            let node = view.situated(&state, via.process as usize)?;
            self.classes(view, node, via, moves, |class| found.push((class, edge)))?;
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
            let any_loss = self.any_loss;
            for (index, moves) in (0..).zip(moves).filter(|(_, moves)| *moves || any_loss) {
                let via = TransitionRef { process: process as u16, index };
                let edge = if moves { local.edges } else { SILENT };
                self.classes(view, node, via, moves, |class| classes.push((class, edge)))?;
                local.edges += u32::from(moves);
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

    /// The classes that a transition is in. If it changes nothing, those of fair loss.
    fn classes(
        &mut self,
        view: &mut View,
        node: NodeId,
        via: TransitionRef,
        moves: bool,
        mut each: impl FnMut(ClassId),
    ) -> Result<()> {
        let details = view.tables.details(&view.tables.transitions(node)?[via.index as usize]);
        let (handler, lost) = match details.kind {
            Kind::Step | Kind::Tick => (details.handler, false),
            Kind::Recover => (RECOVERY, false),
            Kind::Lose => (0, true),
            Kind::Duplicate | Kind::Crash => return Ok(()),
        };
        for (assumption, fairness) in self.fairness.iter().enumerate() {
            let named = match lost {
                true => fairness.demand == Demand::FairLoss,
                false => fairness.handlers.contains(&(via.process, handler)),
            };
            if !named || !(moves || fairness.demand == Demand::FairLoss) {
                continue;
            }
            let Some(heads) = &fairness.messages else {
                each(self.id(Class { assumption, message: None, lost }));
                continue;
            };
            for (place, &message) in details.consumed.iter().enumerate() {
                let again = details.consumed[..place].contains(&message);
                if again || !view.tables.model.begins(message, heads) {
                    continue;
                }
                each(self.id(Class { assumption, message: Some((via.process, message)), lost }));
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

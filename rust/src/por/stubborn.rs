//! Static partial-order reduction: stubborn sets over transition classes (MP-Basset).
//!
//! Most transitions of different processes commute (`footprint`). A stubborn set contains the transitions that have to be
//! explored together. `Relations` between classes are computed from the known effects before a pass of the search. During
//! the pass, a worker only looks up which classes are enabled in the nodes of a state, and remembers the answer for all
//! states in the same situation. Since transitions of one process depend on each other, the enabled part of a stubborn set
//! consists of all transitions of some processes. So the answer is a set of processes.
//!
//! The rules, for a set T of classes in a state (the proof is in `docs/internals/reductions/por.md`):
//!
//! 1. T has an enabled class with a step that does not fail (if there is one in the state).
//! 2. For an enabled class in T, T has: the classes of its process (*own*), those that may send it more messages (*enabling*),
//!    and those of other processes that share a monitor, a budget, a spare slot or a cell with it.
//! 3. For a disabled class in T, T has all classes of one necessary enabling set (*enabling*): before the class can become
//!    enabled, one of them must happen. If the guard accepts all pending messages, this is a message, but for a handler that
//!    chooses among sets (*sets*).
//! 4. If an enabled class in T is visible, T has all visible classes (*visibility*).
//! 5. No enabled class in T changes what the bound of the search reads, if it has one (*bounds*).
//! 6. In a model with clocks, T has an urgent step that is possible (*time*): then no tick can happen before a step of T.

use crate::por::class_set::ClassSet;
use crate::por::classes::Class;
use crate::por::effects::Tag;
use crate::por::relations::{Need, Relations, Seeds, Situation};
use crate::system::hash;
use crate::system::model::{Result, Shape};
use crate::system::situated::Situated;
use crate::system::successors::View;
use crate::system::tables::{NodeId, Tables};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// All processes: no reduction.
pub const ALL: u64 = u64::MAX;

/// A worker's stubborn sets.
pub struct Stubborn {
    relations: Arc<Relations>,
    situations: Vec<Situation>,
    ids: FxHashMap<Situation, u32>,
    /// Situation of each profile, and its hash. (By the address of what the tables share and keep.)
    of_profile: FxHashMap<usize, (u32, u64)>,
    situated: Situated,
    /// The same of each situated node; `u32::MAX` for those not met yet.
    of_node: Vec<(u32, u64)>,
    /// By the situations of a state's nodes, and which budgets are left.
    known: FxHashMap<u64, u64>,
    processes: usize,
    is_timed: bool,
    budgets: std::ops::Range<usize>,
}

impl Stubborn {
    pub fn new(relations: Arc<Relations>, shape: &Shape) -> Stubborn {
        Stubborn {
            is_timed: shape.time.is_some() && relations.rules.time,
            relations,
            situations: Vec::new(),
            ids: FxHashMap::default(),
            of_profile: FxHashMap::default(),
            situated: Situated::new(shape),
            of_node: Vec::new(),
            known: FxHashMap::default(),
            processes: shape.movers(),
            budgets: shape.processes + shape.monitors..shape.width(),
        }
    }

    pub fn relations(&self) -> &Relations {
        &self.relations
    }

    /// The processes whose transitions are enough in a state, as bits.
    ///
    /// States whose nodes are in the same situations have the same answer. They are recognised by a sum of 64-bit hashes,
    /// as states are by their fingerprints, and with the same small probability of a mistake.
    #[inline]
    pub fn processes(&mut self, view: &mut View, state: &[u32]) -> Result<u64> {
        let tables = view.tables;
        let mut key = 0u64;
        let urgent = if self.is_timed { view.urgent(state, self.relations.rules.blocked)? } else { ALL };
        if urgent == 0 {
            return Ok(ALL);
        }
        if self.is_timed {
            let (low, high) = (urgent as u32, (urgent >> 32) as u32);
            let beyond = self.budgets.len();
            key = hash::budget::<u64>(beyond, low).wrapping_add(hash::budget(beyond + 1, high));
        }
        for process in 0..self.processes {
            let node = self.situated.node(tables, state, process)?;
            key = key.wrapping_add(match self.of_node.get(node as usize) {
                Some(&(id, hash)) if id != u32::MAX => hash,
                _ => self.meet(tables, node)?,
            });
        }
        for (budget, &left) in state[self.budgets.clone()].iter().enumerate() {
            key = key.wrapping_add(hash::budget(budget, u32::from(left > 0)));
        }
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let found = self.find(tables, state, urgent)?;
        self.known.insert(key, found);
        Ok(found)
    }

    #[cold]
    fn meet(&mut self, tables: &Tables, node: NodeId) -> Result<u64> {
        let profile = tables.profile(node)?;
        let Stubborn { relations, situations, ids, of_profile, of_node, .. } = self;
        let (id, hash) = *of_profile.entry(Arc::as_ptr(&profile).addr()).or_insert_with(|| {
            let id = *ids.entry(relations.situation(&profile)).or_insert_with_key(|situation| {
                situations.push(situation.clone());
                situations.len() as u32 - 1
            });
            (id, hash::local(profile.process as usize, u64::from(id)))
        });
        if of_node.len() <= node as usize {
            of_node.resize(node as usize + 1, (u32::MAX, 0));
        }
        of_node[node as usize] = (id, hash);
        Ok(hash)
    }

    /// The stubborn set of a state all of whose nodes were met.
    #[cold]
    fn find(&mut self, tables: &Tables, state: &[u32], urgent: u64) -> Result<u64> {
        let nodes = (0..self.processes).map(|process| self.situated.node(tables, state, process));
        let nodes: Vec<NodeId> = nodes.collect::<Result<_>>()?;
        let situation = |&node: &u32| &self.situations[self.of_node[node as usize].0 as usize];
        let situations: Vec<&Situation> = nodes.iter().map(situation).collect();
        let left = state[self.budgets.clone()].iter().enumerate();
        let left = left.fold(0, |bits, (budget, &left)| bits | u32::from(left > 0) << (budget % 32));
        let enabled = situations.iter().fold(ClassSet::default(), |set, situation| set.with(situation.enabled));
        let here = Here { relations: &self.relations, situations, enabled, left };
        let mut seeds: Vec<(u32, usize)> = (0..self.processes)
            // By rule 2, a set has all transitions of the process that it is closed from, hence its urgent step (rule 6).
            .filter(|&process| here.situations[process].steps && urgent >> (process % 64) & 1 == 1)
            .map(|process| (here.rank(process), process))
            .collect();
        seeds.sort_unstable();
        let all = here.transitions(ALL);
        let tries = if self.relations.seeds == Seeds::Instance { 1 } else { seeds.len() };
        let mut fewest = ALL;
        for (_, process) in seeds.into_iter().take(tries) {
            let closed = here.close(process);
            if self.relations.rules.strict && here.shows(closed) || here.may_leave(closed) {
                continue;
            }
            let set = here.processes(closed);
            // Where one process has all transitions, there is nothing to gain, and nothing lost.
            if set.count_ones() == 1 {
                return Ok(set);
            }
            if here.transitions(set) < all && set.count_ones() < fewest.count_ones() {
                fewest = set;
            }
        }
        Ok(fewest)
    }
}

/// One state, as the rules see it.
struct Here<'a> {
    relations: &'a Relations,
    situations: Vec<&'a Situation>,
    /// All classes that are enabled, but for budgets.
    enabled: ClassSet,
    /// Budgets that are left, as bits.
    left: u32,
}

impl Here<'_> {
    fn process(&self, class: usize) -> usize {
        self.relations.classes[class].process as usize
    }

    fn need(&self, class: usize) -> &Need {
        let process = self.process(class);
        &self.situations[process].needs[class - self.relations.first[process]]
    }

    fn affords(&self, budget: Option<u8>) -> bool {
        budget.is_none_or(|budget| self.left >> (budget % 32) & 1 == 1)
    }

    fn is_enabled(&self, class: usize) -> bool {
        matches!(self.need(class), Need::Enabled { budget, .. } if self.affords(*budget))
    }

    /// How good a process is to start from: 0 if it starts an instance, 1 if it goes on with one, 2 if it ends one.
    fn rank(&self, process: usize) -> u32 {
        let steps = self.situations[process].enabled.iter().map(|class| &self.relations.classes[class]);
        let rank = |class: &Class| match class.tag {
            Tag::Step(handler) if self.relations.actions.contains(&(class.process, handler)) => 0,
            _ if !class.effects.reaches.is_empty() => 1,
            _ => 2,
        };
        steps.map(rank).min().unwrap_or(2)
    }

    /// The smallest set that the rules allow, from the transitions of a process on; or any with all that is enabled, once it
    /// comes to that.
    fn close(&self, seed: usize) -> ClassSet {
        let mut set = self.situations[seed].enabled;
        let mut done = ClassSet::default();
        // Disabled classes that have a choice of enabling sets: they choose last, knowing what is in anyway.
        let mut choosing: Vec<&[ClassSet]> = Vec::new();
        loop {
            while let Some(class) = set.without(done).first() {
                if self.enabled.without(set).is_empty() {
                    return set;
                }
                let situation = self.situations[self.process(class)];
                if let Some(whole) = situation.whole.filter(|_| situation.enabled.has(class)) {
                    set = set.with(whole);
                    choosing.extend(situation.needs.iter().filter_map(Need::choices));
                    done = done.with(self.relations.of_process[self.process(class)]);
                    continue;
                }
                done = done.with(ClassSet::one(class));
                match self.need(class) {
                    Need::Enabled { together, budget } => {
                        if self.affords(*budget) {
                            set = set.with(*together);
                            if self.relations.visible.has(class) {
                                set = set.with(self.relations.visible);
                            }
                        }
                    }
                    Need::Disabled(sets) if sets.len() == 1 => set = set.with(sets[0]),
                    Need::Disabled(sets) => choosing.push(sets),
                }
            }
            choosing.retain(|sets| !sets.iter().any(|one| one.without(set).is_empty()));
            let Some(sets) = choosing.pop() else {
                return set;
            };
            let cost = |one: &&ClassSet| {
                let news = one.without(set);
                (news.iter().filter(|&class| self.is_enabled(class)).count(), news.len(), **one)
            };
            set = set.with(*sets.iter().min_by_key(cost).expect("a class has an enabling set"));
        }
    }

    /// Whether a step of the set may be seen by a property.
    fn shows(&self, set: ClassSet) -> bool {
        set.iter().any(|class| self.relations.visible.has(class) && self.is_enabled(class))
    }

    /// Whether a step of the set may lead out of the bound of the search.
    fn may_leave(&self, set: ClassSet) -> bool {
        set.iter().any(|class| self.relations.bounding.has(class) && self.is_enabled(class))
    }

    fn processes(&self, set: ClassSet) -> u64 {
        let enabled = set.iter().filter(|&class| self.is_enabled(class));
        enabled.fold(0, |bits, class| bits | 1 << (self.relations.classes[class].process % 64))
    }

    fn transitions(&self, processes: u64) -> u32 {
        let chosen = (0..self.situations.len()).filter(|process| processes >> (process % 64) & 1 == 1);
        chosen.map(|process| self.situations[process].transitions).sum()
    }
}

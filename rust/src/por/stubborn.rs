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
//!    and those of other processes that share a monitor, a budget or a spare slot with it.
//! 3. For a disabled class in T, T has all classes of one necessary enabling set (*enabling*): before the class can become
//!    enabled, one of them must happen.
//! 4. If an enabled class in T is visible, T has all visible classes (*visibility*).

use crate::por::class_set::{ClassSet, MOST_CLASSES};
use crate::por::classes::{Class, Split, classes};
use crate::por::effects::{KnownEffects, Label, Profile, Tag};
use crate::search::control::Control;
use crate::system::hash;
use crate::system::model::{Result, Shape};
use crate::system::reads::ReadSet;
use crate::system::tables::{NodeId, Tables};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// All processes: no reduction.
pub const ALL: u64 = u64::MAX;

/// Which enabled class a stubborn set starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// One that starts an instance of the protocol (consumes nothing), else one that does not end one (sends).
    Instance,
    /// The one whose set has the fewest processes, and of several the first in that order. (To count transitions instead of
    /// processes is worse: preferring the same processes in all states makes more of their successors meet. To take the
    /// first set that leaves anything out is worse as well: a split makes it one that leaves out little.)
    Fewest,
}

/// The rules above by name, each of which a test can switch off to see that it is needed.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub own: bool,
    pub enabling: bool,
    pub visibility: bool,
    pub proviso: bool,
    /// For properties of whole runs: a set with a visible class that is enabled is no reduction (instead of rule 4).
    pub strict: bool,
}

impl Rules {
    pub fn of(control: &Control) -> Rules {
        let keeps = |name: &str| !control.leaves_out(name);
        Rules {
            own: keeps("own"),
            enabling: keeps("enabling"),
            visibility: keeps("visibility"),
            proviso: keeps("proviso"),
            strict: false,
        }
    }
}

/// The relations between classes, fixed for one pass of a search.
pub struct Relations {
    classes: Vec<Class>,
    /// Class of a label.
    class_of: FxHashMap<Label, usize>,
    /// Classes of each process; they are numbered process by process.
    of_process: Vec<ClassSet>,
    first: Vec<usize>,
    /// Per handler: classes that may send it a message, by the sender.
    feeders: FxHashMap<(u16, u16), Vec<(u16, ClassSet)>>,
    /// Per process: classes that may send it anything.
    mailers: Vec<ClassSet>,
    /// Per process: classes that may spawn it.
    fillers: Vec<ClassSet>,
    /// Per handler: classes that may make its local condition true.
    arming: FxHashMap<(u16, u16), ClassSet>,
    varying: BTreeSet<(u16, u16)>,
    /// Handlers that take no messages.
    actions: BTreeSet<(u16, u16)>,
    /// Per class: those of other processes that it does not commute with.
    partners: Vec<ClassSet>,
    visible: ClassSet,
    rules: Rules,
    seeds: Seeds,
    pub read_set: ReadSet,
    /// The version of the effects that this was made from.
    pub version: u64,
    /// A run may come back to a state, so that a transition could be put off for ever.
    pub cyclic: bool,
}

impl Relations {
    pub fn new(
        known: &KnownEffects,
        shape: &Shape,
        split: Split,
        seeds: Seeds,
        rules: Rules,
        read_set: ReadSet,
    ) -> std::result::Result<Relations, String> {
        let mut classes = classes(known, shape, split);
        if classes.len() > MOST_CLASSES {
            classes = crate::por::classes::classes(known, shape, Split::None);
        }
        if classes.len() > MOST_CLASSES {
            let count = classes.len();
            return Err(format!("the system has {count} classes of transitions, more than {MOST_CLASSES}"));
        }
        let mut class_of = FxHashMap::default();
        let mut of_process = vec![ClassSet::default(); shape.processes];
        let mut first = vec![0; shape.processes];
        for (index, (class, labels)) in classes.iter().enumerate().rev() {
            of_process[class.process as usize] = of_process[class.process as usize].with(ClassSet::one(index));
            first[class.process as usize] = index;
            class_of.extend(labels.iter().map(|label| (label.clone(), index)));
        }
        let classes: Vec<Class> = classes.into_iter().map(|(class, _)| class).collect();
        let all = |pick: &dyn Fn(&Class) -> bool| -> ClassSet {
            classes.iter().enumerate().filter(|(_, class)| pick(class)).map(|(index, _)| index).collect()
        };
        let mut feeders: FxHashMap<(u16, u16), Vec<(u16, ClassSet)>> = FxHashMap::default();
        let mut arming: FxHashMap<(u16, u16), ClassSet> = FxHashMap::default();
        for (index, class) in classes.iter().enumerate() {
            for &handler in &class.effects.feeds {
                let senders = feeders.entry(handler).or_default();
                match senders.iter_mut().find(|(sender, _)| *sender == class.process) {
                    Some((_, set)) => *set = set.with(ClassSet::one(index)),
                    None => senders.push((class.process, ClassSet::one(index))),
                }
            }
            for &handler in &class.effects.arms {
                let set = arming.entry(handler).or_default();
                *set = set.with(ClassSet::one(index));
            }
        }
        let per_process = |pick: &dyn Fn(&Class, u16) -> bool| -> Vec<ClassSet> {
            (0..shape.processes as u16).map(|p| all(&|class| pick(class, p))).collect()
        };
        let mailers = per_process(&|class, p| class.effects.reaches.contains(&p));
        let fillers = per_process(&|class, p| class.effects.spawns.contains(&p) || class.effects.expects.contains(&p));
        let partners = classes.iter().map(|class| all(&|other| class.depends_on(other))).collect();
        let visible = if rules.visibility { all(&|class| class.is_visible(read_set)) } else { ClassSet::default() };
        Ok(Relations {
            class_of,
            of_process,
            first,
            feeders,
            mailers,
            fillers,
            arming,
            varying: known.varying.clone(),
            actions: known.counts.iter().filter(|(_, count)| **count == 0).map(|(handler, _)| *handler).collect(),
            partners,
            visible,
            rules,
            seeds,
            read_set,
            version: known.version,
            cyclic: !known.acyclic(),
            classes,
        })
    }

    /// Whether they cover all that is known by now, and what properties were seen to read.
    pub fn covers(&self, known: &KnownEffects, read_set: ReadSet) -> bool {
        let cyclic = self.cyclic || !known.acyclic();
        self.version == known.version && self.cyclic == cyclic && self.read_set.covers(read_set)
    }

    /// Whether the search has to make sure that nothing is put off for ever.
    pub fn needs_proviso(&self) -> bool {
        self.cyclic && self.rules.proviso
    }

    /// The classes that may send a message to a handler: all, or those of one process.
    fn feeders(&self, handler: (u16, u16), sender: Option<u16>) -> ClassSet {
        let known = self.feeders.get(&handler).map_or(&[][..], Vec::as_slice);
        let chosen = known.iter().filter(|(from, _)| sender.is_none_or(|sender| sender == *from));
        chosen.fold(ClassSet::default(), |set, (_, classes)| set.with(*classes))
    }

    /// What each class of a process needs, in a node.
    fn situation(&self, profile: &Profile) -> Situation {
        let process = profile.process;
        let mut enabled = ClassSet::default();
        for label in &profile.enabled {
            // A label that is new is no class yet; the pass is stale then, and will run again.
            if let Some(&class) = self.class_of.get(label) {
                enabled = enabled.with(ClassSet::one(class));
            }
        }
        let needs = self.of_process[process as usize].iter().map(|index| {
            if enabled.has(index) {
                Need::Enabled { together: self.together(index), budget: self.classes[index].budget }
            } else {
                Need::Disabled(self.enabling_sets(&self.classes[index], profile))
            }
        });
        let needs: Vec<Need> = needs.collect();
        let whole = self.whole(&needs, enabled);
        Situation { needs, whole, enabled, steps: profile.steps > 0, transitions: profile.transitions }
    }

    /// What all classes of a process need together, but for those that have a choice. Once one that is enabled is in, all are
    /// (*own*). Only where no budget decides what is enabled.
    fn whole(&self, needs: &[Need], enabled: ClassSet) -> Option<ClassSet> {
        let visible = if enabled.meets(self.visible) { self.visible } else { ClassSet::default() };
        needs.iter().try_fold(visible, |whole, need| match need {
            Need::Enabled { together, budget: None } if self.rules.own => Some(whole.with(*together)),
            Need::Enabled { .. } => None,
            Need::Disabled(sets) if sets.len() == 1 => Some(whole.with(sets[0])),
            Need::Disabled(_) => Some(whole),
        })
    }

    /// Rule 2.
    fn together(&self, index: usize) -> ClassSet {
        let class = &self.classes[index];
        let mut set = self.partners[index];
        if self.rules.own {
            set = set.with(self.of_process[class.process as usize]);
        }
        if self.rules.enabling {
            set = set.with(match (class.tag, &class.senders) {
                (Tag::Step(handler), None) => self.feeders((class.process, handler), None),
                (Tag::Step(handler), Some(senders)) => senders
                    .iter()
                    .map(|&sender| self.feeders((class.process, handler), Some(sender)))
                    .fold(ClassSet::default(), ClassSet::with),
                (Tag::Lose | Tag::Duplicate, _) => self.mailers[class.process as usize],
                (Tag::Crash(_) | Tag::Recover, _) => ClassSet::default(),
            });
        }
        set
    }

    /// Rule 3: necessary enabling sets to choose from. Each says: before this class is enabled, one of these must happen.
    fn enabling_sets(&self, class: &Class, profile: &Profile) -> Vec<ClassSet> {
        if !self.rules.enabling {
            return vec![ClassSet::default()];
        }
        let own = self.of_process[class.process as usize];
        let Tag::Step(handler) = class.tag else {
            return vec![match class.tag {
                Tag::Lose | Tag::Duplicate => self.mailers[class.process as usize],
                _ => own.with(self.fillers[class.process as usize]),
            }];
        };
        let key = (class.process, handler);
        let mail = || profile.mail.iter().filter(|mail| mail.handler == handler);
        let is_armed = profile.armed.iter().any(|armed| armed.handler == handler);
        let mut sets = Vec::new();
        if !is_armed {
            sets.push(self.arming.get(&key).copied().unwrap_or_default());
        }
        let takes = !self.actions.contains(&key);
        let varies = self.varying.contains(&key);
        match &class.senders {
            _ if !takes => {}
            // Without a message of this sender, it cannot be enabled: one that is held may be let through by an own step.
            Some(senders) => {
                for &sender in senders {
                    let from = self.feeders(key, Some(sender));
                    let of_sender = || mail().filter(|mail| mail.sender == sender);
                    let accepted = of_sender().any(|mail| mail.accepted);
                    if of_sender().next().is_none() {
                        sets.push(from);
                    } else if !accepted {
                        sets.push(from.with(own).with(self.fillers[class.process as usize]));
                    }
                }
            }
            None => {
                let held = mail().any(|mail| !mail.accepted);
                let some = mail().any(|mail| mail.accepted);
                if !held && !some {
                    sets.push(self.feeders(key, None));
                } else if is_armed && !held && !(varies && some) {
                    // Too few messages, or too few of one kind.
                    sets.push(self.feeders(key, None));
                }
            }
        }
        if sets.is_empty() {
            sets.push(own.with(self.feeders(key, None)).with(self.arming.get(&key).copied().unwrap_or_default()));
        }
        sets
    }
}

/// What a class needs to have in the set with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Need {
    /// Nothing of this when the budget is used up: it can never happen again.
    Enabled { together: ClassSet, budget: Option<u8> },
    /// One of these sets.
    Disabled(Vec<ClassSet>),
}

impl Need {
    /// The sets, if there are several.
    fn choices(&self) -> Option<&[ClassSet]> {
        match self {
            Need::Disabled(sets) if sets.len() > 1 => Some(sets),
            _ => None,
        }
    }
}

/// All that matters of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Situation {
    needs: Vec<Need>,
    whole: Option<ClassSet>,
    enabled: ClassSet,
    steps: bool,
    transitions: u32,
}

/// A worker's stubborn sets.
pub struct Stubborn {
    relations: Arc<Relations>,
    situations: Vec<Situation>,
    ids: FxHashMap<Situation, u32>,
    /// Situation of each profile, and its hash. (By the address of what the tables share and keep.)
    of_profile: FxHashMap<usize, (u32, u64)>,
    /// The same of each node; `u32::MAX` for those not met yet.
    of_node: Vec<(u32, u64)>,
    /// By the situations of a state's nodes, and which budgets are left.
    known: FxHashMap<u64, u64>,
    processes: usize,
    budgets: std::ops::Range<usize>,
}

impl Stubborn {
    pub fn new(relations: Arc<Relations>, shape: &Shape) -> Stubborn {
        Stubborn {
            relations,
            situations: Vec::new(),
            ids: FxHashMap::default(),
            of_profile: FxHashMap::default(),
            of_node: Vec::new(),
            known: FxHashMap::default(),
            processes: shape.processes,
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
    pub fn processes(&mut self, tables: &Tables, state: &[u32]) -> Result<u64> {
        let mut key = 0u64;
        for &node in &state[..self.processes] {
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
        let found = self.find(state);
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
    fn find(&self, state: &[u32]) -> u64 {
        let situation = |&node: &u32| &self.situations[self.of_node[node as usize].0 as usize];
        let situations: Vec<&Situation> = state[..self.processes].iter().map(situation).collect();
        let left = state[self.budgets.clone()].iter().enumerate();
        let left = left.fold(0, |bits, (budget, &left)| bits | u32::from(left > 0) << (budget % 32));
        let enabled = situations.iter().fold(ClassSet::default(), |set, situation| set.with(situation.enabled));
        let here = Here { relations: &self.relations, situations, enabled, left };
        let mut seeds: Vec<(u32, usize)> = (0..self.processes)
            .filter(|&process| here.situations[process].steps)
            .map(|process| (here.rank(process), process))
            .collect();
        seeds.sort_unstable();
        let all = here.transitions(ALL);
        let tries = if self.relations.seeds == Seeds::Instance { 1 } else { seeds.len() };
        let mut fewest = ALL;
        for (_, process) in seeds.into_iter().take(tries) {
            let closed = here.close(process);
            if self.relations.rules.strict && here.shows(closed) {
                continue;
            }
            let set = here.processes(closed);
            // Where one process has all transitions, there is nothing to gain, and nothing lost.
            if set.count_ones() == 1 {
                return set;
            }
            if here.transitions(set) < all && set.count_ones() < fewest.count_ones() {
                fewest = set;
            }
        }
        fewest
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

    fn processes(&self, set: ClassSet) -> u64 {
        let enabled = set.iter().filter(|&class| self.is_enabled(class));
        enabled.fold(0, |bits, class| bits | 1 << (self.relations.classes[class].process % 64))
    }

    fn transitions(&self, processes: u64) -> u32 {
        let chosen = (0..self.situations.len()).filter(|process| processes >> (process % 64) & 1 == 1);
        chosen.map(|process| self.situations[process].transitions).sum()
    }
}

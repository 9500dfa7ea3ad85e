//! The relations between classes of transitions from which stubborn sets are computed. `stubborn` numbers the rules.

use crate::por::class_set::{ClassSet, MOST_CLASSES};
use crate::por::classes::{Class, Split, classes};
use crate::por::effects::{KnownEffects, Label, Profile, Tag};
use crate::search::control::Control;
use crate::system::model::{Network, Shape, cell_bit};
use crate::system::reads::ReadSets;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

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
    /// A set may become enabled without another message.
    pub sets: bool,
    pub visibility: bool,
    pub proviso: bool,
    pub bounds: bool,
    pub cells: bool,
    pub time: bool,
    /// An urgent step that is blocked does not count.
    pub blocked: bool,
    /// For properties of whole runs: a set with a visible class that is enabled is no reduction (instead of rule 4).
    pub strict: bool,
}

impl Rules {
    pub fn of(control: &Control) -> Rules {
        let keeps = |name: &str| !control.leaves_out(name);
        Rules {
            own: keeps("own"),
            enabling: keeps("enabling"),
            sets: keeps("sets"),
            visibility: keeps("visibility"),
            proviso: keeps("proviso"),
            bounds: keeps("bounds"),
            cells: keeps("cells"),
            time: keeps("time"),
            blocked: keeps("blocked"),
            strict: false,
        }
    }
}

/// The relations between classes, fixed for one pass of a search.
pub struct Relations {
    pub(super) classes: Vec<Class>,
    /// Class of a label.
    pub(super) class_of: FxHashMap<Label, usize>,
    /// Classes of each process; they are numbered process by process.
    pub(super) of_process: Vec<ClassSet>,
    pub(super) first: Vec<usize>,
    /// Per handler: classes that may send it a message, by the sender.
    feeders: FxHashMap<(u16, u16), Vec<(u16, ClassSet)>>,
    /// Per process: classes that may send it anything.
    mailers: Vec<ClassSet>,
    /// Per process: classes that may spawn it.
    fillers: Vec<ClassSet>,
    /// Per cell: classes that may write it; its position is the first of cells and its number.
    writers: Vec<ClassSet>,
    /// Per handler: classes that may make its local condition true.
    arming: FxHashMap<(u16, u16), ClassSet>,
    varying: BTreeSet<(u16, u16)>,
    /// Handlers that may become enabled without another message, although their guard accepts all that are pending (*sets*): by
    /// a guard over the whole set, which reads the local state; or, if a set may have several messages of one sender, by a copy
    /// that the network makes, or because a message that comes between them in a queue is lost.
    selective: BTreeSet<(u16, u16)>,
    /// Handlers that take no messages.
    pub(super) actions: BTreeSet<(u16, u16)>,
    /// Per class: those of other processes that it does not commute with.
    partners: Vec<ClassSet>,
    pub(super) visible: ClassSet,
    pub(super) rules: Rules,
    pub(super) seeds: Seeds,
    /// Classes that may lead out of the bound of the search.
    pub(super) bounding: ClassSet,
    pub read_sets: ReadSets,
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
        read_sets: ReadSets,
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
        let first_cell = shape.movers() as u16;
        let writers = (first_cell..shape.processes as u16).map(|p| all(&|class| class.effects.spawns.contains(&p)));
        let writers = writers.collect();
        let partners = classes
            .iter()
            .map(|class| all(&|other| class.depends_on(other) && (rules.cells || shape.cells == 0)))
            .collect();
        let visible =
            if rules.visibility { all(&|class| class.is_visible(read_sets.visible)) } else { ClassSet::default() };
        let bounding =
            if rules.bounds { all(&|class| class.is_visible(read_sets.bounds)) } else { ClassSet::default() };
        Ok(Relations {
            class_of,
            of_process,
            first,
            feeders,
            mailers,
            fillers,
            writers,
            arming,
            varying: known.varying.clone(),
            selective: known
                .takes
                .iter()
                .filter(|(_, takes)| {
                    let repeats = shape.network == Network::Fifo || shape.duplications.is_some();
                    rules.sets && (takes.accepts || !takes.distinct && repeats)
                })
                .map(|(handler, _)| *handler)
                .collect(),
            // A handler whose quorum raises in some local states takes no messages there.
            actions: known
                .takes
                .iter()
                .filter(|(handler, takes)| takes.least == 0 && !known.varying.contains(handler))
                .map(|(handler, _)| *handler)
                .collect(),
            partners,
            visible,
            rules,
            seeds,
            bounding,
            read_sets,
            version: known.version,
            // A tick changes local states, and is no effect that is known.
            cyclic: !known.acyclic() || shape.time.is_some(),
            classes,
        })
    }

    /// Whether they cover all that is known by now, and what properties were seen to read.
    pub fn covers(&self, known: &KnownEffects, read_sets: ReadSets) -> bool {
        let cyclic = self.cyclic || !known.acyclic();
        self.version == known.version && self.cyclic == cyclic && self.read_sets.covers(read_sets)
    }

    /// Handlers whose classes wait for several senders.
    pub(super) fn split_quorums(&self) -> BTreeSet<(u16, u16)> {
        let several = self.classes.iter().filter(|class| class.senders.as_ref().is_some_and(|set| set.len() > 1));
        several
            .filter_map(|class| if let Tag::Step(handler) = class.tag { Some((class.process, handler)) } else { None })
            .collect()
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
    pub(super) fn situation(&self, profile: &Profile) -> Situation {
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

    /// In a system with cells, the classes one of which must happen before a handler can be armed that is not, or its guard can
    /// accept what it does not accept: they change the local state, or a cell on which this depends here.
    fn freeing(&self, handler: u16, profile: &Profile) -> ClassSet {
        if self.writers.is_empty() || !self.rules.cells {
            return ClassSet::default();
        }
        let process = profile.process as usize;
        let read = profile.reads.iter().filter(|(of, _)| *of == handler).fold(0, |all, (_, read)| all | read);
        let writers = self.writers.iter().enumerate().filter(|(cell, _)| read & cell_bit(*cell) != 0);
        writers.fold(self.of_process[process].with(self.fillers[process]), |set, (_, writers)| set.with(*writers))
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
        let freeing = self.freeing(handler, profile);
        let mail = || profile.mail.iter().filter(|mail| mail.handler == handler);
        let is_armed = profile.armed.iter().any(|armed| armed.handler == handler);
        let mut sets = Vec::new();
        if !is_armed {
            sets.push(self.arming.get(&key).copied().unwrap_or_default().with(freeing));
        }
        let takes = !self.actions.contains(&key);
        let varies = self.varying.contains(&key) || self.selective.contains(&key);
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
                        sets.push(from.with(own).with(self.fillers[class.process as usize]).with(freeing));
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
            let arming = self.arming.get(&key).copied().unwrap_or_default();
            sets.push(own.with(self.feeders(key, None)).with(arming).with(freeing));
        }
        sets
    }
}

/// What a class needs to have in the set with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Need {
    /// Nothing of this when the budget is used up: it can never happen again.
    Enabled { together: ClassSet, budget: Option<u8> },
    /// One of these sets.
    Disabled(Vec<ClassSet>),
}

impl Need {
    /// The sets, if there are several.
    pub(super) fn choices(&self) -> Option<&[ClassSet]> {
        match self {
            Need::Disabled(sets) if sets.len() > 1 => Some(sets),
            _ => None,
        }
    }
}

/// All that matters of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Situation {
    pub(super) needs: Vec<Need>,
    pub(super) whole: Option<ClassSet>,
    pub(super) enabled: ClassSet,
    pub(super) steps: bool,
    pub(super) transitions: u32,
}

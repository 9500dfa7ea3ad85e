//! The turn of a process in a round: UPDATE of this round, then SEND of the next (Sequentialization, Algorithm 1).
//!
//! Each message may be lost, so a turn may end after each of its steps. Turns of different processes do not influence each
//! other, so all that a process can do in a round is found once, for what it is and what may reach it.

use crate::rounds::audit::Audit;
use crate::rounds::node::{BEYOND, Letter, Place, Protocol, RoundNode, RoundNodeId, RoundNodes};
use crate::rounds::unsupported;
use crate::system::model::{FieldId, LocalId, MessageId, Result, Status};
use rustc_hash::{FxHashMap, FxHashSet};

/// A process that a turn creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Birth {
    pub slot: u16,
    pub local: LocalId,
    pub clock: u32,
}

/// What a turn leaves behind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TurnOutcome {
    pub node: RoundNodeId,
    pub births: Vec<Birth>,
    /// Slots that must be unborn (true) or born (false) before the turn.
    pub expected: Vec<(u16, bool)>,
    /// A step fails if the slots are as expected.
    pub fails: bool,
}

/// A step of the protocol.
#[derive(Clone, Debug)]
pub struct TurnStep {
    pub process: u16,
    pub handler: u16,
    pub consumed: Vec<MessageId>,
    pub choices: Vec<FieldId>,
    /// Where it is in the order of rounds: the round, and 0 in its SEND part or 1 in its UPDATE part.
    pub key: (Place, u8),
    /// Whether it creates processes.
    pub creates: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Update,
    Send,
}

/// A moment of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Moment {
    stage: Stage,
    local: LocalId,
    clock: u32,
    /// Sorted; none of this round.
    letters: Vec<Letter>,
    heard: Vec<MessageId>,
    /// Whether it has consumed a message of this round, was created just before it, or has just left the last phase.
    took: bool,
    births: Vec<Birth>,
    expected: Vec<(u16, bool)>,
    fails: bool,
}

/// The turn of one process.
pub struct Turn<'a, 't> {
    pub protocol: &'a mut Protocol<'t>,
    pub nodes: &'a mut RoundNodes,
    pub audit: &'a mut Audit,
    /// The round whose messages are consumed.
    pub at: Place,
    /// Whether the protocol goes beyond the last phase.
    pub beyond: &'a mut bool,
}

impl Turn<'_, '_> {
    fn goal(&self) -> Place {
        self.at + 1
    }

    /// Whether its SEND part is for actions that leave the last phase.
    fn closing(&self) -> bool {
        self.goal() > self.protocol.end
    }

    /// All that a process can do in a round in which these messages may reach it, in an order that depends on nothing else.
    pub fn outcomes(&mut self, node: &RoundNode, heard: &[MessageId]) -> Result<Vec<TurnOutcome>> {
        let mut found: FxHashSet<TurnOutcome> = FxHashSet::default();
        self.explore(node, heard, None, |outcome| {
            found.insert(outcome);
            false
        })?;
        let mut found: Vec<TurnOutcome> = found.into_iter().collect();
        found.sort_unstable();
        Ok(found)
    }

    /// The fewest steps of a turn to this outcome.
    pub fn steps_to(
        &mut self,
        node: &RoundNode,
        heard: &[MessageId],
        wanted: &TurnOutcome,
    ) -> Result<Option<Vec<TurnStep>>> {
        let mut links = Vec::new();
        let reached = self.explore(node, heard, Some(&mut links), |outcome| outcome == *wanted)?;
        let Some(mut at) = reached else { return Ok(None) };
        let mut steps = Vec::new();
        while at != 0 {
            let (before, step) = &links[at];
            steps.extend(step.clone());
            at = *before;
        }
        steps.reverse();
        Ok(Some(steps))
    }

    /// Go through the moments of a turn, breadth first, until `ends` is true of an outcome: then the number of the moment
    /// with which the turn ends so. `links` gets for each moment the one before it, and the step between the two.
    fn explore(
        &mut self,
        node: &RoundNode,
        heard: &[MessageId],
        mut links: Option<&mut Vec<(usize, Option<TurnStep>)>>,
        mut ends: impl FnMut(TurnOutcome) -> bool,
    ) -> Result<Option<usize>> {
        let start = Moment {
            stage: Stage::Update,
            local: node.local,
            clock: node.clock,
            letters: node.letters.iter().filter(|letter| letter.place > self.at).copied().collect(),
            heard: heard.to_vec(),
            took: node.born != 0 && node.born == self.at,
            births: Vec::new(),
            expected: Vec::new(),
            fails: false,
        };
        let mut numbers: FxHashMap<Moment, usize> = FxHashMap::default();
        numbers.insert(start.clone(), 0);
        let mut moments = vec![start];
        if let Some(links) = links.as_deref_mut() {
            links.push((0, None));
        }
        let mut at = 0;
        while at < moments.len() {
            let moment = moments[at].clone();
            let mut next: Vec<(Moment, Option<TurnStep>)> = Vec::new();
            if moment.stage == Stage::Update {
                if !moment.heard.is_empty() {
                    self.audit.passed(node.process, moment.local, moment.clock, self.at, &moment.heard);
                }
                let passed = Moment { stage: Stage::Send, heard: Vec::new(), took: false, ..moment.clone() };
                next.push((passed, None));
            } else {
                let letters = moment.letters.clone().into();
                let after =
                    RoundNode { process: node.process, local: moment.local, clock: moment.clock, born: 0, letters };
                let outcome = TurnOutcome {
                    node: self.nodes.id(after, self.goal(), self.protocol.end),
                    births: moment.births.clone(),
                    expected: moment.expected.clone(),
                    fails: moment.fails,
                };
                if ends(outcome) {
                    return Ok(Some(at));
                }
            }
            if !moment.fails {
                self.steps(node.process, &moment, &mut next)?;
            }
            for (moment, step) in next {
                if numbers.contains_key(&moment) {
                    continue;
                }
                numbers.insert(moment.clone(), moments.len());
                moments.push(moment);
                if let Some(links) = links.as_deref_mut() {
                    links.push((at, step));
                }
            }
            at += 1;
        }
        Ok(None)
    }

    /// The steps of the protocol that are possible at a moment.
    fn steps(&mut self, process: u16, moment: &Moment, next: &mut Vec<(Moment, Option<TurnStep>)>) -> Result<()> {
        let tables = self.protocol.tables;
        if tables.model.status(moment.local) != Status::Up {
            return Ok(());
        }
        let silent = moment.took || (moment.stage == Stage::Send && !self.closing());
        for transition in self.protocol.transitions(process, moment.local, &moment.heard)? {
            let details = tables.details(transition);
            if details.failure().is_some() {
                if details.expected().is_empty() {
                    return unsupported("a step of the protocol fails");
                }
                // Whether it does depends on the slots that are taken then.
                let mut failed = Moment { fails: true, ..moment.clone() };
                if self.give_birth(process, &mut failed, details.expected(), &[]) {
                    next.push((failed, None));
                }
                continue;
            }
            let after = tables.node(transition.target).local;
            let first = self.protocol.first(details.sends())?;
            let place = if details.consumed.is_empty() {
                *self.beyond |= first.is_some_and(|first| first > self.protocol.end);
                if first.is_none() && after == moment.local && details.spawns().is_empty() {
                    continue;
                }
                let now = match first {
                    Some(first) => moment.stage == Stage::Send && self.sends_now(moment, first, details.sends())?,
                    None => silent,
                };
                if !now {
                    continue;
                }
                let closes = moment.stage == Stage::Send && self.closing();
                match (moment.stage, first) {
                    (Stage::Update, _) => self.at,
                    (Stage::Send, first) if closes => first.unwrap_or((self.protocol.end + 1).max(moment.clock / 2)),
                    (Stage::Send, _) => self.goal(),
                }
            } else {
                self.at
            };
            let mut after = Moment { local: after, ..moment.clone() };
            let mut broken = false;
            if !details.consumed.is_empty() {
                broken |= 2 * self.at + 1 < moment.clock;
                after.clock = 2 * self.at + 1;
                after.heard.retain(|message| !details.consumed.contains(message));
            } else {
                // The first round of a process that an action creates would depend on what the action sends.
                broken |= !details.spawns().is_empty() && !details.sends().is_empty();
            }
            broken |= !self.settle(&mut after, details.sends())?;
            if broken {
                if details.expected().is_empty() {
                    return unsupported("a condition is broken");
                }
                // Whether it happens depends on the slots that are taken then.
                let mut failed = Moment { fails: true, ..moment.clone() };
                if self.give_birth(process, &mut failed, details.expected(), &[]) {
                    next.push((failed, None));
                }
                continue;
            }
            let advances = !details.consumed.is_empty() || !details.sends().is_empty();
            self.audit.step(process, moment.local, after.local, place, advances.then_some(after.clock));
            if !self.give_birth(process, &mut after, details.expected(), details.spawns()) {
                continue;
            }
            let leaves = moment.stage == Stage::Send && self.closing() && !details.sends().is_empty();
            after.took |= !details.consumed.is_empty() || leaves;
            let step = TurnStep {
                process,
                handler: details.handler,
                consumed: details.consumed.to_vec(),
                choices: details.choices().to_vec(),
                key: (place, u8::from(moment.stage == Stage::Update)),
                creates: !details.spawns().is_empty(),
            };
            self.audit.ran.insert((process, details.handler));
            next.push((after, Some(step)));
        }
        Ok(())
    }

    /// Whether an action belongs to this SEND part. After the last phase, the clock of a process advances only once.
    fn sends_now(&mut self, moment: &Moment, first: Place, sends: &[(u16, MessageId)]) -> Result<bool> {
        if !self.closing() {
            return Ok(first == self.goal());
        }
        let end = self.protocol.end;
        if self.at > end {
            return Ok(false); // Only processes that were just created have a turn, in which they send nothing.
        }
        let mut stays = true;
        for &(_, message) in sends {
            stays &= 2 * self.protocol.place(message)? == moment.clock;
        }
        Ok(first > end && (moment.clock <= 2 * end + 1 || stays))
    }

    /// Advance the clock, and add the messages to the letters. False if this breaks a condition.
    fn settle(&mut self, after: &mut Moment, sends: &[(u16, MessageId)]) -> Result<bool> {
        let clock = after.clock;
        for &(to, message) in sends {
            let place = self.protocol.place(message)?;
            if 2 * place < clock {
                return Ok(false);
            }
            after.clock = after.clock.max(2 * place);
            let late = place > self.protocol.end;
            *self.beyond |= late;
            if after.letters.iter().any(|letter| (letter.place, letter.to) == (place, to)) {
                return Ok(false);
            }
            after.letters.push(Letter { place, to, message: if late { BEYOND } else { message } });
        }
        after.letters.sort_unstable();
        Ok(true)
    }

    /// Create processes. False if an earlier step of this turn contradicts what the step expects of the slots.
    fn give_birth(
        &mut self,
        process: u16,
        after: &mut Moment,
        expected: &[(u16, bool)],
        spawns: &[(u16, LocalId)],
    ) -> bool {
        for &(slot, unborn) in expected {
            if after.births.iter().any(|birth| birth.slot == slot) {
                if unborn {
                    return false;
                }
            } else if after.expected.contains(&(slot, !unborn)) {
                return false;
            } else if !after.expected.contains(&(slot, unborn)) {
                after.expected.push((slot, unborn));
            }
        }
        after.expected.sort_unstable();
        for &(slot, local) in spawns {
            let goal = self.goal();
            let first = if self.closing() { goal.max(after.clock / 2 + 1) } else { goal };
            *self.beyond |= self.closing();
            let clock = 2 * first + 1;
            self.audit.start(slot, local, clock);
            self.audit.births.insert((process, slot));
            after.births.push(Birth { slot, local, clock });
        }
        true
    }
}

//! The audit: what could break a condition of section 4.2, from all turns of the search (`src/plait/rounds/conditions/audit.py`
//! has the argument). It may suspect a step that no run takes. If it suspects none, this is a proof.

use crate::rounds::node::{Place, Protocol};
use crate::system::model::{LocalId, MessageId, Result, Status};
use rustc_hash::{FxHashMap, FxHashSet};

/// A step of the protocol from one local state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Edge {
    after: LocalId,
    place: Place,
    /// The clock after it; none if it neither consumes nor sends, and so leaves the clock unchanged.
    clock: Option<u32>,
}

/// Messages that a process did not consume, and its local state and clock since then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Passed {
    process: u16,
    local: LocalId,
    clock: u32,
    place: Place,
    /// The number of the set of messages.
    heard: u32,
}

#[derive(Default)]
pub struct Audit {
    clocks: FxHashSet<(u16, LocalId, u32)>,
    edges: FxHashMap<(u16, LocalId), FxHashSet<Edge>>,
    passed: FxHashSet<Passed>,
    heard_ids: FxHashMap<Box<[MessageId]>, u32>,
    heard: Vec<Box<[MessageId]>>,
    /// Processes, and the slots of processes that they create.
    pub births: FxHashSet<(u16, u16)>,
    /// Processes and handlers that ran.
    pub ran: FxHashSet<(u16, u16)>,
}

impl Audit {
    /// A process begins.
    pub fn start(&mut self, process: u16, local: LocalId, clock: u32) {
        self.clocks.insert((process, local, clock));
    }

    /// A process took a step.
    pub fn step(&mut self, process: u16, before: LocalId, after: LocalId, place: Place, clock: Option<u32>) {
        self.edges.entry((process, before)).or_default().insert(Edge { after, place, clock });
        if let Some(clock) = clock {
            self.clocks.insert((process, after, clock));
        }
    }

    /// A process may leave these messages of a round unconsumed.
    pub fn passed(&mut self, process: u16, local: LocalId, clock: u32, place: Place, heard: &[MessageId]) {
        let number = match self.heard_ids.get(heard) {
            Some(&known) => known,
            None => {
                self.heard.push(heard.into());
                let number = self.heard.len() as u32 - 1;
                self.heard_ids.insert(heard.into(), number);
                number
            }
        };
        self.passed.insert(Passed { process, local, clock, place, heard: number });
    }

    /// Whether some step could break one of the conditions 1, 2, 3 and 5.
    pub fn suspects(&mut self, protocol: &mut Protocol) -> Result<bool> {
        self.spread();
        Ok(self.sends(protocol)? || self.receipts(protocol)?)
    }

    /// Steps that neither consume nor send leave the clock unchanged.
    fn spread(&mut self) {
        let mut pending: Vec<_> = self.clocks.iter().copied().collect();
        while let Some((process, local, clock)) = pending.pop() {
            for edge in self.edges.get(&(process, local)).into_iter().flatten().filter(|edge| edge.clock.is_none()) {
                if self.clocks.insert((process, edge.after, clock)) {
                    pending.push((process, edge.after, clock));
                }
            }
        }
    }

    /// Whether an enabled action sends a message of an earlier round than its process is in.
    fn sends(&self, protocol: &mut Protocol) -> Result<bool> {
        let mut latest: FxHashMap<(u16, LocalId), u32> = FxHashMap::default();
        for &(process, local, clock) in &self.clocks {
            let known = latest.entry((process, local)).or_default();
            *known = clock.max(*known);
        }
        for ((process, local), clock) in latest {
            let prospects = protocol.prospects(process, local)?;
            if prospects.firsts.first().is_some_and(|&first| 2 * first < clock) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether messages that were not consumed are accepted later, when the process is past its round.
    fn receipts(&self, protocol: &mut Protocol) -> Result<bool> {
        let mut met = self.passed.clone();
        let mut pending: Vec<Passed> = met.iter().copied().collect();
        let mut accepted: FxHashMap<(u16, LocalId, u32), bool> = FxHashMap::default();
        while let Some(passed) = pending.pop() {
            let Passed { process, local, clock, place, heard } = passed;
            if 2 * place + 1 < clock {
                let key = (process, local, heard);
                let known = accepted.get(&key).copied();
                let accepts = match known {
                    Some(known) => known,
                    None => accepts(protocol, process, local, &self.heard[heard as usize])?,
                };
                if accepts {
                    return Ok(true);
                }
                accepted.insert(key, accepts);
            }
            for edge in self.edges.get(&(process, local)).into_iter().flatten() {
                let after = Passed { local: edge.after, clock: edge.clock.unwrap_or(clock), ..passed };
                if edge.place > place && met.insert(after) {
                    pending.push(after);
                }
            }
        }
        Ok(false)
    }
}

/// Whether some handler could consume some of these messages.
fn accepts(protocol: &mut Protocol, process: u16, local: LocalId, heard: &[MessageId]) -> Result<bool> {
    let tables = protocol.tables;
    if tables.model.status(local) != Status::Up {
        return Ok(false);
    }
    let mut transitions = protocol.transitions(process, local, heard)?.iter();
    Ok(transitions.any(|transition| !tables.details(transition).consumed.is_empty()))
}

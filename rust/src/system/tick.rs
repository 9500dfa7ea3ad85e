//! Time: one tick advances the running clocks of all processes. With drift, each process has a tick of its own.
//!
//! A clock is a record in a field of a local state (`Clock` in `src/plait/model/clock.py`): how many ticks it has counted,
//! whether it runs, and its bound. Above the bound it stands still. An urgent step that is enabled in any process forbids
//! the tick. A tick that changes nothing is no transition.
//!
//! With drift, the *lead* of a process is how many ticks it is ahead of the slowest one. It is part of its node. A process
//! ticks while its lead is less than the drift; when the last process without a lead ticks, the lead of all others shrinks.

use crate::system::encoding;
use crate::system::model::{LocalId, Result, Status};
use crate::system::successors::{TransitionRef, View};
use crate::system::tables::{Details, Kind, Node, NodeId, Tables, Transition};
use crate::system::values::Values;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The handler of a tick, in fairness assumptions and in details of transitions.
pub const TICK: u16 = u16::MAX - 1;

/// The clocks of a system.
#[derive(Clone, Debug, Default)]
pub struct Time {
    /// Per process, the fields that are clocks, and whether they are durable: only those run while the process is down.
    pub clocks: Vec<Vec<(usize, bool)>>,
    /// Per process, the handlers that forbid the tick while they are enabled.
    pub urgent: Vec<Vec<u16>>,
    /// By how many ticks processes may be apart. 0: all tick at once.
    pub drift: u8,
}

impl Time {
    /// Whether the nodes of a process have the tick: those of one process, or with drift those of all that have clocks.
    pub fn ticks(&self, process: usize) -> bool {
        self.has_clocks(process) && (self.drift > 0 || !(0..process).any(|before| self.has_clocks(before)))
    }

    fn has_clocks(&self, process: usize) -> bool {
        !self.clocks[process].is_empty()
    }

    /// The processes that have clocks.
    fn timed(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.clocks.len()).filter(|&process| self.has_clocks(process))
    }

    fn is_urgent(&self, process: usize, details: Details) -> bool {
        details.kind == Kind::Step && self.urgent[process].contains(&details.handler)
    }

    /// A local state after a tick.
    pub fn ticked(&self, values: &Values, process: usize, local: LocalId) -> LocalId {
        let status = values.status(local);
        let mut fields = values.fields(local).to_vec();
        for &(field, durable) in &self.clocks[process] {
            let runs = status == Status::Up || status == Status::Down && durable;
            // A process that is unborn has no fields.
            if runs && let Some(content) = ticked(values.field_content(fields[field])) {
                fields[field] = values.field(&content);
            }
        }
        values.local_of(status, &fields)
    }
}

/// The content of a clock after a tick; none if it stands still: it is stopped, or above its bound.
fn ticked(clock: &[u8]) -> Option<Vec<u8>> {
    let (_, fields) = encoding::record(clock).expect("a clock is a record");
    let [count, running, bound] = fields[..] else { unreachable!("a clock has three fields") };
    let count_at = clock.len() - count.len() - running.len() - bound.len();
    let number = |field: &[u8]| encoding::varint(&field[1..]).0 >> 1;
    if running == b"F" || number(count) > number(bound) {
        return None;
    }
    let mut after = clock[..count_at].to_vec();
    encoding::natural(number(count) + 1, &mut after);
    after.extend_from_slice(running);
    after.extend_from_slice(bound);
    Some(after)
}

/// What one worker remembers of time.
#[derive(Default)]
pub(super) struct Times {
    /// By situated node, whether it has an urgent step, which may depend on other nodes.
    urgent: FxHashMap<NodeId, bool>,
    /// By node, the local state after a tick.
    ticked: FxHashMap<NodeId, LocalId>,
}

/// What a tick does to a state.
pub(super) struct Tick {
    /// The processes whose nodes change, and their new nodes.
    pub after: SmallVec<[(usize, NodeId); 8]>,
    /// Whether time changes clocks here, and not only the leads of processes.
    pub moves: bool,
}

impl Tables {
    /// A local state after a tick.
    fn ticked(&self, process: u16, local: LocalId) -> Result<LocalId> {
        let (known, key) = (&self.answers.ticks, (process, local));
        if let Some(found) = known.get(&key) {
            return Ok(found);
        }
        let _filling = self.fill();
        Ok(known.insert(key, self.model.tick(process as usize, local)?))
    }
}

impl<'t> View<'t> {
    /// The local state of a node after a tick.
    fn ticked(&mut self, node: NodeId) -> Result<LocalId> {
        if let Some(&known) = self.times.ticked.get(&node) {
            return Ok(known);
        }
        let Node { process, local, .. } = *self.tables.node(node);
        let found = if self.time().has_clocks(process as usize) { self.tables.ticked(process, local)? } else { local };
        self.times.ticked.insert(node, found);
        Ok(found)
    }

    fn time(&self) -> &'t Time {
        self.tables.model.shape().time.as_ref().expect("a model with clocks")
    }

    /// Whether a process can take an urgent step. One that would send to a full channel is not possible.
    fn is_urgent(&mut self, state: &[u32], process: usize) -> Result<bool> {
        let (tables, time) = (self.tables, self.time());
        if time.urgent[process].is_empty() {
            return Ok(false);
        }
        let node = self.situated(state, process)?;
        let is_urgent = |transition: &Transition| time.is_urgent(process, tables.details(transition));
        let transitions = tables.transitions(node)?;
        if !*self.times.urgent.entry(node).or_insert_with(|| transitions.iter().any(is_urgent)) {
            return Ok(false);
        }
        for (index, transition) in transitions.iter().enumerate() {
            let via = TransitionRef { process: process as u16, index: index as u32 };
            if is_urgent(transition) && (transition.simple || self.involved(state, 0u64, via)?.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The processes that can take an urgent step, as bits; none if there are too many processes for that. Steps that are
    /// blocked count only if a test asks for that.
    pub(crate) fn urgent(&mut self, state: &[u32], possible: bool) -> Result<u64> {
        let mut found = 0;
        for process in 0..self.movers {
            let mut is_urgent = self.is_urgent(state, process)?;
            if !possible {
                let node = self.situated(state, process)?;
                is_urgent |= self.times.urgent.get(&node).is_some_and(|&urgent| urgent);
            }
            found |= u64::from(is_urgent) << (process % 64);
        }
        Ok(if self.movers > 64 { 0 } else { found })
    }

    /// Whether time can go on for ever in a state without a change: a tick is not forbidden, and changes nothing. Then a run
    /// may stay there, whatever steps are enabled.
    pub(crate) fn rests(&mut self, state: &[u32]) -> Result<bool> {
        let Some(time) = self.tables.model.shape().time.as_ref() else { return Ok(false) };
        for process in 0..self.movers {
            let changes = time.ticks(process) && self.tick(state, process)?.is_some();
            if changes || self.is_urgent(state, process)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What a tick (with drift, of this process) does to a state; none if it is not possible, or changes nothing.
    pub(super) fn tick(&mut self, state: &[u32], process: usize) -> Result<Option<Tick>> {
        let tables = self.tables;
        let time = self.time();
        let mut moves = false;
        for (other, &node) in state[..self.movers].iter().enumerate() {
            if self.is_urgent(state, other)? {
                return Ok(None);
            }
            moves |= self.ticked(node)? != tables.node(node).local;
        }
        let mut after = SmallVec::new();
        if time.drift == 0 {
            for process in time.timed() {
                let node = state[process];
                after.push((process, tables.node_after(node, self.ticked(node)?, 0)));
            }
        } else {
            let lead = |process: usize| tables.node(state[process]).lead;
            let last = lead(process) == 0 && time.timed().all(|other| other == process || lead(other) > 0);
            if lead(process) == time.drift {
                return Ok(None);
            }
            let ticked = self.ticked(state[process])?;
            after.push((process, tables.node_after(state[process], ticked, lead(process) + u8::from(!last))));
            for other in time.timed().filter(|&other| last && other != process) {
                let local = tables.node(state[other]).local;
                after.push((other, tables.node_after(state[other], local, lead(other) - 1)));
            }
        }
        after.retain(|(process, node)| *node != state[*process]);
        Ok((!after.is_empty()).then_some(Tick { after, moves }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of a class `C` with a count, whether it runs, and a bound.
    fn clock(count: u8, running: u8, bound: u8) -> Vec<u8> {
        vec![b'D', 1, b'C', 3, b'i', count << 1, running, b'i', bound << 1]
    }

    #[test]
    fn a_clock_stands_still_above_its_bound_and_while_it_is_stopped() {
        assert_eq!(ticked(&clock(0, b'T', 2)), Some(clock(1, b'T', 2)));
        assert_eq!(ticked(&clock(2, b'T', 2)), Some(clock(3, b'T', 2)));
        assert_eq!(ticked(&clock(3, b'T', 2)), None);
        assert_eq!(ticked(&clock(0, b'F', 2)), None);
    }

    #[test]
    fn while_a_process_is_down_only_its_durable_clocks_run() {
        let values = Values::default();
        let time = Time { clocks: vec![vec![(0, true), (1, false)]], urgent: vec![vec![]], drift: 0 };
        let local = |status, first, second| {
            values.local_of(status, &[values.field(&clock(first, b'T', 5)), values.field(&clock(second, b'T', 5))])
        };
        assert_eq!(time.ticked(&values, 0, local(Status::Up, 1, 1)), local(Status::Up, 2, 2));
        assert_eq!(time.ticked(&values, 0, local(Status::Down, 1, 1)), local(Status::Down, 2, 1));
        assert_eq!(time.ticked(&values, 0, local(Status::Crashed, 1, 1)), local(Status::Crashed, 1, 1));
        let unborn = values.local_of(Status::Unborn, &[]);
        assert_eq!(time.ticked(&values, 0, unborn), unborn);
    }
}

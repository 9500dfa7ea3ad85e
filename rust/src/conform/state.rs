//! A state of the system with the explained part of the log, and what a step changes in it.

use crate::conform::log::{Label, Log};
use crate::system::expander::Expander;
use crate::system::inbox;
use crate::system::model::{FieldId, LocalId, MessageId, Network, Outcome, Result, Status};
use crate::system::tables::{Kind, OutcomesId, Tables};
use std::rc::Rc;
use xxhash_rust::xxh3::xxh3_128;

/// A step, and how many of the next events of its process it explains.
#[derive(Clone, Debug)]
pub struct Move {
    pub process: u16,
    pub kind: Kind,
    /// The handler of a step; of a crash, the fault; of a loss, the number of the loss among those that are possible.
    pub handler: u16,
    pub consumed: Box<[MessageId]>,
    /// What the handler did.
    pub outcome: Option<(OutcomesId, u32)>,
    pub explains: u32,
}

impl Move {
    pub fn label(&self) -> Label {
        match self.kind {
            Kind::Step | Kind::Tick => Label::Handler(self.handler),
            Kind::Crash => Label::Crash,
            Kind::Recover => Label::Recover,
            Kind::Lose => Label::Lose,
            Kind::Duplicate => Label::Duplicate,
        }
    }
}

#[derive(Clone, Debug)]
pub struct State {
    /// Of processes, then of cells.
    pub locals: Vec<LocalId>,
    /// In canonical order (`system::inbox`).
    pub inboxes: Vec<Rc<Vec<MessageId>>>,
    inbox_keys: Vec<u128>,
    pub budgets: Vec<u32>,
    /// By process, how many of its events are explained.
    pub front: Vec<u32>,
}

const LOCAL: u32 = 1;
const PENDING: u32 = 2;
const FRONT: u32 = 3;
const BUDGET: u32 = 4;

/// A number for a component of a state. Components are ids of interned values, so equal ones have equal content.
fn mixed(kind: u32, position: usize, value: u32) -> u128 {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&kind.to_le_bytes());
    bytes[4..8].copy_from_slice(&(position as u32).to_le_bytes());
    bytes[8..].copy_from_slice(&value.to_le_bytes());
    xxh3_128(&bytes)
}

impl State {
    pub fn new(tables: &Tables, state: &[u32], processes: usize) -> State {
        let shape = tables.model.shape();
        let nodes = state[..shape.processes].iter().map(|&node| tables.node(node));
        let (locals, inboxes): (Vec<LocalId>, Vec<Rc<Vec<MessageId>>>) =
            nodes.map(|node| (node.local, Rc::new(tables.inbox(node.inbox).to_vec()))).unzip();
        let inbox_keys = vec![0; locals.len()];
        let budgets = state[shape.processes + shape.monitors..].to_vec();
        let mut made = State { locals, inboxes, inbox_keys, budgets, front: vec![0; processes] };
        for process in 0..made.inboxes.len() {
            made.set_inbox(tables, process, made.inboxes[process].clone());
        }
        made
    }

    /// The same number for the same state, and for others another one.
    pub fn key(&self) -> u128 {
        let locals = self.locals.iter().enumerate().map(|(at, &local)| mixed(LOCAL, at, local));
        let fronts = self.front.iter().enumerate().map(|(at, &front)| mixed(FRONT, at, front));
        let budgets = self.budgets.iter().enumerate().map(|(at, &left)| mixed(BUDGET, at, left));
        let parts = locals.chain(fronts).chain(budgets).chain(self.inbox_keys.iter().copied());
        parts.fold(0, u128::wrapping_add)
    }

    pub fn pending(&self) -> usize {
        self.inboxes.iter().map(|inbox| inbox.len()).sum()
    }

    /// The contents of the cells.
    pub fn cells(&self, tables: &Tables) -> Vec<FieldId> {
        let values = tables.model.values();
        self.locals[tables.model.shape().movers()..].iter().map(|&cell| values.fields(cell)[0]).collect()
    }

    fn set_inbox(&mut self, tables: &Tables, process: usize, inbox: Rc<Vec<MessageId>>) {
        self.inbox_keys[process] = if tables.model.shape().network.is_ordered() {
            let ids = inbox.iter().flat_map(|message| message.to_le_bytes());
            let bytes: Vec<u8> = (process as u32).to_le_bytes().into_iter().chain(ids).collect();
            xxh3_128(&bytes)
        } else {
            inbox.iter().fold(0, |sum, &message| sum.wrapping_add(mixed(PENDING, process, message)))
        };
        self.inboxes[process] = inbox;
    }

    fn take_out(&mut self, tables: &Tables, process: usize, messages: &[MessageId]) {
        if messages.is_empty() {
            return;
        }
        let network = tables.model.shape().network;
        let rest = Rc::new(inbox::remove(&*tables.model, &self.inboxes[process], messages));
        if network == Network::Bag {
            for &message in messages {
                let key = mixed(PENDING, process, message);
                self.inbox_keys[process] = self.inbox_keys[process].wrapping_sub(key);
            }
            self.inboxes[process] = rest;
        } else {
            self.set_inbox(tables, process, rest);
        }
    }

    fn put_in(&mut self, tables: &Tables, process: usize, messages: &[MessageId]) {
        let shape = tables.model.shape();
        let full = Rc::new(inbox::insert(&*tables.model, &self.inboxes[process], messages));
        if shape.network == Network::Bag && shape.capacity.is_none() {
            for &message in messages {
                let key = mixed(PENDING, process, message);
                self.inbox_keys[process] = self.inbox_keys[process].wrapping_add(key);
            }
            self.inboxes[process] = full;
        } else {
            self.set_inbox(tables, process, full);
        }
    }

    /// Whether a step that takes these messages can have this outcome: processes are born in free slots, and channels have room.
    pub fn allows(&self, tables: &Tables, process: usize, consumed: &[MessageId], outcome: &Outcome) -> bool {
        let (model, values) = (&*tables.model, tables.model.values());
        let is_unborn = |slot: u16| values.status(self.locals[usize::from(slot)]) == Status::Unborn;
        if !outcome.rare().expected.iter().all(|&(slot, wanted)| is_unborn(slot) == wanted) {
            return false;
        }
        if model.shape().blocks().is_none() || outcome.sends.is_empty() {
            return true;
        }
        (0..model.shape().movers()).all(|to| {
            let mine = outcome.sends.iter().filter(|&&(other, _)| usize::from(other) == to);
            let mine: Vec<MessageId> = mine.map(|&(_, message)| message).collect();
            if to == process {
                inbox::has_room(model, &inbox::remove(model, &self.inboxes[to], consumed), &mine)
            } else {
                values.status(self.locals[to]) == Status::Crashed || inbox::has_room(model, &self.inboxes[to], &mine)
            }
        })
    }

    /// Take a step, and mark the events that it explains.
    pub fn take(&mut self, tables: &Tables, step: &Move) -> Result<()> {
        let process = usize::from(step.process);
        let shape = tables.model.shape();
        match step.kind {
            Kind::Step | Kind::Recover => {
                self.take_out(tables, process, &step.consumed);
                let (outcomes, number) = step.outcome.expect("a handler that ran has an outcome");
                let outcome = &tables.outcomes(outcomes)[number as usize];
                self.locals[process] = outcome.local;
                for &(slot, local) in &outcome.rare().spawns {
                    self.locals[usize::from(slot)] = local;
                }
                self.deliver(tables, &outcome.sends);
            }
            Kind::Crash => {
                let fault = usize::from(step.handler);
                self.budgets[shape.crash_budget(fault)] -= 1;
                let expander = Expander::new(tables, 0, &[]);
                let recovers = shape.faults[fault].recovers;
                self.locals[process] = expander.crash(step.process, self.locals[process], recovers)?;
                if !recovers {
                    self.set_inbox(tables, process, Rc::default());
                }
            }
            Kind::Lose => {
                if let Some(budget) = shape.loss_budget() {
                    self.budgets[budget] -= 1;
                }
                let rest = inbox::losses(&self.inboxes[process]).swap_remove(usize::from(step.handler)).1;
                self.set_inbox(tables, process, Rc::new(rest));
            }
            Kind::Duplicate => {
                self.budgets[shape.duplication_budget().expect("copies are bounded")] -= 1;
                self.put_in(tables, process, &step.consumed);
            }
            Kind::Tick => unreachable!("time is not searched"),
        }
        self.front[process] += step.explains;
        Ok(())
    }

    /// Explain the events that only say what fields are, where it is true.
    pub fn settle(&mut self, tables: &Tables, log: &Log) {
        let values = tables.model.values();
        loop {
            let mut more = false;
            for process in 0..log.events.len() {
                while let Some(event) = log.next(&self.front, process).filter(|event| event.is_state()) {
                    if !log.is_ready(&self.front, event) || !event.fits(values, self.locals[process]) {
                        break;
                    }
                    self.front[process] += 1;
                    more = true;
                }
            }
            if !more {
                return;
            }
        }
    }

    /// Messages of one step arrive. Those to a crashed process vanish.
    fn deliver(&mut self, tables: &Tables, sends: &[(u16, MessageId)]) {
        let mut left: Vec<(u16, MessageId)> = sends.to_vec();
        while let Some(&(to, _)) = left.first() {
            let (mine, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|&(other, _)| other == to);
            if tables.model.values().status(self.locals[usize::from(to)]) != Status::Crashed {
                let messages: Vec<MessageId> = mine.into_iter().map(|(_, message)| message).collect();
                self.put_in(tables, usize::from(to), &messages);
            }
            left = others;
        }
    }

    /// The components of the state, with these monitors, as `Tables` has them.
    pub fn components(&self, tables: &Tables, monitors: &[u32]) -> Vec<u32> {
        let made =
            |process: usize| tables.node_of(process, self.locals[process], &self.inboxes[process], tables.last(&[]), 0);
        (0..self.locals.len()).map(made).chain(monitors.iter().copied()).chain(self.budgets.iter().copied()).collect()
    }
}

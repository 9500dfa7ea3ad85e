//! Follows a run once more: with its monitors and its properties, which the search for it does not look at.

use crate::conform::log::Log;
use crate::conform::search::Reached;
use crate::conform::state::State;
use crate::system::model::{Component, MonitorId, Parts, PropertyKind, Result, Truth};
use crate::system::tables::{InboxId, Kind, Tables};
use std::sync::Arc;

/// A property that is false (or raises an exception: none), or a monitor that raises one, after some steps of a run.
pub struct Decided {
    pub property: Option<usize>,
    pub value: Truth,
    pub message: Option<String>,
    pub step: usize,
}

/// A run with its states.
#[derive(Default)]
pub struct Followed {
    /// The first time that each property was false, or a monitor raised an exception.
    pub decided: Vec<Decided>,
    /// The components of the last states, and of all if they are few: how many steps lead there.
    pub states: Vec<(usize, Vec<u32>)>,
    /// By number of an event, after how many steps it is explained.
    pub explained: Vec<Option<u32>>,
}

/// Follow a run from an initial state of the tables. Keep so many of the last states.
pub fn follow(tables: &Tables, log: &Log, start: &[u32], reached: &Reached, keep: usize) -> Result<Followed> {
    let shape = tables.model.shape();
    let mut state = State::new(tables, start, reached.state.front.len());
    let mut monitors: Vec<MonitorId> = start[shape.processes..shape.processes + shape.monitors].to_vec();
    let always = (0..shape.properties.len()).filter(|&property| shape.properties[property] == PropertyKind::Always);
    let mut watched: Vec<Watched> = always.map(Watched::new).collect();
    let mut inboxes: Vec<Option<InboxId>> = vec![None; state.locals.len()];
    let mut followed = Followed::default();
    let mut fronts = state.front.clone();
    followed.explained.resize(log.len(), None);
    let mut silent = false;
    for number in 0..=reached.steps.len() {
        let front = fronts;
        state.settle(tables, log);
        fronts = state.front.clone();
        for (events, (&from, &to)) in log.events.iter().zip(front.iter().zip(&fronts)) {
            for event in &events[from as usize..to as usize] {
                followed.explained[event.number as usize] = Some(number as u32);
            }
        }
        for one in watched.iter_mut().filter(|one| !one.done) {
            let value = one.value(tables, &state, &monitors, &mut inboxes)?;
            if value != Some(true) {
                one.done = true;
                followed.decided.push(Decided { property: Some(one.property), value, message: None, step: number });
            }
        }
        if number + keep > reached.steps.len() {
            followed.states.push((number, state.components(tables, &monitors)));
        }
        let Some(step) = reached.steps.get(number) else { break };
        let before = state.inboxes.clone();
        state.take(tables, step)?;
        for (known, (now, then)) in inboxes.iter_mut().zip(state.inboxes.iter().zip(&before)) {
            if !std::rc::Rc::ptr_eq(now, then) {
                *known = None;
            }
        }
        let Some((outcomes, which)) = step.outcome.filter(|_| matches!(step.kind, Kind::Step | Kind::Recover)) else {
            continue;
        };
        for &event in &tables.outcomes(outcomes)[which as usize].rare().events {
            for (monitor, now) in monitors.iter_mut().enumerate() {
                match tables.observation(monitor, *now, event)? {
                    Ok(next) => *now = next,
                    Err(failure) if !silent => {
                        let failure = Arc::unwrap_or_clone(failure);
                        silent = true;
                        let (message, step) = (Some(failure.message), number + 1);
                        followed.decided.push(Decided { property: None, value: None, message, step });
                    }
                    Err(_) => {}
                }
            }
        }
    }
    Ok(followed)
}

/// A property along a run, with what it read of the last state in which it was evaluated.
struct Watched {
    property: usize,
    reads: Vec<(Component, u32)>,
    value: Option<Truth>,
    done: bool,
}

impl Watched {
    fn new(property: usize) -> Watched {
        Watched { property, reads: Vec::new(), value: None, done: false }
    }

    /// Its value in a state. It is not evaluated again if nothing changed that it reads.
    fn value(
        &mut self,
        tables: &Tables,
        state: &State,
        monitors: &[MonitorId],
        inboxes: &mut [Option<InboxId>],
    ) -> Result<Truth> {
        let model = &*tables.model;
        let mut now = |component: Component| match component {
            Component::Field(process, part) => {
                let parts = model.values().parts(state.locals[usize::from(process)]);
                parts.get(usize::from(part)).copied().unwrap_or(u32::MAX)
            }
            Component::Inbox(process) => interned(tables, state, usize::from(process), inboxes),
            Component::Monitor(monitor) => monitors[usize::from(monitor)],
        };
        if let Some(value) = self.value
            && self.reads.iter().all(|&(component, then)| now(component) == then)
        {
            return Ok(value);
        }
        let whole = model.shape().quantifiers[self.property].parts;
        loop {
            // An inbox gets an id when a property reads it: most do not, and inboxes may be large.
            let ids: Vec<InboxId> = inboxes.iter().map(|id| id.unwrap_or_default()).collect();
            let inbox = |process: usize| &state.inboxes[process][..];
            let parts = Parts { locals: &state.locals, inboxes: &ids, monitors, inbox: &inbox };
            let found = model.evaluate(self.property, whole, &parts)?;
            let unknown = found.reads.iter().find_map(|read| match *read {
                Component::Inbox(process) if inboxes[usize::from(process)].is_none() => Some(usize::from(process)),
                _ => None,
            });
            if let Some(process) = unknown {
                interned(tables, state, process, inboxes);
                continue;
            }
            let mut now = |component: Component| match component {
                Component::Field(process, part) => {
                    let parts = model.values().parts(state.locals[usize::from(process)]);
                    parts.get(usize::from(part)).copied().unwrap_or(u32::MAX)
                }
                Component::Inbox(process) => interned(tables, state, usize::from(process), inboxes),
                Component::Monitor(monitor) => monitors[usize::from(monitor)],
            };
            self.reads = found.reads.iter().map(|&component| (component, now(component))).collect();
            self.value = Some(found.value);
            return Ok(found.value);
        }
    }
}

fn interned(tables: &Tables, state: &State, process: usize, inboxes: &mut [Option<InboxId>]) -> InboxId {
    *inboxes[process].get_or_insert_with(|| {
        let node = tables.node_of(process, state.locals[process], &state.inboxes[process], tables.last(&[]), 0);
        tables.node(node).inbox
    })
}

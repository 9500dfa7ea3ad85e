//! Lamport's mutual exclusion, the same model as `plait.protocols.lamport_mutex` with quorum=False and entries=None.
//! Messages from one process to another arrive in order. A request that would set a clock beyond the limit is never
//! received. Here the limit is a boundary, because Stateright drops a message of an ordered network if its guard is false.
//!
//! Steps without a message are timers. The timers are always set, so they add no states. A timer whose guard is false
//! makes no step.

use stateright::actor::{model_peers, Actor, ActorModel, Id, Network, Out};
use stateright::Expectation;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

pub type Clock = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    Request(Clock),
    Ack,
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Idle,
    Waiting,
    Critical,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    clock: Clock,
    phase: Phase,
    /// The known requests, including its own.
    queue: BTreeSet<(Clock, Id)>,
    acks: BTreeSet<Id>,
}

impl State {
    fn forget(&mut self, who: Id) {
        self.queue.retain(|&(_, asking)| asking != who);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Act;

#[derive(Clone, Debug)]
pub struct Contender {
    others: Vec<Id>,
}

fn set_timer(out: &mut Out<Contender>) {
    out.set_timer(Act, Duration::ZERO..Duration::ZERO);
}

impl Actor for Contender {
    type Msg = Message;
    type State = State;
    type Timer = Act;
    type Random = ();
    type Storage = ();

    fn on_start(&self, _: Id, _: &Option<()>, out: &mut Out<Self>) -> State {
        set_timer(out);
        State {
            clock: 1,
            phase: Phase::Idle,
            queue: BTreeSet::new(),
            acks: BTreeSet::new(),
        }
    }

    fn on_timeout(&self, me: Id, state: &mut Cow<State>, _: &Act, out: &mut Out<Self>) {
        set_timer(out);
        match state.phase {
            Phase::Idle => {
                let state = state.to_mut();
                state.phase = Phase::Waiting;
                state.queue.insert((state.clock, me));
                out.broadcast(&self.others, &Message::Request(state.clock));
            }
            Phase::Waiting => {
                let first = state.queue.first().is_some_and(|&(_, asking)| asking == me);
                if first && state.acks.len() == self.others.len() {
                    state.to_mut().phase = Phase::Critical;
                }
            }
            Phase::Critical => {
                let state = state.to_mut();
                state.phase = Phase::Idle;
                state.acks.clear();
                state.forget(me);
                out.broadcast(&self.others, &Message::Release);
            }
        }
    }

    fn on_msg(&self, _: Id, state: &mut Cow<State>, from: Id, msg: Message, out: &mut Out<Self>) {
        match msg {
            Message::Request(clock) => {
                let state = state.to_mut();
                state.clock = clock.max(state.clock) + 1;
                state.queue.insert((clock, from));
                out.send(from, Message::Ack);
            }
            Message::Ack => {
                state.to_mut().acks.insert(from);
            }
            Message::Release => state.to_mut().forget(from),
        }
    }
}

pub fn model(processes: usize, limit: Clock) -> ActorModel<Contender, Clock> {
    ActorModel::new(limit, ())
        .actors((0..processes).map(|place| Contender {
            others: model_peers(place, processes),
        }))
        .init_network(Network::new_ordered([]))
        .within_boundary(|limit, state| {
            state.actor_states.iter().all(|actor| actor.clock <= *limit)
        })
        .property(Expectation::Always, "mutual exclusion", |_, state| {
            let critical = |actor: &&std::sync::Arc<State>| actor.phase == Phase::Critical;
            state.actor_states.iter().filter(critical).count() <= 1
        })
}

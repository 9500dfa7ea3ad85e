//! Paxos, the same model as `plait.protocols.paxos` with quorum=False. A proposer owns one ballot and proposes once.
//! Processes consume single messages and count them.
//!
//! Actors 0 to P - 1 are proposers (actor i owns ballot and value i + 1), then come the acceptors, then the learners. A
//! timer starts a proposer. It is set once, so it is part of the state only while the proposer is idle. If a guard rejects
//! a message, the state does not change and the message stays pending: Stateright ignores such a delivery.

use stateright::actor::{majority, Actor, ActorModel, ActorModelState, Id, Network, Out};
use stateright::Expectation;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

pub type Number = u8;

/// A ballot and the value accepted with it.
pub type Vote = (Number, Number);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    Read(Number),
    ReadReply(Number, Option<Vote>),
    Write(Number, Number),
    Accept(Number, Number),
}
use Message::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    Idle,
    Reading,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State {
    Proposer {
        phase: Phase,
        count: Number,
        best: Option<Vote>,
    },
    Acceptor {
        promised: Number,
        accepted: Option<Vote>,
    },
    /// For each ballot the votes, and the value if there were enough.
    Learner {
        votes: Vec<Number>,
        learned: Vec<Option<Number>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Start;

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub proposers: usize,
    pub acceptors: usize,
    pub learners: usize,
}

impl Sizes {
    fn acceptors(self) -> Vec<Id> {
        (self.proposers..self.proposers + self.acceptors)
            .map(Id::from)
            .collect()
    }

    fn learners(self) -> Vec<Id> {
        let first = self.proposers + self.acceptors;
        (first..first + self.learners).map(Id::from).collect()
    }

    fn majority(self) -> Number {
        majority(self.acceptors) as Number
    }
}

fn ballot(proposer: Id) -> Number {
    usize::from(proposer) as Number + 1
}

/// One process of any role. Its id determines the role.
#[derive(Clone, Debug)]
pub struct Node {
    sizes: Sizes,
}

impl Node {
    fn read(&self, me: Id, state: &mut State, reply: Option<Vote>, out: &mut Out<Self>) {
        let State::Proposer { phase, count, best } = state else {
            unreachable!("only proposers are sent replies")
        };
        *count += 1;
        *best = (*best).max(reply);
        if *count == self.sizes.majority() {
            let value = best.map_or(ballot(me), |(_, value)| value);
            (*phase, *count, *best) = (Phase::Done, 0, None);
            out.broadcast(&self.sizes.acceptors(), &Write(ballot(me), value));
        }
    }

    fn learn(&self, state: &mut State, ballot: Number, value: Number) {
        let State::Learner { votes, learned } = state else {
            unreachable!("only learners are sent votes")
        };
        let place = usize::from(ballot) - 1;
        votes[place] += 1;
        if votes[place] == self.sizes.majority() {
            learned[place] = Some(value);
        }
    }
}

impl Actor for Node {
    type Msg = Message;
    type State = State;
    type Timer = Start;
    type Random = ();
    type Storage = ();

    fn on_start(&self, id: Id, _: &Option<()>, out: &mut Out<Self>) -> State {
        let Sizes {
            proposers,
            acceptors,
            ..
        } = self.sizes;
        match usize::from(id) {
            place if place < proposers => {
                out.set_timer(Start, Duration::ZERO..Duration::ZERO);
                State::Proposer {
                    phase: Phase::Idle,
                    count: 0,
                    best: None,
                }
            }
            place if place < proposers + acceptors => State::Acceptor {
                promised: 0,
                accepted: None,
            },
            _ => State::Learner {
                votes: vec![0; proposers],
                learned: vec![None; proposers],
            },
        }
    }

    fn on_timeout(&self, me: Id, state: &mut Cow<State>, _: &Start, out: &mut Out<Self>) {
        if let State::Proposer { phase, .. } = state.to_mut() {
            *phase = Phase::Reading;
            out.broadcast(&self.sizes.acceptors(), &Read(ballot(me)));
        }
    }

    fn on_msg(&self, me: Id, state: &mut Cow<State>, from: Id, msg: Message, out: &mut Out<Self>) {
        match (msg, state.as_ref()) {
            (Read(ballot), &State::Acceptor { promised, accepted }) if ballot > promised => {
                *state.to_mut() = State::Acceptor {
                    promised: ballot,
                    accepted,
                };
                out.send(from, ReadReply(ballot, accepted));
            }
            (ReadReply(_, vote), State::Proposer { phase, .. }) if *phase == Phase::Reading => {
                self.read(me, state.to_mut(), vote, out);
            }
            (Write(ballot, value), &State::Acceptor { promised, .. }) if ballot >= promised => {
                *state.to_mut() = State::Acceptor {
                    promised: ballot,
                    accepted: Some((ballot, value)),
                };
                out.broadcast(&self.sizes.learners(), &Accept(ballot, value));
            }
            (Accept(ballot, value), State::Learner { learned, .. })
                if learned[usize::from(ballot) - 1].is_none() =>
            {
                self.learn(state.to_mut(), ballot, value);
            }
            _ => {}
        }
    }
}

fn agreement(state: &ActorModelState<Node>) -> bool {
    let mut values: BTreeSet<Number> = BTreeSet::new();
    for actor in &state.actor_states {
        if let State::Learner { learned, .. } = actor.as_ref() {
            values.extend(learned.iter().flatten());
        }
    }
    values.len() <= 1
}

pub fn model(sizes: Sizes) -> ActorModel<Node> {
    let processes = sizes.proposers + sizes.acceptors + sizes.learners;
    ActorModel::new((), ())
        .actors((0..processes).map(|_| Node { sizes }))
        .init_network(Network::new_unordered_nonduplicating([]))
        .property(Expectation::Always, "agreement", |_, state| {
            agreement(state)
        })
}

//! A server of single-decree Paxos behind Stateright's register interface.
//!
//! The server that receives a client's `Put` becomes the leader of a new ballot. When a majority has accepted, the client
//! gets its `PutOk`, and the leader sends the decision to the other servers. A server answers a `Get` when it knows the
//! decision. Messages from a leader to itself are consumed at once and never enter the network. If a guard rejects a
//! message, the state does not change and the message stays pending: Stateright ignores such a delivery. The network is
//! unordered, lossless and does not duplicate. The linearizability history is part of the state.

use stateright::actor::register::{RegisterActor, RegisterMsg};
use stateright::actor::{majority, model_peers, Actor, ActorModel, Id, Network, Out};
use stateright::semantics::register::Register;
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};
use stateright::Expectation;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

pub type RequestId = u64;
pub type Value = char;
pub type Msg = RegisterMsg<RequestId, Value, Internal>;

/// Ordered by round, then by the leader's id. Two leaders never share a ballot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ballot {
    round: u32,
    leader: Id,
}

/// A proposal: a client's `Put`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Proposal {
    request: RequestId,
    client: Id,
    value: Value,
}

/// A proposal and the ballot that a server accepted it in.
pub type Accepted = (Ballot, Proposal);

/// The messages between servers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Internal {
    Prepare(Ballot),
    Promise(Ballot, Option<Accepted>),
    Propose(Ballot, Proposal),
    Accept(Ballot),
    Decide(Ballot, Proposal),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    ballot: Ballot,
    accepted: Option<Accepted>,
    decided: bool,
    /// As a leader: the proposal, the promises with earlier accepted proposals, the servers that accepted.
    proposal: Option<Proposal>,
    promises: BTreeMap<Id, Option<Accepted>>,
    accepts: BTreeSet<Id>,
}

#[derive(Clone, Debug)]
pub struct Server {
    pub peers: Vec<Id>,
}

impl Server {
    fn majority(&self) -> usize {
        majority(self.peers.len() + 1)
    }

    fn tell_peers(&self, out: &mut Out<Self>, message: Internal) {
        out.broadcast(&self.peers, &RegisterMsg::Internal(message));
    }

    fn lead(&self, me: Id, state: &mut State, proposal: Proposal, out: &mut Out<Self>) {
        state.ballot = Ballot {
            round: state.ballot.round + 1,
            leader: me,
        };
        state.proposal = Some(proposal);
        state.promises = BTreeMap::from([(me, state.accepted)]);
        state.accepts.clear();
        self.tell_peers(out, Internal::Prepare(state.ballot));
    }

    /// With promises of a majority, the leader proposes the proposal accepted in the highest ballot, if there is one.
    fn promised(
        &self,
        me: Id,
        state: &mut State,
        by: Id,
        last: Option<Accepted>,
        out: &mut Out<Self>,
    ) {
        state.promises.insert(by, last);
        if state.promises.len() != self.majority() {
            return;
        }
        let highest = state.promises.values().flatten().max();
        let proposal = match (highest, state.proposal) {
            (Some(&(_, earlier)), _) => earlier,
            (None, Some(own)) => own,
            (None, None) => unreachable!("a promise for a ballot that nobody leads"),
        };
        state.proposal = Some(proposal);
        state.accepted = Some((state.ballot, proposal));
        state.accepts.insert(me);
        self.tell_peers(out, Internal::Propose(state.ballot, proposal));
    }

    fn accepted(&self, state: &mut State, by: Id, out: &mut Out<Self>) {
        state.accepts.insert(by);
        if state.accepts.len() != self.majority() {
            return;
        }
        let proposal = state
            .proposal
            .expect("only a leader's proposal is accepted");
        state.decided = true;
        self.tell_peers(out, Internal::Decide(state.ballot, proposal));
        out.send(proposal.client, RegisterMsg::PutOk(proposal.request));
    }
}

impl Actor for Server {
    type Msg = Msg;
    type State = State;
    type Timer = ();
    type Random = ();
    type Storage = ();

    fn on_start(&self, _: Id, _: &Option<()>, _: &mut Out<Self>) -> State {
        State {
            ballot: Ballot {
                round: 0,
                leader: Id::from(0),
            },
            accepted: None,
            decided: false,
            proposal: None,
            promises: BTreeMap::new(),
            accepts: BTreeSet::new(),
        }
    }

    fn on_msg(&self, me: Id, state: &mut Cow<State>, from: Id, msg: Msg, out: &mut Out<Self>) {
        use Internal::*;
        if state.decided {
            if let (RegisterMsg::Get(request), Some((_, chosen))) = (msg, state.accepted) {
                out.send(from, RegisterMsg::GetOk(request, chosen.value));
            }
            return;
        }
        match msg {
            RegisterMsg::Put(request, value) if state.proposal.is_none() => {
                let proposal = Proposal {
                    request,
                    client: from,
                    value,
                };
                self.lead(me, state.to_mut(), proposal, out);
            }
            RegisterMsg::Internal(Prepare(ballot)) if ballot > state.ballot => {
                state.to_mut().ballot = ballot;
                out.send(from, RegisterMsg::Internal(Promise(ballot, state.accepted)));
            }
            RegisterMsg::Internal(Promise(ballot, last)) if ballot == state.ballot => {
                self.promised(me, state.to_mut(), from, last, out);
            }
            RegisterMsg::Internal(Propose(ballot, proposal)) if ballot >= state.ballot => {
                let state = state.to_mut();
                state.ballot = ballot;
                state.accepted = Some((ballot, proposal));
                out.send(from, RegisterMsg::Internal(Accept(ballot)));
            }
            RegisterMsg::Internal(Accept(ballot)) if ballot == state.ballot => {
                self.accepted(state.to_mut(), from, out);
            }
            RegisterMsg::Internal(Decide(ballot, proposal)) => {
                let state = state.to_mut();
                state.ballot = ballot;
                state.accepted = Some((ballot, proposal));
                state.decided = true;
            }
            _ => {}
        }
    }
}

/// The value of a register before the first write.
const UNWRITTEN: Value = '\0';

type History = LinearizabilityTester<Id, Register<Value>>;

pub fn model(clients: usize, servers: usize) -> ActorModel<RegisterActor<Server>, (), History> {
    ActorModel::new((), History::new(Register(UNWRITTEN)))
        .actors((0..servers).map(|i| {
            RegisterActor::Server(Server {
                peers: model_peers(i, servers),
            })
        }))
        .actors((0..clients).map(|_| RegisterActor::Client {
            put_count: 1,
            server_count: servers,
        }))
        .init_network(Network::new_unordered_nonduplicating([]))
        .record_msg_in(RegisterMsg::record_returns)
        .record_msg_out(RegisterMsg::record_invocations)
        .property(Expectation::Always, "linearizable", |_, state| {
            state.history.is_consistent()
        })
        .property(Expectation::Sometimes, "value chosen", |_, state| {
            state
                .network
                .iter_deliverable()
                .any(|e| matches!(e.msg, RegisterMsg::GetOk(_, value) if *value != UNWRITTEN))
        })
}

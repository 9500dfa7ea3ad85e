//! Raft with logs, the same model as `plait.protocols.raft` with quorum=False. Replies are consumed one by one. In each
//! term, the first servers (`candidates`) may stand for election.
//!
//! Steps without a message are a timer: a leader takes a command, any other server stands for election. The timers are
//! always set, so they add no states. A timer whose guard is false makes no step. If a guard rejects a message, the state
//! is not touched and the message stays pending. Every accepted message is consumed: `to_mut` marks it as a step, even if
//! the state stays equal.

use stateright::actor::{model_peers, Actor, ActorModel, ActorModelState, Id, Network, Out};
use stateright::Expectation;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub type Term = u8;
/// Counts entries from 1; 0 is before the first.
pub type Index = u8;

/// An entry of a log. Its command is not modelled, but different leaders have different commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    term: Term,
    author: Id,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    RequestVote {
        term: Term,
        last_term: Term,
        length: Index,
    },
    Vote(Term),
    Append {
        term: Term,
        previous: Index,
        previous_term: Term,
        entries: Vec<Entry>,
        commit: Index,
    },
    Appended {
        term: Term,
        matching: Index,
    },
    Refused {
        term: Term,
        previous: Index,
    },
}
use Message::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    Follower,
    Candidate,
    Leader,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    role: Role,
    term: Term,
    /// The server for which it voted in its term.
    voted: Option<Id>,
    log: Vec<Entry>,
    /// The entries up to this index are committed.
    commit: Index,
    /// The other servers that voted for this candidate.
    votes: BTreeSet<Id>,
    /// For each other server, the index up to which its log is known to equal this leader's log; 0 if missing.
    matching: BTreeMap<Id, Index>,
}

impl State {
    fn length(&self) -> Index {
        self.log.len() as Index
    }

    fn term_at(&self, index: Index) -> Term {
        match index {
            0 => 0,
            _ => self.log[usize::from(index) - 1].term,
        }
    }

    fn last(&self) -> (Term, Index) {
        (self.term_at(self.length()), self.length())
    }

    /// Begin a new term as a follower that has not voted.
    fn enter(&mut self, term: Term) {
        self.role = Role::Follower;
        self.term = term;
        self.voted = None;
        self.votes.clear();
        self.matching.clear();
    }

    /// All entries after an index, for a follower.
    fn entries_after(&self, previous: Index) -> Message {
        Append {
            term: self.term,
            previous,
            previous_term: self.term_at(previous),
            entries: self.log[usize::from(previous)..].to_vec(),
            commit: self.commit,
        }
    }

    fn committed(&self) -> &[Entry] {
        prefix(&self.log, self.commit)
    }
}

fn prefix(log: &[Entry], index: Index) -> &[Entry] {
    &log[..log.len().min(usize::from(index))]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Act;

#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub servers: usize,
    pub candidates: usize,
    pub terms: Term,
    pub entries: Index,
}

#[derive(Clone, Debug)]
pub struct Server {
    sizes: Sizes,
    others: Vec<Id>,
}

fn set_timer(out: &mut Out<Server>) {
    out.set_timer(Act, Duration::ZERO..Duration::ZERO);
}

impl Server {
    /// The number of other servers that make a majority with itself.
    fn half(&self) -> usize {
        self.sizes.servers / 2
    }

    fn append(&self, state: &mut State, from: Id, message: Message, out: &mut Out<Self>) {
        let Append {
            term,
            previous,
            previous_term,
            entries,
            commit,
        } = message
        else {
            unreachable!("called with entries only")
        };
        if term > state.term {
            state.enter(term);
        }
        state.role = Role::Follower;
        if state.length() < previous || state.term_at(previous) != previous_term {
            out.send(from, Refused { term, previous });
            return;
        }
        let matching = previous + entries.len() as Index;
        // Never remove entries that an older message does not contain.
        if prefix(&state.log, matching)[usize::from(previous)..] != entries[..] {
            state.log.truncate(usize::from(previous));
            state.log.extend(entries);
        }
        state.commit = state.commit.max(commit.min(matching));
        out.send(from, Appended { term, matching });
    }

    fn advance(&self, state: &mut State, from: Id, matching: Index) {
        let known = state.matching.entry(from).or_insert(0);
        *known = matching.max(*known);
        let mut indices: Vec<Index> = state.matching.values().copied().collect();
        indices.sort_unstable_by(|one, other| other.cmp(one));
        let index = indices.get(self.half() - 1).copied().unwrap_or(0);
        if index > state.commit && state.term_at(index) == state.term {
            state.commit = index;
        }
    }
}

impl Actor for Server {
    type Msg = Message;
    type State = State;
    type Timer = Act;
    type Random = ();
    type Storage = ();

    fn on_start(&self, _: Id, _: &Option<()>, out: &mut Out<Self>) -> State {
        set_timer(out);
        State {
            role: Role::Follower,
            term: 0,
            voted: None,
            log: Vec::new(),
            commit: 0,
            votes: BTreeSet::new(),
            matching: BTreeMap::new(),
        }
    }

    fn on_timeout(&self, me: Id, state: &mut Cow<State>, _: &Act, out: &mut Out<Self>) {
        set_timer(out);
        if state.role == Role::Leader {
            if state.length() < self.sizes.entries {
                let state = state.to_mut();
                let previous = state.length();
                state.log.push(Entry {
                    term: state.term,
                    author: me,
                });
                out.broadcast(&self.others, &state.entries_after(previous));
            }
        } else if usize::from(me) < self.sizes.candidates && state.term < self.sizes.terms {
            let state = state.to_mut();
            state.enter(state.term + 1);
            state.role = Role::Candidate;
            state.voted = Some(me);
            let (last_term, length) = state.last();
            let request = RequestVote {
                term: state.term,
                last_term,
                length,
            };
            out.broadcast(&self.others, &request);
        }
    }

    fn on_msg(&self, _: Id, state: &mut Cow<State>, from: Id, msg: Message, out: &mut Out<Self>) {
        match msg {
            RequestVote {
                term,
                last_term,
                length,
            } if term > state.term || (term == state.term && state.voted.is_none()) => {
                let state = state.to_mut();
                if term > state.term {
                    state.enter(term);
                }
                if (last_term, length) >= state.last() {
                    state.voted = Some(from);
                    out.send(from, Vote(term));
                }
            }
            Vote(term) if state.role == Role::Candidate && term == state.term => {
                let state = state.to_mut();
                state.votes.insert(from);
                if state.votes.len() == self.half() {
                    state.votes.clear();
                    state.role = Role::Leader;
                    if !state.log.is_empty() {
                        out.broadcast(&self.others, &state.entries_after(state.length()));
                    }
                }
            }
            Append { term, .. } if term >= state.term => {
                self.append(state.to_mut(), from, msg, out);
            }
            Refused { term, previous } if state.role == Role::Leader && term == state.term => {
                out.send(from, state.to_mut().entries_after(previous - 1));
            }
            Appended { term, matching } if state.role == Role::Leader && term == state.term => {
                self.advance(state.to_mut(), from, matching);
            }
            _ => {}
        }
    }
}

// The properties of figure 3 of the paper

fn pairs(state: &ActorModelState<Server>) -> impl Iterator<Item = (&State, &State)> {
    let servers = &state.actor_states;
    servers.iter().enumerate().flat_map(move |(place, one)| {
        let others = servers.iter().enumerate();
        others.filter_map(move |(at, other)| (at != place).then_some((&**one, &**other)))
    })
}

fn election_safety(state: &ActorModelState<Server>) -> bool {
    pairs(state).all(|(one, other)| {
        one.role != Role::Leader || other.role != Role::Leader || one.term != other.term
    })
}

fn log_matching(state: &ActorModelState<Server>) -> bool {
    pairs(state).all(|(one, other)| {
        let both = one.log.iter().zip(&other.log).enumerate();
        both.filter(|(_, (mine, theirs))| mine.term == theirs.term)
            .all(|(place, _)| one.log[..=place] == other.log[..=place])
    })
}

fn leader_completeness(state: &ActorModelState<Server>) -> bool {
    pairs(state).all(|(leader, server)| {
        leader.role != Role::Leader
            || server.term > leader.term
            || prefix(&leader.log, server.commit) == server.committed()
    })
}

fn state_machine_safety(state: &ActorModelState<Server>) -> bool {
    pairs(state).all(|(one, other)| {
        let both = one.committed().iter().zip(other.committed());
        both.into_iter().all(|(mine, theirs)| mine == theirs)
    })
}

pub fn model(sizes: Sizes) -> ActorModel<Server, Sizes> {
    ActorModel::new(sizes, ())
        .actors((0..sizes.servers).map(|place| Server {
            sizes,
            others: model_peers(place, sizes.servers),
        }))
        .init_network(Network::new_unordered_nonduplicating([]))
        .property(Expectation::Always, "election safety", |_, state| {
            election_safety(state)
        })
        .property(Expectation::Always, "log matching", |_, state| {
            log_matching(state)
        })
        .property(Expectation::Always, "leader completeness", |_, state| {
            leader_completeness(state)
        })
        .property(Expectation::Always, "state machine safety", |_, state| {
            state_machine_safety(state)
        })
        .property(Expectation::Sometimes, "committed", |model, state| {
            let servers = &state.actor_states;
            servers
                .iter()
                .any(|server| server.commit == model.cfg.entries)
        })
}

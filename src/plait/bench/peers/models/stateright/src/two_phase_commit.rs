//! Two-phase commit, the same model as `plait.protocols.two_phase_commit`. Messages are a set that never shrinks. The
//! transaction manager records each prepared resource manager in a step of its own.

use stateright::{Model, Property};
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    Working,
    Prepared,
    Committed,
    Aborted,
}
use Standing::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    Prepared(usize),
    Commit,
    Abort,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    managers: Vec<Standing>,
    coordinator: Standing,
    noted: Vec<bool>,
    sent: BTreeSet<Message>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Prepare(usize),
    ChooseToAbort(usize),
    Note(usize),
    DecideToCommit,
    DecideToAbort,
    Commit(usize),
    Abort(usize),
}

pub struct TwoPhaseCommit {
    pub managers: usize,
}

impl Model for TwoPhaseCommit {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            managers: vec![Working; self.managers],
            coordinator: Working,
            noted: vec![false; self.managers],
            sent: BTreeSet::new(),
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.coordinator == Working {
            if state.noted.iter().all(|&noted| noted) {
                steps.push(Step::DecideToCommit);
            }
            steps.push(Step::DecideToAbort);
        }
        for manager in 0..self.managers {
            if state.managers[manager] == Working {
                steps.push(Step::Prepare(manager));
                steps.push(Step::ChooseToAbort(manager));
            }
        }
        for message in &state.sent {
            match *message {
                Message::Prepared(manager) if state.coordinator == Working => {
                    steps.push(Step::Note(manager))
                }
                Message::Prepared(_) => {}
                Message::Commit => steps.extend((0..self.managers).map(Step::Commit)),
                Message::Abort => steps.extend((0..self.managers).map(Step::Abort)),
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Prepare(manager) => {
                state.managers[manager] = Prepared;
                state.sent.insert(Message::Prepared(manager));
            }
            Step::Note(manager) => state.noted[manager] = true,
            Step::DecideToCommit => {
                state.coordinator = Committed;
                state.sent.insert(Message::Commit);
            }
            Step::DecideToAbort => {
                state.coordinator = Aborted;
                state.sent.insert(Message::Abort);
            }
            Step::Commit(manager) => state.managers[manager] = Committed,
            Step::ChooseToAbort(manager) | Step::Abort(manager) => {
                state.managers[manager] = Aborted
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("consistency", |_, state: &State| {
            !(state.managers.contains(&Committed) && state.managers.contains(&Aborted))
        })]
    }
}

//! The initial states: every combination of the choices that the `@init` methods of the processes may make.
//!
//! A combination has a number: the outcomes of the processes are its digits, and those of the last process count fastest.

use crate::system::inbox;
use crate::system::model::{Failure, Fault, MessageId, MonitorId, Outcome, PropertyKind, Result};
use crate::system::tables::Tables;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// More combinations are refused: no limit of the search is looked at while they are made.
const MOST: usize = 1 << 20;

/// An initial state, and the number of the first combination that leads to it.
#[derive(Clone, Debug)]
pub struct InitialState {
    pub state: Vec<u32>,
    pub combination: usize,
}

impl Tables {
    /// The distinct initial states, in the order of their combinations. There is at least one.
    pub fn initial(&self) -> Result<Arc<[InitialState]>> {
        if let Some(known) = &*self.initial.lock() {
            return Ok(known.clone());
        }
        let found: Arc<[InitialState]> = self.made_initial()?.into();
        self.audit_initial(&found)?;
        Ok(self.initial.lock().get_or_insert(found).clone())
    }

    /// Have searches begin with this state from now on, as if it were the only initial one.
    pub fn begin_with(&self, state: Vec<u32>) {
        *self.initial.lock() = Some([InitialState { state, combination: 0 }].into());
    }

    fn made_initial(&self) -> Result<Vec<InitialState>> {
        let initial = self.model.initial()?;
        let count = initial.processes.iter().try_fold(1usize, |count, outcomes| count.checked_mul(outcomes.len()));
        let Some(count) = count.filter(|&count| count <= MOST) else {
            return Err(refused(
                format!("the @init methods have more than {MOST} combinations of choices"),
                "choose less before the first step: let an action choose",
            ));
        };
        let (mut found, mut met) = (Vec::new(), FxHashSet::default());
        for combination in 0..count {
            let mut rest = combination;
            let mut outcomes: Vec<&Outcome> = Vec::with_capacity(initial.processes.len());
            for options in initial.processes.iter().rev() {
                outcomes.push(&options[rest % options.len()]);
                rest /= options.len();
            }
            outcomes.reverse();
            let state = self.composed(&outcomes, &initial.monitors)?;
            if self.is_initial(&state)? && met.insert(state.clone()) {
                found.push(InitialState { state, combination });
            }
        }
        if found.is_empty() {
            return Err(refused(
                format!("there is no initial state: initially is false in all {count} combinations of choices"),
                "the function that is given as System(initially=…) must be true in one of them",
            ));
        }
        Ok(found)
    }

    /// What `System(initially=…)` says of a combination.
    fn is_initial(&self, state: &[u32]) -> Result<bool> {
        let shape = self.model.shape();
        let Some(property) = shape.single(PropertyKind::Initially) else { return Ok(true) };
        let (value, _) = self.evaluate(property, shape.quantifiers[property].parts, state)?;
        value.ok_or_else(|| {
            refused(
                "initially raised an exception".into(),
                "the function that is given as System(initially=…) must return True or False for each combination of \
                 choices of the @init methods",
            )
        })
    }

    /// The state after these outcomes of the processes: a node per process, monitors, budgets.
    fn composed(&self, outcomes: &[&Outcome], monitors: &[MonitorId]) -> Result<Vec<u32>> {
        let mut state = Vec::with_capacity(self.model.shape().width());
        for (process, outcome) in outcomes.iter().enumerate() {
            let sends = outcomes.iter().flat_map(|outcome| &outcome.sends);
            let mine: Vec<MessageId> = sends.filter(|(to, _)| *to as usize == process).map(|&(_, m)| m).collect();
            let pending = inbox::insert(&*self.model, &[], &mine);
            state.push(self.node_of(process, outcome.local, &pending, self.last(&[]), 0));
        }
        for (monitor, &start) in monitors.iter().enumerate() {
            let events = outcomes.iter().flat_map(|outcome| &outcome.rare().events);
            let mut now = start;
            for &event in events {
                // There is no run to show, so an exception is an error of the model.
                now = self.observation(monitor, now, event)?.map_err(|failure| Failure::clone(&failure))?;
            }
            state.push(now);
        }
        state.extend(self.model.shape().budgets());
        Ok(state)
    }
}

fn refused(message: String, hint: &str) -> Fault {
    Box::new(Failure { violation: false, message, hint: Some(hint.into()), exception: None })
}

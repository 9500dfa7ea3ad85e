//! The sequential program of a round-based protocol, round by round (Sequentialization, section 5, Algorithm 1). In come the
//! tables of the protocol itself and the place of each message in the order of rounds. Out come the states between rounds,
//! the properties that are decided in them, and what may break the conditions of section 4.2. Open `search` first: it has the
//! states between rounds. `turn` has what one process can do in a round, `node` the processes between rounds, `run` the way
//! from a state back to a run of the protocol, and `audit` the conditions. `exchange` compares created processes.
//! `docs/internals/reductions/rounds.md` has the proof, `src/plait/rounds/program/turn.py` the same program step by step.

pub mod audit;
pub mod exchange;
pub mod node;
pub mod run;
pub mod search;
pub mod turn;

use std::error::Error;
use std::fmt;

/// The protocol does something that this search does not support: the step-by-step program must be searched instead.
#[derive(Debug)]
pub struct Unsupported(pub &'static str);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Unsupported {}

/// A `Result` that says why the search is given up.
pub(crate) fn unsupported<T>(why: &'static str) -> crate::system::model::Result<T> {
    Err(Box::new(Unsupported(why)))
}

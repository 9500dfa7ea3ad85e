//! The options of a search, read from the attributes of `plait.check.options.Options`, which has checked them.

use crate::por::classes::Split;
use crate::por::relations::Seeds;
use crate::search::control::{Options, Por};
use crate::search::run::Strategy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::time::Duration;

/// Up to so many states, fingerprints have 64 bits if the search chooses: the probability of a missed state is 9.8e-7 then.
const NARROW: usize = 6_000_000;

/// The bits of fingerprints, or that the search chooses.
#[derive(FromPyObject)]
enum Fingerprint {
    Bits(u32),
    #[expect(dead_code, reason = "there is one name")]
    Named(String),
}

#[derive(FromPyObject)]
pub struct SearchOptions {
    search: String,
    workers: Option<usize>,
    max_states: Option<usize>,
    max_depth: Option<u64>,
    timeout: Option<f64>,
    memory: Option<usize>,
    seed: u64,
    walks: u64,
    keep_going: bool,
    fingerprint: Fingerprint,
    split: String,
    seeds: String,
    spos: bool,
}

impl SearchOptions {
    pub fn strategy(&self) -> PyResult<Strategy> {
        match self.search.as_str() {
            "bfs" => Ok(Strategy::Bfs),
            "dfs" => Ok(Strategy::Dfs),
            "stateless" => Ok(Strategy::Stateless),
            "random" => Ok(Strategy::Random),
            search => Err(PyValueError::new_err(format!("unknown search {search:?}"))),
        }
    }

    /// How partial-order reduction is done.
    pub fn partial_order(&self) -> PyResult<Por> {
        let split = match self.split.as_str() {
            "none" => Split::None,
            "reply" => Split::Reply,
            "quorum" => Split::Quorum,
            "combined" => Split::Combined,
            split => return Err(PyValueError::new_err(format!("unknown split {split:?}"))),
        };
        let seeds = match self.seeds.as_str() {
            "instance" => Seeds::Instance,
            "fewest" => Seeds::Fewest,
            seeds => return Err(PyValueError::new_err(format!("unknown choice of seeds {seeds:?}"))),
        };
        Ok(Por { split, seeds })
    }

    /// The options of a search for states; `por` and `dpor` are the partial-order reductions that apply.
    pub fn for_states(&self, por: bool, dpor: bool) -> PyResult<Options> {
        Ok(Options {
            max_depth: self.max_depth.map_or(u32::MAX, |depth| u32::try_from(depth).unwrap_or(u32::MAX)),
            seed: self.seed,
            walks: self.walks,
            keep_going: self.keep_going,
            fingerprint: match self.fingerprint {
                Fingerprint::Bits(bits) => bits,
                Fingerprint::Named(_) => 64,
            },
            narrow: match self.fingerprint {
                Fingerprint::Bits(_) => usize::MAX,
                Fingerprint::Named(_) => NARROW,
            },
            por: if por { Some(self.partial_order()?) } else { None },
            spos: self.spos,
            dpor,
            ..self.for_runs()
        })
    }

    /// The options of a search for runs. Its order is fixed, and it needs the whole graph.
    pub fn for_runs(&self) -> Options {
        Options {
            workers: self.workers.unwrap_or(1).max(1),
            max_states: self.max_states.unwrap_or(usize::MAX),
            timeout: self.timeout.map(Duration::from_secs_f64),
            memory: self.memory.unwrap_or(usize::MAX),
            ..Options::default()
        }
    }
}

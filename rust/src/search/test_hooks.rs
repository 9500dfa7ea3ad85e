//! Switches for tests only. They apply to the whole process, and are read when a search begins.

use crate::system::hash;
use parking_lot::RwLock;

#[derive(Clone, Debug, Default)]
pub struct TestHooks {
    /// Rules of reductions and of fairness that searches leave out: a test shows that each rule is needed.
    pub left_out: Vec<String>,
    /// Collect the fingerprints of terminal states.
    pub collect_terminals: bool,
    /// How many bits the narrow hashes of components keep, if not all: then fingerprints collide.
    pub hash_bits: Option<u32>,
    /// Fingerprints become wider when there are more states than this, if they become wider at all.
    pub narrow: Option<usize>,
}

static CURRENT: RwLock<TestHooks> =
    RwLock::new(TestHooks { left_out: Vec::new(), collect_terminals: false, hash_bits: None, narrow: None });

impl TestHooks {
    /// The switches as they are now.
    pub fn current() -> TestHooks {
        CURRENT.read().clone()
    }

    /// Set the switches for all later searches. Returns the previous ones.
    pub fn install(self) -> TestHooks {
        hash::keep(self.hash_bits.unwrap_or(u64::BITS));
        std::mem::replace(&mut *CURRENT.write(), self)
    }

    pub fn leaves_out(&self, rule: &str) -> bool {
        self.left_out.iter().any(|name| name == rule)
    }
}

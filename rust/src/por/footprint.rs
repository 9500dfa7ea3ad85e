//! The footprint of a transition outside its own process, and the one definition of *commuting*. Both partial-order
//! reductions use it: stubborn sets for classes of transitions (`stubborn`), and dynamic partial-order reduction for single
//! transitions (`search::dpor`).
//!
//! A transition reads and writes the local state and the inbox of its own process. It may read and write cells; it reads all cells
//! on which the transitions of its process depend in that state. So transitions of one process never
//! commute. Transitions of different processes commute except where they meet outside their processes:
//!
//! - both announce events, and monitors observe these in order;
//! - both take one from the same budget;
//! - one fills a spare slot that the other fills, or expects to be free or taken, or whose process the other belongs to;
//! - one writes a cell that the other reads or writes;
//! - one loses a message and the other sends to the same inbox, where the order of the two matters;
//! - one makes room in a channel with a capacity, and the other sends to this channel.
//!
//! All others commute: a send only adds to an inbox, and messages that could be consumed before can be consumed after it.

use crate::system::successors::bit;

/// Sets of processes, slots and budgets have 64 bits. Members that share a bit make footprints meet more often, which is
/// always sound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Footprint {
    /// Processes that the transition sends to.
    pub sends: u64,
    /// Spare slots that it fills, and cells that it writes.
    pub spawns: u64,
    /// Spare slots that it expects to be free or taken, and cells that it reads.
    pub expects: u64,
    pub budgets: u64,
    pub announces: bool,
    /// It loses a message of its own inbox, and the order of this loss and of a send to the inbox matters.
    pub loses: bool,
    /// If channels have a capacity: processes whose channels to its own process it makes room in.
    pub frees: u64,
}

impl Footprint {
    pub fn join(&mut self, other: &Footprint) {
        self.sends |= other.sends;
        self.spawns |= other.spawns;
        self.expects |= other.expects;
        self.budgets |= other.budgets;
        self.announces |= other.announces;
        self.loses |= other.loses;
        self.frees |= other.frees;
    }

    /// Whether a transition of process `mine` with this footprint commutes with one of another process.
    pub fn commutes(&self, mine: usize, other: &Footprint, theirs: usize) -> bool {
        let fills =
            |a: &Footprint, b: &Footprint, b_process: usize| a.spawns & (b.spawns | b.expects | bit(b_process)) != 0;
        let loses = |a: &Footprint, a_process: usize, b: &Footprint| a.loses && b.sends & bit(a_process) != 0;
        let frees = |a: &Footprint, a_process: usize, b: &Footprint, b_process: usize| {
            a.frees & bit(b_process) != 0 && b.sends & bit(a_process) != 0
        };
        !(self.announces && other.announces
            || self.budgets & other.budgets != 0
            || fills(self, other, theirs)
            || fills(other, self, mine)
            || loses(self, mine, other)
            || loses(other, theirs, self)
            || frees(self, mine, other, theirs)
            || frees(other, theirs, self, mine))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commute(a: Footprint, b: Footprint) -> bool {
        let (there, back) = (a.commutes(0, &b, 1), b.commutes(1, &a, 0));
        assert_eq!(there, back, "{a:?} and {b:?}");
        there
    }

    #[test]
    fn sends_commute_with_everything_but_ordered_losses() {
        let (send, nothing) = (Footprint { sends: 0b110, ..Footprint::default() }, Footprint::default());
        assert!(commute(send, nothing));
        assert!(commute(send, send));
        assert!(!commute(send, Footprint { loses: true, ..nothing }));
        assert!(commute(Footprint { sends: 0b100, ..nothing }, Footprint { loses: true, ..nothing }));
    }

    #[test]
    fn room_that_is_made_and_used_does_not_commute() {
        let nothing = Footprint::default();
        let (send, elsewhere) = (Footprint { sends: 0b10, ..nothing }, Footprint { sends: 0b100, ..nothing });
        // It belongs to process 1, and makes room for process 0.
        let takes = Footprint { frees: 0b1, ..nothing };
        assert!(!commute(send, takes));
        assert!(commute(elsewhere, takes) && commute(send, Footprint { frees: 0b100, ..nothing }));
    }

    #[test]
    fn what_meets_at_a_monitor_a_budget_or_a_slot_does_not_commute() {
        let nothing = Footprint::default();
        let tells = Footprint { announces: true, ..nothing };
        assert!(commute(tells, nothing) && !commute(tells, tells));
        let costs = |budgets| Footprint { budgets, ..nothing };
        assert!(commute(costs(1), costs(2)) && !commute(costs(1), costs(3)));
        let spawns = |spawns| Footprint { spawns, ..nothing };
        let expects = |expects| Footprint { expects, ..nothing };
        assert!(commute(spawns(4), spawns(8)) && !commute(spawns(4), spawns(4)));
        assert!(commute(spawns(4), expects(8)) && !commute(spawns(4), expects(4)));
        assert!(commute(expects(4), expects(4)));
        assert!(!commute(spawns(0b10), nothing), "it is the process that is spawned");
    }
}

//! The sets of messages that a transition can consume (MP-Basset), as far as cheap conditions tell: all have one group, the set
//! has an allowed size, no sender is there twice unless that is allowed, and of a queue it has the first messages. The guard
//! over the whole set (`Model::accepts`) is only asked about these.

use crate::system::model::{Armed, MessageId};

/// A message that satisfies the guard, its sender, and its group (equal `same` fields).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub message: MessageId,
    pub sender: u16,
    pub group: u32,
    /// How many equal ones are pending.
    pub copies: u16,
    /// How many messages of its queue must be consumed with it: those before it.
    pub place: u16,
}

/// More sets of one handler in one state are not listed, if their number can grow with that of the pending messages.
const MOST_SETS: usize = 50_000;

/// All sets of candidates that a handler may take, each in the order of the candidates: by sender, then by place or content.
/// None if there are too many.
pub fn sets(candidates: &[Candidate], takes: Armed) -> Option<Vec<Vec<MessageId>>> {
    let mut groups: Vec<u32> = candidates.iter().map(|c| c.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let bounded = takes.distinct && takes.least == takes.most && !takes.accepts;
    let mut search =
        Sets { takes, chosen: Vec::new(), found: Vec::new(), most: if bounded { usize::MAX } else { MOST_SETS } };
    for group in groups {
        let members: Vec<Candidate> = candidates.iter().filter(|c| c.group == group).copied().collect();
        search.extend(&members);
    }
    (search.found.len() <= search.most).then_some(search.found)
}

struct Sets {
    takes: Armed,
    chosen: Vec<Candidate>,
    found: Vec<Vec<MessageId>>,
    most: usize,
}

impl Sets {
    /// All sets that consist of those chosen and of some of the rest.
    fn extend(&mut self, rest: &[Candidate]) {
        let (least, most) = (self.takes.least as usize, self.takes.most as usize);
        if self.chosen.len() >= least {
            self.found.push(self.chosen.iter().map(|c| c.message).collect());
        }
        if self.chosen.len() == most || self.found.len() > self.most {
            return;
        }
        let mut left: usize = rest.iter().map(|c| c.copies as usize).sum();
        for (i, &candidate) in rest.iter().enumerate() {
            if self.chosen.len() + left < least {
                return;
            }
            left -= candidate.copies as usize;
            // In a queue, those before it come with it.
            let before = |last: &Candidate| last.sender == candidate.sender && last.place + 1 == candidate.place;
            if candidate.place > 0 && !self.chosen.last().is_some_and(before) {
                continue;
            }
            // What follows is later in the order, so that no set is found twice; from a later sender, if no sender may appear
            // twice.
            let (later, copies) = if self.takes.distinct {
                (rest[i..].partition_point(|c| c.sender == candidate.sender) + i, 1)
            } else {
                (i + 1, (candidate.copies as usize).min(most - self.chosen.len()))
            };
            for _ in 0..copies {
                self.chosen.push(candidate);
                self.extend(&rest[later..]);
            }
            self.chosen.truncate(self.chosen.len() - copies);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(of: &[(u32, u16, u32)]) -> Vec<Candidate> {
        let made = |&(message, sender, group)| Candidate { message, sender, group, copies: 1, place: 0 };
        of.iter().map(made).collect()
    }

    fn found(candidates: &[Candidate], takes: Armed) -> Vec<Vec<MessageId>> {
        sets(candidates, takes).expect("they are few")
    }

    fn any(least: u16, most: u16) -> Armed {
        Armed { handler: 0, least, most, distinct: false, accepts: true }
    }

    #[test]
    fn binomial_many_of_distinct_senders() {
        let all: Vec<_> = (0..5).map(|i| (i, i as u16, 0)).collect();
        for (k, expected) in [(1, 5), (2, 10), (3, 10), (4, 5), (5, 1), (6, 0)] {
            assert_eq!(found(&candidates(&all), Armed::taking(0, k)).len(), expected);
        }
        let at_least_two = Armed { least: 2, most: u16::MAX, ..Armed::taking(0, 2) };
        assert_eq!(found(&candidates(&all), at_least_two).len(), 10 + 10 + 5 + 1);
    }

    #[test]
    fn no_sender_twice_and_groups_apart() {
        let two_from_one_sender = candidates(&[(0, 0, 0), (1, 0, 0), (2, 1, 0)]);
        assert_eq!(found(&two_from_one_sender, Armed::taking(0, 2)), [[0, 2], [1, 2]]);
        assert_eq!(found(&two_from_one_sender, any(2, 2)), [[0, 1], [0, 2], [1, 2]]);
        assert!(found(&candidates(&[(0, 0, 0), (1, 1, 1)]), Armed::taking(0, 2)).is_empty());
    }

    #[test]
    fn a_bag_gives_each_part_once() {
        let mut bag = candidates(&[(7, 0, 0), (8, 0, 0)]);
        bag[0].copies = 2;
        assert_eq!(found(&bag, any(1, 9)), [vec![7], vec![7, 8], vec![7, 7], vec![7, 7, 8], vec![8]]);
        assert_eq!(found(&bag, any(2, 2)), [[7, 8], [7, 7]]);
    }

    #[test]
    fn a_queue_gives_its_first_messages() {
        let mut queues = candidates(&[(4, 0, 0), (5, 0, 0), (6, 0, 1), (7, 1, 0)]);
        queues[1].place = 1;
        queues[2].place = 2;
        assert_eq!(found(&queues, any(1, 9)), [vec![4], vec![4, 5], vec![4, 5, 7], vec![4, 7], vec![7]]);
    }

    #[test]
    fn very_many_are_not_listed() {
        let all: Vec<_> = (0..20).map(|i| (i, i as u16, 0)).collect();
        assert!(sets(&candidates(&all), any(1, u16::MAX)).is_none());
        assert_eq!(found(&candidates(&all), Armed::taking(0, 10)).len(), 184_756);
    }
}

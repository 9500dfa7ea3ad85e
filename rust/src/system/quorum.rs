//! The sets of messages that a quorum transition can consume (MP-Basset): k messages of distinct senders and one group.

use crate::system::model::MessageId;

/// A message that satisfies the guard, its sender, and its group (equal `same` fields).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub message: MessageId,
    pub sender: u16,
    pub group: u32,
}

/// All sets of `count` candidates, each ordered by sender. Candidates come sorted by sender.
pub fn sets(candidates: &[Candidate], count: usize) -> Vec<Vec<MessageId>> {
    let mut groups: Vec<u32> = candidates.iter().map(|c| c.group).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut found = Vec::new();
    for group in groups {
        let members: Vec<Candidate> = candidates.iter().filter(|c| c.group == group).copied().collect();
        extend(&members, count, &mut Vec::new(), &mut found);
    }
    found
}

fn extend(rest: &[Candidate], missing: usize, chosen: &mut Vec<MessageId>, found: &mut Vec<Vec<MessageId>>) {
    if missing == 0 {
        found.push(chosen.clone());
        return;
    }
    for (i, candidate) in rest.iter().enumerate() {
        // The next message comes from a later sender, so that no sender appears twice and no set is found twice.
        let later = rest[i..].partition_point(|c| c.sender == candidate.sender) + i;
        chosen.push(candidate.message);
        extend(&rest[later..], missing - 1, chosen, found);
        chosen.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(of: &[(u32, u16, u32)]) -> Vec<Candidate> {
        of.iter().map(|&(message, sender, group)| Candidate { message, sender, group }).collect()
    }

    #[test]
    fn binomial_many_of_distinct_senders() {
        let all: Vec<_> = (0..5).map(|i| (i, i as u16, 0)).collect();
        for (k, expected) in [(1, 5), (2, 10), (3, 10), (4, 5), (5, 1), (6, 0)] {
            assert_eq!(sets(&candidates(&all), k).len(), expected);
        }
    }

    #[test]
    fn no_sender_twice_and_groups_apart() {
        let two_from_one_sender = candidates(&[(0, 0, 0), (1, 0, 0), (2, 1, 0)]);
        assert_eq!(sets(&two_from_one_sender, 2), [[0, 2], [1, 2]]);
        assert!(sets(&candidates(&[(0, 0, 0), (1, 1, 1)]), 2).is_empty());
    }
}

//! Büchi automata, and their strongly connected components (*parts*).

/// A generalized Büchi automaton whose nodes say which predicates must hold.
#[derive(Clone, Debug)]
pub struct Automaton {
    pub nodes: Vec<AutomatonNode>,
    pub initial: Vec<u32>,
    /// How many acceptance sets there are.
    pub sets: u32,
}

#[derive(Clone, Debug)]
pub struct AutomatonNode {
    /// Predicates that must be true, and those that must be false.
    pub yes: u64,
    pub no: u64,
    pub next: Vec<u32>,
    /// The acceptance sets that it is in, as bits.
    pub accepting: u64,
}

impl AutomatonNode {
    /// Whether a state with this label can be here.
    #[inline]
    pub fn fits(&self, label: u64) -> bool {
        label & self.yes == self.yes && label & self.no == 0
    }

    /// Whether no state can be here and in the other.
    pub fn excludes(&self, other: &AutomatonNode) -> bool {
        self.yes & other.no | self.no & other.yes != 0
    }
}

impl Automaton {
    /// All acceptance sets, as bits.
    pub fn all(&self) -> u64 {
        (1 << self.sets) - 1
    }

    /// Whether a run may stay in a node from the beginning, whatever it does.
    pub fn idles(&self, node: u32) -> bool {
        let AutomatonNode { yes, no, next, .. } = &self.nodes[node as usize];
        yes | no == 0 && next.contains(&node) && self.initial.contains(&node)
    }

    /// The strongly connected parts, each before those that it leads to.
    pub fn parts(&self) -> Vec<Part> {
        let count = self.nodes.len() as u32;
        let reached: Vec<Vec<bool>> = (0..count).map(|from| self.reached(from)).collect();
        let leads = |from: u32, to: u32| reached[from as usize][to as usize];
        let mut parts: Vec<Part> = Vec::new();
        for node in 0..count {
            let known = |part: &&mut Part| leads(node, part.nodes[0]) && leads(part.nodes[0], node);
            match parts.iter_mut().find(known) {
                Some(part) => part.nodes.push(node),
                None => parts.push(Part { nodes: vec![node], promising: leads(node, node) }),
            }
        }
        for part in &mut parts {
            let sets = part.nodes.iter().fold(0, |sets, &node| sets | self.nodes[node as usize].accepting);
            part.promising &= sets & self.all() == self.all();
        }
        let promising: Vec<u32> = parts.iter().filter(|part| part.promising).map(|part| part.nodes[0]).collect();
        parts.retain(|part| part.promising || promising.iter().any(|&to| leads(part.nodes[0], to)));
        // What leads to another part reaches all that this one reaches, and itself.
        let reach = |part: &Part| {
            let from = part.nodes[0];
            (0..count).filter(|&to| to == from || leads(from, to)).count()
        };
        parts.sort_by_key(|part| std::cmp::Reverse(reach(part)));
        parts
    }

    /// Where one can get from a node, by at least one edge.
    fn reached(&self, from: u32) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        let mut waiting = self.nodes[from as usize].next.clone();
        while let Some(node) = waiting.pop() {
            if !std::mem::replace(&mut reached[node as usize], true) {
                waiting.extend(&self.nodes[node as usize].next);
            }
        }
        reached
    }
}

/// A strongly connected part from which a run can be accepted.
pub struct Part {
    pub nodes: Vec<u32>,
    /// It has an edge and nodes of all acceptance sets: a run can stay in it and be accepted.
    pub promising: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn automaton(edges: &[&[u32]], accepting: &[u64]) -> Automaton {
        let node =
            |(next, &accepting): (&&[u32], &u64)| AutomatonNode { yes: 0, no: 0, next: next.to_vec(), accepting };
        Automaton { nodes: edges.iter().zip(accepting).map(node).collect(), initial: vec![0], sets: 1 }
    }

    #[test]
    fn parts_come_before_those_that_they_lead_to() {
        // 3 waits, goes by 0 (no cycle) to 1 and 2; 4 is a dead end.
        let automaton = automaton(&[&[2], &[2, 4], &[1], &[3, 0], &[4]], &[1, 1, 0, 0, 0]);
        let parts: Vec<_> = automaton.parts().into_iter().map(|part| (part.nodes, part.promising)).collect();
        assert_eq!(parts, [(vec![3], false), (vec![0], false), (vec![1, 2], true)]);
    }

    #[test]
    fn only_initial_nodes_without_a_label_idle() {
        let mut automaton = automaton(&[&[0, 1], &[1]], &[0, 1]);
        assert!(automaton.idles(0) && !automaton.idles(1));
        automaton.nodes[0].no = 1;
        assert!(!automaton.idles(0));
    }
}

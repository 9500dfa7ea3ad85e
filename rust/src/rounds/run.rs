//! From a state between rounds back to the steps of the protocol that lead to it.

use crate::rounds::node::{Place, RoundNodeId};
use crate::rounds::search::{Product, Search};
use crate::rounds::turn::{Turn, TurnStep};
use crate::rounds::unsupported;
use crate::system::model::Result;
use smallvec::SmallVec;

impl Search<'_, '_> {
    /// The steps of a run to a state, round by round, and in each round process by process.
    pub fn steps_to(&mut self, place: Place, number: u32) -> Result<Vec<TurnStep>> {
        let processes = self.protocol.processes();
        let mut states: Vec<(Place, Vec<RoundNodeId>)> = Vec::new();
        let mut at = (place, number);
        while at.0 != u32::MAX {
            let entry = &self.layers[&at.0].entries[at.1 as usize * (processes + 2)..][..processes + 2];
            states.push((at.0, entry[..processes].to_vec()));
            at = (entry[processes], entry[processes + 1]);
        }
        states.reverse();
        let mut steps = Vec::new();
        for pair in states.windows(2) {
            let ((at, before), (place, after)) = (&pair[0], &pair[1]);
            steps.extend(self.steps_between(*at, before, *place, after)?);
        }
        Ok(steps)
    }

    /// The steps of a round from one state to another.
    fn steps_between(
        &mut self,
        at: Place,
        before: &[RoundNodeId],
        place: Place,
        after: &[RoundNodeId],
    ) -> Result<Vec<TurnStep>> {
        // Turns are known for one round at a time: those of the round that is expanded are put aside.
        let expanding = std::mem::take(&mut self.round);
        let turns = self.turns_of(before, at)?;
        let table = std::mem::replace(&mut self.round, expanding).turns;
        let mut current = before.to_vec();
        let mut found: Result<Option<SmallVec<[u32; 8]>>> = Ok(None);
        let mut product = Product { search: self, turns: &turns, table: &table, at, state: before };
        product.each(0, &mut current, 0, &mut SmallVec::new(), &mut |search, nodes, chosen| {
            found = search
                .settled(at, nodes)
                .map(|(there, settled)| (there == place && *settled == *after).then(|| SmallVec::from_slice(chosen)));
            !matches!(found, Ok(None))
        })?;
        let Some(chosen) = found? else { return unsupported("a run was not found again") };
        let heard = self.heard(before, at);
        let mut steps = Vec::new();
        for (process, &number) in chosen.iter().enumerate().filter(|(_, number)| **number != u32::MAX) {
            let outcome = &table[turns[process] as usize][number as usize];
            let node = self.nodes.get(before[process]).clone();
            let Search { protocol, nodes, audit, beyond, .. } = self;
            let turn = Turn { protocol, nodes, audit, at, beyond }.steps_to(&node, &heard[process], outcome)?;
            let Some(turn) = turn else { return unsupported("a run was not found again") };
            steps.extend(turn);
        }
        Ok(steps)
    }
}

impl Search<'_, '_> {
    /// The local states of all states, each combination once.
    pub fn combinations(&self) -> Vec<Vec<u32>> {
        let processes = self.protocol.processes();
        let mut found = std::collections::BTreeSet::new();
        for layer in self.layers.values() {
            for entry in layer.entries.chunks_exact(processes + 2) {
                found.insert(entry[..processes].iter().map(|&node| self.nodes.get(node).local).collect::<Vec<_>>());
            }
        }
        found.into_iter().collect()
    }
}

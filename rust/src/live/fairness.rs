//! Fairness assumptions, and whether a strongly connected component meets them.
//!
//! A *weak* assumption about a class of steps (if the class stays enabled, it happens again and again) fails in a
//! component in which the class is enabled everywhere and never happens. Then it fails in every part of the component
//! too. A *strong* assumption (if the class is enabled again and again, it happens again and again) fails in a
//! component in which the class is enabled somewhere and never happens. A part of the component without the nodes where
//! the class is enabled can still be fair. *Fair loss* (a message that is lost again and again is taken again and again)
//! fails in a component in which a message is lost and never taken. The component without the edges that lose it can still
//! be fair.

use crate::live::fair_classes::ClassId;
use crate::live::product::Product;
use crate::live::scc::{Component, Local};
use crate::system::model::Result;

/// What is assumed of a class of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    Weak,
    Strong,
    FairLoss,
}

/// In place of the number of a handler: the recovery of the process.
pub const RECOVERY: u16 = u16::MAX;

/// An assumption about steps of these handlers, each with its process.
#[derive(Clone, Debug)]
pub struct Fairness {
    pub demand: Demand,
    pub handlers: Vec<(u16, u16)>,
    /// One assumption for each message whose content begins with one of these: steps that take it.
    pub messages: Option<Vec<Vec<u8>>>,
}

/// Whether a component has a fair run.
pub(super) enum Judgement {
    Fair,
    Unfair,
    /// These strong assumptions fail: look at what is left without the nodes where their classes are enabled.
    Without(Vec<ClassId>),
    /// These messages are lost and never taken: look at what is left without the edges that lose them.
    WithoutLosses(Vec<ClassId>),
}

impl Product<'_, '_> {
    /// Whether a run around the whole component is fair.
    pub(super) fn judge(&mut self, component: &Component) -> Result<Judgement> {
        if self.fair_classes.none() {
            return Ok(Judgement::Fair);
        }
        if !self.without_weak && self.starves(component)? {
            return Ok(Judgement::Unfair);
        }
        if self.without_weak || self.without_strong || self.fair_classes.all_weak() {
            return Ok(Judgement::Fair);
        }
        let (fruitless, lost) = self.fruitless(component)?;
        Ok(if !fruitless.is_empty() {
            Judgement::Without(fruitless)
        } else if !lost.is_empty() {
            Judgement::WithoutLosses(lost)
        } else {
            Judgement::Fair
        })
    }

    /// Whether a class is enabled in all nodes of a component, and never happens there.
    fn starves(&mut self, component: &Component) -> Result<bool> {
        let mut offered = Vec::new();
        // The classes of which this is so up to here, and their processes.
        let (mut classes, mut processes): (Vec<ClassId>, _) = (Vec::new(), 0..self.view.processes);
        for (at, &node) in component.nodes.iter().enumerate() {
            let Product { regions, graph, .. } = self;
            let region = &regions[component.region];
            self.fair_classes.list_of(self.view, graph, region.split(node).0, processes.clone(), &mut offered)?;
            if at == 0 {
                classes = offered.iter().map(|&(class, _)| class).collect();
                classes.retain(|&class| self.fair_classes.demand(class) != Demand::FairLoss);
                classes.sort_unstable();
                classes.dedup();
            }
            let before = classes.len();
            classes.retain(|&class| {
                let mut edges = offered.iter().filter(|(one, _)| *one == class).peekable();
                edges.peek().is_some() && edges.all(|&(_, edge)| !region.stays(graph, component, node, edge))
            });
            if classes.is_empty() {
                return Ok(false);
            }
            if at == 0 || classes.len() < before {
                processes = self.fair_classes.processes(&classes);
            }
        }
        Ok(true)
    }

    /// The classes with a strong assumption that are enabled somewhere in a component, and never happen there; and those
    /// of losses of messages that are lost in the component and never taken.
    fn fruitless(&mut self, component: &Component) -> Result<(Vec<ClassId>, Vec<ClassId>)> {
        let mut offered = Vec::new();
        let (mut enabled, mut happens): (Vec<bool>, Vec<bool>) = (Vec::new(), Vec::new());
        for &node in &component.nodes {
            let state = self.regions[component.region].split(node).0;
            self.fair_classes.list(self.view, self.graph, state, &mut offered)?;
            enabled.resize(self.fair_classes.len(), false);
            happens.resize(self.fair_classes.len(), false);
            for &(class, edge) in &offered {
                if self.fair_classes.demand(class) != Demand::Weak && !happens[class as usize] {
                    enabled[class as usize] = true;
                    happens[class as usize] = self.regions[component.region].stays(self.graph, component, node, edge);
                }
            }
        }
        let all = 0..enabled.len() as ClassId;
        let is = |class: ClassId, demand: Demand| self.fair_classes.demand(class) == demand;
        let missed = |&class: &ClassId| enabled[class as usize] && !happens[class as usize];
        let fruitless = all.clone().filter(missed).filter(|&class| is(class, Demand::Strong)).collect();
        let mut lost: Vec<ClassId> =
            all.filter(|&class| happens[class as usize] && is(class, Demand::FairLoss)).collect();
        let mut taken =
            |class| self.fair_classes.taken(class).is_none_or(|taken| happens.get(taken as usize) == Some(&true));
        lost.retain(|&class| !taken(class));
        Ok((fruitless, lost))
    }

    /// Leave the edges of some classes out of a component.
    pub(super) fn ban(&mut self, component: &Component, classes: &[ClassId]) -> Result<()> {
        let mut offered = Vec::new();
        for &node in &component.nodes {
            let state = self.regions[component.region].split(node).0;
            self.fair_classes.list(self.view, self.graph, state, &mut offered)?;
            for (_, edge) in offered.iter().filter(|(class, _)| classes.contains(class)) {
                self.regions[component.region].banned.insert((node, *edge));
            }
        }
        Ok(())
    }

    /// The nodes of a component where none of the classes is enabled.
    pub(super) fn without(&mut self, component: &Component, classes: &[ClassId]) -> Result<Vec<Local>> {
        let mut offered = Vec::new();
        let mut rest = Vec::new();
        for &node in &component.nodes {
            let state = self.regions[component.region].split(node).0;
            self.fair_classes.list(self.view, self.graph, state, &mut offered)?;
            if !offered.iter().any(|(class, _)| classes.contains(class)) {
                rest.push(node);
            }
        }
        Ok(rest)
    }
}

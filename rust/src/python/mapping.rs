//! Asks Python what states map to in an abstract system: `plait.check.live.refinement.Refining`.

use crate::live::refinement::{Mapping, Violation};
use crate::system::model::{Component, Result};
use crate::system::tables::Tables;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

pub struct PyMapping<'a> {
    pub object: &'a Py<PyAny>,
    pub tables: &'a Tables,
}

/// How Python calls it.
pub fn name(violation: Violation) -> &'static str {
    match violation {
        Violation::Initial => "initial",
        Violation::Step => "step",
        Violation::Stuttering => "stuttering",
    }
}

impl Mapping for PyMapping<'_> {
    fn value(&self, state: &[u32]) -> Result<(u32, Vec<Component>)> {
        let shape = self.tables.model.shape();
        let (nodes, rest) = state.split_at(shape.processes);
        Python::attach(|py| {
            let locals = PyTuple::new(py, nodes.iter().map(|&node| self.tables.node(node).local))?;
            let inboxes = PyTuple::new(py, nodes.iter().map(|&node| self.tables.node(node).inbox))?;
            let monitors = PyTuple::new(py, &rest[..shape.monitors])?;
            let answer = self.object.bind(py).call_method1("value", (locals, inboxes, monitors))?;
            let (number, reads): (u32, Vec<(String, u16, u16)>) = answer.extract()?;
            Ok((number, reads.into_iter().map(|(kind, index, field)| Component::of(&kind, index, field)).collect()))
        })
    }

    fn starts(&self, number: u32) -> Result<bool> {
        Python::attach(|py| Ok(self.object.bind(py).call_method1("starts", (number,))?.extract()?))
    }

    fn forbidden(&self, changes: &[(u32, u32)]) -> Result<Option<usize>> {
        Python::attach(|py| Ok(self.object.bind(py).call_method1("forbidden", (changes.to_vec(),))?.extract()?))
    }

    fn unstable(&self) -> Result<Vec<bool>> {
        Python::attach(|py| Ok(self.object.bind(py).call_method0("unstable")?.extract()?))
    }
}

//! The interned values of an engine, for Python.

use crate::python::model::PyModel;
use crate::system::model::{CellSet, Model};
use crate::system::tables::Tables;
use crate::system::values::Values;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// The interned component values of one engine, by id.
#[pyclass(frozen, module = "plait._native")]
pub struct Store {
    pub(super) model: Arc<PyModel>,
    pub(super) tables: Arc<Tables>,
}

#[pymethods]
impl Store {
    #[pyo3(signature = (id, /))]
    fn local<'py>(&self, py: Python<'py>, id: u32) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.model.values().local_content(id))
    }

    /// A local state followed by the contents of cells: what a step depends on.
    #[pyo3(signature = (id, cells, /))]
    fn local_with_cells<'py>(&self, py: Python<'py>, id: u32, cells: Vec<u32>) -> Bound<'py, PyBytes> {
        let values = self.model.values();
        let cells: Vec<u32> = cells.iter().map(|&cell| values.fields(cell)[0]).collect();
        PyBytes::new(py, &values.local_content(values.with_cells(id, &cells, CellSet::MAX)))
    }

    #[pyo3(signature = (id, /))]
    fn monitor<'py>(&self, py: Python<'py>, id: u32) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.model.values().monitor_content(id))
    }

    /// Pending messages as (message id, sender, content).
    #[pyo3(signature = (id, /))]
    fn inbox<'py>(&self, py: Python<'py>, id: u32) -> Vec<(u32, u16, Bound<'py, PyBytes>)> {
        self.tables.inbox(id).iter().map(|&m| message(py, self.model.values(), m)).collect()
    }

    /// A sample of the local states with their inboxes, in the order in which they were met: number, process, local state, inbox.
    fn sample(&self) -> Vec<(u32, u16, u32, u32)> {
        let node =
            |&id: &u32| (id, self.tables.node(id).process, self.tables.node(id).local, self.tables.node(id).inbox);
        self.tables.sample.lock().iter().map(node).collect()
    }
}

pub(super) fn message<'py>(py: Python<'py>, values: &Values, id: u32) -> (u32, u16, Bound<'py, PyBytes>) {
    (id, values.sender(id), PyBytes::new(py, values.message_content(id)))
}

//! The interned values of an engine, for Python.

use crate::python::model::PyModel;
use crate::system::model::{CellSet, Model};
use crate::system::tables::Tables;
use crate::system::values::Values;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Weak};

/// The interned component values of one engine, by id.
///
/// The tabulation that an engine asks has its store. So the store does not own the model, which owns the tabulation:
/// Python's garbage collector does not see references inside of Rust, and would never free such a cycle.
#[pyclass(frozen, module = "plait._native")]
pub struct Store {
    pub(super) model: Weak<PyModel>,
    pub(super) tables: Weak<Tables>,
}

impl Store {
    fn model(&self) -> PyResult<Arc<PyModel>> {
        self.model.upgrade().ok_or_else(gone)
    }

    fn tables(&self) -> PyResult<Arc<Tables>> {
        self.tables.upgrade().ok_or_else(gone)
    }
}

fn gone() -> PyErr {
    PyRuntimeError::new_err("the engine of this store is gone")
}

#[pymethods]
impl Store {
    #[pyo3(signature = (id, /))]
    fn local<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.model()?.values().local_content(id)))
    }

    /// A local state followed by the contents of cells: what a step depends on.
    #[pyo3(signature = (id, cells, /))]
    fn local_with_cells<'py>(&self, py: Python<'py>, id: u32, cells: Vec<u32>) -> PyResult<Bound<'py, PyBytes>> {
        let model = self.model()?;
        let values = model.values();
        let cells: Vec<u32> = cells.iter().map(|&cell| values.fields(cell)[0]).collect();
        Ok(PyBytes::new(py, &values.local_content(values.with_cells(id, &cells, CellSet::MAX))))
    }

    #[pyo3(signature = (id, /))]
    fn monitor<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.model()?.values().monitor_content(id)))
    }

    /// Pending messages as (message id, sender, content).
    #[pyo3(signature = (id, /))]
    fn inbox<'py>(&self, py: Python<'py>, id: u32) -> PyResult<Vec<(u32, u16, Bound<'py, PyBytes>)>> {
        let model = self.model()?;
        Ok(self.tables()?.inbox(id).iter().map(|&m| message(py, model.values(), m)).collect())
    }

    /// A sample of the local states with their inboxes, in the order in which they were met: number, process, local state, inbox.
    fn sample(&self) -> PyResult<Vec<(u32, u16, u32, u32)>> {
        let tables = self.tables()?;
        let node = |&id: &u32| (id, tables.node(id).process, tables.node(id).local, tables.node(id).inbox);
        let found = tables.sample.lock().iter().map(node).collect();
        Ok(found)
    }
}

pub(super) fn message<'py>(py: Python<'py>, values: &Values, id: u32) -> (u32, u16, Bound<'py, PyBytes>) {
    (id, values.sender(id), PyBytes::new(py, values.message_content(id)))
}

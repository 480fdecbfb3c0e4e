//! The weights of a block change place: modules get other tensors in their dictionaries of parameters and buffers.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// An entry of a dictionary, the value that it has and the one that it gets.
type Change = (Py<PyDict>, Py<PyAny>, Py<PyAny>, Py<PyAny>);

/// The way into a slot and back.
#[pyclass(frozen, module = "busbound._native")]
#[derive(Debug)]
pub(crate) struct Swap {
    changes: Vec<Change>,
    /// Views count their writes together with what they are views of.
    flat: Py<PyAny>,
}

#[pymethods]
impl Swap {
    /// `flat` is what all tensors of the slot are views of; nobody else writes through it.
    #[new]
    fn new(changes: Vec<Change>, flat: Py<PyAny>) -> Self {
        Self { changes, flat }
    }

    /// The modules get the tensors of the slot.
    fn enter(&self, py: Python<'_>) -> PyResult<()> {
        self.changes
            .iter()
            .try_for_each(|(entries, name, here, there)| replace(py, entries, name, here, there))
    }

    /// The modules get their own tensors back. Whether a tensor of the slot was written to.
    fn leave(&self, py: Python<'_>) -> PyResult<bool> {
        for (entries, name, here, there) in &self.changes {
            replace(py, entries, name, there, here)?;
        }
        self.flat.bind(py).getattr(intern!(py, "_version"))?.is_truthy()
    }

    /// Tensors have hooks, and hooks know the engine, which has this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for (entries, name, here, there) in &self.changes {
            visit.call(entries)?;
            visit.call(name)?;
            visit.call(here)?;
            visit.call(there)?;
        }
        visit.call(&self.flat)
    }
}

/// Somebody may have assigned another tensor meanwhile, which stays, or removed it.
fn replace(
    py: Python<'_>,
    entries: &Py<PyDict>,
    name: &Py<PyAny>,
    before: &Py<PyAny>,
    after: &Py<PyAny>,
) -> PyResult<()> {
    let (entries, name) = (entries.bind(py), name.bind(py));
    match entries.get_item(name)? {
        Some(now) if now.is(before) => entries.set_item(name, after),
        _ => Ok(()),
    }
}

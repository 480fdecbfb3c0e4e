//! A table of a trace, exported to Arrow without a copy.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use busbound::tables::{self, Batches, Tables};
use pyo3::exceptions::PyModuleNotFoundError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::failure::failed;

// Capsule names that the Arrow PyCapsule interface requires.
const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// Rows of a trace as Arrow: pass it to pyarrow.table, polars.DataFrame, pandas.DataFrame.from_arrow or DuckDB.
#[pyclass(frozen, module = "busbound", name = "Table")]
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) tables: Arc<Tables<Arc<busbound::Trace>>>,
    pub(crate) table: tables::Table,
}

#[pymethods]
impl Table {
    /// The rows as a stream of record batches; each call starts at the first row.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows ignoring this request; the consumer casts.
        drop(requested_schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(Batches::of(&self.tables, self.table)));
        PyCapsule::new_with_value(py, stream, STREAM)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.table.schema()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    /// events, copies, collectives, gaps or steps.
    #[getter]
    fn name(&self) -> &'static str {
        self.table.name()
    }

    #[getter]
    fn column_names(&self) -> Vec<&'static str> {
        self.table.columns().iter().map(|column| column.name).collect()
    }

    /// The rows as a ``polars.DataFrame``.
    ///
    /// Raises:
    ///     ImportError: polars is not installed.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package(slf.py(), "polars", "to_polars")?.getattr("DataFrame")?.call1((slf,))
    }

    /// The rows as a ``pyarrow.Table``.
    ///
    /// Raises:
    ///     ImportError: pyarrow is not installed.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package(slf.py(), "pyarrow", "to_arrow")?.getattr("table")?.call1((slf,))
    }

    /// The rows as a ``pandas.DataFrame``; text columns are categorical.
    ///
    /// Raises:
    ///     ImportError: pandas or pyarrow is not installed.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        package(slf.py(), "pandas", "to_pandas")?;
        // pandas itself reads Arrow through pyarrow.
        let arrow = package(slf.py(), "pyarrow", "to_pandas")?;
        arrow.getattr("table")?.call1((slf,))?.call_method0("to_pandas")
    }

    fn __len__(&self) -> usize {
        self.tables.rows(self.table)
    }

    fn __repr__(&self) -> String {
        format!("<busbound.Table {}: {} rows>", self.table.name(), self.__len__())
    }
}

/// A package that a user may not have installed.
fn package<'py>(py: Python<'py>, name: &str, method: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(name).map_err(|error| {
        if !error.is_instance_of::<PyModuleNotFoundError>(py) {
            return error;
        }
        let missing = PyModuleNotFoundError::new_err(format!("{method} needs {name}: pip install {name}"));
        missing.set_cause(py, Some(error));
        missing
    })
}

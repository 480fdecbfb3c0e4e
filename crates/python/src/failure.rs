//! Errors, with the messages of the command.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(busbound, BusboundError, PyException, "An operation failed; the message says why.");

create_exception!(
    busbound,
    StorageError,
    BusboundError,
    "A read failed because of the storage; a retry may succeed."
);

pub(crate) fn failed(sentence: impl ToString) -> PyErr {
    BusboundError::new_err(sentence.to_string())
}

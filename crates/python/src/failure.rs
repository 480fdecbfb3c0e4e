//! What went wrong, in the command's words.

use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    busbound,
    BusboundError,
    PyException,
    "What could not be done, in a sentence that says why."
);

create_exception!(
    busbound,
    StorageError,
    BusboundError,
    "What could not be read because the storage failed; it may go better another time."
);

pub(crate) fn failed(sentence: impl ToString) -> PyErr {
    BusboundError::new_err(sentence.to_string())
}

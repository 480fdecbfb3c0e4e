//! Errors, with the messages of the command, in the families that Python programs catch.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

create_exception!(busbound, BusboundError, PyException, "An operation failed; the message says why.");

/// A subclass of `BusboundError` that is also one of Python's own errors.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Family {
    NotFound,
    Unreadable,
    Option,
    Storage,
}

impl Family {
    const ALL: [Self; 4] = [Self::NotFound, Self::Unreadable, Self::Option, Self::Storage];

    fn name(self) -> &'static str {
        match self {
            Self::NotFound => "NotFoundError",
            Self::Unreadable => "UnreadableError",
            Self::Option => "OptionError",
            Self::Storage => "StorageError",
        }
    }

    fn doc(self) -> &'static str {
        match self {
            Self::NotFound => "A file does not exist, or no file matches; also a ``FileNotFoundError``.",
            Self::Unreadable => "A file is not what it should be, such as a trace; also a ``ValueError``.",
            Self::Option => "An option has a value that makes no sense; also a ``ValueError``.",
            Self::Storage => {
                "A read failed because of the storage, and a retry may succeed; also an ``OSError``."
            }
        }
    }

    fn other_base(self, py: Python<'_>) -> Bound<'_, PyType> {
        match self {
            Self::NotFound => py.get_type::<PyFileNotFoundError>(),
            Self::Unreadable | Self::Option => py.get_type::<PyValueError>(),
            Self::Storage => py.get_type::<PyOSError>(),
        }
    }

    /// The class; made once, because `except` compares classes by identity.
    fn class(self, py: Python<'_>) -> PyResult<&Py<PyType>> {
        static CLASSES: [PyOnceLock<Py<PyType>>; 4] = [const { PyOnceLock::new() }; 4];
        CLASSES[self as usize].get_or_try_init(py, || {
            let members = PyDict::new(py);
            members.set_item("__doc__", self.doc())?;
            members.set_item("__module__", "busbound")?;
            let bases = (py.get_type::<BusboundError>(), self.other_base(py));
            let class = py.get_type::<PyType>().call1((self.name(), bases, members))?;
            Ok(class.cast_into::<PyType>()?.unbind())
        })
    }

    pub(crate) fn error(self, sentence: impl ToString) -> PyErr {
        Python::attach(|py| match self.class(py) {
            Ok(class) => PyErr::from_type(class.bind(py).clone(), (sentence.to_string(),)),
            Err(error) => error,
        })
    }
}

/// Adds the families to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    Family::ALL.into_iter().try_for_each(|family| module.add(family.name(), family.class(module.py())?))
}

/// What went wrong in none of the families.
pub(crate) fn failed(sentence: impl ToString) -> PyErr {
    BusboundError::new_err(sentence.to_string())
}

/// An option with a value that makes no sense.
pub(crate) fn bad_option(sentence: impl ToString) -> PyErr {
    Family::Option.error(sentence)
}

/// An error of the library.
pub(crate) fn failure_of(error: busbound::Error) -> PyErr {
    use busbound::Error;
    let family = match &error {
        _ if error.is_storage() => Family::Storage,
        Error::Io { .. } | Error::NoMatch { .. } | Error::NoTraces { .. } | Error::NoSummaries { .. } => {
            Family::NotFound
        }
        Error::Machine(_) | Error::Pattern { .. } => Family::Option,
        Error::Trace(_) | Error::Content { .. } => Family::Unreadable,
        _ => return failed(error),
    };
    family.error(error)
}

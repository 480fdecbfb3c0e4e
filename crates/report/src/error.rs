//! Why could a result not be written?

use std::io;

use crate::Format;
use crate::kind::AnswerKind;

/// A result could not be written in a format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    #[error("{} cannot be written as {format}; choose {}", kind.plural(), kind.formats())]
    NotAvailable { kind: AnswerKind, format: Format },
    #[error("cannot render the page: {0}")]
    Template(askama::Error),
    #[error("cannot write JSON: {0}")]
    Json(serde_json::Error),
    #[error("cannot write text: {0}")]
    Text(std::string::FromUtf8Error),
    #[error("{0}")]
    Io(io::Error),
}

impl From<askama::Error> for RenderError {
    fn from(error: askama::Error) -> Self {
        Self::Template(error)
    }
}

impl From<serde_json::Error> for RenderError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl From<io::Error> for RenderError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

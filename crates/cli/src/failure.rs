//! How does a run end badly? Each way has its exit code.

use std::process::ExitCode;

#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing in the input could be read.
    Unreadable(anyhow::Error),
    /// Some of several inputs could not be read; that has been said already.
    PartlyUnreadable,
    /// The answer could not be written.
    Output(anyhow::Error),
}

impl Failure {
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Unreadable(error) => Some(format!("{error:#}")),
            Self::PartlyUnreadable => None,
            Self::Output(error) => Some(format!("cannot write the answer: {error:#}")),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Unreadable(_) | Self::PartlyUnreadable => ExitCode::from(3),
            Self::Output(_) => ExitCode::from(2),
        }
    }
}

//! How does a run end badly? Each way has its exit code.

use std::process::ExitCode;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line makes no sense.
    Usage(anyhow::Error),
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
            Self::Usage(error) | Self::Unreadable(error) => Some(format!("{error:#}")),
            Self::PartlyUnreadable => None,
            Self::Output(error) => Some(format!("cannot write the answer: {error:#}")),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Unreadable(_) | Self::PartlyUnreadable => ExitCode::from(3),
            Self::Usage(_) | Self::Output(_) => ExitCode::from(2),
        }
    }
}

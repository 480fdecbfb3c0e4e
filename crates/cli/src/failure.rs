//! How does a run end badly? Each way has its exit code.

use std::process::ExitCode;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line makes no sense.
    Usage(anyhow::Error),
    /// Nothing in the input could be read.
    Unreadable(anyhow::Error),
    /// The answer could not be written.
    Output(anyhow::Error),
}

impl Failure {
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Usage(error) | Self::Unreadable(error) => format!("{error:#}"),
            Self::Output(error) => format!("cannot write the answer: {error:#}"),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Unreadable(_) => ExitCode::from(3),
            Self::Usage(_) | Self::Output(_) => ExitCode::from(2),
        }
    }
}

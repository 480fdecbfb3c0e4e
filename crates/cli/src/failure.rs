//! How does a run end badly? Each way has its exit code, and a sentence.

use std::fmt::Display;
use std::path::Path;

/// Why there is no answer, or none that satisfies.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line makes no sense.
    Usage(String),
    /// Nothing in the input could be read.
    Unreadable(String),
    /// A requirement does not hold; the answer has said which.
    GateFailed,
    /// There is no GPU, or it cannot be used.
    NoGpu(String),
    /// Stopped by the user; the answer has what there was.
    Interrupted,
    /// The answer could not be written.
    Output(String),
}

impl Failure {
    pub(crate) fn usage(why: impl Display) -> Self {
        Self::Usage(why.to_string())
    }

    pub(crate) fn unreadable(why: impl Display) -> Self {
        Self::Unreadable(why.to_string())
    }

    /// A file that cannot be read.
    pub(crate) fn unreadable_at(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        |error| Self::Unreadable(format!("{}: {error}", path.display()))
    }

    pub(crate) fn no_gpu(why: impl Display) -> Self {
        Self::NoGpu(why.to_string())
    }

    pub(crate) fn output(why: impl Display) -> Self {
        Self::Output(why.to_string())
    }

    /// Something that cannot be written to, or started.
    pub(crate) fn output_at<E: Display>(what: impl Display) -> impl FnOnce(E) -> Self {
        move |error| Self::Output(format!("{what}: {error}"))
    }

    /// What is left to say about it.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Usage(why) | Self::Unreadable(why) | Self::NoGpu(why) => Some(why.clone()),
            Self::Output(why) => Some(format!("cannot write the answer: {why}")),
            Self::GateFailed | Self::Interrupted => None,
        }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::GateFailed => 1,
            Self::Unreadable(_) => 3,
            Self::NoGpu(_) => 4,
            Self::Interrupted => 130,
            Self::Usage(_) | Self::Output(_) => 2,
        }
    }
}

impl From<busbound::Error> for Failure {
    fn from(error: busbound::Error) -> Self {
        if error.is_usage() { Self::usage(error) } else { Self::unreadable(error) }
    }
}

//! Why is there no answer? Each reason has its exit code and one sentence.

use std::fmt::Display;
use std::io;
use std::path::Path;

use crate::io::kind::instead_of_traces;

/// Why there is no answer, or a negative one.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line or busbound.toml is wrong.
    Usage(String),
    /// No input could be read.
    Unreadable(String),
    /// A requirement is not met; the answer has said which.
    GateFailed,
    /// There is no GPU, or it cannot be used.
    NoGpu(String),
    /// Several processes could not measure together; without words if rank 0 has them.
    OfRanks(Option<String>),
    /// Stopped by the user; the answer has what was measured until then.
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
    pub(crate) fn unreadable_at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Unreadable(busbound::io_in_words(path, &error))
    }

    pub(crate) fn no_gpu(why: impl Display) -> Self {
        Self::NoGpu(why.to_string())
    }

    pub(crate) fn output(why: impl Display) -> Self {
        Self::Output(why.to_string())
    }

    /// A file that cannot be written.
    pub(crate) fn unwritable_at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Output(busbound::io_in_words(path, &error))
    }

    /// Something that cannot be written or started.
    pub(crate) fn output_at<E: Display>(what: impl Display) -> impl FnOnce(E) -> Self {
        move |error| Self::Output(format!("{what}: {error}"))
    }

    /// What is left to print.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::Usage(why) | Self::Unreadable(why) | Self::NoGpu(why) => Some(why.clone()),
            Self::Output(why) => Some(format!("cannot write the answer: {why}")),
            Self::OfRanks(why) => why.clone(),
            Self::GateFailed | Self::Interrupted => None,
        }
    }

    /// Whether a call of NCCL or CUDA may still wait for a process that is gone: what they do when a program exits would wait too.
    pub(crate) fn ends_at_once(&self) -> bool {
        matches!(self, Self::OfRanks(_))
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::GateFailed => 1,
            Self::Unreadable(_) => 3,
            Self::NoGpu(_) | Self::OfRanks(_) => 4,
            Self::Interrupted => 130,
            Self::Usage(_) | Self::Output(_) => 2,
        }
    }
}

impl From<busbound::Error> for Failure {
    fn from(error: busbound::Error) -> Self {
        let beside = match &error {
            busbound::Error::NoTraces { path } => instead_of_traces(path),
            _ => None,
        };
        match beside {
            Some(why) => Self::Unreadable(why),
            None if error.is_usage() => Self::usage(error),
            None => Self::unreadable(error),
        }
    }
}

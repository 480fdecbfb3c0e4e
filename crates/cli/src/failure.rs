//! How does a run end badly? Each way has its exit code.

/// Why there is no answer, or none that satisfies.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The command line makes no sense.
    Usage(anyhow::Error),
    /// Nothing in the input could be read.
    Unreadable(anyhow::Error),
    /// A requirement does not hold; the answer has said which.
    GateFailed,
    /// There is no GPU, or it cannot be used.
    NoGpu(anyhow::Error),
    /// Stopped by the user; the answer has what there was.
    Interrupted,
    /// The answer could not be written.
    Output(anyhow::Error),
}

impl Failure {
    /// What is left to say about it.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Usage(error) | Self::Unreadable(error) | Self::NoGpu(error) => Some(format!("{error:#}")),
            Self::Output(error) => Some(format!("cannot write the answer: {error:#}")),
            Self::GateFailed | Self::Interrupted => None,
        }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::GateFailed => 1,
            Self::Unreadable(_) => 3,
            Self::NoGpu(_) => 4,
            Self::Interrupted => 130,
            Self::Usage(_) | Self::Output(_) => 2,
        }
    }
}

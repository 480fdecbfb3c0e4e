//! Why do several processes not measure together?

use std::fmt;
use std::time::Duration;

use crate::driver::CudaError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RanksError {
    #[error("rank 0 cannot listen on port {port} ({why}): choose another one with --port, for all ranks")]
    Listen { port: u16, why: String },
    #[error("{missing} of {size} did not come within {} s{}", within.as_secs(), refused_in_words(*refused))]
    Missing { missing: RankList, size: u32, within: Duration, refused: u32 },
    #[error("rank {rank} cannot reach rank 0 at {address} within {} s ({why})", within.as_secs())]
    Unreachable { rank: u32, address: String, within: Duration, why: String },
    #[error("rank 0 at {address} refused rank {rank}: {why}")]
    Refused { rank: u32, address: String, why: String },
    #[error("{missing} did not answer within {} s, while {during}", within.as_secs())]
    Silent { missing: RankList, within: Duration, during: &'static str },
    #[error("rank {rank} ended before the measurement was complete")]
    Gone { rank: u32 },
    #[error("rank {rank}: {why}")]
    Failed { rank: u32, why: String },
    #[error("ranks {} and {} use the same GPU: each process needs its own", ranks.0, ranks.1)]
    SameGpu { ranks: (u32, u32) },
    #[error("rank {rank} has {its} and rank 0 has {ours}: all ranks need the same version")]
    OtherNccl { rank: u32, its: String, ours: String },
    /// Another rank failed, and rank 0 says which and why.
    #[error("another rank failed")]
    GivenUp,
    #[error("stopped")]
    Stopped,
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// Ranks by number: `rank 3`, `ranks 1, 2 and 5`, and how many more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankList(pub(super) Vec<u32>);

/// More are only counted.
const MOST_NAMED: usize = 8;

impl fmt::Display for RankList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self.0.iter().take(MOST_NAMED).map(u32::to_string).collect();
        let more = self.0.len().saturating_sub(MOST_NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let last = names.pop().unwrap_or_default();
        match names.is_empty() {
            true => write!(f, "rank {last}"),
            false => write!(f, "ranks {} and {last}", names.join(", ")),
        }
    }
}

fn refused_in_words(refused: u32) -> String {
    match refused {
        0 => String::new(),
        1 => " (1 connection was refused: it was not of this job)".to_owned(),
        many => format!(" ({many} connections were refused: they were not of this job)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ranks_are_named_as_long_as_they_fit() {
        let text = |ranks: &[u32]| RankList(ranks.to_vec()).to_string();
        assert_eq!(text(&[3]), "rank 3");
        assert_eq!(text(&[1, 2, 5]), "ranks 1, 2 and 5");
        assert_eq!(text(&(1..=12).collect::<Vec<_>>()), "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 4 more");
    }
}

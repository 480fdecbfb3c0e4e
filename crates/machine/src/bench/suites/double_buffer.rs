//! What does double buffering save compared with serialized copies and compute? `diagnosis` compares it with the plan.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Phase, SuiteCase, Topic};
use crate::bench::plan::{Limits, MIB, Mode};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DoubleBufferTask {
    pub chunks: u32,
    pub bytes: u64,
    pub compute_to_copy: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DoubleBufferCase {
    #[serde(flatten)]
    pub task: DoubleBufferTask,
    /// All chunks without a copy.
    pub compute_ns: Vec<u64>,
    pub naive_ns: Vec<u64>,
    pub buffered_ns: Vec<u64>,
    pub verified: bool,
}

impl BenchSuite for DoubleBufferTask {
    const NAME: &'static str = "double-buffer";
    const PHASE: Phase = Phase::Pattern;
    const TOPIC: Topic = Topic::Bus;

    fn plan(mode: Mode, limits: &Limits) -> Vec<Self> {
        let ratios: &[f64] = match mode {
            Mode::Quick => &[0.5, 1.0, 2.0],
            Mode::Full => &[0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0],
        };
        let bytes = (32 * MIB).min(limits.largest / 4);
        ratios.iter().map(|ratio| Self { chunks: 12, bytes, compute_to_copy: *ratio }).collect()
    }
}

impl fmt::Display for DoubleBufferTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "double-buffer: compute {}x copy", self.compute_to_copy)
    }
}

impl SuiteCase for DoubleBufferCase {
    fn series(&self) -> Vec<&[u64]> {
        vec![&self.compute_ns, &self.naive_ns, &self.buffered_ns]
    }

    fn verified(&self) -> Option<bool> {
        Some(self.verified)
    }
}

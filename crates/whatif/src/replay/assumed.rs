//! What does a replay assume that the trace does not show? An expected, a best and a worst case.

use super::models::RecordingIs;
use super::power::Effect;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Assumed {
    /// Time of changed copies, as a multiple of the curve's time.
    pub(super) copies: f64,
    /// Host work right after a staged copy, as a multiple of its measured time: staging evicts the CPU caches, so
    /// the work after it runs with cold caches.
    pub(super) behind_staging: f64,
    /// Host work per merged copy, as a multiple of its measured time: the data has to be packed.
    pub(super) packing: f64,
    /// How much of the power effect to assume.
    pub(super) power: Effect,
    /// Concurrent work does not use the copied data: it belongs to the previous or the next iteration.
    pub(super) independent: bool,
    /// How much of the host's time was the profiler's.
    pub(super) recording: RecordingIs,
}

impl Assumed {
    pub(super) const EXPECTED: Self = Self {
        copies: 1.0,
        behind_staging: 0.5,
        packing: 0.2,
        power: Effect::AsMeasured,
        independent: false,
        recording: RecordingIs::Expected,
    };
    pub(super) const BEST: Self = Self {
        copies: 0.98,
        behind_staging: 0.3,
        packing: 0.0,
        power: Effect::None,
        independent: true,
        recording: RecordingIs::Most,
    };
    pub(super) const WORST: Self = Self {
        copies: 1.03,
        behind_staging: 1.0,
        packing: 0.6,
        power: Effect::Most,
        independent: false,
        recording: RecordingIs::Least,
    };
}

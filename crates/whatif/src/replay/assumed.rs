//! What is assumed where the trace does not say: the middle, the best and the worst.

use super::power::Effect;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Assumed {
    /// Times of changed copies, as a multiple of the curve's.
    pub(super) copies: f64,
    /// Host work right behind a staged copy, as a multiple of what it took: staging leaves the CPU's caches
    /// to the copy, and what comes next finds them cold.
    pub(super) behind_staging: f64,
    /// Host work for each copy that is merged into another, as a multiple of what it took: it has to be packed.
    pub(super) packing: f64,
    /// How much of the power effect comes.
    pub(super) power: Effect,
    /// What is copied is not used by the work that runs at the same time: it is of the iteration before or after.
    pub(super) independent: bool,
}

impl Assumed {
    pub(super) const MIDDLE: Self = Self {
        copies: 1.0,
        behind_staging: 0.5,
        packing: 0.2,
        power: Effect::AsMeasured,
        independent: false,
    };
    pub(super) const BEST: Self =
        Self { copies: 0.98, behind_staging: 0.3, packing: 0.0, power: Effect::None, independent: true };
    pub(super) const WORST: Self =
        Self { copies: 1.03, behind_staging: 1.0, packing: 0.6, power: Effect::Most, independent: false };
}

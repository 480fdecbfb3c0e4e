//! How much does the power limit slow down a device that is never idle?
//!
//! Below some duty cycle the limit has no effect; from there up to full duty the slowdown grows to the value in the
//! machine profile.

use busbound_machine::LinkFacts;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Power {
    /// Time of matrix kernels at full duty divided by their time with idle phases; 1 without a profile.
    full: f64,
    /// The worst slowdown considered.
    most: f64,
    /// The duty cycle at which the power limit takes effect.
    binds_at: f64,
}

/// How much of the power effect to assume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    AsMeasured,
    Most,
}

/// The largest slowdown of matrix kernels measured on an H200 between partial and full duty.
const MOST_LOST_UNMEASURED: f64 = 1.25;
/// Idle power as a share of the power limit: about 100 of 700 W.
const IDLE_SHARE_OF_LIMIT: f64 = 0.15;
/// Used if the profile has no power figures: the power limit of an H200 takes effect here.
const DUTY_AT_POWER_LIMIT: f64 = 0.72;

impl Power {
    pub(super) fn of(link: &LinkFacts) -> Self {
        let Some(power) = link.measured().and_then(|profile| profile.power) else {
            return Self { full: 1.0, most: MOST_LOST_UNMEASURED, binds_at: DUTY_AT_POWER_LIMIT };
        };
        let binds_at =
            power.half_duty_watts.zip(power.limit_watts).map_or(DUTY_AT_POWER_LIMIT, |(half, limit)| {
                let idle = IDLE_SHARE_OF_LIMIT * limit;
                // At half duty, the device is busy half of the time and idle the other half.
                let busy = 2.0 * half - idle;
                ((limit - idle) / (busy - idle)).clamp(0.3, 1.0)
            });
        let full = power.full_duty_slowdown.max(1.0);
        // Measured cuBLAS GEMMs slow down 1.6x as much as the profile's own kernel.
        Self { full, most: 1.0 + 1.8 * (full - 1.0), binds_at }
    }

    /// Time of matrix kernels at duty `after`, as a multiple of their time at duty `before`.
    pub(super) fn slowdown(&self, before: f64, after: f64, effect: Effect) -> f64 {
        let full = match effect {
            Effect::None => 1.0,
            Effect::AsMeasured => self.full,
            Effect::Most => self.most,
        };
        let at = |duty: f64| {
            let beyond = ((duty - self.binds_at) / (1.0 - self.binds_at).max(1e-6)).clamp(0.0, 1.0);
            1.0 + (full - 1.0) * beyond
        };
        at(after) / at(before)
    }
}

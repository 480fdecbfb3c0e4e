//! What does a device that never rests lose to its power limit?
//!
//! Below some share of busy time the limit does not bind; from there to no rest at all the slow-down grows to what the
//! machine's profile measured at full duty.

use busbound_machine::LinkFacts;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Power {
    /// Time of matrix work at full duty over that with rests; 1 where no profile tells.
    full: f64,
    /// The most that is thought of.
    most: f64,
    /// The share of busy time at which the limit begins to bind.
    binds_at: f64,
}

/// How much of it is taken for granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    AsMeasured,
    Most,
}

/// What an H200's products were seen to lose at most between a GPU that rests and one that never does.
const MOST_LOST_UNMEASURED: f64 = 1.25;
/// What a device draws while it rests, as a share of its limit: some 100 of 700 W.
const IDLE_SHARE_OF_LIMIT: f64 = 0.15;
/// Where the profile has no watts: the limit of an H200 binds from here.
const DUTY_AT_POWER_LIMIT: f64 = 0.72;

impl Power {
    pub(super) fn of(link: &LinkFacts) -> Self {
        let Some(power) = link.measured().and_then(|profile| profile.power) else {
            return Self { full: 1.0, most: MOST_LOST_UNMEASURED, binds_at: DUTY_AT_POWER_LIMIT };
        };
        let binds_at =
            power.half_duty_watts.zip(power.limit_watts).map_or(DUTY_AT_POWER_LIMIT, |(half, limit)| {
                let resting = IDLE_SHARE_OF_LIMIT * limit;
                // Half of the time it draws this much, the other half it rests.
                let busy = 2.0 * half - resting;
                ((limit - resting) / (busy - resting)).clamp(0.3, 1.0)
            });
        let full = power.full_duty_slowdown.max(1.0);
        // cuBLAS's products were seen to slow by 1.6 times as much as the profile's own kernel does.
        Self { full, most: 1.0 + 1.8 * (full - 1.0), binds_at }
    }

    /// What matrix work takes at one duty, as a multiple of what it took at another.
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

//! Why are the clocks not higher? NVML's bits as text.

use nvml_wrapper::bitmasks::device::ThrottleReasons;

const WORDS: [(ThrottleReasons, &str); 9] = [
    (ThrottleReasons::GPU_IDLE, "idle"),
    (ThrottleReasons::APPLICATIONS_CLOCKS_SETTING, "clocks set by a user"),
    (ThrottleReasons::SW_POWER_CAP, "power limit"),
    (ThrottleReasons::HW_SLOWDOWN, "hardware slowdown"),
    (ThrottleReasons::SYNC_BOOST, "another GPU in its sync boost group"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "thermal limit (software)"),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "thermal limit (hardware)"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power brake by the server"),
    (ThrottleReasons::DISPLAY_CLOCK_SETTING, "clocks set for a display"),
];

/// Empty if nothing limits them.
pub(super) fn describe(reasons: ThrottleReasons) -> Vec<String> {
    WORDS.iter().filter(|(bit, _)| reasons.contains(*bit)).map(|(_, word)| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_has_a_description() {
        assert!(describe(ThrottleReasons::NONE).is_empty());
        let both = ThrottleReasons::SW_POWER_CAP | ThrottleReasons::SW_THERMAL_SLOWDOWN;
        assert_eq!(describe(both), ["power limit", "thermal limit (software)"]);
        assert_eq!(describe(ThrottleReasons::all()).len(), WORDS.len());
    }
}

//! Why are the clocks not higher? NVML's bits in words.

use nvml_wrapper::bitmasks::device::ThrottleReasons;

const WORDS: [(ThrottleReasons, &str); 9] = [
    (ThrottleReasons::GPU_IDLE, "idle"),
    (ThrottleReasons::APPLICATIONS_CLOCKS_SETTING, "clocks set by a user"),
    (ThrottleReasons::SW_POWER_CAP, "power limit"),
    (ThrottleReasons::HW_SLOWDOWN, "hardware slowdown"),
    (ThrottleReasons::SYNC_BOOST, "another GPU of its boost group"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "too warm"),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "much too warm"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power brake of the server"),
    (ThrottleReasons::DISPLAY_CLOCK_SETTING, "clocks set for a display"),
];

/// Empty where nothing holds them down.
pub(super) fn in_words(reasons: ThrottleReasons) -> Vec<String> {
    WORDS.iter().filter(|(bit, _)| reasons.contains(*bit)).map(|(_, word)| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_has_its_words() {
        assert!(in_words(ThrottleReasons::NONE).is_empty());
        let both = ThrottleReasons::SW_POWER_CAP | ThrottleReasons::SW_THERMAL_SLOWDOWN;
        assert_eq!(in_words(both), ["power limit", "too warm"]);
        assert_eq!(in_words(ThrottleReasons::all()).len(), WORDS.len());
    }
}

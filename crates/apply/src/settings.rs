//! What the command says to the library, through environment variables.

/// What the library does: [`Mode`] by its name. Without it the library does nothing.
pub const MODE: &str = "BUSBOUND_STAGE";
/// Threads that copy, with the calling one if they are few.
pub const THREADS: &str = "BUSBOUND_STAGE_THREADS";
/// The most pinned memory for each GPU of a process, in MiB.
pub const RING_MIB: &str = "BUSBOUND_STAGE_RING_MIB";
/// Copies smaller than this, in KiB, go to the driver.
pub const SMALLEST_KIB: &str = "BUSBOUND_STAGE_MIN_KIB";
/// Where each process leaves its [`crate::tally`]: its ID is added to this name.
pub const TALLY: &str = "BUSBOUND_STAGE_TALLY";
/// Ranks of the job on this machine, as torchrun sets it: they share the CPUs.
pub const LOCAL_RANKS: &str = "LOCAL_WORLD_SIZE";

/// What the library does in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Off,
    /// Counts copies and their time, and leaves them to the driver.
    Observe,
    /// Takes over copies of pageable memory.
    Stage,
}

impl Mode {
    /// As written in the environment.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Observe => "observe",
            Self::Stage => "on",
        }
    }

    /// Any other value is off: a misspelled switch must not change a program.
    #[must_use]
    pub fn named(name: &str) -> Self {
        [Self::Observe, Self::Stage].into_iter().find(|mode| mode.name() == name).unwrap_or(Self::Off)
    }
}

/// Everything that the command says, or the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub mode: Mode,
    /// Chosen by the library if `None`.
    pub threads: Option<usize>,
    pub ring: usize,
    pub smallest: usize,
    pub local_ranks: usize,
}

/// Measured on an H200 with a Gen5 link: see docs/results/try.md.
pub const DEFAULT_RING_MIB: usize = 256;
/// As above: below this, waking threads costs what they gain.
pub const DEFAULT_SMALLEST_KIB: usize = 2048;

impl Settings {
    /// From the environment of this process; unreadable values count as absent.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::from(|name| std::env::var(name).ok())
    }

    fn from(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| variable(name).and_then(|text| text.trim().parse::<usize>().ok());
        Self {
            mode: variable(MODE).map_or(Mode::Off, |name| Mode::named(&name)),
            threads: number(THREADS).filter(|&threads| threads > 0).map(|threads| threads.min(64)),
            ring: number(RING_MIB).unwrap_or(DEFAULT_RING_MIB).min(1 << 16) << 20,
            smallest: number(SMALLEST_KIB).unwrap_or(DEFAULT_SMALLEST_KIB).min(1 << 30) << 10,
            local_ranks: number(LOCAL_RANKS).unwrap_or(1).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[(&str, &str)]) -> Settings {
        Settings::from(|name| {
            given.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_happens_without_the_switch_or_with_a_misspelled_one() {
        assert_eq!(of(&[]).mode, Mode::Off);
        assert_eq!(of(&[(MODE, "yes")]).mode, Mode::Off);
        assert_eq!(of(&[(MODE, "on")]).mode, Mode::Stage);
        assert_eq!(of(&[(MODE, "observe")]).mode, Mode::Observe);
    }

    #[test]
    fn values_that_are_no_numbers_count_as_absent() {
        let settings = of(&[(THREADS, "many"), (RING_MIB, "-1"), (SMALLEST_KIB, ""), (LOCAL_RANKS, "0")]);
        assert_eq!(settings, of(&[]));
        assert_eq!(of(&[(THREADS, "4"), (RING_MIB, "64")]).threads, Some(4));
        assert_eq!(of(&[(RING_MIB, "64")]).ring, 64 << 20);
    }
}

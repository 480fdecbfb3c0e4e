//! What does the library do? `busbound record` writes it into the program's environment, and the library reads it there.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// Where to write the recording: the file for the first process that uses CUDA; other processes add their id to its
/// name.
const TO: &str = "BUSBOUND_RECORD_TO";
const DELAY: &str = "BUSBOUND_RECORD_DELAY";
const DURATION: &str = "BUSBOUND_RECORD_DURATION";
const RING: &str = "BUSBOUND_RECORD_RING";
const STANDBY: &str = "BUSBOUND_RECORD_STANDBY";
const EVERY: &str = "BUSBOUND_RECORD_EVERY";
const CONTROL: &str = "BUSBOUND_RECORD_CONTROL";
const SIGNAL: &str = "BUSBOUND_RECORD_SIGNAL";
const WATCHDOG: &str = "BUSBOUND_RECORD_WATCHDOG";
const COUNTERS: &str = "BUSBOUND_RECORD_COUNTERS";

/// When is the program recorded?
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// From `delay` after the first use of CUDA on, for `duration` or to the end, to one file.
    Window { delay: Duration, duration: Option<Duration> },
    /// All the time: the last part of the run is kept in memory, and written when something happens.
    Ring { last: Duration },
    /// Only when it is asked to start.
    Standby,
    /// For `duration`, then not until `every` has passed, and so on; each window to a file.
    Cycle { every: Duration, duration: Duration },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub to: PathBuf,
    pub when: When,
    /// The directory with a socket for each process, which takes commands.
    pub control: Option<PathBuf>,
    /// The signal that asks for a dump.
    pub signal: Option<i32>,
    /// A ring is dumped if no device work completes for this long.
    pub watchdog: Option<Duration>,
    /// Whether to read the byte counters of the link.
    pub counts_bytes: bool,
}

impl Settings {
    /// `None` if the environment does not say where to record to.
    pub(super) fn from_environment() -> Option<Self> {
        Self::of(|name| std::env::var_os(name))
    }

    /// The directory of the sockets, if these variables of a process name one.
    pub fn control_of(get: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        get(CONTROL).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    fn of(get: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let text = |name: &str| get(name).and_then(|value| value.into_string().ok());
        let seconds = |name: &str| Duration::try_from_secs_f64(text(name)?.parse().ok()?).ok();
        let duration = seconds(DURATION);
        let when = match (seconds(RING), seconds(EVERY), duration, get(STANDBY).is_some()) {
            (Some(last), ..) => When::Ring { last },
            (None, Some(every), Some(duration), _) => When::Cycle { every, duration },
            (None, _, _, true) => When::Standby,
            _ => When::Window { delay: seconds(DELAY).unwrap_or_default(), duration },
        };
        Some(Self {
            to: get(TO)?.into(),
            when,
            control: Self::control_of(&get),
            signal: text(SIGNAL).and_then(|number| number.parse().ok()),
            watchdog: seconds(WATCHDOG),
            counts_bytes: text(COUNTERS).is_none_or(|value| value != "0"),
        })
    }

    /// The variables that say this; those without a value must not be set.
    pub fn variables(&self) -> Vec<(&'static str, Option<OsString>)> {
        let seconds = |duration: Duration| OsString::from(duration.as_secs_f64().to_string());
        let (mut delay, mut length, mut ring, mut every) = (None, None, None, None);
        match self.when {
            When::Window { delay: first, duration } => (delay, length) = (Some(first), duration),
            When::Ring { last } => ring = Some(last),
            When::Standby => {}
            When::Cycle { every: period, duration } => (every, length) = (Some(period), Some(duration)),
        }
        vec![
            (TO, Some(self.to.clone().into_os_string())),
            (DELAY, delay.map(seconds)),
            (DURATION, length.map(seconds)),
            (RING, ring.map(seconds)),
            (STANDBY, (self.when == When::Standby).then(|| "1".into())),
            (EVERY, every.map(seconds)),
            (CONTROL, self.control.as_deref().map(|path| OsStr::new(path).to_owned())),
            (SIGNAL, self.signal.map(|number| number.to_string().into())),
            (WATCHDOG, self.watchdog.map(seconds)),
            (COUNTERS, (!self.counts_bytes).then(|| "0".into())),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let seconds = Duration::from_secs_f64;
        let all = [
            When::Window { delay: seconds(0.5), duration: None },
            When::Window { delay: Duration::ZERO, duration: Some(seconds(2.25)) },
            When::Ring { last: seconds(60.0) },
            When::Standby,
            When::Cycle { every: seconds(600.0), duration: seconds(5.0) },
        ];
        for (number, when) in all.into_iter().enumerate() {
            let settings = Settings {
                to: "/data/run.bbt".into(),
                when,
                control: (number != 0).then(|| "/run/user/1000/busbound".into()),
                signal: (number == 2).then_some(12),
                watchdog: (number == 2).then(|| seconds(30.0)),
                counts_bytes: number != 3,
            };
            let variables = settings.variables();
            let get = |name: &str| {
                let known = variables.iter().find(|(known, _)| *known == name);
                known.and_then(|(_, value)| value.clone())
            };
            assert_eq!(Settings::of(get), Some(settings.clone()));
        }
        assert_eq!(Settings::of(|_| None), None);
    }
}

//! What makes a ring write a dump by itself: a device on which nothing completes, and steps whose time changes.
//!
//! `busbound history` finds changes in a whole series, tries every split and needs the crates that this one must not
//! depend on. Here the series has no end, and a change matters only while the ring still holds it: the last steps are
//! compared with those before.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Steps that are compared with the [`BEFORE`] steps before them.
const RECENT: usize = 32;
const BEFORE: usize = 128;
/// How often, in steps.
const COMPARED_EVERY: usize = 8;
/// A change below this share of the step time is not one.
const SMALLEST: f64 = 0.15;
/// Standard errors that a change of the medians must reach.
const STANDARD_ERRORS: f64 = 6.0;
/// The standard error of a median in median absolute deviations, for normal noise and one point.
const MEDIAN_ERROR: f64 = 1.2533 * 1.4826;

/// Dumps that nobody asked for: at most one in this time, and this many in all, because they fill the disk.
const APART: Duration = Duration::from_secs(60);
const MOST_DUMPS: u32 = 10;

/// The times of a program's steps.
#[derive(Debug, Default)]
struct Steps {
    times: VecDeque<u64>,
    uncompared: usize,
}

impl Steps {
    /// Says how the step time has changed.
    fn add(&mut self, nanos: u64) -> Option<String> {
        self.times.push_back(nanos);
        self.uncompared += 1;
        if self.times.len() > BEFORE + RECENT {
            self.times.pop_front();
        }
        if self.times.len() < BEFORE + RECENT || self.uncompared < COMPARED_EVERY {
            return None;
        }
        self.uncompared = 0;
        let all: Vec<f64> = self.times.iter().map(|time| *time as f64).collect();
        let (before, recent) = all.split_at(BEFORE);
        let (old, new) = (median(before), median(recent));
        let noise = median(&before.iter().map(|time| (time - old).abs()).collect::<Vec<_>>());
        let error = MEDIAN_ERROR * noise * (1.0 / RECENT as f64 + 1.0 / BEFORE as f64).sqrt();
        if (new - old).abs() <= (SMALLEST * old).max(STANDARD_ERRORS * error) {
            return None;
        }
        // The new level is compared with itself from now on.
        self.times.drain(..BEFORE);
        let ms = |nanos: f64| nanos / 1e6;
        Some(format!("the step time changed from {:.3} to {:.3} ms", ms(old), ms(new)))
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Whether a range with this name is a step: as programs and frameworks call it, with or without its number.
pub(super) fn is_step(name: &[u8]) -> bool {
    let is = |part: &[u8]| name.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part));
    is(b"step") || is(b"iteration")
}

#[derive(Debug)]
pub(super) struct Triggers {
    watchdog: Option<Duration>,
    /// When device work last arrived; `None` before the first, and after a dump because of it.
    worked: Option<Instant>,
    steps: Steps,
    changed: Option<String>,
    dumped: Option<Instant>,
    dumps: u32,
}

impl Triggers {
    pub(super) fn new(watchdog: Option<Duration>) -> Self {
        Self { watchdog, worked: None, steps: Steps::default(), changed: None, dumped: None, dumps: 0 }
    }

    pub(super) fn device_worked(&mut self, now: Instant) {
        self.worked = Some(now);
    }

    /// Whether nothing completes on the device: a kernel may be stuck.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        self.worked.is_none_or(|at| now.saturating_duration_since(at) > Duration::from_secs(2))
    }

    pub(super) fn step(&mut self, nanos: u64) {
        if let Some(change) = self.steps.add(nanos) {
            self.changed = Some(change);
        }
    }

    /// Why to dump now, if there is a reason.
    pub(super) fn reason(&mut self, now: Instant) -> Option<String> {
        let mut why = self.changed.take();
        if let (Some(limit), Some(worked)) = (self.watchdog, self.worked)
            && now.saturating_duration_since(worked) >= limit
        {
            self.worked = None;
            why = Some(format!("no device work completed for {:.0} s", limit.as_secs_f64()));
        }
        let is_early = self.dumped.is_some_and(|at| now.saturating_duration_since(at) < APART);
        let why = why.filter(|_| !is_early && self.dumps < MOST_DUMPS)?;
        (self.dumped, self.dumps) = (Some(now), self.dumps + 1);
        Some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise without a random number generator: 2% to both sides.
    fn noisy(step: u64, level: u64) -> u64 {
        level * (98 + (step * 7919) % 5) / 100
    }

    #[test]
    fn a_slower_level_is_found_once_and_noise_is_not() {
        let mut steps = Steps::default();
        let mut said = Vec::new();
        for step in 0..1_000u64 {
            // Every 50th step saves a checkpoint.
            let outlier = if step % 50 == 0 { 20 } else { 1 };
            let level = if step < 600 { 10_000_000 } else { 13_000_000 };
            said.extend(steps.add(noisy(step, level) * outlier).map(|text| (step, text)));
        }
        let [(at, text)] = said.as_slice() else { panic!("{said:?}") };
        assert!((600..640).contains(at), "{at}");
        assert!(text.starts_with("the step time changed from 10.000 to 1"), "{text}");
    }

    #[test]
    fn a_small_or_a_noisy_change_is_none() {
        let mut steps = Steps::default();
        for step in 0..2_000u64 {
            let level = if step < 1_000 { 10_000_000 } else { 11_000_000 };
            assert_eq!(steps.add(noisy(step, level)), None);
        }
        let mut steps = Steps::default();
        for step in 0..2_000u64 {
            // Steps of 5 to 25 ms.
            assert_eq!(steps.add(5_000_000 + (step * 7919) % 20 * 1_000_000), None);
        }
    }

    #[test]
    fn the_watchdog_needs_work_before_and_reports_once() {
        let begin = Instant::now();
        let at = |seconds: u64| begin + Duration::from_secs(seconds);
        let mut triggers = Triggers::new(Some(Duration::from_secs(30)));
        assert_eq!(triggers.reason(at(100)), None);
        triggers.device_worked(at(100));
        assert_eq!(triggers.reason(at(129)), None);
        assert_eq!(triggers.reason(at(130)).as_deref(), Some("no device work completed for 30 s"));
        assert_eq!(triggers.reason(at(300)), None);
        triggers.device_worked(at(300));
        assert!(triggers.reason(at(330)).is_some());
    }

    #[test]
    fn dumps_that_nobody_asked_for_are_few() {
        let begin = Instant::now();
        let mut triggers = Triggers::new(Some(Duration::from_secs(1)));
        let mut dumps = Vec::new();
        for second in 0..3_600 {
            let now = begin + Duration::from_secs(second);
            if second % 2 == 0 {
                triggers.device_worked(now);
            }
            dumps.extend(triggers.reason(now).map(|_| second));
        }
        assert_eq!(dumps.len(), MOST_DUMPS as usize);
        assert!(dumps.windows(2).all(|pair| pair[1] - pair[0] >= 60), "{dumps:?}");
    }

    #[test]
    fn steps_are_recognized_by_name() {
        for name in ["step", "ProfilerStep#12", "train_step", "Iteration 7"] {
            assert!(is_step(name.as_bytes()), "{name}");
        }
        assert!(!is_step(b"forward") && !is_step(b""));
    }
}

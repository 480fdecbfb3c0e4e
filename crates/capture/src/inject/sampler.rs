//! Are kernels recorded right now? Their records are what recording costs, per kernel. A ring that sees more than [`MOST`] of
//! them per second turns them off for most of the time, so that about [`BUDGET`] per second are recorded; copies, waits and
//! ranges are always recorded.

use std::time::{Duration, Instant};

/// Kernels per second that are recorded without gaps. At about 1 µs each this is 0.4% of one core.
const MOST: f64 = 4_000.0;
/// Kernels per second that are recorded on average, if there are more than [`MOST`].
const BUDGET: f64 = 2_000.0;
/// Below this share of [`MOST`], recording without gaps begins again.
const CALM: f64 = 0.7;
/// The rate is measured for this long. Kernels are on for a part of it, but never shorter than [`SHORTEST`] at a time, in
/// which several steps of a decode loop fit, and never off for longer than [`LONGEST`], so that a ring has some.
const PERIOD: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Recorded without gaps; the rate is measured since then.
    Always(Instant),
    On(Instant),
    /// Off since then, after having been on for that long.
    Off(Instant, Duration),
}

/// For how long kernels are recorded, and for how long not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    on: Duration,
    off: Duration,
}

impl Plan {
    fn of(rate: f64) -> Self {
        let share = (BUDGET / rate).min(0.5);
        let on = PERIOD.mul_f64(share).max(SHORTEST);
        Self { on, off: on.mul_f64(1.0 / share - 1.0).min(LONGEST) }
    }
}

#[derive(Debug)]
pub(super) struct Sampler {
    state: State,
    plan: Plan,
    /// Kernels since the rate was last known; while off, those that were recorded before and arrive late.
    kernels: u64,
}

impl Sampler {
    pub(super) fn new(now: Instant) -> Self {
        Self { state: State::Always(now), plan: Plan::of(MOST), kernels: 0 }
    }

    /// How kernels are sampled, for a dump.
    pub(super) fn describe(&self) -> Option<String> {
        (!matches!(self.state, State::Always(_))).then(|| {
            let Plan { on, off } = self.plan;
            format!(
                "kernels and their launches are recorded for {} ms of each {} ms only, because there are more than {MOST} per second; \
                 copies, waits and NVTX ranges are recorded always",
                on.as_millis(),
                (on + off).as_millis()
            )
        })
    }

    pub(super) fn add_kernels(&mut self, count: u64) {
        self.kernels += count;
    }

    /// Whether to record kernels from now on, if that changes.
    pub(super) fn tick(&mut self, now: Instant) -> Option<bool> {
        let since = |begin: Instant| now.saturating_duration_since(begin);
        match self.state {
            State::Always(begin) if since(begin) >= PERIOD => {
                let rate = self.take_rate(since(begin));
                if rate <= MOST {
                    self.state = State::Always(now);
                    return None;
                }
                self.plan = Plan::of(rate);
                // What arrives late must not make it look calm.
                self.state = State::Off(now, Duration::ZERO);
                Some(false)
            }
            State::Off(begin, was_on) if since(begin) >= self.plan.off => {
                // What was recorded while it was on has arrived by now.
                let is_measured = !was_on.is_zero();
                let rate = self.take_rate(was_on);
                if is_measured {
                    self.plan = Plan::of(rate);
                }
                let is_calm = is_measured && rate < CALM * MOST;
                self.state = if is_calm { State::Always(now) } else { State::On(now) };
                Some(true)
            }
            State::On(begin) if since(begin) >= self.plan.on => {
                self.state = State::Off(now, since(begin));
                Some(false)
            }
            _ => None,
        }
    }

    fn take_rate(&mut self, time: Duration) -> f64 {
        std::mem::take(&mut self.kernels) as f64 / time.as_secs_f64().max(1e-3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs it for some seconds with this many kernels per second while they are recorded; returns how long they were, in ms.
    fn recorded_ms(sampler: &mut Sampler, begin: Instant, seconds: std::ops::Range<u64>, rate: u64) -> u64 {
        let mut recorded = 0;
        for tick in seconds.start * 40..seconds.end * 40 {
            let now = begin + Duration::from_millis(25 * tick);
            if !matches!(sampler.state, State::Off(..)) {
                sampler.add_kernels(rate / 40);
                recorded += 25;
            }
            sampler.tick(now);
        }
        recorded
    }

    #[test]
    fn many_kernels_are_sampled_and_few_are_not() {
        let begin = Instant::now();
        let mut sampler = Sampler::new(begin);
        assert_eq!(recorded_ms(&mut sampler, begin, 0..10, 3_000), 10_000);
        assert_eq!(sampler.describe(), None);
        let busy = recorded_ms(&mut sampler, begin, 10..30, 10_000);
        assert!((4_500..5_500).contains(&busy), "{busy} ms of 20 s: the first second, then a fifth");
        let flood = recorded_ms(&mut sampler, begin, 30..90, 200_000);
        assert!((1_100..2_500).contains(&flood), "{flood} ms of 60 s: a fiftieth");
        assert!(sampler.describe().is_some());
        // The rate is known again after at most one pause.
        let calm = recorded_ms(&mut sampler, begin, 90..110, 1_000);
        assert!(calm >= 9_000, "{calm}");
        assert_eq!(sampler.describe(), None);
    }

    #[test]
    fn about_as_many_are_recorded_whatever_their_rate() {
        let plan = |rate| Plan::of(rate);
        let ms = Duration::from_millis;
        assert_eq!(plan(10_000.0), Plan { on: ms(200), off: ms(800) });
        assert_eq!(plan(40_000.0), Plan { on: ms(100), off: ms(1_900) });
        assert_eq!(plan(1e6), Plan { on: ms(100), off: ms(5_000) });
    }
}

//! Are kernels recorded right now? Their records are what recording costs, per kernel. A ring that sees more than
//! [`MOST`] of them per second records them for [`ON`] of each [`PERIOD`]; copies, waits and ranges are always recorded.

use std::time::{Duration, Instant};

/// Kernels per second that are recorded without gaps. At about 1 µs each this is 0.4% of one core.
const MOST: f64 = 4_000.0;
/// Below this share of [`MOST`], recording without gaps begins again.
const CALM: f64 = 0.7;
const ON: Duration = Duration::from_millis(100);
const PERIOD: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Recorded without gaps; the rate is measured since then.
    Always(Instant),
    On(Instant),
    /// Off since then, after having been on for that long; `None` if the rate was too high without gaps.
    Off(Instant, Option<Duration>),
}

#[derive(Debug)]
pub(super) struct Sampler {
    state: State,
    /// Kernels since the state was entered; while off, those that were recorded before and arrive late.
    kernels: u64,
}

impl Sampler {
    pub(super) fn new(now: Instant) -> Self {
        Self { state: State::Always(now), kernels: 0 }
    }

    pub(super) fn is_off(&self) -> bool {
        matches!(self.state, State::Off(..))
    }

    /// How kernels are sampled, for a dump.
    pub(super) fn describe(&self) -> Option<String> {
        (!matches!(self.state, State::Always(_))).then(|| {
            format!(
                "kernels and their launches are recorded for {} ms of each {} ms only, because there are more than {MOST} per second; \
                 copies, waits and NVTX ranges are recorded always",
                ON.as_millis(),
                PERIOD.as_millis()
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
                let rate = self.kernels as f64 / since(begin).as_secs_f64();
                self.kernels = 0;
                self.state = if rate > MOST { State::Off(now, None) } else { State::Always(now) };
                self.is_off().then_some(false)
            }
            State::Off(begin, was_on) if since(begin) >= PERIOD - ON => {
                // What was recorded while it was on has arrived by now.
                let kernels = std::mem::take(&mut self.kernels) as f64;
                let is_calm = was_on.is_some_and(|length| kernels < CALM * MOST * length.as_secs_f64());
                self.state = if is_calm { State::Always(now) } else { State::On(now) };
                Some(true)
            }
            State::On(begin) if since(begin) >= ON => {
                self.state = State::Off(now, Some(since(begin)));
                Some(false)
            }
            _ => None,
        }
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
            if !sampler.is_off() {
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
        assert_eq!(recorded_ms(&mut sampler, begin, 0..10, 2_000), 10_000);
        assert_eq!(sampler.describe(), None);
        let busy = recorded_ms(&mut sampler, begin, 10..30, 40_000);
        assert!((2_700..3_200).contains(&busy), "{busy} ms of 20 s: the first second, then a tenth");
        assert!(sampler.describe().is_some());
        // The rate is known again after at most one period.
        let calm = recorded_ms(&mut sampler, begin, 30..40, 1_000);
        assert!(calm >= 7_000, "{calm}");
        assert_eq!(sampler.describe(), None);
    }
}

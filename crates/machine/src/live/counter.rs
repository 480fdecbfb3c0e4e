//! How many bytes passed between two readings of a counter that wraps?
//!
//! A counter of 32 bits wraps every 4 GiB, on a busy PCIe 5 x16 every 68 ms. Between two readings it may have wrapped
//! at most once, or nobody knows how often; time in which that cannot be told is unknown time, not a guess.

/// How many bits a counter has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterWidth {
    Bits32,
    Bits64,
}

/// What passed since it was last asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub bytes: u64,
    pub known_ns: u64,
    pub unknown_ns: u64,
}

/// With less than this share of an interval known, the rest says too little.
const ENOUGH_KNOWN: f64 = 0.5;

impl Traffic {
    /// `None` where most of the interval is not known.
    pub fn bytes_per_s(self) -> Option<f64> {
        let enough = self.known_ns > 0 && 1.0 - self.unknown_share() >= ENOUGH_KNOWN;
        enough.then(|| self.bytes as f64 / (self.known_ns as f64 * 1e-9))
    }

    /// 0 to 1.
    pub fn unknown_share(self) -> f64 {
        let all = self.known_ns + self.unknown_ns;
        if all == 0 { 0.0 } else { self.unknown_ns as f64 / all as f64 }
    }
}

/// Adds up what a counter counts.
#[derive(Debug, Clone)]
pub struct TrafficMeter {
    width: CounterWidth,
    /// The fastest that the counter can go.
    peak_bytes_per_s: f64,
    /// When it was last read, and what it said.
    last: Option<(u64, u64)>,
    since: Traffic,
}

impl TrafficMeter {
    /// Of a counter on a link with this peak, in GB/s of one direction.
    pub fn new(width: CounterWidth, peak_gbps: f64) -> Self {
        Self { width, peak_bytes_per_s: peak_gbps * 1e9, last: None, since: Traffic::default() }
    }

    /// The longest that two readings may lie apart, in nanoseconds; `None` if any time will do.
    pub fn longest_gap_ns(&self) -> Option<u64> {
        match self.width {
            CounterWidth::Bits32 => Some((WRAP as f64 / self.peak_bytes_per_s * 1e9) as u64),
            CounterWidth::Bits64 => None,
        }
    }

    /// A reading, and when it was taken by a clock that never goes back.
    pub fn read(&mut self, at_ns: u64, value: u64) {
        if let Some((before_ns, before)) = self.last {
            let passed_ns = at_ns.saturating_sub(before_ns);
            match self.passed(before, value) {
                Some(bytes) if self.longest_gap_ns().is_none_or(|longest| passed_ns <= longest) => {
                    self.since.bytes += bytes;
                    self.since.known_ns += passed_ns;
                }
                _ => self.since.unknown_ns += passed_ns,
            }
        }
        self.last = Some((at_ns, value));
    }

    /// `None` where the counter went back, which one of 64 bits does only when the GPU was reset.
    fn passed(&self, before: u64, now: u64) -> Option<u64> {
        match self.width {
            CounterWidth::Bits32 => Some(now.wrapping_sub(before) % WRAP),
            CounterWidth::Bits64 => now.checked_sub(before),
        }
    }

    /// What passed since this was last asked, up to the last reading.
    pub fn take(&mut self) -> Traffic {
        std::mem::take(&mut self.since)
    }
}

const WRAP: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn wrapping() -> TrafficMeter {
        TrafficMeter::new(CounterWidth::Bits32, 63.0)
    }

    #[test]
    fn a_counter_that_wraps_is_read_on() {
        let mut meter = wrapping();
        // 55 GB/s, read every 20 ms for a second: it wraps twelve times.
        for i in 0..=50_u64 {
            meter.read(i * 20 * MS, (4_000_000_000 + i * 1_100_000_000) % WRAP);
        }
        let traffic = meter.take();
        assert_eq!((traffic.bytes, traffic.known_ns, traffic.unknown_ns), (55_000_000_000, 1_000 * MS, 0));
        assert_eq!(traffic.bytes_per_s(), Some(55e9));
        assert_eq!(meter.take(), Traffic::default());
        // The next interval begins at the last reading.
        meter.read(1_020 * MS, (4_000_000_000 + 51 * 1_100_000_000) % WRAP);
        assert_eq!(meter.take().bytes, 1_100_000_000);
    }

    #[test]
    fn readings_further_apart_than_a_wrap_are_unknown_and_not_wrong() {
        let mut meter = wrapping();
        assert_eq!(meter.longest_gap_ns().map(|ns| ns / MS), Some(68));
        meter.read(0, 0);
        meter.read(20 * MS, 1_000_000_000);
        meter.read(90 * MS, 2_000_000_000);
        meter.read(110 * MS, 3_000_000_000);
        let traffic = meter.take();
        assert_eq!((traffic.bytes, traffic.known_ns, traffic.unknown_ns), (2_000_000_000, 40 * MS, 70 * MS));
        assert_eq!(traffic.bytes_per_s(), None, "most of it is not known");
        for i in 0..4 {
            meter.read((130 + 20 * i) * MS, 3_000_000_000);
        }
        meter.read(270 * MS, 3_000_000_000);
        assert!((meter.take().unknown_share() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_wide_counter_never_wraps_and_a_reset_is_unknown() {
        let mut meter = TrafficMeter::new(CounterWidth::Bits64, 63.0);
        meter.read(0, 5);
        meter.read(3_000 * MS, 5 + 90_000_000_000);
        assert_eq!(meter.take().bytes_per_s(), Some(30e9));
        meter.read(4_000 * MS, 7);
        assert_eq!(meter.take(), Traffic { bytes: 0, known_ns: 0, unknown_ns: 1_000 * MS });
    }

    #[test]
    fn one_reading_tells_nothing() {
        let mut meter = wrapping();
        meter.read(5, 1);
        assert_eq!(meter.take().bytes_per_s(), None);
    }
}

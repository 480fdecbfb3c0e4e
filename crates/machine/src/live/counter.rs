//! How many bytes passed between two readings of a wrapping counter?
//!
//! A 32-bit counter wraps every 4 GiB: every 68 ms on a busy PCIe 5 x16 link. Between two readings it may wrap at most
//! once; if the readings are farther apart, the traffic in that time is unknown, not guessed.

/// The number of bits of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterWidth {
    Bits32,
    Bits64,
}

/// The traffic since the last query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub bytes: u64,
    pub known_ns: u64,
    pub unknown_ns: u64,
}

/// Below this known share of an interval, no rate is reported.
const ENOUGH_KNOWN: f64 = 0.5;

impl Traffic {
    /// `None` if most of the interval is unknown.
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

/// Sums the bytes of a counter.
#[derive(Debug, Clone)]
pub struct TrafficMeter {
    width: CounterWidth,
    /// The highest rate at which the counter can grow.
    peak_bytes_per_s: f64,
    /// Time and value of the last reading.
    last: Option<(u64, u64)>,
    since: Traffic,
}

impl TrafficMeter {
    /// For a counter on a link with this peak, in GB/s in one direction.
    pub fn new(width: CounterWidth, peak_gbps: f64) -> Self {
        Self { width, peak_bytes_per_s: peak_gbps * 1e9, last: None, since: Traffic::default() }
    }

    /// The longest allowed time between two readings, in nanoseconds; `None` if any time is allowed.
    pub fn longest_gap_ns(&self) -> Option<u64> {
        match self.width {
            CounterWidth::Bits32 => Some((WRAP as f64 / self.peak_bytes_per_s * 1e9) as u64),
            CounterWidth::Bits64 => None,
        }
    }

    /// Adds a reading with its time from a monotonic clock.
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

    /// `None` if the counter decreased: a 64-bit counter does so only after a GPU reset.
    fn passed(&self, before: u64, now: u64) -> Option<u64> {
        match self.width {
            CounterWidth::Bits32 => Some(now.wrapping_sub(before) % WRAP),
            CounterWidth::Bits64 => now.checked_sub(before),
        }
    }

    /// The traffic since the last call, up to the last reading.
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
    fn wraps_are_counted() {
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
    fn readings_farther_apart_than_a_wrap_are_unknown_and_not_wrong() {
        let mut meter = wrapping();
        assert_eq!(meter.longest_gap_ns().map(|ns| ns / MS), Some(68));
        meter.read(0, 0);
        meter.read(20 * MS, 1_000_000_000);
        meter.read(90 * MS, 2_000_000_000);
        meter.read(110 * MS, 3_000_000_000);
        let traffic = meter.take();
        assert_eq!((traffic.bytes, traffic.known_ns, traffic.unknown_ns), (2_000_000_000, 40 * MS, 70 * MS));
        assert_eq!(traffic.bytes_per_s(), None, "most of the interval is unknown");
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
    fn one_reading_gives_no_rate() {
        let mut meter = wrapping();
        meter.read(5, 1);
        assert_eq!(meter.take().bytes_per_s(), None);
    }
}

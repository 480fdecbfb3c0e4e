//! How is a number formatted so that a tired person reads it right? Always with its unit, and with at least three
//! significant digits.

pub use busbound_cause::host::printable;
use busbound_trace::Nanos;

/// `312 ns`, `4.70 µs`, `301 ms`, `2.15 s`.
pub fn time(nanos: Nanos) -> String {
    let ns = nanos.get() as f64;
    match ns.abs() {
        a if a < 1e3 => format!("{ns} ns"),
        a if a < 1e6 => format!("{} µs", digits(ns / 1e3)),
        a if a < 1e9 => format!("{} ms", digits(ns / 1e6)),
        _ => format!("{} s", digits(ns / 1e9)),
    }
}

/// As [`time`], from milliseconds.
pub fn milliseconds(ms: f64) -> String {
    time(Nanos::new((ms * 1e6).round() as i64))
}

/// `161–176 ms`, `900 µs–1.20 ms` if the units differ, `161 ms` if both ends look the same.
pub fn milliseconds_range(low: f64, high: f64) -> String {
    range(&milliseconds(low), &milliseconds(high))
}

/// `274 → 104 ms`, `1.20 ms → 900 µs` if the units differ.
pub fn milliseconds_change(before: f64, after: f64) -> String {
    joined(&milliseconds(before), " → ", &milliseconds(after))
}

/// Two quantities with units as a range.
pub fn range(low: &str, high: &str) -> String {
    if low == high { low.to_owned() } else { joined(low, "–", high) }
}

/// A unit that both have is said once.
fn joined(first: &str, between: &str, second: &str) -> String {
    match (first.split_once(' '), second.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number}{between}{second}"),
        _ => format!("{first}{between}{second}"),
    }
}

/// `168 MB`: powers of ten, because links are rated in them.
pub fn bytes(count: u64) -> String {
    let b = count as f64;
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{} kB", digits(b / 1e3)),
        1_000_000..1_000_000_000 => format!("{} MB", digits(b / 1e6)),
        _ => format!("{} GB", digits(b / 1e9)),
    }
}

/// `9.43 GB/s`; bytes per nanosecond are gigabytes per second.
pub fn rate(bytes: u64, time: Nanos) -> String {
    if time.get() <= 0 {
        return "–".to_owned();
    }
    format!("{} GB/s", digits(bytes as f64 / time.get() as f64))
}

/// `55.4 GB/s`, below one `412 kB/s`, so that no slow link looks like none.
pub fn gigabytes_per_second(gbps: f64) -> String {
    if gbps >= 1.0 { format!("{gbps:.1} GB/s") } else { format!("{}/s", bytes((gbps * 1e9) as u64)) }
}

/// `2,584`: groups of three, for counts.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(c);
    }
    grouped
}

/// `1 gap`, `2 gaps`.
pub fn plural(n: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { several })
}

/// Three significant digits, or more if the integer part has more.
fn digits(value: f64) -> String {
    match value.abs() {
        a if a < 0.0005 => "0".to_owned(),
        a if a < 0.9995 => format!("{value:.3}"),
        a if a < 9.995 => format!("{value:.2}"),
        a if a < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(time(Nanos::new(312)), "312 ns");
        assert_eq!(time(Nanos::new(4_700)), "4.70 µs");
        assert_eq!(time(Nanos::new(301_234_567)), "301 ms");
        assert_eq!(time(Nanos::new(2_150_000_000)), "2.15 s");
        assert_eq!(bytes(167_772_160), "168 MB");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(rate(167_772_160, Nanos::new(3_024_726)), "55.5 GB/s");
        assert_eq!(rate(1, Nanos::ZERO), "–");
        assert_eq!(gigabytes_per_second(55.42), "55.4 GB/s");
        assert_eq!(gigabytes_per_second(0.000_41), "410 kB/s");
        assert_eq!(count(2_584), "2,584");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
        assert_eq!(printable("a\u{1b}[2J\nb"), "a\\u{1b}[2J\\nb");
    }
}

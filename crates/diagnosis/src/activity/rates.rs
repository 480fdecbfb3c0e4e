//! How are the rates of copies distributed: over sizes, and over rates?

use busbound_machine::quantile;
use busbound_trace::Nanos;
use serde::Serialize;

/// Copies above this size count as large and are shown separately.
pub(crate) const LARGE: u64 = 100_000_000;

/// Upper ends of the size classes, in bytes.
const SIZE_CLASSES: [u64; 5] = [64 << 10, 1 << 20, 16 << 20, LARGE, u64::MAX];

pub(crate) const SIZE_LABELS: [&str; 5] =
    ["below 64 KiB", "64 KiB to 1 MiB", "1 to 16 MiB", "16 MiB to 100 MB", "over 100 MB"];

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// All bytes over the time in which at least one of the copies ran.
    pub weighted: f64,
    pub p10: f64,
    pub p50: f64,
    pub p90: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistogramBin {
    pub from_gbps: f64,
    /// `null` for the last, which has no upper end.
    pub to_gbps: Option<f64>,
    pub count: u64,
    pub bytes: u64,
    pub ms: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeClass {
    pub label: &'static str,
    pub from_bytes: u64,
    /// `null` for the last, which has no upper end.
    pub to_bytes: Option<u64>,
    pub count: u64,
    pub bytes: u64,
    pub ms: f64,
    pub gbps: f64,
    /// What the link reaches for copies of these sizes; only for copies of 64 KiB or more that cross the link.
    pub expected_gbps: Option<f64>,
}

/// One copy: its size, and how long it took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moved {
    pub(crate) bytes: u64,
    pub(crate) time: Nanos,
    /// How long the link should take for it.
    pub(crate) expected_ns: f64,
}

impl Moved {
    pub(crate) fn gbps(&self) -> Option<f64> {
        (self.time.get() > 0).then(|| self.bytes as f64 / self.time.get() as f64)
    }
}

impl Rates {
    /// From the rate of each copy, and from all bytes and the time that they took together.
    pub(crate) fn of(each: impl Iterator<Item = f64>, bytes: u64, busy: Nanos) -> Option<Self> {
        let mut each: Vec<f64> = each.collect();
        let mut at = |share| quantile(&mut each, share);
        let (p10, p50, p90) = (at(0.1)?, at(0.5)?, at(0.9)?);
        let weighted = bytes as f64 / busy.get() as f64;
        (busy > Nanos::ZERO).then_some(Self { weighted, p10, p50, p90 })
    }
}

pub(crate) fn histogram(copies: &[Moved], edges: &[f64]) -> Vec<HistogramBin> {
    let from = std::iter::once(0.0).chain(edges.iter().copied());
    let to = edges.iter().copied().map(Some).chain([None]);
    from.zip(to)
        .map(|(from, to)| {
            let is_inside = |gbps: f64| gbps >= from && to.is_none_or(|to| gbps < to);
            let (count, bytes, time) = sum(copies.iter().filter(|copy| copy.gbps().is_some_and(is_inside)));
            HistogramBin { from_gbps: from, to_gbps: to, count, bytes, ms: time.as_millis() }
        })
        .collect()
}

pub(crate) fn size_class(bytes: u64) -> usize {
    SIZE_CLASSES.iter().position(|&end| bytes < end).unwrap_or(SIZE_CLASSES.len() - 1)
}

pub(crate) fn sizes(copies: &[Moved], on_bus: bool) -> Vec<SizeClass> {
    let of_class = |(i, end): (usize, &u64)| {
        let inside = || copies.iter().filter(|copy| size_class(copy.bytes) == i);
        let (count, bytes, time) = sum(inside());
        let expected: f64 = inside().map(|copy| copy.expected_ns).sum();
        (time.get() > 0).then(|| SizeClass {
            label: SIZE_LABELS[i],
            from_bytes: if i == 0 { 0 } else { SIZE_CLASSES[i - 1] },
            to_bytes: (*end != u64::MAX).then_some(*end),
            count,
            bytes,
            ms: time.as_millis(),
            gbps: bytes as f64 / time.get() as f64,
            expected_gbps: (on_bus && i > 0 && expected > 0.0).then(|| bytes as f64 / expected),
        })
    };
    SIZE_CLASSES.iter().enumerate().filter_map(of_class).collect()
}

/// How many, how many bytes, how long. A damaged file may claim sizes whose sum overflows.
fn sum<'m>(copies: impl Iterator<Item = &'m Moved>) -> (u64, u64, Nanos) {
    copies.fold((0, 0, Nanos::ZERO), |(count, bytes, time), copy| {
        (count + 1, copy.bytes.saturating_add(bytes), time + copy.time)
    })
}

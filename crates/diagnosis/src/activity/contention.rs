//! Do copies and collectives slow each other down? Compares the same work alone and overlapped, within this run.
//!
//! Work on two streams can overlap in time and still compete: without NVLink, collectives and host copies
//! share each GPU's only link, per direction.

use std::collections::BTreeMap;

use busbound_trace::{Direction, Event, EventKind, Interval, IntervalSet, Place, Trace};
use serde::Serialize;

use crate::activity::copies::{Copy, expected_ns};
use crate::activity::links::Links;
use crate::activity::rates::{SIZE_LABELS, size_class};
use crate::activity::timeline::DeviceTimeline;
use busbound_cause::CollectiveNames;

/// The same work alone and overlapped.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contention {
    /// `h2d copies of 16 to 100 MB`, or a collective's name.
    pub what: String,
    /// What it overlapped.
    pub other: &'static str,
    pub count_alone: usize,
    pub count_overlapping: usize,
    /// How much longer it took while overlapped, in percent.
    pub slower_pct: f64,
    /// 95% confidence interval of `slower_pct`.
    pub low_pct: f64,
    pub high_pct: f64,
}

impl Contention {
    /// Whether the slowdown is significant: the whole confidence interval is above 1%.
    pub fn is_evident(&self) -> bool {
        self.low_pct > 1.0
    }
}

/// Fewest samples, alone and overlapped, for a comparison.
const FEWEST: usize = 3;

/// The comparisons that this run allows; empty means no evidence either way.
pub(crate) fn contention(
    trace: &Trace,
    copies: &[Copy<'_>],
    timelines: &[DeviceTimeline],
    communication: &CollectiveNames,
    links: &Links,
) -> Vec<Contention> {
    let comm: BTreeMap<i32, &IntervalSet> = timelines.iter().map(|t| (t.device, &t.communication)).collect();
    let host: BTreeMap<i32, &IntervalSet> = timelines.iter().map(|t| (t.device, &t.bus_copies)).collect();
    let mut found = Vec::new();

    // Copy time over expected time, by direction, memory and size class. Small copies are bound by
    // latency, which varies for other reasons.
    let mut copies_by: BTreeMap<_, Samples> = BTreeMap::new();
    for copy in copies.iter().filter(|copy| copy.is_on_bus() && !copy.is_migration()) {
        let Some(bytes) = copy.bytes().filter(|&bytes| size_class(bytes) > 0) else { continue };
        let key =
            (copy.device, copy.transfer.direction, copy.transfer.src, copy.transfer.dst, size_class(bytes));
        let samples = copies_by.entry(key).or_default();
        let slowdown = copy.event.duration().get() as f64 / expected_ns(copy, links);
        samples.add(slowdown, copy.interval(), comm.get(&copy.device));
    }
    for ((_, direction, .., class), samples) in copies_by {
        let direction = if direction == Direction::HostToDevice { "H2D" } else { "D2H" };
        found
            .extend(samples.compare(format!("{direction} copies ({})", SIZE_LABELS[class]), "communication"));
    }

    // Durations of the same collective: same kernel, and same element counts if recorded.
    let mut collectives: BTreeMap<_, Samples> = BTreeMap::new();
    for track in trace.streams() {
        let Place::Stream { device, .. } = track.place() else { continue };
        let is_collective =
            |event: &Event<'_>| event.kind() == EventKind::Kernel && communication.contains(event.name_id());
        for event in track.events().filter(is_collective) {
            let message = event.collective().map(|c| (c.name, c.elements_in, c.elements_out));
            let samples =
                collectives.entry((device, event.name_id(), message)).or_insert_with(Samples::default);
            let interval = event.interval();
            samples.add(event.duration().get() as f64, interval, host.get(&device));
        }
    }
    for ((_, name, message), samples) in collectives {
        // Without sizes, one kernel name may cover many message sizes, and a difference would mean nothing.
        if message.is_none() && samples.spread() > 0.5 {
            continue;
        }
        let name = trace.names().get(name);
        let short = name.split(['(', '<']).next().unwrap_or(name);
        found.extend(samples.compare(short.to_owned(), "host copies"));
    }
    found
}

#[derive(Debug, Default)]
struct Samples {
    alone: Vec<f64>,
    overlapped: Vec<f64>,
}

impl Samples {
    /// Adds one sample; drops it if it is overlapped, but for less than half of its time.
    fn add(&mut self, value: f64, interval: Interval, other: Option<&&IntervalSet>) {
        let shared = other.map_or(0, |set| set.length_within(interval).get());
        if shared == 0 {
            self.alone.push(value);
        } else if shared * 2 >= interval.length().get() {
            self.overlapped.push(value);
        }
    }

    /// Standard deviation over mean of all samples.
    fn spread(&self) -> f64 {
        let all: Vec<f64> = self.alone.iter().chain(&self.overlapped).copied().collect();
        let (mean, variance) = moments(&all);
        variance.sqrt() / mean
    }

    fn compare(&self, what: String, other: &'static str) -> Option<Contention> {
        if self.alone.len() < FEWEST || self.overlapped.len() < FEWEST {
            return None;
        }
        let (alone, alone_var) = moments(&self.alone);
        let (overlapped, overlapped_var) = moments(&self.overlapped);
        if alone <= 0.0 {
            return None;
        }
        // Welch: the difference of two means, each with its own variance.
        let error =
            (alone_var / self.alone.len() as f64 + overlapped_var / self.overlapped.len() as f64).sqrt();
        let quantile = student_95(self.alone.len().min(self.overlapped.len()) - 1);
        let pct = |difference: f64| 100.0 * difference / alone;
        let difference = overlapped - alone;
        Some(Contention {
            what,
            other,
            count_alone: self.alone.len(),
            count_overlapping: self.overlapped.len(),
            slower_pct: pct(difference),
            low_pct: pct(difference - quantile * error),
            high_pct: pct(difference + quantile * error),
        })
    }
}

fn moments(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, variance)
}

/// Two-sided 95% quantile of Student's t-distribution, by the smaller sample, which is conservative.
fn student_95(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
    match freedom {
        0 => f64::INFINITY,
        1..=10 => TABLE[freedom - 1],
        11..=20 => 2.13,
        21..=60 => 2.04,
        _ => 1.98,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clear_slowdown_is_evident_and_noise_is_not() {
        let clear = Samples { alone: vec![10.0, 10.1, 9.9, 10.0], overlapped: vec![12.0, 12.1, 11.9, 12.0] };
        let found = clear.compare("x".to_owned(), "y").unwrap();
        assert!((found.slower_pct - 20.0).abs() < 0.5 && found.is_evident(), "{found:?}");
        let noise = Samples { alone: vec![8.0, 12.0, 10.0], overlapped: vec![9.0, 13.0, 10.0] };
        assert!(!noise.compare("x".to_owned(), "y").unwrap().is_evident());
        let few = Samples { alone: vec![1.0, 1.0], overlapped: vec![2.0, 2.0, 2.0] };
        assert_eq!(few.compare("x".to_owned(), "y"), None);
    }
}

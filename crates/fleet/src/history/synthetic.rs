//! Series with known changes and without: noise of 1 to 2%, outliers, drift, and noise that lasts.

use super::{ChangePoint, change_points};

/// SplitMix64: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }

    /// Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.next().max(1e-300).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.next()).cos()
    }
}

struct Series {
    values: Vec<f64>,
    /// Where the level changes, and by which factor.
    changes: Vec<(usize, f64)>,
}

/// 40 to 200 points; noise of 1 to 2% of the level, a fifth of it carried over to the next point; 3% outliers of up to
/// twice the level; drift of up to 3% from the first to the last point; changes of 5 to 30%, up or down.
fn series(seed: u64, changes: bool) -> Series {
    let mut random = Random(seed);
    let count = random.between(40.0, 200.0) as usize;
    let level = random.between(5.0, 500.0);
    let noise = random.between(0.01, 0.02);
    let drift = random.between(-0.03, 0.03);
    let mut known = Vec::new();
    if changes {
        // A level of 10 points or more on both sides.
        let at = random.between(10.0, (count - 10) as f64) as usize;
        let size = random.between(0.05, 0.30);
        known.push((at, if random.next() < 0.7 { 1.0 + size } else { 1.0 - size }));
    }
    let mut carried = 0.0;
    let values = (0..count)
        .map(|at| {
            carried = 0.2 * carried + random.normal();
            let factor: f64 =
                known.iter().filter(|(from, _)| at >= *from).map(|(_, factor)| factor).product();
            let outlier = if random.next() < 0.03 { random.between(1.1, 2.0) } else { 1.0 };
            let slow = 1.0 + drift * at as f64 / count as f64;
            level * factor * slow * outlier * (1.0 + noise * carried)
        })
        .collect();
    Series { values, changes: known }
}

fn found(values: &[f64]) -> Vec<ChangePoint> {
    change_points(values, SMALLEST * super::median(values))
}

/// As for the time of a step.
const SMALLEST: f64 = crate::history::SMALLEST_SHARE;
/// Points that the place of a change may be off.
const PLACE: usize = 3;

/// How many of 200 changes are found, how many of 200 quiet series have an alarm, and how many alarms the others have that
/// are no change.
fn scores(seed: u64) -> (usize, usize, usize) {
    let (mut hits, mut false_alarms, mut extra) = (0, 0, 0);
    for number in 0..200 {
        let changed = series(seed + number, true);
        let alarms = found(&changed.values);
        let (at, factor) = changed.changes[0];
        let is_it = |alarm: &&ChangePoint| {
            alarm.at.abs_diff(at) <= PLACE && (alarm.after > alarm.before) == (factor > 1.0)
        };
        let right = alarms.iter().filter(is_it).count();
        hits += right.min(1);
        extra += alarms.len() - right.min(1);
        false_alarms += usize::from(!found(&series(seed + 1_000_000 + number, false).values).is_empty());
    }
    (hits, false_alarms, extra)
}

/// The thresholds were chosen with these series.
#[test]
fn changes_are_found_in_the_series_that_the_thresholds_were_chosen_with() {
    for seed in [1, 10_001, 20_001] {
        let (hits, false_alarms, extra) = scores(seed);
        assert!(hits >= 190 && false_alarms <= 2 && extra <= 4, "{seed}: {hits} {false_alarms} {extra}");
    }
}

/// These series were looked at once, after everything was decided.
#[test]
fn changes_are_found_in_series_that_were_never_looked_at() {
    let (hits, false_alarms, extra) = scores(7_000_001);
    assert!(hits >= 190 && false_alarms <= 2, "{hits} {false_alarms} {extra}");
}

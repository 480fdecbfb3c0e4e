//! How did copy operators change between runs without GPU events? Rates, sizes and the histogram of those that block.

use super::{Figure, FigureGroup};
use crate::activity::rates::{HistogramBin, Rates, SizeClass};
use crate::analysis::cpu_copies::{CpuCopies, CpuCopyClass};
use crate::answers::diagnosis::Diagnosis;
use crate::figures::FigureUnit;

/// Operators that are not over the bus have no rate that says anything, and asynchronous ones none at all.
fn blocking(run: &Diagnosis) -> Option<&CpuCopies> {
    run.cpu_copies.iter().find(|sum| sum.class == CpuCopyClass::BusTransfer)
}

pub(super) fn figures(runs: &[Diagnosis]) -> Vec<Figure> {
    rates(runs).into_iter().chain(sizes(runs)).chain(histogram(runs)).collect()
}

fn figure(
    runs: &[Diagnosis],
    name: String,
    unit: FigureUnit,
    of: impl Fn(&CpuCopies, &Diagnosis) -> Option<f64>,
) -> Option<Figure> {
    let value = |run: &Diagnosis| blocking(run).and_then(|sum| of(sum, run)).unwrap_or(0.0);
    Figure::new(FigureGroup::Copies, name, unit, runs.iter().map(value).collect())
}

/// The name of a percentile, and which one it is.
type Percentile = (&'static str, fn(&Rates) -> f64);

fn rates(runs: &[Diagnosis]) -> Vec<Figure> {
    let all: [Percentile; 3] =
        [("P10", |rates| rates.p10), ("median", |rates| rates.p50), ("P90", |rates| rates.p90)];
    let one = |(what, of): Percentile| {
        let name = format!("blocking copies: {what} of the rates");
        figure(runs, name, FigureUnit::GigabytesPerSecond, |sum, _| sum.rates.as_ref().map(of))
    };
    all.into_iter().filter_map(one).collect()
}

/// Copies and their rate, by size.
fn sizes(runs: &[Diagnosis]) -> Vec<Figure> {
    let mut classes: Vec<(u64, &'static str)> = Vec::new();
    for class in runs.iter().filter_map(blocking).flat_map(|sum| &sum.sizes).filter(|class| class.count > 0) {
        classes.push((class.from_bytes, class.label));
    }
    classes.sort_unstable();
    classes.dedup();
    let of = |(_, label): (u64, &'static str)| {
        let class = move |sum: &CpuCopies| -> Option<SizeClass> {
            sum.sizes.iter().find(|class| class.label == label).copied()
        };
        let count = figure(runs, format!("blocking copies, {label}"), FigureUnit::PerStep, |sum, run| {
            Some(class(sum)?.count as f64 / run.step_count())
        });
        let rate = figure(
            runs,
            format!("blocking copies, {label}: rate"),
            FigureUnit::GigabytesPerSecond,
            |sum, _| Some(class(sum)?.gbps),
        );
        [count, rate]
    };
    classes.into_iter().flat_map(of).flatten().collect()
}

/// Copies by rate.
fn histogram(runs: &[Diagnosis]) -> Vec<Figure> {
    let mut ranges: Vec<(f64, Option<f64>)> = Vec::new();
    for bin in runs.iter().filter_map(blocking).flat_map(|sum| &sum.histogram).filter(|bin| bin.count > 0) {
        ranges.push((bin.from_gbps, bin.to_gbps));
    }
    ranges.sort_by(|a, b| a.0.total_cmp(&b.0));
    ranges.dedup();
    let of = |(from, to): (f64, Option<f64>)| {
        let range = to.map_or(format!("over {from} GB/s"), |to| format!("{from}–{to} GB/s"));
        let is_this = move |bin: &&HistogramBin| (bin.from_gbps, bin.to_gbps) == (from, to);
        figure(runs, format!("blocking copies, {range}"), FigureUnit::PerStep, |sum, run| {
            Some(sum.histogram.iter().find(is_this)?.count as f64 / run.step_count())
        })
    };
    ranges.into_iter().filter_map(of).collect()
}

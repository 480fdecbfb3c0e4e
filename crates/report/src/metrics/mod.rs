//! What is exported of an interval? The same names and labels in every format of metrics. Unknown values are left out.

mod gpus;
mod windows;

use std::borrow::Cow;
use std::collections::BTreeSet;

use busbound_machine::live::Snapshot;

/// Names and values, in the order they are written.
pub(crate) type Labels = Vec<(&'static str, String)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Gauge,
    /// Only grows, until the driver or the GPU is reset.
    Counter,
}

#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: Kind,
    pub(crate) help: Cow<'static, str>,
    /// No two have the same labels.
    pub(crate) points: Vec<Point>,
}

#[derive(Debug)]
pub(crate) struct Point {
    pub(crate) labels: Labels,
    pub(crate) value: f64,
}

impl Metric {
    fn gauge(
        name: impl Into<Cow<'static, str>>,
        help: impl Into<Cow<'static, str>>,
        points: Vec<Point>,
    ) -> Self {
        Self { name: name.into(), kind: Kind::Gauge, help: help.into(), points }
    }
}

/// The metrics of one interval, each with a value or more.
pub(crate) fn metrics_of(snapshot: &Snapshot) -> Vec<Metric> {
    let mut all = gpus::metrics(snapshot);
    all.extend(windows::metrics(&snapshot.windows));
    all.push(warnings(snapshot));
    all.retain(|metric| !metric.points.is_empty());
    all
}

fn warnings(snapshot: &Snapshot) -> Metric {
    // Both directions of a link can have the same warning, and a series may be listed only once.
    let active: BTreeSet<Labels> = snapshot
        .signs
        .iter()
        .map(|sign| {
            let gpu = sign.gpu.map_or(String::new(), |gpu| gpu.to_string());
            let file = sign.file.clone().unwrap_or_default();
            vec![("id", sign.id.id().to_owned()), ("gpu", gpu), ("file", file)]
        })
        .collect();
    let points = active.into_iter().map(|labels| Point { labels, value: 1.0 });
    Metric::gauge("busbound_warning", "Active warnings.", points.collect())
}

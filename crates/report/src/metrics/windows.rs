//! The metrics of the last recorded window of each rank. Those of a stale window are left out, except that it is stale.

use std::borrow::Cow;

use busbound_diagnosis::FigureId;
use busbound_machine::live::{RankWindow, WindowChange};

use super::{Labels, Metric, Point};

/// The value for a window, with a label of its own if there can be several.
type Value = (Option<(&'static str, String)>, f64);

pub(super) fn metrics(windows: &[RankWindow]) -> Vec<Metric> {
    let all: Vec<&RankWindow> = windows.iter().collect();
    let fresh: Vec<&RankWindow> = windows.iter().filter(|window| !window.is_stale).collect();
    let mut metrics = vec![
        metric(&all, "busbound_window_timestamp_seconds", "When the last window was recorded.", |window| {
            plain(Some(window.recorded_unix_ms as f64 / 1e3))
        }),
        metric(&all, "busbound_window_stale", "1 if two windows are missing since, else 0.", |window| {
            plain(Some(f64::from(u8::from(window.is_stale))))
        }),
        metric(&fresh, "busbound_verdict", "What bounds the step in the last window.", |window| {
            vec![labeled("verdict", &window.verdict, 1.0)]
        }),
        metric(
            &fresh,
            "busbound_window_steps",
            "Steps in the last window, and how they were found.",
            |window| {
                let found = |found: &Option<String>| found.clone().unwrap_or_default();
                let steps = window.steps.iter();
                steps.map(|steps| labeled("found", &found(&steps.found), steps.count as f64)).collect()
            },
        ),
        metric(&fresh, "busbound_phase_ratio", "Share of the step by phase, 0 to 1.", |window| {
            window.phases.iter().map(|(phase, share)| labeled("phase", phase, *share)).collect()
        }),
    ];
    metrics.extend(std::iter::once(&FigureId::SpanMs).chain(FigureId::PARTS).map(|&figure| {
        let help = format!("{} Per step, iteration or recorded window.", figure.definition());
        metric(&fresh, name_of(figure), help, |window| {
            let value = window.figures.get(figure.name());
            value.map(|ms| labeled("per", &window.unit, ms / 1e3)).into_iter().collect()
        })
    }));
    metrics.extend(changes(&fresh));
    metrics
}

/// How the last window differs from an earlier one.
fn changes(fresh: &[&RankWindow]) -> [Metric; 3] {
    let of = |value: fn(&RankWindow, &WindowChange) -> Option<f64>| {
        move |window: &RankWindow| plain(window.change.as_ref().and_then(|change| value(window, change)))
    };
    [
        metric(
            fresh,
            "busbound_span_change_ratio",
            "The step divided by that of an earlier window, about an hour before, minus 1.",
            of(|_, change| change.span_change),
        ),
        metric(
            fresh,
            "busbound_change_window_seconds",
            "How long before the last window that earlier one was recorded.",
            of(|_, change| Some(change.before_s)),
        ),
        metric(
            fresh,
            "busbound_verdict_changed",
            "1 if the earlier window had another verdict, else 0.",
            of(|window, change| Some(f64::from(u8::from(change.verdict != window.verdict)))),
        ),
    ]
}

/// The name in the catalog, in Prometheus' base unit: `busbound_exposed_bus_copy_seconds`.
fn name_of(figure: FigureId) -> String {
    format!("busbound_{}_seconds", figure.name().trim_end_matches("_ms"))
}

fn plain(value: Option<f64>) -> Vec<Value> {
    value.map(|value| (None, value)).into_iter().collect()
}

fn labeled(label: &'static str, word: &str, value: f64) -> Value {
    (Some((label, word.to_owned())), value)
}

/// A value for each window, or for each of some label values of it.
fn metric(
    windows: &[&RankWindow],
    name: impl Into<Cow<'static, str>>,
    help: impl Into<Cow<'static, str>>,
    values: impl Fn(&RankWindow) -> Vec<Value>,
) -> Metric {
    let points = windows.iter().flat_map(|window| {
        let point =
            |(label, value)| Point { labels: labels(window).into_iter().chain(label).collect(), value };
        values(window).into_iter().map(point).collect::<Vec<_>>()
    });
    Metric::gauge(name, help, points.collect())
}

/// No names of processes: they contain the name of the host.
fn labels(window: &RankWindow) -> Labels {
    let rank = match (window.rank, &window.process) {
        (Some(rank), _) => rank.to_string(),
        (None, Some(process)) => format!("process {}", process.number),
        (None, None) => String::new(),
    };
    vec![("run", window.run.clone()), ("rank", rank)]
}

//! The metrics of the last recorded window of each rank. Those of a stale window are left out, except that it is stale.

use std::fmt::Write;

use busbound_diagnosis::FigureId;
use busbound_machine::live::RankWindow;

use super::lines::{escaped, header};

pub(super) fn metrics(out: &mut String, windows: &[RankWindow]) {
    let all: Vec<&RankWindow> = windows.iter().collect();
    let fresh: Vec<&RankWindow> = windows.iter().filter(|window| !window.is_stale).collect();
    let one = |value: f64| vec![(String::new(), value)];
    let optional = |value: Option<f64>| value.map(one).unwrap_or_default();
    let labeled = |label: &str, word: &str, value: f64| (format!(",{label}=\"{}\"", escaped(word)), value);
    put(out, &all, "busbound_window_timestamp_seconds", "When the last window was recorded.", |window| {
        one(window.recorded_unix_ms as f64 / 1e3)
    });
    put(out, &all, "busbound_window_stale", "1 if two windows are missing since, else 0.", |window| {
        one(f64::from(u8::from(window.is_stale)))
    });
    put(out, &fresh, "busbound_verdict", "What bounds the step in the last window.", |window| {
        vec![labeled("verdict", &window.verdict, 1.0)]
    });
    put(
        out,
        &fresh,
        "busbound_window_steps",
        "Steps in the last window, and how they were found.",
        |window| {
            let found = |found: &Option<String>| found.as_deref().unwrap_or_default().to_owned();
            let steps = window.steps.iter();
            steps.map(|steps| labeled("found", &found(&steps.found), steps.count as f64)).collect()
        },
    );
    put(out, &fresh, "busbound_phase_ratio", "Share of the step by phase, 0 to 1.", |window| {
        window.phases.iter().map(|(phase, share)| labeled("phase", phase, *share)).collect()
    });
    for &figure in std::iter::once(&FigureId::SpanMs).chain(FigureId::PARTS) {
        let help = format!("{} Per step, iteration or recorded window.", figure.definition());
        put(out, &fresh, &name_of(figure), &help, |window| {
            let value = window.figures.get(figure.name());
            value.map(|ms| labeled("per", &window.unit, ms / 1e3)).into_iter().collect()
        });
    }
    put(
        out,
        &fresh,
        "busbound_span_change_ratio",
        "The step divided by that of an earlier window, about an hour before, minus 1.",
        |window| optional(window.change.as_ref().and_then(|change| change.span_change)),
    );
    put(
        out,
        &fresh,
        "busbound_change_window_seconds",
        "How long before the last window that earlier one was recorded.",
        |window| optional(window.change.as_ref().map(|change| change.before_s)),
    );
    put(
        out,
        &fresh,
        "busbound_verdict_changed",
        "1 if the earlier window had another verdict, else 0.",
        |window| {
            optional(
                window.change.as_ref().map(|change| f64::from(u8::from(change.verdict != window.verdict))),
            )
        },
    );
}

/// The name in the catalog, in Prometheus' base unit: `busbound_exposed_bus_copy_seconds`.
fn name_of(figure: FigureId) -> String {
    format!("busbound_{}_seconds", figure.name().trim_end_matches("_ms"))
}

/// A value for each window, or for each of some label values of it.
fn put(
    out: &mut String,
    windows: &[&RankWindow],
    name: &str,
    help: &str,
    values: impl Fn(&RankWindow) -> Vec<(String, f64)>,
) {
    let mut has_header = false;
    for window in windows {
        for (label, value) in values(window) {
            if !std::mem::replace(&mut has_header, true) {
                header(out, name, "gauge", help);
            }
            let _ = writeln!(out, "{name}{{{}{label}}} {value}", labels(window));
        }
    }
}

/// No names of processes: they contain the name of the host.
fn labels(window: &RankWindow) -> String {
    let rank = match (window.rank, &window.process) {
        (Some(rank), _) => rank.to_string(),
        (None, Some(process)) => format!("process {}", process.number),
        (None, None) => String::new(),
    };
    format!("run=\"{}\",rank=\"{rank}\"", escaped(&window.run))
}

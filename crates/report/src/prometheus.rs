//! For Prometheus: the metrics of the last interval in its text format.

use std::fmt::Write;

use busbound_machine::live::Snapshot;

use crate::Format;
use crate::answer::Answer;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;
use crate::metrics::{Kind, metrics_of};

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "prometheus",
    suffixes: &["prom"],
    about: "",
    scope: Scope::Only(AnswerKind::Snapshot),
    render: Render::Text(|answer, _| match answer {
        Answer::Snapshot(snapshot) => Ok(top_as_prometheus(snapshot)),
        other => Err(other.not_available(Format::Prometheus)),
    }),
};

fn top_as_prometheus(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    for metric in metrics_of(snapshot) {
        let kind = match metric.kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        let name = &metric.name;
        let _ = writeln!(out, "# HELP {name} {}\n# TYPE {name} {kind}", metric.help);
        for point in &metric.points {
            let labels = point.labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
            let labels = labels.collect::<Vec<_>>().join(",");
            let _ = writeln!(out, "{name}{{{labels}}} {}", point.value);
        }
    }
    out
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

//! For OpenTelemetry: the metrics of an interval as the body of an OTLP/HTTP request in JSON.

use busbound_machine::live::Snapshot;
use serde_json::{Value, json};

use crate::metrics::{Kind, Metric, Point, metrics_of};

/// Who sends: the same as instrumentation scope and as service.
const SENDER: &str = "busbound";
/// `AGGREGATION_TEMPORALITY_CUMULATIVE`; OTLP's JSON has enumerations as numbers.
const CUMULATIVE: u8 = 2;

/// When an interval was observed, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtlpTimes {
    /// The first interval that was sent. A counter began earlier, at an unknown time: OpenTelemetry then counts from the first
    /// observation.
    pub first_unix_ns: u64,
    pub unix_ns: u64,
}

/// The metrics of one interval: names and labels are those of Prometheus. Without units, which receivers would append to the
/// names.
pub fn top_as_otlp(snapshot: &Snapshot, times: OtlpTimes) -> String {
    let metrics: Vec<Value> =
        metrics_of(snapshot).iter().map(|metric| metric_as_json(metric, times)).collect();
    let scope = json!({"name": SENDER, "version": env!("CARGO_PKG_VERSION")});
    let service = [("service.name", SENDER), ("service.version", env!("CARGO_PKG_VERSION"))];
    let request = json!({
        "resourceMetrics": [{
            "resource": {"attributes": attributes(service)},
            "scopeMetrics": [{"scope": scope, "metrics": metrics}],
        }],
    });
    request.to_string()
}

fn metric_as_json(metric: &Metric, times: OtlpTimes) -> Value {
    // JSON has no number for what is not finite.
    let known = metric.points.iter().filter(|point| point.value.is_finite());
    let points: Vec<Value> = known.map(|point| point_as_json(point, metric.kind, times)).collect();
    let mut json = json!({"name": metric.name, "description": metric.help});
    match metric.kind {
        Kind::Gauge => json["gauge"] = json!({"dataPoints": points}),
        Kind::Counter => {
            let sum =
                json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true});
            json["sum"] = sum;
        }
    }
    json
}

fn point_as_json(point: &Point, kind: Kind, times: OtlpTimes) -> Value {
    // 64-bit integers are strings in OTLP's JSON.
    let mut json = json!({
        "attributes": attributes(point.labels.iter().map(|(label, value)| (*label, value.as_str()))),
        "timeUnixNano": times.unix_ns.to_string(),
        "asDouble": point.value,
    });
    if kind == Kind::Counter {
        // A clock that is set back must not end before it began.
        json["startTimeUnixNano"] = json!(times.first_unix_ns.min(times.unix_ns).to_string());
    }
    json
}

fn attributes<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Value> {
    pairs.into_iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}

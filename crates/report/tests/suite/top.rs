//! `busbound top` from a log: the table, Markdown, metrics and lines.

use crate::common;

use crate::common::hostile_top::hostile;
use crate::common::replayed::replayed;
use crate::common::shown;
use busbound_machine::live::{Log, Snapshot};
use busbound_report::{Format, OtlpTimes, Report, Style, top_as_lines, top_as_otlp};
use serde_json::Value;

#[test]
fn the_last_interval_as_a_table_and_as_markdown() {
    let snapshots = replayed();
    let last = snapshots.last().unwrap();
    insta::assert_snapshot!("top_terminal", shown(last, Format::Terminal));
    insta::assert_snapshot!("top_markdown", shown(last, Format::Markdown));
    insta::assert_snapshot!("top_prometheus", shown(last, Format::Prometheus));
    for width in [60, 80, 100, 140] {
        let text = last.render(Format::Terminal, &Style { width, color: false, verbose: true }).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{width}\n{text}");
    }
}

#[test]
fn the_documented_schema_is_up_to_date() {
    common::check_schema("top", &schemars::schema_for!(Snapshot));
}

#[test]
fn unknown_values_are_shown_as_unknown_not_as_zero() {
    let snapshots = replayed();
    let unknown = &snapshots[12];
    let text = shown(unknown, Format::Terminal);
    assert!(text.contains("100% of the time unknown"), "{text}");
    let row = text.lines().find(|line| line.trim_start().starts_with("GPU 0")).unwrap();
    assert!(row.contains("–") && !row.contains("B/s"), "{row}");
    let metrics = shown(unknown, Format::Prometheus);
    assert!(
        !metrics.contains("rx_bytes_per_second{gpu=\"0\"")
            && metrics.contains("rx_bytes_per_second{gpu=\"1\"")
    );
    let mut alone = unknown.clone();
    alone.gpus.truncate(1);
    let markdown = shown(&alone, Format::Markdown);
    assert!(markdown.starts_with("**Bus traffic is unknown for this interval"), "{markdown}");
}

#[test]
fn a_log_cannot_move_the_cursor() {
    let snapshot = hostile();
    for text in [
        shown(&snapshot, Format::Terminal),
        shown(&snapshot, Format::Markdown),
        top_as_lines(&snapshot, None),
    ] {
        assert!(!text.contains('\u{1b}') && text.contains("[2J"), "{text}");
    }
}

#[test]
fn a_log_of_the_replay_equals_the_log_and_warnings_are_shown_once() {
    let snapshots = replayed();
    let text: String = snapshots.iter().map(|one| shown(one, Format::Json)).collect();
    assert_eq!(Log::parse(&text).unwrap().snapshots, snapshots);
    let mut before = None;
    let mut lines = String::new();
    for snapshot in &snapshots {
        lines += &top_as_lines(snapshot, before);
        before = Some(snapshot);
    }
    assert_eq!(lines.matches(" ! ").count(), 4, "{lines}");
    assert_eq!(lines.matches(" rank 0: Transfer-bound, step 9.90 s").count(), 1, "{lines}");
}

fn otlp(snapshot: &Snapshot) -> Value {
    let times = OtlpTimes { first_unix_ns: 1_793_491_200_000_000_000, unix_ns: 1_793_491_260_000_000_000 };
    serde_json::from_str(&top_as_otlp(snapshot, times)).unwrap()
}

/// The metrics of a request, in the notation of Prometheus.
fn as_prometheus_lines(request: &Value) -> Vec<String> {
    let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let points = metrics.iter().flat_map(|metric| {
        let data = metric.get("gauge").unwrap_or(&metric["sum"]);
        data["dataPoints"].as_array().unwrap().iter().map(move |point| (&metric["name"], point))
    });
    let line = |(name, point): (&Value, &Value)| {
        let labels = point["attributes"].as_array().unwrap().iter();
        let labels: Vec<String> = labels
            .map(|label| format!("{}={}", label["key"].as_str().unwrap(), label["value"]["stringValue"]))
            .collect();
        format!("{}{{{}}} {}", name.as_str().unwrap(), labels.join(","), point["asDouble"].as_f64().unwrap())
    };
    points.map(line).collect()
}

#[test]
fn opentelemetry_gets_what_prometheus_gets() {
    for snapshot in replayed() {
        let text = shown(&snapshot, Format::Prometheus);
        let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(as_prometheus_lines(&otlp(&snapshot)), series);
    }
    let mut request = otlp(replayed().last().unwrap());
    let resource = &request["resourceMetrics"][0]["resource"]["attributes"];
    let keys: Vec<&str> =
        resource.as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["service.name", "service.version"]);
    let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array_mut().unwrap();
    metrics.retain(|metric| metric.get("sum").is_some() || metric["name"] == "busbound_verdict");
    insta::assert_snapshot!("top_otlp", serde_json::to_string_pretty(metrics).unwrap());
}

#[test]
fn a_log_cannot_break_a_request() {
    let mut snapshot = hostile();
    snapshot.gpus[0].power_watts = Some(f64::NAN);
    assert!(!as_prometheus_lines(&otlp(&snapshot)).is_empty());
}

#[test]
fn a_clock_that_is_set_back_does_not_turn_a_counter_around() {
    let snapshots = replayed();
    let times = OtlpTimes { first_unix_ns: 2_000, unix_ns: 1_000 };
    let request = top_as_otlp(snapshots.last().unwrap(), times);
    assert!(request.contains("\"startTimeUnixNano\":\"1000\"") && !request.contains("2000"), "{request}");
}

/// Both directions near their peak used to be two lines with the same labels, which no scraper accepts.
#[test]
fn every_series_is_listed_once() {
    let mut snapshot = replayed().into_iter().find(|snapshot| !snapshot.signs.is_empty()).unwrap();
    let again = snapshot.signs.clone();
    snapshot.signs.extend(again);
    let metrics = shown(&snapshot, Format::Prometheus);
    let series: Vec<&str> = metrics.lines().filter(|line| !line.starts_with('#')).collect();
    let unique: std::collections::BTreeSet<&str> = series.iter().copied().collect();
    assert_eq!(series.len(), unique.len(), "{metrics}");
}

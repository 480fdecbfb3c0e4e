//! `busbound top --otlp`: the real binary and a real HTTP server.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::common::collector::Collector;
use crate::common::{Running, busbound, fixture, text};

const OK: Option<&str> = Some("200 OK");

#[test]
fn a_collector_gets_the_names_labels_and_values_of_prometheus() {
    let collector = Collector::at("127.0.0.1:0", OK);
    let (log, url) = (fixture("top/made.jsonl"), collector.url());
    let args = ["top", "--replay", &log, "--interval", "0.1", "--prometheus", "127.0.0.1:0", "--otlp", &url];
    let mut child = Running(busbound(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let metrics = child.metrics();
    let first = collector.next();
    assert!(first.head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{}", first.head);
    assert!(first.head.contains("\r\nContent-Type: application/json\r\n"), "{}", first.head);
    assert!(first.head.contains(&format!("\r\nHost: {}\r\n", collector.address)), "{}", first.head);
    // Only the last interval has this rate.
    let is_last = |text: &str| text.contains("\"NVIDIA H200\"} 50730669394");
    let mut sent = std::iter::repeat_with(|| collector.next().series());
    let last = sent.find(|series| is_last(&series.join("\n"))).unwrap();
    let answer = metrics.until(is_last);
    let served: Vec<&str> = answer.lines().filter(|line| line.starts_with("busbound_")).collect();
    assert_eq!(last, served);
}

/// The mistake is said first, also where there is no driver.
#[test]
fn addresses_are_checked_before_the_driver_is_asked() {
    let wrong = [
        (["top", "--otlp", "https://127.0.0.1:4318"], "--otlp: https is not supported"),
        (
            ["top", "--prometheus", "9401"],
            "cannot serve metrics at 9401: give an address and a port, such as 127.0.0.1:9401",
        ),
    ];
    for (args, why) in wrong {
        let (_, stderr, code) = text(&busbound(&args).output().unwrap());
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
    }
}

#[test]
fn without_a_url_the_endpoint_is_that_of_the_environment() {
    let collector = Collector::at("127.0.0.1:0", OK);
    let log = fixture("top/made.jsonl");
    let mut command = busbound(&["top", "--replay", &log, "--count", "1", "--otlp"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("{}/team/", collector.url()));
    let (stdout, stderr, code) = text(&command.output().unwrap());
    // The last interval is sent before it ends.
    assert!(collector.next().head.starts_with("POST /team/v1/metrics HTTP/1.1\r\n"));
    let said = format!("busbound: sending metrics to {}/team/v1/metrics every 1 s\n", collector.url());
    assert_eq!((stdout.as_str(), stderr, code), ("", said, Some(0)));
}

#[test]
fn a_collector_that_never_answers_costs_one_line_and_no_interval() {
    let collector = Collector::at("127.0.0.1:0", None);
    let (log, url) = (fixture("top/made.jsonl"), collector.url());
    let args = ["top", "--replay", &log, "--json", "--interval", "0.2", "--otlp", &url];
    let (stdout, stderr, code) = text(&busbound(&args).output().unwrap());
    assert_eq!((stdout.lines().count(), code), (24, Some(0)), "{stderr}");
    assert_eq!(stderr.matches("busbound: cannot send metrics to ").count(), 1, "{stderr}");
    assert!(stderr.contains(": no answer within 2 s; trying again every interval\n"), "{stderr}");
}

#[test]
fn a_collector_that_refuses_is_named_with_its_status() {
    let collector = Collector::at("127.0.0.1:0", Some("404 Not Found"));
    let (log, url) = (fixture("top/made.jsonl"), collector.url());
    let args = ["top", "--replay", &log, "--count", "3", "--interval", "0.1", "--otlp", &url];
    let (_, stderr, code) = text(&busbound(&args).output().unwrap());
    assert_eq!((stderr.matches("the collector answered 404").count(), code), (1, Some(0)), "{stderr}");
}

#[test]
fn a_collector_that_comes_back_is_one_line() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap().to_string();
    drop(gone);
    let (folder, url) = (tempfile::tempdir().unwrap(), format!("http://{address}"));
    let summaries = folder.path().display().to_string();
    let args = ["top", "--summaries", &summaries, "--interval", "0.1", "--otlp", &url];
    let mut child = Running(busbound(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(child.0.stderr.take().unwrap()).lines().map(Result::unwrap);
    let failed = said.find(|line| line.contains("cannot send metrics")).unwrap();
    assert!(failed.ends_with("connection refused; trying again every interval"), "{failed}");
    let collector = Collector::at(&address, OK);
    // The next line, however often it was refused.
    assert_eq!(said.next().unwrap(), format!("busbound: metrics are sent to {url}/v1/metrics again"));
    collector.next();
}

//! Prints the distributions behind the numbers in `thresholds.rs` for the traces given as arguments.
//!
//! ```text
//! cargo run --release -p busbound-cause --example evidence -- fixtures/*.json.gz fixtures/pairs/*.json.gz fixtures/runs/*.json.gz
//! ```

use std::path::Path;

use busbound_cause::{Activity, CollectiveNames, Graph, Host, HostAction, Rule, StepMarks};
use busbound_trace::{Call, IntervalSet, ReadOptions, open};

/// Nanoseconds per measured quantity.
#[derive(Default)]
struct Samples {
    recorded_wait: Vec<i64>,
    stream_gap: Vec<i64>,
    launch_latency: Vec<i64>,
    async_copy_call: Vec<i64>,
    blocking_copy_call: Vec<i64>,
    sync_return: Vec<i64>,
    wait_after_copy: Vec<i64>,
    python_gap: Vec<i64>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut samples = Samples::default();
    for path in std::env::args().skip(1) {
        let trace = open(Path::new(&path), &ReadOptions::default())?;
        let host = Host::of(&trace);
        let collectives = CollectiveNames::of(trace.names());
        let graph = Graph::of(
            Activity { trace: &trace, host: &host, collectives: &collectives },
            &StepMarks::default(),
        );
        device(&graph, &mut samples);
        calls(&graph, &host, &mut samples);
        gaps(&host, &mut samples);
    }
    let Samples {
        recorded_wait,
        stream_gap,
        launch_latency,
        async_copy_call,
        blocking_copy_call,
        sync_return,
        wait_after_copy,
        python_gap,
    } = samples;
    show("end of awaited work to start of waiting work, recorded waits that ended last", recorded_wait);
    show("end of work to start of the next on its stream, if queued in time", stream_gap);
    show("start of call to start of its work, on an idle stream", launch_latency);
    show("asynchronous copy calls", async_copy_call);
    show("blocking copy calls", blocking_copy_call);
    show("end of awaited work to return of the host sync", sync_return);
    show("end of copy call to the wait in its operator", wait_after_copy);
    show("gaps between operators and calls of launching threads", python_gap);
    Ok(())
}

fn device(graph: &Graph, samples: &mut Samples) {
    for (id, work) in graph.work.iter().enumerate() {
        let issued = graph.issued_at(id);
        let before = graph.before(id).map(|before| graph.work[before].end);
        let waits = graph.waits_of(id).iter().filter(|wait| wait.rule == Rule::RecordedStreamWait);
        let awaited = waits.map(|wait| graph.work[wait.on()].end).max();
        match (issued, before, awaited) {
            (Some(issued), before, Some(awaited))
                if awaited > issued && before.is_none_or(|at| awaited > at) =>
            {
                samples.recorded_wait.push(work.start - awaited);
            }
            (Some(issued), Some(before), None) if issued + 100_000 < before => {
                samples.stream_gap.push(work.start - before);
            }
            (Some(issued), before, None) if before.is_none_or(|before| before < issued) => {
                samples.launch_latency.push(work.start - issued);
            }
            _ => {}
        }
    }
}

fn calls(graph: &Graph, host: &Host<'_>, samples: &mut Samples) {
    for (id, call) in graph.calls.iter().enumerate() {
        let length = call.end - call.start;
        let kind = host.call_kind(&host.trace().event(call.event));
        match graph.action(id) {
            HostAction::Issue(_) if kind == Call::Copy => samples.async_copy_call.push(length),
            HostAction::IssueBlocking(_) => samples.blocking_copy_call.push(length),
            HostAction::Wait { copy, .. } => {
                samples
                    .sync_return
                    .extend(graph.released_by(id).map(|wait| call.end - graph.work[wait.on()].end));
                let copying = copy.and_then(|copy| graph.work[copy].call());
                samples.wait_after_copy.extend(copying.map(|copying| call.start - graph.calls[copying].end));
            }
            _ => {}
        }
    }
}

fn gaps(host: &Host<'_>, samples: &mut Samples) {
    for (_, times) in host.launching_threads() {
        let Some(hull) = times.worked.hull() else { continue };
        let gaps = IntervalSet::from_unsorted([hull]).difference(&times.worked);
        samples.python_gap.extend(gaps.iter().map(|gap| gap.length().get()));
    }
}

#[expect(clippy::print_stdout, reason = "this example prints its results")]
fn show(what: &str, mut values: Vec<i64>) {
    values.sort_unstable();
    let at = |share: f64| {
        values.get(((values.len() as f64 - 1.0) * share) as usize).map_or(f64::NAN, |ns| *ns as f64 / 1e3)
    };
    println!(
        "{what}: {} values; p1 {:.1}, p10 {:.1}, p50 {:.1}, p90 {:.1}, p99 {:.1} µs",
        values.len(),
        at(0.01),
        at(0.10),
        at(0.50),
        at(0.90),
        at(0.99)
    );
}

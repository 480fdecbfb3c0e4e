//! Two timelines in one file, as ui.perfetto.dev and chrome://tracing open it: what was, and what would be.

use busbound_diagnosis::PredictedTimeline;
use serde_json::{Value, json};

/// Chrome's JSON: one process for what was measured, one for what is predicted, a thread for each stream.
///
/// # Errors
/// None in practice.
pub fn timeline_as_chrome(timeline: &PredictedTimeline) -> serde_json::Result<String> {
    let predicted = format!("predicted: {}", timeline.changes);
    let mut events: Vec<Value> = [(1, "measured"), (2, predicted.as_str())]
        .into_iter()
        .map(|(pid, name)| json!({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}))
        .collect();
    let streams = timeline.work.iter().flat_map(|work| {
        let measured = std::iter::once((1, work.measured.0));
        measured.chain(work.predicted.map(|(stream, ..)| (2, stream)))
    });
    let mut streams: Vec<(u32, usize)> = streams.collect();
    streams.sort_unstable();
    streams.dedup();
    for (pid, stream) in streams {
        let name = format!("stream {stream}");
        events.push(
            json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": stream, "args": {"name": name}}),
        );
    }
    for work in &timeline.work {
        let placed = std::iter::once((1, work.measured)).chain(work.predicted.map(|placed| (2, placed)));
        for (pid, (stream, start, end)) in placed {
            let (ts, dur) = (start as f64 / 1e3, (end - start) as f64 / 1e3);
            events
                .push(json!({"ph": "X", "name": work.name, "pid": pid, "tid": stream, "ts": ts, "dur": dur}));
        }
    }
    serde_json::to_string(&json!({"traceEvents": events}))
}

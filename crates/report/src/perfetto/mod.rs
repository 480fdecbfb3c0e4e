//! For ui.perfetto.dev and chrome://tracing: the original tracks of the run, plus tracks with busbound's results.
//!
//! The format is Chrome's JSON, because both viewers and busbound read it. The original tracks keep their ids; the
//! derived tracks are in separate processes, with ids that no operating system assigns.

mod derived;
mod original;
mod rows;

use std::io::{self, BufWriter, Write};

use busbound_diagnosis::Drawn;
use busbound_trace::Trace;

use crate::Format;
use crate::answer::{Answer, Timeline};
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

/// The trace with the tracks derived from it.
pub(crate) const PERFETTO: FormatSpec = FormatSpec {
    name: "perfetto",
    suffixes: &["perfetto.json"],
    about: "",
    scope: Scope::Only(AnswerKind::Timeline),
    render: Render::Stream(|answer, out| match answer {
        Answer::Timeline(Timeline { trace, drawn }) => Ok(write_all(BufWriter::new(out), trace, *drawn)?),
        other => Err(other.not_available(Format::Perfetto)),
    }),
};

/// Only the trace, in the layout of torch.profiler's files.
pub(crate) const CHROME: FormatSpec = FormatSpec {
    name: "chrome",
    suffixes: &["chrome.json"],
    about: "",
    scope: Scope::Only(AnswerKind::Timeline),
    render: Render::Stream(|answer, out| match answer {
        Answer::Timeline(Timeline { trace, .. }) => Ok(write_all(BufWriter::new(out), trace, None)?),
        other => Err(other.not_available(Format::Chrome)),
    }),
};

fn write_all(mut out: impl Write, trace: &Trace, drawn: Option<&Drawn>) -> io::Result<()> {
    write!(out, "{{\"schemaVersion\": 1, \"deviceProperties\": ")?;
    serde_json::to_writer(&mut out, &original::devices(trace))?;
    // What was recorded decides what recording cost.
    for (setting, on) in &trace.origin().settings {
        writeln!(out, ",")?;
        serde_json::to_writer(&mut out, setting)?;
        write!(out, ": {}", i32::from(*on))?;
    }
    if !trace.origin().unprofiled_step_ms.is_empty() {
        write!(out, ",\n\"busbound_unprofiled_step_ms\": ")?;
        serde_json::to_writer(&mut out, &trace.origin().unprofiled_step_ms)?;
    }
    let zero = zero(trace);
    if let Some(base) = trace.origin().base_time_ns.and_then(|base| base.checked_add(zero)) {
        write!(out, ",\n\"baseTimeNanoseconds\": {base}")?;
    }
    write!(out, ",\n\"displayTimeUnit\": \"ms\", \"traceEvents\": [")?;
    let mut events = Events { out, zero, is_first: true };
    original::write(&mut events, trace)?;
    if let Some(drawn) = drawn {
        derived::write(&mut events, &drawn.diagnosis, &drawn.picture)?;
    }
    writeln!(events.out, "\n]}}")?;
    events.out.flush()
}

/// Viewers read times as floating-point numbers. A nanosecond is lost from here on: 104 days.
const EXACT_NS: i64 = 1 << 53;

/// The time that is written as 0: that of the trace, or, where viewers would round its times, a second in which it began.
fn zero(trace: &Trace) -> i64 {
    let starts = trace.events().map(|event| event.start().as_nanos());
    let (first, last) = starts.fold((i64::MAX, i64::MIN), |(first, last), at| (first.min(at), last.max(at)));
    let is_exact = |at: i64| (-EXACT_NS..EXACT_NS).contains(&at);
    if first > last || (is_exact(first) && is_exact(last)) {
        0
    } else {
        first.saturating_sub(first.rem_euclid(1_000_000_000))
    }
}

/// A list of JSON objects being written.
struct Events<W> {
    out: W,
    /// See [`zero`].
    zero: i64,
    is_first: bool,
}

/// The process and thread of an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Track {
    process: i64,
    thread: i64,
}

/// Nanoseconds as the format's microseconds, without rounding.
struct Micros(i64);

impl std::fmt::Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:03}", self.0.unsigned_abs() / 1_000, self.0.unsigned_abs() % 1_000)
    }
}

/// Text as a JSON string.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self.0).map_err(|_| std::fmt::Error)?)
    }
}

impl<W: Write> Events<W> {
    fn begin(&mut self) -> io::Result<()> {
        let separator = if std::mem::take(&mut self.is_first) { "\n" } else { ",\n" };
        self.out.write_all(separator.as_bytes())
    }

    /// A slice; `args` are the members of its args object, or empty.
    fn complete(
        &mut self,
        track: Track,
        category: &str,
        name: &str,
        (start, length): (i64, i64),
        args: &str,
    ) -> io::Result<()> {
        self.begin()?;
        let Track { process, thread } = track;
        write!(
            self.out,
            "{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": {}, \"pid\": {process}, \"tid\": {thread}, \"ts\": {}, \"dur\": {}, \"args\": {{{args}}}}}",
            Quoted(name),
            Micros(start.saturating_sub(self.zero)),
            Micros(length)
        )
    }

    fn counter(&mut self, process: i64, name: &str, at: i64, value: f64) -> io::Result<()> {
        self.begin()?;
        write!(
            self.out,
            "{{\"ph\": \"C\", \"name\": {}, \"pid\": {process}, \"ts\": {}, \"args\": {{\"GB/s\": {value:.3}}}}}",
            Quoted(name),
            Micros(at.saturating_sub(self.zero))
        )
    }

    /// One end of an arrow from a call to the work it launched.
    fn arrow(&mut self, phase: &str, id: u64, track: Track, at: i64) -> io::Result<()> {
        self.begin()?;
        let Track { process, thread } = track;
        let binding = if phase == "f" { ", \"bp\": \"e\"" } else { "" };
        write!(
            self.out,
            "{{\"ph\": \"{phase}\", \"id\": {id}, \"pid\": {process}, \"tid\": {thread}, \"ts\": {}, \"cat\": \"ac2g\", \"name\": \"ac2g\"{binding}}}",
            Micros(at.saturating_sub(self.zero))
        )
    }

    fn process_name(&mut self, process: i64, name: &str) -> io::Result<()> {
        self.begin()?;
        write!(
            self.out,
            "{{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": {process}, \"tid\": 0, \"args\": {{\"name\": {}}}}}",
            Quoted(name)
        )
    }

    fn thread_name(&mut self, Track { process, thread }: Track, name: &str) -> io::Result<()> {
        self.begin()?;
        write!(
            self.out,
            "{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {process}, \"tid\": {thread}, \"args\": {{\"name\": {}}}}}",
            Quoted(name)
        )
    }

    /// Viewers list processes in this order.
    fn sort_index(&mut self, process: i64, index: i64) -> io::Result<()> {
        self.begin()?;
        write!(
            self.out,
            "{{\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": {process}, \"tid\": 0, \"args\": {{\"sort_index\": {index}}}}}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_every_nanosecond() {
        assert_eq!(Micros(1_234_567).to_string(), "1234.567");
        assert_eq!(Micros(7).to_string(), "0.007");
        assert_eq!(Micros(-1_500).to_string(), "-1.500");
        assert_eq!(Quoted("a\"b\u{1}</script>").to_string(), "\"a\\\"b\\u0001</script>\"");
    }
}

//! The reader of stage timestamps: one JSON object per line and item, as programs log them to check a pipeline.
//!
//! `{"item": 3, "rank": 0, "tA0": 12.001, "tA1": 12.034, "tSend": 12.035, "tRecv": 12.080, "tDecode": 12.101, "tEmit": 12.102}`
//!
//! `tA0` and `tA1` begin and end the work of stage 0, `tB0` and `tB1` that of stage 1, and so on. Stage 0 goes on after it gets an
//! item back: from `tRecv` to `tDecode` and to `tEmit`. Each becomes an annotation on the host.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use crate::error::OpenError;
use crate::model::builder::TraceBuilder;
use crate::model::format::{Format, Recordable};
use crate::model::origin::Distributed;
use crate::model::stats::LossKind;
use crate::reader::{Confidence, ReadOptions, Reader, Source, Watch, require_events};

/// What a program logs about its pipeline.
pub(crate) struct StageLog;

static FORMAT: Format = Format {
    id: "stage-log",
    profiler: "the program's own log",
    files: ".stages.jsonl of stage timestamps (tA0, tA1, tB0 …)",
    suffixes: &[".stages.jsonl"],
    supersedes: &[],
    is_json: true,
    records_shapes: false,
    record_gpu: "torch.profiler or Nsight Systems as well",
    no_gpu_activity: Some("stage timestamps are taken on the host"),
    remedy,
};

fn remedy(missing: Recordable, _: bool) -> Option<&'static str> {
    match missing {
        Recordable::Steps => None,
        _ => Some("a log of stage timestamps has only stages; record the run with torch.profiler as well"),
    }
}

/// Work of stage 0 on an item that came back, and what is between: name, begin, end.
const PARTS: [(&str, &str, &str); 4] = [
    ("stage0:decode", "tRecv", "tDecode"),
    ("stage0:emit", "tDecode", "tEmit"),
    ("send", "tA1", "tSend"),
    ("wait for the next stage", "tSend", "tRecv"),
];
/// Longer lines are damage: an item has a few timestamps.
const LONGEST: u64 = 1 << 20;

impl Reader for StageLog {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn sniff(&self, head: &[u8], path: &Path) -> Confidence {
        let is_object = head.trim_ascii_start().first() == Some(&b'{');
        let has = |word: &[u8]| head.windows(word.len()).any(|part| part == word);
        let is_named = path.to_string_lossy().to_ascii_lowercase().contains(".stages.jsonl");
        match (is_object, is_named) {
            (true, true) => Confidence::ByContent,
            (true, false) if has(b"\"tA0\"") || has(b"\"tB0\"") => Confidence::ByContent,
            // Its first line may be damaged.
            (false, true) => Confidence::ByName,
            _ => Confidence::No,
        }
    }

    fn read(
        &self,
        source: Source<'_>,
        trace: &mut TraceBuilder,
        options: &ReadOptions,
        watch: &mut Watch<'_>,
    ) -> Result<(), OpenError> {
        read_lines(source.stream, trace, options.memory_bound, watch);
        let empty = OpenError::NoEventsIn {
            path: source.path.to_owned(),
            what: "a log of stage timestamps",
            hint: "write a line per item, with tA0 and tA1 (or tB0 and tB1) as numbers of seconds",
        };
        require_events(trace, source.path, empty)
    }
}

fn read_lines(
    source: &mut (dyn Read + Send),
    trace: &mut TraceBuilder,
    memory_bound: u64,
    watch: &mut Watch<'_>,
) {
    let mut lines = BufReader::new(source);
    let (mut offset, mut line) = (0u64, Vec::new());
    loop {
        line.clear();
        let read = lines.by_ref().take(LONGEST).read_until(b'\n', &mut line).unwrap_or(0) as u64;
        if read == 0 || watch.tick().is_break() {
            return;
        }
        if trace.is_full(memory_bound) {
            return trace.lose(LossKind::MemoryBound, offset, 0);
        }
        let item = serde_json::from_slice::<BTreeMap<String, Value>>(&line);
        match item {
            Ok(item) if add(trace, &item) => {}
            Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
            Ok(_) => trace.lose(LossKind::NotAnEvent, offset, read),
            Err(_) if !line.ends_with(b"\n") && read < LONGEST => {
                trace.lose(LossKind::EndsInsideEvent, offset, read);
            }
            Err(_) => trace.lose(LossKind::DamagedEvent, offset, read),
        }
        offset += read;
    }
}

/// Adds the stages of one item; `false` if it has none.
fn add(trace: &mut TraceBuilder, item: &BTreeMap<String, Value>) -> bool {
    let ns_per_unit = match item.get("unit").and_then(Value::as_str) {
        Some("ms") => Some(1e6),
        Some("us") => Some(1e3),
        Some("ns") => Some(1.0),
        Some("s") => Some(1e9),
        _ => None,
    };
    let at = |name: &str| {
        let value = item.get(name)?;
        match (ns_per_unit, value.as_i64()) {
            (Some(1.0), Some(ns)) => Some(ns),
            // Seconds of this size are thousands of years: the clock counts nanoseconds.
            (None, Some(ns)) if ns.unsigned_abs() > 1_000_000_000_000 => Some(ns),
            _ => Some((value.as_f64()? * ns_per_unit.unwrap_or(1e9)).round())
                .filter(|ns| ns.abs() < 9e18)
                .map(|ns| ns as i64),
        }
    };
    let letters = (b'A'..=b'Z').enumerate().map(|(stage, letter)| {
        let letter = char::from(letter);
        (format!("stage{stage}:{letter}"), format!("t{letter}0"), format!("t{letter}1"))
    });
    let others = PARTS.map(|(name, begin, end)| (name.to_owned(), begin.to_owned(), end.to_owned()));
    let mut has_stage = false;
    for (name, begin, end) in letters.chain(others) {
        let (Some(begin), Some(end)) = (at(&begin), at(&end)) else { continue };
        if end < begin {
            continue;
        }
        has_stage |= name.starts_with("stage");
        // A part has its own thread: the items of a pipeline overlap.
        let thread = trace.label(&name);
        let track = trace.thread(0, thread);
        trace.annotation(track, &name, begin..end);
    }
    let rank = item.get("rank").and_then(Value::as_u64).and_then(|rank| u32::try_from(rank).ok());
    if let (Some(rank), None) = (rank, &trace.origin().distributed) {
        let distributed = Distributed { rank: Some(rank), world_size: None, backend: None };
        trace.origin().distributed = Some(distributed);
    }
    has_stage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, Trace, read};

    fn parsed(text: &str) -> Trace {
        read(text.as_bytes(), Path::new("rank0.stages.jsonl"), &ReadOptions::default()).unwrap()
    }

    fn events(trace: &Trace) -> Vec<(String, i64, i64)> {
        let event = |event: crate::Event<'_>| {
            (event.name().to_owned(), event.start().as_nanos(), event.duration().get())
        };
        trace.events().map(event).collect()
    }

    #[test]
    fn an_item_becomes_the_parts_of_its_stages() {
        let trace = parsed(
            r#"{"item": 0, "rank": 3, "tA0": 1.5, "tA1": 1.75, "tSend": 1.8, "tRecv": 2.0, "tDecode": 2.25, "tEmit": 2.5}"#,
        );
        let expected = [
            ("stage0:A", 1_500_000_000, 250_000_000),
            ("stage0:decode", 2_000_000_000, 250_000_000),
            ("stage0:emit", 2_250_000_000, 250_000_000),
            ("send", 1_750_000_000, 50_000_000),
            ("wait for the next stage", 1_800_000_000, 200_000_000),
        ];
        let expected = expected.map(|(name, start, length)| (name.to_owned(), start, length));
        assert_eq!(events(&trace), expected);
        assert_eq!(trace.origin().distributed.as_ref().and_then(|of| of.rank), Some(3));
    }

    #[test]
    fn units_are_seconds_unless_stated_or_obvious() {
        for line in [
            r#"{"tB0": 2, "tB1": 2.5}"#,
            r#"{"tB0": 2000, "tB1": 2500.0, "unit": "ms"}"#,
            r#"{"tB0": 2000000000, "tB1": 2500000000, "unit": "ns"}"#,
        ] {
            assert_eq!(
                events(&parsed(line)),
                [("stage1:B".to_owned(), 2_000_000_000, 500_000_000)],
                "{line}"
            );
        }
        let counted = parsed(r#"{"tB0": 5000000000000000, "tB1": 5000000500000000}"#);
        assert_eq!(events(&counted), [("stage1:B".to_owned(), 5_000_000_000_000_000, 500_000_000)]);
    }

    #[test]
    fn damaged_lines_are_counted_and_the_others_are_kept() {
        let trace = parsed(
            "{\"tA0\": 1, \"tA1\": 2}\nnot json\n{\"other\": 1}\n\n{\"tA0\": 3, \"tA1\": 4}\n{\"tA0\": 5, ",
        );
        assert_eq!(events(&trace).len(), 2);
        let lost = |kind: LossKind| trace.stats().losses.iter().filter(|loss| loss.what == kind).count();
        let kinds = [LossKind::DamagedEvent, LossKind::NotAnEvent, LossKind::EndsInsideEvent];
        assert_eq!(kinds.map(lost), [1, 1, 1]);
        // A time that ends before it begins says nothing.
        assert!(
            read(&b"{\"tA0\": 2, \"tA1\": 1}"[..], Path::new("x.stages.jsonl"), &ReadOptions::default())
                .is_err()
        );
    }
}

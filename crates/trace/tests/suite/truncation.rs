//! A file cut at any byte gives every complete event before the cut.

use std::io::Read;
use std::path::Path;

use busbound_trace::{LossKind, OpenError, ReadOptions, read};

const TRACE: &[u8] = include_bytes!("../../../../fixtures/off_layerwise_d2_c4_syncevents.json.gz");

fn inflated() -> Vec<u8> {
    let mut json = Vec::new();
    flate2::read::GzDecoder::new(TRACE).read_to_end(&mut json).unwrap();
    json
}

/// Events and allocator samples read from the first `len` bytes.
fn events_in(bytes: &[u8]) -> u64 {
    match read(bytes, Path::new("cut"), &ReadOptions::default().threads(1)) {
        Ok(trace) => {
            assert!(!trace.stats().is_complete(), "cut at {} but reported as complete", bytes.len());
            // The cut event is also an object, but not a complete one.
            let cut =
                trace.stats().losses.iter().filter(|loss| loss.what == LossKind::EndsInsideEvent).count();
            trace.stats().objects - cut as u64
        }
        Err(OpenError::Empty { .. } | OpenError::NoEvents { .. } | OpenError::OtherJson { .. }) => 0,
        Err(OpenError::NothingInflated { .. } | OpenError::CutBeforeEvents { .. }) => 0,
        Err(other) => panic!("{other}"),
    }
}

/// The number of events that end at or before each byte, by a reader that only looks at brackets.
fn whole_events(json: &[u8]) -> Vec<usize> {
    let from = memchr::memmem::find(json, b"\"traceEvents\": [").unwrap() + 16;
    let (mut depth, mut in_string, mut escaped, mut ends) = (0, false, false, Vec::new());
    for (i, &b) in json.iter().enumerate().skip(from) {
        match b {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    ends.push(i + 1);
                }
            }
            b']' if depth == 0 => break,
            _ => {}
        }
    }
    ends
}

#[test]
fn five_hundred_cuts_of_plain_json_give_exactly_the_complete_events() {
    let json = inflated();
    let ends = whole_events(&json);
    assert_eq!(ends.len(), 4238);
    let mut before = 0;
    for k in 0..500 {
        // Prime steps hit all kinds of positions: in keys, numbers, escapes, between events.
        let cut = (k * 7919 * 31 + k) % json.len();
        let whole = ends.partition_point(|&end| end <= cut) as u64;
        assert_eq!(events_in(&json[..cut]), whole, "cut at {cut}");
    }
    for k in 0..500 {
        let events = events_in(&json[..json.len() * k / 500]);
        assert!(events >= before, "fewer events from a longer file: {events} < {before} at {k}");
        before = events;
    }
}

#[test]
fn longer_cuts_of_the_gzip_file_give_more_events() {
    let mut before = 0;
    for k in 0..100 {
        let events = events_in(&TRACE[..TRACE.len() * k / 100]);
        assert!(events >= before, "fewer events from a longer file: {events} < {before} at {k}%");
        before = events;
    }
    assert!(before > 4000, "{before}");
}

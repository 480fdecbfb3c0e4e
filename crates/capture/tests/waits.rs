//! Do waits from callbacks match CUPTI's own records of them? Both recorded the same program on a real GPU
//! (fixtures/cupti/exercise.c).
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot read its fixture has failed")]

use busbound_capture::format::{Chunk, ChunkReader, MAGIC, Record, Records};
use serde_json::Value;

const SYNCHRONIZATION: u64 = 38;
const CUDA_EVENT: u64 = 36;

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../fixtures/cupti/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Kind and stream of each wait; stream of each recorded event. In time order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Observed {
    waits: Vec<(u64, i64)>,
    events: Vec<u64>,
    /// Whether each wait for an event names the recorded event.
    names_the_event: Vec<bool>,
}

fn by_calls() -> Observed {
    let file = fixture("exercise.bbt");
    let mut chunks = ChunkReader::new(file.strip_prefix(MAGIC).unwrap());
    let mut observed = Observed::default();
    let mut recorded = None;
    while let Some(chunk) = chunks.next_chunk().unwrap() {
        let Chunk::Whole { payload, .. } = chunk else { panic!("the recording is whole") };
        for record in Records::of(&payload) {
            match record {
                Record::Sync { stream, kind, event, .. } => {
                    observed.waits.push((kind.into(), stream));
                    observed.names_the_event.extend((kind < 3).then_some(Some(event) == recorded));
                }
                Record::EventRecord { stream, event, .. } => {
                    recorded = Some(event);
                    observed.events.push(stream.into());
                }
                _ => {}
            }
        }
    }
    observed
}

fn by_cupti() -> Observed {
    let text = String::from_utf8(fixture("cuda-13.0.jsonl")).unwrap();
    let mut observed = Observed::default();
    for line in text.lines() {
        let buffer: Value = serde_json::from_str(line).unwrap();
        for record in buffer["records"].as_array().unwrap() {
            let field = |name: &str| record[name].as_u64().unwrap();
            match field("kind") {
                SYNCHRONIZATION => {
                    let stream = u32::try_from(field("streamId")).unwrap();
                    let stream = if stream == u32::MAX { -1 } else { i64::from(stream) };
                    observed.waits.push((field("type"), stream));
                    observed.names_the_event.extend((field("type") < 3).then_some(field("cudaEventId") == 1));
                }
                CUDA_EVENT => observed.events.push(field("streamId")),
                _ => {}
            }
        }
    }
    observed
}

#[test]
fn waits_from_callbacks_match_cuptis_own_records() {
    let observed = by_calls();
    assert_eq!(observed, by_cupti());
    // Twice: a stream waits for an event; the host waits for a stream, for an event, for the device.
    assert_eq!(observed.waits, [(2, 7), (3, 13), (1, -1), (4, -1)].repeat(2));
    assert_eq!(observed.events, [13, 13]);
    assert_eq!(observed.names_the_event, [true; 4]);
}

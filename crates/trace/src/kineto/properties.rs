//! Does the scanner agree with `serde_json` on all valid JSON, and survive everything else?

use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::kineto::batch::Batch;
use crate::kineto::cursor::{Cursor, Raw};
use crate::kineto::number::micros_to_nanos;
use crate::kineto::scan::{Region, scan};
use crate::kineto::text::decode;

/// Any JSON value, with strings that look like structure.
fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".*",
        Just("]}{[\",:\\".to_owned()),
        Just("{\"ph\": \"X\"}".to_owned()),
        Just("\u{0}\u{1f}\u{7f}é😀\\\"".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no such number", |f| f.is_finite()).prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((text.clone(), inner), 0..8)
                .prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

fn written(value: &Value, pretty: bool) -> String {
    let text = if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.unwrap()
}

/// Walks a value with the cursor and rebuilds it, to compare with `serde_json`.
fn rebuild(cursor: &mut Cursor<'_>) -> Value {
    match cursor.next_token().unwrap() {
        b'{' => {
            cursor.advance();
            let mut members = Map::new();
            while let Some(key) = cursor.next_key().unwrap() {
                let key = decode(Raw { bytes: key, escaped: true }).text.into_owned();
                let value = rebuild(cursor);
                cursor.end_member().unwrap();
                members.insert(key, value);
            }
            Value::Object(members)
        }
        b'[' => {
            cursor.advance();
            let mut items = Vec::new();
            loop {
                match cursor.next_token().unwrap() {
                    b',' => cursor.advance(),
                    b']' => {
                        cursor.advance();
                        return Value::Array(items);
                    }
                    _ => items.push(rebuild(cursor)),
                }
            }
        }
        b'"' => Value::from(decode(cursor.string().unwrap()).text.into_owned()),
        _ => serde_json::from_slice(cursor.scalar().unwrap()).unwrap(),
    }
}

/// Events as a profiler might write them, with some members missing or odd, and their start and duration in
/// nanoseconds.
fn any_event() -> impl Strategy<Value = (Value, i64, i64)> {
    let category =
        prop::sample::select(vec!["cpu_op", "kernel", "gpu_memcpy", "cuda_runtime", "Operator", "novel"]);
    // Below 10^12 µs the shortest decimal of an f64 keeps all three decimals.
    let times = (0i64..8_000_000_000_000, 0i64..10_000_000);
    (category, ".{0,30}", times, any_json(), prop::option::of(0u32..100_000)).prop_map(
        |(category, name, (ts, dur), extra, correlation)| {
            let mut args = Map::new();
            if let Some(correlation) = correlation {
                args.insert("correlation".to_owned(), correlation.into());
            }
            args.insert("extra".to_owned(), extra);
            // Eighths of a microsecond are exact in binary and in three decimals.
            let event = serde_json::json!({
                "ph": "X", "cat": category, "name": name, "pid": 7, "tid": 3,
                "ts": ts as f64 / 8.0, "dur": dur as f64 / 8.0, "args": args,
            });
            (event, ts * 125, dur * 125)
        },
    )
}

fn scan_all(bytes: &[u8]) -> Batch {
    let mut batch = Batch::default();
    scan(Region::Start, bytes, 0, true, &mut batch);
    batch
}

proptest! {
    #[test]
    fn any_json_is_walked_as_serde_json_reads_it(value in any_json(), pretty in any::<bool>()) {
        let text = written(&value, pretty) + ",";
        let mut cursor = Cursor::at(text.as_bytes(), 0);
        prop_assert_eq!(&rebuild(&mut cursor), &serde_json::from_str::<Value>(&text[..text.len() - 1]).unwrap());
        prop_assert_eq!(cursor.pos(), text.len() - 1);
    }

    #[test]
    fn any_json_is_skipped_completely(value in any_json(), pretty in any::<bool>()) {
        let text = written(&value, pretty) + ",";
        let mut cursor = Cursor::at(text.as_bytes(), 0);
        prop_assert_eq!(cursor.skip_value().map(<[u8]>::len), Ok(text.len() - 1));
    }

    #[test]
    fn events_match_what_serde_json_reads(events in prop::collection::vec(any_event(), 0..12), pretty in any::<bool>()) {
        let list: Vec<&Value> = events.iter().map(|(event, ..)| event).collect();
        let text = written(&serde_json::json!({"schemaVersion": 1, "traceEvents": list}), pretty);
        let batch = scan_all(text.as_bytes());
        prop_assert!(batch.stats.losses.is_empty(), "{:?}", batch.stats.losses);
        prop_assert_eq!(batch.events.len(), events.len());
        for (i, (event, start, duration)) in events.iter().enumerate() {
            prop_assert_eq!(batch.events.start[i].as_nanos(), *start);
            prop_assert_eq!(batch.events.duration.get(i).get(), *duration);
            prop_assert_eq!(batch.names.get(batch.events.name(i)), event["name"].as_str().unwrap());
            let correlation = event["args"]["correlation"].as_u64();
            prop_assert_eq!(batch.events.correlation.get(i), correlation);
        }
    }

    #[test]
    fn any_bytes_are_handled_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        scan_all(&bytes);
    }

    #[test]
    fn any_mix_of_json_tokens_is_handled_without_a_panic(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"", "\\", "{\"ph\": \"X\"", "\"ts\": 1", "\"traceEvents\": [",
                "{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"", "NaN", "1e999", " ", "\"args\": {",
            ]),
            0..300,
        )
    ) {
        scan_all(tokens.concat().as_bytes());
    }

    /// One damaged byte is a local loss: all events before it, and all but one after it, are kept.
    #[test]
    fn damage_is_local(
        events in prop::collection::vec(any_event(), 1..12),
        at in any::<prop::sample::Index>(),
        rubbish in prop::collection::vec(any::<u8>(), 1..8),
    ) {
        // Extra members may contain complete events, which would distort the count here.
        let plain = |(event, ..): &(Value, i64, i64)| {
            let mut event = event.clone();
            event["args"] = serde_json::json!({});
            event["name"] = "n".into();
            event
        };
        let list: Vec<Value> = events.iter().map(plain).collect();
        let mut bytes = written(&serde_json::json!({"traceEvents": list}), true).into_bytes();
        let at = at.index(bytes.len());
        bytes.splice(at..at, rubbish);
        let kept = scan_all(&bytes).events.len();
        prop_assert!(kept + 1 >= events.len(), "{kept} of {} with damage at {at}", events.len());
    }

    #[test]
    fn decimal_microseconds_are_exact(nanos in -4_000_000_000_000_000_000i64..4_000_000_000_000_000_000) {
        let sign = if nanos < 0 { "-" } else { "" };
        let n = nanos.unsigned_abs();
        let text = format!("{sign}{}.{:03}", n / 1000, n % 1000);
        prop_assert_eq!(micros_to_nanos(text.as_bytes()), Ok(nanos));
    }
}

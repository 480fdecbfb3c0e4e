//! The sample for the script's tests: encoded here, decoded there, with the same values.

use std::io::Read;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use busbound_diagnosis::{
    Dot, DotKind, GapCause, GroupOf, Lane, LaneGroup, LaneKind, PathClass, PathSpan, Picture, PictureSpan,
    Piece, PieceId, PieceMark, RateCurve, Row, StepSpan,
};
use busbound_trace::{Direction, MemoryKind, Timestamp};
use flate2::read::DeflateDecoder;
use serde_json::{Value, json};

use super::of_picture::{Labels, PredictedStep, bytes, encoded};
use super::typescript::check;

/// Close to the largest number that the script can read.
const LARGE: u64 = 1 << 52;

fn piece(start: i64, end: i64, busy: i64) -> Piece {
    Piece { start, end, busy, count: 1, name: 1, note: 0, bytes: 0, launched: None, mark: PieceMark::None }
}

fn device_rows() -> Vec<Row> {
    vec![
        Row {
            pieces: vec![
                Piece {
                    bytes: 168_000_000,
                    launched: Some(0),
                    note: 2,
                    mark: PieceMark::Pageable,
                    ..piece(0, 300, 300)
                },
                piece(300, 300, 0),
                Piece {
                    count: 70_000,
                    name: 300,
                    bytes: LARGE,
                    launched: Some(1_000),
                    ..piece(1_300, 9_000_000_000, 5)
                },
            ],
        },
        Row { pieces: Vec::new() },
        Row {
            pieces: vec![Piece {
                launched: Some(127),
                mark: PieceMark::Idle(GapCause::Input),
                ..piece(128, 129, 1)
            }],
        },
    ]
}

/// A picture with every kind of value, including the largest and smallest of each.
fn sample() -> Picture {
    let host = vec![Row { pieces: vec![piece(7, 8, 1), piece(9, 20_000_000_000, 19_999_999_991)] }];
    let span = |start, end| PictureSpan { start, end };
    let dot = Dot {
        kind: 0,
        bytes: 168_000_000,
        ns: 300,
        start: 0,
        count: 1,
        piece: Some(PieceId { row: 0, piece: 0 }),
    };
    Picture {
        origin: Timestamp::from_nanos(1_700_000_000_000_000_000),
        span_ns: 20_000_000_000,
        analyzed: span(128, 9_000_000_000),
        steps: vec![
            StepSpan { span: span(0, 128), number: 7, analyzed: false, outlier: false },
            StepSpan { span: span(128, 1_300), number: 8, analyzed: true, outlier: false },
            StepSpan { span: span(1_300, 20_000_000_000), number: LARGE, analyzed: true, outlier: true },
        ],
        names: (0..301)
            .map(|i| if i == 300 { "\u{1F680} </script>".to_owned() } else { format!("n{i}") })
            .collect(),
        groups: vec![
            LaneGroup {
                title: "GPU 0".to_owned(),
                of: GroupOf::Device { device: 0, peak_gbps: 63.02 },
                lanes: vec![Lane { sort: LaneKind::ToDevice, rows: device_rows() }],
            },
            LaneGroup {
                title: "Host".to_owned(),
                of: GroupOf::Thread,
                lanes: vec![Lane { sort: LaneKind::Host, rows: host }],
            },
        ],
        dots: vec![
            dot,
            Dot {
                count: 40_000,
                bytes: LARGE,
                start: 1_300,
                piece: Some(PieceId { row: 2, piece: 0 }),
                ..dot
            },
            Dot { kind: 1, piece: None, ..dot },
        ],
        dot_kinds: vec![
            DotKind {
                label: "H2D pageable".to_owned(),
                direction: Direction::HostToDevice,
                memory: Some(MemoryKind::Pageable),
            },
            DotKind { label: "D2D".to_owned(), direction: Direction::DeviceToDevice, memory: None },
        ],
        unplaced_copies: 0,
        curves: vec![RateCurve {
            label: "H2D pinned".to_owned(),
            source: "measured",
            to_device: true,
            pinned: true,
            points: vec![(256, 0.25), (1 << 30, 55.5)],
        }],
        path: vec![
            PathSpan { span: span(0, 300), class: PathClass::Copy, row: Some(0) },
            PathSpan { span: span(300, LARGE as i64), class: PathClass::Unexplained, row: None },
        ],
        predicted_from: Some(128),
        findings: vec![vec![span(0, 300), span(1_300, 1_301)], Vec::new()],
        devices_until: Some(9_000_000_000),
        notes: Vec::new(),
    }
}

/// As the script spells it.
fn mark(mark: PieceMark) -> &'static str {
    match mark {
        PieceMark::Pageable => "pageable",
        PieceMark::Idle(GapCause::Input) => "idle_input",
        _ => "none",
    }
}

/// What the script must decode from the sample, in terms of the picture, not of the columns.
fn expected(picture: &Picture, labels: &Labels<'_>) -> Value {
    let rows = picture.groups.iter().flat_map(|group| &group.lanes).flat_map(|lane| &lane.rows);
    let pieces = |row: &Row| -> Vec<Value> {
        let piece = |piece: &Piece| {
            json!({
                "start": piece.start, "end": piece.end, "busy": piece.busy, "count": piece.count, "name": piece.name,
                "note": piece.note, "bytes": piece.bytes, "launched": piece.launched, "mark": mark(piece.mark),
            })
        };
        row.pieces.iter().map(piece).collect()
    };
    let spans =
        |spans: &Vec<PictureSpan>| spans.iter().map(|span| json!([span.start, span.end])).collect::<Vec<_>>();
    json!({
        "label": labels.run,
        "unit": labels.unit,
        "link": labels.link,
        "peak": labels.peak_gbps,
        "span": picture.span_ns,
        "analyzed": [picture.analyzed.start, picture.analyzed.end],
        "until": picture.devices_until,
        "names": picture.names,
        "rows": rows.map(pieces).collect::<Vec<_>>(),
        "steps": picture.steps.iter().map(|step| json!([step.span.start, step.span.end, step.number, step.analyzed, step.outlier])).collect::<Vec<_>>(),
        "findings": picture.findings.iter().map(spans).collect::<Vec<_>>(),
        "dots": picture.dots.iter().map(|dot| json!({
            "kind": dot.kind, "bytes": dot.bytes, "duration": dot.ns, "start": dot.start, "count": dot.count,
            "row": dot.piece.map(|id| id.row), "piece": dot.piece.map_or(0, |id| id.piece),
        })).collect::<Vec<_>>(),
        "path": picture.path.iter().map(|one| json!([one.span.start, one.span.end, one.class.describe(), one.row])).collect::<Vec<_>>(),
        "predicted": labels.predicted.as_ref().map(|step| json!({
            "change": step.change, "from": picture.predicted_from, "before": 1e6 * step.before_ms, "after": 1e6 * step.after_ms,
        })),
        "curves": picture.curves.iter().map(|curve| &curve.points).collect::<Vec<_>>(),
    })
}

/// `web/test/contract.test.mjs` decodes this file with the page's own reader and compares every value.
#[test]
fn the_sample_for_the_script_tests_is_up_to_date() {
    let labels = Labels {
        run: "run",
        unit: "step",
        link: "PCIe 5.0 x16",
        peak_gbps: 63.02,
        findings: vec!["First", "Second"],
        predicted: Some(PredictedStep { change: "pin".to_owned(), before_ms: 275.5, after_ms: 105.0 }),
    };
    let picture = sample();
    let text = json!({"data": encoded(&picture, &labels), "expected": expected(&picture, &labels)});
    let text = format!("{text:#}\n");
    let raw: Vec<u8> = bytes(&picture, &labels);
    check("test/sample.json", &text, |found| {
        let found: Value = serde_json::from_str(found).unwrap_or_default();
        // Compares the bytes before deflating: the compressed form may differ between zlib versions.
        inflated(found["data"].as_str().unwrap_or_default()) == raw
            && found["expected"] == expected(&picture, &labels)
    });
}

fn inflated(base64_text: &str) -> Vec<u8> {
    let packed = BASE64_STANDARD.decode(base64_text).unwrap();
    let mut bytes = Vec::new();
    DeflateDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    bytes
}

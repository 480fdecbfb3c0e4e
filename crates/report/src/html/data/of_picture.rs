//! Encodes a picture as the data of its page.

use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use busbound_diagnosis::{DotKind, GroupOf, LaneGroup, LaneKind, Picture, Piece, RateCurve};
use busbound_trace::Direction;
use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::columns::Table;
use super::layout::{
    Curve, DOTS, Finding, Group, Head, Kind, Lane, Mark, Of, PATH, PIECES, Placed, Predicted, SPANS, STEPS,
    Sort, To, VERSION, classes, positive, tables,
};

/// What the page data contains in addition to the picture.
pub(in super::super) struct Labels<'a> {
    pub(in super::super) run: &'a str,
    pub(in super::super) unit: &'a str,
    pub(in super::super) link: &'a str,
    pub(in super::super) peak_gbps: f64,
    pub(in super::super) findings: Vec<&'a str>,
    pub(in super::super) predicted: Option<PredictedStep>,
}

/// The prediction that the picture shows.
pub(in super::super) struct PredictedStep {
    pub(in super::super) change: String,
    /// As recorded.
    pub(in super::super) before_ms: f64,
    pub(in super::super) after_ms: f64,
}

/// The data of a picture, deflated, as base64.
pub(in super::super) fn encoded(picture: &Picture, labels: &Labels<'_>) -> String {
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
    // Writing into memory does not fail.
    let _ = deflated.write_all(&bytes(picture, labels));
    BASE64_STANDARD.encode(deflated.finish().unwrap_or_default())
}

pub(super) fn bytes(picture: &Picture, labels: &Labels<'_>) -> Vec<u8> {
    let mut blocks = Blocks::default();
    let described = tables().map(|table| {
        let columns = table.columns.iter().map(|column| [column.name, column.encoding, column.unit]);
        (table.name, columns.collect())
    });
    let groups = picture.groups.iter().map(|of| group(of, &mut blocks)).collect();
    let findings = picture.findings.iter().zip(&labels.findings);
    let head = Head {
        version: VERSION,
        tables: described.into(),
        label: labels.run,
        unit: labels.unit,
        span: picture.span_ns,
        analyzed: [picture.analyzed.start, picture.analyzed.end],
        until: picture.devices_until,
        link: labels.link,
        peak: labels.peak_gbps,
        names: &picture.names,
        marks: Mark::ALL,
        groups,
        kinds: picture.dot_kinds.iter().map(kind).collect(),
        curves: picture.curves.iter().map(curve).collect(),
        steps: blocks.add(&STEPS, &picture.steps),
        findings: findings
            .map(|(spans, title)| Finding { title, spans: blocks.add(&SPANS, spans) })
            .collect(),
        dots: blocks.add(&DOTS, &picture.dots),
        path: blocks.add(&PATH, &picture.path),
        classes: classes(),
        predicted: predicted(picture, labels),
        blocks: blocks.sizes,
    };
    let head = serde_json::to_vec(&head).unwrap_or_default();
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&length[..], &head, &blocks.bytes].concat()
}

fn predicted<'a>(picture: &Picture, labels: &'a Labels<'_>) -> Option<Predicted<'a>> {
    let step = labels.predicted.as_ref()?;
    let ns = |ms: f64| 1e6 * ms;
    let (before, after) = (ns(step.before_ms), ns(step.after_ms));
    Some(Predicted { change: &step.change, from: picture.predicted_from?, before, after })
}

/// The blocks of rows after the header.
#[derive(Default)]
struct Blocks {
    sizes: Vec<(&'static str, usize)>,
    bytes: Vec<u8>,
}

impl Blocks {
    /// Returns the number by which the header refers to the block.
    fn add<T>(&mut self, table: &Table<T>, rows: &[T]) -> usize {
        table.write(rows, &mut self.bytes);
        self.sizes.push((table.name, rows.len()));
        self.sizes.len() - 1
    }
}

fn group<'a>(group: &'a LaneGroup, blocks: &mut Blocks) -> Group<'a> {
    let (of, peak) = match group.of {
        GroupOf::Device { peak_gbps, .. } => (Of::Device, peak_gbps),
        GroupOf::Predicted => (Of::Predicted, 0.0),
        GroupOf::Thread => (Of::Thread, 0.0),
    };
    let lanes = group.lanes.iter().map(|lane| Lane {
        sort: sort(lane.sort),
        title: lane.sort.title(),
        rows: lane.rows.iter().map(|row| blocks.add(&PIECES, &placed(&row.pieces))).collect(),
    });
    Group { title: &group.title, of, peak, lanes: lanes.collect() }
}

fn placed(pieces: &[Piece]) -> Vec<Placed> {
    let mut before = 0;
    let place = |&piece: &Piece| {
        // Segments of a row never overlap and none begins before the picture, so no gap is negative.
        let gap = piece.start - before;
        debug_assert!(gap >= 0, "segments overlap or begin before the picture");
        before = piece.end;
        Placed { gap: positive(gap), piece }
    };
    pieces.iter().map(place).collect()
}

fn sort(lane: LaneKind) -> Sort {
    match lane {
        LaneKind::Compute => Sort::Compute,
        LaneKind::Communication => Sort::Communication,
        LaneKind::ToDevice => Sort::H2d,
        LaneKind::ToHost => Sort::D2h,
        LaneKind::OtherCopies => Sort::Other,
        LaneKind::Idle => Sort::Idle,
        LaneKind::Host => Sort::Host,
    }
}

fn kind(kind: &DotKind) -> Kind<'_> {
    let to = match kind.direction {
        Direction::HostToDevice => To::Device,
        Direction::DeviceToHost => To::Host,
        _ => To::Other,
    };
    Kind { label: &kind.label, to, memory: kind.memory }
}

fn curve(curve: &RateCurve) -> Curve<'_> {
    let RateCurve { label, source, to_device, pinned, points } = curve;
    Curve { label, source, to_device: *to_device, pinned: *pinned, points }
}

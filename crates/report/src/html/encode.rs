//! A picture as the page's script reads it: one block of bytes, deflated, as base64.
//!
//! It begins with the length of a JSON head (u32, little-endian) and the head, which says how many numbers follow of what.
//! The numbers are LEB128, column by column, because columns compress better than rows; `web/src/picture.ts` reads them
//! in the same order.

use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use busbound_diagnosis::{GroupOf, LaneGroup, Picture, PictureSpan, Piece};
use busbound_trace::Direction;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Serialize)]
struct Head<'a> {
    label: &'a str,
    unit: &'a str,
    span: i64,
    judged: [i64; 2],
    until: Option<i64>,
    link: &'a str,
    peak: f64,
    names: &'a [String],
    groups: Vec<Value>,
    kinds: Vec<Value>,
    curves: Vec<Value>,
    findings: Vec<Value>,
    steps: usize,
    dots: usize,
}

/// What a page says of a picture beside what is in it.
pub(super) struct Labels<'a> {
    pub(super) run: &'a str,
    pub(super) unit: &'a str,
    pub(super) link: &'a str,
    pub(super) peak_gbps: f64,
    pub(super) findings: Vec<&'a str>,
}

pub(super) fn encoded(picture: &Picture, labels: &Labels<'_>) -> String {
    let head = Head {
        label: labels.run,
        unit: labels.unit,
        span: picture.span_ns,
        judged: [picture.judged.start, picture.judged.end],
        until: picture.devices_until,
        link: labels.link,
        peak: labels.peak_gbps,
        names: &picture.names,
        groups: picture.groups.iter().map(group).collect(),
        kinds: picture
            .dot_kinds
            .iter()
            .map(|kind| json!({"label": kind.label, "to": way(kind.direction), "memory": kind.memory}))
            .collect(),
        curves: picture
            .curves
            .iter()
            .map(|curve| {
                json!({"label": curve.label, "toDevice": curve.to_device, "pinned": curve.pinned, "points": curve.points})
            })
            .collect(),
        findings: picture
            .findings
            .iter()
            .zip(&labels.findings)
            .map(|(spans, title)| json!({"title": title, "spans": spans.len()}))
            .collect(),
        steps: picture.steps.len(),
        dots: picture.dots.len(),
    };
    let head = serde_json::to_vec(&head).unwrap_or_default();
    let mut columns = Columns::default();
    for row in picture.groups.iter().flat_map(|group| &group.lanes).flat_map(|lane| &lane.rows) {
        pieces(&mut columns, &row.pieces);
    }
    spans(&mut columns, &picture.steps.iter().map(|step| step.span).collect::<Vec<_>>());
    columns.each(&picture.steps, |step| u64::from(step.judged) + 2 * u64::from(step.outlier));
    for spans_of in &picture.findings {
        spans(&mut columns, spans_of);
    }
    columns.each(&picture.dots, |dot| u64::from(dot.kind));
    columns.each(&picture.dots, |dot| dot.bytes);
    columns.each(&picture.dots, |dot| positive(dot.ns));
    columns.each(&picture.dots, |dot| positive(dot.start));
    columns.each(&picture.dots, |dot| u64::from(dot.count));
    packed(&head, &columns.bytes)
}

/// How copies go, as the page colours them.
fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::HostToDevice => "device",
        Direction::DeviceToHost => "host",
        _ => "other",
    }
}

fn group(group: &LaneGroup) -> Value {
    let (of, peak) = match group.of {
        GroupOf::Device { peak_gbps, .. } => ("device", peak_gbps),
        GroupOf::Predicted => ("predicted", 0.0),
        GroupOf::Thread => ("thread", 0.0),
    };
    let lanes: Vec<Value> = group
        .lanes
        .iter()
        .map(|lane| {
            let rows: Vec<usize> = lane.rows.iter().map(|row| row.pieces.len()).collect();
            json!({"sort": lane.sort.id(), "title": lane.sort.title(), "rows": rows})
        })
        .collect();
    json!({"title": group.title, "of": of, "peak": peak, "lanes": lanes})
}

fn pieces(columns: &mut Columns, pieces: &[Piece]) {
    let mut before = 0;
    // Pieces of a row never overlap and none begins before the picture does, so no gap is negative.
    columns.each(pieces, |piece| {
        let gap = piece.start - before;
        debug_assert!(gap >= 0, "pieces overlap, or begin before the picture does");
        before = piece.end;
        positive(gap)
    });
    columns.each(pieces, |piece| positive(piece.end - piece.start));
    columns.each(pieces, |piece| positive(piece.end - piece.start - piece.busy));
    columns.each(pieces, |piece| u64::from(piece.count) - 1);
    columns.each(pieces, |piece| u64::from(piece.name));
    columns.each(pieces, |piece| u64::from(piece.note));
    columns.each(pieces, |piece| piece.bytes);
    // How long before it its call began, plus one; 0 where that is not known.
    columns.each(pieces, |piece| piece.launched.map_or(0, |at| positive(piece.start - at) + 1));
}

fn spans(columns: &mut Columns, spans: &[PictureSpan]) {
    columns.each(spans, |span| positive(span.start));
    columns.each(spans, |span| positive(span.end - span.start));
}

fn positive(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Numbers as LEB128, one after another.
#[derive(Default)]
struct Columns {
    bytes: Vec<u8>,
}

impl Columns {
    fn each<T>(&mut self, all: &[T], mut value: impl FnMut(&T) -> u64) {
        for one in all {
            let mut rest = value(one);
            while rest >= 0x80 {
                self.bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            self.bytes.push(rest as u8);
        }
    }
}

fn packed(head: &[u8], columns: &[u8]) -> String {
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::default());
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes();
    // Writing into memory does not fail.
    for part in [&length[..], head, columns] {
        let _ = deflated.write_all(part);
    }
    BASE64_STANDARD.encode(deflated.finish().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_leb128() {
        let mut columns = Columns::default();
        columns.each(&[0u64, 127, 128, 300, 1 << 35], |value| *value);
        assert_eq!(columns.bytes, [0, 0x7f, 0x80, 1, 0xac, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 1]);
    }
}

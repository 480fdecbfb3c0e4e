//! busbound's results as tracks: the bus in GB/s, idle causes, findings, predictions.

use std::io::{self, Write};

use busbound_diagnosis::{Diagnosis, GroupOf, Lane, LaneGroup, LaneKind, Picture, Piece};
use serde_json::json;

use super::{Events, Track};
use crate::text::prize::saving;

/// Process ids from here on are busbound's; they fit into 31 bits.
const OWN: i64 = 2_000_000_000;
const CATEGORY: &str = "busbound";

pub(super) fn write<W: Write>(
    events: &mut Events<W>,
    diagnosis: &Diagnosis,
    picture: &Picture,
) -> io::Result<()> {
    findings(events, diagnosis, picture)?;
    for (i, group) in (1..).zip(&picture.groups) {
        let process = OWN + i;
        match group.of {
            GroupOf::Device { device, .. } => device_tracks(events, process, device, group, picture)?,
            GroupOf::Predicted => predicted(events, process, group, picture)?,
            GroupOf::Thread => {}
        }
    }
    Ok(())
}

/// One thread per finding, with a slice wherever the finding occurs.
fn findings<W: Write>(events: &mut Events<W>, diagnosis: &Diagnosis, picture: &Picture) -> io::Result<()> {
    if diagnosis.findings.is_empty() {
        return Ok(());
    }
    events.process_name(OWN, &format!("busbound: {}", diagnosis.verdict.statement))?;
    events.sort_index(OWN, -3)?;
    for ((thread, finding), spans) in (1..).zip(&diagnosis.findings).zip(&picture.findings) {
        let track = Track { process: OWN, thread };
        let saves = saving(finding, diagnosis);
        events.thread_name(track, &format!("{}: {saves}", finding.title))?;
        let args = format!("\"seen\": {}, \"fix\": {}", json!(finding.seen), json!(finding.fix));
        for span in spans {
            let when = (picture.origin.as_nanos() + span.start, span.end - span.start);
            events.complete(track, CATEGORY, &finding.title, when, &args)?;
        }
    }
    Ok(())
}

fn device_tracks<W: Write>(
    events: &mut Events<W>,
    process: i64,
    device: i32,
    group: &LaneGroup,
    picture: &Picture,
) -> io::Result<()> {
    events.process_name(process, &format!("busbound: GPU {device}"))?;
    events.sort_index(process, -2)?;
    for lane in &group.lanes {
        match lane.sort {
            LaneKind::ToDevice => rates(events, process, "PCIe H2D", lane, picture)?,
            LaneKind::ToHost => rates(events, process, "PCIe D2H", lane, picture)?,
            LaneKind::Idle => slices(events, process, lane, picture)?,
            _ => {}
        }
    }
    Ok(())
}

fn predicted<W: Write>(
    events: &mut Events<W>,
    process: i64,
    group: &LaneGroup,
    picture: &Picture,
) -> io::Result<()> {
    events.process_name(process, &format!("busbound: {}", group.title))?;
    events.sort_index(process, -1)?;
    for lane in &group.lanes {
        slices(events, process, lane, picture)?;
    }
    Ok(())
}

/// One thread per row of a lane.
fn slices<W: Write>(events: &mut Events<W>, process: i64, lane: &Lane, picture: &Picture) -> io::Result<()> {
    for (row, pieces) in (0..).zip(&lane.rows) {
        let track = Track { process, thread: 100 * (lane.sort as i64 + 1) + row };
        let number = if lane.rows.len() > 1 { format!(" {}", row + 1) } else { String::new() };
        events.thread_name(track, &format!("{}{number}", lane.sort.title()))?;
        for piece in &pieces.pieces {
            let name = picture.names.get(piece.name as usize).map_or("", String::as_str);
            let when = (picture.origin.as_nanos() + piece.start, piece.end - piece.start);
            let args = if piece.bytes > 0 { format!("\"bytes\": {}", piece.bytes) } else { String::new() };
            events.complete(track, CATEGORY, name, when, &args)?;
        }
    }
    Ok(())
}

/// The bus rate over time: it rises when a copy begins and falls when it ends.
fn rates<W: Write>(
    events: &mut Events<W>,
    process: i64,
    name: &str,
    lane: &Lane,
    picture: &Picture,
) -> io::Result<()> {
    let pieces = lane.rows.iter().flat_map(|row| &row.pieces).filter(|piece| piece.end > piece.start);
    let rate = |piece: &Piece| piece.bytes as f64 / (piece.end - piece.start) as f64;
    // Without recorded bytes the rate is unknown, not zero.
    if pieces.clone().all(|piece| piece.bytes == 0) {
        return Ok(());
    }
    let mut changes: Vec<(i64, f64)> =
        pieces.flat_map(|piece| [(piece.start, rate(piece)), (piece.end, -rate(piece))]).collect();
    changes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut now = 0.0;
    for simultaneous in changes.chunk_by(|a, b| a.0 == b.0) {
        now += simultaneous.iter().map(|(_, change)| change).sum::<f64>();
        // Rounding error of adding and subtracting the same floats.
        let value = if now.abs() < 1e-6 { 0.0 } else { now };
        events.counter(process, name, picture.origin.as_nanos() + simultaneous[0].0, value)?;
    }
    Ok(())
}

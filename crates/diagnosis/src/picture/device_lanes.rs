//! What did a device do, and why was it idle? Drawn as lanes.

use busbound_trace::hash::HashMap;
use busbound_trace::{Direction, Event, EventKind, MemoryKind, Place};

use super::links::{CopyKey, DrawnCopies, RowPlace};
use super::names::DrawnNames;
use super::rows::{Piece, PieceMark, Rows};
use super::{GroupOf, Lane, LaneGroup, LaneKind};
use crate::activity::copies::kind_of;
use crate::analysis::facts::Facts;
use crate::answers::diagnosis::GpuLink;
use crate::quantity::{plural, printable};
use busbound_cause::CollectiveNames;
use busbound_cause::idle::GapCause;

const WORK: [LaneKind; 5] =
    [LaneKind::Compute, LaneKind::Communication, LaneKind::ToDevice, LaneKind::ToHost, LaneKind::OtherCopies];

pub(super) fn groups(
    facts: &Facts<'_>,
    gpus: &[GpuLink],
    names: &mut DrawnNames<'_>,
    copies: &mut DrawnCopies,
    notes: &mut Vec<String>,
) -> Vec<LaneGroup> {
    let mut groups = Vec::new();
    let mut without_room = 0;
    for timeline in &facts.timelines {
        let device = timeline.device;
        let mut work: Vec<(Event<'_>, i64)> = Vec::new();
        for track in facts.trace.streams() {
            match track.place() {
                Place::Stream { device: of, stream } if of == device => {
                    let events = track.events().filter(|event| event.kind().is_gpu_work());
                    work.extend(events.map(|event| (event, stream)));
                }
                _ => {}
            }
        }
        work.sort_by_key(|(event, _)| (event.start(), event.id()));
        let mut lanes: [Rows; 5] = Default::default();
        let mut event_notes = EventNotes::default();
        for (event, stream) in &work {
            let lane = lane_of(event, &facts.communication);
            let mut piece = piece(event, names);
            let kind = copy_kind(event);
            piece.note = event_notes.note(kind, *stream, names);
            piece.mark = mark_of(kind);
            // If a call begins after its work, the clocks differ, and the time of the call is unknown.
            let call = facts.host.call_behind(event).map(|call| call.start().as_nanos());
            piece.launched = call.filter(|at| *at <= piece.start);
            let row = lanes[lane].add(piece, *stream);
            if let Some(row) = row.filter(|_| event.kind() == EventKind::Copy) {
                copies.insert(
                    CopyKey { device, stream: *stream, start: piece.start },
                    RowPlace { device, lane: lane_kind(lane), row },
                );
            }
        }
        without_room += lanes.iter().map(|rows| rows.without_room).sum::<u64>();
        let mut lanes: Vec<Lane> = WORK
            .into_iter()
            .zip(lanes)
            .map(|(sort, rows)| Lane { sort, rows: rows.into_rows() })
            .filter(|lane| !lane.rows.is_empty())
            .collect();
        lanes.push(idle(facts, device, names));
        lanes.retain(|lane| !lane.rows.is_empty());
        let gpu = gpus.iter().find(|gpu| gpu.device == device);
        let peak_gbps = gpu.map_or(facts.link.peak_gbps, |gpu| gpu.link.peak_gbps);
        let title = match gpu.and_then(|gpu| gpu.name.as_deref()) {
            Some(name) => format!("GPU {device}, {}", printable(name)),
            None => format!("GPU {device}"),
        };
        groups.push(LaneGroup { title, of: GroupOf::Device { device, peak_gbps }, lanes });
    }
    note_without_room(without_room, notes);
    groups
}

/// Adds a note if events are not drawn for lack of rows.
pub(super) fn note_without_room(events: u64, notes: &mut Vec<String>) {
    if events > 0 {
        notes.push(format!(
            "Not drawn: {} that would need more than eight rows in a lane.",
            plural(events, "GPU event", "GPU events")
        ));
    }
}

/// The number of the lane that an event belongs to.
pub(super) fn lane_of(event: &Event<'_>, communication: &CollectiveNames) -> usize {
    match event.kind() {
        EventKind::Kernel if communication.contains(event.name_id()) => 1,
        EventKind::Kernel => 0,
        _ => match event.transfer().map(|transfer| transfer.direction) {
            Some(Direction::HostToDevice) => 2,
            Some(Direction::DeviceToHost) => 3,
            _ => 4,
        },
    }
}

pub(super) fn lane_kind(lane: usize) -> LaneKind {
    WORK[lane]
}

/// One GPU event as a piece.
pub(super) fn piece(event: &Event<'_>, names: &mut DrawnNames<'_>) -> Piece {
    let (start, end) = (event.start().as_nanos(), event.end().as_nanos());
    let bytes = event.transfer().and_then(|transfer| transfer.bytes).map_or(0, |bytes| bytes.get());
    Piece { bytes, ..Piece::plain(start, end, names.event(event.name_id())) }
}

/// The direction of a copy, and its source and destination memory.
type CopyKind = (Direction, MemoryKind, MemoryKind);

fn copy_kind(event: &Event<'_>) -> Option<CopyKind> {
    let copy = event.transfer().filter(|_| event.kind() == EventKind::Copy)?;
    Some((copy.direction, copy.src, copy.dst))
}

/// Pageable copies are slower and block the host.
pub(super) fn mark_of(kind: Option<CopyKind>) -> PieceMark {
    match kind {
        Some(
            (Direction::HostToDevice, MemoryKind::Pageable, _)
            | (Direction::DeviceToHost, _, MemoryKind::Pageable),
        ) => PieceMark::Pageable,
        _ => PieceMark::None,
    }
}

/// The notes of events, built once per stream and kind of copy.
#[derive(Default)]
struct EventNotes {
    notes: HashMap<(i64, Option<CopyKind>), u32>,
}

impl EventNotes {
    fn note(&mut self, kind: Option<CopyKind>, stream: i64, names: &mut DrawnNames<'_>) -> u32 {
        *self.notes.entry((stream, kind)).or_insert_with(|| match kind {
            // Managed memory migrates outside of streams.
            Some(kind) if stream < 0 => names.own(&kind_of(kind)),
            Some(kind) => names.own(&format!("{}, stream {stream}", kind_of(kind))),
            None => names.own(&format!("stream {stream}")),
        })
    }
}

/// The gaps with a cause; not the short gaps between kernels that every device has.
fn idle(facts: &Facts<'_>, device: i32, names: &mut DrawnNames<'_>) -> Lane {
    let mut rows = Rows::default();
    let gaps = facts.gaps.of_device(device).filter(|gap| gap.cause != GapCause::KernelGap);
    for gap in gaps {
        let name = names.own(gap.cause.describe());
        let plain = Piece::plain(gap.interval.start.as_nanos(), gap.interval.end.as_nanos(), name);
        rows.add(Piece { mark: PieceMark::Idle(gap.cause), ..plain }, 0);
    }
    Lane { sort: LaneKind::Idle, rows: rows.into_rows() }
}

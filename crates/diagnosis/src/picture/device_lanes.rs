//! What a device did, and why it did nothing, as lanes.

use busbound_trace::{Direction, Event, EventKind, Place};

use super::names::DrawnNames;
use super::rows::{Piece, Rows};
use super::{GroupOf, Lane, LaneGroup, LaneSort};
use crate::communication::CommunicationNames;
use crate::copies::kind_of;
use crate::facts::{Facts, gpu_name};
use crate::gaps::GapCause;
use crate::quantity::count;

const WORK: [LaneSort; 5] =
    [LaneSort::Compute, LaneSort::Communication, LaneSort::ToDevice, LaneSort::ToHost, LaneSort::OtherCopies];

pub(super) fn groups(
    facts: &Facts<'_>,
    names: &mut DrawnNames<'_>,
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
        for (event, stream) in &work {
            let lane = lane_of(event, &facts.communication);
            let mut piece = piece(event, names, &format!("stream {stream}"));
            piece.launched = facts.host.call_behind(event).map(|call| call.start().as_nanos());
            lanes[lane].add(piece, *stream);
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
        let name = gpu_name(facts.trace, Some(device)).unwrap_or("GPU");
        groups.push(LaneGroup {
            title: format!("GPU {device}, {name}"),
            of: GroupOf::Device { device, peak_gbps: facts.link.peak_gbps },
            lanes,
        });
    }
    if without_room > 0 {
        notes.push(format!(
            "{} pieces of work are not drawn: more than eight of their sort run at once.",
            count(without_room)
        ));
    }
    groups
}

/// Which of the lanes work belongs in, by number.
pub(super) fn lane_of(event: &Event<'_>, communication: &CommunicationNames) -> usize {
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

pub(super) fn sort_of(lane: usize) -> LaneSort {
    WORK[lane]
}

/// One event of a device as a piece, where and when it was.
pub(super) fn piece(event: &Event<'_>, names: &mut DrawnNames<'_>, stream: &str) -> Piece {
    let mut piece =
        Piece::plain(event.start().as_nanos(), event.end().as_nanos(), names.event(event.name_id()));
    let transfer = event.transfer();
    piece.bytes = transfer.and_then(|transfer| transfer.bytes).map_or(0, |bytes| bytes.get());
    piece.note = match transfer.filter(|_| event.kind() == EventKind::Copy) {
        Some(transfer) => {
            let kind = kind_of((transfer.direction, transfer.src, transfer.dst));
            names.own(&format!("{kind}, {stream}"))
        }
        None => names.own(stream),
    };
    piece
}

/// The gaps that have a cause; a device's turn-around between two pieces of work has none of its own.
fn idle(facts: &Facts<'_>, device: i32, names: &mut DrawnNames<'_>) -> Lane {
    let mut rows = Rows::default();
    let gaps = facts.gaps.iter().filter(|gap| gap.device == device && gap.cause != GapCause::Turnaround);
    for gap in gaps {
        let name = names.own(gap.cause.describe());
        rows.add(Piece::plain(gap.interval.start.as_nanos(), gap.interval.end.as_nanos(), name), 0);
    }
    Lane { sort: LaneSort::Idle, rows: rows.into_rows() }
}

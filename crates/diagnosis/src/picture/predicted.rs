//! What would devices do with a fix? Drawn as lanes below the recorded ones.

use std::collections::BTreeMap;

use busbound_trace::{EventKind, MemoryKind, Place};
use busbound_whatif::replay::Change;

use super::device_lanes::{lane_kind, lane_of, mark_of, note_without_room, piece};
use super::names::DrawnNames;
use super::rows::{Piece, Rows};
use super::{GroupOf, Lane, LaneGroup};
use crate::activity::copies::kind_of;
use crate::analysis::facts::Facts;
use crate::answers::whatif::BestReplay;

/// The groups of devices, each followed by its prediction. The first step begins when it did in the trace.
pub(super) fn after_devices(
    devices: Vec<LaneGroup>,
    best: &BestReplay,
    facts: &Facts<'_>,
    names: &mut DrawnNames<'_>,
    notes: &mut Vec<String>,
) -> Vec<LaneGroup> {
    let mut work: Vec<_> = best
        .moved
        .iter()
        .filter_map(|moved| Some((moved.predicted?, facts.trace.event(moved.event))))
        .collect();
    work.sort_by_key(|((_, start, end), event)| (*start, *end, event.id()));
    let begin = best.begin.as_nanos();
    let mut lanes: BTreeMap<i32, [Rows; 5]> = BTreeMap::new();
    let mut notes_of = BTreeMap::new();
    let is_pinned = best
        .changes
        .iter()
        .any(|change| matches!(change, Change::Pin(_) | Change::Loader(_) | Change::Stream(_)));
    let memory = |kind: MemoryKind| match kind {
        MemoryKind::Pageable if is_pinned => MemoryKind::Pinned,
        kind => kind,
    };
    for ((stream, start, end), event) in &work {
        let Place::Stream { device, .. } = event.place() else { continue };
        let (start, end) = (start + begin, end + begin);
        let mut drawn = Piece { start, end, busy: end - start, ..piece(event, names) };
        let copy = event.transfer().filter(|_| event.kind() == EventKind::Copy);
        let kind = copy.map(|transfer| (transfer.direction, memory(transfer.src), memory(transfer.dst)));
        drawn.note = *notes_of.entry((*stream, kind)).or_insert_with(|| {
            let kind = kind.map(|kind| format!("{}, ", kind_of(kind))).unwrap_or_default();
            names.own(&format!("{kind}predicted stream {stream}"))
        });
        drawn.mark = mark_of(kind);
        // The recorded name of a copy includes the kind of memory, which the change may replace.
        if let Some(kind) =
            kind.filter(|kind| copy.is_some_and(|copy| (copy.src, copy.dst) != (kind.1, kind.2)))
        {
            drawn.name = names.own(&kind_of(kind));
        }
        let rows = &mut lanes.entry(device).or_default()[lane_of(event, &facts.communication)];
        rows.add(drawn, i64::try_from(*stream).unwrap_or(0));
    }
    note_without_room(lanes.values().flatten().map(|rows| rows.without_room).sum(), notes);
    let mut groups = Vec::new();
    let several = devices.len() > 1;
    let changes = best.changes.iter().map(Change::to_string).collect::<Vec<_>>().join(" + ");
    for group in devices {
        let GroupOf::Device { device, .. } = group.of else { continue };
        groups.push(group);
        let Some(rows) = lanes.remove(&device) else { continue };
        let lanes =
            rows.into_iter().enumerate().map(|(i, rows)| Lane { sort: lane_kind(i), rows: rows.into_rows() });
        let of = if several { format!("GPU {device} predicted") } else { "Predicted".to_owned() };
        groups.push(LaneGroup {
            title: format!("{of} with {changes}"),
            of: GroupOf::Predicted,
            lanes: lanes.filter(|lane| !lane.rows.is_empty()).collect(),
        });
    }
    groups
}

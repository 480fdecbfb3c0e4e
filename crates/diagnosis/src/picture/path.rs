//! Where is the critical path in the lanes? One span per segment of the path.

use busbound_cause::path::{PathClass, PathSegment};
use busbound_trace::{Event, Place};

use super::device_lanes::{lane_kind, lane_of};
use super::{GroupOf, Lane, LaneGroup, Span};
use crate::analysis::critical::walked;
use crate::analysis::facts::Facts;
use crate::quantity::{count, plural};

/// Most segments drawn; steps beyond them are not.
const SEGMENTS: usize = 40_000;

/// One segment of the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathSpan {
    pub span: Span,
    pub class: PathClass,
    /// The row of its event, or of what comes next if it is a wait; counted as in [`PieceId`](super::PieceId).
    pub row: Option<u32>,
}

/// The threads whose groups follow those of the devices.
pub(super) struct Threads<'a> {
    /// The number of the first group.
    pub(super) first: usize,
    /// In the order of the groups.
    pub(super) places: &'a [Place],
}

pub(super) fn spans(
    facts: &Facts<'_>,
    groups: &[LaneGroup],
    threads: &Threads<'_>,
    origin: i64,
    notes: &mut Vec<String>,
) -> Vec<PathSpan> {
    let Some(mut walks) = walked(facts) else { return Vec::new() };
    walks.sort_by_key(|(step, _)| step.start);
    let (all, steps) = (facts.window.steps.len().max(walks.len()), walks.len());
    let rows = Rows { groups, threads, origin };
    let mut spans: Vec<PathSpan> = Vec::new();
    let mut drawn: usize = 0;
    for (_, segments) in walks {
        if drawn > 0 && spans.len() + segments.len() > SEGMENTS {
            break;
        }
        drawn += 1;
        spans.extend(segments.iter().rev().map(|segment| PathSpan {
            span: Span {
                start: segment.interval.start.as_nanos() - origin,
                end: segment.interval.end.as_nanos() - origin,
            },
            class: segment.class,
            row: rows.of(segment, facts),
        }));
    }
    if drawn < all && steps > 0 {
        let of_all =
            plural(all as u64, &facts.window.unit().to_string(), &format!("{}s", facts.window.unit()));
        notes.push(format!("The critical path is drawn for the first {} of {of_all}.", count(drawn as u64)));
    }
    spans
}

struct Rows<'a> {
    groups: &'a [LaneGroup],
    threads: &'a Threads<'a>,
    origin: i64,
}

impl Rows<'_> {
    fn of(&self, segment: &PathSegment, facts: &Facts<'_>) -> Option<u32> {
        let event = segment.event.map(|id| facts.trace.event(id));
        match (event, segment.thread) {
            (Some(event), _) => match event.place() {
                Place::Stream { device, .. } => self.of_work(&event, device, facts),
                place => self.of_thread(place),
            },
            (None, Some(thread)) => self.of_thread(facts.trace.track(thread).place()),
            (None, None) => None,
        }
    }

    /// The outermost row of a thread: its own time is between the events of the inner rows.
    fn of_thread(&self, place: Place) -> Option<u32> {
        let group = self.threads.first + self.threads.places.iter().position(|known| *known == place)?;
        Some(self.first_row(group))
    }

    fn of_work(&self, event: &Event<'_>, device: i32, facts: &Facts<'_>) -> Option<u32> {
        let is_device =
            |group: &LaneGroup| matches!(group.of, GroupOf::Device { device: of, .. } if of == device);
        let group = self.groups.iter().position(is_device)?;
        let sort = lane_kind(lane_of(event, &facts.communication));
        let lanes = &self.groups[group].lanes;
        let lane = lanes.iter().position(|lane| lane.sort == sort)?;
        let before: usize = lanes[..lane].iter().map(|lane| lane.rows.len()).sum();
        let (start, end) = (event.start().as_nanos() - self.origin, event.end().as_nanos() - self.origin);
        let row = row_of(&lanes[lane], start, end)?;
        u32::try_from(before + row).ok().map(|row| self.first_row(group) + row)
    }

    fn first_row(&self, group: usize) -> u32 {
        let rows = self.groups[..group].iter().flat_map(|group| &group.lanes).map(|lane| lane.rows.len());
        u32::try_from(rows.sum::<usize>()).unwrap_or(u32::MAX)
    }
}

/// The row with this event, or with the piece that it was merged into.
fn row_of(lane: &Lane, start: i64, end: i64) -> Option<usize> {
    let around = |row: usize| {
        let pieces = &lane.rows[row].pieces;
        let at = pieces.partition_point(|piece| piece.start <= start).checked_sub(1)?;
        Some(pieces[at]).filter(|piece| end <= piece.end)
    };
    let rows = 0..lane.rows.len();
    let exact = |row: &usize| around(*row).is_some_and(|piece| (piece.start, piece.end) == (start, end));
    rows.clone().find(exact).or_else(|| rows.clone().find(|row| around(*row).is_some()))
}

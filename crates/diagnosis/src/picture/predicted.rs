//! What the device would do with a fix, as lanes under those of what it did.

use super::device_lanes::{lane_of, piece, sort_of};
use super::names::DrawnNames;
use super::rows::{Piece, Rows};
use super::{GroupOf, Lane, LaneGroup};
use crate::facts::Facts;
use crate::whatif::BestReplay;

/// `None` where nothing would be done any more. The first step begins when it did.
pub(super) fn group(
    best: &BestReplay,
    facts: &Facts<'_>,
    origin: i64,
    names: &mut DrawnNames<'_>,
) -> Option<LaneGroup> {
    let mut work: Vec<_> = best
        .moved
        .iter()
        .filter_map(|moved| Some((moved.predicted?, facts.trace.event(moved.event))))
        .collect();
    work.sort_by_key(|((_, start, end), event)| (*start, *end, event.id()));
    let begin = best.begin.as_nanos() - origin;
    let mut lanes: [Rows; 5] = Default::default();
    for ((stream, start, end), event) in &work {
        let (start, end) = (start + begin, end + begin);
        // Its memory may be another then: what is said of it is only where it would run.
        let note = names.own(&format!("stream {stream} of the prediction"));
        let drawn = Piece { start, end, busy: end - start, note, ..piece(event, names, "") };
        lanes[lane_of(event, &facts.communication)].add(drawn, i64::try_from(*stream).unwrap_or(0));
    }
    work.first()?;
    let lanes: Vec<Lane> = lanes
        .into_iter()
        .enumerate()
        .map(|(i, rows)| Lane { sort: sort_of(i), rows: rows.into_rows() })
        .filter(|lane| !lane.rows.is_empty())
        .collect();
    Some(LaneGroup { title: format!("Predicted with {}", best.changes), of: GroupOf::Predicted, lanes })
}

//! Which piece in the lanes is this copy? Links a copy's dot to where the copy is drawn.
//!
//! Lanes show the whole trace; dots show the part that the diagnosis covers, which numbers its events separately. Both
//! know a copy's stream and start, and a stream runs one copy at a time.

use std::collections::BTreeMap;

use busbound_trace::hash::HashMap;

use super::rows::Row;
use super::{GroupOf, LaneGroup, LaneKind};

/// The number of a piece in a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceId {
    /// Counted over all rows of all lanes of all groups, in the picture's order.
    pub row: u32,
    /// Counted within the row.
    pub piece: u32,
}

/// A copy, on the clock of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CopyKey {
    pub(super) device: i32,
    pub(super) stream: i64,
    pub(super) start: i64,
}

/// A row of a device's lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowPlace {
    pub(super) device: i32,
    pub(super) lane: LaneKind,
    pub(super) row: usize,
}

/// The row of every drawn copy.
pub(super) type DrawnCopies = HashMap<CopyKey, RowPlace>;

/// Finds where a copy is drawn, once the groups are complete.
pub(super) struct CopyLinks<'a> {
    copies: &'a DrawnCopies,
    rows: BTreeMap<RowPlace, (u32, &'a Row)>,
    origin: i64,
}

impl<'a> CopyLinks<'a> {
    pub(super) fn of(copies: &'a DrawnCopies, groups: &'a [LaneGroup], origin: i64) -> Self {
        let in_order = groups.iter().flat_map(|group| {
            let lanes = group.lanes.iter();
            lanes
                .flat_map(move |lane| lane.rows.iter().enumerate().map(move |row| (group.of, lane.sort, row)))
        });
        let mut rows = BTreeMap::new();
        for (number, (of, lane, (row, content))) in (0u32..).zip(in_order) {
            if let GroupOf::Device { device, .. } = of {
                rows.insert(RowPlace { device, lane, row }, (number, content));
            }
        }
        Self { copies, rows, origin }
    }

    /// The copy's piece, or the piece it was merged into.
    pub(super) fn piece(&self, copy: CopyKey) -> Option<PieceId> {
        let (row, content) = self.rows.get(self.copies.get(&copy)?)?;
        let start = copy.start - self.origin;
        let piece = content.pieces.partition_point(|piece| piece.start <= start).checked_sub(1)?;
        Some(PieceId { row: *row, piece: u32::try_from(piece).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Lane, Piece};
    use super::*;

    fn lane(sort: LaneKind, rows: &[&[(i64, i64)]]) -> Lane {
        let row = |spans: &&[(i64, i64)]| Row {
            pieces: spans.iter().map(|&(start, end)| Piece::plain(start, end, 1)).collect(),
        };
        Lane { sort, rows: rows.iter().map(row).collect() }
    }

    #[test]
    fn a_copy_is_found_by_its_row_and_within_merged_pieces() {
        let device = |device, lanes| LaneGroup {
            title: String::new(),
            of: GroupOf::Device { device, peak_gbps: 63.0 },
            lanes,
        };
        let groups = [
            device(
                0,
                vec![
                    lane(LaneKind::Compute, &[&[(0, 9)]]),
                    lane(LaneKind::ToDevice, &[&[(0, 5)], &[(2, 9), (20, 30)]]),
                ],
            ),
            // Predicted rows contain no recorded copies.
            LaneGroup {
                title: String::new(),
                of: GroupOf::Predicted,
                lanes: vec![lane(LaneKind::ToDevice, &[&[(0, 5)]])],
            },
            device(1, vec![lane(LaneKind::ToDevice, &[&[(0, 50)]])]),
        ];
        let mut copies = DrawnCopies::default();
        let mut add = |device, stream, start, row| {
            let key = CopyKey { device, stream, start };
            copies.insert(key, RowPlace { device, lane: LaneKind::ToDevice, row });
            key
        };
        let (first, overlapping) = (add(0, 7, 100, 0), add(0, 8, 102, 1));
        // Merged into the second piece of its row.
        let merged = add(0, 8, 125, 1);
        let other_device = add(1, 7, 100, 0);
        let links = CopyLinks::of(&copies, &groups, 100);
        let id = |row, piece| Some(PieceId { row, piece });
        assert_eq!(links.piece(first), id(1, 0));
        assert_eq!(links.piece(overlapping), id(2, 0));
        assert_eq!(links.piece(merged), id(2, 1));
        assert_eq!(links.piece(other_device), id(4, 0));
        assert_eq!(links.piece(CopyKey { device: 0, stream: 9, start: 100 }), None);
    }
}

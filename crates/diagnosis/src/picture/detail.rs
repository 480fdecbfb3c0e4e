//! How much detail does a page hold? Of very long traces, what is too short to be seen is drawn as one.

use super::rows::{Piece, Row};
use super::{GroupOf, LaneGroup};
use crate::quantity::{count, time};
use busbound_trace::Nanos;

/// A merged piece covers at most this many times the length below which pieces are merged.
const COVERS: i64 = 16;

/// Merges short pieces that lie near each other until at most `most` are left: the host's first.
pub(super) fn merge_to(groups: &mut [LaneGroup], most: usize, notes: &mut Vec<String>) {
    let all = |groups: &[LaneGroup]| groups.iter().map(pieces).sum::<usize>();
    let before = all(groups);
    let mut shorter = 500;
    while all(groups) > most && shorter < i64::MAX / (4 * COVERS) {
        shorter *= 2;
        for of_host in [true, false] {
            let these = groups.iter_mut().filter(|group| (group.of == GroupOf::Thread) == of_host);
            these
                .flat_map(|group| &mut group.lanes)
                .flat_map(|lane| &mut lane.rows)
                .for_each(|row| merge(row, shorter));
            if all(groups) <= most {
                break;
            }
        }
    }
    let after = all(groups);
    if after < before {
        notes.push(format!(
            "{} of {} pieces are drawn by themselves or with their neighbours as one: those shorter than {} that lie near each other are merged. `busbound export --to perfetto` has each.",
            count(after as u64),
            count(before as u64),
            time(Nanos::new(shorter))
        ));
    }
}

fn pieces(group: &LaneGroup) -> usize {
    group.lanes.iter().flat_map(|lane| &lane.rows).map(|row| row.pieces.len()).sum()
}

fn merge(row: &mut Row, shorter: i64) {
    let mut kept: Vec<Piece> = Vec::with_capacity(row.pieces.len() / 2);
    // The longest event of the piece that is being put together, whose name it carries.
    let mut longest = 0;
    for piece in row.pieces.drain(..) {
        let own = piece.busy / i64::from(piece.count.max(1));
        match kept.last_mut() {
            Some(last)
                if piece.end - piece.start < shorter * if piece.count > 1 { COVERS } else { 1 }
                    && (last.count > 1 || last.end - last.start < shorter)
                    && piece.start - last.end < shorter
                    && piece.end - last.start <= shorter * COVERS =>
            {
                last.end = piece.end;
                last.busy += piece.busy;
                last.count += piece.count;
                last.bytes += piece.bytes;
                last.launched = None;
                if own > longest {
                    (last.name, last.note, longest) = (piece.name, piece.note, own);
                }
            }
            _ => {
                longest = own;
                kept.push(piece);
            }
        }
    }
    row.pieces = kept;
}

#[cfg(test)]
mod tests {
    use super::super::{Lane, LaneSort};
    use super::*;

    fn group(of: GroupOf, pieces: Vec<Piece>) -> LaneGroup {
        let lane = Lane { sort: LaneSort::Compute, rows: vec![Row { pieces }] };
        LaneGroup { title: String::new(), of, lanes: vec![lane] }
    }

    #[test]
    fn nothing_is_lost_when_pieces_are_merged() {
        let short: Vec<Piece> =
            (0..10_000).map(|i| Piece { bytes: 3, ..Piece::plain(i * 1_000, i * 1_000 + 400, 1) }).collect();
        let device = vec![Piece::plain(0, 5_000_000, 2), Piece::plain(5_000_000, 10_000_000, 3)];
        let mut groups = [
            group(GroupOf::Device { device: 0, peak_gbps: 63.0 }, device.clone()),
            group(GroupOf::Thread, short),
        ];
        let mut notes = Vec::new();
        merge_to(&mut groups, 1_000, &mut notes);
        // What is long stays as it is.
        assert_eq!(groups[0].lanes[0].rows[0].pieces, device);
        let host = &groups[1].lanes[0].rows[0].pieces;
        assert!(host.len() <= 998, "{}", host.len());
        assert_eq!(host.iter().map(|piece| piece.count).sum::<u32>(), 10_000);
        assert_eq!(host.iter().map(|piece| piece.busy).sum::<i64>(), 10_000 * 400);
        assert_eq!(host.iter().map(|piece| piece.bytes).sum::<u64>(), 30_000);
        assert!(host.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert_eq!(notes.len(), 1, "{notes:?}");
    }

    #[test]
    fn what_fits_is_drawn_as_it_is() {
        let pieces: Vec<Piece> = (0..100).map(|i| Piece::plain(i * 10, i * 10 + 4, 1)).collect();
        let mut groups = [group(GroupOf::Thread, pieces.clone())];
        let mut notes = Vec::new();
        merge_to(&mut groups, 100, &mut notes);
        assert_eq!((&groups[0].lanes[0].rows[0].pieces, notes.len()), (&pieces, 0));
    }
}

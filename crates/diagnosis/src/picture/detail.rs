//! How much detail fits a page? In very long traces, events too short to see are merged.

use super::rows::{Piece, Row};
use super::{GroupOf, LaneGroup};
use crate::quantity::{count, time};
use busbound_trace::Nanos;

/// A merged piece covers at most this many times the length below which pieces are merged.
const COVERS: i64 = 16;
/// Nanoseconds: the first merge threshold.
const FIRST: i64 = 200;

/// Pieces below this many nanoseconds are merged first: those of the host, then those of devices. Longer pieces of the
/// host follow.
const SHORT: i64 = 50_000;
const ANY: i64 = i64::MAX / (4 * COVERS);

/// Merges short neighboring pieces until at most `most` are left.
pub(super) fn merge_to(groups: &mut [LaneGroup], most: usize, notes: &mut Vec<String>) {
    let (mut of_host, mut of_devices) = (0, 0);
    let before = pieces(groups, true, of_host) + pieces(groups, false, of_devices);
    let mut left = before;
    for (is_host, limit) in [(true, SHORT), (false, SHORT), (true, ANY), (false, ANY)] {
        let others = if is_host { pieces(groups, false, of_devices) } else { pieces(groups, true, of_host) };
        let shorter = if is_host { &mut of_host } else { &mut of_devices };
        while left > most && *shorter < limit {
            *shorter = (*shorter + *shorter / 3).max(FIRST);
            left = others + pieces(groups, is_host, *shorter);
        }
    }
    if left == before {
        return;
    }
    for group in groups.iter_mut() {
        let shorter = if group.of == GroupOf::Thread { of_host } else { of_devices };
        group.lanes.iter_mut().flat_map(|lane| &mut lane.rows).for_each(|row| merge(row, shorter));
    }
    let below = |of: &str, shorter: i64| {
        (shorter > 0).then(|| format!("{of} shorter than {}", time(Nanos::new(shorter))))
    };
    let which = [below("host events", of_host), below("GPU events", of_devices)];
    notes.push(format!(
        "{} events are drawn as {}: neighboring {} are merged. `busbound export --to perfetto` shows every event.",
        count(before as u64),
        count(left as u64),
        which.into_iter().flatten().collect::<Vec<_>>().join(" and "),
    ));
}

/// How many pieces of the host, or of devices, would be left.
fn pieces(groups: &[LaneGroup], of_host: bool, shorter: i64) -> usize {
    let these = groups.iter().filter(|group| (group.of == GroupOf::Thread) == of_host);
    let rows = these.flat_map(|group| &group.lanes).flat_map(|lane| &lane.rows);
    rows.map(|row| merged(&row.pieces, shorter)).sum()
}

/// A piece being merged: its start, its end so far, and whether it may still grow.
struct Open {
    start: i64,
    end: i64,
    is_short: bool,
}

impl Open {
    fn of(piece: &Piece, shorter: i64) -> Self {
        Self { start: piece.start, end: piece.end, is_short: piece.end - piece.start < shorter }
    }

    /// Merges the next piece if it belongs here.
    fn takes(&mut self, piece: &Piece, shorter: i64) -> bool {
        let belongs = self.is_short
            && piece.end - piece.start < shorter
            && piece.start - self.end < shorter
            && piece.end - self.start <= shorter * COVERS;
        if belongs {
            self.end = piece.end;
        }
        belongs
    }
}

/// How many pieces of a row are left after merging.
fn merged(pieces: &[Piece], shorter: i64) -> usize {
    let mut open: Option<Open> = None;
    let mut number = 0;
    for piece in pieces {
        if !open.as_mut().is_some_and(|open| open.takes(piece, shorter)) {
            open = Some(Open::of(piece, shorter));
            number += 1;
        }
    }
    number
}

fn merge(row: &mut Row, shorter: i64) {
    let mut kept: Vec<Piece> = Vec::with_capacity(row.pieces.len() / 4);
    let mut open: Option<Open> = None;
    // The merged piece takes the name of its longest event.
    let mut longest = 0;
    for piece in row.pieces.drain(..) {
        let own = piece.end - piece.start;
        let is_taken = open.as_mut().is_some_and(|open| open.takes(&piece, shorter));
        match kept.last_mut().filter(|_| is_taken) {
            Some(last) => {
                last.end = piece.end;
                last.busy += piece.busy;
                last.count += piece.count;
                last.bytes += piece.bytes;
                last.launched = None;
                if own > longest {
                    (last.name, last.note, last.mark, longest) = (piece.name, piece.note, piece.mark, own);
                }
            }
            None => {
                longest = own;
                open = Some(Open::of(&piece, shorter));
                kept.push(piece);
            }
        }
    }
    row.pieces = kept;
}

#[cfg(test)]
mod tests {
    use busbound_cause::idle::GapCause;

    use super::super::{Lane, LaneKind, PieceMark};
    use super::*;

    fn group(of: GroupOf, pieces: Vec<Piece>) -> LaneGroup {
        let lane = Lane { sort: LaneKind::Compute, rows: vec![Row { pieces }] };
        LaneGroup { title: String::new(), of, lanes: vec![lane] }
    }

    #[test]
    fn merging_loses_nothing() {
        let short: Vec<Piece> =
            (0..10_000).map(|i| Piece { bytes: 3, ..Piece::plain(i * 1_000, i * 1_000 + 400, 1) }).collect();
        let device = vec![Piece::plain(0, 5_000_000, 2), Piece::plain(5_000_000, 10_000_000, 3)];
        let mut groups = [
            group(GroupOf::Device { device: 0, peak_gbps: 63.0 }, device.clone()),
            group(GroupOf::Thread, short),
        ];
        let mut notes = Vec::new();
        merge_to(&mut groups, 1_000, &mut notes);
        // Long pieces stay unchanged.
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
    fn a_merged_piece_is_marked_like_its_longest_event() {
        let short = Piece { mark: PieceMark::Pageable, ..Piece::plain(0, 100, 1) };
        let long = Piece { mark: PieceMark::Idle(GapCause::Input), ..Piece::plain(100, 400, 2) };
        let mut row = Row { pieces: vec![short, long] };
        merge(&mut row, 1_000);
        let [piece] = row.pieces[..] else { panic!("{row:?}") };
        assert_eq!((piece.count, piece.name, piece.mark), (2, 2, PieceMark::Idle(GapCause::Input)));
    }

    #[test]
    fn pieces_that_fit_are_not_merged() {
        let pieces: Vec<Piece> = (0..100).map(|i| Piece::plain(i * 10, i * 10 + 4, 1)).collect();
        let mut groups = [group(GroupOf::Thread, pieces.clone())];
        let mut notes = Vec::new();
        merge_to(&mut groups, 100, &mut notes);
        assert_eq!((&groups[0].lanes[0].rows[0].pieces, notes.len()), (&pieces, 0));
    }
}

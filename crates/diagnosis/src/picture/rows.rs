//! One row of a lane: pieces in order of time that never overlap, so that a renderer can search them.

use busbound_cause::idle::GapCause;

/// One drawn event, or several short ones merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub start: i64,
    pub end: i64,
    /// Time that its events take; its whole length for a single event.
    pub busy: i64,
    /// Number of events it represents.
    pub count: u32,
    /// Number of its name; that of the longest event, if merged.
    pub name: u32,
    /// Number of its note; the empty name if there is none.
    pub note: u32,
    pub bytes: u64,
    /// When the call that launched it began, if known.
    pub launched: Option<i64>,
    /// What is special about it; about the longest event, if merged.
    pub mark: PieceMark,
}

/// What sets a piece apart from the others of its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceMark {
    None,
    /// A copy from or to pageable memory.
    Pageable,
    /// A gap, by its cause.
    Idle(GapCause),
}

impl Piece {
    pub(super) fn plain(start: i64, end: i64, name: u32) -> Self {
        Self {
            start,
            end,
            busy: end - start,
            count: 1,
            name,
            note: 0,
            bytes: 0,
            launched: None,
            mark: PieceMark::None,
        }
    }

    pub(super) fn shift(&mut self, by: i64) {
        self.start += by;
        self.end += by;
        self.launched = self.launched.map(|at| at + by);
    }
}

#[derive(Debug, Clone, Default)]
pub struct Row {
    pub pieces: Vec<Piece>,
}

/// The rows of one lane, filled in order of time.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// The stream of the first piece of each row; a row may also hold pieces of other streams.
    streams: Vec<i64>,
    /// Pieces that fit no row.
    pub(super) without_room: u64,
}

/// Most rows of one lane: more cannot be distinguished.
const MOST: usize = 8;

impl Rows {
    /// Adds a piece that begins no earlier than those before it, to the row of its stream if possible. Returns the row,
    /// if there was room.
    pub(super) fn add(&mut self, piece: Piece, stream: i64) -> Option<usize> {
        let is_free = |row: &Row| row.pieces.last().is_none_or(|last| last.end <= piece.start);
        let of_stream = (0..self.rows.len()).find(|&i| self.streams[i] == stream && is_free(&self.rows[i]));
        let at = of_stream.or_else(|| self.rows.iter().position(is_free));
        match at {
            Some(at) => {
                self.rows[at].pieces.push(piece);
                Some(at)
            }
            None if self.rows.len() < MOST => {
                self.rows.push(Row { pieces: vec![piece] });
                self.streams.push(stream);
                Some(self.rows.len() - 1)
            }
            None => {
                self.without_room += 1;
                None
            }
        }
    }

    pub(super) fn into_rows(self) -> Vec<Row> {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_of_a_row_never_overlap_and_none_is_lost(
            mut all in prop::collection::vec((0i64..1_000, 1i64..200, 0i64..4), 0..200)
        ) {
            all.sort();
            let mut rows = Rows::default();
            for (start, length, stream) in &all {
                rows.add(Piece::plain(*start, start + length, 1), *stream);
            }
            let without_room = rows.without_room as usize;
            let rows = rows.into_rows();
            prop_assert!(rows.len() <= MOST);
            prop_assert_eq!(rows.iter().map(|row| row.pieces.len()).sum::<usize>() + without_room, all.len());
            for row in &rows {
                prop_assert!(row.pieces.windows(2).all(|pair| pair[0].end <= pair[1].start));
            }
        }
    }
}

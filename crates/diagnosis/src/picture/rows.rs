//! One line of a lane: pieces in order of time that never overlap, so that a renderer can search in them.

/// One thing that is drawn, or several short ones as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub start: i64,
    pub end: i64,
    /// Time within it that its events take; all of it for a single one.
    pub busy: i64,
    /// Events it stands for.
    pub count: u32,
    /// By number: what it is called; of several, the longest.
    pub name: u32,
    /// By number: what else is to be said of it. The empty name for nothing.
    pub note: u32,
    pub bytes: u64,
    /// When the call behind it began, where that is known.
    pub launched: Option<i64>,
}

impl Piece {
    pub(super) fn plain(start: i64, end: i64, name: u32) -> Self {
        Self { start, end, busy: end - start, count: 1, name, note: 0, bytes: 0, launched: None }
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

/// Lines that pieces of one lane are laid in, as they come.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// The stream of the first piece of each: others are guests in it.
    streams: Vec<i64>,
    /// Pieces for which there was no line.
    pub(super) without_room: u64,
}

/// Lines of one lane: more are not seen apart.
const MOST: usize = 8;

impl Rows {
    /// Adds a piece that begins no earlier than those before it, where possible in the line of its stream. Returns the
    /// line it went to, if there was room.
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
        fn no_two_pieces_of_a_line_overlap_and_none_is_lost(
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

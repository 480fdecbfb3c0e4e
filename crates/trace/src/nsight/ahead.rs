//! The rows of a large table, read on another thread before they are needed.
//!
//! Only parts without a gap are read here. At the first part that has one, or that is damaged, reading ends: the caller
//! continues there row by row, and finds out what is lost.

use std::path::Path;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::pages::{Node, Pages};
use super::rows::{Next, Rows, Stored};

/// Pages of a part.
const PART: usize = 32;

/// Parts that wait to be taken, per thread.
const WAITING: usize = 2;

/// More threads than this are faster than what is done with the rows.
const MOST_THREADS: usize = 2;

/// Smaller tables are read faster than threads start.
const SMALL_TABLE: u64 = 32_768;

/// How to read a table.
pub(super) struct Ahead<'a> {
    pub(super) path: &'a Path,
    pub(super) threads: usize,
    /// The first page of the table.
    pub(super) root: u32,
    /// The columns to read, and how many are asked for.
    pub(super) stored: &'a [Stored],
    pub(super) columns: usize,
    /// The number of the last row.
    pub(super) rows: u64,
}

/// Some rows, and the number of the first one.
type Part = (i64, Rows);

impl Ahead<'_> {
    /// Calls back with the rows in order, from number 1 on without a gap. May end before the last row.
    pub(super) fn each_part(&self, take: &mut dyn FnMut(&Rows) -> Next) -> Next {
        if self.rows < SMALL_TABLE {
            return Next::Row;
        }
        let Some(mut pages) = Pages::open(self.path) else { return Next::Row };
        let Some(leaves) = pages.leaves(self.root) else { return Next::Row };
        let parts: Vec<&[Node]> = leaves.chunks(PART).collect();
        // This thread takes the rows.
        match self.threads.saturating_sub(1).min(MOST_THREADS) {
            0 => take_parts(parts.iter().map_while(|part| self.read_part(&mut pages, part)), take),
            threads => thread::scope(|scope| {
                let read_on = |thread: usize| {
                    let (send, read): (_, Receiver<Part>) = bounded(WAITING);
                    let own = parts.iter().skip(thread).step_by(threads);
                    scope.spawn(move || self.read_parts(own, &send));
                    read
                };
                let read: Vec<_> = (0..threads).map(read_on).collect();
                // Part by part: each thread reads one, in the same order again and again.
                take_parts(read.iter().cycle().map_while(|parts| parts.recv().ok()), take)
            }),
        }
    }

    /// Every part of one thread; ends early if nobody takes them, or at the first that cannot be read here.
    fn read_parts<'p>(&self, parts: impl Iterator<Item = &'p &'p [Node]>, send: &Sender<Part>) -> Option<()> {
        let mut pages = Pages::open(self.path)?;
        for part in parts {
            send.send(self.read_part(&mut pages, part)?).ok()?;
        }
        Some(())
    }

    /// `None` if a row is missing.
    fn read_part(&self, pages: &mut Pages, part: &[Node]) -> Option<Part> {
        let mut rows = Rows::of(self.columns);
        let first = pages.read(part, self.stored, &mut rows)?;
        Some((first, rows))
    }
}

/// Takes the parts that follow each other, from row number 1 on.
fn take_parts(parts: impl Iterator<Item = Part>, take: &mut dyn FnMut(&Rows) -> Next) -> Next {
    let mut next = 1;
    for (first, rows) in parts {
        if first != next {
            break;
        }
        next += rows.count() as i64;
        if take(&rows) == Next::Stop {
            return Next::Stop;
        }
    }
    Next::Row
}

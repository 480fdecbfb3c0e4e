//! The rows of a large table, read on several threads before they are needed.
//!
//! Only parts without a gap are read here. At the first part that has one, or that is damaged, reading ends: the caller
//! continues there row by row, and finds out what is lost.

use std::path::Path;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use rusqlite::Statement;

use super::connection::connect;
use super::rows::{Next, Rows};

/// Rows of a part.
const PART: u64 = 2048;

/// Bytes of text in a part; parts with more are not read here, because several of them are in memory.
const MOST_TEXT: usize = 4 << 20;

/// Parts that wait to be taken, per thread.
const WAITING: usize = 2;

/// More threads than this are faster than what is done with the rows.
const MOST_THREADS: usize = 4;

/// Smaller tables are read faster than threads start.
const SMALL_TABLE: u64 = 16 * PART;

/// How to read a table.
pub(super) struct Ahead<'a> {
    pub(super) path: &'a Path,
    pub(super) threads: usize,
    /// Selects the number and `columns` columns of the rows after one number, up to and including another.
    pub(super) query: &'a str,
    pub(super) columns: usize,
    /// The number of the last row.
    pub(super) rows: u64,
}

impl Ahead<'_> {
    /// Calls back with the rows in order, from number 1 on without a gap. May end before the last row.
    pub(super) fn each_part(&self, take: &mut dyn FnMut(&Rows) -> Next) -> Next {
        let threads = self.threads.min(MOST_THREADS);
        if threads < 2 || self.rows < SMALL_TABLE {
            return Next::Row;
        }
        thread::scope(|scope| {
            let read_on = |thread: usize| {
                let (parts, read): (_, Receiver<Rows>) = bounded(WAITING);
                scope.spawn(move || self.read_parts(thread, threads, &parts));
                read
            };
            let read: Vec<_> = (0..threads).map(read_on).collect();
            // Part by part: each thread reads one, in the same order again and again.
            for parts in read.iter().cycle() {
                let Ok(rows) = parts.recv() else { return Next::Row };
                if take(&rows) == Next::Stop {
                    return Next::Stop;
                }
            }
            Next::Row
        })
    }

    /// Every part of one thread; ends early if nobody takes them, or at the first that cannot be read here.
    fn read_parts(&self, thread: usize, threads: usize, parts: &Sender<Rows>) -> Option<()> {
        let connection = connect(self.path).ok()?;
        let mut statement = connection.prepare(self.query).ok()?;
        for part in (thread as u64..self.rows.div_ceil(PART)).step_by(threads) {
            parts.send(self.read_part(&mut statement, part * PART)?).ok()?;
        }
        Some(())
    }

    /// The rows after the number `before`; `None` if one is missing.
    fn read_part(&self, statement: &mut Statement<'_>, before: u64) -> Option<Rows> {
        let mut last = i64::try_from(before).ok()?;
        let until = i64::try_from((before + PART).min(self.rows)).ok()?;
        // The first part includes numbers below one, which no sound table has.
        let after = if before == 0 { i64::MIN } else { last };
        let mut rows = Rows::of(self.columns);
        let mut found = statement.query([after, until]).ok()?;
        while let Some(row) = found.next().ok()? {
            last += 1;
            if row.get::<_, i64>(0).ok()? != last || rows.text_bytes() > MOST_TEXT {
                return None;
            }
            rows.push(row);
        }
        (last == until).then_some(rows)
    }
}

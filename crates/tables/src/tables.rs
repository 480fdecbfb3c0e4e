//! A trace as tables, in batches of rows: a long trace is never in memory twice.

use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use busbound_diagnosis::Items;
use busbound_trace::Trace;

use crate::collectives::{self, CollectiveWords};
use crate::copies::{self, CopyWords};
use crate::events::{self, EventWords};
use crate::gaps::{self, GapWords};
use crate::schema::Table;
use crate::steps;

/// The tables of one trace, borrowed or shared.
#[derive(Debug)]
pub struct Tables<T> {
    trace: T,
    items: Items,
    event_words: EventWords,
    copy_words: CopyWords,
    collective_words: CollectiveWords,
    gap_words: GapWords,
}

impl<T: Borrow<Trace>> Tables<T> {
    pub fn of(trace: T, items: Items) -> Self {
        let event_words = EventWords::of(trace.borrow());
        let copy_words = CopyWords::of(trace.borrow(), &items);
        let collective_words = CollectiveWords::of(trace.borrow(), &items);
        Self { trace, items, event_words, copy_words, collective_words, gap_words: GapWords::default() }
    }

    pub fn rows(&self, table: Table) -> usize {
        match table {
            Table::Events => self.trace.borrow().len(),
            Table::Copies => self.items.copies.len(),
            Table::Collectives => self.items.collectives.len(),
            Table::Gaps => self.items.gaps.len(),
            Table::Steps => self.items.steps.len(),
        }
    }

    /// Some rows of a table; rows beyond its end are left out.
    ///
    /// # Errors
    /// None in practice: the columns match the schema.
    pub fn batch(&self, table: Table, rows: Range<usize>) -> Result<RecordBatch, ArrowError> {
        let end = rows.end.min(self.rows(table));
        let rows = rows.start.min(end)..end;
        let (trace, items) = (self.trace.borrow(), &self.items);
        let columns = match table {
            Table::Events => events::columns(trace, items, &self.event_words, rows)?,
            Table::Copies => copies::columns(trace, &items.copies[rows], &self.copy_words)?,
            Table::Collectives => {
                collectives::columns(trace, &items.collectives[rows], &self.collective_words)?
            }
            Table::Gaps => gaps::columns(&items.gaps[rows], &self.gap_words)?,
            Table::Steps => steps::columns(&items.steps[rows.clone()], rows.start),
        };
        RecordBatch::try_new(table.schema(), columns)
    }
}

/// Rows per batch: a few megabytes.
const BATCH: usize = 1 << 16;

/// A table from its first row to its last.
#[derive(Debug)]
pub struct Batches<T> {
    tables: Arc<Tables<T>>,
    table: Table,
    schema: SchemaRef,
    next: usize,
}

impl<T: Borrow<Trace>> Batches<T> {
    pub fn of(tables: &Arc<Tables<T>>, table: Table) -> Self {
        Self { tables: Arc::clone(tables), table, schema: table.schema(), next: 0 }
    }
}

impl<T: Borrow<Trace>> Iterator for Batches<T> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.tables.rows(self.table) {
            return None;
        }
        let rows = self.next..self.next + BATCH;
        self.next = rows.end;
        Some(self.tables.batch(self.table, rows))
    }
}

impl<T: Borrow<Trace>> RecordBatchReader for Batches<T> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

//! A table on a page.

use crate::text::Table;

/// Titles and rows for `table.html`.
pub(super) struct Grid {
    pub(super) titles: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl From<Table> for Grid {
    fn from(table: Table) -> Self {
        Self { titles: table.titles.into_iter().map(str::to_owned).collect(), rows: table.rows }
    }
}

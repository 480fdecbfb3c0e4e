//! A table on a page.

use crate::text::Table;

/// Titles and rows for `table.html`.
pub(super) struct Grid {
    pub(super) titles: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Grid {
    /// The title of the first column says what the rows are.
    pub(super) fn name(&self) -> &str {
        self.titles.first().map_or("", String::as_str)
    }
}

impl From<Table> for Grid {
    fn from(table: Table) -> Self {
        Self { titles: table.titles.into_iter().map(str::to_owned).collect(), rows: table.rows }
    }
}

//! For tickets and pull requests.

pub(crate) mod diagnosis;
pub(crate) mod survey;

use std::fmt::Write;

use crate::text::Table;

fn grid(out: &mut String, table: &Table) {
    let _ = writeln!(out, "| {} |", table.titles.join(" | "));
    let _ = writeln!(out, "|---{}|", "|---:".repeat(table.titles.len() - 1));
    for row in &table.rows {
        let cells: Vec<_> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

//! For tickets and pull requests.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod diagnosis;
pub(crate) mod gate;
pub(crate) mod plan;
pub(crate) mod survey;
pub(crate) mod topology;
pub(crate) mod whatif;

use std::fmt::Write;

use crate::text::Table;

fn grid(out: &mut String, table: &Table) {
    rows(out, &table.titles, &table.rows);
}

fn rows(out: &mut String, titles: &[impl AsRef<str>], rows: &[Vec<String>]) {
    let titles: Vec<&str> = titles.iter().map(AsRef::as_ref).collect();
    let _ = writeln!(out, "| {} |", titles.join(" | "));
    let _ = writeln!(out, "|---{}|", "|---:".repeat(titles.len() - 1));
    for row in rows {
        let cells: Vec<_> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

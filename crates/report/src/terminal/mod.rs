//! For a person at a terminal. Styled; whoever prints it strips the styles where they do not belong.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod diagnosis;
pub(crate) mod gate;
pub(crate) mod plan;
pub(crate) mod survey;
pub(crate) mod topology;
pub(crate) mod whatif;

use std::fmt::Write;

use anstyle::Style;
use comfy_table::{CellAlignment, ContentArrangement, presets};

use crate::text::Table;

const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Text after a head, broken at words, its further lines under its first.
fn hanging(out: &mut String, head: &str, text: &str, width: u16) {
    let indent = head.chars().count();
    let room = usize::from(width).saturating_sub(indent).max(30);
    let mut used = 0;
    out.push_str(head);
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > room {
            let _ = write!(out, "\n{:indent$}", "");
            used = 0;
        }
        if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.push('\n');
}

fn columns(out: &mut String, table: &Table, width: u16) {
    rows(out, &table.titles, &table.rows, width);
}

fn rows(out: &mut String, titles: &[impl AsRef<str>], rows: &[Vec<String>], width: u16) {
    let mut text = comfy_table::Table::new();
    text.load_style(presets::NOTHING);
    text.set_content_arrangement(ContentArrangement::Dynamic);
    text.set_width(width.saturating_sub(2));
    text.set_header(titles.iter().map(AsRef::as_ref));
    for row in rows {
        text.add_row(row);
    }
    for column in text.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for (i, row) in text.lines().enumerate() {
        let row = row.trim_end();
        if i == 0 {
            line(out, &format!(" {FAINT}{row}{FAINT:#}"));
        } else {
            line(out, &format!(" {row}"));
        }
    }
}

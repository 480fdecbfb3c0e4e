//! For a person at a terminal. Styled; whoever prints it strips the styles where they do not belong.

use std::fmt::Write;

use anstyle::Style;
use busbound_diagnosis::Survey;
use comfy_table::{CellAlignment, ContentArrangement, presets};

use crate::survey_text::{self, Table};

const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

/// The surveys one under the other, `width` columns wide.
pub fn surveys_as_terminal(surveys: &[Survey], width: u16) -> String {
    let mut out = String::new();
    if surveys.len() > 1 {
        line(&mut out, &format!("{STRONG}{}{STRONG:#}\n", survey_text::overview(surveys)));
    }
    for survey in surveys {
        one(&mut out, survey, width);
    }
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn one(out: &mut String, survey: &Survey, width: u16) {
    line(out, &format!("{STRONG}{}{STRONG:#}\n", survey.headline));
    for text in survey_text::lost(survey) {
        hanging(out, "  lost       ", &text, width);
    }
    for (word, fact) in survey_text::facts(survey) {
        hanging(out, &format!("  {word:<11}"), &fact, width);
    }
    for table in survey_text::worth_showing(survey) {
        out.push('\n');
        columns(out, &table, width);
    }
    if !survey.missing.is_empty() {
        line(out, &format!("\n  {STRONG}Missing, and what that prevents{STRONG:#}"));
        for missing in &survey.missing {
            hanging(
                out,
                "  · ",
                &format!("{}. Prevents: {}.", capitalised(&missing.what), missing.prevents),
                width,
            );
            let remedy = format!("Next time: {}", missing.remedy);
            hanging(out, "    ", &remedy, width);
        }
    }
    let remarks = survey_text::remarks(survey);
    if !remarks.is_empty() {
        out.push('\n');
        for remark in remarks {
            let mut text = String::new();
            hanging(&mut text, "  ", &remark, width);
            let _ = write!(out, "{FAINT}{text}{FAINT:#}");
        }
    }
    out.push('\n');
}

fn capitalised(text: &str) -> String {
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
    let mut text = comfy_table::Table::new();
    text.load_style(presets::NOTHING);
    text.set_content_arrangement(ContentArrangement::Dynamic);
    text.set_width(width.saturating_sub(2));
    text.set_header(table.titles.iter().copied());
    for row in &table.rows {
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

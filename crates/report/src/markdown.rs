//! For tickets and pull requests.

use std::fmt::Write;

use busbound_diagnosis::Survey;

use crate::survey_text::{self, Table};

/// The surveys as one Markdown document.
pub fn surveys_as_markdown(surveys: &[Survey]) -> String {
    let mut out = String::new();
    if surveys.len() > 1 {
        let _ = writeln!(out, "**{}**\n", survey_text::overview(surveys));
    }
    for survey in surveys {
        one(&mut out, survey);
    }
    out
}

fn one(out: &mut String, survey: &Survey) {
    let _ = writeln!(out, "**{}**\n", survey.headline);
    for text in survey_text::lost(survey) {
        let _ = writeln!(out, "- lost: {text}");
    }
    for (word, fact) in survey_text::facts(survey) {
        let _ = writeln!(out, "- {word}: {fact}");
    }
    for table in survey_text::worth_showing(survey) {
        out.push('\n');
        grid(out, &table);
    }
    if !survey.missing.is_empty() {
        out.push_str("\nMissing, and what that prevents:\n\n");
        for missing in &survey.missing {
            let _ = writeln!(
                out,
                "- {}. Prevents: {}. Next time: {}",
                missing.what, missing.prevents, missing.remedy
            );
        }
    }
    let remarks = survey_text::remarks(survey);
    if !remarks.is_empty() {
        out.push('\n');
        for remark in remarks {
            let _ = writeln!(out, "{remark}\n");
        }
    }
}

fn grid(out: &mut String, table: &Table) {
    let _ = writeln!(out, "| {} |", table.titles.join(" | "));
    let _ = writeln!(out, "|---{}|", "|---:".repeat(table.titles.len() - 1));
    for row in &table.rows {
        let cells: Vec<_> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

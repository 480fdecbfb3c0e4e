//! The survey on the terminal.

use std::fmt::Write;

use busbound_diagnosis::Survey;

use super::{FAINT, STRONG, capitalized, columns, hanging, headline, line};
use crate::text::survey as text;

/// The surveys one after the other, `width` columns wide.
pub(crate) fn surveys_as_terminal(surveys: &[Survey], width: u16) -> String {
    let mut out = String::new();
    if surveys.len() > 1 {
        headline(&mut out, &text::overview(surveys), width);
    }
    for survey in surveys {
        one(&mut out, survey, width);
    }
    out
}

fn one(out: &mut String, survey: &Survey, width: u16) {
    headline(out, &survey.headline, width);
    for loss in text::lost(&survey.source) {
        hanging(out, "  lost       ", &loss, width);
    }
    for (word, fact) in text::facts(survey) {
        hanging(out, &format!("  {word:<11}"), &fact, width);
    }
    for table in text::worth_showing(survey) {
        out.push('\n');
        columns(out, &table, width);
    }
    if !survey.missing.is_empty() {
        line(out, &format!("\n  {STRONG}Missing data, and what it prevents{STRONG:#}"));
        for missing in &survey.missing {
            hanging(
                out,
                "  · ",
                &format!("{}. Prevents: {}.", capitalized(&missing.what), missing.prevents),
                width,
            );
            let remedy = format!("Next time: {}", missing.remedy);
            hanging(out, "    ", &remedy, width);
        }
    }
    let remarks = text::remarks(survey);
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

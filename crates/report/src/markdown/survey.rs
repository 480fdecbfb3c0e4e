//! The survey as Markdown.

use std::fmt::Write;

use busbound_diagnosis::Survey;

use super::grid;
use crate::text::survey as text;

/// The surveys as one Markdown document.
pub fn surveys_as_markdown(surveys: &[Survey]) -> String {
    let mut out = String::new();
    if surveys.len() > 1 {
        let _ = writeln!(out, "**{}**\n", text::overview(surveys));
    }
    for survey in surveys {
        one(&mut out, survey);
    }
    out
}

fn one(out: &mut String, survey: &Survey) {
    let _ = writeln!(out, "**{}**\n", survey.headline);
    for loss in text::lost(&survey.source) {
        let _ = writeln!(out, "- lost: {loss}");
    }
    for (word, fact) in text::facts(survey) {
        let _ = writeln!(out, "- {word}: {fact}");
    }
    for table in text::worth_showing(survey) {
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
    let remarks = text::remarks(survey);
    if !remarks.is_empty() {
        out.push('\n');
        for remark in remarks {
            let _ = writeln!(out, "{remark}\n");
        }
    }
}

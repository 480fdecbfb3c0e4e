//! The survey as Markdown.

use busbound_diagnosis::Survey;

use super::{grid, headline, item, paragraph};
use crate::text::survey as text;

/// The surveys as one Markdown document.
pub(crate) fn surveys_as_markdown(surveys: &[Survey]) -> String {
    let mut out = String::new();
    if surveys.len() > 1 {
        headline(&mut out, &text::overview(surveys));
    }
    for survey in surveys {
        one(&mut out, survey);
    }
    out
}

fn one(out: &mut String, survey: &Survey) {
    headline(out, &survey.headline);
    for loss in text::lost(&survey.source) {
        item(out, &format!("lost: {loss}"));
    }
    for (word, fact) in text::facts(survey) {
        item(out, &format!("{word}: {fact}"));
    }
    for table in text::worth_showing(survey) {
        grid(out, &table);
    }
    if !survey.missing.is_empty() {
        out.push_str("\nMissing data, and what it prevents:\n\n");
        for missing in &survey.missing {
            let sentence =
                format!("{}. Prevents: {}. Next time: {}", missing.what, missing.prevents, missing.remedy);
            item(out, &super::capitalized(&sentence));
        }
    }
    for remark in text::remarks(survey) {
        paragraph(out, &remark);
    }
    out.push('\n');
}

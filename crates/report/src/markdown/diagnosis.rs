//! The diagnosis as Markdown.

use std::fmt::Write;

use busbound_diagnosis::Diagnosis;
use busbound_diagnosis::quantity::milliseconds;

use super::grid;
use crate::text::{attribution, diagnosis as text, path};

/// The diagnoses as one Markdown document.
pub fn diagnoses_as_markdown(all: &[Diagnosis]) -> String {
    let mut out = String::new();
    if all.len() > 1 {
        let _ = writeln!(out, "**{}**\n", text::overview(all));
    }
    for diagnosis in all {
        one(&mut out, diagnosis);
    }
    out
}

fn one(out: &mut String, diagnosis: &Diagnosis) {
    let _ = writeln!(out, "**{}**\n", diagnosis.verdict.statement);
    let _ = writeln!(out, "- trace: {}", diagnosis.source.path);
    let _ = writeln!(out, "- window: {}", text::step(diagnosis));
    for outlier in text::outliers(diagnosis) {
        let _ = writeln!(out, "- outlier: {outlier}");
    }
    for link in text::links(diagnosis) {
        let _ = writeln!(out, "- link: {link}");
    }
    for (what, ms) in text::parts(diagnosis) {
        let _ = writeln!(out, "- {what}: {} a {}", milliseconds(ms), diagnosis.unit());
    }
    if let Some(launching) = path::launching(diagnosis) {
        let _ = writeln!(out, "- launches: {launching}");
    }
    if let Some(path) = path::path(diagnosis) {
        let _ = writeln!(out, "- critical path: {path}");
    }
    for copies in text::copies(diagnosis) {
        let _ = writeln!(out, "- copies: {copies}");
    }
    for table in text::tables(diagnosis, text::Blocks::Within) {
        out.push('\n');
        grid(out, &table);
    }
    let sentences = [attribution::caution(diagnosis), text::stages(diagnosis), path::compiled(diagnosis)];
    let kernels = path::about_kernels(diagnosis);
    for sentence in sentences.into_iter().flatten().chain(kernels.as_deref()) {
        let _ = writeln!(out, "\n{sentence}");
    }
    if let Some(sentence) = text::contention(diagnosis) {
        let _ = writeln!(out, "\n{sentence}");
    }
    out.push('\n');
    if let Some(sentence) = text::nothing_to_fix(diagnosis) {
        let _ = writeln!(out, "{sentence}\n");
    }
    for (i, finding) in diagnosis.findings.iter().enumerate() {
        let saving = text::saving(finding, diagnosis.unit());
        let _ = writeln!(
            out,
            "{}. **{}**: {saving} ({})",
            i + 1,
            finding.title,
            text::severity(finding.severity)
        );
        let _ = writeln!(out, "   {}", finding.seen);
        let _ = writeln!(out, "   *Fix:* {} *Pays if:* {}\n", finding.fix, finding.precondition);
    }
    if !diagnosis.limitations.is_empty() {
        out.push_str("Not told by this trace:\n\n");
        for limitation in &diagnosis.limitations {
            let _ = writeln!(out, "- {}", limitation.text);
        }
        out.push('\n');
    }
}

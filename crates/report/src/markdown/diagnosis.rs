//! The diagnosis as Markdown.

use std::fmt::Write;

use busbound_diagnosis::Diagnosis;
use busbound_diagnosis::quantity::milliseconds;

use super::{code, grid, headline, inline, item, paragraph};
use crate::text::{attribution, bounds, diagnosis as text, path, prize};

/// The diagnoses as one Markdown document.
pub(crate) fn diagnoses_as_markdown(all: &[Diagnosis]) -> String {
    let mut out = String::new();
    if all.len() > 1 {
        headline(&mut out, &text::overview(all));
    }
    for diagnosis in all {
        one(&mut out, diagnosis);
    }
    out
}

pub(super) fn one(out: &mut String, diagnosis: &Diagnosis) {
    headline(out, &prize::headline(diagnosis));
    let _ = writeln!(out, "- trace: {}", code(&diagnosis.source.path));
    item(out, &format!("window: {}", text::step(diagnosis)));
    for outlier in text::outliers(diagnosis) {
        item(out, &format!("outlier: {outlier}"));
    }
    for phase in text::phases(diagnosis) {
        item(out, &format!("phase: {phase}"));
    }
    for link in text::links(diagnosis) {
        item(out, &format!("link: {link}"));
    }
    if let Some(utilization) = text::utilization(diagnosis) {
        item(out, &format!("GPU utilization: {utilization}"));
    }
    for (figure, ms) in text::parts(diagnosis) {
        item(out, &format!("{}: {} per {}", figure.label(), milliseconds(ms), diagnosis.unit()));
    }
    if let Some(launching) = path::launching(diagnosis) {
        item(out, &format!("launches: {launching}"));
    }
    if let Some(path) = path::path(diagnosis) {
        item(out, &format!("critical path: {path}"));
    }
    for copies in text::copies(diagnosis) {
        item(out, &format!("copies: {}", copies.joined("  ")));
    }
    if let Some(about) = bounds::about(diagnosis) {
        grid(out, &bounds::table(diagnosis));
        paragraph(out, &about);
    }
    for table in text::tables(diagnosis, text::Charted::AsTables) {
        grid(out, &table);
    }
    let sentences = [attribution::caution(diagnosis), text::stages(diagnosis), path::compiled(diagnosis)];
    let others = [path::about_kernels(diagnosis), text::contention(diagnosis)];
    for sentence in sentences.into_iter().flatten().chain(others.iter().flatten().map(String::as_str)) {
        paragraph(out, sentence);
    }
    if let Some(sentence) = text::nothing_to_fix(diagnosis) {
        paragraph(out, sentence);
    }
    out.push('\n');
    for (i, finding) in diagnosis.findings.iter().enumerate() {
        let saving = prize::saving_and_range(finding, diagnosis);
        let (title, severity) = (inline(&finding.title), text::severity(finding.severity));
        let _ = writeln!(out, "{}. **{title}**: {} ({severity})", i + 1, inline(&saving));
        // Separate paragraphs: lines of one paragraph would be joined.
        let _ = writeln!(out, "\n   {}", inline(&finding.seen));
        let _ = writeln!(out, "\n   *Fix:* {}", inline(&finding.fix));
        let _ = writeln!(out, "\n   *Cost:* {}", inline(&text::cost(finding)));
        let _ = writeln!(out, "\n   *Worth it when:* {}\n", inline(&finding.precondition));
    }
    if !diagnosis.limitations.is_empty() {
        out.push_str("Not visible in this trace:\n\n");
        for limitation in text::limitations(diagnosis) {
            item(out, &limitation);
        }
        out.push('\n');
    }
}

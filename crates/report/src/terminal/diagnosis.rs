//! All of a diagnosis at a terminal (`-v`): the answer, the figures, the findings, the limitations.

use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{Diagnosis, Unit};

use super::answer::{Form, answer, entry, follow_ups};
use super::{FAINT, STRONG, columns, hanging, headline, line};
use crate::format::Style;
use crate::text::{attribution, bounds, diagnosis as text, path, prize};

/// Characters of all bars together, where there is room for them.
const BAR: usize = 40;

/// The diagnoses one under the other.
pub(crate) fn diagnoses_as_terminal(all: &[Diagnosis], style: &Style) -> String {
    let width = style.width;
    let mut out = String::new();
    if all.len() > 1 {
        headline(&mut out, &text::overview(all), width);
    }
    for diagnosis in all {
        if all.len() > 1 {
            line(&mut out, &format!("{FAINT}{}{FAINT:#}", diagnosis.source.path));
        }
        one(&mut out, diagnosis, style);
    }
    out
}

pub(super) fn one(out: &mut String, diagnosis: &Diagnosis, style: &Style) {
    match style.verbose {
        true => all_of_it(out, diagnosis, style.width),
        false => answer(out, diagnosis, style.width),
    }
}

fn all_of_it(out: &mut String, diagnosis: &Diagnosis, width: u16) {
    headline(out, &prize::headline(diagnosis), width);
    time(out, diagnosis, width);
    if let Some(about) = bounds::about(diagnosis) {
        out.push('\n');
        columns(out, &bounds::table(diagnosis), width);
        hanging(out, "  ", &about, width);
    }
    for table in text::tables(diagnosis, text::Charted::AsTables) {
        out.push('\n');
        columns(out, &table, width);
    }
    let sentences = [attribution::caution(diagnosis), text::stages(diagnosis), path::compiled(diagnosis)];
    let kernels = path::about_kernels(diagnosis);
    for sentence in sentences.into_iter().flatten().chain(kernels.as_deref()) {
        out.push('\n');
        hanging(out, "  ", sentence, width);
    }
    if let Some(sentence) = text::contention(diagnosis) {
        out.push('\n');
        hanging(out, "  ", &sentence, width);
    }
    out.push('\n');
    findings(out, diagnosis, width);
    if !diagnosis.limitations.is_empty() {
        line(out, &format!("  {STRONG}Not visible in this trace{STRONG:#}"));
        for limitation in text::limitations(diagnosis) {
            hanging(out, "  · ", &limitation, width);
        }
    }
    out.push('\n');
}

fn time(out: &mut String, diagnosis: &Diagnosis, width: u16) {
    let parts = text::parts(diagnosis);
    let total: f64 = parts.iter().map(|(_, ms)| ms).sum();
    hanging(out, "  window    ", &text::step(diagnosis), width);
    if diagnosis.devices.len() > 1 {
        let devices = format!(
            "{} parts are means over {} GPUs, copies are sums; --format json has each GPU",
            diagnosis.unit(),
            diagnosis.devices.len()
        );
        hanging(out, "            ", &devices, width);
    }
    for (i, outlier) in text::outliers(diagnosis).iter().enumerate() {
        hanging(out, if i == 0 { "  outliers  " } else { "            " }, outlier, width);
    }
    for (i, phase) in text::phases(diagnosis).iter().enumerate() {
        hanging(out, if i == 0 { "  phases    " } else { "            " }, phase, width);
    }
    for link in text::links(diagnosis) {
        hanging(out, "  link      ", &link, width);
    }
    if let Some(utilization) = text::utilization(diagnosis) {
        hanging(out, "  GPU used  ", &utilization, width);
    }
    let longest = parts.iter().map(|(figure, _)| figure.label().chars().count()).max().unwrap_or(0);
    for (i, (figure, ms)) in parts.iter().enumerate() {
        let what = figure.label();
        let head = match (i, diagnosis.unit()) {
            (0, Unit::Iteration) => "per iter.".to_owned(),
            (0, unit) => format!("per {unit}"),
            _ => String::new(),
        };
        let share = 100.0 * ms / total;
        let figures = format!("  {head:<10}{what:<longest$}  {:>8}  {share:>3.0}%  ", milliseconds(*ms));
        let room = usize::from(width).saturating_sub(figures.chars().count()).min(BAR);
        let bar = "█".repeat((ms / total * room as f64).round() as usize);
        line(out, format!("{figures}{bar}").trim_end());
    }
    if let Some(launching) = path::launching(diagnosis) {
        hanging(out, "  launches  ", &launching, width);
    }
    if let Some(path) = path::path(diagnosis) {
        hanging(out, "  critical path  ", &path, width);
    }
    for (i, copies) in text::copies(diagnosis).iter().enumerate() {
        hanging(out, if i == 0 { "  copies    " } else { "            " }, &copies.joined("  "), width);
    }
}

fn findings(out: &mut String, diagnosis: &Diagnosis, width: u16) {
    if let Some(sentence) = text::nothing_to_fix(diagnosis) {
        hanging(out, "  ", sentence, width);
        out.push('\n');
    }
    for (i, finding) in diagnosis.findings.iter().enumerate() {
        line(out, &entry(i, finding, diagnosis, width, Form::Everything));
    }
    let then = follow_ups(diagnosis, width);
    if !then.is_empty() {
        line(out, &then);
    }
}

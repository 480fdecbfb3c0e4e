//! Ranks as Markdown.

use std::fmt::Write;

use busbound_fleet::{FleetAnswer, Unread};

use super::{diagnosis, grid, headline, item, paragraph};
use crate::runs::Runs;
use crate::text::{diagnosis as single, fleet as text};

/// Several inputs as one document.
pub(crate) fn runs_as_markdown(runs: &Runs<'_>) -> String {
    let mut out = summary(runs);
    for run in runs.detailed() {
        diagnosis::one(&mut out, run);
    }
    out
}

/// The summary of all inputs; empty for a single one.
pub(crate) fn summary(runs: &Runs<'_>) -> String {
    let mut out = String::new();
    match runs.fleet {
        Some(fleet) => out.push_str(&fleet_as_markdown(fleet)),
        None if !runs.is_one() => {
            headline(&mut out, &single::overview(runs.all));
            if let Some(why) = runs.why_not_merged() {
                paragraph(&mut out, &why);
            }
            grid(&mut out, &text::runs(runs.summaries));
            out.push('\n');
            unread(&mut out, runs.unread);
        }
        None => {}
    }
    out
}

/// Ranks of one run as a document.
pub(crate) fn fleet_as_markdown(fleet: &FleetAnswer) -> String {
    let mut out = String::new();
    headline(&mut out, &fleet.statement);
    for (word, fact) in text::facts(fleet) {
        item(&mut out, &format!("{word}: {fact}"));
    }
    for table in [text::ranks(fleet), text::spreads(fleet), text::pipeline(fleet), text::late(fleet)] {
        if !table.rows.is_empty() {
            grid(&mut out, &table);
        }
    }
    out.push('\n');
    section(&mut out, "Stragglers", fleet.stragglers.iter().map(|one| one.statement.clone()));
    let pipeline = fleet.pipeline.iter().map(|pipeline| pipeline.statement.clone());
    section(&mut out, "Pipeline over ranks", pipeline);
    section(&mut out, "Arrival at collectives", text::arrivals(fleet));
    section(&mut out, "If a rank were on time", text::job(fleet));
    section(&mut out, "Outliers", text::outliers(fleet));
    section(&mut out, "Shared PCIe uplinks", fleet.uplinks.iter().map(|one| one.statement.clone()));
    section(&mut out, "What to change", fleet.findings.iter().map(|one| text::finding(one, fleet)));
    section(&mut out, "Environments that differ", fleet.environment.iter().cloned());
    unread(&mut out, &fleet.unread);
    section(&mut out, "Not visible in these traces", fleet.limitations.iter().cloned());
    out
}

fn unread(out: &mut String, unread: &[Unread]) {
    section(out, "Could not be read", unread.iter().map(text::unread));
}

fn section(out: &mut String, title: &str, items: impl IntoIterator<Item = String>) {
    let items: Vec<String> = items.into_iter().collect();
    if items.is_empty() {
        return;
    }
    let _ = writeln!(out, "{title}:\n");
    for text in items {
        item(out, &text);
    }
    out.push('\n');
}

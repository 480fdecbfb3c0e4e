//! Ranks on the terminal: the merged result, then each rank that is shown in full.

use busbound_diagnosis::Bound;
use busbound_fleet::{FleetAnswer, Unread};

use super::answer::first_sentence;
use super::{FAINT, STRONG, columns, diagnosis, hanging, headline, line};
use crate::format::Style;
use crate::runs::Runs;
use crate::text::{diagnosis as single, fleet as text};

/// Several inputs, `width` columns wide.
pub(crate) fn runs_as_terminal(runs: &Runs<'_>, style: &Style) -> String {
    let width = style.width;
    let mut out = String::new();
    match runs.fleet {
        Some(fleet) => out.push_str(&ranks(fleet, Some(runs), style)),
        None if !runs.is_one() => {
            headline(&mut out, &single::overview(runs.all), width);
            if let Some(why) = runs.why_not_merged() {
                hanging(&mut out, "  ", &why, width);
                out.push('\n');
            }
            unread(&mut out, runs.unread, width);
            columns(&mut out, &text::runs(runs.summaries), width);
            out.push('\n');
        }
        None => {}
    }
    let is_many = runs.fleet.is_none() && runs.on_terminal.is_empty() && !runs.is_one();
    if is_many {
        hanging(&mut out, "  ", "busbound FILE has the details of one run, --each those of all.", width);
        out.push('\n');
        return out;
    }
    for run in runs.on_terminal.iter().filter_map(|number| runs.all.get(*number)) {
        if !runs.is_one() {
            line(&mut out, &format!("{FAINT}{}{FAINT:#}", run.source.path));
        }
        diagnosis::one(&mut out, run, style);
    }
    out
}

/// Ranks of one run, from their summaries.
pub(crate) fn fleet_as_terminal(fleet: &FleetAnswer, style: &Style) -> String {
    ranks(fleet, None, style)
}

/// Ranks of one run, with their own diagnoses where there are any.
fn ranks(fleet: &FleetAnswer, runs: Option<&Runs<'_>>, style: &Style) -> String {
    let width = style.width;
    let mut out = String::new();
    headline(&mut out, &fleet.statement, width);
    for (word, fact) in text::facts(fleet) {
        hanging(&mut out, &format!("  {word:<10}"), &fact, width);
    }
    tables(&mut out, fleet, style);
    section(&mut out, "Why there is no verdict", runs.map(without_verdict).unwrap_or_default(), width);
    section(&mut out, "Stragglers", fleet.stragglers.iter().map(|one| one.statement.clone()), width);
    let pipeline = fleet.pipeline.iter().map(|pipeline| pipeline.statement.clone());
    section(&mut out, "Pipeline over ranks", pipeline, width);
    section(&mut out, "Arrival at collectives", text::arrivals(fleet), width);
    section(&mut out, "If a rank were on time", text::job(fleet), width);
    section(&mut out, "Outliers", text::outliers(fleet), width);
    section(&mut out, "Shared PCIe uplinks", fleet.uplinks.iter().map(|one| one.statement.clone()), width);
    findings(&mut out, fleet, runs, width);
    section(&mut out, "Environments that differ", fleet.environment.iter().cloned(), width);
    unread(&mut out, &fleet.unread, width);
    limitations(&mut out, fleet, style);
    if runs.is_some_and(|runs| runs.on_terminal.len() < runs.all.len()) {
        let steps = "--each (each rank's own answer) · --open (timelines) · -v (figures)";
        let mut next = String::new();
        hanging(&mut next, "  next: ", steps, width);
        line(&mut out, &format!("{FAINT}{}{FAINT:#}\n", next.trim_end()));
    }
    out
}

fn tables(out: &mut String, fleet: &FleetAnswer, style: &Style) {
    let width = style.width;
    let ranks = text::ranks(fleet);
    // A table of all ranks says the same.
    let has_spreads = style.verbose || ranks.rows.len() < fleet.ranks.len();
    let spreads = has_spreads.then(|| text::spreads(fleet));
    let rest = [text::pipeline(fleet), text::late(fleet)];
    for table in [Some(ranks), spreads].into_iter().flatten().chain(rest) {
        if !table.rows.is_empty() {
            out.push('\n');
            columns(out, &table, width);
        }
    }
    out.push('\n');
}

/// Why ranks have no verdict: each reason once, with its ranks.
fn without_verdict(runs: &Runs<'_>) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for (run, rank) in runs.all.iter().zip(runs.summaries) {
        if run.verdict.bound != Bound::Unknown {
            continue;
        }
        let (why, name) = (run.verdict.because.as_str(), rank.label().short());
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, ranks)) => ranks.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    let said = |(why, ranks): (&str, Vec<String>)| match ranks.as_slice() {
        [one] => format!("rank {one}: {why}"),
        _ if ranks.len() == runs.all.len() => why.to_owned(),
        _ => format!("ranks {}: {why}", ranks.join(", ")),
    };
    reasons.into_iter().map(said).collect()
}

/// What the ranks have in common, with what to change where a rank's own diagnosis has it.
fn findings(out: &mut String, fleet: &FleetAnswer, runs: Option<&Runs<'_>>, width: u16) {
    if fleet.findings.is_empty() {
        return;
    }
    line(out, &format!("  {STRONG}What to change{STRONG:#}"));
    for shared in &fleet.findings {
        hanging(out, "  · ", &text::finding(shared, fleet), width);
        if let Some(own) = runs.and_then(|runs| runs.finding(&shared.id)) {
            hanging(out, "    Fix: ", first_sentence(&own.fix), width);
        }
    }
    out.push('\n');
}

/// What the traces do not show; the first of it, unless all is wanted.
fn limitations(out: &mut String, fleet: &FleetAnswer, style: &Style) {
    let shown = if style.verbose { fleet.limitations.len() } else { 1 };
    let more = fleet.limitations.len().saturating_sub(shown);
    let more = (more > 0).then(|| format!("and {more} more (-v)"));
    let items = fleet.limitations.iter().take(shown).cloned().chain(more);
    section(out, "Not visible in these traces", items, style.width);
}

fn unread(out: &mut String, unread: &[Unread], width: u16) {
    section(out, "Could not be read", unread.iter().map(text::unread), width);
}

fn section(out: &mut String, title: &str, items: impl IntoIterator<Item = String>, width: u16) {
    let items: Vec<String> = items.into_iter().collect();
    if items.is_empty() {
        return;
    }
    line(out, &format!("  {STRONG}{title}{STRONG:#}"));
    for item in items {
        hanging(out, "  · ", &item, width);
    }
    out.push('\n');
}

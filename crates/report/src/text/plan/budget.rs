//! The text of a transfer budget: how long bytes take on the bus.

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_whatif::plan::budget::{Budget, BudgetBasis, BudgetRate, FORMULAS};

use super::{PlanTable, PlanText};

pub(super) fn text(plan: &Budget) -> PlanText {
    let share = |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.1}%", 100.0 * share));
    let row = |rate: &BudgetRate| {
        vec![name(rate.what).to_owned(), gbps(rate.gbps), milliseconds(rate.ms), share(rate.share)]
    };
    let inputs = &plan.inputs;
    let mut listed = vec![
        ("bytes", format!("{} per step in {}", bytes(inputs.bytes as u64), copies(plan))),
        ("link", format!("{} ({})", inputs.link.name, inputs.link.source.describe())),
    ];
    listed.extend(inputs.step_ms.map(|step| ("step", milliseconds(step))));
    PlanText {
        kind: "budget",
        statement: statement(plan),
        inputs: listed,
        tables: vec![PlanTable::new(
            &["at", "rate", "time", "of the step"],
            plan.rates.iter().map(row).collect(),
        )],
        notes: notes(plan),
        formulas: FORMULAS,
    }
}

fn statement(plan: &Budget) -> String {
    let rate = &plan.rates[plan.headline];
    let of = rate.share.map_or(String::new(), |share| format!(", {:.0}% of the step", 100.0 * share));
    let take = if plan.copies == 1 { "takes" } else { "take" };
    format!(
        "{} in {} {take} {} at {} ({}){of}.",
        bytes(plan.inputs.bytes as u64),
        copies(plan),
        milliseconds(rate.ms),
        gbps(rate.gbps),
        name(rate.what)
    )
}

fn name(basis: BudgetBasis) -> &'static str {
    match basis {
        BudgetBasis::LinePeak => "line peak",
        BudgetBasis::PinnedQueued => "pinned, queued",
        BudgetBasis::PinnedSingle => "pinned, one at a time",
        BudgetBasis::PageableSingle => "pageable, one at a time",
        BudgetBasis::Observed => "observed",
    }
}

/// `55.4 GB/s`, `0.41 GB/s`.
fn gbps(rate: f64) -> String {
    if rate < 1.0 { format!("{rate:.2} GB/s") } else { format!("{rate:.1} GB/s") }
}

fn copies(plan: &Budget) -> String {
    match plan.copies {
        1 => "one copy".to_owned(),
        n => format!("{} copies of {}", count(n), bytes(plan.inputs.copy_bytes as u64)),
    }
}

fn notes(plan: &Budget) -> Vec<String> {
    let of = |what: BudgetBasis| plan.rates.iter().find(|rate| rate.what == what);
    let mut notes = Vec::new();
    if let (Some(pinned), Some(pageable)) = (of(BudgetBasis::PinnedSingle), of(BudgetBasis::PageableSingle))
        && pageable.gbps > pinned.gbps
    {
        notes.push("Pageable copies of this size are faster: the driver sends small ones with the command instead of starting a DMA transfer.".to_owned());
    }
    notes
}

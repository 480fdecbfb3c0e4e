//! The text of a transfer budget: how long bytes take on the bus.

use busbound_diagnosis::quantity::{bytes, milliseconds};
use busbound_whatif::plan::budget::{Budget, FORMULAS};

use super::{PlanTable, PlanText};

pub(super) fn text(plan: &Budget) -> PlanText {
    let share = |share: Option<f64>| share.map_or("–".to_owned(), |share| format!("{:.1}%", 100.0 * share));
    let rows = plan
        .rates
        .iter()
        .map(|rate| {
            vec![
                rate.what.clone(),
                format!("{:.1} GB/s", rate.gbps),
                milliseconds(rate.ms),
                share(rate.share),
            ]
        })
        .collect();
    // The last rate is the most realistic one.
    let statement = plan.rates.last().map_or(String::new(), |rate| {
        let of = rate.share.map_or(String::new(), |share| format!(", {:.0}% of the step", 100.0 * share));
        format!(
            "{} take {} at {:.1} GB/s ({}){of}.",
            bytes(plan.bytes as u64),
            milliseconds(rate.ms),
            rate.gbps,
            rate.what
        )
    });
    let mut inputs = vec![("bytes", format!("{} per step", bytes(plan.bytes as u64)))];
    if let Some(step) = plan.step_ms {
        inputs.push(("step", milliseconds(step)));
    }
    PlanText {
        kind: "budget",
        statement,
        inputs,
        tables: vec![PlanTable { titles: vec!["at", "rate", "time", "of the step"], rows }],
        notes: Vec::new(),
        formulas: FORMULAS,
    }
}

//! Do collectives wait for a rank that arrives late?

use busbound_cause::Resource;
use serde_json::json;

use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::collectives::CollectiveGroup;
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Collectives wait for other ranks",
    doing: "removing the delay of the rank that arrives last",
    precondition: "The late rank can be as fast as the others.",
    basis: "bound: the exposed time that collectives take longer than the fastest with the same message",
    candidate: Candidate::None(
        "No what-if change of one rank's trace makes another rank arrive earlier: give `busbound whatif` the traces of all ranks.",
    ),
    effort: Effort::Restructuring,
    unless: &[],
    relieves: &[Resource::Collectives],
    check,
    document: Document {
        meaning: "Collectives with the same message take very different times. The transfer is the same, so the longer ones \
                  wait: for a rank that arrives late, or, less often, because other traffic shares the link.",
        computed: "Evidence: of the collectives with the same operation, message and process group (at least three), the fastest \
                   counts as the transfer; what the others take longer is waiting. The part of it in which no compute kernel \
                   runs is at least 5% of the time. Saving: at most that part.",
        fix: "Record all ranks and run `busbound merge`: it names the rank that arrives last and what it does before. Usual \
              causes are uneven input (sequence lengths, a slow data loader), a slower GPU or link, logging and \
              checkpoints on one rank.",
        code: &[],
        assumes: "The late rank can be as fast as the others.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let exposed = |group: &CollectiveGroup| group.exposed_waiting_ms.unwrap_or(0.0);
    let total: f64 = facts.collective_groups.iter().map(exposed).sum();
    if total < 0.05 * facts.time.analyzed_ms {
        return None;
    }
    let worst = facts.collective_groups.iter().max_by(|a, b| exposed(a).total_cmp(&exposed(b)))?;
    let (steps, per) = (facts.steps(), facts.unit().per());
    let least = 0.5 * worst.fastest_ms;
    let waits = facts.collectives.iter().filter_map(|run| run.waiting_time());
    Some(Draft {
        title: None,
        seen: format!(
            "Collectives wait {}{per} while no compute runs. The fastest {} of {} takes {}, the median {}.",
            milliseconds(total / steps),
            worst.op.label(),
            bytes(worst.bytes.unwrap_or(0)),
            milliseconds(worst.fastest_ms),
            milliseconds(worst.median_ms),
        ),
        evidence: json!({
            "exposed_waiting_ms_per_step": total / steps,
            "fastest_ms": worst.fastest_ms,
            "median_ms": worst.median_ms,
            "bytes": worst.bytes,
        }),
        saves: Saving { low: 0.0, high: total / facts.gpu_steps() },
        fix: Fix::new(
            "Record all ranks and run busbound merge: it names the rank that arrives last and what it does before.",
        ),
        at: waits.filter(|wait| wait.length().as_millis() > least).collect(),
    })
}

//! Does the host wait for the GPU within the step?

use busbound_cause::Resource;
use busbound_whatif::replay::NoSync;
use serde_json::json;

use super::common::program::Program;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use busbound_cause::idle::GapCause;

use crate::activity::gaps::idle_around_ms;
use crate::activity::syncs::{SyncReason, SyncTotal};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;
use crate::unit::Unit;

pub(super) static RULE: Rule = Rule {
    title: "Host syncs within the step",
    doing: "removing host syncs",
    precondition: "The next launch does not depend on the value.",
    basis: "bound: idle time after host syncs, and exposed copies of serialized streams",
    candidate: Candidate::Changes(|| vec![NoSync.into()]),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::Sync],
    check,
    document: Document {
        meaning: "The host waits for the GPU within the step: `.item()` and similar reads, or an explicit synchronization \
                  that is not the last one of its step. Meanwhile, the GPU runs out of work.",
        computed: "Evidence: at least one such wait per step, and idle time after these waits of at least 2% of the time. \
                   Waits inside a blocking copy belong to the copy. If the waits serialize several streams, exposed \
                   copies that could overlap with the other streams count too. Saving: the trace replayed with \
                   `nosync`. If that is not possible, a bound: 40% to 100% of that time.",
        fix: "Keep values on the GPU and read them every N steps. Between streams, wait for an event \
              (`stream.wait_event`) instead of blocking the host.",
        code: &[CODE],
        assumes: "The next launch does not depend on the value.",
    },
};

const CODE: &str = "\
total = torch.zeros((), device=device)
for i, batch in enumerate(loader):
    loss = step(batch)
    total += loss.detach()        # not loss.item()
    if i % 100 == 99:
        print(total.item() / 100)
        total.zero_()";

/// Waits that the program could avoid, if they are frequent enough.
struct Waits<'s> {
    read: Option<&'s SyncTotal>,
    explicit: Option<&'s SyncTotal>,
}

impl<'s> Waits<'s> {
    fn of(facts: &'s Facts<'_>) -> Self {
        // If no steps are marked, the sync that ends each step cannot be distinguished from the others.
        let fewest = if facts.window.steps.is_empty() { 10.0 } else { facts.steps() };
        let of = |reason| facts.syncs.of(reason).filter(|total| total.within_step as f64 >= fewest);
        Self { read: of(SyncReason::ValueRead), explicit: of(SyncReason::Explicit) }
    }

    fn count(&self) -> u64 {
        [self.read, self.explicit].iter().flatten().map(|total| total.within_step).sum()
    }

    fn host_ms(&self) -> f64 {
        [self.read, self.explicit].iter().flatten().map(|total| total.within_step_ms).sum()
    }

    fn fix(&self, program: Program, unit: Unit) -> Fix {
        if program == Program::Cuda {
            let end = if unit == Unit::Trace { String::new() } else { format!(" of the {unit}") };
            return Fix::new(match self.read {
                Some(_) => {
                    format!("Keep values on the GPU, and copy them to the host once, at the end{end}.")
                }
                None => format!(
                    "Let streams wait for each other on the GPU (cudaStreamWaitEvent), and synchronize once, at the end{end}."
                ),
            });
        }
        let text = match (self.read.is_some(), unit) {
            (true, Unit::Trace) => {
                "Keep values on the GPU, and read them together at the end instead of calling .item() for each.".to_owned()
            }
            (true, Unit::Step | Unit::Iteration) => {
                "Keep values on the GPU: sum losses in a tensor and read it every N steps, instead of calling .item() in the loop."
                    .to_owned()
            }
            (false, _) => format!(
                "Wait for an event on the stream (stream.wait_event) instead of blocking the host. Synchronize once, at the end{}.",
                if unit == Unit::Trace { String::new() } else { format!(" of the {unit}") }
            ),
        };
        Fix::new(text).code(CODE)
    }
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let (steps, unit) = (facts.steps(), facts.unit());
    // Only the idle time after these waits. Idle time after the last sync of a step, or after a blocking copy, has
    // another cause.
    // The host could have run ahead: whatever it did then is not hidden because of the sync.
    let exposed = [GapCause::Synchronization, GapCause::Launch, GapCause::Host];
    let waits = Waits::of(facts);
    let (count, waited) = (waits.count(), waits.host_ms());
    if count == 0 {
        return None;
    }
    let idle = idle_around_ms(&facts.gaps, &exposed, &facts.syncs.avoidable_times);
    // Streams that are serialized only by these waits could overlap. Copies gain most of that time; kernels that fill
    // the GPU gain nothing.
    let between = facts.serialized_streams().map_or(0.0, |_| facts.time.exposed_bus_copy_ms);
    if idle + between < 0.02 * facts.time.analyzed_ms {
        return None;
    }
    let longest = waits.read.or(waits.explicit);
    let origin = longest.and_then(|total| total.origin.as_ref());
    let at = origin.map_or(String::new(), |origin| format!(", mostly{}", origin.clause()));
    Some(Draft {
        title: match unit {
            Unit::Step => None,
            Unit::Iteration => Some("Host syncs within the iteration".to_owned()),
            Unit::Trace => Some("Host syncs".to_owned()),
        },
        seen: format!(
            "{} per {unit}, the host waits for the GPU before it continues, for a total of {}{at}; the GPU is then idle for {}{}.",
            match (count as f64 / steps).round() as u64 {
                0 | 1 => "Once".to_owned(),
                times => format!("{times} times"),
            },
            milliseconds(waited / steps),
            milliseconds(idle / steps),
            if between > 0.0 { ", and copies and kernels of different streams do not overlap" } else { "" },
        ),
        evidence: json!({
            "syncs_per_step": count as f64 / steps,
            "host_waits_ms_per_step": waited / steps,
            "idle_after_ms_per_step": idle / steps,
            "exposed_copy_between_streams_ms_per_step": between / steps,
            "place": longest.and_then(|total| total.place.as_deref()),
        }),
        saves: Saving {
            low: 0.4 * (idle + between) / facts.gpu_steps(),
            high: (idle + between) / facts.gpu_steps(),
        },
        fix: waits.fix(Program::of(facts), unit),
        at: facts.syncs.avoidable_times.values().flat_map(|times| times.iter()).collect(),
    })
}

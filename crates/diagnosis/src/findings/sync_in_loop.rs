//! Does the host stop in the middle of the step to wait for the device?

use busbound_whatif::replay::NoSync;
use serde_json::json;

use super::common::{Candidate, Document, Draft, Fix, Rule};
use busbound_cause::idle::GapCause;

use crate::activity::gaps::idle_beside_ms;
use crate::activity::syncs::{SyncReason, SyncTotal};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: VALUES_ARE_READ,
    precondition: "The value waited for is not needed to decide what runs next.",
    basis: "bound: idle time after synchronizations, and exposed copies of streams that take turns",
    candidate: Candidate::Changes(|| vec![NoSync.into()]),
    unless: &[],
    check,
    document: Document {
        meaning: "The host waits for the device within the step: `.item()` and similar reads, or an explicit \
                  synchronization that is not the last of its step. The GPU runs out of work meanwhile.",
        computed: "Evidence: at least one such wait per step, and idle time after them of 2% of the time. Waits inside \
                   a blocking copy belong to the copy. Where several streams take turns because of the waits, exposed \
                   copies that could run while the other stream works count as well. Saving: the trace replayed with \
                   `nosync`; else a bound of that time.",
        fix: "Keep values on the device and read them every N steps. Between streams, wait for an event \
              (`stream.wait_event`) instead of stopping the host.",
        code: &[CODE],
        assumes: "The value is not needed to decide what runs next.",
    },
};

const VALUES_ARE_READ: &str = "Values are read back within the step";
const HOST_SYNCHRONIZES: &str = "The host synchronizes within the step";

const CODE: &str = "\
total = torch.zeros((), device=device)
for i, batch in enumerate(loader):
    loss = step(batch)
    total += loss.detach()        # not loss.item()
    if i % 100 == 99:
        print(total.item() / 100)
        total.zero_()";

/// Waits that the program could leave out, where there are enough of them.
struct Waits<'s> {
    read: Option<&'s SyncTotal>,
    explicit: Option<&'s SyncTotal>,
}

impl<'s> Waits<'s> {
    fn of(facts: &'s Facts<'_>) -> Self {
        // Where no steps are marked, the one at the end of each step cannot be told from others.
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

    fn fix(&self) -> Fix {
        let fix = if self.read.is_some() {
            Fix::new(
                "Keep values on the device: add losses up in a tensor and read it every N steps, not .item() in the loop.",
            )
        } else {
            Fix::new(
                "Wait for an event on the stream (stream.wait_event) instead of stopping the host; synchronize once at the end.",
            )
        };
        fix.code(CODE)
    }
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let (steps, unit) = (facts.steps(), facts.unit());
    // Only the idle time after these waits; that after the last of a step, or after a blocking copy, is not
    // theirs.
    let idle = idle_beside_ms(&facts.gaps, GapCause::Synchronization, &facts.syncs.avoidable_times);
    let waits = Waits::of(facts);
    let (count, waited) = (waits.count(), waits.host_ms());
    if count == 0 {
        return None;
    }
    // Streams that only take turns because of it could run side by side; copies gain most of that,
    // kernels that fill the GPU nothing.
    let between = facts.streams_that_take_turns().map_or(0.0, |_| facts.time.exposed_bus_copy_ms);
    if idle + between < 0.02 * facts.time.span_ms {
        return None;
    }
    let longest = waits.read.or(waits.explicit);
    let origin = longest.and_then(|total| total.origin.as_ref());
    let at = origin.map_or(String::new(), |origin| format!(", most of it{}", origin.clause()));
    Some(Draft {
        title: waits.read.is_none().then(|| HOST_SYNCHRONIZES.to_owned()),
        seen: format!(
            "{:.0} times a {unit} the host waits for the GPU before it goes on, {} in all{at}; the GPU then stands still for {}{}.",
            count as f64 / steps,
            milliseconds(waited / steps),
            milliseconds(idle / steps),
            if between > 0.0 { ", and its streams take turns" } else { "" },
        ),
        evidence: json!({
            "syncs_per_step": count as f64 / steps,
            "host_waits_ms_per_step": waited / steps,
            "idle_after_ms_per_step": idle / steps,
            "exposed_copy_between_streams_ms_per_step": between / steps,
            "place": longest.and_then(|total| total.place.as_deref()),
        }),
        saves: Saving { low: 0.4 * (idle + between) / steps, high: (idle + between) / steps },
        fix: waits.fix(),
        at: facts.syncs.avoidable_times.values().flat_map(|times| times.iter()).collect(),
    })
}

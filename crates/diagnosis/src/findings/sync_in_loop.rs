//! Does the host wait for the GPU within the step?

use busbound_cause::Resource;
use busbound_whatif::replay::{NoSync, Replay};
use serde_json::json;

use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use busbound_cause::idle::GapCause;

use crate::activity::gaps::idle_around_ms;
use crate::activity::syncs::{SyncReason, SyncTotal};
use crate::analysis::facts::Facts;
use crate::analysis::program::Program;
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
        meaning: "The host waits for the GPU within the step: `.item()` and similar reads, copies of a few bytes from pageable \
                  memory, or an explicit synchronization that is not the last one of its step. Meanwhile, the GPU runs out of work.",
        computed: "Evidence: at least one such wait per step, and idle time after these waits of at least 2% of the time, or waits of a fifth of \
                   the time whose removal gains 5% in the replay. \
                   Waits inside a blocking copy belong to the copy, unless it has at most 4 KiB and the host waits more than ten times as long as \
                   it takes. If the waits serialize several streams, exposed \
                   copies that could overlap with the other streams count too. Saving: the trace replayed with \
                   `nosync`. If that is not possible, a bound: 40% to 100% of that time. Unknown if most of the waiting is for values by which \
                   the program decides what runs next, or may: `if tensor:`, `nonzero`, values that a CUDA program copies back.",
        fix: "Keep values on the GPU and read them every N steps. Between streams, wait for an event \
              (`stream.wait_event`) instead of blocking the host.",
        code: &[CODE, UPLOADS_CODE],
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

/// Share of the time in which the GPU is idle after waits, from which on they are reported.
const IDLE_AFTER: f64 = 0.02;
/// Share of the time in which the host waits, from which on the replay is asked what the waits cost.
const LONG_WAITS: f64 = 0.2;
/// A smaller gain, as a share of the step, is not worth it.
const WORTH_A_CHANGE: f64 = 0.05;

const DECIDES: &str = "Keep values on the GPU and read them once, at the end, if the program only reports them. If it decides by them what to launch \
                       next (an `if`, the end of a loop, a size), the wait can only become rarer: read them every few iterations, or decide on the \
                       GPU (`torch.where`, conditional nodes of a CUDA graph).";

const UPLOADS: &str = "Create small tensors on the GPU, or copy them from pinned memory with non_blocking=True: a copy from pageable memory waits \
                       for everything that is queued before it.";

const IN_ORDER: &str =
    "Synchronize only where the host uses a result: the work of one stream runs in order without it.";

const UPLOADS_CODE: &str = "\
scale = torch.full((), value, device=device)         # not torch.tensor(value).to(device)
sizes = sizes.pin_memory().to(device, non_blocking=True)";

/// Waits that the program could avoid, if they are frequent enough.
struct Waits<'s> {
    read: Option<&'s SyncTotal>,
    uploads: Option<&'s SyncTotal>,
    explicit: Option<&'s SyncTotal>,
}

impl<'s> Waits<'s> {
    fn of(facts: &'s Facts<'_>) -> Self {
        // If no steps are marked, the sync that ends each step cannot be distinguished from the others.
        let fewest = if facts.window.steps.is_empty() { 10.0 } else { facts.steps() };
        let of = |reason| facts.syncs.of(reason).filter(|total| total.within_step as f64 >= fewest);
        Self {
            read: of(SyncReason::ValueRead),
            uploads: of(SyncReason::SmallUpload),
            explicit: of(SyncReason::Explicit),
        }
    }

    fn all(&self) -> impl Iterator<Item = &'s SyncTotal> {
        [self.read, self.uploads, self.explicit].into_iter().flatten()
    }

    /// Those in which the host waits longest.
    fn longest(&self) -> Option<&'s SyncTotal> {
        self.all().max_by(|a, b| a.within_step_ms.total_cmp(&b.within_step_ms))
    }

    fn count(&self) -> u64 {
        self.all().map(|total| total.within_step).sum()
    }

    fn host_ms(&self) -> f64 {
        self.all().map(|total| total.within_step_ms).sum()
    }

    fn fix(&self, facts: &Facts<'_>) -> Fix {
        if facts.syncs.mostly_decide() {
            // Replayed, it would gain as if no value decided anything.
            return Fix::new(DECIDES).doing("reading values less often").gains_nothing().saving_known(false);
        }
        let (program, unit) = (facts.program, facts.unit());
        let reason = self.longest().map(|total| total.reason);
        let has_one_stream = facts.stream_split().is_none();
        if has_one_stream && reason == Some(SyncReason::Explicit) {
            return Fix::new(IN_ORDER);
        }
        if program == Program::Cuda {
            let end = if unit == Unit::Trace { String::new() } else { format!(" of the {unit}") };
            return Fix::new(match reason {
                Some(SyncReason::ValueRead) => {
                    format!("Keep values on the GPU, and copy them to the host once, at the end{end}.")
                }
                _ => format!(
                    "Let streams wait for each other on the GPU (cudaStreamWaitEvent), and synchronize once, at the end{end}."
                ),
            });
        }
        let text = match (reason, unit) {
            (Some(SyncReason::SmallUpload), _) => return Fix::new(UPLOADS).code(UPLOADS_CODE),
            (Some(SyncReason::ValueRead), Unit::Trace) => {
                "Keep values on the GPU, and read them together at the end instead of calling .item() for each.".to_owned()
            }
            (Some(SyncReason::ValueRead), Unit::Step | Unit::Iteration) => {
                "Keep values on the GPU: sum losses in a tensor and read it every N steps, instead of calling .item() in the loop."
                    .to_owned()
            }
            _ => format!(
                "Wait for an event on the stream (stream.wait_event) instead of blocking the host. Synchronize once, at the end{}.",
                if unit == Unit::Trace { String::new() } else { format!(" of the {unit}") }
            ),
        };
        Fix::new(text).code(CODE)
    }
}

/// The GPU may be idle anywhere after a wait, because the host never gets ahead again.
fn keeps_the_host_behind(facts: &Facts<'_>, waited: f64) -> bool {
    let waits_long = waited > LONG_WAITS * facts.time.analyzed_ms;
    let gains = |replay: &Replay| {
        let without = replay.expect_ms(&[NoSync.into()]);
        without.is_some_and(|ms| ms < (1.0 - WORTH_A_CHANGE) * replay.step_ms())
    };
    waits_long && facts.replay().is_some_and(gains)
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
    let is_idle_after = idle + between >= IDLE_AFTER * facts.time.analyzed_ms;
    if !is_idle_after && !keeps_the_host_behind(facts, waited) {
        return None;
    }
    let then = match is_idle_after {
        true => format!("; the GPU is then idle for {}", milliseconds(idle / steps)),
        false => " instead of launching ahead of it".to_owned(),
    };
    let longest = waits.longest();
    let origin = longest.and_then(|total| total.origin.as_ref());
    let at = origin.map_or(String::new(), |origin| format!(", mostly{}", origin.clause()));
    Some(Draft {
        title: match unit {
            Unit::Step => None,
            Unit::Iteration => Some("Host syncs within the iteration".to_owned()),
            Unit::Trace => Some("Host syncs".to_owned()),
        },
        seen: format!(
            "{} per {unit}, the host waits for the GPU before it continues, for a total of {}{at}{then}{}.",
            match (count as f64 / steps).round() as u64 {
                0 | 1 => "Once".to_owned(),
                times => format!("{times} times"),
            },
            milliseconds(waited / steps),
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
        fix: waits.fix(facts),
        at: facts.syncs.avoidable_times.values().flat_map(|times| times.iter()).collect(),
    })
}

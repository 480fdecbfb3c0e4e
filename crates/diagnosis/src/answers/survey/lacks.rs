//! The checks for what is missing from a trace, one function each.

use busbound_trace::{Direction, EventKind, LossKind, MemoryKind, Trace};

use super::{Span, Survey, Totals};
use crate::quantity::{plural, time};
use busbound_cause::{GraphLaunches, LaunchRecords};

/// The input of a check.
pub(super) struct Scope<'s> {
    pub(super) trace: &'s Trace,
    pub(super) totals: &'s Totals,
    pub(super) survey: &'s Survey,
}

/// The result of a check if something is missing.
pub(super) struct Lack {
    pub(super) what: String,
    pub(super) prevents: &'static str,
    /// How to record it with torch.profiler, or with any profiler.
    pub(super) remedy: &'static str,
}

const BOTH_ACTIVITIES: &str = "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])";

impl Scope<'_> {
    /// The clause for a truncated file, of which only the part that was read is known.
    fn here(&self) -> &'static str {
        if self.survey.source.complete { "" } else { " in the part that could be read" }
    }

    fn asked_for(&self, setting: &str) -> &'static str {
        match self.survey.settings.get(setting) {
            Some(true) => ", although the profiler was configured to record them",
            _ => "",
        }
    }
}

pub(super) fn events(scope: &Scope<'_>) -> Option<Lack> {
    if !scope.trace.is_empty() {
        return None;
    }
    let prevents = "any analysis";
    Some(match scope.survey.source.objects {
        0 => Lack {
            what: format!("no events{}", or_cut_off(scope.survey)),
            prevents,
            remedy: "stop the profiler (leave its `with` block) before the process exits, and copy the file only after that",
        },
        objects => Lack {
            what: format!("{objects} objects, none of a supported kind"),
            prevents,
            remedy: "export with torch.profiler's export_chrome_trace",
        },
    })
}

pub(super) fn gpu_activity(scope: &Scope<'_>) -> Option<Lack> {
    if scope.survey.recorded.gpu_activity {
        return None;
    }
    let cut = or_cut_off(scope.survey);
    let what = if let Some(why) = scope.trace.origin().format.no_gpu_activity {
        match scope.survey.source.complete {
            true => format!("no GPU activity: {why}, or nothing ran on a GPU"),
            false => format!("no GPU activity{}", scope.here()),
        }
    } else if !cut.is_empty() {
        format!("no GPU activity: the profiler ran with CPU activity only{cut}")
    } else if scope.survey.recorded.runtime_calls {
        "no GPU activity, although the CUDA runtime was called: the profiler ran with CPU activity only, or another \
         profiler was using CUPTI"
            .to_owned()
    } else {
        "no GPU activity: the profiler ran with CPU activity only, or nothing ran on a GPU".to_owned()
    };
    Some(Lack {
        what,
        prevents: "measuring GPU time, copy bandwidth and direction, overlap and idle gaps; copies can be classified only by the \
                   duration of their operator",
        remedy: BOTH_ACTIVITIES,
    })
}

/// GPU events that end up to one twentieth of the span before the host events are normal: these are the host's last
/// calls.
const LONG_TAIL: i64 = 20;

pub(super) fn gpu_tail(scope: &Scope<'_>) -> Option<Lack> {
    let lost = &scope.survey.source.lost;
    // Only if truncated within its events; the part after the event list contains none.
    let is_cut = lost.iter().any(|loss| loss.what.is_cut() && loss.what != LossKind::EndsAfterEvents);
    let (all, gpu) = (scope.survey.span?, scope.survey.gpu_span?);
    // Profilers write GPU events last: truncation removes them first.
    let end = |span: Span| span.start_ns + span.length_ns;
    let short = end(all) - end(gpu);
    if !is_cut || short.get() <= all.length_ns.get() / LONG_TAIL {
        return None;
    }
    let (why, remedy) = if lost.iter().any(|loss| loss.what == LossKind::MemoryBound) {
        ("was not read (memory limit)", "raise --memory")
    } else {
        (
            "was probably lost with the end of the file",
            "let the profiler finish writing before you copy the file",
        )
    };
    Some(Lack {
        what: format!("GPU events end {} before the host events: the rest {why}", time(short)),
        prevents: "analyzing the GPU for that time; it would look idle",
        remedy,
    })
}

pub(super) fn runtime_calls(scope: &Scope<'_>) -> Option<Lack> {
    let recorded = &scope.survey.recorded;
    (recorded.gpu_activity && !recorded.runtime_calls).then(|| Lack {
        what: format!("no CUDA runtime or driver calls{}", scope.here()),
        prevents: "matching launches to GPU work, and measuring blocking time in copies and launch queue depth",
        remedy: BOTH_ACTIVITIES,
    })
}

pub(super) fn correlation(scope: &Scope<'_>) -> Option<Lack> {
    let uncorrelated = scope.totals.gpu_work_without_correlation;
    (uncorrelated > 0).then(|| Lack {
        what: format!("{} no correlation ID", plural(uncorrelated, "GPU event has", "GPU events have")),
        prevents: "matching them to the host call that launched them",
        remedy: "use the profiler's own export; some converters drop the field",
    })
}

pub(super) fn operators(scope: &Scope<'_>) -> Option<Lack> {
    (!scope.survey.recorded.operators).then(|| Lack {
        what: format!("no framework operators{}", scope.here()),
        prevents: "naming the operator behind a copy or a gap",
        remedy: "profile(activities=[ProfilerActivity.CPU, …])",
    })
}

pub(super) fn copy_bytes(scope: &Scope<'_>) -> Option<Lack> {
    let without: u64 = scope.survey.copies.iter().map(|class| class.without_bytes).sum();
    (without > 0).then(|| Lack {
        what: format!(
            "{without} of {} copies do not record how many bytes they moved",
            scope.totals.count(EventKind::Copy)
        ),
        prevents: "the bandwidth of those copies",
        remedy: "use a newer PyTorch; older ROCm profilers do not record it",
    })
}

/// Copies that may or may not have crossed the bus.
pub(super) fn copy_direction(scope: &Scope<'_>) -> Option<Lack> {
    let unplaced = [
        (Direction::Unknown, "have no known direction", "has no known direction"),
        (Direction::HostToHost, "are host-to-host", "is host-to-host"),
    ];
    let clause = |(direction, several, one): (Direction, &str, &str)| {
        let classes = scope.survey.copies.iter().filter(|class| class.direction == direction);
        let count: u64 = classes.clone().map(|class| class.count).sum();
        let took = time(classes.map(|class| class.total_ns).sum());
        let verb = if count == 1 { one } else { several };
        (count > 0).then(|| format!("{} ({took}) {verb}", plural(count, "copy", "copies")))
    };
    let clauses: Vec<String> = unplaced.into_iter().filter_map(clause).collect();
    (!clauses.is_empty()).then(|| Lack {
        what: clauses.join(", "),
        prevents: "knowing whether they crossed the bus",
        remedy: "use the profiler's own export; some converters drop it",
    })
}

pub(super) fn memory_kind(scope: &Scope<'_>) -> Option<Lack> {
    let unknown = scope
        .survey
        .copies
        .iter()
        .filter(|class| [class.src, class.dst].contains(&MemoryKind::Unknown))
        .map(|class| class.count)
        .sum::<u64>();
    (unknown > 0).then(|| Lack {
        what: format!(
            "{unknown} {} not record whether host memory was pageable or pinned",
            if unknown == 1 { "copy does" } else { "copies do" }
        ),
        prevents: "distinguishing pageable copies from slow links",
        remedy: "none: the ROCm profiler does not record it",
    })
}

pub(super) fn gpu_names(scope: &Scope<'_>) -> Option<Lack> {
    (scope.survey.recorded.gpu_activity && scope.survey.gpus.is_empty()).then(|| Lack {
        what: "the GPU's name is not recorded".to_owned(),
        prevents: "knowing its link: the peak must be given or assumed",
        remedy: "keep deviceProperties when you shorten a trace",
    })
}

pub(super) fn gpu_of_process(scope: &Scope<'_>) -> Option<Lack> {
    let devices = &scope.trace.origin().ambiguous_devices;
    let numbers: Vec<_> = devices.iter().map(i32::to_string).collect();
    (!numbers.is_empty()).then(|| Lack {
        what: format!(
            "several processes use device {}, and no table says which GPU each process used",
            numbers.join(", ")
        ),
        prevents: "separating their GPUs: with CUDA_VISIBLE_DEVICES these may be different GPUs, and the figures of one GPU then mix them",
        remedy: "",
    })
}

pub(super) fn graph_nodes(scope: &Scope<'_>) -> Option<Lack> {
    (scope.trace.origin().settings.get("cuda_graph_nodes") == Some(&false)).then(|| Lack {
        what: "each CUDA graph was recorded as a single GPU event".to_owned(),
        prevents: "seeing the copies and kernels in it; the whole graph counts as compute",
        remedy: "",
    })
}

pub(super) fn kernel_records(scope: &Scope<'_>) -> Option<Lack> {
    // A truncated file has lost the work of its last launches; another check reports that.
    if !scope.survey.recorded.gpu_activity || !scope.trace.stats().is_complete() {
        return None;
    }
    let launches = LaunchRecords::of(scope.trace);
    launches.are_missing().then(|| Lack {
        what: format!(
            "{} of {} have no kernel in the trace: the profiler dropped records",
            launches.without_work,
            plural(launches.all as u64, "kernel launch", "kernel launches")
        ),
        prevents: "knowing what the GPU did then: it looks idle",
        remedy: "record fewer steps, or give CUPTI larger buffers",
    })
}

pub(super) fn graph_work(scope: &Scope<'_>) -> Option<Lack> {
    // A truncated file has lost the work of its last launches; another check reports that.
    if !scope.survey.recorded.gpu_activity || !scope.trace.stats().is_complete() {
        return None;
    }
    let graphs = GraphLaunches::of(scope.trace);
    graphs.are_missing().then(|| Lack {
        what: format!(
            "{} of {} left no GPU work in the trace",
            graphs.unseen.len(),
            plural(graphs.all as u64, "CUDA graph launch", "CUDA graph launches")
        ),
        prevents: "knowing what the GPU did then: it looks idle",
        remedy: "",
    })
}

pub(super) fn page_faults(scope: &Scope<'_>) -> Option<Lack> {
    if scope.trace.origin().settings.get("gpu_page_faults") != Some(&false) {
        return None;
    }
    let migrates = scope.trace.events().any(|event| event.migration().is_some());
    let has_faults = || scope.trace.events().any(|event| event.kind() == EventKind::PageFault);
    (migrates && !has_faults()).then(|| Lack {
        what: "managed memory migrated, but page faults were not recorded".to_owned(),
        prevents: "knowing how long kernels waited for pages, and which host code accessed them",
        remedy: "",
    })
}

pub(super) fn shapes(scope: &Scope<'_>) -> Option<Lack> {
    let recorded = &scope.survey.recorded;
    // Some formats never have shapes.
    (recorded.operators && !recorded.shapes && scope.trace.origin().format.records_shapes).then(|| Lack {
        what: format!("no input shapes{}{}", scope.here(), scope.asked_for("record_shapes")),
        prevents: if recorded.gpu_activity {
            "knowing the sizes of copy operators; GPU copies record their own"
        } else {
            "knowing the sizes and rates of copies"
        },
        remedy: "profile(…, record_shapes=True)",
    })
}

pub(super) fn stacks(scope: &Scope<'_>) -> Option<Lack> {
    (!scope.survey.recorded.stacks).then(|| Lack {
        what: format!("no Python stacks{}{}", scope.here(), scope.asked_for("with_stack")),
        prevents: "naming the source line behind a copy or a gap",
        remedy: "profile(…, with_stack=True); it slows the host, so turn it off when you measure time",
    })
}

pub(super) fn memory(scope: &Scope<'_>) -> Option<Lack> {
    (!scope.survey.recorded.memory).then(|| Lack {
        what: format!("no memory samples{}{}", scope.here(), scope.asked_for("profile_memory")),
        prevents: "knowing whether offloaded weights would fit on the GPU",
        remedy: "profile(…, profile_memory=True)",
    })
}

pub(super) fn synchronizations(scope: &Scope<'_>) -> Option<Lack> {
    let recorded = &scope.survey.recorded;
    (recorded.gpu_activity && !recorded.synchronizations).then(|| Lack {
        what: format!("no synchronization events{}", scope.here()),
        prevents: "knowing the exact waits between streams; they are inferred from timing",
        remedy: "profile(…, experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True))",
    })
}

pub(super) fn steps(scope: &Scope<'_>) -> Option<Lack> {
    scope.survey.steps.is_empty().then(|| Lack {
        what: format!("no step annotations{}", scope.here()),
        prevents: "per-step figures, unless iterations are detected in the launches",
        remedy: "call prof.step() in the loop, or wrap each step in record_function(\"step\")",
    })
}

/// The clause that says the file was truncated, or nothing.
fn or_cut_off(survey: &Survey) -> String {
    let cut = |place: &str, offset: u64| {
        let json = if survey.source.compressed { " of the JSON" } else { "" };
        format!(", or the file is truncated before it (at byte {offset}{json}, {place})")
    };
    let clause = survey.source.lost.iter().find_map(|loss| {
        Some(match loss.what {
            LossKind::EndsInsideEvent => cut("inside an event", loss.first_offset),
            LossKind::EndsBetweenEvents => cut("between events", loss.first_offset),
            LossKind::EndsBeforeEvents => cut("before the event list", loss.first_offset),
            LossKind::MemoryBound => ", or reading stopped before it (at the memory limit)".to_owned(),
            _ => return None,
        })
    });
    clause.unwrap_or_default()
}

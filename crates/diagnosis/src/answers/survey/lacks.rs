//! The checks for what is missing from a trace, one function each.

use std::cell::OnceCell;

use busbound_trace::{Direction, EventKind, LossKind, MemoryKind, Repair, Trace};

use super::other_profiler::other_profiler;
use super::{Span, Survey, Totals};
use crate::quantity::{count, plural, time};
use busbound_cause::{ClockFault, Records};

/// The input of a check.
pub(super) struct Scope<'s> {
    pub(super) trace: &'s Trace,
    pub(super) totals: &'s Totals,
    pub(super) survey: &'s Survey,
    /// How calls and work fit together.
    pub(super) records: OnceCell<Records>,
}

/// The result of a check if something is missing.
pub(super) struct Lack {
    pub(super) what: String,
    pub(super) prevents: &'static str,
    /// How to record it with torch.profiler, or with any profiler.
    pub(super) remedy: &'static str,
}

/// What helps against dropped records.
pub(super) const FEWER: &str = "record fewer steps (schedule(active=3)) or fewer activities (no with_stack, no profile_memory), or give CUPTI \
                     larger buffers";
pub(super) const BOTH_ACTIVITIES: &str = "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])";

impl Scope<'_> {
    pub(super) fn records(&self) -> &Records {
        self.records.get_or_init(|| Records::of(self.trace))
    }

    /// Who is to blame for records that are not there.
    pub(super) fn dropped(&self) -> &'static str {
        if self.trace.stats().is_complete() {
            "the profiler dropped records"
        } else {
            "they are in the lost part, or the profiler dropped them"
        }
    }

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

/// A file that ends early: recording more would make the next one end earlier.
pub(super) fn whole_file(scope: &Scope<'_>) -> Option<Lack> {
    let is_cut = |what: LossKind| {
        matches!(
            what,
            LossKind::EndsInsideEvent
                | LossKind::EndsBetweenEvents
                | LossKind::EndsBeforeEvents
                | LossKind::GzipTruncated
        )
    };
    scope.survey.source.lost.iter().any(|loss| is_cut(loss.what)).then(|| Lack {
        what: "the end of the file: it was cut off while it was written or copied".to_owned(),
        prevents: "any statement about what came after it; profilers write GPU events last",
        remedy: "record less, so that the file is written completely: a few steps with schedule(wait=1, warmup=1, active=3), \
                 with_stack=False, profile_memory=False; leave the profiler's `with` block before the process ends, and copy \
                 the file after that. Recordings of `busbound record` survive a crash",
    })
}

pub(super) fn gpu_activity(scope: &Scope<'_>) -> Option<Lack> {
    if scope.survey.recorded.gpu_activity {
        return None;
    }
    let cut = or_cut_off(scope.survey);
    if let Some((what, remedy)) = other_profiler(scope.trace) {
        return Some(Lack {
            what: format!("no GPU activity that can be read: the file is {what}"),
            prevents: "any statement about the GPU",
            remedy,
        });
    }
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
        prevents: "analyzing the GPU for that time",
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
    let records = scope.records();
    if records.ids_are_ambiguous() {
        return Some(Lack {
            what: format!(
                "{} a correlation ID that several calls have",
                plural(records.ambiguous as u64, "GPU event has", "GPU events have")
            ),
            prevents: "matching them to the host call that launched them",
            remedy: "use the profiler's own export of one process; some converters change the field",
        });
    }
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
        prevents: "knowing the bandwidth of those copies",
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
    let is_named = scope.survey.gpus.iter().any(|gpu| !gpu.name.trim().is_empty());
    (scope.survey.recorded.gpu_activity && !is_named).then(|| Lack {
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

pub(super) fn clocks(scope: &Scope<'_>) -> Option<Lack> {
    let what = match scope.records().clock_fault()? {
        ClockFault::Units(pace) => {
            // Units differ by powers of ten; the rest is how long the run waited.
            let times = 10f64.powf(pace.log10().abs().round());
            let (more, less) = if pace > 1.0 { ("GPU", "host") } else { ("host", "GPU") };
            format!("{more} times are about {times:.0} times those of the {less}: their units differ")
        }
        ClockFault::Early(by) => format!(
            "GPU work begins up to {} before the call that launched it: the clocks of host and GPU are apart",
            time(by)
        ),
        ClockFault::Late(by) => format!(
            "GPU times are about {} later than the calls allow: the clocks of host and GPU are apart",
            time(by)
        ),
    };
    Some(Lack {
        what,
        prevents: "knowing what the GPU waited for",
        remedy: "use the profiler's own export, or record again; with a newer PyTorch if the file is its own",
    })
}

pub(super) fn stream_order(scope: &Scope<'_>) -> Option<Lack> {
    let records = scope.records();
    records.streams_overlap().then(|| Lack {
        what: format!(
            "{:.0}% of the work overlaps other work of the same stream, which no GPU does: durations or stream numbers are wrong",
            100.0 * records.overlapping
        ),
        prevents: "knowing how long the work took",
        remedy: "use the profiler's own export; some converters change times or merge streams",
    })
}

/// No link between host and GPU is faster, in GB/s: twice the peak of NVLink-C2C.
const NO_LINK: f64 = 900.0;

pub(super) fn copy_rates(scope: &Scope<'_>) -> Option<Lack> {
    let crosses = |direction| matches!(direction, Direction::HostToDevice | Direction::DeviceToHost);
    let rate = |bytes: u64, ns: i64| bytes as f64 / (ns as f64).max(1.0);
    let classes =
        scope.survey.copies.iter().filter(|class| crosses(class.direction) && class.total_ns.get() > 0);
    let fastest =
        classes.map(|class| rate(class.bytes.get(), class.total_ns.get())).max_by(f64::total_cmp)?;
    (fastest > NO_LINK).then(|| Lack {
        what: format!(
            "copies between host and GPU run at {} GB/s, faster than any link: their times or sizes are wrong",
            count(fastest.round() as u64)
        ),
        prevents: "any statement about time",
        remedy: "use the profiler's own export; some converters change units",
    })
}

/// They are left out, so no figure is wrong; but something was merged or written twice.
pub(super) fn duplicates(scope: &Scope<'_>) -> Option<Lack> {
    let twice = *scope.survey.repairs.get(&Repair::DuplicateEvent)?;
    Some(Lack {
        what: format!("{} in the file twice, and count once", plural(twice, "event is", "events are")),
        prevents: "nothing, if the file was merged with a copy of itself; check how it was made",
        remedy: "use the profiler's own export",
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
    (recorded.operators
        && !recorded.shapes
        && scope.survey.source.complete
        && scope.trace.origin().format.records_shapes)
        .then(|| Lack {
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
    (!scope.survey.recorded.stacks && scope.survey.source.complete).then(|| Lack {
        what: format!("no Python stacks{}{}", scope.here(), scope.asked_for("with_stack")),
        prevents: "naming the source line behind a copy or a gap",
        remedy: "profile(…, with_stack=True); it slows the host, so turn it off when you measure time",
    })
}

pub(super) fn memory(scope: &Scope<'_>) -> Option<Lack> {
    (!scope.survey.recorded.memory && scope.survey.source.complete).then(|| Lack {
        what: format!("no memory samples{}{}", scope.here(), scope.asked_for("profile_memory")),
        prevents: "knowing whether offloaded weights would fit on the GPU",
        remedy: "profile(…, profile_memory=True)",
    })
}

pub(super) fn synchronizations(scope: &Scope<'_>) -> Option<Lack> {
    let recorded = &scope.survey.recorded;
    (recorded.gpu_activity && !recorded.synchronizations && scope.survey.source.complete).then(|| Lack {
        what: format!("no synchronization events{}", scope.here()),
        prevents: "knowing the exact waits between streams; they are inferred from timing",
        remedy: "profile(…, experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True))",
    })
}

pub(super) fn steps(scope: &Scope<'_>) -> Option<Lack> {
    scope.survey.steps.is_empty().then(|| Lack {
        what: format!("no step annotations{}", scope.here()),
        prevents: "computing figures per step, unless iterations are detected in the launches",
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

//! What does the trace lack, what does that prevent, and how is it recorded next time?

use busbound_trace::{Direction, EventKind, LossKind, MemoryKind, Trace};
use serde::Serialize;

use super::{Span, Survey, Totals};
use crate::quantity::{plural, time};
use busbound_cause::GraphLaunches;

/// Launches of graphs whose work is not in the trace.
pub(crate) const GRAPH_WORK: &str = "graph_work";

/// One thing the trace does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    pub id: &'static str,
    /// What is not there, and why, as far as that can be told.
    pub what: String,
    /// Which answers that rules out.
    pub prevents: &'static str,
    /// How to have it next time.
    pub remedy: &'static str,
}

pub(crate) fn missing(trace: &Trace, totals: &Totals, survey: &Survey) -> Vec<Missing> {
    let recorded = &survey.recorded;
    let mut list = Vec::new();
    // Of a cut file only what was read is known.
    let here = if survey.source.complete { "" } else { " in the part that could be read" };
    let asked_for = |setting: &str| match survey.settings.get(setting) {
        Some(true) => ", though the profiler was asked for them",
        _ => "",
    };
    let format = trace.origin().format;
    let mut lack = |id, what: String, prevents, remedy| {
        let remedy = (format.remedy)(id, survey.source.complete).unwrap_or(remedy);
        list.push(Missing { id, what, prevents, remedy });
    };

    if trace.is_empty() && survey.source.objects > 0 {
        lack(
            "events",
            format!("{} objects, none of a kind that is kept", survey.source.objects),
            "every answer",
            "export with torch.profiler's export_chrome_trace",
        );
        return list;
    }
    if trace.is_empty() {
        lack(
            "events",
            format!("no events at all{}", or_cut_off(survey)),
            "every answer",
            "stop the profiler (leave its `with` block) before the process ends, and copy the file only then",
        );
        return list;
    }
    if !recorded.gpu_activity {
        let known = format.no_gpu_activity.map(|why| match survey.source.complete {
            true => format!("no GPU activity: {why}, or nothing ran on a GPU"),
            false => format!("no GPU activity{here}"),
        });
        let cause = known.unwrap_or_else(|| match (or_cut_off(survey), recorded.runtime_calls) {
            (cut, _) if !cut.is_empty() => {
                format!("no GPU activity: the profiler ran with CPU activity only{cut}")
            }
            (_, true) => "no GPU activity, though the CUDA runtime was called: the profiler ran with CPU activity only, \
                          or another profiler held CUPTI"
                .to_owned(),
            (_, false) => "no GPU activity: the profiler ran with CPU activity only, or nothing ran on a GPU".to_owned(),
        });
        lack(
            "gpu_activity",
            cause,
            "device time, copy bandwidth and direction, overlap, idle gaps; copies can be judged only by how long their \
             operator took",
            "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
        );
    }
    let is_cut = survey.source.lost.iter().any(|loss| {
        // Cut within its events, that is; what follows them holds none.
        loss.what.is_cut() && loss.what != LossKind::EndsAfterEvents
    });
    let stopped = survey.source.lost.iter().any(|loss| loss.what == LossKind::MemoryBound);
    if let (Some(all), Some(gpu), true) = (survey.span, survey.gpu_span, is_cut) {
        // Profilers write device events last: a cut takes them first.
        let end = |span: Span| span.start_ns + span.length_ns;
        let short = end(all) - end(gpu);
        if short.get() > all.length_ns.get() / 20 {
            lack(
                "gpu_tail",
                format!(
                    "GPU events end {} before the host's: the rest {}",
                    time(short),
                    if stopped {
                        "was not read (memory bound)"
                    } else {
                        "was probably cut off with the end of the file"
                    }
                ),
                "figures about the device for that time; it would look idle there",
                if stopped {
                    "raise --memory"
                } else {
                    "let the profiler finish writing before the file is copied"
                },
            );
        }
    }
    if recorded.gpu_activity && !recorded.runtime_calls {
        lack(
            "runtime_calls",
            format!("no CUDA runtime or driver calls{here}"),
            "who launched what, blocking time inside copies, launch queue depth",
            "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
        );
    }
    let lone = totals.gpu_work_without_correlation;
    if lone > 0 {
        lack(
            "correlation",
            format!("{lone} GPU events have no correlation"),
            "joining them to the host call that launched them",
            "use the profiler's own export; some converters drop the field",
        );
    }
    if !recorded.operators {
        lack(
            "operators",
            format!("no framework operators{here}"),
            "naming the operator behind a copy or a gap",
            "profile(activities=[ProfilerActivity.CPU, …])",
        );
    }
    let without_bytes: u64 = survey.copies.iter().map(|class| class.without_bytes).sum();
    if without_bytes > 0 {
        lack(
            "copy_bytes",
            format!(
                "{without_bytes} of {} copies do not say how many bytes they moved",
                totals.count(EventKind::Copy)
            ),
            "the bandwidth of those copies",
            "use a newer PyTorch; older ROCm profilers do not record it",
        );
    }
    if let Some(what) = unplaced_copies(survey) {
        lack(
            "copy_direction",
            what,
            "telling whether they crossed the bus",
            "use the profiler's own export; some converters drop it",
        );
    }
    let unknown_memory = |kind| kind == MemoryKind::Unknown;
    let untold: u64 = survey
        .copies
        .iter()
        .filter(|class| unknown_memory(class.src) || unknown_memory(class.dst))
        .map(|class| class.count)
        .sum();
    if untold > 0 {
        lack(
            "memory_kind",
            format!(
                "{untold} {} not say whether host memory was pageable or pinned",
                if untold == 1 { "copy does" } else { "copies do" }
            ),
            "telling pageable copies from slow links",
            "nothing to be done: the ROCm profiler does not record it",
        );
    }
    if recorded.gpu_activity && survey.gpus.is_empty() {
        lack(
            "gpu_names",
            "the GPU's name is not in it".to_owned(),
            "knowing its link: its peak must be given or assumed",
            "keep deviceProperties when cutting a trace down",
        );
    }
    if !trace.origin().ambiguous_devices.is_empty() {
        let numbers: Vec<_> = trace.origin().ambiguous_devices.iter().map(i32::to_string).collect();
        lack(
            "gpu_of_process",
            format!(
                "several processes use device {}, and no table says which GPU each of them means",
                numbers.join(", ")
            ),
            "telling their GPUs apart: with CUDA_VISIBLE_DEVICES they may be several, and figures of one GPU then mix them",
            "",
        );
    }
    if trace.origin().settings.get("cuda_graph_nodes") == Some(&false) {
        lack(
            "graph_nodes",
            "CUDA graphs were recorded as one piece of work each".to_owned(),
            "seeing the copies and kernels in them; their whole time counts as compute",
            "",
        );
    }
    // A file that was cut off has lost the work of its last launches; that is said there.
    if recorded.gpu_activity && trace.stats().is_complete() {
        let graphs = GraphLaunches::of(trace);
        if graphs.are_missing() {
            lack(
                GRAPH_WORK,
                format!(
                    "{} of {} left no trace of what ran in them",
                    graphs.unseen.len(),
                    plural(graphs.all as u64, "launch of a CUDA graph", "launches of CUDA graphs")
                ),
                "telling what the GPU did then: it looks idle",
                "",
            );
        }
    }
    let has = |kind| trace.events().any(|event| event.kind() == kind);
    let migrates = || trace.events().any(|event| event.migration().is_some());
    if trace.origin().settings.get("gpu_page_faults") == Some(&false)
        && migrates()
        && !has(EventKind::PageFault)
    {
        lack(
            "page_faults",
            "managed memory moved, and page faults were not recorded".to_owned(),
            "telling how long kernels waited for pages, and which code of the host touched them",
            "",
        );
    }
    if recorded.operators && !recorded.shapes && format.records_shapes {
        let prevents = if recorded.gpu_activity {
            "sizes of copy operators; GPU copies tell their own"
        } else {
            "sizes of copies, and with them any rate"
        };
        lack(
            "shapes",
            format!("no input shapes{here}{}", asked_for("record_shapes")),
            prevents,
            "profile(…, record_shapes=True)",
        );
    }
    if !recorded.stacks {
        lack(
            "stacks",
            format!("no Python stacks{here}{}", asked_for("with_stack")),
            "naming the source line behind a copy or a gap",
            "profile(…, with_stack=True); it slows the host, so leave it out when timing",
        );
    }
    if !recorded.memory {
        lack(
            "memory",
            format!("no memory samples{here}{}", asked_for("profile_memory")),
            "telling whether offloaded weights would fit on the GPU",
            "profile(…, profile_memory=True)",
        );
    }
    if recorded.gpu_activity && !recorded.synchronisations {
        lack(
            "synchronisations",
            format!("no synchronisation events{here}"),
            "exact waits between streams; they are inferred from order and time",
            "profile(…, experimental_config=_ExperimentalConfig(enable_cuda_sync_events=True))",
        );
    }
    if survey.steps.is_empty() {
        lack(
            "steps",
            format!("no step annotations{here}"),
            "figures per step, unless a period can be found in the launches",
            "call prof.step() in the loop, or wrap each step in record_function(\"step\")",
        );
    }
    list
}

/// Copies that may or may not have crossed the bus, if there are any.
fn unplaced_copies(survey: &Survey) -> Option<String> {
    let told = [
        (Direction::Unknown, "have no known direction", "has no known direction"),
        (Direction::HostToHost, "went from host to host", "went from host to host"),
    ];
    let clause = |(direction, several, one): (Direction, &str, &str)| {
        let classes = survey.copies.iter().filter(|class| class.direction == direction);
        let count: u64 = classes.clone().map(|class| class.count).sum();
        let took = time(classes.map(|class| class.total_ns).sum());
        let verb = if count == 1 { one } else { several };
        (count > 0).then(|| format!("{} ({took}) {verb}", plural(count, "copy", "copies")))
    };
    let clauses: Vec<String> = told.into_iter().filter_map(clause).collect();
    (!clauses.is_empty()).then(|| clauses.join(", "))
}

/// The clause that says the file was cut, or nothing.
fn or_cut_off(survey: &Survey) -> String {
    let lost = &survey.source.lost;
    let end = lost.iter().find_map(|loss| {
        let place = match loss.what {
            LossKind::EndsInsideEvent => "inside an event",
            LossKind::EndsBetweenEvents => "between events",
            LossKind::EndsBeforeEvents => "before its list of events",
            LossKind::MemoryBound => "where the memory bound was reached",
            _ => return None,
        };
        Some((loss.first_offset, place))
    });
    match end {
        Some((_, place @ "where the memory bound was reached")) => {
            format!(", or reading stopped before it ({place})")
        }
        Some((offset, place)) => {
            let json = if survey.source.compressed { " of the JSON" } else { "" };
            format!(", or the file ends before it (it ends at byte {offset}{json}, {place})")
        }
        None => String::new(),
    }
}

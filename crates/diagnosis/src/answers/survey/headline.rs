//! The answer in one sentence.

use busbound_trace::LossKind;

use super::Survey;
use crate::limits::id::LimitationId;
use crate::quantity::{count, time};

/// `withheld`: the reason why there is no verdict.
pub(crate) fn headline(survey: &Survey, withheld: Option<LimitationId>) -> String {
    if survey.source.events == 0 && survey.source.objects > 0 {
        return format!(
            "{}: {} objects, none of a supported kind.",
            state(survey, withheld),
            count(survey.source.objects)
        );
    }
    if survey.source.events == 0 {
        return format!("{}: no events, only profiler metadata.", state(survey, withheld));
    }
    let mut parts = Vec::new();
    if survey.recorded.gpu_activity {
        let work: u64 =
            survey.devices.iter().flat_map(|d| &d.streams).map(|s| s.kernels + s.copies + s.memsets).sum();
        let on = match survey.devices.iter().filter(|d| d.streams.iter().any(|s| s.work_ns.get() > 0)).count()
        {
            0 | 1 => "1 GPU".to_owned(),
            several => format!("{several} GPUs"),
        };
        let name = survey.devices.iter().find_map(|device| device.name.as_deref());
        let named = name.map(|name| format!(" ({name})")).unwrap_or_default();
        parts.push(format!("{} GPU events on {on}{named}", count(work)));
    } else {
        parts.push("host events only, no GPU events".to_owned());
    }
    if let Some(span) = survey.span {
        parts.push(time(span.length_ns));
    }
    match survey.steps.first() {
        Some(steps) if steps.is_profiler_step => {
            let plural = if steps.count == 1 { "" } else { "s" };
            parts.push(format!("{} step{plural}", steps.count));
        }
        Some(steps) => parts.push(format!("{} × `{}`", steps.count, steps.pattern)),
        None => parts.push("no steps marked".to_owned()),
    }
    format!("{}: {}.", state(survey, withheld), parts.join(", "))
}

fn state(survey: &Survey, withheld: Option<LimitationId>) -> &'static str {
    if survey.source.complete {
        "Complete trace"
    } else if survey.source.lost.iter().any(|loss| loss.what == LossKind::MemoryBound) {
        "Partly read (memory limit)"
    } else if survey.source.lost.iter().any(|loss| loss.what.is_cut()) {
        "Truncated trace"
    } else {
        match withheld {
            Some(LimitationId::KernelRecords | LimitationId::GraphWork | LimitationId::CallRecords) => {
                "Incomplete trace"
            }
            Some(id) if id.is_contradiction() => "Inconsistent trace",
            _ => "Damaged trace",
        }
    }
}

//! The answer in one sentence.

use busbound_trace::LossKind;

use super::Survey;
use crate::quantity::{count, time};

pub(crate) fn headline(survey: &Survey) -> String {
    if survey.source.events == 0 && survey.source.objects > 0 {
        return format!(
            "{}: {} objects, none of a supported kind.",
            state(survey),
            count(survey.source.objects)
        );
    }
    if survey.source.events == 0 {
        return format!("{}: no events, only profiler metadata.", state(survey));
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
    format!("{}: {}.", state(survey), parts.join(", "))
}

fn state(survey: &Survey) -> &'static str {
    if survey.source.complete {
        "Complete trace"
    } else if survey.source.lost.iter().any(|loss| loss.what == LossKind::MemoryBound) {
        "Partly read (memory limit)"
    } else if survey.source.lost.iter().any(|loss| loss.what.is_cut()) {
        "Truncated trace"
    } else {
        "Damaged trace"
    }
}

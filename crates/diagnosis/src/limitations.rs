//! What can this trace not tell?

use busbound_machine::LinkSource;
use busbound_trace::SourceFormat;
use serde::Serialize;

use crate::activity::gaps::GapCause;
use crate::activity::timeline::DeviceTimeline;
use crate::analysis::facts::Facts;
use crate::analysis::incomplete;
use crate::answers::survey::{LostPart, Survey};
use crate::options::Options;
use crate::quantity::{milliseconds, plural};
use crate::steps::steady::LeftOut;
use crate::steps::window::StepsFound;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limitation {
    pub id: &'static str,
    pub text: String,
}

pub(crate) fn limitations(
    facts: &Facts<'_>,
    survey: &Survey,
    options: &Options,
    left_out: &LeftOut,
) -> Vec<Limitation> {
    let mut list = Vec::new();
    let mut say = |id, text: String| list.push(Limitation { id, text });
    for lost in &survey.source.lost {
        say("lost", format!("{}; what was lost is in no figure.", lost_part(lost, survey.source.format)));
    }
    for missing in &survey.missing {
        // What only names things, or what no copy needs, is said by the survey.
        if matches!(missing.id, "stacks" | "memory" | "synchronisations" | "shapes" | "steps") {
            continue;
        }
        say(missing.id, format!("{}; that prevents {}.", missing.what, missing.prevents));
    }
    if facts.window.steps.is_empty() {
        let text = match &options.steps {
            Some(wanted) => {
                format!("No annotation matches --steps {wanted}, so figures are for the whole trace.")
            }
            None => {
                "No steps are marked and no period shows in the launches, so figures are for the whole trace."
                    .to_owned()
            }
        };
        say("steps", text);
    }
    if facts.window.found == Some(StepsFound::Period) {
        say(
            "steps_by_period",
            format!(
                "No steps are marked: a round is {}, and a step of the program may be several. Name an annotation with --steps.",
                facts.window.pattern.as_deref().unwrap_or_default()
            ),
        );
    }
    if facts.window.early_rounds > 0.05 * facts.window.steps.len() as f64 {
        say(
            "early_work",
            format!(
                "Work of about {:.1} steps had been queued when the first step began and counts too; its copies may have been over before, so \
                 that figures a step tend to the kernels. --steps '{}' speaks of whole steps alone.",
                facts.window.early_rounds,
                facts.window.pattern.as_deref().unwrap_or_default().trim_end_matches('*'),
            ),
        );
    }
    if left_out.others > 0 {
        say(
            "outliers_left_out",
            format!(
                "Steps that took clearly longer make up much of the trace; figures are for the {} steps {} to {} without one. --warmup 0 keeps them all.",
                left_out.steady.len(),
                left_out.steady.start,
                left_out.steady.end - 1
            ),
        );
    }
    if left_out.warm_up > 0 && options.warmup.is_none() {
        say(
            "warm_up",
            format!(
                "Left out as warm-up, because longer than 1.5 times what came after: {} at the beginning; --warmup 0 keeps all.",
                plural(left_out.warm_up as u64, "step", "steps")
            ),
        );
    }
    if facts.link.source == LinkSource::Assumed && !facts.copies.is_empty() {
        say(
            "link_assumed",
            format!("The GPU's link is not known; {} is assumed. Give it with --machine.", facts.link.name),
        );
    } else if facts.link.source == LinkSource::Recorded && !facts.copies.is_empty() {
        say("link_state", "Whether the process ran on the wrong NUMA node is not in a recording.".to_owned());
    } else if !facts.copies.is_empty() {
        say(
            "link_state",
            "Whether the link was trained down or the process ran on the wrong NUMA node is not in a trace."
                .to_owned(),
        );
    }
    let busy: Vec<f64> = facts.timelines.iter().map(compute_share).collect();
    let (least, most) =
        busy.iter().fold((1.0f64, 0.0f64), |(least, most), share| (least.min(*share), most.max(*share)));
    if most - least > 0.25 {
        say(
            "unlike_gpus",
            format!(
                "The GPUs do not work alike (compute {:.0} to {:.0} % of their time): the verdict is for all together, --format json has each.",
                100.0 * least,
                100.0 * most
            ),
        );
    }
    if facts.is_faster_than_link() {
        say(
            "link_wrong",
            format!(
                "Copies run faster than {} can: the link is not what is stated. Give it with --machine.",
                facts.link.name
            ),
        );
    }
    let has_kernels = facts.time.compute_ms > 0.0 || facts.time.comm_ms > 0.0;
    if !facts.copies.is_empty() && !has_kernels && incomplete::reason(facts.trace).is_none() {
        say("no_kernels", "No kernel was recorded, so all copies look exposed.".to_owned());
    }
    let beside_faults = facts.managed().waiting_ms();
    if beside_faults > 0.02 * facts.time.span_ms {
        say(
            "managed_in_kernels",
            format!(
                "Kernels run for {} a {} while pages of managed memory are on their way; in the table that time counts as compute.",
                milliseconds(beside_faults / facts.steps()),
                facts.unit()
            ),
        );
    }
    let host_bound = facts.idle_ms(GapCause::Launch) + facts.idle_ms(GapCause::Synchronisation);
    if host_bound > 0.1 * facts.time.span_ms {
        say(
            "profiler_cost",
            "The profiler slows the host: without it less of this time is spent waiting for launches."
                .to_owned(),
        );
    }
    if survey.rank.as_ref().is_some_and(|rank| rank.world_size.is_some_and(|n| n > 1)) {
        say(
            "one_rank",
            "One rank of several: why a collective took long may lie in another rank, whose clock is not this one's.".to_owned(),
        );
    }
    list
}

fn lost_part(lost: &LostPart, format: &str) -> String {
    if !lost.what.has_offset() {
        let times = if lost.count > 1 { format!(", {} times", lost.count) } else { String::new() };
        let table = lost.table.as_ref().map(|table| format!(" in table {table}")).unwrap_or_default();
        return format!("{}{table}{times}", lost.text);
    }
    let place = match lost.in_compressed_bytes {
        true => " of the compressed file",
        false if format == SourceFormat::KinetoJson.id() => " of the JSON",
        false => "",
    };
    match lost.count {
        1 => format!("{} at byte {}{place}", lost.text, lost.first_offset),
        count => format!(
            "{}: in {}, first at byte {}{place}",
            lost.text,
            plural(count, "place", "places"),
            lost.first_offset
        ),
    }
}

fn compute_share(timeline: &DeviceTimeline) -> f64 {
    let span = timeline.hull().map_or(0, |hull| hull.length().get());
    if span == 0 { 0.0 } else { timeline.compute.length().get() as f64 / span as f64 }
}

//! What can this trace not tell?

use busbound_machine::LinkSource;
use serde::Serialize;

use crate::facts::Facts;
use crate::gaps::GapCause;
use crate::survey::Survey;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limitation {
    pub id: &'static str,
    pub text: String,
}

pub(crate) fn limitations(facts: &Facts<'_>, survey: &Survey) -> Vec<Limitation> {
    let mut list = Vec::new();
    let mut say = |id, text: String| list.push(Limitation { id, text });
    for lost in &survey.source.lost {
        let place = if lost.in_compressed_bytes { "of the compressed file" } else { "of the JSON" };
        say(
            "lost",
            format!(
                "{}: in {} place(s), first at byte {} {place}; what was lost is in no figure.",
                lost.text, lost.count, lost.first_offset
            ),
        );
    }
    for missing in &survey.missing {
        // What only names things, or what no copy needs, is said by the survey.
        if matches!(missing.id, "stacks" | "memory" | "synchronisations" | "shapes" | "steps") {
            continue;
        }
        say(missing.id, format!("{}; that prevents {}.", missing.what, missing.prevents));
    }
    if facts.window.steps.is_empty() {
        say("steps", "No steps are marked, so figures are for the whole trace.".to_owned());
    }
    if facts.link.source == LinkSource::Assumed && !facts.copies.is_empty() {
        say(
            "link_assumed",
            format!("The GPU's link is not known; {} is assumed. Give it with --machine.", facts.link.name),
        );
    } else if !facts.copies.is_empty() {
        say(
            "link_state",
            "Whether the link was trained down or the process ran on the wrong NUMA node is not in a trace."
                .to_owned(),
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

//! How long would a step of the whole job take with a change on one rank?

use busbound_cause::{CollectiveOp, HostCollective};
use busbound_machine::Machine;
use busbound_trace::{EventId, Trace};
use busbound_whatif::replay::{Change, Job, JobRank, NoJob, Predicted, Replay};

use super::survey::{Source, rank_of};
use super::whatif::{NoReplay, WhatIf, of_replay, of_steady, replayed};
use crate::analysis::arrivals::{keyed, keyed_on_host};
use crate::analysis::facts::Facts;
use crate::options::Options;

/// One rank of a job, ready to replay with the others.
#[derive(Debug)]
pub struct JobMember {
    /// `None` if neither the trace nor its file name has it.
    pub rank: Option<u32>,
    /// What the changes do to this rank alone.
    alone: WhatIf,
    /// Whether its collectives are those of a library on the host.
    is_on_host: bool,
    replay: JobRank,
}

/// Why the ranks of a job cannot be replayed together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoJobReplay {
    #[error("no trace is of rank {rank}: there are ranks {known}")]
    NoSuchRank { rank: u32, known: String },
    #[error("no trace has a known rank, so none is of rank {rank}")]
    NoRanks { rank: u32 },
    #[error("two traces are of rank {rank}")]
    Twice { rank: u32 },
    #[error(transparent)]
    Job(#[from] NoJob),
}

const ON_HOST_NOTE: &str = "The ranks meet in collectives on the host. No event says when a thread waits for one of them: inferred from the time in which it records nothing until the collective ends.";

/// Prepares one rank. `wanted` are the sets of changes; without any, those that suit the rank.
///
/// # Errors
/// If the trace cannot be replayed.
pub fn job_member(
    trace: &Trace,
    source: &Source,
    machine: &Machine,
    options: &Options,
    wanted: &[Vec<Change>],
) -> Result<JobMember, NoReplay> {
    of_steady(trace, machine, options, |facts, _| {
        let (replay, collectives, is_on_host) = match on_host(facts) {
            Some((replay, collectives)) => (replay, collectives, true),
            None => (replayed(facts)?.clone(), keyed(facts), false),
        };
        Ok(JobMember {
            rank: rank_of(trace, source).map(|ranked| ranked.rank),
            alone: of_replay(facts, &replay, &source.path, wanted),
            is_on_host,
            replay: JobRank { recorded_ms: replay.recorded_ms(), replay, collectives },
        })
    })
}

/// A replay in which a rank waits in collectives that a library carries out on the host. `None` if the ranks meet on the GPU, or the
/// trace shows neither.
fn on_host(facts: &Facts<'_>) -> Option<(Replay, Vec<(EventId, u64)>)> {
    if !keyed(facts).is_empty() {
        return None;
    }
    let mut keyed = keyed_on_host(facts);
    keyed.retain(|(event, _)| CollectiveOp::named(facts.trace.event(*event).name()).synchronizes());
    let events: Vec<EventId> = keyed.iter().map(|(event, _)| *event).collect();
    let collectives = HostCollective::all(facts.trace, &events);
    collectives.first()?;
    Some((facts.replay_with(&collectives)?, keyed))
}

/// Replays the job with each set of changes on one rank: each collective waits for the last rank.
///
/// # Errors
/// If the ranks cannot be replayed together, with the reason.
pub fn job_what_if(members: Vec<JobMember>, changed: u32) -> Result<WhatIf, NoJobReplay> {
    let mut numbers: Vec<u32> = members.iter().filter_map(|member| member.rank).collect();
    numbers.sort_unstable();
    if let Some(pair) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(NoJobReplay::Twice { rank: pair[0] });
    }
    let Some(place) = members.iter().position(|member| member.rank == Some(changed)) else {
        if numbers.is_empty() {
            return Err(NoJobReplay::NoRanks { rank: changed });
        }
        let known = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        return Err(NoJobReplay::NoSuchRank { rank: changed, known });
    };
    let alone = members[place].alone.clone();
    let is_on_host = members.iter().any(|member| member.is_on_host);
    let recorded_ms = members.iter().map(|member| member.replay.recorded_ms).fold(0.0, f64::max);
    let job = Job::of(members.into_iter().map(|member| member.replay).collect())?;
    let searched = alone.scenarios.len() != 1;
    let mut answer = WhatIf {
        rank: Some(changed),
        ranks: Some(job.ranks().len()),
        baseline_ms: job.step_ms(),
        recorded_ms,
        replay_error: job.error(),
        ..alone
    };
    for one in &mut answer.scenarios {
        let Predicted { step_ms, low_ms, high_ms, .. } = job.predict(place, &one.changes);
        (one.step_ms, one.low_ms, one.high_ms) = (step_ms, low_ms, high_ms);
        one.gain_ms = answer.baseline_ms - step_ms;
    }
    answer.scenarios.sort_by(|a, b| a.step_ms.total_cmp(&b.step_ms));
    answer.notes.insert(
        0,
        format!(
            "Times are of a step of the job: the {} ranks are replayed together, each collective waits for the last of them, and only rank {changed} is changed.",
            job.ranks().len()
        ),
    );
    if is_on_host {
        answer.notes.insert(1, ON_HOST_NOTE.to_owned());
    }
    answer.statement = format!("On rank {changed} of the job: {}", answer.sentence(searched));
    Ok(answer)
}

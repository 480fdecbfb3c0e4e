//! How long would a step of the whole job take with a change on one rank?

use busbound_machine::Machine;
use busbound_trace::Trace;
use busbound_whatif::replay::{Change, Job, JobRank, NoJob, Predicted};

use super::survey::{Source, rank_of};
use super::whatif::{NoReplay, WhatIf, of_replay, of_steady, replayed};
use crate::analysis::arrivals::keyed;
use crate::options::Options;

/// One rank of a job, ready to replay with the others.
#[derive(Debug)]
pub struct JobMember {
    /// `None` if neither the trace nor its file name has it.
    pub rank: Option<u32>,
    /// What the changes do to this rank alone.
    alone: WhatIf,
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
        let replay = replayed(facts)?;
        Ok(JobMember {
            rank: rank_of(trace, source).map(|ranked| ranked.rank),
            alone: of_replay(facts, replay, &source.path, wanted),
            replay: JobRank {
                replay: replay.clone(),
                collectives: keyed(facts),
                recorded_ms: replay.recorded_ms(),
            },
        })
    })
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
    answer.statement = format!("On rank {changed} of the job: {}", answer.sentence(searched));
    Ok(answer)
}

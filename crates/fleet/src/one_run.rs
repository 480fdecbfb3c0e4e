//! Are these files the ranks of one run? Told by evidence: ranks that differ, world sizes that agree.

use std::collections::{BTreeMap, BTreeSet};

use busbound_diagnosis::RankOrigin;

use crate::summary::RankSummary;

/// Which of the inputs are ranks of one run, by their place in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneRun {
    pub members: Vec<usize>,
    /// Those that tell no rank: something else, judged by itself.
    pub others: Vec<usize>,
    /// How it is known, in words.
    pub evidence: String,
}

/// Why they are not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotOneRun(pub String);

/// Decides. Inputs without a rank do not spoil those with one.
///
/// # Errors
/// If fewer than two inputs tell a rank, or those that do contradict each other; with the reason.
pub fn one_run(inputs: &[RankSummary]) -> Result<OneRun, NotOneRun> {
    let (members, others): (Vec<usize>, Vec<usize>) =
        (0..inputs.len()).partition(|&input| inputs[input].rank.is_some());
    let ranks = || members.iter().filter_map(|&input| Some((input, inputs[input].rank.as_ref()?)));
    match members.len() {
        0 => return Err(NotOneRun("none tells its rank, neither in the trace nor by its name".to_owned())),
        1 => return Err(NotOneRun("only one of them tells its rank".to_owned())),
        _ => {}
    }
    let mut paths: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
    for (input, rank) in ranks() {
        paths.entry(rank.rank).or_default().push(&inputs[input].path);
    }
    if let Some((rank, paths)) = paths.iter().find(|(_, paths)| paths.len() > 1) {
        return Err(NotOneRun(format!("rank {rank} is told by {} and {}", paths[0], paths[1])));
    }
    let sizes: BTreeSet<u32> = ranks().filter_map(|(_, rank)| rank.world_size).collect();
    if let (Some(least), Some(most)) = (sizes.first(), sizes.last())
        && least != most
    {
        return Err(NotOneRun(format!("they are of jobs of different sizes, {least} and {most} ranks")));
    }
    let in_trace = ranks().filter(|(_, rank)| rank.origin == RankOrigin::DistributedInfo).count();
    let evidence = match (in_trace, members.len()) {
        (0, _) => "by the ranks in their names",
        (told, all) if told == all => "by the ranks that their traces tell",
        _ => "by the ranks that their traces or names tell",
    };
    Ok(OneRun { members, others, evidence: evidence.to_owned() })
}

//! Are these files the ranks of one run? Told by evidence: ranks that differ, world sizes that agree.

use std::collections::{BTreeMap, BTreeSet};

use busbound_diagnosis::RankOrigin;

use crate::list::some_of;
use crate::name::RankName;
use crate::summary::RankSummary;

/// Which of the inputs are ranks of one run, by their place in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneRun {
    pub members: Vec<usize>,
    /// Those that are not: they tell no rank, or one that another tells too.
    pub others: Vec<usize>,
    /// How it is known, in words.
    pub evidence: String,
    /// What the others are; `None` where there are none.
    pub left_out: Option<String>,
}

/// Why they are not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotOneRun {
    /// Nothing says that they are, and nothing that they are not.
    #[error("none tells its rank, neither in the trace nor by its name")]
    NoRank,
    #[error("only one of them tells its rank")]
    OneRank,
    #[error("rank {rank} is told by {first} and {second}")]
    Twice { rank: u32, first: String, second: String },
    #[error("they are of jobs of different sizes, {least} and {most} ranks")]
    Sizes { least: u32, most: u32 },
}

/// Decides. Inputs without a rank do not spoil those with one, nor do a few ranks that are told twice.
///
/// # Errors
/// If fewer than two inputs tell a rank of their own, or those that do contradict each other; with the reason.
pub fn one_run(inputs: &[RankSummary]) -> Result<OneRun, NotOneRun> {
    let mut told: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (input, summary) in inputs.iter().enumerate() {
        if let Some(rank) = &summary.rank {
            told.entry(rank.rank).or_default().push(input);
        }
    }
    let twice: Vec<(&u32, &Vec<usize>)> = told.iter().filter(|(_, inputs)| inputs.len() > 1).collect();
    let once = told.len() - twice.len();
    // Where most ranks come twice they are two runs, or two times of one.
    if let Some((rank, inputs_of)) = twice.first()
        && (once < 2 || once <= twice.len())
    {
        let path = |at: usize| inputs[inputs_of[at]].path.clone();
        return Err(NotOneRun::Twice { rank: **rank, first: path(0), second: path(1) });
    }
    match once {
        0 => return Err(NotOneRun::NoRank),
        1 => return Err(NotOneRun::OneRank),
        _ => {}
    }
    let sizes: BTreeSet<u32> = inputs.iter().filter_map(RankSummary::world_size).collect();
    if let (Some(&least), Some(&most)) = (sizes.first(), sizes.last())
        && least != most
    {
        return Err(NotOneRun::Sizes { least, most });
    }
    let is_member =
        |input: &usize| inputs[*input].rank.as_ref().is_some_and(|rank| told[&rank.rank].len() == 1);
    let (members, others): (Vec<usize>, Vec<usize>) = (0..inputs.len()).partition(is_member);
    let told_in_trace = |input: &&usize| {
        inputs[**input].rank.as_ref().is_some_and(|rank| rank.origin == RankOrigin::DistributedInfo)
    };
    let evidence = match members.iter().filter(told_in_trace).count() {
        0 => "by the ranks in their names",
        count if count == members.len() => "by the ranks that their traces tell",
        _ => "by the ranks that their traces or names tell",
    };
    let left_out = (!others.is_empty()).then(|| left_out(inputs, &others));
    Ok(OneRun { members, others, evidence: evidence.to_owned(), left_out })
}

/// `Not among the ranks: a.json, which tells none; rank 3, which b.json and c.json tell.`
fn left_out(inputs: &[RankSummary], others: &[usize]) -> String {
    let (ranked, unranked): (Vec<&RankSummary>, Vec<&RankSummary>) =
        others.iter().map(|&other| &inputs[other]).partition(|other| other.rank.is_some());
    let paths = |list: &[&RankSummary]| {
        some_of(&list.iter().map(|one| RankName::File(one.path.clone())).collect::<Vec<_>>())
    };
    let mut clauses = Vec::new();
    if !unranked.is_empty() {
        clauses.push(format!("{} (no rank told)", paths(&unranked)));
    }
    if !ranked.is_empty() {
        clauses.push(format!("{} (a rank that another file tells too)", paths(&ranked)));
    }
    format!("Not taken for ranks of this run: {}.", clauses.join("; "))
}

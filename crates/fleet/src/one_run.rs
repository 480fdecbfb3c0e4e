//! Are these files the ranks of one run? They are if ranks differ and world sizes agree.

use std::collections::{BTreeMap, BTreeSet};

use busbound_diagnosis::RankOrigin;

use crate::list::some_of;
use crate::name::RankName;
use crate::summary::RankSummary;

/// Which inputs are ranks of one run, by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneRun {
    pub members: Vec<usize>,
    /// Inputs that are not: they have no rank, or the same rank as another input.
    pub others: Vec<usize>,
    /// Why they are one run, as text.
    pub evidence: String,
    /// A sentence about the others; `None` if there are none.
    pub left_out: Option<String>,
}

/// Why the inputs are not ranks of one run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotOneRun {
    /// No evidence for or against.
    #[error("neither the traces nor their file names contain a rank")]
    NoRank,
    #[error("only one of them has a rank")]
    OneRank,
    #[error("both {first} and {second} are rank {rank}")]
    Twice { rank: u32, first: String, second: String },
    #[error("they belong to jobs of different sizes ({least} and {most} ranks)")]
    Sizes { least: u32, most: u32 },
}

/// Finds the ranks of one run. Ignores inputs without a rank, and a few duplicate ranks.
///
/// # Errors
/// If fewer than two inputs have a unique rank, or those that do contradict each other; with the reason.
pub fn one_run(inputs: &[RankSummary]) -> Result<OneRun, NotOneRun> {
    let mut by_rank: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (input, summary) in inputs.iter().enumerate() {
        if let Some(rank) = &summary.rank {
            by_rank.entry(rank.rank).or_default().push(input);
        }
    }
    let twice: Vec<(&u32, &Vec<usize>)> = by_rank.iter().filter(|(_, inputs)| inputs.len() > 1).collect();
    let once = by_rank.len() - twice.len();
    // If most ranks occur twice, these are two runs, or two recordings of one.
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
        |input: &usize| inputs[*input].rank.as_ref().is_some_and(|rank| by_rank[&rank.rank].len() == 1);
    let (members, others): (Vec<usize>, Vec<usize>) = (0..inputs.len()).partition(is_member);
    let is_in_trace = |input: &&usize| {
        inputs[**input].rank.as_ref().is_some_and(|rank| rank.origin == RankOrigin::DistributedInfo)
    };
    let evidence = match members.iter().filter(is_in_trace).count() {
        0 => "recognized by the rank in each file name",
        count if count == members.len() => "recognized by the rank in each trace",
        _ => "recognized by the rank in each trace or file name",
    };
    let left_out = (!others.is_empty()).then(|| left_out(inputs, &others));
    Ok(OneRun { members, others, evidence: evidence.to_owned(), left_out })
}

/// `Not part of this run: a.json (no rank); b.json, c.json (duplicate rank).`
fn left_out(inputs: &[RankSummary], others: &[usize]) -> String {
    let (ranked, unranked): (Vec<&RankSummary>, Vec<&RankSummary>) =
        others.iter().map(|&other| &inputs[other]).partition(|other| other.rank.is_some());
    let paths = |list: &[&RankSummary]| {
        some_of(&list.iter().map(|one| RankName::File(one.path.clone())).collect::<Vec<_>>())
    };
    let mut clauses = Vec::new();
    if !unranked.is_empty() {
        clauses.push(format!("{} (no rank)", paths(&unranked)));
    }
    if !ranked.is_empty() {
        clauses.push(format!("{} (duplicate rank)", paths(&ranked)));
    }
    format!("Not part of this run: {}.", clauses.join("; "))
}

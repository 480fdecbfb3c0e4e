//! Which ranks of the job have no file? Counted between those that have one: a job may be far larger than what is here.

use std::collections::BTreeSet;

use busbound_diagnosis::quantity::count;

use crate::list::{TOLD, row};

/// `Of the job's 8 ranks 5 are not here: ranks 3 to 7.`; `None` where all are.
pub(crate) fn absent(world: u32, here: &BTreeSet<u32>) -> Option<String> {
    let mut gaps = Vec::new();
    let (mut next, mut missing) = (0, 0);
    // What is told beyond the job's size does not make up for one within.
    for rank in here.range(..world).copied().chain([world]) {
        if next < rank {
            missing += rank - next;
            gaps.push((next, rank - 1));
        }
        next = rank + 1;
    }
    let told: u32 = gaps.iter().take(TOLD).map(|(first, last)| last - first + 1).sum();
    let more = if told < missing { format!(" and {} more", missing - told) } else { String::new() };
    let (verb, word) = if missing == 1 { ("is", "rank") } else { ("are", "ranks") };
    let rows = gaps.iter().take(TOLD).map(row).collect::<Vec<_>>().join(", ");
    (missing > 0).then(|| {
        let (world, missing) = (count(u64::from(world)), count(u64::from(missing)));
        format!("Of the job's {world} ranks {missing} {verb} not here: {word} {rows}{more}.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_ranks_are_counted_between_those_here() {
        let told = |world, here: &[u32]| absent(world, &here.iter().copied().collect());
        assert_eq!(told(3, &[0, 1, 2]), None);
        assert_eq!(told(3, &[0, 2, 9]).as_deref(), Some("Of the job's 3 ranks 1 is not here: rank 1."));
        assert_eq!(
            told(15, &[1, 3, 5, 7, 9, 11]).as_deref(),
            Some("Of the job's 15 ranks 9 are not here: ranks 0, 2, 4, 6, 8, 10 and 3 more.")
        );
        assert!(told(1_000_000, &[u32::MAX, 0]).is_some_and(|text| text.ends_with(": ranks 1 to 999999.")));
    }
}

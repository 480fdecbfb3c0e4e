//! Which ranks of the job have no file? Counted as gaps between the ranks present, because a job may be very large.

use std::collections::BTreeSet;

use busbound_diagnosis::quantity::count;

use crate::list::{LISTED, range};

/// `5 of 8 ranks are missing: ranks 3–7.`; `None` if all are present.
pub(crate) fn absent(world: u32, present: &BTreeSet<u32>) -> Option<String> {
    let mut gaps = Vec::new();
    let (mut next, mut missing) = (0, 0);
    // Ranks beyond the world size do not replace missing ones.
    for rank in present.range(..world).copied().chain([world]) {
        if next < rank {
            missing += rank - next;
            gaps.push((next, rank - 1));
        }
        next = rank + 1;
    }
    let listed: u32 = gaps.iter().take(LISTED).map(|(first, last)| last - first + 1).sum();
    let more = if listed < missing { format!(" and {} more", missing - listed) } else { String::new() };
    let (verb, word) = if missing == 1 { ("is", "rank") } else { ("are", "ranks") };
    let ranges = gaps.iter().take(LISTED).map(range).collect::<Vec<_>>().join(", ");
    (missing > 0).then(|| {
        let (world, missing) = (count(u64::from(world)), count(u64::from(missing)));
        format!("{missing} of {world} ranks {verb} missing: {word} {ranges}{more}.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ranks_are_counted_between_those_present() {
        let absent = |world, present: &[u32]| absent(world, &present.iter().copied().collect());
        assert_eq!(absent(3, &[0, 1, 2]), None);
        assert_eq!(absent(3, &[0, 2, 9]).as_deref(), Some("1 of 3 ranks is missing: rank 1."));
        assert_eq!(
            absent(15, &[1, 3, 5, 7, 9, 11]).as_deref(),
            Some("9 of 15 ranks are missing: ranks 0, 2, 4, 6, 8, 10 and 3 more.")
        );
        assert!(absent(1_000_000, &[u32::MAX, 0]).is_some_and(|text| text.ends_with(": ranks 1–999999.")));
    }
}

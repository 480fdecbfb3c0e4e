//! How are many ranks listed in a sentence? The first few, then the number of the rest.

use crate::name::RankName;

/// Most entries listed.
pub(crate) const LISTED: usize = 6;

/// `3`, `3, 4` or `3–5`.
pub(crate) fn range(&(first, last): &(u32, u32)) -> String {
    match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    }
}

/// `ranks 3, 5, 7 and 14 more`; consecutive numbers as `ranks 2–127`.
pub(crate) fn some_of(labels: &[RankName]) -> String {
    let numbers: Option<Vec<u32>> = labels.iter().map(RankName::number).collect();
    let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty() && numbers.is_sorted()) else {
        let more = labels.len().saturating_sub(LISTED);
        let listed = labels.iter().take(LISTED).map(RankName::to_string).collect::<Vec<_>>().join(", ");
        return if more > 0 { format!("{listed} and {more} more") } else { listed };
    };
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let more: usize = ranges.iter().skip(LISTED).map(|(first, last)| (last - first) as usize + 1).sum();
    let listed = ranges.iter().take(LISTED).map(range).collect::<Vec<_>>().join(", ");
    let word = if labels.len() == 1 { "rank" } else { "ranks" };
    if more > 0 { format!("{word} {listed} and {more} more") } else { format!("{word} {listed}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_ranks_are_listed_as_ranges() {
        let labels = |numbers: &[u32]| numbers.iter().map(|n| RankName::Number(*n)).collect::<Vec<_>>();
        assert_eq!(some_of(&labels(&[5])), "rank 5");
        assert_eq!(some_of(&labels(&[2, 3, 4, 7, 9, 10])), "ranks 2–4, 7, 9, 10");
        assert_eq!(some_of(&labels(&[0, 2, 4, 6, 8, 10, 12, 13])), "ranks 0, 2, 4, 6, 8, 10 and 2 more");
        assert_eq!(some_of(&labels(&[u32::MAX, u32::MAX])), "ranks 4294967295, 4294967295");
        assert_eq!(some_of(&[RankName::File("a.json".to_owned()), RankName::Number(1)]), "a.json, rank 1");
    }
}

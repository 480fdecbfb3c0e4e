//! How are many ranks named in a sentence? Some of them by name, the rest by their number.

use crate::name::RankName;

/// So many are told, of more their number.
pub(crate) const TOLD: usize = 6;

/// `3`, `3, 4` or `3 to 5`.
pub(crate) fn row(&(first, last): &(u32, u32)) -> String {
    match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    }
}

/// `rank 3, rank 5 and 14 more`; numbers in a row as `ranks 2 to 127`.
pub(crate) fn some_of(labels: &[RankName]) -> String {
    let numbers: Option<Vec<u32>> = labels.iter().map(RankName::number).collect();
    let Some(numbers) = numbers.filter(|numbers| !numbers.is_empty() && numbers.is_sorted()) else {
        let more = labels.len().saturating_sub(TOLD);
        let told = labels.iter().take(TOLD).map(RankName::to_string).collect::<Vec<_>>().join(", ");
        return if more > 0 { format!("{told} and {more} more") } else { told };
    };
    let mut rows: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match rows.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => rows.push((number, number)),
        }
    }
    let more: usize = rows.iter().skip(TOLD).map(|(first, last)| (last - first) as usize + 1).sum();
    let told = rows.iter().take(TOLD).map(row).collect::<Vec<_>>().join(", ");
    let word = if labels.len() == 1 { "rank" } else { "ranks" };
    if more > 0 { format!("{word} {told} and {more} more") } else { format!("{word} {told}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_told_in_rows() {
        let labels = |numbers: &[u32]| numbers.iter().map(|n| RankName::Number(*n)).collect::<Vec<_>>();
        assert_eq!(some_of(&labels(&[5])), "rank 5");
        assert_eq!(some_of(&labels(&[2, 3, 4, 7, 9, 10])), "ranks 2 to 4, 7, 9, 10");
        assert_eq!(some_of(&labels(&[0, 2, 4, 6, 8, 10, 12, 13])), "ranks 0, 2, 4, 6, 8, 10 and 2 more");
        assert_eq!(some_of(&labels(&[u32::MAX, u32::MAX])), "ranks 4294967295, 4294967295");
        assert_eq!(some_of(&[RankName::File("a.json".to_owned()), RankName::Number(1)]), "a.json, rank 1");
    }
}

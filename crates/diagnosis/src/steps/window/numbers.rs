//! What number does each step have?

use busbound_trace::Trace;

use super::Beginnings;

/// The number at the end of each step's annotation (`ProfilerStep#12`), if these increase; otherwise the step's index.
pub(super) fn numbers(trace: &Trace, begin: &Beginnings, steps: usize) -> Vec<u64> {
    let marks = begin.marked_by.iter().flat_map(|(_, marks)| marks).take(steps);
    let annotated: Option<Vec<u64>> = marks.map(|mark| last_number(trace.event(*mark).name())).collect();
    annotated
        .filter(|all| all.len() == steps && all.windows(2).all(|pair| pair[0] < pair[1]))
        .unwrap_or_else(|| (0..steps as u64).collect())
}

/// The digits that a name ends with.
fn last_number(name: &str) -> Option<u64> {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    name[name.len() - digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_what_a_name_ends_with() {
        assert_eq!(last_number("ProfilerStep#1009"), Some(1009));
        assert_eq!(last_number("step 07"), Some(7));
        assert_eq!(last_number("step"), None);
        assert_eq!(last_number("7 steps"), None);
        assert_eq!(last_number("step 99999999999999999999"), None);
    }
}

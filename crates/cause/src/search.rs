//! Where is a value among numbered items that are in order?

use std::ops::Range;

/// The first of some ids that does not satisfy `comes_before`; all that do come before it.
pub(crate) fn first_after(ids: &Range<usize>, comes_before: impl Fn(usize) -> bool) -> usize {
    // As in the standard library, so that the result is the same for ids that are only almost in order.
    let (mut from, mut count) = (ids.start, ids.len());
    while count > 1 {
        let half = count / 2;
        if comes_before(from + half) {
            from += half;
        }
        count -= half;
    }
    if count == 1 && comes_before(from) { from + 1 } else { from }
}

/// The same, faster if the result is not far after `near`.
pub(crate) fn first_after_near(
    ids: &Range<usize>,
    near: usize,
    comes_before: impl Fn(usize) -> bool,
) -> usize {
    if !ids.contains(&near) || !comes_before(near) {
        return first_after(ids, comes_before);
    }
    let (mut from, mut step) = (near, 1);
    while from + step < ids.end && comes_before(from + step) {
        from += step;
        step *= 2;
    }
    first_after(&(from..ids.end.min(from + step)), comes_before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_find_the_same_place() {
        for end in 3..20 {
            for place in 3..=end {
                assert_eq!(first_after(&(3..end), |id| id < place), place);
                for near in 0..25 {
                    assert_eq!(first_after_near(&(3..end), near, |id| id < place), place, "{near}");
                }
            }
        }
    }
}

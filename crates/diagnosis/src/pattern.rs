//! Which annotation names differ only in their numbers?

use crate::quantity::printable;

/// The name with each run of digits replaced by `*`.
pub(crate) fn pattern_of(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for c in printable(name).chars() {
        if !c.is_ascii_digit() {
            pattern.push(c);
        } else if !pattern.ends_with('*') {
            pattern.push('*');
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_become_wildcards() {
        assert_eq!(pattern_of("ProfilerStep#1009"), "ProfilerStep#*");
        assert_eq!(pattern_of("layer7/block12"), "layer*/block*");
        assert_eq!(pattern_of("step"), "step");
    }
}

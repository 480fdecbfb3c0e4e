//! Which known names are spelled most like a mistyped one?

use strsim::damerau_levenshtein;

/// "did you mean a, b or c?", or nothing if no name is close.
pub(crate) fn did_you_mean<'n>(
    given: &str,
    names: impl IntoIterator<Item = &'n str>,
    most: usize,
) -> Option<String> {
    let close = closest(given, names, most);
    let (last, rest) = close.split_last()?;
    Some(match rest {
        [] => format!("did you mean {last}?"),
        rest => format!("did you mean {} or {last}?", rest.join(", ")),
    })
}

/// Up to `most` names, the closest first. A name counts if at most half of its letters have to change, three quarters if the
/// first letter is right, or if one of the two begins with the other.
pub(crate) fn closest<'n>(
    given: &str,
    names: impl IntoIterator<Item = &'n str>,
    most: usize,
) -> Vec<&'n str> {
    let given = given.to_lowercase();
    let mut scored: Vec<(usize, &str)> = names
        .into_iter()
        .map(|name| {
            let begins = !given.is_empty() && (name.starts_with(&given) || given.starts_with(name));
            (if begins { 0 } else { damerau_levenshtein(&given, name) }, name)
        })
        .filter(|(edits, name)| {
            let quarters = if name.chars().next() == given.chars().next() { 3 } else { 2 };
            4 * edits <= quarters * name.chars().count().max(given.chars().count())
        })
        .collect();
    scored.sort_by_key(|(edits, _)| *edits);
    scored.into_iter().take(most).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_names_come_first_and_noise_finds_none() {
        let names = ["h200", "h100-pcie", "h100-sxm", "a100-pcie", "l4"];
        assert_eq!(closest("h20", names, 1), ["h200"]);
        assert_eq!(closest("h999", names, 3), ["h200"]);
        assert_eq!(closest("h100-pci", names, 2), ["h100-pcie", "a100-pcie"]);
        assert_eq!(closest("H100", names, 3), ["h100-pcie", "h100-sxm", "h200"]);
        assert!(closest("zzzzzz", names, 3).is_empty() && closest("", names, 3).is_empty());
        assert_eq!(did_you_mean("h2000", names, 1).as_deref(), Some("did you mean h200?"));
        assert_eq!(did_you_mean("h100", names, 2).as_deref(), Some("did you mean h100-pcie or h100-sxm?"));
    }
}

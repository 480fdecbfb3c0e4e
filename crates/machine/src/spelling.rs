//! Which known names are spelled most like a mistyped one? The only place that decides this.

use strsim::damerau_levenshtein;

/// "did you mean a, b or c?", or nothing if no name is close.
pub fn did_you_mean<'n>(
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

/// Up to `most` names, the closest first. A name counts if at most half of its letters have to change (three quarters of a
/// short name with the right first letter: `h999` is like `h200`), or if one of the two begins with the other.
pub fn closest<'n>(given: &str, names: impl IntoIterator<Item = &'n str>, most: usize) -> Vec<&'n str> {
    let given = plain(given);
    let scored = names.into_iter().filter_map(|name| Some((edits(&given, &plain(name))?, name)));
    let mut scored: Vec<(usize, &str)> = scored.collect();
    scored.sort_by_key(|(edits, _)| *edits);
    scored.into_iter().take(most).map(|(_, name)| name).collect()
}

/// Letters of a short name: half of them are too few to say that it is another one.
const SHORT: usize = 4;

/// Case and hyphens do not make another name.
fn plain(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// Letters to insert, delete, replace or swap; `None` if the names differ too much.
fn edits(given: &str, name: &str) -> Option<usize> {
    if !given.is_empty() && (name.starts_with(given) || given.starts_with(name)) {
        return Some(0);
    }
    let edits = damerau_levenshtein(given, name);
    let letters = name.chars().count().max(given.chars().count());
    let is_short = letters <= SHORT && name.chars().next() == given.chars().next();
    (4 * edits <= if is_short { 3 * letters } else { 2 * letters }).then_some(edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_name() {
        let names = ["pageable_copies", "small_copies", "slow_link", "step_p50", "h2d_gbps", "nosync", "pin"];
        for (given, wanted) in [
            ("pageble_copies", Some("pageable_copies")),
            ("Pageable-Copies", Some("pageable_copies")),
            ("small_copys", Some("small_copies")),
            ("slowlink", Some("slow_link")),
            ("step_p5", Some("step_p50")),
            ("h2d_gpbs", Some("h2d_gbps")),
            ("no-sync", Some("nosync")),
            ("pinn", Some("pin")),
            ("kernel", None),
            ("faster", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(closest(given, names, 1).first().copied(), wanted, "{given}");
        }
    }

    #[test]
    fn the_closest_names_come_first_and_noise_finds_none() {
        let names = ["h200", "h100-pcie", "h100-sxm", "a100-pcie", "l4"];
        assert_eq!(closest("h20", names, 1), ["h200"]);
        assert_eq!(closest("h999", names, 3), ["h200"]);
        assert_eq!(closest("h100-pci", names, 2), ["h100-pcie", "a100-pcie"]);
        assert_eq!(closest("H100", names, 3), ["h100-pcie", "h100-sxm", "h200"]);
        assert_eq!(closest("A100_PCIE", names, 1), ["a100-pcie"]);
        assert!(closest("zzzzzz", names, 3).is_empty() && closest("", names, 3).is_empty());
        assert_eq!(did_you_mean("h2000", names, 1).as_deref(), Some("did you mean h200?"));
        assert_eq!(did_you_mean("h100", names, 2).as_deref(), Some("did you mean h100-pcie or h100-sxm?"));
    }
}

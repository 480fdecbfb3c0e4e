//! Which valid name is most similar to a misspelled one?

use strsim::levenshtein;

/// The most similar name; `None` if none is within two edits and within half of the typed length.
pub(super) fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = given.chars().count();
    let near = names.map(|name| (levenshtein(given, name), name));
    let near = near.filter(|(letters, _)| *letters <= 2 && 2 * letters <= typed);
    near.min_by_key(|(letters, _)| *letters).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_match_hand_counted_values() {
        assert_eq!(levenshtein("kitten", "sitting"), 3);
        assert_eq!((levenshtein("", "pin"), levenshtein("pin", "pin"), levenshtein("pni", "pin")), (3, 0, 2));
    }

    #[test]
    fn a_name_with_mostly_the_same_letters_is_suggested() {
        let names = ["pin", "prefetch", "nosync"];
        let near = |given| nearest(given, names.into_iter());
        assert_eq!(near("no-sync"), Some("nosync"));
        assert_eq!(near("pinn"), Some("pin"));
        assert_eq!((near(""), near("x"), near("faster")), (None, None, None));
    }
}

//! Which name was meant?

use strsim::levenshtein;

/// The name that a mistyped one is nearest to; `None` where none is near: two letters, and half of what was typed.
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
    fn distances_are_those_counted_by_hand() {
        assert_eq!(levenshtein("kitten", "sitting"), 3);
        assert_eq!((levenshtein("", "pin"), levenshtein("pin", "pin"), levenshtein("pni", "pin")), (3, 0, 2));
    }

    #[test]
    fn a_name_is_near_that_shares_most_of_its_letters() {
        let names = ["pin", "prefetch", "nosync"];
        let near = |given| nearest(given, names.into_iter());
        assert_eq!(near("no-sync"), Some("nosync"));
        assert_eq!(near("pinn"), Some("pin"));
        assert_eq!((near(""), near("x"), near("faster")), (None, None, None));
    }
}

//! Which name was meant?

/// The name that a mistyped one is nearest to; `None` where none is near: two letters, and half of what was typed.
pub(super) fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = given.chars().count();
    let near = names.map(|name| (distance(given, name), name));
    let near = near.filter(|(letters, _)| *letters <= 2 && 2 * letters <= typed);
    near.min_by_key(|(letters, _)| *letters).map(|(_, name)| name)
}

/// Letters to put in, take out or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_counted_by_hand() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!((distance("", "pin"), distance("pin", "pin"), distance("pni", "pin")), (3, 0, 2));
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

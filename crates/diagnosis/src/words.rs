//! Which names are types? Enums whose variants each have one name in JSON, in the documentation and on the command line.
//! The enum's declaration is the only place that spells the name.

use std::fmt;

use strsim::levenshtein;

/// A name that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// What was looked for, e.g. `finding`.
    pub what: &'static str,
    pub given: String,
    /// The known name with the closest spelling.
    pub closest: Option<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} {:?}", self.what, self.given)?;
        match self.closest {
            Some(closest) => write!(f, "; did you mean {closest}?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for UnknownName {}

/// The candidate with the fewest edits, if they are few for its length.
pub(crate) fn closest<'c>(given: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let given = given.to_lowercase().replace('-', "_");
    let scored = candidates.into_iter().map(|candidate| (levenshtein(&given, candidate), candidate));
    let (edits, candidate) = scored.min_by_key(|(edits, _)| *edits)?;
    (edits <= candidate.chars().count().div_ceil(3)).then_some(candidate)
}

/// Declares an enum of names: JSON, display text, the list of all variants, and parsing with a suggestion for typos.
macro_rules! words {
    (
        $(#[$about:meta])*
        $vis:vis enum $name:ident: $what:literal {
            $($(#[$doc:meta])* $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$about])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
        )]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        $vis enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All variants, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in JSON and in text.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownName;

            fn from_str(given: &str) -> Result<Self, Self::Err> {
                let all = Self::ALL.iter().copied();
                all.clone().find(|one| one.as_str() == given).ok_or_else(|| $crate::words::UnknownName {
                    what: $what,
                    given: given.to_owned(),
                    closest: $crate::words::closest(given, all.map(Self::as_str)),
                })
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_name_and_noise_finds_none() {
        let known = ["pageable_copies", "copy_calls", "slow_link"];
        for (given, wanted) in [
            ("pageble_copies", Some("pageable_copies")),
            ("Pageable-Copies", Some("pageable_copies")),
            ("copy_cals", Some("copy_calls")),
            ("slowlink", Some("slow_link")),
            ("kernel", None),
            ("", None),
        ] {
            assert_eq!(closest(given, known), wanted, "{given}");
        }
        let edits = levenshtein;
        assert_eq!(
            (edits("", "abc"), edits("abc", ""), edits("abc", "axc"), edits("ab", "ba")),
            (3, 3, 1, 2)
        );
    }
}

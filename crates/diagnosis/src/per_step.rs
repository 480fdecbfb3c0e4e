//! What does one step process, e.g. how many tokens? Only the user knows.

use std::str::FromStr;

const PER_SECOND: &str = "_per_s";

/// What one step processes, e.g. `tokens=16384`.
#[derive(Debug, Clone, PartialEq)]
pub struct PerStep {
    pub name: String,
    pub count: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PerStepError {
    #[error("write NAME=COUNT, e.g. tokens=16384")]
    Syntax,
    #[error("{0:?} is not a name: use letters, digits and _")]
    Name(String),
    #[error("{0:?} is not a count: write a number above zero")]
    Count(String),
}

impl FromStr for PerStep {
    type Err = PerStepError;

    fn from_str(text: &str) -> Result<Self, PerStepError> {
        let (name, count) = text.split_once('=').ok_or(PerStepError::Syntax)?;
        let (name, count) = (name.trim(), count.trim());
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            return Err(PerStepError::Name(name.to_owned()));
        }
        let number: Option<f64> = count.replace('_', "").parse().ok();
        let number = number.filter(|number| number.is_finite() && *number > 0.0);
        let count = number.ok_or_else(|| PerStepError::Count(count.to_owned()))?;
        Ok(Self { name: name.to_owned(), count })
    }
}

impl PerStep {
    /// The figure that it makes available: `tokens_per_s`.
    pub fn figure(&self) -> String {
        format!("{}{PER_SECOND}", self.name)
    }

    /// What a figure like `tokens_per_s` counts, e.g. `tokens`; `None` for other names.
    pub(crate) fn counted_by(figure: &str) -> Option<&str> {
        figure.strip_suffix(PER_SECOND).filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_per_step_is_a_name_and_a_number() {
        let tokens: PerStep = "tokens=16_384".parse().unwrap();
        assert_eq!((tokens.figure().as_str(), tokens.count), ("tokens_per_s", 16384.0));
        for (text, part) in [
            ("tokens", "NAME=COUNT"),
            ("=3", "not a name"),
            ("to-kens=3", "not a name"),
            ("3=3", "not a name"),
            ("tokens=", "not a count"),
            ("tokens=0", "not a count"),
            ("tokens=-1", "not a count"),
            ("tokens=inf", "not a count"),
            ("tokens=many", "not a count"),
        ] {
            let error = text.parse::<PerStep>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn only_names_of_rates_are_rates() {
        assert_eq!(PerStep::counted_by("tokens_per_s"), Some("tokens"));
        assert_eq!(PerStep::counted_by("_per_s"), None);
        assert_eq!(PerStep::counted_by("step_p50"), None);
    }
}

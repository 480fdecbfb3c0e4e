//! Which range does a figure fall in?

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// From `low` to `high`; a single figure if they are equal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    pub fn one(value: f64) -> Self {
        Self { low: value, high: value }
    }

    pub fn is_one(self) -> bool {
        self.low == self.high
    }

    /// The range of a monotonic function over this range.
    pub fn map(self, of: impl Fn(f64) -> f64) -> Self {
        let a = of(self.low);
        let b = if self.is_one() { a } else { of(self.high) };
        Self { low: a.min(b), high: a.max(b) }
    }
}

/// `5.6` or `5.6..6.5`.
impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither a number above zero nor a range such as 5..7");
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
        let (low, high) = match text.split_once("..") {
            Some((low, high)) => (number(low), number(high)),
            None => (number(text), number(text)),
        };
        match (low, high) {
            (Some(low), Some(high)) if low <= high => Ok(Self { low, high }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_one() { write!(f, "{}", self.low) } else { write!(f, "{}–{}", self.low, self.high) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_and_invalid_input_is_rejected() {
        assert_eq!("5".parse(), Ok(Range::one(5.0)));
        assert_eq!("5..7.5".parse(), Ok(Range { low: 5.0, high: 7.5 }));
        for wrong in ["", "-1", "0", "7..5", "a..b", "NaN", "1..inf"] {
            assert!(wrong.parse::<Range>().is_err(), "{wrong}");
        }
        assert_eq!(Range { low: 2.0, high: 4.0 }.map(|x| 8.0 / x), Range { low: 2.0, high: 4.0 });
    }
}

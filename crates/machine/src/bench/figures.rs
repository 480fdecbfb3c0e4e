//! Is a measured figure as expected, and if not, why?

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Judgment {
    /// As expected.
    Fine,
    /// Below the expected value.
    Low,
    /// A fact without an expected value.
    NoExpectation,
}

/// The unit of a figure, written after the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum FigureUnit {
    #[serde(rename = "GB/s")]
    GigabytesPerSecond,
    #[serde(rename = "µs")]
    Microseconds,
    #[serde(rename = "KiB")]
    Kibibytes,
    /// A multiple of something else.
    #[serde(rename = "×")]
    Times,
    #[serde(rename = "")]
    Count,
}

impl FigureUnit {
    pub fn sign(self) -> &'static str {
        match self {
            Self::GigabytesPerSecond => "GB/s",
            Self::Microseconds => "µs",
            Self::Kibibytes => "KiB",
            Self::Times => "×",
            Self::Count => "",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredFigure {
    pub id: &'static str,
    pub what: String,
    pub measured: f64,
    /// `GB/s`, `µs` or `×`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub unit: FigureUnit,
    pub expected: Option<f64>,
    /// Source of the expected value.
    pub expected_from: Option<String>,
    pub judgment: Judgment,
    /// Causes of a low figure, most likely first.
    pub causes: Vec<Cause>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    pub why: String,
    /// What to run or check.
    pub check: String,
    /// Whether the measurement itself shows this cause.
    pub seen: bool,
}

/// Below this share of the expected value a figure is low: machines of the same model differ by less.
pub(super) const SHORT_BELOW: f64 = 0.90;

impl MeasuredFigure {
    /// A figure without an expected value.
    pub(super) fn fact(id: &'static str, what: impl Into<String>, measured: f64, unit: FigureUnit) -> Self {
        Self {
            id,
            what: what.into(),
            measured,
            unit,
            expected: None,
            expected_from: None,
            judgment: Judgment::NoExpectation,
            causes: Vec::new(),
        }
    }

    /// Compares the figure with its expected value.
    pub(super) fn judged(mut self, expected: f64, from: String, causes: impl FnOnce() -> Vec<Cause>) -> Self {
        self.expected = Some(expected);
        self.expected_from = Some(from);
        self.judgment = if self.measured < SHORT_BELOW * expected { Judgment::Low } else { Judgment::Fine };
        if self.judgment == Judgment::Low {
            self.causes = causes();
        }
        self
    }
}

impl Cause {
    /// A cause that the measurement shows.
    pub(super) fn seen(why: impl Into<String>, check: &str) -> Self {
        Self { why: why.into(), check: check.to_owned(), seen: true }
    }

    /// A cause that has to be checked.
    pub(super) fn likely(why: &str, check: &str) -> Self {
        Self { why: why.to_owned(), check: check.to_owned(), seen: false }
    }

    /// Slows all traffic over the link.
    pub(super) fn translating_iommu() -> Self {
        Self::likely(
            "an IOMMU that translates every address",
            "`cat /sys/kernel/iommu_groups/*/type | sort | uniq -c`: identity is pass-through, DMA is translated",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_below_90_percent_of_the_expected_value_is_low_and_only_then_has_causes() {
        let judged = |measured| {
            MeasuredFigure::fact("x", "x", measured, FigureUnit::GigabytesPerSecond).judged(
                100.0,
                String::new(),
                || vec![Cause::likely("a", "b")],
            )
        };
        assert_eq!((judged(90.0).judgment, judged(90.0).causes.len()), (Judgment::Fine, 0));
        assert_eq!((judged(89.9).judgment, judged(89.9).causes.len()), (Judgment::Low, 1));
    }

    #[test]
    fn units_in_json_match_their_printed_form() {
        for unit in [
            FigureUnit::GigabytesPerSecond,
            FigureUnit::Microseconds,
            FigureUnit::Kibibytes,
            FigureUnit::Times,
            FigureUnit::Count,
        ] {
            assert_eq!(serde_json::to_value(unit).unwrap(), unit.sign());
        }
    }
}

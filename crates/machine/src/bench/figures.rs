//! One measured figure: what it should be, whether it is, and why it might not be.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Judgment {
    /// As much as can be expected.
    Fine,
    /// Less than it should be.
    Short,
    /// A fact: nothing says what it should be.
    Told,
}

/// What a figure is counted in. Written as the sign that follows the number.
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
    /// Where the expectation comes from.
    pub expected_from: Option<String>,
    pub judgment: Judgment,
    /// Of a short figure, the likeliest first.
    pub causes: Vec<Cause>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    pub why: String,
    /// What to run or look at.
    pub check: String,
    /// Whether the measurement itself shows it.
    pub seen: bool,
}

/// Below this part of what is expected a figure is short: machines of a kind differ by less.
pub(super) const SHORT_BELOW: f64 = 0.90;

impl MeasuredFigure {
    /// A figure that nothing is expected of.
    pub(super) fn fact(id: &'static str, what: impl Into<String>, measured: f64, unit: FigureUnit) -> Self {
        Self {
            id,
            what: what.into(),
            measured,
            unit,
            expected: None,
            expected_from: None,
            judgment: Judgment::Told,
            causes: Vec::new(),
        }
    }

    /// Judged by what it should be.
    pub(super) fn judged(mut self, expected: f64, from: String, causes: impl FnOnce() -> Vec<Cause>) -> Self {
        self.expected = Some(expected);
        self.expected_from = Some(from);
        self.judgment = if self.measured < SHORT_BELOW * expected { Judgment::Short } else { Judgment::Fine };
        if self.judgment == Judgment::Short {
            self.causes = causes();
        }
        self
    }
}

impl Cause {
    /// One that the measurement shows.
    pub(super) fn seen(why: impl Into<String>, check: &str) -> Self {
        Self { why: why.into(), check: check.to_owned(), seen: true }
    }

    /// One that has to be looked for.
    pub(super) fn likely(why: &str, check: &str) -> Self {
        Self { why: why.to_owned(), check: check.to_owned(), seen: false }
    }

    /// Slows whatever crosses the link.
    pub(super) fn translating_iommu() -> Self {
        Self::likely(
            "an IOMMU that translates every address",
            "`cat /sys/kernel/iommu_groups/*/type | sort | uniq -c`: identity passes through, DMA translates",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_short_below_nine_tenths_of_what_is_expected_and_only_then_has_causes() {
        let judged = |measured| {
            MeasuredFigure::fact("x", "x", measured, FigureUnit::GigabytesPerSecond).judged(
                100.0,
                String::new(),
                || vec![Cause::likely("a", "b")],
            )
        };
        assert_eq!((judged(90.0).judgment, judged(90.0).causes.len()), (Judgment::Fine, 0));
        assert_eq!((judged(89.9).judgment, judged(89.9).causes.len()), (Judgment::Short, 1));
    }

    #[test]
    fn units_are_written_to_json_as_their_signs() {
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

//! Which figures does a run have? One catalog for compare, gate, fleet, reports and documentation.
//!
//! To add a figure, add one entry in `catalog`: its id, unit, texts and the function that computes it.

mod catalog;
mod copy_figures;
mod declare;
mod document;
mod phase;
mod value;

use std::fmt;

use busbound_cause::idle::GapCause;
use serde::{Serialize, Serializer};

use crate::answers::diagnosis::Diagnosis;
use crate::unit::Unit;

pub use catalog::FigureId;
pub use copy_figures::CopyFigure;
pub use document::document;
pub use phase::Phase;

/// One entry of the catalog.
#[derive(Debug)]
struct Definition {
    name: &'static str,
    label: &'static str,
    unit: FigureUnit,
    better: Better,
    summary: &'static str,
    definition: &'static str,
    of: fn(&Diagnosis) -> Option<f64>,
}

impl FigureId {
    /// The parts of a step. They do not overlap, and their sum is [`FigureId::SpanMs`].
    pub const PARTS: &'static [Self] = &[
        Self::ComputeMs,
        Self::ExposedCommMs,
        Self::ExposedBusCopyMs,
        Self::ExposedPeerCopyMs,
        Self::ExposedDeviceCopyMs,
        Self::ExposedUnplacedCopyMs,
        Self::ExposedMemsetMs,
        Self::IdleInputMs,
        Self::IdleLaunchMs,
        Self::IdleSyncMs,
        Self::IdleCopyMs,
        Self::IdleHostMs,
        Self::IdleQueuedMs,
        Self::IdleUnexplainedMs,
        Self::IdleKernelGapMs,
    ];

    /// Like [`FigureId::PARTS`], but with idle time as a single part.
    pub const COARSE_PARTS: &'static [Self] = &[
        Self::ComputeMs,
        Self::ExposedCommMs,
        Self::ExposedBusCopyMs,
        Self::ExposedPeerCopyMs,
        Self::ExposedDeviceCopyMs,
        Self::ExposedUnplacedCopyMs,
        Self::ExposedMemsetMs,
        Self::IdleMs,
    ];

    /// Each of these parts with its milliseconds, as they are drawn: time in which kernels wait for host memory is not shown
    /// as compute.
    pub fn drawn(parts: &[Self], run: &Diagnosis) -> Vec<(Self, f64)> {
        let value = |figure: Self| figure.of(run).unwrap_or(0.0);
        let waits = value(Self::KernelWaitMs);
        let split = |&part: &Self| match part {
            Self::ComputeMs => vec![(part, value(part) - waits), (Self::KernelWaitMs, waits)],
            _ => vec![(part, value(part))],
        };
        parts.iter().flat_map(split).collect()
    }

    /// The name in gate requirements and JSON.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The label in tables.
    pub fn label(self) -> &'static str {
        self.entry().label
    }

    /// The cause of the idle time that it measures; `None` for other figures.
    pub fn idle_cause(self) -> Option<GapCause> {
        Some(match self {
            Self::IdleInputMs => GapCause::Input,
            Self::IdleLaunchMs => GapCause::Launch,
            Self::IdleSyncMs => GapCause::Synchronization,
            Self::IdleCopyMs => GapCause::Copy,
            Self::IdleHostMs => GapCause::Host,
            Self::IdleQueuedMs => GapCause::Queued,
            Self::IdleUnexplainedMs => GapCause::Unexplained,
            Self::IdleKernelGapMs => GapCause::KernelGap,
            _ => return None,
        })
    }

    pub fn unit(self) -> FigureUnit {
        self.entry().unit
    }

    pub fn better(self) -> Better {
        self.entry().better
    }

    /// What the figure is, in a few words.
    pub fn summary(self) -> &'static str {
        self.entry().summary
    }

    /// What the figure is and how it is computed.
    pub fn definition(self) -> &'static str {
        self.entry().definition
    }

    /// The value; `None` if the run does not have this figure.
    pub fn of(self, run: &Diagnosis) -> Option<f64> {
        (self.entry().of)(run).filter(|value| value.is_finite())
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|figure| figure.name() == name)
    }
}

impl fmt::Display for FigureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureUnit {
    Milliseconds,
    MillisecondsPerStep,
    MillisecondsPerItem,
    Microseconds,
    MegabytesPerStep,
    GigabytesPerSecond,
    PerStep,
    PerSecond,
    Count,
    /// Between 0 and 1.
    Share,
    Percent,
}

impl FigureUnit {
    /// Next to a number: `ms`, `GB/s`; empty for counts.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Milliseconds | Self::MillisecondsPerStep | Self::MillisecondsPerItem => "ms",
            Self::Microseconds => "µs",
            Self::MegabytesPerStep => "MB",
            Self::GigabytesPerSecond => "GB/s",
            Self::PerSecond => "/s",
            Self::PerStep | Self::Count => "",
            Self::Share => "fraction",
            Self::Percent => "%",
        }
    }

    /// With what the figure is per: `ms/step`, `per step`.
    pub fn phrase(self, unit: Unit) -> String {
        match self {
            Self::MillisecondsPerStep | Self::MegabytesPerStep => format!("{}/{unit}", self.symbol()),
            Self::MillisecondsPerItem => format!("{}/item", self.symbol()),
            Self::PerStep => format!("per {unit}"),
            _ => self.symbol().to_owned(),
        }
    }
}

/// Serialized as the symbol.
impl Serialize for FigureUnit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.symbol())
    }
}

/// Whether lower or higher is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Lower,
    Higher,
    /// The figure only describes the run.
    Neither,
}

impl Better {
    pub fn word(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::Neither => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_figure_is_found_by_its_name_and_has_texts() {
        let names: BTreeSet<&str> = FigureId::ALL.iter().map(|figure| figure.name()).collect();
        let labels: BTreeSet<(&str, &str)> =
            FigureId::ALL.iter().map(|figure| (figure.label(), figure.unit().symbol())).collect();
        assert_eq!((names.len(), labels.len()), (FigureId::ALL.len(), FigureId::ALL.len()));
        for &figure in FigureId::ALL {
            assert_eq!(FigureId::named(figure.name()), Some(figure));
            assert!(figure.name().chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{figure}");
            assert!(figure.definition().ends_with('.'), "{figure}");
            assert!(!figure.summary().is_empty() && !figure.summary().ends_with('.'), "{figure}");
        }
        assert_eq!(FigureId::named("baseline"), None, "`baseline` is reserved in requirements");
    }

    #[test]
    fn idle_figures_are_labeled_by_their_cause() {
        for (figure, cause) in [
            (FigureId::IdleInputMs, GapCause::Input),
            (FigureId::IdleLaunchMs, GapCause::Launch),
            (FigureId::IdleSyncMs, GapCause::Synchronization),
            (FigureId::IdleCopyMs, GapCause::Copy),
            (FigureId::IdleHostMs, GapCause::Host),
            (FigureId::IdleQueuedMs, GapCause::Queued),
            (FigureId::IdleUnexplainedMs, GapCause::Unexplained),
            (FigureId::IdleKernelGapMs, GapCause::KernelGap),
        ] {
            assert_eq!(figure.label(), format!("idle: {}", cause.describe()));
            assert_eq!(figure.idle_cause(), Some(cause));
        }
    }
}

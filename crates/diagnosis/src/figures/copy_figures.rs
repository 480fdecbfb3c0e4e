//! Which figures does a group of copies have? `compare` shows these for each direction and memory kind.

use crate::activity::copies::CopyGroup;
use crate::figures::FigureUnit;

/// A figure of a group of copies with the same direction and memory kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyFigure {
    Count,
    Bytes,
    Exposed,
    Blocking,
    Rate,
}

impl CopyFigure {
    pub const ALL: [Self; 5] = [Self::Count, Self::Bytes, Self::Exposed, Self::Blocking, Self::Rate];

    pub fn label(self) -> &'static str {
        match self {
            Self::Count => "copies",
            Self::Bytes => "bytes",
            Self::Exposed => "exposed",
            Self::Blocking => "host time inside calls",
            Self::Rate => "rate",
        }
    }

    pub fn unit(self) -> FigureUnit {
        match self {
            Self::Count => FigureUnit::PerStep,
            Self::Bytes => FigureUnit::MegabytesPerStep,
            Self::Exposed | Self::Blocking => FigureUnit::MillisecondsPerStep,
            Self::Rate => FigureUnit::GigabytesPerSecond,
        }
    }

    pub fn definition(self) -> &'static str {
        match self {
            Self::Count => "Number of copies, over all devices.",
            Self::Bytes => "Bytes copied, over all devices.",
            Self::Exposed => {
                "Time in which at least one of the copies ran and no kernel ran on the same device, summed over devices."
            }
            Self::Blocking => "Host time inside copy calls that waited for their copy.",
            Self::Rate => {
                "Bytes copied, divided by the time in which at least one of the copies ran. Copies without a recorded size are excluded."
            }
        }
    }

    /// The value for a group, with totals divided by `steps`.
    pub fn of(self, group: &CopyGroup, steps: f64) -> f64 {
        match self {
            Self::Count => group.count as f64 / steps,
            Self::Bytes => group.bytes as f64 / 1e6 / steps,
            Self::Exposed => group.exposed_ms / steps,
            Self::Blocking => group.blocking.ms / steps,
            Self::Rate => group.gbps.map_or(0.0, |rates| rates.weighted),
        }
    }
}

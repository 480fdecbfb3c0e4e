//! Which parts does the time of a rank have? Those that lie beside each other and can be added.

use busbound_diagnosis::GapCause;

use crate::summary::RankSummary;

/// A part of a rank's own time: all of it but communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Compute,
    ExposedCopy,
    DeviceCopy,
    UnplacedCopy,
    Idle(GapCause),
}

impl Part {
    pub(crate) const ALL: [Self; 10] = [
        Self::Compute,
        Self::ExposedCopy,
        Self::DeviceCopy,
        Self::UnplacedCopy,
        Self::Idle(GapCause::Input),
        Self::Idle(GapCause::Launch),
        Self::Idle(GapCause::Synchronisation),
        Self::Idle(GapCause::Copy),
        Self::Idle(GapCause::Unexplained),
        Self::Idle(GapCause::Turnaround),
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Compute => "compute".to_owned(),
            Self::ExposedCopy => "exposed copy".to_owned(),
            Self::DeviceCopy => "copy within the device".to_owned(),
            Self::UnplacedCopy => "copy of unknown way".to_owned(),
            Self::Idle(cause) => format!("idle, {}", cause.describe()),
        }
    }

    pub(crate) fn of(self, rank: &RankSummary) -> f64 {
        match self {
            Self::Compute => rank.time.compute_ms,
            Self::ExposedCopy => rank.time.exposed_copy_ms,
            Self::DeviceCopy => rank.time.device_copy_ms,
            Self::UnplacedCopy => rank.time.unplaced_copy_ms,
            Self::Idle(cause) => rank.time.idle_for(cause),
        }
    }
}

//! Which phase of a step does each of its parts belong to?

use super::FigureId;

words! {
    /// A phase of a step, as `busbound top` shows it. Phases do not overlap, and their sum is the step.
    pub enum Phase: "phase" {
        /// Waiting for the next batch.
        Input = "input",
        /// Copies over a link that no kernel hides, and kernels that wait for host memory.
        Transfer = "transfer",
        /// The GPU's own work.
        Compute = "compute",
        /// Communication that no compute hides.
        Communication = "communication",
        /// Waiting for the host: launches, syncs, its own work.
        Host = "host",
        /// What has no visible cause, or one that nobody can change.
        Other = "other",
    }
}

impl Phase {
    /// The phase of a part of the step, the one that the verdict counts it for; `None` for other figures.
    pub fn of(part: FigureId) -> Option<Self> {
        Some(match part {
            FigureId::IdleInputMs => Self::Input,
            FigureId::ExposedBusCopyMs | FigureId::ExposedPeerCopyMs | FigureId::IdleCopyMs => Self::Transfer,
            FigureId::ComputeMs | FigureId::ExposedDeviceCopyMs => Self::Compute,
            FigureId::ExposedCommMs => Self::Communication,
            FigureId::IdleLaunchMs | FigureId::IdleSyncMs | FigureId::IdleHostMs => Self::Host,
            FigureId::ExposedUnplacedCopyMs
            | FigureId::ExposedMemsetMs
            | FigureId::IdleQueuedMs
            | FigureId::IdleUnexplainedMs
            | FigureId::IdleKernelGapMs => Self::Other,
            _ => return None,
        })
    }

    /// Every phase with its milliseconds. Kernels that wait for host memory are compute in the catalog, and a transfer here.
    pub fn each(figure: impl Fn(FigureId) -> Option<f64>) -> Vec<(Self, f64)> {
        let value = |id: FigureId| figure(id).unwrap_or(0.0);
        let waits = value(FigureId::KernelWaitMs).min(value(FigureId::ComputeMs));
        let phase = |phase: &Self| {
            let parts = FigureId::PARTS.iter().filter(|part| Self::of(**part) == Some(*phase));
            let moved = match phase {
                Self::Transfer => waits,
                Self::Compute => -waits,
                _ => 0.0,
            };
            (*phase, parts.map(|part| value(*part)).sum::<f64>() + moved)
        };
        Self::ALL.iter().map(phase).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_step_has_a_phase_and_nothing_is_lost_between_them() {
        for &figure in FigureId::ALL {
            assert_eq!(Phase::of(figure).is_some(), FigureId::PARTS.contains(&figure), "{figure}");
        }
        let figure = |id: FigureId| match id {
            FigureId::KernelWaitMs => Some(0.25),
            id => FigureId::PARTS.contains(&id).then_some(1.0),
        };
        let each = Phase::each(figure);
        assert_eq!(each.iter().map(|(_, ms)| ms).sum::<f64>(), FigureId::PARTS.len() as f64);
        assert_eq!((each[1], each[2]), ((Phase::Transfer, 3.25), (Phase::Compute, 1.75)));
    }
}

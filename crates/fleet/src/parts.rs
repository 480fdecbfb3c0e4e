//! Where does the time of a rank go? The breakdown of its steps, as stored in its summary.

use busbound_diagnosis::{Diagnosis, FigureId, GapCause};
use serde::{Deserialize, Deserializer, Serialize};

/// Where the device's time goes. These parts never overlap and sum to `span_ms`: `compute_ms`, `exposed_comm_ms`,
/// `exposed_bus_copy_ms`, `exposed_peer_copy_ms`, `device_copy_ms`, `unplaced_copy_ms`, `exposed_memset_ms`, `idle_ms`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parts {
    /// From the first work of the device to the last.
    pub span_ms: f64,
    pub compute_ms: f64,
    /// Of it, kernels that wait for host memory; 0 in summaries of earlier releases.
    pub kernel_wait_ms: f64,
    /// Communication with no compute kernel running.
    pub exposed_comm_ms: f64,
    /// Copies on any route with no kernel running.
    pub exposed_copy_ms: f64,
    /// Of these, copies over the link between host and device.
    pub exposed_bus_copy_ms: f64,
    /// Of these, copies from one GPU to another while no bus copy runs.
    pub exposed_peer_copy_ms: f64,
    /// Of these, copies within the device while no other copy runs.
    pub device_copy_ms: f64,
    /// Of these, copies whose direction the trace does not record, while no other copy runs.
    pub unplaced_copy_ms: f64,
    /// Memsets with no kernel and no copy running.
    pub exposed_memset_ms: f64,
    pub idle_ms: f64,
    /// `idle_ms` by cause.
    pub idle: Vec<IdlePart>,
    /// All communication.
    pub comm_ms: f64,
    /// All copies.
    pub copy_ms: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdlePart {
    pub cause: GapCause,
    pub ms: f64,
}

impl Parts {
    pub(crate) fn of(diagnosis: &Diagnosis) -> Self {
        let ms = |figure: FigureId| figure.of(diagnosis).unwrap_or(0.0);
        let each = diagnosis.step_count() * diagnosis.devices.len().max(1) as f64;
        Self {
            span_ms: ms(FigureId::SpanMs),
            compute_ms: ms(FigureId::ComputeMs),
            kernel_wait_ms: ms(FigureId::KernelWaitMs),
            exposed_comm_ms: ms(FigureId::ExposedCommMs),
            exposed_copy_ms: ms(FigureId::ExposedCopyMs),
            exposed_bus_copy_ms: ms(FigureId::ExposedBusCopyMs),
            exposed_peer_copy_ms: ms(FigureId::ExposedPeerCopyMs),
            device_copy_ms: ms(FigureId::ExposedDeviceCopyMs),
            unplaced_copy_ms: ms(FigureId::ExposedUnplacedCopyMs),
            exposed_memset_ms: ms(FigureId::ExposedMemsetMs),
            idle_ms: ms(FigureId::IdleMs),
            idle: diagnosis
                .idle
                .iter()
                .map(|idle| IdlePart { cause: idle.cause, ms: idle.ms / each })
                .collect(),
            comm_ms: ms(FigureId::CommMs),
            copy_ms: ms(FigureId::CopyMs),
        }
    }

    /// A figure of the catalog, if a summary has it.
    pub(crate) fn figure(&self, figure: FigureId) -> Option<f64> {
        Some(match figure {
            FigureId::SpanMs => self.span_ms,
            FigureId::OwnMs => self.own_ms(),
            FigureId::ComputeMs => self.compute_ms,
            FigureId::KernelWaitMs => self.kernel_wait_ms,
            FigureId::CommMs => self.comm_ms,
            FigureId::CopyMs => self.copy_ms,
            FigureId::ExposedCommMs => self.exposed_comm_ms,
            FigureId::ExposedCopyMs => self.exposed_copy_ms,
            FigureId::ExposedBusCopyMs => self.exposed_bus_copy_ms,
            FigureId::ExposedPeerCopyMs => self.exposed_peer_copy_ms,
            FigureId::ExposedDeviceCopyMs => self.device_copy_ms,
            FigureId::ExposedUnplacedCopyMs => self.unplaced_copy_ms,
            FigureId::ExposedMemsetMs => self.exposed_memset_ms,
            FigureId::IdleMs => self.idle_ms,
            FigureId::IdleInputMs => self.idle_for(GapCause::Input),
            FigureId::IdleLaunchMs => self.idle_for(GapCause::Launch),
            FigureId::IdleSyncMs => self.idle_for(GapCause::Synchronization),
            FigureId::IdleCopyMs => self.idle_for(GapCause::Copy),
            FigureId::IdleHostMs => self.idle_for(GapCause::Host),
            FigureId::IdleQueuedMs => self.idle_for(GapCause::Queued),
            FigureId::IdleUnexplainedMs => self.idle_for(GapCause::Unexplained),
            FigureId::IdleKernelGapMs => self.idle_for(GapCause::KernelGap),
            _ => return None,
        })
    }

    /// Time outside of exposed communication: compute, copies and idle time. If ranks synchronize every step, the others
    /// wait for the rank with the most of it.
    pub fn own_ms(&self) -> f64 {
        self.span_ms - self.exposed_comm_ms
    }

    fn idle_for(&self, cause: GapCause) -> f64 {
        self.idle.iter().find(|part| part.cause == cause).map_or(0.0, |part| part.ms)
    }
}

/// The parts as stored in files. Summaries of the first release have no `exposed_bus_copy_ms`: there, `exposed_copy_ms`
/// covers copies over the bus and between GPUs, and `device_copy_ms` includes memsets.
#[derive(Deserialize)]
struct StoredParts {
    span_ms: f64,
    compute_ms: f64,
    #[serde(default)]
    kernel_wait_ms: f64,
    exposed_comm_ms: f64,
    exposed_copy_ms: f64,
    exposed_bus_copy_ms: Option<f64>,
    #[serde(default)]
    exposed_peer_copy_ms: f64,
    device_copy_ms: f64,
    #[serde(default)]
    unplaced_copy_ms: f64,
    #[serde(default)]
    exposed_memset_ms: f64,
    idle_ms: f64,
    idle: Vec<IdlePart>,
    comm_ms: f64,
    copy_ms: f64,
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredParts::deserialize(deserializer)?;
        let (exposed_copy_ms, exposed_bus_copy_ms) = match stored.exposed_bus_copy_ms {
            Some(bus) => (stored.exposed_copy_ms, bus),
            None => {
                let bus = stored.exposed_copy_ms;
                (bus + stored.device_copy_ms + stored.unplaced_copy_ms, bus)
            }
        };
        Ok(Self {
            span_ms: stored.span_ms,
            compute_ms: stored.compute_ms,
            kernel_wait_ms: stored.kernel_wait_ms,
            exposed_comm_ms: stored.exposed_comm_ms,
            exposed_copy_ms,
            exposed_bus_copy_ms,
            exposed_peer_copy_ms: stored.exposed_peer_copy_ms,
            device_copy_ms: stored.device_copy_ms,
            unplaced_copy_ms: stored.unplaced_copy_ms,
            exposed_memset_ms: stored.exposed_memset_ms,
            idle_ms: stored.idle_ms,
            idle: stored.idle,
            comm_ms: stored.comm_ms,
            copy_ms: stored.copy_ms,
        })
    }
}

//! What does a trace without GPU events show about copies? Little, so every class has a stated limit.

use busbound_machine::LinkFacts;
use busbound_trace::{Event, EventKind, Nanos, Trace};
use serde::Serialize;

use crate::options::CpuCopyThresholds;

/// For smaller copies the operator's time is overhead, however long it took.
const SMALLEST: u64 = 64 << 10;

/// What a copy operator did, inferred from its own duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CpuCopyClass {
    /// Blocking, long and slow enough to have crossed the bus.
    BusTransfer,
    /// Too fast for any bus: a copy within one memory, or nothing was copied.
    GpuInternal,
    /// `non_blocking=True`: its time is launch cost and shows no bandwidth.
    AsynchronousLaunch,
    Undecided,
}

/// Copy operators of one class.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuCopies {
    pub class: CpuCopyClass,
    pub count: u64,
    pub bytes: u64,
    pub host_ms: f64,
    /// Bytes over operator time; only for transfers over the bus.
    pub gbps: Option<f64>,
}

/// Copy operators by class. Only `aten::copy_` counts: `aten::to` and `aten::_to_copy` call it.
pub(crate) fn cpu_copies(trace: &Trace, link: &LinkFacts, limits: &CpuCopyThresholds) -> Vec<CpuCopies> {
    let mut classes: Vec<CpuCopies> = Vec::new();
    for event in copy_operators(trace) {
        let Some(operator) = event.copy_operator() else { continue };
        let bytes = operator.bytes.map(|bytes| bytes.get());
        let class = classify(event.duration(), bytes, operator.non_blocking, link, limits);
        let sum = match classes.iter_mut().find(|sum| sum.class == class) {
            Some(sum) => sum,
            None => {
                classes.push(CpuCopies { class, count: 0, bytes: 0, host_ms: 0.0, gbps: None });
                let last = classes.len() - 1;
                &mut classes[last]
            }
        };
        sum.count += 1;
        sum.bytes += bytes.unwrap_or(0);
        sum.host_ms += event.duration().as_millis();
    }
    for sum in &mut classes {
        if sum.class == CpuCopyClass::BusTransfer {
            sum.gbps = Some(sum.bytes as f64 / 1e6 / sum.host_ms);
        }
    }
    classes.sort_by_key(|sum| sum.class);
    classes
}

pub(crate) fn copy_operators(trace: &Trace) -> impl Iterator<Item = Event<'_>> {
    trace.events().filter(|event| event.kind() == EventKind::Operator && event.name() == "aten::copy_")
}

pub(crate) fn classify(
    duration: Nanos,
    bytes: Option<u64>,
    non_blocking: Option<bool>,
    link: &LinkFacts,
    limits: &CpuCopyThresholds,
) -> CpuCopyClass {
    if non_blocking == Some(true) {
        return CpuCopyClass::AsynchronousLaunch;
    }
    let (Some(bytes), true) = (bytes, duration.get() > 0) else { return CpuCopyClass::Undecided };
    let gbps = bytes as f64 / duration.get() as f64;
    if gbps > limits.internal_gbps {
        CpuCopyClass::GpuInternal
    } else if gbps < limits.bus_share_of_peak * link.peak_gbps
        && duration.as_millis() > limits.shortest_ms
        && bytes >= SMALLEST
    {
        CpuCopyClass::BusTransfer
    } else {
        CpuCopyClass::Undecided
    }
}

#[cfg(test)]
mod tests {
    use busbound_machine::Machine;

    use super::*;

    #[test]
    fn rates_and_flags_decide_and_the_rest_is_undecided() {
        let link = Machine::default().link_of(Some("NVIDIA H200"));
        let of = |ms: f64, megabytes: Option<u64>, flag| {
            let time = Nanos::new((ms * 1e6) as i64);
            classify(time, megabytes.map(|mb| mb * 1_000_000), flag, &link, &CpuCopyThresholds::default())
        };
        assert_eq!(of(20.0, Some(168), Some(false)), CpuCopyClass::BusTransfer);
        assert_eq!(of(0.1, Some(168), Some(false)), CpuCopyClass::GpuInternal);
        assert_eq!(of(20.0, Some(168), Some(true)), CpuCopyClass::AsynchronousLaunch);
        assert_eq!(of(0.2, Some(1), Some(false)), CpuCopyClass::Undecided);
        assert_eq!(of(20.0, None, Some(false)), CpuCopyClass::Undecided);
        assert_eq!(
            of(1.5, Some(168), Some(false)),
            CpuCopyClass::Undecided,
            "between the link and the device"
        );
    }
}

//! What does a trace without GPU events show about copies? Little, so every class has a stated limit.

use std::collections::BTreeMap;

use busbound_cause::host::is_users_code;
use busbound_machine::{HostMemory, LinkFacts, bench, quantile};
use busbound_trace::{Event, EventKind, Interval, Nanos, Trace};
use serde::Serialize;

use crate::activity::rates::{HistogramBin, Moved, Rates, SizeClass, histogram, sizes};
use crate::options::CpuCopyThresholds;
use crate::pattern::pattern_of;

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
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuCopies {
    pub class: CpuCopyClass,
    pub count: u64,
    pub bytes: u64,
    pub host_ms: f64,
    /// Bytes over operator time; only for transfers over the bus.
    pub gbps: Option<f64>,
    /// The same for each copy.
    pub rates: Option<Rates>,
    /// Host time of each copy: for asynchronous ones, what a launch costs.
    pub each: Option<HostTimes>,
    pub sizes: Vec<SizeClass>,
    /// By rate; only for transfers over the bus.
    pub histogram: Vec<HistogramBin>,
    /// The parts of the program that copy, most host time first.
    pub places: Vec<CopyPlace>,
}

/// Host time of one operator, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostTimes {
    pub p10_us: f64,
    pub p50_us: f64,
    pub p90_us: f64,
}

/// Copies of one part of the program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyPlace {
    /// The innermost annotation or Python function, or the operator that called.
    pub place: String,
    pub count: u64,
    pub bytes: u64,
    pub host_ms: f64,
}

/// Most places listed.
const PLACES: usize = 5;

/// What copy operators are compared with.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'t> {
    pub(crate) link: &'t LinkFacts,
    pub(crate) limits: &'t CpuCopyThresholds,
    /// Upper ends of the histogram's bins, in GB/s.
    pub(crate) edges: &'t [f64],
    /// The steps, if there are any: what comes before or after them does not count.
    pub(crate) within: Option<Interval>,
}

/// Copy operators by class. Only `aten::copy_` counts: `aten::to` and `aten::_to_copy` call it.
pub(crate) fn cpu_copies(trace: &Trace, terms: Terms<'_>) -> Vec<CpuCopies> {
    let mut classes: BTreeMap<CpuCopyClass, Vec<(Event<'_>, Option<u64>)>> = BTreeMap::new();
    for event in copy_operators(trace) {
        let Some(operator) = event.copy_operator() else { continue };
        if terms.within.is_some_and(|steps| !steps.contains(event.start())) {
            continue;
        }
        let bytes = operator.bytes.map(|bytes| bytes.get());
        let class = classify(event.duration(), bytes, operator.non_blocking, terms.link, terms.limits);
        classes.entry(class).or_default().push((event, bytes));
    }
    classes.into_iter().map(|(class, copies)| of_class(trace, class, &copies, terms)).collect()
}

fn of_class(
    trace: &Trace,
    class: CpuCopyClass,
    copies: &[(Event<'_>, Option<u64>)],
    terms: Terms<'_>,
) -> CpuCopies {
    let is_bus = class == CpuCopyClass::BusTransfer;
    let time: Nanos = copies.iter().map(|(event, _)| event.duration()).sum();
    let bytes = copies.iter().filter_map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
    let sized = copies.iter().filter_map(|(event, bytes)| {
        let rate = terms.link.expected_of((*bytes)?, bench::Direction::H2d, HostMemory::Pinned);
        Some(Moved { bytes: (*bytes)?, time: event.duration(), expected_ns: (*bytes)? as f64 / rate })
    });
    let sized: Vec<Moved> = sized.collect();
    let rates = Rates::of(sized.iter().filter_map(Moved::gbps), bytes, time).filter(|_| is_bus);
    CpuCopies {
        class,
        count: copies.len() as u64,
        bytes,
        host_ms: time.as_millis(),
        gbps: rates.map(|rates| rates.weighted),
        rates,
        each: host_times(copies.iter().map(|(event, _)| event.duration())),
        // The time of a launch, or of a copy within one memory, shows no rate of the link.
        sizes: if is_bus { sizes(&sized, true) } else { Vec::new() },
        histogram: if is_bus { histogram(&sized, terms.edges) } else { Vec::new() },
        places: places(trace, copies),
    }
}

fn host_times(times: impl Iterator<Item = Nanos>) -> Option<HostTimes> {
    let mut each: Vec<f64> = times.map(|time| 1e3 * time.as_millis()).collect();
    let mut at = |share| quantile(&mut each, share);
    Some(HostTimes { p10_us: at(0.1)?, p50_us: at(0.5)?, p90_us: at(0.9)? })
}

fn places(trace: &Trace, copies: &[(Event<'_>, Option<u64>)]) -> Vec<CopyPlace> {
    let mut by_place: BTreeMap<String, CopyPlace> = BTreeMap::new();
    for (event, bytes) in copies {
        let place = place_of(trace, event);
        let sum = by_place.entry(place.clone()).or_insert_with(|| CopyPlace {
            place,
            count: 0,
            bytes: 0,
            host_ms: 0.0,
        });
        sum.count += 1;
        sum.bytes = sum.bytes.saturating_add(bytes.unwrap_or(0));
        sum.host_ms += event.duration().as_millis();
    }
    let mut places: Vec<CopyPlace> = by_place.into_values().collect();
    places.sort_by(|a, b| b.host_ms.total_cmp(&a.host_ms));
    places.truncate(PLACES);
    places
}

/// The part of the program that an operator belongs to. Numbered annotations are one.
fn place_of(trace: &Trace, event: &Event<'_>) -> String {
    let track = trace.track(event.track_id());
    let of_program = |around: &Event<'_>| match around.kind() {
        EventKind::Annotation => true,
        EventKind::PythonFrame => is_users_code(around.name()),
        _ => false,
    };
    let innermost = track.enclosing(event.start(), of_program);
    let operator = || {
        let around = track.running(track.position(event.start()), event.start());
        around.filter(|event| event.kind() == EventKind::Operator).last()
    };
    match innermost.or_else(operator) {
        Some(around) if around.kind() == EventKind::Annotation => pattern_of(around.name()),
        Some(around) => around.name().to_owned(),
        None => "not inside a named range".to_owned(),
    }
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

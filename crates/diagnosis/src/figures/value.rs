//! How are figures computed from a diagnosis? Helpers that several figures of the catalog share.

use std::ops::Add;

use busbound_trace::Direction;

use crate::activity::compiled::Compiled;
use crate::activity::copies::combined_gbps;
use crate::analysis::cpu_copies::{CpuCopies, CpuCopyClass};
use crate::answers::diagnosis::Diagnosis;
use crate::steps::window::StepTimes;
use busbound_cause::path::PathClass;

/// Over all steps after the warm-up, including outliers.
pub(super) fn every_step(run: &Diagnosis, of: fn(&StepTimes) -> f64) -> Option<f64> {
    run.window.every_step().map(of)
}

/// Over the analyzed steps.
pub(super) fn analyzed_steps(run: &Diagnosis, of: fn(&StepTimes) -> f64) -> Option<f64> {
    run.window.steps.as_ref().map(of)
}

/// What torch.compile did; `None` if the trace has no compiled code.
pub(super) fn compiled(run: &Diagnosis, of: fn(&Compiled) -> Option<f64>) -> Option<f64> {
    of(&run.launches.compiled).filter(|_| run.launches.compiled.regions > 0)
}

fn has_device(run: &Diagnosis) -> bool {
    !run.devices.is_empty()
}

/// The value itself; `None` without a device.
pub(super) fn with_device(run: &Diagnosis, value: f64) -> Option<f64> {
    has_device(run).then_some(value)
}

/// A total per step; `None` if it is zero or the trace has GPU events.
pub(super) fn host_only(run: &Diagnosis, total: f64) -> Option<f64> {
    (!has_device(run) && total > 0.0).then(|| total / run.step_count())
}

/// A figure of copy operators of one class, per step. A run that has copy operators, but none of this class, has zero.
pub(super) fn of_host(run: &Diagnosis, class: CpuCopyClass, of: fn(&CpuCopies) -> f64) -> Option<f64> {
    let total = run.cpu_copies.iter().filter(|sum| sum.class == class).map(of).fold(0.0, f64::add);
    (!run.cpu_copies.is_empty()).then(|| total / run.step_count())
}

/// A total over all devices, per step.
pub(super) fn per_step(run: &Diagnosis, total: f64) -> Option<f64> {
    with_device(run, total / run.step_count())
}

/// A total over all devices, per step and device.
pub(super) fn per_device(run: &Diagnosis, total_ms: f64) -> Option<f64> {
    run.breakdown.averaged(total_ms)
}

/// Combined rate of all copies in one direction.
pub(super) fn gbps(run: &Diagnosis, direction: Direction) -> Option<f64> {
    let groups = run.copies.iter().filter(|group| group.direction == direction);
    combined_gbps(groups.map(|group| (group.bytes as f64, group.gbps.map(|rates| rates.weighted))))
}

pub(super) fn megabytes(run: &Diagnosis, direction: Direction) -> Option<f64> {
    let groups = run.copies.iter().filter(|group| group.direction == direction);
    per_step(run, groups.map(|group| group.bytes as f64).sum::<f64>() / 1e6)
}

/// Bus bandwidth of all collectives together, without waiting.
pub(super) fn bus_bandwidth(run: &Diagnosis) -> Option<f64> {
    let known = || run.collectives.iter().filter_map(|group| Some((group, group.bus_bytes()?)));
    let bytes: f64 = known().map(|(group, bytes)| bytes * group.count as f64).sum();
    let ms: f64 = known().map(|(group, _)| group.transfer_ms()).sum();
    (ms > 0.0).then(|| bytes / ms / 1e6)
}

pub(super) fn on_path(run: &Diagnosis, class: PathClass) -> Option<f64> {
    let path = run.critical_path.as_ref()?;
    Some(path.classes.iter().find(|share| share.class == class).map_or(0.0, |share| share.share))
}

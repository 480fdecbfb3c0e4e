//! Which figures of a run can be required?

use busbound_trace::{Direction, MemoryKind};

use crate::answers::diagnosis::Diagnosis;
use crate::findings::Severity;
use busbound_cause::path::PathClass;

/// One figure that a requirement may name.
#[derive(Debug, Clone, Copy)]
pub struct FigureName {
    pub name: &'static str,
    pub unit: &'static str,
    pub what: &'static str,
    of: fn(&Diagnosis) -> Option<f64>,
}

impl FigureName {
    /// Its value; `None` where the run does not tell it.
    pub fn of(&self, run: &Diagnosis) -> Option<f64> {
        (self.of)(run).filter(|value| value.is_finite())
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        FIGURES.iter().find(|figure| figure.name == name)
    }
}

const fn figure(
    name: &'static str,
    unit: &'static str,
    what: &'static str,
    of: fn(&Diagnosis) -> Option<f64>,
) -> FigureName {
    FigureName { name, unit, what, of }
}

/// Every figure, in the order in which they are listed.
pub const FIGURES: &[FigureName] = &[
    figure("step_p50", "ms", "median length of a step", |run| Some(run.window.every_step()?.p50_ms)),
    figure("step_p90", "ms", "90th percentile of it", |run| Some(run.window.every_step()?.p90_ms)),
    figure("step_p99", "ms", "99th percentile of it", |run| Some(run.window.every_step()?.p99_ms)),
    figure("step_max", "ms", "the longest step", |run| Some(run.window.every_step()?.max_ms)),
    figure("outlier_steps", "", "steps that took clearly longer", |run| {
        run.window.steps.as_ref().map(|_| run.window.outlier_count as f64)
    }),
    figure("span_ms", "ms a step", "first to last work of the device", |run| {
        each_device(run, run.time.span_ms)
    }),
    figure("busy_ms", "ms a step", "the device doing anything", |run| each_device(run, run.time.busy_ms)),
    figure("compute_ms", "ms a step", "compute kernels", |run| each_device(run, run.time.compute_ms)),
    figure("copy_ms", "ms a step", "copies", |run| each_device(run, run.time.copy_ms)),
    figure("comm_ms", "ms a step", "communication kernels", |run| each_device(run, run.time.comm_ms)),
    figure("idle_ms", "ms a step", "the device idle", |run| each_device(run, run.time.idle_ms)),
    figure("exposed_copy_ms", "ms a step", "copies with no kernel beside them", |run| {
        each_device(run, run.time.exposed_copy_ms)
    }),
    figure("exposed_comm_ms", "ms a step", "communication with no compute beside it", |run| {
        each_device(run, run.time.exposed_comm_ms)
    }),
    figure("busy_share", "of 1", "busy time of the span", |run| share(run, run.time.busy_ms)),
    figure("compute_share", "of 1", "compute time of the span", |run| share(run, run.time.compute_ms)),
    figure("idle_share", "of 1", "idle time of the span", |run| share(run, run.time.idle_ms)),
    figure("exposed_copy_share", "of 1", "exposed copies of the span", |run| {
        share(run, run.time.exposed_copy_ms)
    }),
    figure("overlap_score", "of 1", "how far a pipeline's stages are hidden (--stage)", |run| {
        Some(run.stages.as_ref()?.overlap_score)
    }),
    figure("period_ms", "ms an item", "time between items of a pipeline (--stage)", |run| {
        Some(run.stages.as_ref()?.period_ms)
    }),
    figure("h2d_gbps", "GB/s", "rate of copies from host to device", |run| {
        rate(run, Direction::HostToDevice)
    }),
    figure("d2h_gbps", "GB/s", "rate of copies from device to host", |run| {
        rate(run, Direction::DeviceToHost)
    }),
    figure("h2d_mb", "MB a step", "bytes from host to device", |run| megabytes(run, Direction::HostToDevice)),
    figure("d2h_mb", "MB a step", "bytes from device to host", |run| megabytes(run, Direction::DeviceToHost)),
    figure("pageable_mb", "MB a step", "bytes from or to pageable memory", |run| {
        let pageable =
            run.copies.iter().filter(|group| [group.src, group.dst].contains(&MemoryKind::Pageable));
        each(run, pageable.map(|group| group.bytes as f64).sum::<f64>() / 1e6)
    }),
    figure("blocking_ms", "ms a step", "host inside copying calls that wait", |run| {
        each(run, run.copies.iter().map(|group| group.blocking.ms).sum::<f64>())
    }),
    figure("sync_ms", "ms a step", "host inside synchronisations", |run| {
        each(run, run.synchronisations.iter().map(|total| total.host_ms).sum::<f64>())
    }),
    figure("launch_ms", "ms a step", "host inside launching calls", |run| {
        has_device(run).map(|()| run.launches.calls_ms_per_step)
    }),
    figure("kernels", "a step", "kernels launched", |run| each(run, run.launches.kernels as f64)),
    figure("empty_queue_share", "of 1", "time with nothing waiting to begin on the device", |run| {
        Some(run.launches.queue.as_ref()?.empty_share)
    }),
    figure("path_copy_share", "of 1", "copies on the critical path", |run| path(run, PathClass::Copy)),
    figure("path_compute_share", "of 1", "compute on the critical path", |run| path(run, PathClass::Compute)),
    figure("path_host_share", "of 1", "host work on the critical path", |run| path(run, PathClass::Host)),
    figure("findings", "", "findings", |run| Some(run.findings.len() as f64)),
    figure("high_findings", "", "findings of high severity", |run| {
        Some(run.findings.iter().filter(|finding| finding.severity == Severity::High).count() as f64)
    }),
];

fn has_device(run: &Diagnosis) -> Option<()> {
    (!run.devices.is_empty()).then_some(())
}

fn each(run: &Diagnosis, total: f64) -> Option<f64> {
    has_device(run).map(|()| total / run.step_count())
}

/// Of one device; where there are several, their mean.
fn each_device(run: &Diagnosis, total: f64) -> Option<f64> {
    each(run, total).map(|all| all / run.devices.len() as f64)
}

fn share(run: &Diagnosis, ms: f64) -> Option<f64> {
    has_device(run).map(|()| ms / run.time.span_ms)
}

fn rate(run: &Diagnosis, direction: Direction) -> Option<f64> {
    let groups = run.copies.iter().filter(|group| group.direction == direction && group.gbps.is_some());
    let (bytes, ms) =
        groups.fold((0.0, 0.0), |(bytes, ms), group| (bytes + group.bytes as f64, ms + group.busy_ms));
    (ms > 0.0).then(|| bytes / ms / 1e6)
}

fn megabytes(run: &Diagnosis, direction: Direction) -> Option<f64> {
    let groups = run.copies.iter().filter(|group| group.direction == direction);
    each(run, groups.map(|group| group.bytes as f64).sum::<f64>() / 1e6)
}

fn path(run: &Diagnosis, class: PathClass) -> Option<f64> {
    let path = run.critical_path.as_ref()?;
    Some(path.classes.iter().find(|share| share.class == class).map_or(0.0, |share| share.share))
}

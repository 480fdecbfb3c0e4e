//! Which color means what? One class of the style sheet per meaning, on every page.

use busbound_diagnosis::{CopyGroup, Diagnosis, FigureId, GapCause, Resource};
use busbound_trace::{Direction, MemoryKind};

use super::data::idle_class;

/// Copies of one kind color a sum if they are at least this share of it.
const MOST: f64 = 0.9;

/// The color of a part of a step.
pub(super) fn of_part(figure: FigureId, diagnosis: &Diagnosis) -> &'static str {
    match (figure, figure.idle_cause()) {
        (_, Some(GapCause::KernelGap)) => "idle-gap",
        (_, Some(cause)) => idle_class(cause),
        (FigureId::ComputeMs, _) => "compute",
        (FigureId::KernelWaitMs, _) => "h2d",
        (FigureId::ExposedCommMs, _) => "communication",
        (FigureId::ExposedBusCopyMs, _) => of_copies(diagnosis, |_| true, |group| group.exposed_ms),
        (FigureId::IdleMs, _) => "idle",
        _ => "other",
    }
}

/// The color of the time that a resource takes.
pub(super) fn of_resource(resource: Resource, diagnosis: &Diagnosis) -> &'static str {
    let busy = |direction| of_copies(diagnosis, |group| group.direction == direction, |group| group.busy_ms);
    match resource {
        Resource::Compute => "compute",
        Resource::H2d => busy(Direction::HostToDevice),
        Resource::D2h => busy(Direction::DeviceToHost),
        Resource::Peer => "other",
        Resource::Collectives => "communication",
        Resource::Launch => idle_class(GapCause::Launch),
        Resource::Host => idle_class(GapCause::Host),
        Resource::Input => idle_class(GapCause::Input),
        Resource::Sync => idle_class(GapCause::Synchronization),
    }
}

/// The color of copies over the bus: that of one kind if nearly all are of it.
fn of_copies(
    diagnosis: &Diagnosis,
    wanted: impl Fn(&CopyGroup) -> bool,
    time: impl Fn(&CopyGroup) -> f64,
) -> &'static str {
    let on_bus = diagnosis.copies.iter().filter(|group| group.utilization.is_some() && wanted(group));
    let mut sums: Vec<(&'static str, f64)> = Vec::new();
    for group in on_bus {
        let class = of_copy(group);
        match sums.iter_mut().find(|(known, _)| *known == class) {
            Some((_, sum)) => *sum += time(group),
            None => sums.push((class, time(group))),
        }
    }
    let all: f64 = sums.iter().map(|(_, sum)| sum).sum();
    let most = sums.into_iter().find(|(_, sum)| *sum >= MOST * all);
    most.map_or("copies-mixed", |(class, _)| class)
}

/// Pageable memory has its own color; otherwise the direction decides.
pub(super) fn of_copy(group: &CopyGroup) -> &'static str {
    match (group.direction, group.src, group.dst) {
        (Direction::HostToDevice, MemoryKind::Pageable, _)
        | (Direction::DeviceToHost, _, MemoryKind::Pageable) => "pageable",
        (Direction::HostToDevice, ..) => "h2d",
        (Direction::DeviceToHost, ..) => "d2h",
        _ => "other",
    }
}

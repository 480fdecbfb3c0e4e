//! Does the optimizer run on the CPU, and can it run elsewhere?

use busbound_cause::HostUse;
use busbound_cause::training::is_optimizer_step;
use busbound_trace::{Event, Nanos};
use busbound_whatif::replay::{Optimizer, Predicted};

use crate::analysis::device_memory::DeviceMemory;
use crate::analysis::facts::Facts;

/// An optimizer on the CPU that a device waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuOptimizer {
    /// How often it runs per step.
    pub(crate) runs: f64,
    /// It updates a part of the weights at a time, while the device copies or computes.
    pub(crate) is_overlapped: bool,
    /// The run with the optimizer and its state on the GPU; `None` if that gains nothing, or does not fit.
    pub(crate) on_gpu: Option<Predicted>,
}

/// Fewest runs per step of an optimizer that updates in parts, and the share of its time in which the device works.
const PARTS: f64 = 2.0;
const OVERLAPPED: f64 = 0.05;

impl CpuOptimizer {
    pub(crate) fn of(facts: &Facts<'_>) -> Option<Self> {
        facts.host_work().iter().find(|work| work.what == HostUse::Optimizer)?;
        let runs: Vec<Event<'_>> =
            facts.host.annotations().into_iter().filter(|event| is_run(facts, event)).collect();
        let total: Nanos = runs.iter().map(|run| run.duration()).sum();
        let busy_within = |run: &Event<'_>| {
            facts.timelines.iter().map(|line| line.busy.length_within(run.interval())).max()
        };
        let busy: Nanos = runs.iter().filter_map(busy_within).sum();
        let per_step = runs.len() as f64 / facts.steps();
        let is_overlapped = per_step >= PARTS && busy.as_millis() >= OVERLAPPED * total.as_millis();
        Some(Self { runs: per_step, is_overlapped, on_gpu: on_gpu(facts) })
    }
}

/// Whether an annotation is an update of weights on the CPU.
fn is_run(facts: &Facts<'_>, event: &Event<'_>) -> bool {
    let on_cpu = facts.host.thread(event.track_id()).map(|times| &times.optimizer);
    is_optimizer_step(event.name()) && on_cpu.is_some_and(|times| times.covers(event.start()))
}

fn on_gpu(facts: &Facts<'_>) -> Option<Predicted> {
    let replay = facts.replay()?;
    let predicted = replay.predict(&[Optimizer::Gpu.into()]);
    let memory = facts.timelines.first().and_then(|line| DeviceMemory::of(facts, line.device));
    let has_room = memory.is_none_or(|memory| memory.has_room_for(predicted.extra_bytes));
    (predicted.applies && predicted.step_ms < replay.step_ms() && has_room).then_some(predicted)
}

//! Which options do not fit the trace? Figures are then for something else than was asked for.

use busbound_machine::{GpuFacts, gpu_of_name};

use crate::analysis::breakdown::Part;
use crate::analysis::facts::Facts;
use crate::options::{BlockChoice, Options};
use crate::steps::steady::LeftOut;
use crate::steps::window::StepsFound;
use crate::unit::Unit;

/// An option that does not fit the trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Misfit {
    /// No annotation matches [`Options::steps`].
    Steps,
    /// The trace has too few steps for [`Options::warmup`].
    Warmup { steps: usize, dropped: usize },
    /// [`Options::wall_ms`] is longer than the recorded step: a profiler never makes a step shorter.
    WallTooLong { recorded_ms: f64, unit: Unit },
    /// [`Options::wall_ms`] is shorter than what the kernels of a step take, with or without a profiler.
    WallTooShort { compute_ms: f64, unit: Unit },
    /// What this profiler costs per event is unknown, so nothing can be computed from [`Options::wall_ms`].
    WallUnused,
    /// No annotation matches [`Options::blocks`].
    Blocks,
    /// Copies are faster than the machine's link.
    Link,
    /// The machine has another GPU than the trace.
    Gpu { recorded: &'static str },
}

/// In the order of the warnings. `has_blocks` says whether any time is attributed to the chosen blocks.
pub(crate) fn misfits(
    facts: &Facts<'_>,
    options: &Options,
    left_out: &LeftOut,
    has_blocks: impl FnOnce() -> bool,
) -> Vec<Misfit> {
    let window = &facts.window;
    let mut all = Vec::new();
    if options.steps.is_some() && (window.steps.is_empty() || window.found == Some(StepsFound::Period)) {
        all.push(Misfit::Steps);
    }
    if let (Some(warmup), Some(times)) = (options.warmup, window.times())
        && left_out.warm_up != warmup
    {
        let dropped = left_out.warm_up;
        all.push(Misfit::Warmup { steps: times.count + dropped + left_out.others, dropped });
    }
    all.extend(options.wall_ms.and_then(|wall_ms| wall_misfit(facts, wall_ms)));
    if matches!(options.blocks, BlockChoice::Matching(_)) && !has_blocks() {
        all.push(Misfit::Blocks);
    }
    if facts.is_faster_than_link() {
        all.push(Misfit::Link);
    }
    all.extend(gpu_misfit(facts));
    all
}

fn gpu_misfit(facts: &Facts<'_>) -> Option<Misfit> {
    let stated = facts.stated_gpu?;
    let mut recorded = facts.trace.origin().gpus.iter().map(|gpu| gpu_of_name(&gpu.name));
    let first = recorded.next()??;
    let is_other = |gpu: Option<&GpuFacts>| gpu.is_some_and(|gpu| gpu.key != stated.key);
    (is_other(Some(first)) && recorded.all(is_other)).then_some(Misfit::Gpu { recorded: first.key })
}

/// Kernels hardly run faster without a profiler: a step is not shorter than this share of their time.
const LEAST_OF_KERNELS: f64 = 0.9;

fn wall_misfit(facts: &Facts<'_>, wall_ms: f64) -> Option<Misfit> {
    let recorded_ms = facts.step_ms();
    if wall_ms > 1.03 * recorded_ms {
        return Some(Misfit::WallTooLong { recorded_ms, unit: facts.unit() });
    }
    let compute_ms = facts.part_ms(|part| part == Part::Compute) / facts.steps();
    if wall_ms < LEAST_OF_KERNELS * compute_ms {
        return Some(Misfit::WallTooShort { compute_ms, unit: facts.unit() });
    }
    let is_used = facts.unprofiled().is_some() || wall_ms > 0.97 * recorded_ms;
    (!is_used).then_some(Misfit::WallUnused)
}

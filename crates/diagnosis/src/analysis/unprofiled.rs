//! How long would a step take without the profiler?

use std::sync::Arc;

use busbound_cause::parallel::join;
use busbound_cause::{Bounds, FreshPages, Model, RecordingCost, Shape};
use busbound_machine::{HostMemory, LinkFacts, ProfilerCost, ProfilerTool, bench};
use busbound_trace::Trace;
use busbound_whatif::replay::Models;
use serde::Serialize;

/// The step without the profiler, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unprofiled {
    pub low: f64,
    pub mid: f64,
    pub high: f64,
    pub source: UnprofiledSource,
}

/// How the step without the profiler is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum UnprofiledSource {
    /// Steps that `busbound.profiler_handler` timed while nothing was recorded.
    Measured,
    /// The user gave it.
    Given,
    /// From what each recorded event costs.
    Model,
}

/// A smaller difference between the two times is not worth mentioning.
const WORTH_SAYING: f64 = 0.03;
/// How far the cost of recording on another host may be from the one that was measured, as factors. Evidence:
/// docs/results/verdicts.md.
const LEAST_COST: f64 = 0.55;
const MOST_COST: f64 = 1.7;
/// How much of the time that D2H copies take to touch fresh pages is due to torch.profiler, at most and as a share of that.
/// Measured on runs of fixtures/frameworks: nothing on half of them, 0.7 to 0.9 on the others (`keep-layers-moved`,
/// `accelerate-model_offload_…-moved`, `saved-mlp_…-pageable`).
const FRESH_MOST: f64 = 0.85;
const FRESH_EXPECTED: f64 = 0.5;
/// The time of a step that was measured without the profiler scatters by this share.
const SCATTER: f64 = 0.05;

/// Whether the step without the profiler differs enough from the recorded one to show both.
pub(crate) fn is_worth_saying(unprofiled_ms: f64, recorded_ms: f64) -> bool {
    (unprofiled_ms / recorded_ms - 1.0).abs() > WORTH_SAYING
}

/// What the cost of recording is computed from.
#[derive(Debug)]
pub(crate) struct Recording {
    cost: Option<RecordingCost>,
    /// A known step time without the profiler.
    known: Option<(f64, UnprofiledSource)>,
}

/// The steady steps with and without the cost of recording them.
pub(crate) struct Timed {
    pub(crate) models: Models,
    /// `None` if it hardly differs, or is not known.
    pub(crate) unprofiled: Option<Unprofiled>,
}

impl Recording {
    pub(crate) fn of(trace: &Trace, link: &LinkFacts, wall_ms: Option<f64>) -> Self {
        let origin = trace.origin();
        let given = wall_ms.map(|ms| (ms, UnprofiledSource::Given));
        let measured = || {
            let steps = origin.unprofiled_step_ms.iter().copied();
            Some((busbound_machine::median(steps)?, UnprofiledSource::Measured))
        };
        Self { cost: cost_of(trace, link), known: given.or_else(measured) }
    }

    /// The steps with and without the cost of recording them. `step_ms` is the recorded step.
    pub(crate) fn models(&self, recorded: &Arc<Model>, shape: &Arc<Shape>, step_ms: f64) -> Timed {
        let as_recorded = || Timed { models: Models::recorded(Arc::clone(recorded)), unprofiled: None };
        let Some(cost) = self.cost else { return as_recorded() };
        let Some(now) = mean_ms(recorded, shape).filter(|now| *now > 0.0) else { return as_recorded() };
        let factor = self.known.map_or(1.0, |(ms, _)| fitting(shape, recorded, &cost, now * ms / step_ms));
        let fitted = (factor, factor.min(1.0));
        let (usual, least, most) = match self.known {
            Some(_) => (fitted, fitted, fitted),
            None => ((1.0, FRESH_EXPECTED), (LEAST_COST, 0.0), (MOST_COST, 1.0)),
        };
        let with = |(factor, fresh)| {
            let model = recorded.without_profiler(&scaled(&cost, factor, fresh));
            let ms = mean_ms(&model, shape).unwrap_or(now) * step_ms / now;
            (model, ms)
        };
        let (((slow, high), (fast, low)), (expected, mid)) =
            join(|| join(|| with(least), || with(most)), || with(usual));
        let unprofiled = match self.known {
            Some((ms, source)) => {
                Unprofiled { low: ms * (1.0 - SCATTER), mid: ms, high: ms * (1.0 + SCATTER), source }
            }
            None => Unprofiled { low, mid, high, source: UnprofiledSource::Model },
        };
        let differs = is_worth_saying(unprofiled.mid, step_ms);
        Timed {
            models: Models::unprofiled(Arc::clone(recorded), expected, fast, slow),
            unprofiled: differs.then_some(unprofiled),
        }
    }
}

/// This multiple of what events cost, and this share of what fresh pages may cost.
fn scaled(cost: &RecordingCost, factor: f64, fresh: f64) -> RecordingCost {
    // Where the program frees memory of the same size in the step before, all of it is expected to be recording's: on all nine such
    // runs of fixtures/frameworks (`…-moved`, `diffusers-…-plain`) that touch fresh pages, the walls are those of touched pages.
    let of_freed = (fresh / FRESH_EXPECTED).min(1.0);
    cost.scaled(factor).with_fresh_shares(fresh * cost.fresh.share, of_freed * cost.fresh.share_of_freed)
}

/// Milliseconds of the mean step.
fn mean_ms(model: &Model, shape: &Arc<Shape>) -> Option<f64> {
    Some(Bounds::shaped(Arc::clone(shape), model).recorded()? / 1e6)
}

/// The multiple of the cost with which the step takes this long.
fn fitting(shape: &Arc<Shape>, recorded: &Model, cost: &RecordingCost, wanted_ms: f64) -> f64 {
    const MOST: f64 = 8.0;
    let (mut low, mut high) = (0.0, MOST);
    for _ in 0..12 {
        let middle = 0.5 * (low + high);
        let without = recorded.without_profiler(&scaled(cost, middle, middle.min(1.0)));
        let ms = mean_ms(&without, shape);
        if ms.is_some_and(|ms| ms > wanted_ms) { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

fn fresh_pages(tool: ProfilerTool, link: &LinkFacts) -> FreshPages {
    const USUAL_BYTES: u64 = 16 << 20;
    if tool != ProfilerTool::TorchProfiler {
        return FreshPages::NONE;
    }
    let rate = link.expected_of(USUAL_BYTES, bench::Direction::D2h, HostMemory::Pageable);
    FreshPages { share: FRESH_MOST, share_of_freed: FRESH_MOST, touched: 1.0 / rate.max(0.1) }
}

/// What recording cost per event; `None` if that is not known for this profiler.
fn cost_of(trace: &Trace, link: &LinkFacts) -> Option<RecordingCost> {
    let origin = trace.origin();
    let tool = match origin.format.id {
        // Files written by hand or by other tools list no devices.
        "kineto-json" if !origin.gpus.is_empty() => ProfilerTool::TorchProfiler,
        "nsys-sqlite" | "nsys-report" => ProfilerTool::Nsight,
        "busbound-capture" => ProfilerTool::BusboundRecord,
        _ => return None,
    };
    let measured = link.measured().and_then(|profile| profile.profiler_cost(tool)).cloned();
    let (cost, slowness) = match measured {
        Some(cost) => (cost, 1.0),
        None if tool == ProfilerTool::TorchProfiler => (ProfilerCost::usual_of_torch(), slowness(trace)),
        None => return None,
    };
    let flags = origin.profiled_with();
    let shapes = if flags.shapes { cost.shapes_us } else { 0.0 };
    let cost = RecordingCost {
        operator: 1e3 * (cost.operator_us + shapes),
        call: 1e3 * cost.call_us,
        work: 1e3 * cost.work_us,
        frame: if flags.stack { 1e3 * cost.frame_us } else { 0.0 },
        step: 1e3 * cost.step_us,
        node: 1e3 * cost.node_us,
        // Not a cost of the host.
        copy: 1e3 * cost.copy_us / slowness,
        fresh: fresh_pages(tool, link),
    };
    Some(cost.scaled(slowness))
}

/// Operators and calls whose recorded time is mostly that of recording them: how long they take, in microseconds, where recording
/// costs what is usual, and how that cost falls with their time. Fitted to the runs of fixtures/frameworks whose recorded step is 15%
/// longer than the wall: 0.35 µs and 0.85 µs go with 0.68 and 1.35 times the usual cost.
const REFERENCES: [(&str, f64, f64); 2] = [("aten::as_strided", 0.57, 0.77), ("cudaLaunchKernel", 7.2, 1.6)];
/// On a slow host, part of what is slow is the program's own: the cost grows with this share of the power. On a fast one it falls with
/// this multiple. Fitted to the same runs: two recordings of fixtures/frameworks (`_6` and `_8`) are from a host that was faster.
const SLOW_SHARE: f64 = 0.65;
const FAST_SHARE: f64 = 1.6;
/// Fewer of them say nothing.
const LEAST_REFERENCES: usize = 20;
/// More of them say no more.
const MOST_REFERENCES: usize = 2_000;
/// How far a host may be from the usual one.
const SLOWNESS: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// The multiple of the usual cost that recording had on this host: the same host is twice as slow while others use it.
fn slowness(trace: &Trace) -> f64 {
    let of = |(name, usual_us, power): (&str, f64, f64)| {
        let id = trace.names().find(name)?;
        let found = trace.events().filter(|event| event.name_id() == id).take(MOST_REFERENCES);
        let times: Vec<f64> = found.map(|event| event.duration().as_micros()).collect();
        if times.len() < LEAST_REFERENCES {
            return None;
        }
        let times = busbound_machine::median(times)? / usual_us;
        Some(times.powf(power * if times > 1.0 { SLOW_SHARE } else { FAST_SHARE }))
    };
    let multiple = REFERENCES.into_iter().find_map(of).unwrap_or(1.0);
    multiple.clamp(*SLOWNESS.start(), *SLOWNESS.end())
}

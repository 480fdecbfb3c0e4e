//! How well do plans predict steps that were actually run?

use busbound_machine::bench::{
    DoubleBufferCase, DoubleBufferTask, Memory, OffloadCase, OffloadTask, Order, Samples, Spread,
};
use busbound_machine::{HostMemory, LinkFacts};
use busbound_whatif::Range;
use busbound_whatif::plan::offload::{Offload, OffloadInputs};
use serde::Serialize;

/// One configuration: measured, and predicted from the profile of the same run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Offloaded {
    pub layers: u32,
    pub bytes: u64,
    pub memory: Memory,
    pub order: Order,
    pub depth: u32,
    /// Compute time of one layer, measured without copies.
    pub compute_ms: f64,
    pub step_ms: Spread,
    /// From the profile's curve, as `plan offload --machine` predicts it.
    pub predicted_ms: f64,
    /// (predicted − measured) / measured.
    pub error: f64,
    /// Rate of consecutive copies just before the step ran.
    pub copy_gbps: f64,
    /// Rate of the same copies according to the profile's curve.
    pub profile_gbps: f64,
    /// The error with the measured rate in place of the profile's: the part that the plan itself causes.
    pub error_at_rate: f64,
}

/// Absolute prediction errors for one kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanErrors {
    pub memory: Memory,
    pub count: usize,
    /// With the rates of the profile.
    pub median: f64,
    pub worst: f64,
    /// With the rates measured just before each step.
    pub median_at_rate: f64,
    pub worst_at_rate: f64,
}

impl PlanErrors {
    /// For each kind of memory with results.
    pub(super) fn of(all: &[Offloaded]) -> Vec<Self> {
        let of = |memory: Memory| {
            let of_it: Vec<&Offloaded> = all.iter().filter(|one| one.memory == memory).collect();
            let (median, worst) = median_and_worst(of_it.iter().map(|one| one.error))?;
            let (median_at_rate, worst_at_rate) =
                median_and_worst(of_it.iter().map(|one| one.error_at_rate))?;
            Some(Self { memory, count: of_it.len(), median, worst, median_at_rate, worst_at_rate })
        };
        [Memory::Pinned, Memory::Pageable].into_iter().filter_map(of).collect()
    }
}

fn median_and_worst(errors: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    let sizes = errors.map(f64::abs);
    Some((Spread::of(sizes.clone())?.median, sizes.max_by(f64::total_cmp)?))
}

/// Copy and compute serialized on one stream, and overlapped with two buffers and two streams.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DoubleBuffered {
    pub chunks: u32,
    pub bytes: u64,
    pub compute_to_copy: f64,
    pub naive_ms: f64,
    pub buffered_ms: f64,
    pub gain: f64,
    /// As the plan predicts it.
    pub predicted_gain: f64,
}

pub(super) fn offloaded(samples: &Samples, link: &LinkFacts) -> Vec<Offloaded> {
    samples.cases_of::<OffloadTask>().filter_map(|case| of_offload(case, link)).collect()
}

fn of_offload(case: &OffloadCase, link: &LinkFacts) -> Option<Offloaded> {
    let task = &case.task;
    let compute_ms = Spread::of_ns(&case.compute_ns)?.median / f64::from(task.layers) / 1e6;
    let step_ms = Spread::of(case.step_ns.iter().map(|ns| *ns as f64 / 1e6))?;
    let pinned = task.memory == Memory::Pinned;
    let predicted_ms = planned(link, task.layers, task.bytes, compute_ms, pinned, task.depth)?;
    let copy_gbps = Spread::of_rates(&case.copy_ns, task.bytes)?.median;
    let memory = if pinned { HostMemory::Pinned } else { HostMemory::Pageable };
    let profile_gbps = link.expected_gbps(task.bytes, memory);
    let at_rate = link.with_rates_times(memory, copy_gbps / profile_gbps);
    let at_rate_ms = planned(&at_rate, task.layers, task.bytes, compute_ms, pinned, task.depth)?;
    Some(Offloaded {
        layers: task.layers,
        bytes: task.bytes,
        memory: task.memory,
        order: task.order,
        depth: task.depth,
        compute_ms,
        step_ms,
        predicted_ms,
        error: predicted_ms / step_ms.median - 1.0,
        copy_gbps,
        profile_gbps,
        error_at_rate: at_rate_ms / step_ms.median - 1.0,
    })
}

fn planned(
    link: &LinkFacts,
    layers: u32,
    bytes: u64,
    compute_ms: f64,
    pinned: bool,
    depth: u32,
) -> Option<f64> {
    let inputs = OffloadInputs {
        layers,
        layer_bytes: bytes as f64,
        compute_ms: Range { low: compute_ms, high: compute_ms },
        link: link.clone(),
        pinned,
        depth,
        resident: 0.0,
        sharing: 1,
        all_to_all_bytes: 0.0,
    };
    Offload::plan(inputs).ok().map(|plan| plan.step_ms.low)
}

pub(super) fn double_buffered(samples: &Samples, link: &LinkFacts) -> Vec<DoubleBuffered> {
    samples.cases_of::<DoubleBufferTask>().filter_map(|case| of_double_buffer(case, link)).collect()
}

fn of_double_buffer(case: &DoubleBufferCase, link: &LinkFacts) -> Option<DoubleBuffered> {
    let task = &case.task;
    let median_ms = |ns: &[u64]| Spread::of_ns(ns).map(|spread| spread.median / 1e6);
    let compute_ms = median_ms(&case.compute_ns)? / f64::from(task.chunks);
    let (naive_ms, buffered_ms) = (median_ms(&case.naive_ns)?, median_ms(&case.buffered_ns)?);
    let at = |depth| planned(link, task.chunks, task.bytes, compute_ms, true, depth);
    Some(DoubleBuffered {
        chunks: task.chunks,
        bytes: task.bytes,
        compute_to_copy: task.compute_to_copy,
        naive_ms,
        buffered_ms,
        gain: naive_ms / buffered_ms,
        predicted_gain: at(0)? / at(1)?,
    })
}

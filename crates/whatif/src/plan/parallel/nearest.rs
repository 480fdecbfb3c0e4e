//! If nothing fits: what comes closest, and what would make it fit?

use busbound_machine::catalog;
use serde::Serialize;

use super::{Arrangement, Parallel, ParallelInputs};
use crate::plan::cluster::Cluster;

/// The layout that needs the least memory, and what would make a layout fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Nearest {
    pub layout: Arrangement,
    pub missing_gb: f64,
    /// Easiest first; empty if nothing that was tried helps.
    pub remedies: Vec<Remedy>,
}

/// A change with which a layout fits.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "change")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Remedy {
    /// Other micro-batches, sharding or recomputation than those given.
    Search {
        layout: String,
        microbatches: u32,
        recompute: bool,
    },
    /// Optimizer state in host memory.
    OffloadOptimizer {
        layout: String,
        host_gb_per_gpu: f64,
    },
    MoreGpus {
        ranks: u32,
        layout: String,
    },
    LargerGpu {
        gpu: &'static str,
        gpu_gb: f64,
        layout: String,
    },
}

/// The most times as many GPUs that are suggested.
const MOST_TIMES: u32 = 64;

pub(super) fn nearest(plan: &Parallel) -> Option<Nearest> {
    let smallest = plan.ranked.iter().min_by(|a, b| a.memory_gb.total_cmp(&b.memory_gb))?.clone();
    let inputs = &plan.inputs;
    let remedies = [searched(inputs), offloaded(plan), more_gpus(inputs), larger_gpu(inputs)];
    Some(Nearest {
        missing_gb: smallest.memory_gb - inputs.gpu_gb,
        layout: smallest,
        remedies: remedies.into_iter().flatten().collect(),
    })
}

/// The fastest layout that fits.
fn fitting(inputs: ParallelInputs) -> Option<Arrangement> {
    Parallel::ranked(inputs).ok()?.ranked.into_iter().next().filter(|first| first.fits)
}

fn searched(inputs: &ParallelInputs) -> Option<Remedy> {
    let free = ParallelInputs { microbatches: None, zero: None, recompute: None, ..inputs.clone() };
    let found = fitting(free)?;
    Some(Remedy::Search { layout: found.name, microbatches: found.microbatches, recompute: found.recompute })
}

fn offloaded(plan: &Parallel) -> Option<Remedy> {
    let without = |layout: &&Arrangement| layout.memory.without_optimizer_gb();
    let layout = plan.ranked.iter().min_by(|a, b| without(a).total_cmp(&without(b)))?;
    let fits = layout.memory.optimizer_gb > 0.0 && without(&layout) <= plan.inputs.gpu_gb;
    fits.then(|| Remedy::OffloadOptimizer {
        layout: layout.name.clone(),
        host_gb_per_gpu: layout.memory.optimizer_gb,
    })
}

/// Twice as many nodes, or twice as many GPUs of one node up to 8, until something fits.
fn more_gpus(inputs: &ParallelInputs) -> Option<Remedy> {
    let mut times = 2;
    while times <= MOST_TIMES {
        let cluster = &inputs.cluster;
        let ranks = cluster.ranks.checked_mul(times)?;
        // More nodes need a network; without one the node grows.
        let nodes = if cluster.net.is_some() { cluster.nodes * times } else { cluster.nodes };
        let larger = Cluster { ranks, nodes, ..cluster.clone() };
        // A larger batch keeps the work of each GPU.
        let batch = inputs.batch.checked_mul(times)?;
        if let Some(found) = fitting(ParallelInputs { cluster: larger, batch, ..inputs.clone() }) {
            return Some(Remedy::MoreGpus { ranks, layout: found.name });
        }
        times *= 2;
    }
    None
}

/// The GPU with the least memory that is enough.
fn larger_gpu(inputs: &ParallelInputs) -> Option<Remedy> {
    let mut larger: Vec<_> = catalog().iter().filter(|gpu| gpu.memory_gb > inputs.gpu_gb).collect();
    larger.sort_by(|a, b| a.memory_gb.total_cmp(&b.memory_gb));
    larger.into_iter().find_map(|gpu| {
        let found = fitting(inputs.on(gpu))?;
        Some(Remedy::LargerGpu { gpu: gpu.key, gpu_gb: gpu.memory_gb, layout: found.name })
    })
}

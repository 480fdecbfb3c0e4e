//! Which kernels take the most time, and how far are they below the roofline?
//!
//! Shown last: while the GPU waits for anything else, faster kernels only make it wait sooner.

use std::collections::{BTreeMap, BTreeSet};

use busbound_machine::median;
use busbound_trace::{EventKind, Launch, MeasuredKernel, NameId, Nanos};
use serde::Serialize;

use crate::analysis::facts::Facts;
use crate::quantity::printable;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Kernels {
    /// Most time first.
    pub top: Vec<KernelTime>,
    /// Number of distinct kernels.
    pub different: u64,
    /// Sum of the durations of all kernels, per step.
    pub ms_per_step: f64,
    /// How many kernels of an Nsight Compute export the trace contains; `null` without an export.
    pub measured: Option<Matched>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Matched {
    pub kernels: usize,
    pub found_in_trace: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelTime {
    pub name: String,
    pub runs_per_step: f64,
    pub ms_per_step: f64,
    /// Share of the time of all kernels, 0 to 1.
    pub share: f64,
    pub median_us: f64,
    /// Launch geometry of most of its runs; `null` if not recorded.
    pub geometry: Option<Geometry>,
    /// What Nsight Compute measured.
    pub roofline: Option<Roofline>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Geometry {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers_per_thread: u32,
    pub shared_memory_bytes: u32,
}

/// Where a kernel is relative to the roofline of its GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Roofline {
    /// `null` if the export has no percentages of peak.
    pub bound: Option<KernelBound>,
    /// Share of the roof that it reaches, 0 to 1: of the memory or the compute roof, whichever is nearer.
    pub of_roof: Option<f64>,
    pub memory_pct: Option<f64>,
    pub compute_pct: Option<f64>,
    pub bytes: Option<f64>,
    pub memory_gbps: Option<f64>,
    /// Operations of all precisions.
    pub operations: Option<f64>,
    /// The precision with the most operations.
    pub precision: Option<String>,
    /// Rate of the operations in that precision.
    pub tflops: Option<f64>,
    /// Share of the roof of that precision, 0 to 1.
    pub of_precision_roof: Option<f64>,
    /// Operations per byte.
    pub intensity: Option<f64>,
    pub duration_us: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum KernelBound {
    Memory,
    Compute,
    /// Near neither roof: too little work in flight.
    Latency,
}

impl KernelBound {
    pub fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Compute => "compute",
            Self::Latency => "latency",
        }
    }
}

/// Below this percentage of both roofs a kernel is bound by neither. Nsight Compute uses the same threshold.
const NEAR_A_ROOF: f64 = 60.0;
const TOP: usize = 10;

pub(crate) fn kernels(facts: &Facts<'_>, measured: Option<&[MeasuredKernel]>) -> Option<Kernels> {
    #[derive(Default)]
    struct Sum {
        runs: Vec<Nanos>,
        geometries: BTreeMap<Geometry, u64>,
    }
    let mut sums: BTreeMap<NameId, Sum> = BTreeMap::new();
    for stream in facts.trace.streams() {
        for event in stream.events().filter(|event| event.kind() == EventKind::Kernel) {
            let sum = sums.entry(event.name_id()).or_default();
            sum.runs.push(event.duration());
            if let Some(launch) = event.launch() {
                *sum.geometries.entry(Geometry::of(launch)).or_default() += 1;
            }
        }
    }
    let all: Nanos = sums.values().flat_map(|sum| &sum.runs).copied().sum();
    if all.get() <= 0 {
        return None;
    }
    let different = sums.len() as u64;
    let mut by_time: Vec<(NameId, Nanos, Sum)> =
        sums.into_iter().map(|(name, sum)| (name, sum.runs.iter().copied().sum(), sum)).collect();
    by_time.sort_by_key(|(name, time, _)| (std::cmp::Reverse(*time), *name));
    let by_function = measured.map(by_function);
    let matched = by_function.as_ref().map(|by_function| {
        let mut found: BTreeSet<usize> = BTreeSet::new();
        for (name, _, sum) in &by_time {
            let same = by_function.get(&function_name(facts.trace.names().get(*name)));
            let same_geometry = |kernel: &MeasuredKernel| {
                sum.geometries.is_empty() || sum.geometries.keys().any(|geometry| geometry.is_of(kernel))
            };
            found.extend(
                same.into_iter().flatten().filter(|(_, kernel)| same_geometry(kernel)).map(|(i, _)| *i),
            );
        }
        Matched { kernels: by_function.values().map(Vec::len).sum(), found_in_trace: found.len() }
    });
    let steps = facts.steps();
    let top = by_time
        .into_iter()
        .take(TOP)
        .map(|(name, time, sum)| {
            let name = facts.trace.names().get(name);
            let geometry =
                sum.geometries.iter().max_by_key(|(_, runs)| **runs).map(|(geometry, _)| *geometry);
            KernelTime {
                name: printable(name),
                runs_per_step: sum.runs.len() as f64 / steps,
                ms_per_step: time.as_millis() / steps,
                share: time.as_millis() / all.as_millis(),
                median_us: median(sum.runs.iter().map(|run| run.as_micros())).unwrap_or(0.0),
                geometry,
                roofline: by_function
                    .as_ref()
                    .and_then(|measured| roofline(measured, name, geometry.as_ref())),
            }
        })
        .collect();
    Some(Kernels { top, different, ms_per_step: all.as_millis() / steps, measured: matched })
}

/// Measured kernels with their index, by function name. The two tools print full names differently, but agree on the
/// function and the geometry.
type ByFunction<'m> = BTreeMap<String, Vec<(usize, &'m MeasuredKernel)>>;

fn by_function(measured: &[MeasuredKernel]) -> ByFunction<'_> {
    let mut kernels: ByFunction<'_> = BTreeMap::new();
    for (i, kernel) in measured.iter().enumerate() {
        kernels.entry(function_name(&kernel.name)).or_default().push((i, kernel));
    }
    kernels
}

impl Geometry {
    fn is_of(&self, kernel: &MeasuredKernel) -> bool {
        self.grid == kernel.grid && self.block == kernel.block
    }

    fn of(launch: &Launch) -> Self {
        Self {
            grid: launch.grid,
            block: launch.block,
            registers_per_thread: launch.registers_per_thread,
            shared_memory_bytes: launch.shared_memory,
        }
    }
}

/// The measured kernel with this name and geometry; the longest run if there are several.
fn roofline(measured: &ByFunction<'_>, name: &str, geometry: Option<&Geometry>) -> Option<Roofline> {
    let same = measured.get(&function_name(name))?.iter().map(|(_, kernel)| *kernel);
    let same = same.filter(|kernel| geometry.is_none_or(|geometry| geometry.is_of(kernel)));
    // One function has many template instances: take the one with the longest common prefix, then the longest run.
    let wanted = instance(name);
    let common_prefix = |kernel: &MeasuredKernel| {
        let other = instance(&kernel.name);
        wanted.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
    };
    let kernel = same.max_by(|a, b| {
        let longer = a.duration_ns.unwrap_or(0.0).total_cmp(&b.duration_ns.unwrap_or(0.0));
        common_prefix(a).cmp(&common_prefix(b)).then(longer)
    })?;
    let seconds = kernel.duration_ns.filter(|ns| *ns > 0.0).map(|ns| ns / 1e9);
    let shares = kernel.memory_pct.zip(kernel.compute_pct);
    let nearest = shares.map(|(memory, compute)| memory.max(compute));
    let bound = shares.map(|(memory, compute)| match () {
        () if memory.max(compute) < NEAR_A_ROOF => KernelBound::Latency,
        () if memory >= compute => KernelBound::Memory,
        () => KernelBound::Compute,
    });
    let most = kernel.operations.iter().max_by(|a, b| a.count.total_cmp(&b.count));
    let rate = most.zip(seconds).map(|(most, seconds)| most.count / seconds);
    let operations =
        (!kernel.operations.is_empty()).then(|| kernel.operations.iter().map(|o| o.count).sum::<f64>());
    Some(Roofline {
        bound,
        of_roof: nearest.map(|pct| pct / 100.0),
        memory_pct: kernel.memory_pct,
        compute_pct: kernel.compute_pct,
        bytes: kernel.memory_bytes,
        memory_gbps: kernel.memory_bytes.zip(seconds).map(|(bytes, seconds)| bytes / seconds / 1e9),
        operations,
        precision: most.map(|most| most.precision.clone()),
        tflops: rate.map(|rate| rate / 1e12),
        of_precision_roof: rate.zip(most.and_then(|most| most.roof)).map(|(rate, roof)| rate / roof),
        intensity: operations.zip(kernel.memory_bytes).filter(|(_, bytes)| *bytes > 0.0).map(|(o, b)| o / b),
        duration_us: kernel.duration_ns.map(|ns| ns / 1e3),
    })
}

/// A name without the parts that the two tools print differently: namespaces, spaces, casts of numbers.
fn instance(name: &str) -> String {
    let name = name.replace("(anonymous namespace)::", "").replace("<unnamed>::", "").replace("(int)", "");
    name.replace("native::", "").replace("at::", "").replace(' ', "")
}

/// `cunn_SoftMaxForwardReg` of `void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<float>(…)`.
fn function_name(name: &str) -> String {
    let name = name.replace("(anonymous namespace)", "").replace("<unnamed>", "");
    let end = name.find(['<', '(']).unwrap_or(name.len());
    let path = name[..end].trim_end();
    let last = path.rsplit([':', ' ']).next().unwrap_or(path);
    last.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tools_give_the_same_function_name() {
        for (torch, ncu) in [
            (
                "void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<float, float>(float*)",
                "void at::<unnamed>::cunn_SoftMaxForwardReg<float, float>(T3 *, const T1 *, T5)",
            ),
            (
                "void (anonymous namespace)::elementwise_kernel_with_index<int>(int)",
                "void <unnamed>::elementwise_kernel_with_index<int>(T1)",
            ),
            (
                "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
                "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
            ),
        ] {
            assert_eq!(function_name(torch), function_name(ncu));
        }
        assert_eq!(function_name("void cutlass::Kernel2<x>(x::Params)"), "Kernel2");
    }
}

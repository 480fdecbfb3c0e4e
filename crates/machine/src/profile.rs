//! What was measured on a machine? This file takes precedence over any data sheet.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bench::identity::Identity;
use crate::bench::statistics::Spread;
use crate::bench::terms::{
    ContentionLoad, Direction, Engine, HostMemory, KernelKind, LatencyKind, Memory, Pace, ScatterMethod,
};
use crate::curve;
use crate::profiler_cost::{ProfilerCost, ProfilerTool};

pub const PROFILE_SCHEMA: &str = "busbound.machine/1";

/// Copy curves by direction and memory, the machine they were measured on, and all other measurements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineProfile {
    pub schema: String,
    /// As the driver reports it.
    pub gpu: String,
    /// `PCIe 5 x16`.
    pub link: String,
    /// Line peak in one direction, GB/s.
    pub peak_gbps: f64,
    /// Source of the figures: command, machine, date.
    pub measured: String,
    /// UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    pub curves: Vec<MeasuredCurve>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplex: Option<DuplexFacts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlap: Vec<OverlapFacts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<LatencyFacts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerFacts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hbm: Vec<HbmFacts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub p2p: Vec<PeerFacts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allreduce: Vec<AllReduceFacts>,
    /// Times of moving many blocks that lie apart, per direction, memory and method.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scatter: Vec<ScatterGrid>,
    /// Rates of pinned copies by the NUMA node of the host memory; empty on machines with one node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numa: Vec<NodeFacts>,
    /// How copies slow down while something else runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contention: Vec<ContentionFacts>,
    /// What recording costs on this host, per profiler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiler: Vec<ProfilerCost>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredCurve {
    pub direction: Direction,
    pub memory: Memory,
    #[serde(default)]
    pub engine: Engine,
    #[serde(default)]
    pub pace: Pace,
    /// Sorted by size.
    pub points: Vec<CurvePoint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    pub bytes: u64,
    /// The median.
    pub gbps: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p5: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<f64>,
}

/// Pinned copies in both directions at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DuplexFacts {
    pub bytes: u64,
    /// Sum of both directions.
    pub together_gbps: f64,
    /// One direction while the other is busy throughout.
    pub h2d_loaded_gbps: f64,
    pub d2h_loaded_gbps: f64,
}

/// How much a copy and a kernel slow each other down when they overlap; 1 means no slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverlapFacts {
    pub direction: Direction,
    pub kernel: KernelKind,
    pub bytes: u64,
    pub copy_slowdown: f64,
    pub kernel_slowdown: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyFacts {
    pub what: LatencyKind,
    pub us: Spread,
}

/// How much slower the same matrix kernel runs when the GPU is never idle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PowerFacts {
    /// Kernel time at full duty divided by kernel time at half duty.
    pub full_duty_slowdown: f64,
    pub half_duty_mhz: Option<f64>,
    pub full_duty_mhz: Option<f64>,
    pub half_duty_watts: Option<f64>,
    pub full_duty_watts: Option<f64>,
    pub limit_watts: Option<f64>,
    /// Whether the kernel draws as much power as a GEMM on this chip; if not, the factor is too low.
    #[serde(default)]
    pub like_a_gemm: bool,
}

/// Copies within device memory (D2D); bytes read and bytes written both count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HbmFacts {
    pub engine: Engine,
    pub bytes: u64,
    pub gbps: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeerFacts {
    pub from: u32,
    pub to: u32,
    /// Whether the GPUs access each other's memory directly; if not, the driver stages through the host.
    pub direct: bool,
    pub bytes: u64,
    pub gbps: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllReduceFacts {
    pub ranks: u32,
    #[serde(default, skip_serializing_if = "Processes::is_one")]
    pub processes: Processes,
    pub bytes: u64,
    pub algbw_gbps: f64,
    /// `algbw` × 2(n−1)/n; 0 for one rank, which exchanges nothing.
    pub busbw_gbps: f64,
}

/// Which processes the ranks of an all-reduce were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Processes {
    /// One process with all GPUs of its machine.
    #[default]
    One,
    /// One process per GPU, on this many machines.
    OnePerGpu { nodes: u32 },
}

impl Processes {
    pub fn is_one(&self) -> bool {
        *self == Self::One
    }

    /// The number of machines.
    pub fn nodes(self) -> u32 {
        match self {
            Self::One => 1,
            Self::OnePerGpu { nodes } => nodes,
        }
    }
}

/// How long it takes to move many blocks that lie apart, until the host knows that all arrived.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScatterGrid {
    pub direction: Direction,
    pub memory: Memory,
    pub method: ScatterMethod,
    /// Sorted by block size, then by number of blocks.
    pub points: Vec<ScatterPoint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScatterPoint {
    pub block_bytes: u64,
    pub blocks: u32,
    /// The median time of all blocks together, in microseconds.
    pub us: f64,
}

/// Pinned copies between the GPU and the memory of one NUMA node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeFacts {
    pub node: u32,
    pub direction: Direction,
    pub bytes: u64,
    pub gbps: f64,
    /// Whether the GPU is attached to this node; `null` if the firmware does not say.
    pub is_near: Option<bool>,
}

/// Pinned copies of one GPU while something else runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContentionFacts {
    pub load: ContentionLoad,
    pub direction: Direction,
    pub bytes: u64,
    /// The same copies with nothing else running.
    pub alone_gbps: f64,
    pub gbps: f64,
    /// How much longer they take; 1 means no slowdown.
    pub slowdown: f64,
    /// Rates of others that make the same copies at the same time: the second process, or each of the other GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others_gbps: Vec<f64>,
}

impl ContentionFacts {
    /// Of all that make the same copies.
    pub fn total_gbps(&self) -> f64 {
        self.gbps + self.others_gbps.iter().sum::<f64>()
    }

    /// Each one's part of the total, this process and GPU first.
    pub fn shares(&self) -> Vec<f64> {
        let total = self.total_gbps();
        std::iter::once(&self.gbps).chain(&self.others_gbps).map(|gbps| gbps / total).collect()
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    #[error("is damaged, or not a machine profile: write it again with `busbound bench --save FILE` ({0})")]
    Json(#[from] serde_json::Error),
    #[error("has schema {0:?}, not {PROFILE_SCHEMA:?}")]
    Schema(String),
    #[error("is invalid: {0}")]
    Invalid(&'static str),
}

impl MachineProfile {
    /// Reads a profile.
    ///
    /// # Errors
    /// If the text is not a machine profile, or if its figures are impossible.
    pub fn parse(json: &str) -> Result<Self, ProfileError> {
        let profile: Self = serde_json::from_str(json)?;
        if profile.schema != PROFILE_SCHEMA {
            return Err(ProfileError::Schema(profile.schema));
        }
        let above_zero = |figure: f64| figure.is_finite() && figure > 0.0;
        if !above_zero(profile.peak_gbps) {
            return Err(ProfileError::Invalid("peak_gbps must be above zero"));
        }
        for curve in &profile.curves {
            if !curve.points.iter().all(|point| above_zero(point.gbps) && point.bytes > 0) {
                return Err(ProfileError::Invalid("the sizes and rates of a curve must be above zero"));
            }
            if !curve.points.is_sorted_by(|a, b| a.bytes < b.bytes) || curve.points.is_empty() {
                return Err(ProfileError::Invalid("a curve must have points, sorted by size"));
            }
        }
        if !profile.has_copy_curve() {
            return Err(ProfileError::Invalid("it has no curve for pinned H2D copies"));
        }
        if profile.power.is_some_and(|power| !above_zero(power.full_duty_slowdown)) {
            return Err(ProfileError::Invalid("full_duty_slowdown must be above zero"));
        }
        if !profile.scatter.iter().all(ScatterGrid::is_possible) {
            return Err(ProfileError::Invalid(
                "a scatter grid must have points above zero, sorted by block size and number of blocks",
            ));
        }
        if !profile.numa.iter().all(|facts| above_zero(facts.gbps)) {
            return Err(ProfileError::Invalid("the rates of NUMA nodes must be above zero"));
        }
        let is_possible = |facts: &ContentionFacts| {
            let others = facts.others_gbps.iter().copied();
            [facts.alone_gbps, facts.gbps, facts.slowdown].into_iter().chain(others).all(above_zero)
        };
        if !profile.contention.iter().all(is_possible) {
            return Err(ProfileError::Invalid("the rates of contention must be above zero"));
        }
        if !profile.profiler.iter().all(ProfilerCost::is_possible) {
            return Err(ProfileError::Invalid("the costs of a profiler must not be below zero"));
        }
        Ok(profile)
    }

    /// Whether it has the curve that every answer needs: pinned H2D copies.
    pub fn has_copy_curve(&self) -> bool {
        self.copies(Direction::H2d, Memory::Pinned).is_some()
    }

    /// The curve of back-to-back copies by the copy engine.
    pub fn copies(&self, direction: Direction, memory: Memory) -> Option<&MeasuredCurve> {
        self.curve(direction, memory, Engine::CopyEngine, Pace::BackToBack)
    }

    pub fn curve(
        &self,
        direction: Direction,
        memory: Memory,
        engine: Engine,
        pace: Pace,
    ) -> Option<&MeasuredCurve> {
        self.curves.iter().find(|curve| {
            (curve.direction, curve.memory, curve.engine, curve.pace) == (direction, memory, engine, pace)
        })
    }

    /// GB/s of a copy of this size; `None` if that memory was not measured. If only H2D was measured, D2H uses
    /// its curve.
    pub(crate) fn at(&self, bytes: u64, direction: Direction, memory: HostMemory) -> Option<f64> {
        let memory = memory.into();
        let curve = self.copies(direction, memory).or_else(|| self.copies(Direction::H2d, memory))?;
        Some(curve.at(bytes))
    }

    /// GB/s of a single H2D copy, if that was measured.
    pub(crate) fn single_at(&self, bytes: u64, memory: HostMemory) -> Option<f64> {
        let curve = self.curve(Direction::H2d, memory.into(), Engine::CopyEngine, Pace::Single)?;
        Some(curve.at(bytes))
    }

    /// Microseconds from a launch until the host knows that the work is done.
    pub(crate) fn wait_us(&self) -> Option<f64> {
        self.latencies
            .iter()
            .find(|latency| latency.what == LatencyKind::LaunchAndWait)
            .map(|one| one.us.median)
    }

    /// What recording with this profiler costs on this host, if that was measured.
    pub fn profiler_cost(&self, tool: ProfilerTool) -> Option<&ProfilerCost> {
        self.profiler.iter().find(|cost| cost.tool == tool)
    }

    /// GB/s of large pinned copies between the GPU and the memory of a NUMA node, if that was measured.
    pub fn node_gbps(&self, node: u32, direction: Direction) -> Option<f64> {
        let of_node = |facts: &&NodeFacts| (facts.node, facts.direction) == (node, direction);
        self.numa.iter().find(of_node).map(|facts| facts.gbps)
    }

    /// How copies in this direction slow down under a load, if that was measured.
    pub fn contention(&self, load: ContentionLoad, direction: Direction) -> Option<&ContentionFacts> {
        self.contention.iter().find(|facts| (facts.load, facts.direction) == (load, direction))
    }

    /// Keeps these all-reduces instead of earlier ones of as many ranks in such processes.
    pub fn set_allreduce(&mut self, measured: &[AllReduceFacts]) {
        let like = |one: &AllReduceFacts| (one.ranks, one.processes);
        self.allreduce.retain(|known| !measured.iter().any(|one| like(one) == like(known)));
        self.allreduce.extend(measured);
    }

    /// Keeps this cost instead of an earlier one of the same profiler.
    pub fn set_profiler_cost(&mut self, cost: ProfilerCost) {
        self.profiler.retain(|known| known.tool != cost.tool);
        self.profiler.push(cost);
    }

    /// Multiplies every copy rate of this memory by `times`.
    pub(crate) fn scale(&mut self, memory: Memory, times: f64) {
        for curve in self.curves.iter_mut().filter(|curve| curve.memory == memory) {
            curve.points.iter_mut().for_each(|point| point.gbps *= times);
        }
    }

    /// The rate that large pinned copies reach, if that direction was measured.
    pub(crate) fn plateau_gbps(&self, direction: Direction) -> Option<f64> {
        self.copies(direction, Memory::Pinned)?.plateau_gbps()
    }
}

impl MeasuredCurve {
    /// GB/s at any size.
    pub fn at(&self, bytes: u64) -> f64 {
        let points: Vec<(u64, f64)> = self.points.iter().map(|point| (point.bytes, point.gbps)).collect();
        curve::at(&points, bytes)
    }

    /// The best rate over all sizes.
    pub fn plateau_gbps(&self) -> Option<f64> {
        self.points.iter().map(|point| point.gbps).max_by(f64::total_cmp)
    }

    /// The smallest size that reaches this share of the plateau.
    pub fn reaches(&self, share: f64) -> Option<u64> {
        let plateau = self.plateau_gbps()?;
        self.points.iter().find(|point| point.gbps >= share * plateau).map(|point| point.bytes)
    }
}

impl ScatterGrid {
    fn is_possible(&self) -> bool {
        let place = |point: &ScatterPoint| (point.block_bytes, point.blocks);
        let above_zero = |point: &ScatterPoint| {
            point.block_bytes > 0 && point.blocks > 0 && point.us.is_finite() && point.us > 0.0
        };
        !self.points.is_empty()
            && self.points.iter().all(above_zero)
            && self.points.is_sorted_by(|a, b| place(a) < place(b))
    }
}

/// A profile shared by many links of one answer.
pub(crate) type SharedProfile = Arc<MachineProfile>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_profiler_is_found_by_its_name_and_never_negative() {
        let json = include_str!("../../../fixtures/machines/h200.json");
        assert!(MachineProfile::parse(json).unwrap().profiler.is_empty());
        let with = |call_us: f64| {
            let cost = format!(
                r#"{{"profiler": [{{"tool": "torch_profiler", "operator_us": 2.0, "call_us": {call_us}, "work_us": 0.5,
                "shapes_us": 1.0, "frame_us": 0.25, "measured": "by hand"}}],"#
            );
            MachineProfile::parse(&json.replacen('{', &cost, 1))
        };
        let profile = with(1.5).unwrap();
        assert_eq!(profile.profiler_cost(ProfilerTool::TorchProfiler).unwrap().call_us, 1.5);
        assert!(profile.profiler_cost(ProfilerTool::Nsight).is_none());
        assert!(with(-1.5).is_err());
        let mut changed = profile.clone();
        changed.set_profiler_cost(ProfilerCost { call_us: 2.5, ..profile.profiler[0].clone() });
        assert_eq!((changed.profiler.len(), changed.profiler[0].call_us), (1, 2.5));
    }

    #[test]
    fn all_reduces_replace_those_of_as_many_ranks_in_such_processes_only() {
        let json = include_str!("../../../fixtures/machines/h200.json");
        let mut profile = MachineProfile::parse(json).unwrap();
        let with_one_rank = profile.allreduce.clone();
        let facts = |nodes, busbw_gbps| {
            let processes = Processes::OnePerGpu { nodes };
            AllReduceFacts { ranks: 8, processes, bytes: 1 << 20, algbw_gbps: 1.0, busbw_gbps }
        };
        profile.set_allreduce(&[facts(1, 300.0)]);
        profile.set_allreduce(&[facts(2, 40.0)]);
        profile.set_allreduce(&[facts(1, 350.0)]);
        assert_eq!(profile.allreduce, [with_one_rank, vec![facts(2, 40.0), facts(1, 350.0)]].concat());
        let written = serde_json::to_string(&profile).unwrap();
        assert_eq!(MachineProfile::parse(&written).unwrap(), profile);
    }
}

//! Which method moves many blocks that lie apart fastest, and how long does it take?
//!
//! From the grid that `busbound bench --suite scatter` measured. Without one, from a model of each method with the costs of
//! one H200 host, and the answer says so.

use serde::Serialize;

use crate::bench::terms::{Direction, HostMemory, Memory, ScatterMethod};
use crate::profile::{ScatterGrid, ScatterPoint};
use crate::resolve::LinkFacts;

/// Blocks that lie apart, on at least one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    pub direction: Direction,
    pub memory: HostMemory,
    pub block_bytes: u64,
    pub blocks: u64,
}

impl Blocks {
    pub fn bytes(&self) -> u64 {
        self.block_bytes.saturating_mul(self.blocks)
    }
}

/// Where the times come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ScatterSource {
    /// On this machine.
    Measured,
    /// From the costs of one H200 host.
    Assumed,
}

/// How long one method takes, until the host knows that all blocks arrived.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScatterCost {
    pub method: ScatterMethod,
    pub us: f64,
    pub gbps: f64,
}

/// Every method that is known for these blocks, the fastest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScatterChoice {
    pub source: ScatterSource,
    pub costs: Vec<ScatterCost>,
}

impl ScatterChoice {
    /// There always is one: a loop of copies works everywhere.
    pub fn best(&self) -> ScatterCost {
        self.costs[0]
    }

    /// The fastest without a call per block.
    pub fn together(&self) -> Option<ScatterCost> {
        self.costs.iter().find(|cost| cost.method != ScatterMethod::Loop).copied()
    }

    pub fn of(&self, method: ScatterMethod) -> Option<ScatterCost> {
        self.costs.iter().find(|cost| cost.method == method).copied()
    }
}

impl LinkFacts {
    /// The methods for these blocks: as measured, if that direction and memory were, else as assumed.
    pub fn scatter(&self, blocks: &Blocks) -> ScatterChoice {
        let measured = self.measured_scatter(blocks);
        let source = if measured.is_empty() { ScatterSource::Assumed } else { ScatterSource::Measured };
        let times = if measured.is_empty() { self.assumed_scatter(blocks) } else { measured };
        let cost = |(method, us): (ScatterMethod, f64)| {
            // No bytes take no time at no rate.
            let gbps = if us > 0.0 { blocks.bytes() as f64 / us / 1e3 } else { 0.0 };
            ScatterCost { method, us, gbps }
        };
        let mut costs: Vec<ScatterCost> = times.into_iter().map(cost).collect();
        costs.sort_by(|a, b| a.us.total_cmp(&b.us));
        ScatterChoice { source, costs }
    }

    /// Nanoseconds from the first byte to the last of these blocks without a call per block, if that was measured: without
    /// the wait of the host at the end.
    pub fn together_ns(&self, blocks: &Blocks) -> Option<f64> {
        let choice = self.scatter(blocks);
        let cost = choice.together().filter(|_| choice.source == ScatterSource::Measured)?;
        Some(1e3 * (cost.us - self.wait_us()).max(0.0))
    }

    fn measured_scatter(&self, blocks: &Blocks) -> Vec<(ScatterMethod, f64)> {
        let key = (blocks.direction, Memory::from(blocks.memory));
        let grids = self.measured().map_or(&[][..], |profile| &profile.scatter);
        let these = grids.iter().filter(|grid| (grid.direction, grid.memory) == key);
        these.map(|grid| (grid.method, grid.us_at(blocks.block_bytes, blocks.blocks))).collect()
    }

    fn assumed_scatter(&self, blocks: &Blocks) -> Vec<(ScatterMethod, f64)> {
        let methods = ScatterMethod::for_memory(blocks.memory.into());
        methods.map(|method| (method, self.assumed_us(method, blocks))).collect()
    }

    /// The wait at the end, and the calls and the bytes of every block.
    fn assumed_us(&self, method: ScatterMethod, what: &Blocks) -> f64 {
        let (bytes, blocks) = (what.bytes() as f64, what.blocks as f64);
        let us = |bytes: f64, gbps: f64| bytes / gbps.max(f64::MIN_POSITIVE) / 1e3;
        let on_the_link = us(bytes, self.reachable_of(what.direction));
        let is_inline =
            what.direction == Direction::H2d && what.block_bytes < assumed::batch_dma_from(what.memory);
        let staged_by_driver =
            || us(bytes, self.expected_of(what.block_bytes.max(1), what.direction, what.memory));
        let moved = match (method, what.memory) {
            (ScatterMethod::Loop, HostMemory::Pinned) => blocks * assumed::CALL_US + on_the_link,
            (ScatterMethod::Loop, HostMemory::Pageable) => staged_by_driver(),
            (ScatterMethod::Batch, _) if is_inline => {
                blocks * assumed::INLINE_US + us(bytes, assumed::INLINE_GBPS)
            }
            (ScatterMethod::Batch, HostMemory::Pinned) => blocks * assumed::IN_BATCH_US + on_the_link,
            (ScatterMethod::Batch, HostMemory::Pageable) => assumed::BATCH_OF_PAGEABLE * staged_by_driver(),
            (ScatterMethod::Kernel, _) => {
                blocks * assumed::IN_KERNEL_US + on_the_link / assumed::KERNEL_SHARE
            }
            (ScatterMethod::Staged, _) => {
                assumed::GATHER_US + us(bytes, assumed::HOST_COPY_GBPS) + on_the_link
            }
        };
        moved + self.wait_us()
    }
}

/// What the methods cost on the H200 host in fixtures/scatter; tests/scatter.rs compares them with its times.
mod assumed {
    use super::HostMemory;

    /// Host time of one copy call.
    pub(super) const CALL_US: f64 = 2.8;
    pub(super) const IN_BATCH_US: f64 = 0.5;
    /// H2D blocks below [`batch_dma_from`] in a batch call: the CPU sends their bytes.
    pub(super) const INLINE_US: f64 = 1.1;
    pub(super) const INLINE_GBPS: f64 = 6.8;
    /// A batch call of pageable blocks, as a multiple of the copies one by one.
    pub(super) const BATCH_OF_PAGEABLE: f64 = 1.8;
    pub(super) const IN_KERNEL_US: f64 = 0.01;
    /// The rate of a kernel that accesses host memory, as a share of large copies.
    pub(super) const KERNEL_SHARE: f64 = 0.93;
    /// A second launch, and one thread that gathers the blocks.
    pub(super) const GATHER_US: f64 = 12.0;
    pub(super) const HOST_COPY_GBPS: f64 = 7.4;

    /// From this size on, a batch call has a DMA engine move H2D blocks.
    pub(super) fn batch_dma_from(memory: HostMemory) -> u64 {
        match memory {
            HostMemory::Pinned => 28 << 10,
            HostMemory::Pageable => 128 << 10,
        }
    }
}

impl ScatterGrid {
    /// Microseconds for this many blocks of this size. Between points, time grows in proportion to number and size.
    /// Smaller blocks than measured take as long as the smallest; larger ones, and more of them, keep the last rate.
    pub(crate) fn us_at(&self, block_bytes: u64, blocks: u64) -> f64 {
        let by_size: Vec<(u64, f64)> = self
            .points
            .chunk_by(|a, b| a.block_bytes == b.block_bytes)
            .map(|of_size| (of_size[0].block_bytes, us_of_number(of_size, blocks)))
            .collect();
        let (Some(&(least, shortest)), Some(&(most, longest))) = (by_size.first(), by_size.last()) else {
            return 0.0;
        };
        match block_bytes {
            bytes if bytes <= least => shortest,
            bytes if bytes >= most => longest * bytes as f64 / most as f64,
            bytes => between(&by_size, bytes),
        }
    }
}

/// The time of this many blocks of one size: fixed and per block.
fn us_of_number(of_size: &[ScatterPoint], blocks: u64) -> f64 {
    let points: Vec<(u64, f64)> = of_size.iter().map(|point| (u64::from(point.blocks), point.us)).collect();
    let (first, last) = (points[0], points[points.len() - 1]);
    match blocks {
        // The fixed part is what the first two points show, and never negative.
        few if few < first.0 => {
            let per_block = points.get(1).map_or(first.1 / first.0 as f64, |second| {
                (second.1 - first.1) / (second.0 - first.0) as f64
            });
            let per_block = per_block.clamp(0.0, first.1 / first.0 as f64);
            first.1 - per_block * (first.0 - few) as f64
        }
        many if many >= last.0 => last.1 * many as f64 / last.0 as f64,
        some => between(&points, some),
    }
}

/// Between two points; `at` is within the range.
fn between(points: &[(u64, f64)], at: u64) -> f64 {
    let pair = points.windows(2).find(|pair| at <= pair[1].0);
    pair.map_or(0.0, |pair| {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        y0 + (y1 - y0) * (at - x0) as f64 / (x1 - x0) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, MachineProfile};

    /// 10 µs, and 2 µs per block or its bytes at 50 GB/s.
    fn grid(method: ScatterMethod, per_block_us: f64) -> ScatterGrid {
        let mut points = Vec::new();
        for block_bytes in [4 << 10, 64 << 10, 1 << 20] {
            for blocks in [16, 256, 4096] {
                let us = 10.0 + f64::from(blocks) * per_block_us.max(block_bytes as f64 / 50e3);
                points.push(ScatterPoint { block_bytes, blocks, us });
            }
        }
        ScatterGrid { direction: Direction::H2d, memory: Memory::Pinned, method, points }
    }

    fn what(block_bytes: u64, blocks: u64) -> Blocks {
        Blocks { direction: Direction::H2d, memory: HostMemory::Pinned, block_bytes, blocks }
    }

    #[test]
    fn points_are_exact_numbers_between_them_too_and_the_rest_keeps_the_last_rate() {
        let grid = grid(ScatterMethod::Loop, 2.0);
        let near = |bytes, blocks, us: f64| {
            let found = grid.us_at(bytes, blocks);
            assert!((found / us - 1.0).abs() < 1e-9, "{bytes} × {blocks}: {found}");
        };
        near(4 << 10, 256, 522.0);
        near(4 << 10, 100, 210.0);
        near(1 << 20, 1000, 10.0 + 20_971.52);
        // One block: the fixed part and one call. A smaller block takes as long.
        near(4 << 10, 1, 12.0);
        near(512, 1, 12.0);
        near(4 << 10, 8192, 2.0 * (10.0 + 8192.0));
        near(4 << 20, 16, 4.0 * (10.0 + 16.0 * 20.971_52));
    }

    #[test]
    fn the_fastest_measured_method_is_chosen_and_without_a_grid_the_answer_says_assumed() {
        let json = include_str!("../../../fixtures/machines/h200.json");
        let mut profile = MachineProfile::parse(json).unwrap();
        profile.scatter = vec![grid(ScatterMethod::Loop, 2.0), grid(ScatterMethod::Kernel, 0.1)];
        let link = Machine::measured(profile).link_of(None);
        let choice = link.scatter(&what(4 << 10, 256));
        assert_eq!((choice.source, choice.best().method), (ScatterSource::Measured, ScatterMethod::Kernel));
        assert_eq!(choice.costs.len(), 2);
        assert!((choice.of(ScatterMethod::Loop).unwrap().us - 522.0).abs() < 1e-9);
        assert!((choice.best().gbps - 1.048_576e3 / 35.6).abs() < 1e-3, "{choice:?}");
        // The H200's host knows 9 µs later that work is done.
        let ns = link.together_ns(&what(4 << 10, 256)).unwrap();
        assert!((ns - 26_600.0).abs() < 50.0, "{ns}");
        // Pageable memory was not measured.
        let pageable = link.scatter(&Blocks { memory: HostMemory::Pageable, ..what(4 << 10, 256) });
        assert_eq!(pageable.source, ScatterSource::Assumed);
        assert_eq!(pageable.costs.len(), 3);
        let assumed = Machine::default().link_of(Some("NVIDIA H200")).scatter(&what(4 << 10, 1024));
        assert_eq!((assumed.source, assumed.best().method), (ScatterSource::Assumed, ScatterMethod::Kernel));
    }
}

//! What is to be measured on this machine, and how much of it is taken?

use serde::{Deserialize, Serialize};

use super::samples::{
    AllReduceTask, CopyTask, Direction, DoubleBufferTask, Engine, KernelKind, LatencyKind, Memory,
    OffloadTask, Order, OverlapTask, Pace, Task,
};
use super::statistics::Patience;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Mode {
    Quick,
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Suite {
    Copy,
    Duplex,
    PeerToPeer,
    Latency,
    Overlap,
    DoubleBuffer,
    Offload,
    AllReduce,
    Power,
    Hbm,
}

impl Suite {
    pub const ALL: [Self; 10] = [
        Self::Copy,
        Self::Duplex,
        Self::PeerToPeer,
        Self::Latency,
        Self::Overlap,
        Self::DoubleBuffer,
        Self::Offload,
        Self::AllReduce,
        Self::Power,
        Self::Hbm,
    ];

    /// As it is given on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Duplex => "duplex",
            Self::PeerToPeer => "p2p",
            Self::Latency => "latency",
            Self::Overlap => "overlap",
            Self::DoubleBuffer => "double-buffer",
            Self::Offload => "offload",
            Self::AllReduce => "allreduce",
            Self::Power => "power",
            Self::Hbm => "hbm",
        }
    }
}

/// What a machine leaves to measure with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub gpus: u32,
    /// The largest copy, in bytes.
    pub largest: u64,
    /// Whether memory migrates between host and device.
    pub managed: bool,
}

/// The largest copy that leaves most of the GPU's free memory alone: suites hold two such buffers at most.
pub fn limits(gpus: u32, free_device: u64, free_host: u64, managed: bool, mode: Mode) -> Limits {
    let wanted = match mode {
        Mode::Quick => 256 * MIB,
        Mode::Full => 1024 * MIB,
    };
    let room = (free_device / 8).min(free_host / 8).max(MIB);
    let largest = if wanted <= room { wanted } else { 1 << room.ilog2() };
    Limits { gpus, largest, managed }
}

/// How long a task may repeat.
impl Mode {
    pub fn patience(self) -> Patience {
        match self {
            Self::Quick => Patience { least: 7, most: 60, ns: 60_000_000, within: 0.01 },
            Self::Full => Patience { least: 11, most: 120, ns: 300_000_000, within: 0.005 },
        }
    }

    /// Whole steps are longer and steadier than copies.
    pub fn step_patience(self) -> Patience {
        match self {
            Self::Quick => Patience { least: 5, most: 15, ns: 150_000_000, within: 0.01 },
            Self::Full => Patience { least: 7, most: 30, ns: 500_000_000, within: 0.01 },
        }
    }
}

/// Everything to measure, in the order in which it is best measured: what other suites rest on comes first,
/// what heats the GPU comes last.
pub fn tasks(mode: Mode, suites: &[Suite], limits: &Limits) -> Vec<Task> {
    let mut order = suites.to_vec();
    let place = |suite: &Suite| match suite {
        Suite::Copy => 0,
        Suite::Duplex => 1,
        Suite::Latency => 2,
        Suite::Hbm => 3,
        Suite::PeerToPeer => 4,
        Suite::Overlap => 5,
        Suite::DoubleBuffer => 6,
        Suite::Offload => 7,
        Suite::AllReduce => 8,
        Suite::Power => 9,
    };
    order.sort_by_key(place);
    order.dedup();
    order.into_iter().flat_map(|suite| of_suite(suite, mode, limits)).collect()
}

fn of_suite(suite: Suite, mode: Mode, limits: &Limits) -> Vec<Task> {
    let largest = limits.largest;
    let quick = mode == Mode::Quick;
    match suite {
        Suite::Copy => copies(mode, limits),
        Suite::Duplex => vec![Task::Duplex { bytes: (256 * MIB).min(largest / 2) }],
        Suite::PeerToPeer => pairs(limits.gpus)
            .map(|(from, to)| Task::PeerToPeer { from, to, bytes: (256 * MIB).min(largest) })
            .collect(),
        Suite::Latency => [
            LatencyKind::LaunchCall,
            LatencyKind::LaunchAndWait,
            LatencyKind::KernelToKernel,
            LatencyKind::SmallestCopyH2d,
            LatencyKind::SmallestCopyD2h,
            LatencyKind::EventRecord,
            LatencyKind::EventWait,
            LatencyKind::StreamSynchronize,
        ]
        .map(|what| Task::Latency { what })
        .to_vec(),
        Suite::Overlap => {
            let sizes: &[u64] = if quick { &[64 * MIB] } else { &[MIB, 16 * MIB, 256 * MIB] };
            let mut tasks = Vec::new();
            for direction in [Direction::H2d, Direction::D2h] {
                for kernel in [KernelKind::ComputeBound, KernelKind::MemoryBound] {
                    for bytes in sizes.iter().map(|bytes| (*bytes).min(largest)) {
                        tasks.push(Task::Overlap(OverlapTask { direction, kernel, bytes }));
                    }
                }
            }
            tasks
        }
        Suite::DoubleBuffer => {
            let ratios: &[f64] =
                if quick { &[0.5, 1.0, 2.0] } else { &[0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0] };
            let bytes = (32 * MIB).min(largest / 4);
            let task = |compute_to_copy: &f64| DoubleBufferTask {
                chunks: 12,
                bytes,
                compute_to_copy: *compute_to_copy,
            };
            ratios.iter().map(task).map(Task::DoubleBuffer).collect()
        }
        Suite::Offload => offloads(mode, largest),
        Suite::AllReduce => {
            let sizes: &[u64] =
                if quick { &[64 * MIB] } else { &[64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB] };
            sizes
                .iter()
                .map(|bytes| Task::AllReduce(AllReduceTask { bytes: (*bytes).min(largest / 2) }))
                .collect()
        }
        Suite::Power => {
            let seconds = if quick { 1.5 } else { 6.0 };
            [50, 100].map(|duty_percent| Task::Power { duty_percent, seconds }).to_vec()
        }
        Suite::Hbm => [Engine::CopyEngine, Engine::Kernel]
            .map(|engine| Task::Hbm { bytes: (512 * MIB).min(largest), engine })
            .to_vec(),
    }
}

fn pairs(gpus: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..gpus).flat_map(move |from| (0..gpus).filter(move |to| *to != from).map(move |to| (from, to)))
}

/// Powers of two from 256 B on, or of four from 4 KiB on.
fn sizes(mode: Mode, largest: u64) -> Vec<u64> {
    let (least, by) = match mode {
        Mode::Quick => (4 * KIB, 4),
        Mode::Full => (256, 2),
    };
    std::iter::successors(Some(least), |bytes| bytes.checked_mul(by))
        .take_while(|bytes| *bytes <= largest)
        .collect()
}

fn copies(mode: Mode, limits: &Limits) -> Vec<Task> {
    let mut ways: Vec<(Memory, Engine, Pace)> = vec![
        (Memory::Pinned, Engine::CopyEngine, Pace::BackToBack),
        (Memory::Pageable, Engine::CopyEngine, Pace::BackToBack),
    ];
    if mode == Mode::Full {
        ways.extend([
            (Memory::Pinned, Engine::CopyEngine, Pace::Single),
            (Memory::Pageable, Engine::CopyEngine, Pace::Single),
            (Memory::Registered, Engine::CopyEngine, Pace::BackToBack),
            (Memory::Registered, Engine::CopyEngine, Pace::Single),
            (Memory::WriteCombined, Engine::CopyEngine, Pace::BackToBack),
            (Memory::WriteCombined, Engine::CopyEngine, Pace::Single),
            (Memory::Pinned, Engine::Kernel, Pace::BackToBack),
            (Memory::Pinned, Engine::Kernel, Pace::Single),
        ]);
        if limits.managed {
            ways.push((Memory::Managed, Engine::CopyEngine, Pace::Single));
        }
    }
    // A buffer of one kind is made once and serves both directions.
    ways.sort_by_key(|(memory, ..)| *memory);
    // The curve that everything rests on is measured again in the middle and at the end: what a host gives
    // drifts over minutes, and its middle is wanted.
    let trusted = (Memory::Pinned, Engine::CopyEngine, Pace::BackToBack);
    if mode == Mode::Full {
        ways.insert(ways.len() / 2, trusted);
        ways.push(trusted);
    }
    let mut tasks = Vec::new();
    for (memory, engine, pace) in ways {
        for direction in [Direction::H2d, Direction::D2h] {
            for bytes in sizes(mode, limits.largest) {
                tasks.push(Task::Copy(CopyTask { direction, memory, engine, pace, bytes }));
            }
        }
    }
    tasks
}

fn offloads(mode: Mode, largest: u64) -> Vec<Task> {
    let mut tasks = Vec::new();
    let mut add =
        |layers: u32, bytes: u64, compute_to_copy: f64, memory: Memory, order: Order, depth: u32| {
            // All layers' weights together stay within what one copy may take, so layers may share a place.
            let bytes = bytes.min(largest / 4);
            tasks.push(Task::Offload(OffloadTask { layers, bytes, compute_to_copy, memory, order, depth }));
        };
    if mode == Mode::Quick {
        for ratio in [0.5, 2.0] {
            add(8, 32 * MIB, ratio, Memory::Pinned, Order::Blocking, 0);
            add(8, 32 * MIB, ratio, Memory::Pinned, Order::Prefetched, 1);
        }
        add(8, 32 * MIB, 1.0, Memory::Pageable, Order::Blocking, 0);
        return tasks;
    }
    for bytes in [4 * MIB, 32 * MIB, 160 * MIB] {
        for ratio in [0.5, 1.0, 2.0] {
            add(12, bytes, ratio, Memory::Pinned, Order::Blocking, 0);
            for depth in [1, 2, 4] {
                add(12, bytes, ratio, Memory::Pinned, Order::Prefetched, depth);
            }
            add(12, bytes, ratio, Memory::Pageable, Order::Blocking, 0);
            add(12, bytes, ratio, Memory::Pageable, Order::Prefetched, 2);
        }
    }
    for layers in [4, 48] {
        add(layers, 32 * MIB, 1.0, Memory::Pinned, Order::Blocking, 0);
        add(layers, 32 * MIB, 1.0, Memory::Pinned, Order::Prefetched, 1);
    }
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Limits = Limits { gpus: 1, largest: 1 << 30, managed: true };

    #[test]
    fn the_full_copy_suite_goes_from_256_bytes_to_a_gibibyte_by_powers_of_two() {
        let all = tasks(Mode::Full, &[Suite::Copy], &H200);
        let sizes: Vec<u64> = all
            .iter()
            .filter_map(|task| match task {
                Task::Copy(CopyTask {
                    direction: Direction::H2d,
                    memory: Memory::Pinned,
                    engine: Engine::CopyEngine,
                    pace: Pace::BackToBack,
                    bytes,
                }) => Some(*bytes),
                _ => None,
            })
            .collect();
        assert_eq!(sizes[..23], (8..=30).map(|power| 1 << power).collect::<Vec<u64>>());
        // That curve three times, and ten others; two directions, 23 sizes.
        assert_eq!(sizes.len(), 3 * 23);
        assert_eq!(all.len(), (3 + 10) * 2 * 23);
        let without = tasks(Mode::Full, &[Suite::Copy], &Limits { managed: false, ..H200 });
        assert_eq!(without.len(), (3 + 9) * 2 * 23);
    }

    #[test]
    fn every_pair_is_tried_both_ways_and_one_gpu_has_none() {
        assert!(tasks(Mode::Full, &[Suite::PeerToPeer], &H200).is_empty());
        let four = tasks(Mode::Full, &[Suite::PeerToPeer], &Limits { gpus: 4, ..H200 });
        assert_eq!(four.len(), 12);
    }

    #[test]
    fn the_offload_suite_has_the_combinations_a_plan_is_held_against() {
        let all = tasks(Mode::Full, &[Suite::Offload], &H200);
        assert!(all.len() >= 24, "{}", all.len());
        let blocking_with_depth =
            |task: &Task| matches!(task, Task::Offload(t) if t.order == Order::Blocking && t.depth > 0);
        assert!(!all.iter().any(blocking_with_depth));
    }

    #[test]
    fn little_memory_makes_small_copies_and_heat_comes_last() {
        assert_eq!(limits(1, 80 << 30, 64 << 30, true, Mode::Full).largest, 1 << 30);
        assert_eq!(limits(1, 80 << 30, 64 << 30, true, Mode::Quick).largest, 256 << 20);
        // 3 GiB free: an eighth, rounded down to a power of two.
        assert_eq!(limits(1, 3 << 30, 64 << 30, true, Mode::Full).largest, 256 << 20);
        assert_eq!(limits(1, 0, 0, true, Mode::Quick).largest, 1 << 20);
        let all = tasks(Mode::Quick, &[Suite::Power, Suite::Copy, Suite::Copy], &H200);
        assert!(matches!(all.first(), Some(Task::Copy(_))) && matches!(all.last(), Some(Task::Power { .. })));
    }
}

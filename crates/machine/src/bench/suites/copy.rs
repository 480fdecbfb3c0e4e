//! How fast is one copy of a given size, and how fast are many back to back?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, Phase, SuiteCase, Topic, five_digits, plateau_of_large};
use crate::bench::figures::{Cause, FigureUnit, MeasuredFigure, SHORT_BELOW};
use crate::bench::identity::Identity;
use crate::bench::plan::{KIB, Limits, Mode};
use crate::bench::statistics::Spread;
use crate::bench::terms::{Direction, Engine, Memory, Pace};
use crate::catalog::gpu_of_name;
use crate::profile::{CurvePoint, MachineProfile, MeasuredCurve};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyTask {
    pub direction: Direction,
    pub memory: Memory,
    pub engine: Engine,
    pub pace: Pace,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopyCase {
    #[serde(flatten)]
    pub task: CopyTask,
    /// Copies per repetition.
    pub copies: u32,
    pub ns: Vec<u64>,
    pub verified: bool,
}

/// Ids of the figures that summarize a machine.
pub const PINNED_H2D: &str = "pinned_h2d";
pub const PINNED_D2H: &str = "pinned_d2h";
pub const PAGEABLE_H2D: &str = "pageable_h2d";

impl BenchSuite for CopyTask {
    const NAME: &'static str = "copy";
    const PHASE: Phase = Phase::Basis;
    const TOPIC: Topic = Topic::Bus;

    fn plan(mode: Mode, limits: &Limits) -> Vec<Self> {
        let mut tasks = Vec::new();
        for (memory, engine, pace) in ways(mode, limits) {
            for direction in [Direction::H2d, Direction::D2h] {
                for bytes in sizes(mode, limits.largest) {
                    tasks.push(Self { direction, memory, engine, pace, bytes });
                }
            }
        }
        tasks
    }

    fn left_out(mode: Mode, limits: &Limits) -> Option<&'static str> {
        let asked_for_managed = mode == Mode::Full;
        (asked_for_managed && !limits.managed)
            .then_some("managed memory does not migrate on this machine, so it is skipped")
    }

    fn keep(cases: &[&CopyCase], _identity: &Identity, profile: &mut MachineProfile) {
        profile.curves = curves(cases);
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        let mut figures = pinned(evidence);
        figures.extend(pageable(evidence.profile));
        figures.extend(small(evidence.profile));
        figures
    }
}

fn ways(mode: Mode, limits: &Limits) -> Vec<(Memory, Engine, Pace)> {
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
    // Sorted, so that one buffer per memory type serves both directions.
    ways.sort_by_key(|(memory, ..)| *memory);
    // The curve that everything depends on is measured three times, spread over the run: host rates drift over
    // minutes, and the median is wanted.
    let trusted = (Memory::Pinned, Engine::CopyEngine, Pace::BackToBack);
    if mode == Mode::Full {
        ways.insert(ways.len() / 2, trusted);
        ways.push(trusted);
    }
    ways
}

/// Powers of two from 256 B (full), or powers of four from 4 KiB (quick).
fn sizes(mode: Mode, largest: u64) -> Vec<u64> {
    let (least, by) = match mode {
        Mode::Quick => (4 * KIB, 4),
        Mode::Full => (256, 2),
    };
    std::iter::successors(Some(least), |bytes| bytes.checked_mul(by))
        .take_while(|bytes| *bytes <= largest)
        .collect()
}

/// One curve per copy method, in the order of first measurement. Repeated measurements of the same task are merged
/// into one with all of their repetitions.
fn curves(cases: &[&CopyCase]) -> Vec<MeasuredCurve> {
    let mut rates: Vec<(CopyTask, Vec<f64>)> = Vec::new();
    for case in cases {
        let bytes = (case.task.bytes * u64::from(case.copies)) as f64;
        let these = case.ns.iter().map(|ns| bytes / *ns as f64);
        match rates.iter_mut().find(|(known, _)| *known == case.task) {
            Some((_, all)) => all.extend(these),
            None => rates.push((case.task, these.collect())),
        }
    }
    let mut curves: Vec<MeasuredCurve> = Vec::new();
    for (task, rates) in rates {
        let Some(rate) = Spread::of(rates) else { continue };
        let CopyTask { direction, memory, engine, pace, bytes } = task;
        let point = CurvePoint {
            bytes,
            gbps: five_digits(rate.median),
            p5: Some(five_digits(rate.p5)),
            p95: Some(five_digits(rate.p95)),
        };
        let is_it = |curve: &&mut MeasuredCurve| {
            (curve.direction, curve.memory, curve.engine, curve.pace) == (direction, memory, engine, pace)
        };
        match curves.iter_mut().find(is_it) {
            Some(curve) => curve.points.push(point),
            None => curves.push(MeasuredCurve { direction, memory, engine, pace, points: vec![point] }),
        }
    }
    for curve in &mut curves {
        curve.points.sort_by_key(|point| point.bytes);
    }
    curves
}

fn pinned(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
    let reached = |direction| evidence.profile.copies(direction, Memory::Pinned).and_then(plateau_of_large);
    let (h2d, d2h) = (reached(Direction::H2d), reached(Direction::D2h));
    let mut figures = Vec::new();
    for (id, what, measured, direction, other, opposite) in [
        (PINNED_H2D, "pinned H2D copies", h2d, Direction::H2d, d2h, Direction::D2h),
        (PINNED_D2H, "pinned D2H copies", d2h, Direction::D2h, h2d, Direction::H2d),
    ] {
        let Some(measured) = measured else { continue };
        let figure = MeasuredFigure::fact(id, what, measured, FigureUnit::GigabytesPerSecond);
        figures.push(match evidence.due_copies(direction) {
            Some((expected, from)) => {
                let due = evidence.due_copies(opposite).map_or(expected, |(due, _)| due);
                let other_is_fine = other.is_some_and(|other| other >= SHORT_BELOW * due);
                figure.judged(expected, from, || causes(evidence.identity, other_is_fine))
            }
            None => figure,
        });
    }
    figures
}

fn pageable(profile: &MachineProfile) -> Vec<MeasuredFigure> {
    let mut figures = Vec::new();
    for (id, what, direction) in [
        (PAGEABLE_H2D, "pageable H2D copies", Direction::H2d),
        ("pageable_d2h", "pageable D2H copies", Direction::D2h),
    ] {
        let Some(curve) = profile.copies(direction, Memory::Pageable) else { continue };
        // The largest copies, not the fastest: small ones may come from the CPU's cache.
        let Some(last) = curve.points.last() else { continue };
        let mut figure = MeasuredFigure::fact(id, what, last.gbps, FigureUnit::GigabytesPerSecond);
        figure.causes = vec![staging()];
        figures.push(figure);
    }
    figures
}

fn small(profile: &MachineProfile) -> Vec<MeasuredFigure> {
    let curve = profile.copies(Direction::H2d, Memory::Pinned);
    let figure = |(id, what, share): (&'static str, &str, f64)| {
        let bytes = curve.and_then(|curve| curve.reaches(share))?;
        Some(MeasuredFigure::fact(id, what, bytes as f64 / 1024.0, FigureUnit::Kibibytes))
    };
    [
        ("half_rate_at", "smallest pinned H2D copy that reaches 50% of the best rate", 0.5),
        ("nearly_full_at", "smallest pinned H2D copy that reaches 95% of the best rate", 0.95),
    ]
    .into_iter()
    .filter_map(figure)
    .collect()
}

/// Every page goes through a driver buffer.
fn staging() -> Cause {
    Cause::seen(
        "the CPU first copies pageable memory into pinned buffers: the host limits the rate, not the link",
        "compare with a copy from pinned memory (call `tensor.pin_memory()` once, then reuse the tensor)",
    )
}

/// Causes of slow pinned copies. Causes that the measurement shows come first; excluded ones are omitted.
fn causes(identity: &Identity, other_direction_is_fine: bool) -> Vec<Cause> {
    let mut causes = seen_on_the_link(identity);
    if other_direction_is_fine {
        causes.push(Cause::likely(
            "the other direction is OK, so the link's width and speed are OK too: the cause is on the host side of this direction",
            "the NUMA nodes and the IOMMU, as described below",
        ));
    }
    if identity.pinned_to_cpus.is_none() || identity.numa_node.is_none() {
        causes.push(Cause::likely(
            "host memory on a different NUMA node than the GPU: every copy crosses the link between the sockets",
            "run `numactl --cpunodebind=N --membind=N busbound bench --suite copy` for each node N; the fastest node is the GPU's",
        ));
    }
    causes.push(Cause::translating_iommu());
    causes.push(Cause::likely(
        "other traffic on the same link or switch",
        "run `nvidia-smi dmon -s t` while your own jobs are stopped; `busbound topo` shows which devices share the PCIe uplink",
    ));
    causes.push(Cause::likely(
        "a narrower link upstream, between switch and host",
        "run `busbound topo` and look at the narrowest hop on the path to the host",
    ));
    if identity.virtual_machine == Some(true) {
        causes.push(Cause::likely(
            "a virtual machine that hides the NUMA placement of its memory and the GPU",
            "measure on the host, or ask its administrator for the NUMA placement",
        ));
    }
    causes.push(Cause::likely(
        "throttled clocks",
        "run `nvidia-smi -q -d CLOCK,PERFORMANCE` during the benchmark",
    ));
    causes
}

/// A link that trained below the maximum of its ends, or ends that support less than the card.
fn seen_on_the_link(identity: &Identity) -> Vec<Cause> {
    let Some(link) = identity.link else { return Vec::new() };
    let mut causes = Vec::new();
    if link.lanes < link.max_lanes {
        causes.push(Cause::seen(
            format!("the link runs with {} of {} lanes, read while copies ran", link.lanes, link.max_lanes),
            "`busbound topo` shows the hop; reseat the card, check the riser and the slot's bifurcation",
        ));
    }
    if link.generation < link.max_generation {
        causes.push(Cause::seen(
            format!(
                "the link runs at PCIe generation {} of {}, read while copies ran",
                link.generation, link.max_generation
            ),
            "`busbound topo` shows the hop; check for link errors (`nvidia-smi -q`: Replays Since Reset) and the link speed set in the BIOS",
        ));
    }
    // Both ends may support less than the card: a slot with fewer lanes, or an older host.
    if let Some(gpu) = gpu_of_name(&identity.gpu)
        && (link.generation < u32::from(gpu.pcie.generation) || link.lanes < u32::from(gpu.pcie.lanes))
        && (link.generation, link.lanes) == (link.max_generation, link.max_lanes)
    {
        causes.push(Cause::seen(
            format!(
                "the link runs at PCIe {} x{}, the maximum of the slot and host; the card supports {}",
                link.generation,
                link.lanes,
                gpu.pcie.name()
            ),
            "try another slot (`busbound topo` shows the tree); if none is faster, this is the host's maximum",
        ));
    }
    causes
}

impl fmt::Display for CopyTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (memory, direction) = (self.memory.words(), self.direction.words());
        write!(f, "copy: {memory} {direction}, {} bytes", self.bytes)
    }
}

impl SuiteCase for CopyCase {
    fn series(&self) -> Vec<&[u64]> {
        vec![&self.ns]
    }

    fn verified(&self) -> Option<bool> {
        Some(self.verified)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::H200;
    use super::*;
    use crate::bench::figures::Judgment;

    #[test]
    fn the_full_copy_suite_covers_256_bytes_to_1_gib_in_powers_of_two() {
        let all = CopyTask::plan(Mode::Full, &H200);
        let is_trusted = |task: &&CopyTask| {
            (task.direction, task.memory, task.engine, task.pace)
                == (Direction::H2d, Memory::Pinned, Engine::CopyEngine, Pace::BackToBack)
        };
        let sizes: Vec<u64> = all.iter().filter(is_trusted).map(|task| task.bytes).collect();
        assert_eq!(sizes[..23], (8..=30).map(|power| 1 << power).collect::<Vec<u64>>());
        // That curve three times plus ten others; two directions, 23 sizes.
        assert_eq!(sizes.len(), 3 * 23);
        assert_eq!(all.len(), (3 + 10) * 2 * 23);
        let fixed = Limits { managed: false, ..H200 };
        assert_eq!(CopyTask::plan(Mode::Full, &fixed).len(), (3 + 9) * 2 * 23);
        assert!(CopyTask::left_out(Mode::Full, &fixed).is_some());
        assert_eq!(CopyTask::left_out(Mode::Quick, &fixed), None);
    }

    /// The link between the chips of a GH200 carries less from the GPU than to it: 170 GB/s there are not low.
    #[test]
    fn each_direction_of_a_superchip_has_its_own_expectation() {
        let curve = |direction, gbps| MeasuredCurve {
            direction,
            memory: Memory::Pinned,
            engine: Engine::CopyEngine,
            pace: Pace::BackToBack,
            points: vec![CurvePoint { bytes: 1 << 28, gbps, p5: None, p95: None }],
        };
        let judged = |h2d, d2h| {
            let profile = MachineProfile {
                gpu: "NVIDIA GH200 480GB".to_owned(),
                curves: vec![curve(Direction::H2d, h2d), curve(Direction::D2h, d2h)],
                ..MachineProfile::default()
            };
            let identity = Identity::default();
            let figures = pinned(&Evidence { identity: &identity, profile: &profile, cases: &[] });
            figures.into_iter().map(|figure| figure.judgment).collect::<Vec<_>>()
        };
        assert_eq!(judged(415.0, 170.0), [Judgment::Fine, Judgment::Fine]);
        assert_eq!(judged(200.0, 90.0), [Judgment::Low, Judgment::Low]);
    }
}

//! Which figures are told, and what should each be?

use busbound_machine::bench::{Case, Direction, Engine, KernelKind, LatencyKind, Memory, Samples};
use busbound_machine::{MachineProfile, MeasuredCurve, PcieLink, gpu_of_name};
use serde::Serialize;

use super::causes::{self, Cause};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Judgement {
    /// As much as can be expected.
    Fine,
    /// Less than it should be.
    Short,
    /// A fact: nothing says what it should be.
    Told,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredFigure {
    pub id: &'static str,
    pub what: String,
    pub measured: f64,
    /// `GB/s`, `µs` or `×`.
    pub unit: &'static str,
    pub expected: Option<f64>,
    /// Where the expectation comes from.
    pub expected_from: Option<String>,
    pub judgement: Judgement,
    /// Of a short figure, the likeliest first.
    pub causes: Vec<Cause>,
}

/// Large copies reach this part of a link's line peak (PCIe 5 x16: 55.4 of 63.0).
const LINK_REACHED: f64 = 0.88;
/// Both directions at once reach this part of the two alone (PCIe 5 x16: 100.8 of 110.7).
const DUPLEX_REACHED: f64 = 0.90;
/// A copy within the device reaches this part of its memory's rate (H200: 4187 of 4800).
const HBM_REACHED: f64 = 0.87;
/// Below this part of what is expected a figure is short: machines of a kind differ by less.
const SHORT: f64 = 0.90;
/// Copies of this size no longer feel what each costs beside its bytes.
const LARGE: u64 = 16 << 20;
/// Buffers of this size are several times the largest cache.
const BEYOND_CACHES: u64 = 256 << 20;

pub(super) fn figures(samples: &Samples, profile: &MachineProfile) -> Vec<MeasuredFigure> {
    let mut figures = Vec::new();
    pinned(samples, profile, &mut figures);
    pageable(profile, &mut figures);
    small(profile, &mut figures);
    duplex(samples, profile, &mut figures);
    overlap(profile, &mut figures);
    memory(samples, profile, &mut figures);
    power(profile, &mut figures);
    latencies(profile, &mut figures);
    peers(samples, profile, &mut figures);
    allreduce(profile, &mut figures);
    unverified(samples, &mut figures);
    figures
}

fn told(id: &'static str, what: String, measured: f64, unit: &'static str) -> MeasuredFigure {
    MeasuredFigure {
        id,
        what,
        measured,
        unit,
        expected: None,
        expected_from: None,
        judgement: Judgement::Told,
        causes: Vec::new(),
    }
}

/// Judged against what should be.
fn held_against(
    mut figure: MeasuredFigure,
    expected: f64,
    from: String,
    causes: impl FnOnce() -> Vec<Cause>,
) -> MeasuredFigure {
    figure.expected = Some(expected);
    figure.expected_from = Some(from);
    figure.judgement = if figure.measured < SHORT * expected { Judgement::Short } else { Judgement::Fine };
    if figure.judgement == Judgement::Short {
        figure.causes = causes();
    }
    figure
}

/// What the largest copies reach; `None` where only small ones were made.
fn largest(curve: &MeasuredCurve) -> Option<f64> {
    let large = curve.points.iter().filter(|point| point.bytes >= LARGE).map(|point| point.gbps);
    large.max_by(f64::total_cmp)
}

/// The link that the GPU should have: by its data sheet, else by what both ends say they can; `None` where
/// neither is known.
fn due(samples: &Samples, profile: &MachineProfile) -> Option<(String, f64)> {
    Some(match gpu_of_name(&profile.gpu) {
        Some(gpu) if gpu.c2c_gbps > 0.0 => ("NVLink-C2C".to_owned(), gpu.c2c_gbps),
        Some(gpu) => (gpu.pcie.name(), gpu.pcie.peak_gbps()),
        None => {
            let seen = samples.identity.link.filter(|seen| seen.max_generation > 0 && seen.max_lanes > 0)?;
            let generation = u8::try_from(seen.max_generation).ok()?;
            let link = PcieLink { generation, lanes: u8::try_from(seen.max_lanes).ok()? };
            (link.name(), link.peak_gbps())
        }
    })
}

fn pinned(samples: &Samples, profile: &MachineProfile, figures: &mut Vec<MeasuredFigure>) {
    let reached = |direction| profile.copies(direction, Memory::Pinned).and_then(largest);
    let both = [Direction::H2d, Direction::D2h].map(reached);
    for (id, what, measured, other) in [
        ("pinned_h2d", "pinned memory to the device", both[0], both[1]),
        ("pinned_d2h", "device to pinned memory", both[1], both[0]),
    ] {
        let Some(measured) = measured else { continue };
        let figure = told(id, what.to_owned(), measured, "GB/s");
        let Some((link, peak)) = due(samples, profile) else {
            figures.push(figure);
            continue;
        };
        let from = format!("{:.0} % of {link}'s {peak:.1}", 100.0 * LINK_REACHED);
        let expected = LINK_REACHED * peak;
        let other_is_fine = other.is_some_and(|other| other >= SHORT * expected);
        figures.push(held_against(figure, expected, from, || causes::of_link(samples, other_is_fine)));
    }
}

fn pageable(profile: &MachineProfile, figures: &mut Vec<MeasuredFigure>) {
    for (id, what, direction) in [
        ("pageable_h2d", "pageable memory to the device", Direction::H2d),
        ("pageable_d2h", "device to pageable memory", Direction::D2h),
    ] {
        let Some(curve) = profile.copies(direction, Memory::Pageable) else { continue };
        // The largest copies, not the best: small ones may come from the CPU's cache.
        let Some(last) = curve.points.last() else { continue };
        let mut figure = told(id, what.to_owned(), last.gbps, "GB/s");
        figure.causes = vec![causes::staging()];
        figures.push(figure);
    }
}

fn small(profile: &MachineProfile, figures: &mut Vec<MeasuredFigure>) {
    for (id, what, share) in [
        ("half_rate_at", "smallest pinned copy to the device that reaches half of that", 0.5),
        ("nearly_full_at", "smallest that reaches 95 % of it", 0.95),
    ] {
        let curve = profile.copies(Direction::H2d, Memory::Pinned);
        if let Some(bytes) = curve.and_then(|curve| curve.reaches(share)) {
            figures.push(told(id, what.to_owned(), bytes as f64 / 1024.0, "KiB"));
        }
    }
}

fn duplex(samples: &Samples, profile: &MachineProfile, figures: &mut Vec<MeasuredFigure>) {
    let Some(duplex) = &profile.duplex else { return };
    let figure = told("duplex", "both directions at once, added up".to_owned(), duplex.together_gbps, "GB/s");
    let alone: Option<f64> = [Direction::H2d, Direction::D2h]
        .map(|direction| profile.copies(direction, Memory::Pinned).and_then(largest))
        .into_iter()
        .sum();
    figures.push(match alone {
        Some(alone) if duplex.bytes >= LARGE => {
            let from = format!("{:.0} % of the two alone", 100.0 * DUPLEX_REACHED);
            held_against(figure, DUPLEX_REACHED * alone, from, || causes::of_duplex(samples))
        }
        _ => figure,
    });
}

fn overlap(profile: &MachineProfile, figures: &mut Vec<MeasuredFigure>) {
    let worst = |kernel: KernelKind| {
        let large = profile.overlap.iter().filter(|one| one.kernel == kernel && one.bytes >= LARGE);
        large.fold(None, |worst: Option<(f64, f64)>, one| {
            let (copy, kernel) = worst.unwrap_or((1.0, 1.0));
            Some((copy.max(one.copy_slowdown), kernel.max(one.kernel_slowdown)))
        })
    };
    for (kernel, copy_id, kernel_id, words) in [
        (KernelKind::ComputeBound, "copy_beside_compute", "compute_beside_copy", "a compute-bound kernel"),
        (KernelKind::MemoryBound, "copy_beside_memory", "memory_beside_copy", "a memory-bound kernel"),
    ] {
        if let Some((copy, slowed)) = worst(kernel) {
            figures.push(told(copy_id, format!("a large copy's time beside {words}"), copy, "×"));
            figures.push(told(kernel_id, format!("{words}'s time beside copies"), slowed, "×"));
        }
    }
}

fn memory(samples: &Samples, profile: &MachineProfile, figures: &mut Vec<MeasuredFigure>) {
    let Some(best) = profile.hbm.iter().max_by(|a, b| a.gbps.total_cmp(&b.gbps)) else { return };
    let figure = told("hbm", "within device memory, bytes read and written".to_owned(), best.gbps, "GB/s");
    figures.push(match gpu_of_name(&profile.gpu) {
        // Less than this may stay in a cache.
        Some(gpu) if best.bytes >= BEYOND_CACHES => {
            let from = format!("{:.0} % of the data sheet's {:.0}", 100.0 * HBM_REACHED, gpu.memory_gbps);
            held_against(figure, HBM_REACHED * gpu.memory_gbps, from, || causes::of_memory(samples))
        }
        _ => figure,
    });
    let by_copy_engine = profile.hbm.iter().find(|one| one.engine == Engine::CopyEngine);
    let by_kernel = profile.hbm.iter().find(|one| one.engine == Engine::Kernel);
    if let (Some(_), Some(kernel)) = (by_copy_engine, by_kernel) {
        figures.push(told("hbm_kernel", "the same by a copy kernel".to_owned(), kernel.gbps, "GB/s"));
    }
}

fn power(profile: &MachineProfile, figures: &mut Vec<MeasuredFigure>) {
    let Some(power) = &profile.power else { return };
    let clocks = match (power.half_duty_mhz, power.full_duty_mhz) {
        (Some(half), Some(full)) => format!(" ({half:.0} MHz at half duty, {full:.0} at full)"),
        _ => String::new(),
    };
    let kernel = if power.like_a_gemm { "a matrix kernel's" } else { "an arithmetic kernel's" };
    let least = if power.like_a_gemm { "" } else { "; a GEMM draws more on this chip and slows further" };
    let what = format!("{kernel} time when the GPU never rests{clocks}{least}");
    figures.push(told("full_duty", what, power.full_duty_slowdown, "×"));
}

fn latencies(profile: &MachineProfile, figures: &mut Vec<MeasuredFigure>) {
    for latency in &profile.latencies {
        let (id, what) = match latency.what {
            LatencyKind::LaunchCall => ("launch_call", "the call that launches a kernel"),
            LatencyKind::LaunchAndWait => ("launch_and_wait", "launching an empty kernel and waiting for it"),
            LatencyKind::KernelToKernel => ("kernel_to_kernel", "one empty kernel to the next, queued"),
            LatencyKind::SmallestCopyH2d => ("smallest_copy_h2d", "4 bytes to the device, waited for"),
            LatencyKind::SmallestCopyD2h => ("smallest_copy_d2h", "4 bytes to the host, waited for"),
            LatencyKind::EventRecord => ("event_record", "the call that records an event"),
            LatencyKind::EventWait => ("event_wait", "one stream to another by an event"),
            LatencyKind::StreamSynchronize => ("stream_synchronize", "synchronising an idle stream"),
        };
        figures.push(told(id, what.to_owned(), latency.us.median, "µs"));
    }
}

fn peers(samples: &Samples, profile: &MachineProfile, figures: &mut Vec<MeasuredFigure>) {
    let nvlink = gpu_of_name(&profile.gpu).map_or(0.0, |gpu| gpu.nvlink_gbps);
    for pair in &profile.p2p {
        let mut what = format!("GPU {} to GPU {}", pair.from, pair.to);
        // How many of a GPU's links go to which other one is not known here: a pair may have few of them.
        if nvlink > 0.0 {
            what.push_str(&format!(" (its NVLinks together give {nvlink:.0} one way)"));
        }
        if !pair.direct {
            what.push_str(", staged through the host");
        }
        let figure = told("p2p", what, pair.gbps, "GB/s");
        figures.push(match due(samples, profile) {
            Some((link, peak)) if pair.bytes >= LARGE => {
                let from = format!("at least {:.0} % of {link}'s {peak:.1}", 100.0 * LINK_REACHED);
                held_against(figure, LINK_REACHED * peak, from, || {
                    causes::of_peers(pair.direct, nvlink > 0.0)
                })
            }
            _ => figure,
        });
    }
}

fn allreduce(profile: &MachineProfile, figures: &mut Vec<MeasuredFigure>) {
    let Some(largest) = profile.allreduce.iter().max_by_key(|one| one.bytes) else { return };
    figures.push(if largest.ranks == 1 {
        let what = "all-reduce of one rank (exchanges nothing: a check that NCCL works)".to_owned();
        told("allreduce_algbw", what, largest.algbw_gbps, "GB/s")
    } else {
        let what = format!("all-reduce over {} GPUs, bus bandwidth", largest.ranks);
        told("allreduce_busbw", what, largest.busbw_gbps, "GB/s")
    });
}

fn unverified(samples: &Samples, figures: &mut Vec<MeasuredFigure>) {
    let checked = samples.cases.iter().filter_map(Case::verified).count();
    let wrong = samples.cases.iter().filter(|case| case.verified() == Some(false)).count();
    if checked > 0 {
        let what = format!("of {checked} measurements whose data was checked, those where it was wrong");
        let mut figure = told("wrong_data", what, wrong as f64, "");
        figure.judgement = if wrong == 0 { Judgement::Fine } else { Judgement::Short };
        if wrong > 0 {
            figure.causes = causes::of_wrong_data();
        }
        figures.push(figure);
    }
}

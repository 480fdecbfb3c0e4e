//! The sentences and tables of live bus traffic.

use busbound_diagnosis::quantity::{bytes, printable};
#[cfg(feature = "dashboard")]
use busbound_machine::live::ProcessNow;
use busbound_machine::live::{Beat, Bus, GpuNow, Sign, Snapshot, ToWhere};

use super::{Table, plural, windows};

/// At or above this share of its peak, a bus is near the peak.
const NEAR: f64 = 0.7;
/// Below this share, a bus is nearly idle.
const NEARLY_IDLE: f64 = 0.05;

/// On a machine without a GPU.
const NOTHING: &str = "No GPU here, no heartbeat now, and no recorded window within the last day: `busbound history` shows older ones.";

/// The main statement.
pub(crate) fn statement(snapshot: &Snapshot) -> String {
    if snapshot.gpus.is_empty() {
        let beat = || Some(format!("No GPU here; the training reports: {}.", training(snapshot).pop()?.1));
        return windows::statement(snapshot).or_else(beat).unwrap_or_else(|| NOTHING.to_owned());
    }
    let lost: Vec<&GpuNow> = snapshot.gpus.iter().filter(|gpu| gpu.lost.is_some()).collect();
    match lost.as_slice() {
        [] => traffic(snapshot),
        [one] if snapshot.gpus.len() == 1 => format!("GPU {} is lost.", one.index),
        [one] => format!("GPU {} is lost. {}", one.index, traffic(snapshot)),
        all if all.len() == snapshot.gpus.len() => "All GPUs are lost.".to_owned(),
        all => format!("{} GPUs are lost. {}", all.len(), traffic(snapshot)),
    }
}

fn traffic(snapshot: &Snapshot) -> String {
    let Some((gpu, to, rate)) = snapshot.busiest() else {
        let is_unknown = snapshot.gpus.iter().any(|gpu| gpu.bus.unknown_share > 0.0);
        return if is_unknown {
            "Bus traffic is unknown for this interval: its counters were not read often enough."
        } else {
            "This driver does not report bus traffic."
        }
        .to_owned();
    };
    let moved = format!("GPU {} moves {} {}", gpu.index, per_second(rate), to.word());
    let (Some(share), Some(peak)) = (gpu.bus.share(to), &gpu.bus.peak) else {
        return format!("{moved}; the peak of its link is unknown.");
    };
    let how = match share {
        s if s >= NEAR => "The bus is near its peak",
        s if s >= NEARLY_IDLE => "The bus has headroom",
        _ => "The bus is nearly idle",
    };
    let gbps = peak.gbps(to);
    format!("{how}: {moved}, {} of the {gbps:.1} GB/s {}.", percent(share), peak.source.word())
}

/// When the interval ended. It may come from an untrusted log, so it must not contain control characters.
pub(crate) fn at(snapshot: &Snapshot) -> String {
    printable(&snapshot.at)
}

/// The interval and the driver version.
pub(crate) fn interval(snapshot: &Snapshot) -> String {
    let driver =
        snapshot.driver.as_ref().map_or(String::new(), |driver| format!(", driver {}", printable(driver)));
    format!("{:.2} s up to {}{driver}", snapshot.interval_s, at(snapshot))
}

/// `52.3 GB/s`.
pub(crate) fn per_second(rate: f64) -> String {
    format!("{}/s", bytes(rate.max(0.0).round() as u64))
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

pub(crate) fn rate(bus: &Bus, to: ToWhere) -> String {
    or_dash(bus.bytes_per_s(to).map(per_second))
}

pub(crate) fn share(bus: &Bus, to: ToWhere) -> String {
    or_dash(bus.share(to).map(percent))
}

pub(crate) fn busy(percent: Option<u32>) -> String {
    or_dash(percent.map(|percent| format!("{percent}%")))
}

/// `132 of 141 GB`.
pub(crate) fn memory(gpu: &GpuNow) -> String {
    let gb = |bytes: u64| bytes as f64 / 1e9;
    or_dash(
        gpu.memory.map(|memory| format!("{:.1} of {:.1} GB", gb(memory.used_bytes), gb(memory.total_bytes))),
    )
}

/// `612 of 700 W`.
pub(crate) fn power(gpu: &GpuNow) -> String {
    or_dash(gpu.power_watts.map(|watts| match gpu.power_limit_watts {
        Some(limit) => format!("{watts:.0} of {limit:.0} W"),
        None => format!("{watts:.0} W"),
    }))
}

/// `1755 of 1980 MHz`.
pub(crate) fn clock(gpu: &GpuNow) -> String {
    or_dash(gpu.sm_mhz.map(|mhz| match gpu.max_sm_mhz {
        Some(most) => format!("{mhz} of {most} MHz"),
        None => format!("{mhz} MHz"),
    }))
}

/// One row per GPU.
pub(crate) fn overview(snapshot: &Snapshot) -> Table {
    let rows = snapshot.gpus.iter().map(|gpu| {
        vec![
            if gpu.lost.is_some() { format!("GPU {} lost", gpu.index) } else { format!("GPU {}", gpu.index) },
            rate(&gpu.bus, ToWhere::Device),
            share(&gpu.bus, ToWhere::Device),
            rate(&gpu.bus, ToWhere::Host),
            share(&gpu.bus, ToWhere::Host),
            busy(gpu.gpu_busy_percent),
            memory(gpu),
            power(gpu),
        ]
    });
    let titles = vec!["", "to device", "of peak", "to host", "of peak", "GPU busy", "memory used", "power"];
    Table { titles, rows: rows.collect() }
}

/// The peak behind the shares, and the source of the traffic counters.
fn basis(gpu: &GpuNow) -> String {
    let bus = &gpu.bus;
    let peak = match &bus.peak {
        Some(peak) if peak.to_device_gbps == peak.to_host_gbps => {
            format!("peak {:.1} GB/s per direction, {}", peak.to_device_gbps, peak.source.word())
        }
        Some(peak) => format!(
            "peak {:.1} GB/s to device and {:.1} GB/s to host, {}",
            peak.to_device_gbps,
            peak.to_host_gbps,
            peak.source.word()
        ),
        None => "peak unknown".to_owned(),
    };
    format!("{peak}; traffic source: {}{}", bus.source.describe(), unknown(bus))
}

/// The same on one line, for small screens.
#[cfg(feature = "dashboard")]
pub(crate) fn short_basis(gpu: &GpuNow) -> String {
    let bus = &gpu.bus;
    let peak = match &bus.peak {
        Some(peak) => format!(
            "peaks {:.1} and {:.1} GB/s, {}",
            peak.to_device_gbps,
            peak.to_host_gbps,
            peak.source.word()
        ),
        None => "peaks unknown".to_owned(),
    };
    format!("{peak}; source: {}{}", bus.source.word(), unknown(bus))
}

fn unknown(bus: &Bus) -> String {
    if bus.unknown_share > 0.0 {
        format!(", {} of the time unknown", percent(bus.unknown_share.max(0.01)))
    } else {
        String::new()
    }
}

/// `PCIe 5 x16 (max)`, or `PCIe 1 x8 now, max 5 x16`.
pub(crate) fn link(gpu: &GpuNow) -> String {
    if let Some(lost) = gpu.lost {
        return format!("lost: {}", lost.describe());
    }
    let Some(link) = gpu.link else { return "link unknown".to_owned() };
    let now = format!("PCIe {} x{}", link.generation, link.lanes);
    if (link.generation, link.lanes) == (link.max_generation, link.max_lanes) {
        format!("{now} (max)")
    } else {
        format!("{now} now, max {} x{}", link.max_generation, link.max_lanes)
    }
}

/// What to say about a GPU below its name; nothing about one that is lost.
pub(crate) fn details(gpu: &GpuNow) -> Vec<String> {
    if gpu.lost.is_some() { Vec::new() } else { vec![basis(gpu), state(gpu)] }
}

pub(crate) fn name(gpu: &GpuNow) -> String {
    printable(gpu.name.as_deref().unwrap_or("unknown name"))
}

/// Memory traffic, clock, throttling, PCIe replays, NVLinks.
fn state(gpu: &GpuNow) -> String {
    let mut parts = vec![
        format!("memory bandwidth busy {}", busy(gpu.memory_busy_percent)),
        format!("SM clock {}", clock(gpu)),
        throttling(gpu),
    ];
    parts.push(match gpu.pcie_replays {
        Some(replays) => plural(replays, "PCIe replay", "PCIe replays"),
        None => "PCIe replays unknown".to_owned(),
    });
    parts.push(nvlinks(gpu));
    parts.join(", ")
}

/// The same on one line, for small screens.
#[cfg(feature = "dashboard")]
pub(crate) fn short_state(gpu: &GpuNow) -> String {
    let throttled = match gpu.throttled_by.as_deref() {
        None | Some([]) => String::new(),
        Some(reasons) => format!(" ({})", printable(&reasons.join(", "))),
    };
    let replays = gpu.pcie_replays.map(|replays| plural(replays, "replay", "replays"));
    let nvlinks = gpu.nvlinks.map(|links| match (links.received_bytes_per_s, links.sent_bytes_per_s) {
        (Some(received), Some(sent)) if links.active > 0 => {
            format!("{} NVLinks {} in, {} out", links.active, per_second(received), per_second(sent))
        }
        _ => plural(u64::from(links.active), "NVLink", "NVLinks"),
    });
    let parts = [Some(format!("SM {}{throttled}", clock(gpu))), replays, nvlinks];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn throttling(gpu: &GpuNow) -> String {
    match gpu.throttled_by.as_deref() {
        None => "throttling unknown".to_owned(),
        Some([]) => "not throttled".to_owned(),
        Some([only]) if only == "idle" => "low because the GPU is idle".to_owned(),
        Some(reasons) => format!("throttled by: {}", printable(&reasons.join(" and "))),
    }
}

fn nvlinks(gpu: &GpuNow) -> String {
    let Some(links) = gpu.nvlinks else { return "NVLinks unknown".to_owned() };
    let active = format!("{} active", plural(u64::from(links.active), "NVLink", "NVLinks"));
    match (links.received_bytes_per_s, links.sent_bytes_per_s) {
        (Some(received), Some(sent)) if links.active > 0 => {
            format!("{active} ({} received, {} sent)", per_second(received), per_second(sent))
        }
        _ => active,
    }
}

/// The processes on the GPUs; no rows if there are none.
pub(crate) fn processes(snapshot: &Snapshot) -> Table {
    let all = snapshot.gpus.iter().flat_map(|gpu| {
        gpu.processes.iter().flatten().map(|process| {
            vec![
                printable(process.name.as_deref().unwrap_or("unknown name")),
                format!("GPU {}", gpu.index),
                process.pid.to_string(),
                or_dash(process.memory_bytes.map(bytes)),
            ]
        })
    });
    Table { titles: vec!["process", "on", "pid", "memory"], rows: all.collect() }
}

/// `pid 4242 python: 131 GB`.
#[cfg(feature = "dashboard")]
pub(crate) fn process(process: &ProcessNow) -> String {
    let name = printable(process.name.as_deref().unwrap_or("unknown name"));
    let memory = process.memory_bytes.map_or_else(|| "memory unknown".to_owned(), bytes);
    format!("pid {} {name}: {memory}", process.pid)
}

/// The newest heartbeat of each file.
pub(crate) fn training(snapshot: &Snapshot) -> Vec<(String, String)> {
    let newest = snapshot.training.iter().filter_map(|training| {
        let beat = training.beats.last()?;
        Some((printable(&training.file), beat_in_words(beat)))
    });
    newest.collect()
}

fn beat_in_words(beat: &Beat) -> String {
    let parts = [
        beat.dt_step_s.map(|seconds| format!("step {seconds:.2} s")),
        beat.batch.map(|batch| format!("batch {batch}")),
        beat.toks_per_s.map(|rate| format!("{rate:.1} tokens/s")),
        beat.gpu_util_pct.map(|percent| format!("GPU {percent:.0}% busy (as reported by the job)")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A warning with its evidence, and what to do.
pub(crate) fn sign(sign: &Sign) -> (String, String) {
    let file = sign.file.as_ref().map_or(String::new(), |file| format!(" ({})", printable(file)));
    let said = format!("{}: {}", sign.statement, sign.evidence);
    (printable(&said) + &file + ".", super::capitalized(&printable(&sign.next)) + ".")
}

/// One line per GPU, for pipes.
pub(crate) fn lines(snapshot: &Snapshot) -> Vec<String> {
    let line = |gpu: &GpuNow| {
        if gpu.lost.is_some() {
            return format!("{} GPU {}: {}", at(snapshot), gpu.index, link(gpu));
        }
        let direction =
            |to: ToWhere| format!("{} {} ({})", rate(&gpu.bus, to), to.word(), share(&gpu.bus, to));
        format!(
            "{} GPU {}: {}, {}, busy {}, {}, {}",
            at(snapshot),
            gpu.index,
            direction(ToWhere::Device),
            direction(ToWhere::Host),
            busy(gpu.gpu_busy_percent),
            memory(gpu),
            power(gpu)
        )
    };
    snapshot.gpus.iter().map(line).collect()
}

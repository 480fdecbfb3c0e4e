//! For Prometheus: the metrics of the last interval in its text format. Unknown values are left out.

mod lines;
mod windows;

use std::collections::BTreeSet;
use std::fmt::Write;

use busbound_machine::live::{GpuNow, Snapshot, ToWhere};

use self::lines::{escaped, header};
use crate::Format;
use crate::answer::Answer;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "prometheus",
    suffixes: &["prom"],
    about: "",
    scope: Scope::Only(AnswerKind::Snapshot),
    render: Render::Text(|answer, _| match answer {
        Answer::Snapshot(snapshot) => Ok(top_as_prometheus(snapshot)),
        other => Err(other.not_available(Format::Prometheus)),
    }),
};

/// A metric and how to read it from a GPU.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&GpuNow) -> Option<f64>,
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&GpuNow) -> Option<f64>) -> Metric {
    Metric { name, kind: "gauge", help, value }
}

const METRICS: [Metric; 21] = [
    gauge(
        "busbound_pcie_rx_bytes_per_second",
        "PCIe bytes per second received by the GPU (host to device).",
        |gpu| gpu.bus.to_device_bytes_per_s,
    ),
    gauge(
        "busbound_pcie_tx_bytes_per_second",
        "PCIe bytes per second sent by the GPU (device to host).",
        |gpu| gpu.bus.to_host_bytes_per_s,
    ),
    gauge("busbound_pcie_rx_peak_ratio", "RX rate divided by its peak, 0 to 1.", |gpu| {
        gpu.bus.to_device_share
    }),
    gauge("busbound_pcie_tx_peak_ratio", "TX rate divided by its peak, 0 to 1.", |gpu| gpu.bus.to_host_share),
    gauge("busbound_pcie_rx_peak_bytes_per_second", "Peak RX rate.", |gpu| {
        gpu.bus.peak.as_ref().map(|peak| peak.gbps(ToWhere::Device) * 1e9)
    }),
    gauge("busbound_pcie_tx_peak_bytes_per_second", "Peak TX rate.", |gpu| {
        gpu.bus.peak.as_ref().map(|peak| peak.gbps(ToWhere::Host) * 1e9)
    }),
    gauge("busbound_pcie_unknown_ratio", "Fraction of the interval with unknown traffic, 0 to 1.", |gpu| {
        Some(gpu.bus.unknown_share)
    }),
    gauge("busbound_pcie_generation", "Current PCIe generation of the link.", |gpu| {
        gpu.link.map(|link| f64::from(link.generation))
    }),
    gauge("busbound_pcie_lanes", "Current number of PCIe lanes of the link.", |gpu| {
        gpu.link.map(|link| f64::from(link.lanes))
    }),
    gauge(
        "busbound_pcie_max_generation",
        "Maximum PCIe generation that both ends of the link support.",
        |gpu| gpu.link.map(|link| f64::from(link.max_generation)),
    ),
    gauge(
        "busbound_pcie_max_lanes",
        "Maximum number of PCIe lanes that both ends of the link support.",
        |gpu| gpu.link.map(|link| f64::from(link.max_lanes)),
    ),
    Metric {
        name: "busbound_pcie_replays_total",
        kind: "counter",
        help: "PCIe replays (retransmitted packets).",
        value: |gpu| gpu.pcie_replays.map(|count| count as f64),
    },
    gauge("busbound_gpu_busy_ratio", "Fraction of the time a kernel or a copy was running.", |gpu| {
        gpu.gpu_busy_percent.map(|percent| f64::from(percent) / 100.0)
    }),
    gauge(
        "busbound_memory_busy_ratio",
        "Fraction of the time device memory was being read or written.",
        |gpu| gpu.memory_busy_percent.map(|percent| f64::from(percent) / 100.0),
    ),
    gauge("busbound_memory_used_bytes", "Device memory in use.", |gpu| {
        gpu.memory.map(|memory| memory.used_bytes as f64)
    }),
    gauge("busbound_memory_total_bytes", "Total device memory.", |gpu| {
        gpu.memory.map(|memory| memory.total_bytes as f64)
    }),
    gauge("busbound_power_watts", "Power draw of the GPU.", |gpu| gpu.power_watts),
    gauge("busbound_power_limit_watts", "Power limit of the GPU.", |gpu| gpu.power_limit_watts),
    gauge("busbound_sm_clock_hertz", "SM clock.", |gpu| gpu.sm_mhz.map(|mhz| f64::from(mhz) * 1e6)),
    gauge("busbound_nvlinks_active", "NVLinks that are up.", |gpu| {
        gpu.nvlinks.map(|links| f64::from(links.active))
    }),
    gauge("busbound_processes", "Processes on the GPU.", |gpu| {
        gpu.processes.as_ref().map(|all| all.len() as f64)
    }),
];

/// A GPU that is lost has no figures.
fn reached(snapshot: &Snapshot) -> impl Iterator<Item = &GpuNow> {
    snapshot.gpus.iter().filter(|gpu| gpu.lost.is_none())
}

/// The metrics of one interval.
fn top_as_prometheus(snapshot: &Snapshot) -> String {
    let mut out = String::new();
    if !snapshot.gpus.is_empty() {
        header(&mut out, "busbound_gpu_lost", "gauge", "1 if the driver no longer reaches the GPU, else 0.");
    }
    for gpu in &snapshot.gpus {
        let _ = writeln!(out, "busbound_gpu_lost{{{}}} {}", labels(gpu), u8::from(gpu.lost.is_some()));
    }
    for metric in &METRICS {
        let known: Vec<(&GpuNow, f64)> =
            reached(snapshot).filter_map(|gpu| Some((gpu, (metric.value)(gpu)?))).collect();
        if !known.is_empty() {
            header(&mut out, metric.name, metric.kind, metric.help);
        }
        for (gpu, value) in known {
            let _ = writeln!(out, "{}{{{}}} {value}", metric.name, labels(gpu));
        }
    }
    each(
        &mut out,
        snapshot,
        "busbound_clock_held_down",
        "Reasons why the SM clock is throttled.",
        "reason",
        |gpu| gpu.throttled_by.iter().flatten().cloned().collect(),
    );
    each(&mut out, snapshot, "busbound_pcie_source", "Source of the traffic counters.", "source", |gpu| {
        vec![gpu.bus.source.describe().to_owned()]
    });
    each(&mut out, snapshot, "busbound_pcie_peak_source", "Source of the peak rate.", "source", |gpu| {
        gpu.bus.peak.iter().map(|peak| peak.source.word().to_owned()).collect()
    });
    windows::metrics(&mut out, &snapshot.windows);
    if !snapshot.signs.is_empty() {
        header(&mut out, "busbound_warning", "gauge", "Active warnings.");
    }
    // Both directions of a link can have the same warning, and a series may be listed only once.
    let warnings = snapshot.signs.iter().map(|sign| {
        let gpu = sign.gpu.map_or(String::new(), |gpu| gpu.to_string());
        let file = escaped(sign.file.as_deref().unwrap_or_default());
        format!("busbound_warning{{id=\"{}\",gpu=\"{gpu}\",file=\"{file}\"}} 1", sign.id.id())
    });
    for warning in warnings.collect::<BTreeSet<_>>() {
        let _ = writeln!(out, "{warning}");
    }
    out
}

/// A metric that is 1 for each label value that applies.
fn each(
    out: &mut String,
    snapshot: &Snapshot,
    name: &str,
    help: &str,
    label: &str,
    words: impl Fn(&GpuNow) -> Vec<String>,
) {
    let labeled: Vec<(&GpuNow, String)> =
        reached(snapshot).flat_map(|gpu| words(gpu).into_iter().map(move |word| (gpu, word))).collect();
    if !labeled.is_empty() {
        header(out, name, "gauge", help);
    }
    for (gpu, word) in labeled {
        let _ = writeln!(out, "{name}{{{},{label}=\"{}\"}} 1", labels(gpu), escaped(&word));
    }
}

fn labels(gpu: &GpuNow) -> String {
    let text = |text: &Option<String>| escaped(text.as_deref().unwrap_or_default());
    format!("gpu=\"{}\",uuid=\"{}\",name=\"{}\"", gpu.index, text(&gpu.uuid), text(&gpu.name))
}

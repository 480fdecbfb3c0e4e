//! The metrics of GPUs.

use busbound_machine::live::{GpuNow, Snapshot, ToWhere};

use super::{Kind, Labels, Metric, Point};

/// A metric and how to read it from a GPU.
struct Figure {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&GpuNow) -> Option<f64>,
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&GpuNow) -> Option<f64>) -> Figure {
    Figure { name, kind: Kind::Gauge, help, value }
}

const FIGURES: [Figure; 21] = [
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
    Figure {
        name: "busbound_pcie_replays_total",
        kind: Kind::Counter,
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

pub(super) fn metrics(snapshot: &Snapshot) -> Vec<Metric> {
    let lost = snapshot.gpus.iter().map(|gpu| point(gpu, f64::from(u8::from(gpu.lost.is_some()))));
    let help = "1 if the driver no longer reaches the GPU, else 0.";
    let mut all = vec![Metric::gauge("busbound_gpu_lost", help, lost.collect())];
    all.extend(FIGURES.iter().map(|figure| {
        let known = reached(snapshot).filter_map(|gpu| Some(point(gpu, (figure.value)(gpu)?)));
        Metric {
            name: figure.name.into(),
            kind: figure.kind,
            help: figure.help.into(),
            points: known.collect(),
        }
    }));
    all.push(each(
        snapshot,
        "busbound_clock_held_down",
        "Reasons why the SM clock is throttled.",
        "reason",
        |gpu| gpu.throttled_by.iter().flatten().cloned().collect(),
    ));
    all.push(each(snapshot, "busbound_pcie_source", "Source of the traffic counters.", "source", |gpu| {
        vec![gpu.bus.source.describe().to_owned()]
    }));
    all.push(each(snapshot, "busbound_pcie_peak_source", "Source of the peak rate.", "source", |gpu| {
        gpu.bus.peak.iter().map(|peak| peak.source.word().to_owned()).collect()
    }));
    all
}

/// A metric that is 1 for each label value that applies.
fn each(
    snapshot: &Snapshot,
    name: &'static str,
    help: &'static str,
    label: &'static str,
    words: impl Fn(&GpuNow) -> Vec<String>,
) -> Metric {
    let points = reached(snapshot).flat_map(|gpu| {
        let labeled = |word| Point { labels: [labels(gpu), vec![(label, word)]].concat(), value: 1.0 };
        words(gpu).into_iter().map(labeled).collect::<Vec<_>>()
    });
    Metric::gauge(name, help, points.collect())
}

fn point(gpu: &GpuNow, value: f64) -> Point {
    Point { labels: labels(gpu), value }
}

fn labels(gpu: &GpuNow) -> Labels {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    vec![("gpu", gpu.index.to_string()), ("uuid", text(&gpu.uuid)), ("name", text(&gpu.name))]
}

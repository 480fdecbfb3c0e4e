//! What did every GPU do in one interval? The JSON that `busbound top` writes and replays.

use serde::{Deserialize, Serialize};

use super::heartbeat::Training;
use super::sign::Sign;
use super::window::RankWindow;
use crate::bench::LinkSeen;

pub const TOP_SCHEMA: &str = "busbound.top/1";

/// One interval of one machine. Values that the driver does not report are `null`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    pub schema: String,
    /// UTC, at the end of the interval.
    pub at: String,
    /// Length of the interval.
    pub interval_s: f64,
    pub driver: Option<String>,
    pub gpus: Vec<GpuNow>,
    /// What the training's own files reported in this interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub training: Vec<Training>,
    /// The last recorded window of each rank (`--summaries`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<RankWindow>,
    /// Warning signs, each with its evidence.
    #[serde(default)]
    pub signs: Vec<Sign>,
}

/// One GPU in one interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GpuNow {
    /// The NVML index.
    pub index: u32,
    pub uuid: Option<String>,
    pub name: Option<String>,
    /// `0000:17:00.0`.
    pub address: Option<String>,
    /// Why the driver no longer reaches it; then it has no other values. `null` if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<GpuLost>,
    pub link: Option<LinkSeen>,
    pub bus: Bus,
    /// Share of the driver's sampling period in which a kernel ran, 0 to 100.
    pub gpu_busy_percent: Option<u32>,
    /// The same for reads and writes of device memory.
    pub memory_busy_percent: Option<u32>,
    pub memory: Option<MemoryNow>,
    pub power_watts: Option<f64>,
    pub power_limit_watts: Option<f64>,
    pub sm_mhz: Option<u32>,
    pub max_sm_mhz: Option<u32>,
    /// Why clocks are not higher, in words; `null` if unknown.
    pub throttled_by: Option<Vec<String>>,
    /// Packets retransmitted since the driver was loaded.
    pub pcie_replays: Option<u64>,
    pub nvlinks: Option<NvLinksNow>,
    pub processes: Option<Vec<ProcessNow>>,
}

/// Why a GPU no longer answers, in the words of NVML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum GpuLost {
    /// It has fallen off the bus, or cannot be reached for another reason.
    GpuIsLost,
    /// The driver does not list it any more.
    NotFound,
    /// It has to be reset before it can be used again.
    ResetRequired,
    /// What a log of another version calls differently.
    #[serde(other)]
    Unknown,
}

impl GpuLost {
    /// The reason in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::GpuIsLost => "NVML reports that the GPU is lost",
            Self::NotFound => "NVML no longer finds the GPU",
            Self::ResetRequired => "NVML reports that the GPU requires a reset",
            Self::Unknown => "the driver no longer reaches the GPU",
        }
    }
}

/// Traffic over the bus, from the GPU's point of view: received bytes (RX) go to the device, sent bytes (TX) to the host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bus {
    pub source: BusSource,
    /// RX.
    pub to_device_bytes_per_s: Option<f64>,
    /// TX.
    pub to_host_bytes_per_s: Option<f64>,
    /// What of it is data, without packet headers and without the requests that reading from the host takes. Estimated from what
    /// byte counters show for copies of known size; equal to the traffic for other sources.
    #[serde(default)]
    pub to_device_payload_bytes_per_s: Option<f64>,
    #[serde(default)]
    pub to_host_payload_bytes_per_s: Option<f64>,
    /// Share of the interval with unknown traffic, because samples were too far apart; 0 to 1.
    #[serde(default)]
    pub unknown_share: f64,
    pub peak: Option<BusPeak>,
    /// Share of the peak, 0 to 1.
    pub to_device_share: Option<f64>,
    pub to_host_share: Option<f64>,
}

/// Source of the traffic figures, best first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum BusSource {
    /// Byte counters, read many times per second: every byte of the interval.
    ByteCounters,
    /// GPM's average over the interval (Hopper and later).
    Gpm,
    /// The driver's count over 20 ms, once in the interval.
    Window20Ms,
    /// Also what a log of another version calls differently.
    #[default]
    #[serde(other)]
    Unavailable,
}

impl BusSource {
    /// The source in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::ByteCounters => "the GPU's byte counters",
            Self::Gpm => "GPM's average over the interval",
            Self::Window20Ms => "one 20 ms window in the interval",
            Self::Unavailable => "no source: this driver does not report traffic",
        }
    }

    /// The source in a few words.
    pub fn word(self) -> &'static str {
        match self {
            Self::ByteCounters => "byte counters",
            Self::Gpm => "GPM",
            Self::Window20Ms => "a 20 ms window",
            Self::Unavailable => "no source",
        }
    }
}

/// What the link can carry in each direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BusPeak {
    pub to_device_gbps: f64,
    pub to_host_gbps: f64,
    pub source: PeakSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PeakSource {
    /// The rate that large pinned copies reached on this machine.
    Measured,
    /// Set by `--machine`.
    Given,
    /// Computed from lane rate, coding and width.
    Nominal,
}

impl PeakSource {
    /// `55.4 GB/s measured`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Given => "given",
            Self::Nominal => "nominal",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryNow {
    pub used_bytes: u64,
    pub total_bytes: u64,
}

impl MemoryNow {
    /// 0 to 1.
    pub fn used_share(self) -> f64 {
        if self.total_bytes == 0 { 0.0 } else { self.used_bytes as f64 / self.total_bytes as f64 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NvLinksNow {
    pub active: u32,
    /// Sum over all links; `null` if unknown.
    pub received_bytes_per_s: Option<f64>,
    pub sent_bytes_per_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessNow {
    pub pid: u32,
    pub name: Option<String>,
    pub memory_bytes: Option<u64>,
}

impl Snapshot {
    /// One interval of these GPUs, without anything else.
    pub fn new(at: String, interval_s: f64, gpus: Vec<GpuNow>) -> Self {
        Self {
            schema: TOP_SCHEMA.to_owned(),
            at,
            interval_s,
            driver: None,
            gpus,
            training: Vec::new(),
            windows: Vec::new(),
            signs: Vec::new(),
        }
    }

    /// The GPU with the busiest bus, the busiest direction, and its traffic in bytes per second.
    pub fn busiest(&self) -> Option<(&GpuNow, ToWhere, f64)> {
        let both = self.gpus.iter().flat_map(|gpu| {
            [ToWhere::Device, ToWhere::Host].map(|to| Some((gpu, to, gpu.bus.bytes_per_s(to)?)))
        });
        both.flatten().reduce(|best, next| {
            let share =
                |(gpu, to, rate): &(&GpuNow, ToWhere, f64)| (gpu.bus.share(*to).unwrap_or(0.0), *rate);
            if share(&next) > share(&best) { next } else { best }
        })
    }
}

/// A direction, by its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToWhere {
    Device,
    Host,
}

impl ToWhere {
    pub fn word(self) -> &'static str {
        match self {
            Self::Device => "to the device",
            Self::Host => "to the host",
        }
    }
}

/// Bytes on the wire for each byte of data: with headers, the counters show 59.6 GB/s for copies that reach 55.3 GB/s (H200,
/// fixtures/top/h200.jsonl).
const WIRE_BYTES: f64 = 59.6 / 55.3;
/// Bytes to the host for each byte that the GPU reads from it: 5.18 GB/s of requests in the same log.
const REQUEST_BYTES: f64 = 5.18 / 55.3;

impl Bus {
    /// Data per second, as far as that is known.
    pub fn bytes_per_s(&self, to: ToWhere) -> Option<f64> {
        match to {
            ToWhere::Device => self.to_device_payload_bytes_per_s.or(self.to_device_bytes_per_s),
            ToWhere::Host => self.to_host_payload_bytes_per_s.or(self.to_host_bytes_per_s),
        }
    }

    /// Adds the payload to what a version without it logged: shares of the peak are those of the payload.
    pub(crate) fn complete(&mut self) {
        if self.to_device_payload_bytes_per_s.is_some() || self.to_host_payload_bytes_per_s.is_some() {
            return;
        }
        self.estimate_payload();
        let of = |share: Option<f64>, payload: Option<f64>, all: Option<f64>| {
            let part =
                payload.zip(all).map_or(1.0, |(payload, all)| if all > 0.0 { payload / all } else { 1.0 });
            share.map(|share| share * part)
        };
        self.to_device_share =
            of(self.to_device_share, self.to_device_payload_bytes_per_s, self.to_device_bytes_per_s);
        self.to_host_share =
            of(self.to_host_share, self.to_host_payload_bytes_per_s, self.to_host_bytes_per_s);
    }

    /// Sets the payload from the traffic.
    pub(crate) fn estimate_payload(&mut self) {
        let (device, host) = (self.to_device_bytes_per_s, self.to_host_bytes_per_s);
        if self.source != BusSource::ByteCounters {
            (self.to_device_payload_bytes_per_s, self.to_host_payload_bytes_per_s) = (device, host);
            return;
        }
        let to_device = device.map(|bytes| bytes / WIRE_BYTES);
        self.to_device_payload_bytes_per_s = to_device;
        self.to_host_payload_bytes_per_s =
            host.map(|bytes| (bytes - REQUEST_BYTES * to_device.unwrap_or(0.0)).max(0.0) / WIRE_BYTES);
    }

    pub fn share(&self, to: ToWhere) -> Option<f64> {
        match to {
            ToWhere::Device => self.to_device_share,
            ToWhere::Host => self.to_host_share,
        }
    }
}

impl BusPeak {
    pub fn gbps(&self, to: ToWhere) -> f64 {
        match to {
            ToWhere::Device => self.to_device_gbps,
            ToWhere::Host => self.to_host_gbps,
        }
    }
}

//! What does the GPU's performance monitor (GPM) report for the interval? Averages between two samples, on Hopper and
//! later.

use busbound_machine::live::{Bus, BusSource};
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::gpm::gpm_metrics_get;
use nvml_wrapper::{Device, GpmSample, Nvml};

/// GPM reports MiB/s.
const MIB: f64 = 1_048_576.0;

/// The monitor of one GPU.
#[derive(Debug)]
pub(super) struct Gpm {
    nvml: &'static Nvml,
    last: Option<GpmSample<'static>>,
}

/// Bytes per second since the previous sample; `None` if not available.
#[derive(Debug, Default)]
pub(super) struct Averages {
    /// The GPU receives: to the device.
    received: Option<f64>,
    sent: Option<f64>,
    pub(super) nvlink_received: Option<f64>,
    pub(super) nvlink_sent: Option<f64>,
}

impl Averages {
    pub(super) fn bus(&self) -> Option<Bus> {
        (self.received.is_some() || self.sent.is_some()).then(|| Bus {
            source: BusSource::Gpm,
            to_device_bytes_per_s: self.received,
            to_host_bytes_per_s: self.sent,
            ..Bus::default()
        })
    }
}

impl Gpm {
    pub(super) fn start(nvml: &'static Nvml, device: &Device<'static>) -> Self {
        let is_there = device.gpm_support().unwrap_or(false);
        Self { nvml, last: is_there.then(|| device.gpm_sample().ok()).flatten() }
    }

    pub(super) fn read(&mut self, device: &Device<'static>) -> Averages {
        let Some(before) = &self.last else { return Averages::default() };
        let Ok(now) = device.gpm_sample() else { return Averages::default() };
        let ids = [
            GpmMetricId::PcieRxPerSec,
            GpmMetricId::PcieTxPerSec,
            GpmMetricId::NvlinkTotalRxPerSec,
            GpmMetricId::NvlinkTotalTxPerSec,
        ];
        let metrics = gpm_metrics_get(self.nvml, before, &now, &ids).unwrap_or_default();
        let mut rates = metrics.into_iter().map(|metric| {
            metric.ok().map(|metric| (metric.value * MIB).round()).filter(|rate| rate.is_finite())
        });
        let mut next = || rates.next().flatten();
        let averages =
            Averages { received: next(), sent: next(), nvlink_received: next(), nvlink_sent: next() };
        self.last = Some(now);
        averages
    }
}

//! Which link is this run compared against, and where does that come from?

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bench::terms::{Direction, HostMemory};
use crate::catalog::{self, GpuFacts};
use crate::curve;
use crate::interconnect::PLANNED_SHARE;
use crate::link::{PcieLink, REACHED_BY_LARGE_COPIES};
use crate::profile::{MachineProfile, SharedProfile};

/// Where the link data comes from, best source first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LinkSource {
    Measured,
    Given,
    /// By the driver, while the trace was recorded.
    Recorded,
    Catalog,
    Assumed,
}

impl LinkSource {
    /// The source in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Given => "given",
            Self::Recorded => "recorded",
            Self::Catalog => "from the GPU's name",
            Self::Assumed => "assumed",
        }
    }
}

/// A GPU's link to the host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkFacts {
    pub name: String,
    /// Line peak in one direction.
    pub peak_gbps: f64,
    pub source: LinkSource,
    /// What large pinned H2D copies reach, if that is known and not derived from the peak.
    pub reached_gbps: Option<f64>,
    /// The same for D2H copies, where the link does not carry as much in that direction.
    pub reached_d2h_gbps: Option<f64>,
    /// GB/s to other GPUs over dedicated links; 0 if the GPU has none, `None` if unknown.
    pub nvlink_gbps: Option<f64>,
    /// The measured curves, if any.
    #[serde(skip)]
    pub(crate) profile: Option<SharedProfile>,
}

/// The driver's buffer for pageable copies: this many bytes are staged before the stream reaches the copy. Evidence in
/// fixtures/machines/raw/staging.txt: behind a long kernel, copies of up to 2 MiB take no longer than pinned ones, and
/// larger ones save the staging time of 2 MiB.
const STAGED_AHEAD: f64 = (2 << 20) as f64;

impl LinkFacts {
    /// A link as a topology lists it, with the GB/s of dedicated links to other GPUs.
    pub(crate) fn recorded(link: PcieLink, nvlink_gbps: f64) -> Self {
        Self {
            name: link.name(),
            peak_gbps: link.peak_gbps(),
            source: LinkSource::Recorded,
            reached_gbps: None,
            reached_d2h_gbps: None,
            nvlink_gbps: Some(nvlink_gbps),
            profile: None,
        }
    }

    /// The rate that large H2D copies from pinned memory reach.
    pub fn reachable_gbps(&self) -> f64 {
        self.reached_gbps.unwrap_or(self.peak_gbps * REACHED_BY_LARGE_COPIES)
    }

    /// The same for either direction.
    pub fn reachable_of(&self, direction: Direction) -> f64 {
        match direction {
            Direction::H2d => self.reachable_gbps(),
            Direction::D2h => self.reached_d2h_gbps.unwrap_or(self.reachable_gbps()),
        }
    }

    /// The rate between GPUs over dedicated links, as NCCL plans it; `None` if there are none or that is unknown.
    pub fn peer_gbps(&self) -> Option<f64> {
        self.nvlink_gbps.filter(|gbps| *gbps > 0.0).map(|gbps| gbps * PLANNED_SHARE)
    }

    /// The expected rate of back-to-back H2D copies of this size.
    pub fn expected_gbps(&self, bytes: u64, memory: HostMemory) -> f64 {
        self.expected_of(bytes, Direction::H2d, memory)
    }

    /// The same for either direction. The curve shape was measured on one H200: the fixed cost of a copy comes
    /// from the driver and the copy engines, not from the link.
    pub fn expected_of(&self, bytes: u64, direction: Direction, memory: HostMemory) -> f64 {
        let measured = self.profile.as_ref().and_then(|profile| profile.at(bytes, direction, memory));
        measured.unwrap_or_else(|| self.scaled(bytes, direction, &curve::streamed(direction, memory)))
    }

    /// The rate of one H2D copy at a time, from its launch to its end.
    pub fn single_gbps(&self, bytes: u64, memory: HostMemory) -> f64 {
        let streamed = self.expected_gbps(bytes, memory);
        let single = match &self.profile {
            Some(profile) => profile.single_at(bytes, memory).unwrap_or(streamed),
            None => self.scaled(bytes, Direction::H2d, &curve::single(memory)),
        };
        // A single copy is never faster than back-to-back copies.
        single.min(streamed)
    }

    /// The rate of one H2D copy that the host waits for, including the wait, when the copy is queued behind a
    /// kernel of `behind_ms`. Only pageable copies gain from the kernel: the host stages their first bytes
    /// while it runs.
    pub fn awaited_gbps(&self, bytes: u64, memory: HostMemory, behind_ms: f64) -> f64 {
        let alone = self.single_gbps(bytes, memory);
        let wait_ns = 1e3 * self.wait_us();
        let bytes = bytes as f64;
        let ahead = match memory {
            HostMemory::Pinned => 0.0,
            HostMemory::Pageable => bytes.min(STAGED_AHEAD).min(behind_ms * 1e6 * alone),
        };
        let sent = self.expected_gbps(ahead as u64, HostMemory::Pinned).max(f64::MIN_POSITIVE);
        let sent_ns = if ahead > 0.0 { ahead / sent } else { 0.0 };
        bytes / ((bytes - ahead) / alone + sent_ns + wait_ns)
    }

    /// Microseconds from a launch until the host knows that the work is done.
    pub(crate) fn wait_us(&self) -> f64 {
        self.profile.as_ref().and_then(|profile| profile.wait_us()).unwrap_or(curve::WAIT_H200_US)
    }

    /// Whether it connects two chips of one module, so that the GPU reaches all of the host's memory, pinned or not.
    pub fn is_between_chips(&self) -> bool {
        self.name == C2C_NAME
    }

    /// The measured profile behind this link, if any.
    pub fn measured(&self) -> Option<&MachineProfile> {
        self.profile.as_deref()
    }

    /// The same link on a host that copies at `times` the measured rates; unchanged without a profile.
    pub fn with_rates_times(&self, memory: HostMemory, times: f64) -> Self {
        let mut link = self.clone();
        if let Some(profile) = &mut link.profile {
            Arc::make_mut(profile).scale(memory.into(), times);
        }
        link
    }

    /// The H200's curve, scaled to this link.
    fn scaled(&self, bytes: u64, direction: Direction, points: &curve::Points) -> f64 {
        if bytes == 0 {
            return 0.0;
        }
        let measured_ns = bytes as f64 / curve::at(points, bytes);
        let fixed_ns = (measured_ns - bytes as f64 / curve::PLATEAU_H200).max(0.0);
        bytes as f64 / (fixed_ns + bytes as f64 / self.reachable_of(direction))
    }
}

/// The link between the two chips of a Grace module.
pub(crate) const C2C_NAME: &str = "NVLink-C2C";

/// What a trace recorded about a GPU's link.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// As the driver reported it.
    pub link: Option<PcieLink>,
    /// The GPU's compute capability, for GPUs that the catalog does not list.
    pub capability: Option<(u32, u32)>,
}

/// What the user said about the machine; the rest comes from the catalog.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    given: Option<Given>,
}

#[derive(Debug, Clone, PartialEq)]
enum Given {
    Link(PcieLink),
    /// GB/s in one direction.
    Rate(f64),
    Profile(SharedProfile),
    Gpu(&'static GpuFacts),
}

#[derive(Debug, thiserror::Error)]
#[error(
    "unknown machine {name:?}: give a link such as pcie4x16, a rate in GB/s such as 63, or one of {known}"
)]
pub struct UnknownMachine {
    name: String,
    known: String,
}

impl Machine {
    /// A machine by name: a link (`pcie4x16`), a GPU from the catalog (`h100-pcie`), or the link's rate in
    /// GB/s in one direction (`63`).
    ///
    /// # Errors
    /// If the name is none of these; the message lists the names.
    pub fn named(name: &str) -> Result<Self, UnknownMachine> {
        let rate = || name.parse::<f64>().ok().filter(|gbps| *gbps > 0.0 && gbps.is_finite());
        let given = PcieLink::parse(name)
            .map(Given::Link)
            .or_else(|| catalog::gpu_of_key(name).map(Given::Gpu))
            .or_else(|| rate().map(Given::Rate));
        match given {
            Some(given) => Ok(Self { given: Some(given) }),
            None => Err(UnknownMachine {
                name: name.to_owned(),
                known: catalog::catalog().iter().map(|gpu| gpu.key).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// The GPU that the user said it has; `None` if nothing was said about it.
    pub fn gpu(&self) -> Option<&'static GpuFacts> {
        match &self.given {
            Some(Given::Gpu(gpu)) => Some(gpu),
            Some(Given::Profile(profile)) => catalog::gpu_of_name(&profile.gpu),
            Some(Given::Link(_) | Given::Rate(_)) | None => None,
        }
    }

    /// Bytes of host memory of the measured machine; `None` for a profile without them, or without a profile.
    pub fn host_memory(&self) -> Option<u64> {
        match &self.given {
            Some(Given::Profile(profile)) => profile.identity.as_ref()?.host_memory_bytes,
            Some(Given::Gpu(_) | Given::Link(_) | Given::Rate(_)) | None => None,
        }
    }

    /// A machine with GPUs of this model.
    pub fn of_gpu(gpu: &'static GpuFacts) -> Self {
        Self { given: Some(Given::Gpu(gpu)) }
    }

    /// A machine that was measured.
    pub fn measured(profile: MachineProfile) -> Self {
        Self { given: Some(Given::Profile(Arc::new(profile))) }
    }

    /// The link of a GPU, by the name that its driver reports: measured or given if possible, else from the
    /// catalog, else assumed.
    pub fn link_of(&self, gpu: Option<&str>) -> LinkFacts {
        self.link_seen(gpu, Seen::default())
    }

    /// The same with what was recorded during the run: the link that the driver reported takes precedence over the catalog.
    pub fn link_seen(&self, gpu: Option<&str>, seen: Seen) -> LinkFacts {
        let listed = gpu.and_then(catalog::gpu_of_name);
        let nvlink_gbps = listed.map(|gpu| gpu.nvlink_gbps);
        let plain = |name: String, peak_gbps: f64, source: LinkSource, nvlink_gbps: Option<f64>| LinkFacts {
            name,
            peak_gbps,
            source,
            reached_gbps: None,
            reached_d2h_gbps: None,
            nvlink_gbps,
            profile: None,
        };
        let of_gpu = |gpu: &GpuFacts, source: LinkSource| match gpu.c2c {
            Some(c2c) => LinkFacts {
                reached_gbps: Some(c2c.h2d_gbps),
                reached_d2h_gbps: Some(c2c.d2h_gbps),
                ..plain(C2C_NAME.to_owned(), c2c.peak_gbps, source, Some(gpu.nvlink_gbps))
            },
            None => plain(gpu.pcie.name(), gpu.pcie.peak_gbps(), source, Some(gpu.nvlink_gbps)),
        };
        match (&self.given, listed) {
            (Some(Given::Profile(profile)), _) => LinkFacts {
                reached_gbps: profile.plateau_gbps(Direction::H2d),
                reached_d2h_gbps: profile.plateau_gbps(Direction::D2h),
                profile: Some(Arc::clone(profile)),
                ..plain(profile.link.clone(), profile.peak_gbps, LinkSource::Measured, nvlink_gbps)
            },
            (Some(Given::Rate(gbps)), _) => LinkFacts {
                reached_gbps: Some(*gbps),
                ..plain(format!("{gbps} GB/s"), *gbps, LinkSource::Given, nvlink_gbps)
            },
            (Some(Given::Link(link)), _) => {
                plain(link.name(), link.peak_gbps(), LinkSource::Given, nvlink_gbps)
            }
            (Some(Given::Gpu(gpu)), _) => of_gpu(gpu, LinkSource::Given),
            // Traffic over a chip-to-chip link does not cross PCIe, whatever the driver reports about PCIe.
            (None, listed) if seen.link.is_some() && listed.is_none_or(|gpu| gpu.c2c.is_none()) => {
                let link = seen.link.unwrap_or(PcieLink::ASSUMED);
                plain(link.name(), link.peak_gbps(), LinkSource::Recorded, nvlink_gbps)
            }
            (None, Some(gpu)) => of_gpu(gpu, LinkSource::Catalog),
            (None, None) => {
                let link = seen.capability.map_or(PcieLink::ASSUMED, PcieLink::of_capability);
                plain(link.name(), link.peak_gbps(), LinkSource::Assumed, None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_input_takes_precedence_over_the_catalog_and_the_catalog_over_an_assumption() {
        let known = Machine::default().link_of(Some("Tesla V100-SXM2-32GB"));
        assert_eq!((known.name.as_str(), known.source), ("PCIe 3 x16", LinkSource::Catalog));
        let given = Machine::named("pcie5x8").unwrap().link_of(Some("Tesla V100-SXM2-32GB"));
        assert_eq!((given.name.as_str(), given.source), ("PCIe 5 x8", LinkSource::Given));
        let gpu = Machine::named("h100-pcie").unwrap().link_of(None);
        assert_eq!((gpu.name.as_str(), gpu.nvlink_gbps), ("PCIe 5 x16", Some(0.0)));
        assert_eq!(Machine::default().link_of(None).source, LinkSource::Assumed);
        // GPUs without a name, or with one that nobody knows.
        for (capability, link) in [((7, 5), "PCIe 3 x16"), ((8, 9), "PCIe 4 x16"), ((9, 0), "PCIe 5 x16")] {
            let seen = Seen { link: None, capability: Some(capability) };
            let found = Machine::default().link_seen(Some("Graphics Device"), seen);
            assert_eq!((found.name.as_str(), found.source), (link, LinkSource::Assumed));
        }
        assert_eq!(Machine::default().link_of(Some("NVIDIA GH200 480GB")).name, "NVLink-C2C");
        let rate = Machine::named("63").unwrap().link_of(None);
        assert_eq!((rate.peak_gbps, rate.reachable_gbps()), (63.0, 63.0));
        let error = Machine::named("h999").unwrap_err().to_string();
        assert!(error.contains("h100-pcie") && error.contains("pcie4x16"), "{error}");
    }

    /// Healthy GH200 were "slow": D2H was compared with the line peak of both directions.
    #[test]
    fn a_link_between_chips_has_a_rate_for_each_direction() {
        let link = Machine::default().link_of(Some("NVIDIA GH200 480GB"));
        let large = |direction| link.expected_of(1 << 30, direction, HostMemory::Pinned);
        assert!((400.0..411.5).contains(&large(Direction::H2d)), "{}", large(Direction::H2d));
        assert!((165.0..170.5).contains(&large(Direction::D2h)), "{}", large(Direction::D2h));
        // A link that is the same both ways, and one that was only measured in one direction.
        let pcie = Machine::named("pcie5x16").unwrap().link_of(None);
        assert_eq!(pcie.reachable_of(Direction::D2h), pcie.reachable_gbps());
        let json = include_str!("../../../fixtures/machines/h200.json");
        let measured = Machine::measured(MachineProfile::parse(json).unwrap()).link_of(None);
        assert!((measured.reachable_of(Direction::D2h) - 55.3).abs() < 0.1, "{measured:?}");
    }

    #[test]
    fn a_measured_profile_takes_precedence_over_everything() {
        let json = include_str!("../../../fixtures/machines/h200.json");
        let machine = Machine::measured(MachineProfile::parse(json).unwrap());
        let link = machine.link_of(Some("Tesla V100-SXM2-32GB"));
        assert_eq!((link.source, link.name.as_str()), (LinkSource::Measured, "PCIe 5 x16"));
        assert!((link.reachable_gbps() - 55.5).abs() < 0.05, "{}", link.reachable_gbps());
        let near = |bytes, memory, gbps: f64| {
            let expected = link.expected_gbps(bytes, memory);
            assert!((expected / gbps - 1.0).abs() < 0.01, "{bytes}: {expected}");
        };
        near(4 << 10, HostMemory::Pinned, 1.587);
        near(64 << 20, HostMemory::Pageable, 8.966);
        let back = link.expected_of(64 << 10, Direction::D2h, HostMemory::Pinned);
        assert!(back > 1.2 * link.expected_gbps(64 << 10, HostMemory::Pinned), "{back}");
        for (from, to) in [
            ("busbound.machine/1", "busbound.machine/9"),
            ("\"peak_gbps\": 63", "\"peak_gbps\": -63"),
            ("\"bytes\": 16384", "\"bytes\": 1"),
            ("\"pinned\"", "\"pageable\""),
        ] {
            assert!(MachineProfile::parse(&json.replace(from, to)).is_err(), "{from}");
        }
    }

    #[test]
    fn the_expected_rate_equals_the_measured_rate_on_the_measured_machine() {
        let link = Machine::default().link_of(Some("NVIDIA H200"));
        for (bytes, pinned) in [(4 << 10, 1.59), (1 << 20, 48.8), (256 << 20, 55.4)] {
            let expected = link.expected_gbps(bytes, HostMemory::Pinned);
            assert!((expected / pinned - 1.0).abs() < 0.01, "{bytes}: {expected}");
        }
        let slower = Machine::named("pcie3x16").unwrap().link_of(None);
        assert!((slower.expected_gbps(1 << 30, HostMemory::Pinned) - 13.9).abs() < 0.1);
        assert!(slower.expected_gbps(4 << 10, HostMemory::Pinned) < 1.7);
    }

    /// Measured in fixtures/machines/raw/staging.txt: behind a long kernel, 2 MiB take no longer than pinned, and larger
    /// copies save the staging time of 2 MiB.
    #[test]
    fn the_first_bytes_of_a_pageable_copy_are_staged_while_a_kernel_runs() {
        let link = Machine::default().link_of(Some("NVIDIA H200"));
        let ms = |mib: u64, memory, behind| {
            let bytes = mib << 20;
            bytes as f64 / 1e6 / link.awaited_gbps(bytes, memory, behind)
        };
        let (alone, behind) = (ms(2, HostMemory::Pageable, 0.0), ms(2, HostMemory::Pageable, 4.0));
        assert!(behind < 0.07 && alone > 0.2, "{alone} and {behind}");
        let saved = ms(16, HostMemory::Pageable, 0.0) - ms(16, HostMemory::Pageable, 4.0);
        assert!(saved > 0.15 && saved < 0.5, "{saved}");
        assert_eq!(ms(16, HostMemory::Pinned, 0.0), ms(16, HostMemory::Pinned, 4.0));
    }
}

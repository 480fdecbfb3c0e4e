//! Which link is this run judged against, and how is that known?

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalogue::{self, GpuFacts};
use crate::curve;
use crate::link::PcieLink;
use crate::profile::{MachineProfile, SharedProfile};

/// How a link is known, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LinkSource {
    Measured,
    Given,
    Catalogue,
    Assumed,
}

impl LinkSource {
    /// How it is known, in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Given => "as given",
            Self::Catalogue => "by the GPU's name",
            Self::Assumed => "assumed",
        }
    }
}

/// The host memory at the other end of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMemory {
    Pinned,
    Pageable,
}

/// A GPU's link to its host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkFacts {
    pub name: String,
    /// Line peak of one direction.
    pub peak_gbps: f64,
    pub source: LinkSource,
    /// What large pinned copies reach, where that is known and not reckoned from the peak.
    pub reached_gbps: Option<f64>,
    /// GB/s to other GPUs over links of their own; 0 where there are none, `None` if not known.
    pub nvlink_gbps: Option<f64>,
    /// The curves, where they were measured.
    #[serde(skip)]
    pub(crate) profile: Option<SharedProfile>,
}

/// The part of the line peak that large pinned copies reach, as measured on PCIe 5.
const REACHED: f64 = 0.88;

impl LinkFacts {
    /// What large copies from pinned memory reach.
    pub fn reachable_gbps(&self) -> f64 {
        self.reached_gbps.unwrap_or(self.peak_gbps * REACHED)
    }

    /// What a copy of this size can be expected to reach. The shape is that measured on one H200:
    /// the time a copy takes beyond its bytes is that of the driver and the engines, not the link's.
    pub fn expected_gbps(&self, bytes: u64, memory: HostMemory) -> f64 {
        if bytes == 0 {
            return 0.0;
        }
        if let Some(measured) = self.profile.as_ref().and_then(|profile| profile.at(bytes, memory)) {
            return measured;
        }
        let points = match memory {
            HostMemory::Pinned => curve::PINNED_H200,
            HostMemory::Pageable => curve::PAGEABLE_H200,
        };
        let measured_ns = bytes as f64 / curve::at(points, bytes);
        let fixed_ns = (measured_ns - bytes as f64 / curve::PLATEAU_H200).max(0.0);
        bytes as f64 / (fixed_ns + bytes as f64 / self.reachable_gbps())
    }
}

/// What the user said about the machine, and what is known without.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    given: Option<Given>,
}

#[derive(Debug, Clone, PartialEq)]
enum Given {
    Link(PcieLink),
    /// GB/s of one direction.
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
    /// A machine by name: a link (`pcie4x16`), a GPU of the catalogue (`h100-pcie`), or what the link gives
    /// in GB/s of one direction (`63`).
    ///
    /// # Errors
    /// If the name is neither; the message lists the names.
    pub fn named(name: &str) -> Result<Self, UnknownMachine> {
        let rate = || name.parse::<f64>().ok().filter(|gbps| *gbps > 0.0 && gbps.is_finite());
        let given = PcieLink::parse(name)
            .map(Given::Link)
            .or_else(|| catalogue::gpu_of_key(name).map(Given::Gpu))
            .or_else(|| rate().map(Given::Rate));
        match given {
            Some(given) => Ok(Self { given: Some(given) }),
            None => Err(UnknownMachine {
                name: name.to_owned(),
                known: catalogue::catalogue().iter().map(|gpu| gpu.key).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// A machine that was measured.
    pub fn measured(profile: MachineProfile) -> Self {
        Self { given: Some(Given::Profile(Arc::new(profile))) }
    }

    /// The link of a GPU by the name its driver reports: what was measured or given, else the catalogue,
    /// else an assumption.
    pub fn link_of(&self, gpu: Option<&str>) -> LinkFacts {
        let listed = gpu.and_then(catalogue::gpu_of_name);
        let nvlink_gbps = listed.map(|gpu| gpu.nvlink_gbps);
        let plain = |name: String, peak_gbps: f64, source: LinkSource, nvlink_gbps: Option<f64>| LinkFacts {
            name,
            peak_gbps,
            source,
            reached_gbps: None,
            nvlink_gbps,
            profile: None,
        };
        let of_gpu = |gpu: &GpuFacts, source: LinkSource| {
            let (name, peak) = match gpu.c2c_gbps {
                c2c if c2c > 0.0 => ("NVLink-C2C".to_owned(), c2c),
                _ => (gpu.pcie.name(), gpu.pcie.peak_gbps()),
            };
            plain(name, peak, source, Some(gpu.nvlink_gbps))
        };
        match (&self.given, listed) {
            (Some(Given::Profile(profile)), _) => LinkFacts {
                reached_gbps: profile.plateau_gbps(),
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
            (None, Some(gpu)) => of_gpu(gpu, LinkSource::Catalogue),
            (None, None) => {
                let link = PcieLink { generation: 4, lanes: 16 };
                plain(link.name(), link.peak_gbps(), LinkSource::Assumed, None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_says_comes_before_the_catalogue_and_that_before_an_assumption() {
        let known = Machine::default().link_of(Some("Tesla V100-SXM2-32GB"));
        assert_eq!((known.name.as_str(), known.source), ("PCIe 3 x16", LinkSource::Catalogue));
        let given = Machine::named("pcie5x8").unwrap().link_of(Some("Tesla V100-SXM2-32GB"));
        assert_eq!((given.name.as_str(), given.source), ("PCIe 5 x8", LinkSource::Given));
        let gpu = Machine::named("h100-pcie").unwrap().link_of(None);
        assert_eq!((gpu.name.as_str(), gpu.nvlink_gbps), ("PCIe 5 x16", Some(0.0)));
        assert_eq!(Machine::default().link_of(None).source, LinkSource::Assumed);
        assert_eq!(Machine::default().link_of(Some("NVIDIA GH200 480GB")).name, "NVLink-C2C");
        let rate = Machine::named("63").unwrap().link_of(None);
        assert_eq!((rate.peak_gbps, rate.reachable_gbps()), (63.0, 63.0));
        let error = Machine::named("h999").unwrap_err().to_string();
        assert!(error.contains("h100-pcie") && error.contains("pcie4x16"), "{error}");
    }

    #[test]
    fn what_was_measured_comes_before_everything() {
        let json = include_str!("../../../fixtures/machines/h200.json");
        let machine = Machine::measured(MachineProfile::parse(json).unwrap());
        let link = machine.link_of(Some("Tesla V100-SXM2-32GB"));
        assert_eq!((link.source, link.name.as_str()), (LinkSource::Measured, "PCIe 5 x16"));
        assert_eq!(link.reachable_gbps(), 55.4);
        assert!((link.expected_gbps(4 << 10, HostMemory::Pinned) - 0.52).abs() < 1e-9);
        assert!((link.expected_gbps(64 << 20, HostMemory::Pageable) - 6.70).abs() < 1e-9);
        for (from, to) in [
            ("busbound.machine/1", "busbound.machine/9"),
            ("\"peak_gbps\": 63.015", "\"peak_gbps\": -1"),
            ("\"bytes\": 16384", "\"bytes\": 1"),
            ("\"pinned\"", "\"pageable\""),
        ] {
            assert!(MachineProfile::parse(&json.replace(from, to)).is_err(), "{from}");
        }
    }

    #[test]
    fn the_expected_rate_is_the_measured_one_on_the_measured_machine() {
        let link = Machine::default().link_of(Some("NVIDIA H200"));
        for (bytes, pinned) in [(4 << 10, 0.52), (1 << 20, 45.3), (256 << 20, 55.4)] {
            let expected = link.expected_gbps(bytes, HostMemory::Pinned);
            assert!((expected / pinned - 1.0).abs() < 0.01, "{bytes}: {expected}");
        }
        let slower = Machine::named("pcie3x16").unwrap().link_of(None);
        assert!((slower.expected_gbps(1 << 30, HostMemory::Pinned) - 13.9).abs() < 0.1);
        assert!(slower.expected_gbps(4 << 10, HostMemory::Pinned) < 0.55);
    }
}

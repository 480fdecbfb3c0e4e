//! What are the rates of the links, and which GPUs are known? The tables that `topo --list-links` and `--list-gpus` print.

use serde::Serialize;

use crate::catalog::{GpuFacts, catalog};
use crate::interconnect::NvLinkGeneration;
use crate::link::{DUPLEX, PcieLink, REACHED_BY_LARGE_COPIES};

pub const REFERENCE_SCHEMA: &str = "busbound.reference/1";

/// A list of what is known without measuring.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reference {
    pub schema: &'static str,
    #[serde(flatten)]
    pub list: ReferenceList,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceList {
    Links { pcie: Vec<PcieGeneration>, nvlink: Vec<NvLinkRates> },
    Gpus(Vec<&'static GpuFacts>),
}

/// PCIe of one generation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PcieGeneration {
    pub generation: u8,
    /// Gigatransfers per second and lane.
    pub gt_per_s: f64,
    /// Of so many sent units, so many are payload: `128b/130b`.
    pub coding: String,
    pub widths: Vec<PcieWidth>,
}

/// One width of a generation, GB/s.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PcieWidth {
    pub lanes: u8,
    /// Line peak in one direction, and in both.
    pub one_direction_gbps: f64,
    pub both_directions_gbps: f64,
    /// What large pinned copies reach in one direction, and in both at the same time.
    pub copies_gbps: f64,
    pub copies_both_gbps: f64,
}

/// NVLink of one generation, GB/s.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NvLinkRates {
    pub generation: u8,
    pub gpus: &'static str,
    /// Of a GPU that has all of them.
    pub links: u32,
    /// One link in one direction.
    pub link_gbps: f64,
    /// All links of a GPU, in one direction and in both.
    pub one_direction_gbps: f64,
    pub both_directions_gbps: f64,
    /// What NCCL plans with, all links in one direction.
    pub nccl_gbps: f64,
}

impl Reference {
    /// PCIe and NVLink by generation.
    pub fn links() -> Self {
        let pcie = PcieLink::GENERATIONS.map(pcie_generation).collect();
        let nvlink = NvLinkGeneration::all().iter().map(nvlink_rates).collect();
        Self { schema: REFERENCE_SCHEMA, list: ReferenceList::Links { pcie, nvlink } }
    }

    /// The GPUs of the catalog.
    pub fn gpus() -> Self {
        Self { schema: REFERENCE_SCHEMA, list: ReferenceList::Gpus(catalog().iter().collect()) }
    }
}

fn pcie_generation(generation: u8) -> PcieGeneration {
    let lane = PcieLink { generation, lanes: 1 }.lane();
    let unit = if lane.sent == 256 { "B" } else { "b" };
    PcieGeneration {
        generation,
        gt_per_s: lane.gt_per_s,
        coding: format!("{}{unit}/{}{unit}", lane.payload, lane.sent),
        widths: [4, 8, 16].map(|lanes| pcie_width(PcieLink { generation, lanes })).to_vec(),
    }
}

fn pcie_width(link: PcieLink) -> PcieWidth {
    let peak = link.peak_gbps();
    PcieWidth {
        lanes: link.lanes,
        one_direction_gbps: peak,
        both_directions_gbps: 2.0 * peak,
        copies_gbps: REACHED_BY_LARGE_COPIES * peak,
        copies_both_gbps: DUPLEX * REACHED_BY_LARGE_COPIES * peak,
    }
}

fn nvlink_rates(of: &NvLinkGeneration) -> NvLinkRates {
    NvLinkRates {
        generation: of.generation,
        gpus: of.gpus,
        links: of.links,
        link_gbps: of.link_gbps,
        one_direction_gbps: of.peak_gbps(),
        both_directions_gbps: 2.0 * of.peak_gbps(),
        nccl_gbps: f64::from(of.links) * of.nccl_gbps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the specifications, one direction and both.
    #[test]
    fn links_have_the_rates_of_their_generation() {
        let ReferenceList::Links { pcie, nvlink } = Reference::links().list else { panic!("links") };
        let of: Vec<(u8, f64, &str)> =
            pcie.iter().map(|one| (one.generation, one.gt_per_s, one.coding.as_str())).collect();
        assert_eq!(
            of,
            [
                (1, 2.5, "8b/10b"),
                (2, 5.0, "8b/10b"),
                (3, 8.0, "128b/130b"),
                (4, 16.0, "128b/130b"),
                (5, 32.0, "128b/130b"),
                (6, 64.0, "242B/256B"),
            ]
        );
        let rounded = |gbps: f64| (gbps * 10.0).round() / 10.0;
        let x16: Vec<f64> = pcie.iter().map(|one| rounded(one.widths[2].one_direction_gbps)).collect();
        assert_eq!(x16, [4.0, 8.0, 15.8, 31.5, 63.0, 121.0]);
        assert_eq!(rounded(pcie[4].widths[0].both_directions_gbps), 31.5);
        assert_eq!(rounded(pcie[4].widths[2].copies_both_gbps), 98.7);
        let all: Vec<(u32, f64, f64, f64)> = nvlink
            .iter()
            .map(|one| (one.links, one.link_gbps, one.one_direction_gbps, one.both_directions_gbps))
            .collect();
        assert_eq!(
            all,
            [
                (4, 20.0, 80.0, 160.0),
                (6, 25.0, 150.0, 300.0),
                (12, 25.0, 300.0, 600.0),
                (18, 25.0, 450.0, 900.0),
                (18, 50.0, 900.0, 1800.0),
            ]
        );
    }
}

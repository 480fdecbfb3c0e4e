//! How fast is a link between GPUs or nodes, and which rate does NCCL assume for it?
//!
//! Rates are GB/s in one direction. "NVLink 4 = 900 GB/s" counts both.

use serde::{Deserialize, Serialize};

use crate::catalog::{Fabric, GpuFacts, gpu_of_key};
use crate::link::PcieLink;

/// What a hop of a collective crosses; NCCL's latencies depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Hop {
    NvLink,
    Pci,
    Net,
}

/// A link that collectives run over: all links of this type of one GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interconnect {
    pub name: String,
    pub hop: Hop,
    /// Line peak in one direction.
    pub peak_gbps: f64,
    /// The rate that NCCL's own model assumes.
    pub nccl_gbps: f64,
    /// What the links end at; for NVLink by generation, that of the 8-GPU machine sold with it.
    pub fabric: Fabric,
    /// The GPU that names the link, by its key in the catalog; `None` for a link by its own name.
    #[serde(skip)]
    pub gpu: Option<&'static str>,
}

/// One generation of NVLink.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NvLinkGeneration {
    pub generation: u8,
    /// Links of a GPU that has all of them, and which GPUs these are.
    pub links: u32,
    pub gpus: &'static str,
    /// GB/s of one link in one direction: line peak, and what NCCL assumes.
    pub link_gbps: f64,
    pub nccl_gbps: f64,
    /// What the links end at in the 8-GPU machine sold with it.
    pub fabric: Fabric,
}

const fn nvlink(
    generation: u8,
    gpus: &'static str,
    links: u32,
    [link_gbps, nccl_gbps]: [f64; 2],
    fabric: Fabric,
) -> NvLinkGeneration {
    NvLinkGeneration { generation, links, gpus, link_gbps, nccl_gbps, fabric }
}

const NVLINK: [NvLinkGeneration; 5] = [
    nvlink(1, "P100", 4, [20.0, 18.0], Fabric::Direct),
    nvlink(2, "V100", 6, [25.0, 20.0], Fabric::Direct),
    nvlink(3, "A100", 12, [25.0, 20.0], Fabric::Switch),
    nvlink(4, "H100, H200", 18, [25.0, 20.6], Fabric::HOPPER),
    nvlink(5, "B200, B300", 18, [50.0, 40.1], Fabric::BLACKWELL),
];

/// The NVLink 3 of GA102 boards (RTX 3090, RTX A6000, A40): 4 links of 14.0625 GB/s; NCCL assumes 12.
const NVLINK_GA102: NvLinkGeneration = nvlink(3, "RTX A6000, A40", 4, [14.0625, 12.0], Fabric::Direct);

impl NvLinkGeneration {
    /// The generation of a GPU that nothing is known about.
    pub(crate) const ASSUMED: &'static Self = &NVLINK[2];

    /// Oldest first.
    pub fn all() -> &'static [Self] {
        &NVLINK
    }

    /// All links of a GPU, in one direction.
    pub fn peak_gbps(&self) -> f64 {
        f64::from(self.links) * self.link_gbps
    }

    /// The generation of a GPU's links, if it has any, by its compute capability.
    pub(crate) fn of_capability((major, minor): (u32, u32)) -> Option<&'static Self> {
        match (major, minor) {
            (6, _) => NVLINK.first(),
            (7, _) => NVLINK.get(1),
            (8, 6 | 7) => Some(&NVLINK_GA102),
            (8, _) => NVLINK.get(2),
            (9, _) => NVLINK.get(3),
            (10.., _) => NVLINK.get(4),
            _ => None,
        }
    }
}

/// The share of the peak that NCCL assumes for links between GPUs that it does not know by name.
pub(crate) const PLANNED_SHARE: f64 = 0.82;

/// Networks, with the rate of one port in GB/s.
const NETS: &[(&str, &str, f64)] = &[
    ("ib-hdr", "InfiniBand HDR", 25.0),
    ("ib-ndr", "InfiniBand NDR", 50.0),
    ("ib-xdr", "InfiniBand XDR", 100.0),
    ("eth-25", "Ethernet 25G", 3.125),
    ("eth-100", "Ethernet 100G", 12.5),
    ("eth-200", "Ethernet 200G", 25.0),
    ("eth-400", "Ethernet 400G", 50.0),
    ("eth-800", "Ethernet 800G", 100.0),
];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown link {name:?}: give a rate in GB/s such as 32, or one of {known}")]
pub struct UnknownLink {
    name: String,
    known: String,
}

impl Interconnect {
    /// A link by name (`pcie4x16`, `nvlink4`, `ib-ndr`), by the GPU that has it (`h100-sxm`) or by its rate in GB/s
    /// (`32`, which gets the latency of PCIe).
    ///
    /// # Errors
    /// If the name is none of these; the message lists the names.
    pub fn named(name: &str) -> Result<Self, UnknownLink> {
        let lower = name.trim().to_ascii_lowercase();
        if let Some(pcie) = PcieLink::parse(&lower) {
            return Ok(Self::pcie(pcie));
        }
        let nvlink =
            lower.strip_prefix("nvlink").and_then(|generation| generation.trim().parse::<usize>().ok());
        if let Some(nvlink) = nvlink.and_then(|generation| NVLINK.get(generation.checked_sub(1)?)) {
            return Ok(Self {
                name: format!("NVLink {}", nvlink.generation),
                hop: Hop::NvLink,
                peak_gbps: nvlink.peak_gbps(),
                nccl_gbps: f64::from(nvlink.links) * nvlink.nccl_gbps,
                fabric: nvlink.fabric,
                gpu: None,
            });
        }
        if let Some((_, title, gbps)) = NETS.iter().find(|(key, ..)| *key == lower) {
            return Ok(Self::plain((*title).to_owned(), Hop::Net, *gbps, *gbps));
        }
        if let Some(gpu) = gpu_of_key(&lower) {
            return Ok(Self::of_gpu(gpu));
        }
        match lower.trim_end_matches("gb/s").trim().parse::<f64>() {
            Ok(gbps) if gbps > 0.0 && gbps.is_finite() => {
                Ok(Self::plain(format!("{gbps} GB/s"), Hop::Pci, gbps, gbps))
            }
            _ => Err(UnknownLink { name: name.to_owned(), known: Self::names().join(", ") }),
        }
    }

    /// The link between GPUs of this model: NVLink or Infinity Fabric if they have it, else PCIe.
    pub fn of_gpu(gpu: &GpuFacts) -> Self {
        if gpu.nvlink_gbps <= 0.0 {
            return Self { gpu: Some(gpu.key), ..Self::pcie(gpu.pcie) };
        }
        let is_nvidia = !gpu.key.starts_with("mi");
        let name = if is_nvidia { "NVLink" } else { "Infinity Fabric" };
        Self {
            name: format!("{name} of {}", gpu.key),
            hop: Hop::NvLink,
            peak_gbps: gpu.nvlink_gbps,
            nccl_gbps: gpu.nvlink_gbps * PLANNED_SHARE,
            fabric: gpu.fabric,
            gpu: Some(gpu.key),
        }
    }

    /// The same links without reduction in the switches, as with `NCCL_NVLS_ENABLE=0`.
    pub fn without_nvls(self) -> Self {
        let fabric = if self.fabric.is_switched() { Fabric::Switch } else { Fabric::Direct };
        Self { fabric, ..self }
    }

    fn plain(name: String, hop: Hop, peak_gbps: f64, nccl_gbps: f64) -> Self {
        Self { name, hop, peak_gbps, nccl_gbps, fabric: Fabric::Direct, gpu: None }
    }

    fn pcie(link: PcieLink) -> Self {
        // 12 GB/s at generation 3 with 16 lanes, doubled for each later generation.
        let planned = 12.0 * 2f64.powi(i32::from(link.generation) - 3) * f64::from(link.lanes) / 16.0;
        Self::plain(link.name(), Hop::Pci, link.peak_gbps(), planned)
    }

    /// The names that [`named`](Self::named) accepts, with one width per PCIe generation.
    pub fn names() -> Vec<String> {
        let pcie = (3..=6).map(|generation| format!("pcie{generation}x16"));
        let nvlink = (1..=NVLINK.len()).map(|generation| format!("nvlink{generation}"));
        pcie.chain(nvlink).chain(NETS.iter().map(|(key, ..)| (*key).to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_have_the_rates_in_one_direction() {
        for (name, peak, planned, hop) in [
            ("pcie3x16", 15.75, 12.0, Hop::Pci),
            ("pcie4x16", 31.5, 24.0, Hop::Pci),
            ("pcie5x16", 63.0, 48.0, Hop::Pci),
            ("pcie5x8", 31.5, 24.0, Hop::Pci),
            ("nvlink1", 80.0, 72.0, Hop::NvLink),
            ("nvlink3", 300.0, 240.0, Hop::NvLink),
            ("NVLink4", 450.0, 370.8, Hop::NvLink),
            ("nvlink5", 900.0, 721.8, Hop::NvLink),
            ("ib-ndr", 50.0, 50.0, Hop::Net),
            ("32", 32.0, 32.0, Hop::Pci),
            ("16 GB/s", 16.0, 16.0, Hop::Pci),
            ("h100-sxm", 450.0, 369.0, Hop::NvLink),
            ("h100-pcie", 63.0, 48.0, Hop::Pci),
        ] {
            let link = Interconnect::named(name).unwrap();
            assert!(
                (link.peak_gbps - peak).abs() < 0.1 && (link.nccl_gbps - planned).abs() < 0.1,
                "{link:?}"
            );
            assert_eq!(link.hop, hop);
        }
        for wrong in ["nvlink9", "nvlink0", "-3", "0", "NaN", "fast", ""] {
            let error = Interconnect::named(wrong).unwrap_err().to_string();
            assert!(error.contains("pcie4x16") && error.contains("nvlink4"), "{error}");
        }
    }
}

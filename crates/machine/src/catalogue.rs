//! Which link does a GPU have? By the name its driver reports, which is the name in the trace.
//!
//! PCIe generation and width from NVIDIA's and AMD's data sheets of each board; NVLink is the sum of
//! all links of the GPU, one direction. The slot may be narrower than the board: a trace cannot tell.

use crate::link::PcieLink;

/// What the data sheet says of a GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GpuFacts {
    /// How the driver's name is recognised: all these words occur in it.
    pub words: &'static [&'static str],
    /// For `--machine`.
    pub key: &'static str,
    pub pcie: PcieLink,
    /// GB/s of all links to other GPUs in one direction; 0 where there are none.
    pub nvlink_gbps: f64,
    /// GB/s of one direction to the host where that is not PCIe (NVLink-C2C); 0 where it is.
    pub c2c_gbps: f64,
}

const fn gpu(
    key: &'static str,
    words: &'static [&'static str],
    generation: u8,
    lanes: u8,
    nvlink_gbps: f64,
) -> GpuFacts {
    GpuFacts { words, key, pcie: PcieLink { generation, lanes }, nvlink_gbps, c2c_gbps: 0.0 }
}

/// A GPU that shares a module with its host: 450 GB/s each way between them.
const fn superchip(key: &'static str, words: &'static [&'static str], nvlink_gbps: f64) -> GpuFacts {
    GpuFacts { c2c_gbps: 450.0, ..gpu(key, words, 5, 16, nvlink_gbps) }
}

/// More specific names stand before less specific ones: the first that fits counts.
const GPUS: &[GpuFacts] = &[
    gpu("b200", &["B200"], 5, 16, 900.0),
    gpu("b300", &["B300"], 6, 16, 900.0),
    superchip("gh200", &["GH200"], 450.0),
    superchip("gb200", &["GB200"], 900.0),
    superchip("gb300", &["GB300"], 900.0),
    gpu("h200-nvl", &["H200", "NVL"], 5, 16, 450.0),
    gpu("h200", &["H200"], 5, 16, 450.0),
    gpu("h100-nvl", &["H100", "NVL"], 5, 16, 300.0),
    gpu("h100-pcie", &["H100", "PCIe"], 5, 16, 0.0),
    gpu("h100-sxm", &["H100"], 5, 16, 450.0),
    gpu("h800", &["H800"], 5, 16, 200.0),
    gpu("h20", &["H20"], 5, 16, 450.0),
    gpu("a100-pcie", &["A100", "PCI"], 4, 16, 0.0),
    gpu("a100-sxm", &["A100"], 4, 16, 300.0),
    gpu("a800", &["A800"], 4, 16, 200.0),
    gpu("a30", &["A30"], 4, 16, 0.0),
    gpu("a40", &["A40"], 4, 16, 0.0),
    gpu("a10g", &["A10G"], 4, 16, 0.0),
    gpu("a10", &["A10"], 4, 16, 0.0),
    gpu("l40s", &["L40S"], 4, 16, 0.0),
    gpu("l40", &["L40"], 4, 16, 0.0),
    gpu("l20", &["L20"], 4, 16, 0.0),
    gpu("l4", &["L4"], 4, 16, 0.0),
    gpu("v100-pcie", &["V100", "PCIE"], 3, 16, 0.0),
    gpu("v100-sxm", &["V100"], 3, 16, 150.0),
    gpu("p100-pcie", &["P100", "PCIE"], 3, 16, 0.0),
    gpu("p100-sxm", &["P100"], 3, 16, 80.0),
    gpu("t4", &["Tesla T4"], 3, 16, 0.0),
    gpu("rtx-pro-6000", &["RTX PRO 6000"], 5, 16, 0.0),
    gpu("rtx-6000-ada", &["RTX 6000 Ada"], 4, 16, 0.0),
    gpu("rtx-a6000", &["RTX A6000"], 4, 16, 0.0),
    gpu("rtx-5090", &["RTX 5090"], 5, 16, 0.0),
    gpu("rtx-5080", &["RTX 5080"], 5, 16, 0.0),
    gpu("rtx-4090", &["RTX 4090"], 4, 16, 0.0),
    gpu("rtx-4080", &["RTX 4080"], 4, 16, 0.0),
    gpu("rtx-3090", &["RTX 3090"], 4, 16, 0.0),
    gpu("rtx-3080", &["RTX 3080"], 4, 16, 0.0),
    gpu("rtx-2080-ti", &["RTX 2080 Ti"], 3, 16, 0.0),
    gpu("mi355x", &["MI355"], 5, 16, 537.0),
    gpu("mi325x", &["MI325"], 5, 16, 448.0),
    gpu("mi300x", &["MI300"], 5, 16, 448.0),
    gpu("mi250x", &["MI250"], 4, 16, 300.0),
];

/// Every GPU known.
pub fn catalogue() -> &'static [GpuFacts] {
    GPUS
}

pub(crate) fn by_driver_name(name: &str) -> Option<&'static GpuFacts> {
    let name = name.to_ascii_lowercase();
    // "A10" must not be found in "A100": a word is bounded by what is no letter or digit.
    let has = |word: &str| {
        let word = word.to_ascii_lowercase();
        name.match_indices(&word).any(|(at, _)| {
            let before = name[..at].chars().next_back();
            let after = name[at + word.len()..].chars().next();
            // MI300X and A100-SXM4, H100 80GB: letters may follow a model's digits, digits may not.
            !before.is_some_and(|c| c.is_ascii_alphanumeric()) && !after.is_some_and(|c| c.is_ascii_digit())
        })
    };
    GPUS.iter().find(|gpu| gpu.words.iter().all(|word| has(word)))
}

pub(crate) fn by_key(key: &str) -> Option<&'static GpuFacts> {
    GPUS.iter().find(|gpu| gpu.key.eq_ignore_ascii_case(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_names_find_their_board() {
        for (name, key) in [
            ("NVIDIA H200", "h200"),
            ("NVIDIA H100 80GB HBM3", "h100-sxm"),
            ("NVIDIA H100 PCIe", "h100-pcie"),
            ("NVIDIA A100-SXM4-80GB", "a100-sxm"),
            ("NVIDIA A100-PCIE-40GB", "a100-pcie"),
            ("NVIDIA A100-PG509-200", "a100-sxm"),
            ("NVIDIA A10", "a10"),
            ("NVIDIA A10G", "a10g"),
            ("Tesla V100-SXM2-32GB", "v100-sxm"),
            ("Tesla V100-DGXS-32GB", "v100-sxm"),
            ("NVIDIA L4", "l4"),
            ("NVIDIA L40S", "l40s"),
            ("NVIDIA GeForce RTX 4090", "rtx-4090"),
            ("AMD Instinct MI300X", "mi300x"),
        ] {
            assert_eq!(by_driver_name(name).map(|gpu| gpu.key), Some(key), "{name}");
        }
        assert_eq!(by_driver_name("AMD Radeon Graphics"), None);
    }

    #[test]
    fn every_key_is_unique() {
        let mut keys: Vec<_> = GPUS.iter().map(|gpu| gpu.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), GPUS.len());
    }
}

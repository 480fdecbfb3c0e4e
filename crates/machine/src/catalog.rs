//! What does the data sheet say about a GPU? Looked up by the name that its driver reports, which is the name in the
//! trace.
//!
//! Sources: NVIDIA's data sheet for each board (H100, H200, B200 and B300 HGX, GB200 and GB300 NVL72, GH200, A100, A800,
//! A30, A40, A10, L4, L20, L40, L40S, V100, P100, T4, RTX PRO 6000, RTX 6000 Ada, RTX A6000) and architecture white
//! papers (Ada, Ampere GA102, Turing, Blackwell GeForce); server vendors' data sheets for H800 and H20; AMD's data
//! sheets for the Instinct boards. Dense rates, without sparsity; chips without bf16 (before Ampere) list fp16. NVLink
//! is the sum of all links of the GPU in one direction. The slot may be narrower than the board: a trace does not show
//! that.

use serde::Serialize;

use crate::link::PcieLink;

/// What the links between GPUs end at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Fabric {
    /// At another GPU: each pair has its own links, or none.
    Direct,
    /// At NVSwitches: each GPU reaches every other one with all of its links, so the bisection is half of the GPUs times
    /// their rate.
    Switch,
    /// At NVSwitches that also reduce (NVLink SHARP, NCCL's NVLS), with the share of NCCL's planned rate that this
    /// reaches in NCCL's tuning (`nvlsEfficiency`: 0.85 on Hopper, 0.74 on Blackwell).
    ReducingSwitch { nvls_efficiency: f64 },
}

impl Fabric {
    pub(crate) const HOPPER: Self = Self::ReducingSwitch { nvls_efficiency: 0.85 };
    pub(crate) const BLACKWELL: Self = Self::ReducingSwitch { nvls_efficiency: 0.74 };

    /// The NVLS efficiency, if the switches reduce.
    pub fn nvls_efficiency(self) -> Option<f64> {
        match self {
            Self::ReducingSwitch { nvls_efficiency } => Some(nvls_efficiency),
            Self::Direct | Self::Switch => None,
        }
    }

    pub fn is_switched(self) -> bool {
        self != Self::Direct
    }
}

/// NVLink-C2C between one GPU and its host.
///
/// What copies reach is not the same in both directions. Public figures of nvbandwidth, none measured by us:
/// NVIDIA/Megatron-LM#6491 has 411 to 421 GB/s to and 170 GB/s from each GPU of four GH200, and 211 and 193 GB/s of four
/// GB300 (169 to 184 GB/s while all four copy); vllm-project/vllm#6496 has 342 and 295 GB/s of a single GH200.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChipLink {
    /// Line peak in one direction.
    pub peak_gbps: f64,
    /// What large pinned copies reach.
    pub h2d_gbps: f64,
    pub d2h_gbps: f64,
}

/// A GPU's data sheet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GpuFacts {
    /// All of these words occur in the name that the driver reports.
    pub words: &'static [&'static str],
    /// The name for `--machine`.
    pub key: &'static str,
    pub pcie: PcieLink,
    /// GB/s of all links to other GPUs in one direction; 0 if the GPU has none.
    pub nvlink_gbps: f64,
    /// What those links end at in the usual 8-GPU machine of this board.
    pub fabric: Fabric,
    /// The link to the host, if that is NVLink-C2C instead of PCIe.
    pub c2c: Option<ChipLink>,
    /// GB/s of the device's own memory.
    pub memory_gbps: f64,
    /// Dense bf16 on tensor or matrix cores, fp32 accumulation.
    pub bf16_tflops: f64,
    pub memory_gb: f64,
    /// The board's default power limit.
    pub watts: f64,
    /// CUDA compute capability; `None` for AMD.
    pub capability: Option<(u32, u32)>,
    /// Streaming multiprocessors, or compute units of AMD; `None` where no public figure is certain.
    pub multiprocessors: Option<u32>,
}

/// `chip` is memory GB/s, bf16 TFLOP/s, memory GB, watts.
const fn gpu(
    key: &'static str,
    words: &'static [&'static str],
    generation: u8,
    lanes: u8,
    nvlink_gbps: f64,
    chip: [f64; 4],
) -> GpuFacts {
    let [memory_gbps, bf16_tflops, memory_gb, watts] = chip;
    let pcie = PcieLink { generation, lanes };
    let fabric = Fabric::Direct;
    GpuFacts {
        words,
        key,
        pcie,
        nvlink_gbps,
        fabric,
        c2c: None,
        memory_gbps,
        bf16_tflops,
        memory_gb,
        watts,
        capability: None,
        multiprocessors: None,
    }
}

impl GpuFacts {
    /// On a board whose links end at switches.
    const fn on(self, fabric: Fabric) -> Self {
        Self { fabric, ..self }
    }

    /// An NVIDIA chip: compute capability and multiprocessors.
    const fn sm(self, major: u32, minor: u32, multiprocessors: Option<u32>) -> Self {
        Self { capability: Some((major, minor)), multiprocessors, ..self }
    }

    /// An AMD chip.
    const fn with_units(self, units: u32) -> Self {
        Self { multiprocessors: Some(units), ..self }
    }
}

/// One Hopper on one Grace.
const C2C_HOPPER: ChipLink = ChipLink { peak_gbps: 450.0, h2d_gbps: 411.0, d2h_gbps: 170.0 };
/// One of the two Blackwells on one Grace. Measured on GB300; GB200 has the same link.
const C2C_BLACKWELL: ChipLink = ChipLink { peak_gbps: 225.0, h2d_gbps: 211.0, d2h_gbps: 193.0 };

/// A GPU on one module with its host.
const fn superchip(
    key: &'static str,
    words: &'static [&'static str],
    c2c: ChipLink,
    nvlink_gbps: f64,
    chip: [f64; 4],
) -> GpuFacts {
    GpuFacts { c2c: Some(c2c), ..gpu(key, words, 5, 16, nvlink_gbps, chip) }
}

/// More specific names come before less specific ones: the first match wins.
const GPUS: &[GpuFacts] = &[
    superchip("gb300", &["GB300"], C2C_BLACKWELL, 900.0, [8000.0, 2500.0, 279.0, 1400.0])
        .on(Fabric::BLACKWELL)
        .sm(10, 3, None),
    superchip("gb200", &["GB200"], C2C_BLACKWELL, 900.0, [8000.0, 2500.0, 186.0, 1200.0])
        .on(Fabric::BLACKWELL)
        .sm(10, 0, None),
    superchip("gh200", &["GH200"], C2C_HOPPER, 450.0, [4000.0, 990.0, 96.0, 900.0]).sm(9, 0, Some(132)),
    gpu("b300", &["B300"], 6, 16, 900.0, [8000.0, 2250.0, 270.0, 1100.0])
        .on(Fabric::BLACKWELL)
        .sm(10, 3, None),
    gpu("b200", &["B200"], 5, 16, 900.0, [8000.0, 2250.0, 180.0, 1000.0]).on(Fabric::BLACKWELL).sm(
        10,
        0,
        Some(148),
    ),
    gpu("h200-nvl", &["H200", "NVL"], 5, 16, 450.0, [4800.0, 836.0, 141.0, 600.0]).sm(9, 0, Some(132)),
    gpu("h200", &["H200"], 5, 16, 450.0, [4800.0, 989.0, 141.0, 700.0]).on(Fabric::HOPPER).sm(
        9,
        0,
        Some(132),
    ),
    gpu("h100-nvl", &["H100", "NVL"], 5, 16, 300.0, [3938.0, 836.0, 94.0, 400.0]).sm(9, 0, Some(132)),
    gpu("h100-pcie", &["H100", "PCIe"], 5, 16, 0.0, [2039.0, 756.0, 80.0, 350.0]).sm(9, 0, Some(114)),
    gpu("h100-sxm", &["H100"], 5, 16, 450.0, [3352.0, 989.0, 80.0, 700.0]).on(Fabric::HOPPER).sm(
        9,
        0,
        Some(132),
    ),
    gpu("h800", &["H800"], 5, 16, 200.0, [3352.0, 989.0, 80.0, 700.0]).on(Fabric::HOPPER).sm(9, 0, Some(132)),
    gpu("h20", &["H20"], 5, 16, 450.0, [4000.0, 148.0, 96.0, 400.0]).on(Fabric::HOPPER).sm(9, 0, Some(78)),
    gpu("a100-pcie-40gb", &["A100", "PCI", "40GB"], 4, 16, 0.0, [1555.0, 312.0, 40.0, 250.0]).sm(
        8,
        0,
        Some(108),
    ),
    gpu("a100-pcie", &["A100", "PCI"], 4, 16, 0.0, [1935.0, 312.0, 80.0, 300.0]).sm(8, 0, Some(108)),
    gpu("a100-sxm-40gb", &["A100", "40GB"], 4, 16, 300.0, [1555.0, 312.0, 40.0, 400.0])
        .on(Fabric::Switch)
        .sm(8, 0, Some(108)),
    gpu("a100-sxm", &["A100"], 4, 16, 300.0, [2039.0, 312.0, 80.0, 400.0]).on(Fabric::Switch).sm(
        8,
        0,
        Some(108),
    ),
    gpu("a800", &["A800"], 4, 16, 200.0, [2039.0, 312.0, 80.0, 400.0]).on(Fabric::Switch).sm(8, 0, Some(108)),
    gpu("a30", &["A30"], 4, 16, 0.0, [933.0, 165.0, 24.0, 165.0]).sm(8, 0, Some(56)),
    gpu("a40", &["A40"], 4, 16, 0.0, [696.0, 149.7, 48.0, 300.0]).sm(8, 6, Some(84)),
    gpu("a10g", &["A10G"], 4, 16, 0.0, [600.0, 70.0, 24.0, 300.0]).sm(8, 6, Some(80)),
    gpu("a10", &["A10"], 4, 16, 0.0, [600.0, 125.0, 24.0, 150.0]).sm(8, 6, Some(72)),
    gpu("l40s", &["L40S"], 4, 16, 0.0, [864.0, 362.0, 48.0, 350.0]).sm(8, 9, Some(142)),
    gpu("l40", &["L40"], 4, 16, 0.0, [864.0, 181.0, 48.0, 300.0]).sm(8, 9, Some(142)),
    gpu("l20", &["L20"], 4, 16, 0.0, [864.0, 119.5, 48.0, 275.0]).sm(8, 9, Some(92)),
    gpu("l4", &["L4"], 4, 16, 0.0, [300.0, 121.0, 24.0, 72.0]).sm(8, 9, Some(58)),
    gpu("v100-pcie", &["V100", "PCIE"], 3, 16, 0.0, [900.0, 112.0, 32.0, 250.0]).sm(7, 0, Some(80)),
    gpu("v100-sxm", &["V100"], 3, 16, 150.0, [900.0, 125.0, 32.0, 300.0]).sm(7, 0, Some(80)),
    gpu("p100-pcie", &["P100", "PCIE"], 3, 16, 0.0, [732.0, 18.7, 16.0, 250.0]).sm(6, 0, Some(56)),
    gpu("p100-sxm", &["P100"], 3, 16, 80.0, [732.0, 21.2, 16.0, 300.0]).sm(6, 0, Some(56)),
    gpu("t4", &["Tesla T4"], 3, 16, 0.0, [320.0, 65.0, 16.0, 70.0]).sm(7, 5, Some(40)),
    gpu("rtx-pro-6000", &["RTX PRO 6000"], 5, 16, 0.0, [1792.0, 504.0, 96.0, 600.0]).sm(12, 0, Some(188)),
    gpu("quadro-rtx-6000", &["Quadro RTX 6000"], 3, 16, 0.0, [672.0, 130.5, 24.0, 260.0]).sm(7, 5, Some(72)),
    gpu("rtx-6000-ada", &["RTX 6000 Ada"], 4, 16, 0.0, [960.0, 364.0, 48.0, 300.0]).sm(8, 9, Some(142)),
    gpu("rtx-a6000", &["RTX A6000"], 4, 16, 0.0, [768.0, 155.0, 48.0, 300.0]).sm(8, 6, Some(84)),
    gpu("rtx-5090", &["RTX 5090"], 5, 16, 0.0, [1792.0, 209.5, 32.0, 575.0]).sm(12, 0, Some(170)),
    gpu("rtx-5080", &["RTX 5080"], 5, 16, 0.0, [960.0, 112.6, 16.0, 360.0]).sm(12, 0, Some(84)),
    gpu("rtx-4090", &["RTX 4090"], 4, 16, 0.0, [1008.0, 165.2, 24.0, 450.0]).sm(8, 9, Some(128)),
    gpu("rtx-4080", &["RTX 4080"], 4, 16, 0.0, [717.0, 97.5, 16.0, 320.0]).sm(8, 9, Some(76)),
    gpu("rtx-4060-ti", &["RTX 4060 Ti"], 4, 8, 0.0, [288.0, 44.1, 16.0, 160.0]).sm(8, 9, Some(34)),
    gpu("rtx-4060", &["RTX 4060"], 4, 8, 0.0, [272.0, 30.2, 8.0, 115.0]).sm(8, 9, Some(24)),
    gpu("rtx-3090", &["RTX 3090"], 4, 16, 0.0, [936.0, 71.0, 24.0, 350.0]).sm(8, 6, Some(82)),
    gpu("rtx-3080", &["RTX 3080"], 4, 16, 0.0, [760.0, 59.5, 10.0, 320.0]).sm(8, 6, Some(68)),
    gpu("rtx-2080-ti", &["RTX 2080 Ti"], 3, 16, 0.0, [616.0, 53.8, 11.0, 250.0]).sm(7, 5, Some(68)),
    gpu("mi355x", &["MI355"], 5, 16, 537.0, [8000.0, 2517.0, 288.0, 1400.0]).with_units(256),
    gpu("mi325x", &["MI325"], 5, 16, 448.0, [6000.0, 1307.0, 256.0, 1000.0]).with_units(304),
    gpu("mi300x", &["MI300"], 5, 16, 448.0, [5300.0, 1307.0, 192.0, 750.0]).with_units(304),
    // Each of the two dies of a board is a separate device with half of the board's figures.
    gpu("mi250x", &["MI250"], 4, 16, 300.0, [1638.0, 191.5, 64.0, 280.0]).with_units(110),
];

/// Every GPU known.
pub fn catalog() -> &'static [GpuFacts] {
    GPUS
}

/// The GPU with this name, as the driver reports it.
pub fn gpu_of_name(name: &str) -> Option<&'static GpuFacts> {
    let name = name.to_ascii_lowercase();
    // "A10" must not match "A100": check the characters around the word.
    let has = |word: &str| {
        let word = word.to_ascii_lowercase();
        name.match_indices(&word).any(|(at, _)| {
            let before = name[..at].chars().next_back();
            let after = name[at + word.len()..].chars().next();
            // MI300X, A100-SXM4, H100 80GB: letters may follow the digits of a model, more digits may not.
            !before.is_some_and(|c| c.is_ascii_alphanumeric()) && !after.is_some_and(|c| c.is_ascii_digit())
        })
    };
    GPUS.iter().find(|gpu| gpu.words.iter().all(|word| has(word)))
}

/// The GPU with a key such as `h100-pcie`.
pub fn gpu_of_key(key: &str) -> Option<&'static GpuFacts> {
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
            ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
            ("NVIDIA A100 80GB PCIe", "a100-pcie"),
            ("NVIDIA A100-SXM4-40GB", "a100-sxm-40gb"),
            ("NVIDIA GB200", "gb200"),
            ("NVIDIA B200", "b200"),
            ("NVIDIA A100-PG509-200", "a100-sxm"),
            ("NVIDIA A10", "a10"),
            ("NVIDIA A10G", "a10g"),
            ("Tesla V100-SXM2-32GB", "v100-sxm"),
            ("Tesla V100-DGXS-32GB", "v100-sxm"),
            ("NVIDIA L4", "l4"),
            ("NVIDIA L40S", "l40s"),
            ("NVIDIA GeForce RTX 4090", "rtx-4090"),
            ("NVIDIA GeForce RTX 4060", "rtx-4060"),
            ("NVIDIA GeForce RTX 4060 Ti", "rtx-4060-ti"),
            ("Quadro RTX 6000", "quadro-rtx-6000"),
            ("AMD Instinct MI300X", "mi300x"),
        ] {
            assert_eq!(gpu_of_name(name).map(|gpu| gpu.key), Some(key), "{name}");
        }
        assert_eq!(gpu_of_name("AMD Radeon Graphics"), None);
    }

    #[test]
    fn every_figure_is_plausible() {
        for gpu in GPUS {
            assert!((250.0..10_000.0).contains(&gpu.memory_gbps), "{}", gpu.key);
            assert!((15.0..3_000.0).contains(&gpu.bf16_tflops), "{}", gpu.key);
            assert!(
                (8.0..300.0).contains(&gpu.memory_gb) && (60.0..1_500.0).contains(&gpu.watts),
                "{}",
                gpu.key
            );
        }
        for gpu in GPUS.iter().filter(|gpu| gpu.capability.is_some()) {
            assert!(gpu.multiprocessors.is_none_or(|count| (20..=200).contains(&count)), "{}", gpu.key);
        }
        let h200 = gpu_of_key("h200").unwrap();
        assert_eq!((h200.capability, h200.multiprocessors), (Some((9, 0)), Some(132)));
        assert_eq!(
            (h200.memory_gbps, h200.bf16_tflops, h200.memory_gb, h200.watts),
            (4800.0, 989.0, 141.0, 700.0)
        );
    }

    /// The link between the chips is slower from the GPU than to it.
    #[test]
    fn superchips_have_a_rate_for_each_direction() {
        let of = |key| gpu_of_key(key).and_then(|gpu| gpu.c2c).unwrap();
        let hopper = of("gh200");
        assert_eq!((hopper.peak_gbps, hopper.h2d_gbps, hopper.d2h_gbps), (450.0, 411.0, 170.0));
        for key in ["gb200", "gb300"] {
            assert_eq!((of(key).peak_gbps, of(key).h2d_gbps, of(key).d2h_gbps), (225.0, 211.0, 193.0));
        }
        assert_eq!(gpu_of_key("h200").unwrap().c2c, None);
    }

    #[test]
    fn every_key_is_unique() {
        let mut keys: Vec<_> = GPUS.iter().map(|gpu| gpu.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), GPUS.len());
    }
}

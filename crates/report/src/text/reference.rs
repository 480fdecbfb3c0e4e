//! The tables of links and GPUs that are known without measuring.

use busbound_machine::{GpuFacts, NvLinkRates, PcieGeneration, Reference, ReferenceList};

use super::plan::{PlanTable, PlanText};

pub(crate) fn text(reference: &Reference) -> PlanText {
    match &reference.list {
        ReferenceList::Links { pcie, nvlink } => links(pcie, nvlink),
        ReferenceList::Gpus(gpus) => list(gpus),
    }
}

fn links(pcie: &[PcieGeneration], nvlink: &[NvLinkRates]) -> PlanText {
    PlanText {
        kind: "links",
        statement: "PCIe and NVLink by generation, in GB/s (10⁹ bytes per second).".to_owned(),
        inputs: Vec::new(),
        tables: vec![
            PlanTable::new(
                &["PCIe", "GT/s per lane", "coding", "x4", "x8", "x16", "x16, both ways", "copies, x16", "copies, both ways"],
                pcie.iter().map(pcie_row).collect(),
            ),
            PlanTable::new(
                &["NVLink", "GPUs", "links", "GB/s per link", "one way", "both ways", "NCCL plans"],
                nvlink.iter().map(nvlink_row).collect(),
            ),
        ],
        notes: vec![
            "One direction unless it says otherwise. \"900 GB/s\" for NVLink 4 counts both directions: one link is 25 GB/s per direction.".to_owned(),
            "PCIe: rate × coding × lanes / 8, before packet headers. Copies: what large copies from pinned memory reach, 88% of the line peak, and 1.78 times that in both directions at the same time; measured on one PCIe 5 x16 host, scaled to the others.".to_owned(),
            "NVLink: all links of a GPU that has all of them. RTX A6000 and A40 have 4 links of 14 GB/s per direction. What NCCL plans is the constant of its own topology model.".to_owned(),
        ],
        formulas: &[],
    }
}

fn pcie_row(of: &PcieGeneration) -> Vec<String> {
    let mut row = vec![of.generation.to_string(), format!("{}", of.gt_per_s), of.coding.clone()];
    row.extend(of.widths.iter().map(|width| format!("{:.1}", width.one_direction_gbps)));
    if let Some(widest) = of.widths.last() {
        let rates = [widest.both_directions_gbps, widest.copies_gbps, widest.copies_both_gbps];
        row.extend(rates.map(|gbps| format!("{gbps:.1}")));
    }
    row
}

fn nvlink_row(of: &NvLinkRates) -> Vec<String> {
    vec![
        of.generation.to_string(),
        of.gpus.to_owned(),
        of.links.to_string(),
        format!("{:.0}", of.link_gbps),
        format!("{:.0}", of.one_direction_gbps),
        format!("{:.0}", of.both_directions_gbps),
        format!("{:.0}", of.nccl_gbps),
    ]
}

fn list(gpus: &[&GpuFacts]) -> PlanText {
    PlanText {
        kind: "gpus",
        statement: format!("{} GPUs are known by name.", gpus.len()),
        inputs: Vec::new(),
        tables: vec![PlanTable::new(
            &["GPU", "PCIe", "NVLink GB/s", "memory GB", "GB/s", "TFLOP/s", "compute capability", "SMs"],
            gpus.iter().map(|gpu| gpu_row(gpu)).collect(),
        )],
        notes: vec![
            "From data sheets. NVLink (Infinity Fabric for AMD): all links, one direction. TFLOP/s: dense bf16. SMs are compute units for AMD; – where there are none, or no certain figure.".to_owned(),
        ],
        formulas: &[],
    }
}

fn gpu_row(gpu: &GpuFacts) -> Vec<String> {
    let some = |gbps: f64| if gbps > 0.0 { format!("{gbps:.0}") } else { "–".to_owned() };
    let dash = || "–".to_owned();
    vec![
        gpu.key.to_owned(),
        format!("{} x{}", gpu.pcie.generation, gpu.pcie.lanes),
        some(gpu.nvlink_gbps),
        format!("{:.0}", gpu.memory_gb),
        format!("{:.0}", gpu.memory_gbps),
        format!("{:.0}", gpu.bf16_tflops),
        gpu.capability.map_or_else(dash, |(major, minor)| format!("{major}.{minor}")),
        gpu.multiprocessors.map_or_else(dash, |count| count.to_string()),
    ]
}

//! `busbound plan`.

use std::path::PathBuf;

use busbound::machine::Interconnect;
use busbound::whatif::Range;
use clap::{Args, Subcommand};

use super::names::{any_gpu, any_machine};
use super::shared::{EmitArgs, OutputArgs, ReadingArgs};
use super::values::{parse_count, parse_dtype, parse_share, parse_size};

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Estimate how long an all-reduce takes over a link
    #[command(
        after_help = "Example:\n  busbound plan allreduce --params 7e9 --dtype fp16 --ranks 8 \\\n      --link pcie4x16 --compare"
    )]
    Allreduce(AllreduceArgs),
    /// Estimate what gradient synchronization costs per step, and how much accumulation hides it
    #[command(
        after_help = "Example:\n  busbound plan ddp --params 7e9 --ranks 8 --link nvlink4 \\\n      --compute 180..220 --batch 4 --efficiency 95%"
    )]
    Ddp(DdpArgs),
    /// Estimate whether prefetching hides weights that stay in host memory
    #[command(
        after_help = "Examples:\n  busbound plan offload --layers 40 --bytes 168MB --compute 6.5 --link h200\n  busbound plan offload --trace run.json.gz    layers, bytes, compute from a run"
    )]
    Offload(OffloadArgs),
    /// Choose a parallelism for a transformer on these GPUs
    #[command(
        // Clap does not wrap a usage line, and this one would be wider than the help.
        override_usage = "busbound plan parallel [OPTIONS] --layers <N> --hidden <N> --heads <N> --batch <N>\n                               --sequence <N> --ranks <N>",
        after_help = "Example:\n  busbound plan parallel --layers 32 --hidden 4096 --heads 32 --batch 64 \\\n      --sequence 4096 --ranks 8 --gpu h200"
    )]
    Parallel(ParallelArgs),
    /// Estimate how much of a step these bytes take on the bus
    #[command(
        after_help = "Example:\n  busbound plan budget --bytes 2GB --link pcie5x16 --step 300 --observed 9.8"
    )]
    Budget(BudgetArgs),
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Number of GPUs
    #[arg(long, value_name = "N")]
    pub(crate) ranks: u32,
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) nodes: u32,
    /// Link between the GPUs of a node: nvlink4, pcie4x16 and so on, or GB/s in one direction [default: nvlink4, or the
    /// link of --gpu]
    #[arg(long, value_name = "LINK", value_parser = Interconnect::named)]
    pub(crate) link: Option<Interconnect>,
    /// Network port between nodes: ib-ndr, eth-400 and so on, or GB/s
    #[arg(long, value_name = "LINK", value_parser = Interconnect::named)]
    pub(crate) net: Option<Interconnect>,
    /// Network ports per node [default: one per GPU]
    #[arg(long, value_name = "N")]
    pub(crate) ports: Option<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Number of parameters: 7e9, 7B, 125M
    #[arg(long, value_name = "N", value_parser = parse_count, required_unless_present = "bytes")]
    pub(crate) params: Option<f64>,
    /// Data type of the parameters: fp32, bf16, fp16, fp8 and so on
    #[arg(long, value_name = "TYPE", default_value = "bf16", value_parser = parse_dtype)]
    pub(crate) dtype: f64,
    /// Size in bytes instead of parameters: 14GB
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "params")]
    pub(crate) bytes: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct AllreduceArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Also estimate other common links
    #[arg(long)]
    pub(crate) compare: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DdpArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Forward and backward time of one micro-batch in ms, or a range such as 180..220
    #[arg(long, help_heading = "Run", value_name = "MS")]
    pub(crate) compute: Range,
    /// Share of --compute that is the backward pass
    #[arg(long, help_heading = "Run", value_name = "SHARE", default_value = "66.7%", value_parser = parse_share)]
    pub(crate) backward: f64,
    /// Gradient bucket size
    #[arg(long, help_heading = "Run", value_name = "SIZE", default_value = "25MB", value_parser = parse_size)]
    pub(crate) bucket: u64,
    /// Micro-batches per step
    #[arg(long, help_heading = "Run", value_name = "N", default_value_t = 1)]
    pub(crate) accumulation: u32,
    /// Samples per micro-batch and rank
    #[arg(long, help_heading = "Run", value_name = "N", default_value_t = 1.0)]
    pub(crate) batch: f64,
    /// Steps in the whole run
    #[arg(long, help_heading = "Run", value_name = "N", default_value_t = 10_000)]
    pub(crate) steps: u64,
    /// Share of the step that should be compute
    #[arg(long, help_heading = "Run", value_name = "SHARE", default_value = "95%", value_parser = parse_share)]
    pub(crate) efficiency: f64,
    #[command(flatten)]
    pub(crate) emit: EmitArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OffloadArgs {
    /// Number of layers, or groups of layers, that are copied one by one
    #[arg(long, value_name = "N", required_unless_present = "trace")]
    pub(crate) layers: Option<u32>,
    /// Size of one layer
    #[arg(long, value_name = "SIZE", value_parser = parse_size, required_unless_present = "trace")]
    pub(crate) bytes: Option<u64>,
    /// Compute time of one layer in ms, or a range such as 5.6..6.5
    #[arg(long, value_name = "MS", required_unless_present = "trace")]
    pub(crate) compute: Option<Range>,
    /// Take what is not given from this trace: large copies per step, their size, compute between them
    #[arg(long, value_name = "PATH")]
    pub(crate) trace: Option<PathBuf>,
    /// GPU, link, rate in GB/s or profile of `busbound bench`: h200, pcie4x16, 63, machine.json [default: the link of the
    /// trace, else PCIe 4 x16]
    #[arg(long, value_name = "NAME", value_parser = any_machine(), hide_possible_values = true)]
    pub(crate) link: Option<String>,
    /// Prefetch this many layers ahead; 0 copies each layer when it is needed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) depth: u32,
    /// Share of the layers that stay on the GPU
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = parse_share)]
    pub(crate) resident: f64,
    /// Ranks that share one link to the host
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) sharing: u32,
    /// Bytes from other GPUs over the same link per layer
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) all_to_all: Option<u64>,
    /// Copy from pageable host memory
    #[arg(long)]
    pub(crate) pageable: bool,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) emit: EmitArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ParallelArgs {
    /// Number of layers
    #[arg(long, value_name = "N")]
    pub(crate) layers: u32,
    /// Hidden size
    #[arg(long, value_name = "N")]
    pub(crate) hidden: u32,
    /// Attention heads
    #[arg(long, value_name = "N")]
    pub(crate) heads: u32,
    /// Vocabulary size
    #[arg(long, value_name = "N", default_value_t = 32_000)]
    pub(crate) vocabulary: u32,
    /// Sequences per step, over all ranks
    #[arg(long, value_name = "N")]
    pub(crate) batch: u32,
    /// Tokens per sequence
    #[arg(long, value_name = "N")]
    pub(crate) sequence: u32,
    /// Data type of activations and gradients
    #[arg(long, value_name = "TYPE", default_value = "bf16", value_parser = parse_dtype)]
    pub(crate) dtype: f64,
    /// GPU, for its speed and memory: h200, h100-pcie, a100-sxm and so on
    #[arg(long, value_name = "NAME", default_value = "h100-sxm", value_parser = any_gpu(), hide_possible_values = true)]
    pub(crate) gpu: String,
    /// Share of the GPU's peak that kernels reach
    #[arg(long, value_name = "SHARE", default_value = "40%", value_parser = parse_share)]
    pub(crate) utilization: f64,
    /// Micro-batches per pipeline
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) microbatches: u32,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    /// Bytes per step
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) bytes: u64,
    /// Size of each copy [default: one copy of --bytes]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) copy: Option<u64>,
    /// GPU, link, rate in GB/s or profile of `busbound bench`: h200, pcie4x16, 63, machine.json
    #[arg(long, value_name = "NAME", value_parser = any_machine(), hide_possible_values = true)]
    pub(crate) link: String,
    /// Step time in ms
    #[arg(long, value_name = "MS")]
    pub(crate) step: Option<f64>,
    /// Rate that you observed, in GB/s
    #[arg(long, value_name = "GB/s")]
    pub(crate) observed: Option<f64>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

//! `busbound plan`.

use std::path::PathBuf;

use busbound::machine::Interconnect;
use busbound::whatif::Range;
use clap::{Args, Subcommand};

use super::shared::{EmitArgs, OutputArgs, ReadingArgs};
use super::values::{parse_count, parse_dtype, parse_share, parse_size};

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// How long does an all-reduce take, over which link?
    #[command(
        after_help = "Example:\n  busbound plan allreduce --params 7e9 --dtype fp16 --ranks 8 --link pcie4x16 --compare"
    )]
    Allreduce(AllreduceArgs),
    /// What does synchronizing gradients cost a step, and how much accumulation hides it?
    #[command(
        after_help = "Example:\n  busbound plan ddp --params 7e9 --ranks 8 --link nvlink4 --compute 180..220 --batch 4 --efficiency 95%"
    )]
    Ddp(DdpArgs),
    /// Can prefetching hide weights that live in host memory?
    #[command(
        after_help = "Examples:\n  busbound plan offload --layers 40 --bytes 168MB --compute 6.5 --link h200 --depth 2\n  busbound plan offload --trace run.json.gz --depth 1       layers, bytes and compute from a run"
    )]
    Offload(OffloadArgs),
    /// Which parallelism suits a transformer on these GPUs?
    #[command(
        // Clap does not break a usage line, and this one would be wider than the help.
        override_usage = "busbound plan parallel [OPTIONS] --layers <N> --hidden <N> --heads <N> --batch <N>\n                               --sequence <N> --ranks <N>",
        after_help = "Example:\n  busbound plan parallel --layers 32 --hidden 4096 --heads 32 --batch 64 --sequence 4096 --ranks 8 --gpu h200"
    )]
    Parallel(ParallelArgs),
    /// How much of a step do these bytes take on the bus?
    #[command(
        after_help = "Example:\n  busbound plan budget --bytes 2GB --link pcie5x16 --step 300 --observed 9.8"
    )]
    Budget(BudgetArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// GPUs in all
    #[arg(long, value_name = "N")]
    pub(crate) ranks: u32,
    /// Nodes they are spread over
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) nodes: u32,
    /// Between GPUs of a node: nvlink4, pcie4x16, …, or GB/s of one direction [default: nvlink4, or what
    /// the GPU named has]
    #[arg(long, value_name = "LINK", value_parser = Interconnect::named)]
    pub(crate) link: Option<Interconnect>,
    /// One port between nodes: ib-ndr, eth-400, …, or GB/s
    #[arg(long, value_name = "LINK", value_parser = Interconnect::named)]
    pub(crate) net: Option<Interconnect>,
    /// Ports of a node [default: one for each of its GPUs]
    #[arg(long, value_name = "N")]
    pub(crate) ports: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Parameters of the model: 7e9, 7B, 125M
    #[arg(long, value_name = "N", value_parser = parse_count, required_unless_present = "bytes")]
    pub(crate) params: Option<f64>,
    /// Their type: fp32, bf16, fp16, fp8, …
    #[arg(long, value_name = "TYPE", default_value = "bf16", value_parser = parse_dtype)]
    pub(crate) dtype: f64,
    /// Bytes in place of parameters: 14GB
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "params")]
    pub(crate) bytes: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct AllreduceArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Also over the other links of its kind
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
    /// Forward and backward of one micro-batch in ms, or a range such as 180..220
    #[arg(long, value_name = "MS")]
    pub(crate) compute: Range,
    /// Share of it that is the backward pass
    #[arg(long, value_name = "SHARE", default_value = "66.7%", value_parser = parse_share)]
    pub(crate) backward: f64,
    /// Size of a bucket
    #[arg(long, value_name = "SIZE", default_value = "25MB", value_parser = parse_size)]
    pub(crate) bucket: u64,
    /// Micro-batches a step
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) accumulation: u32,
    /// Samples of a micro-batch on one rank
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub(crate) batch: f64,
    /// Steps of the whole run
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) steps: u64,
    /// The share of compute in the step that is wanted
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = parse_share)]
    pub(crate) efficiency: f64,
    #[command(flatten)]
    pub(crate) emit: EmitArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OffloadArgs {
    /// Layers, or groups of them, that are copied one by one
    #[arg(long, value_name = "N", required_unless_present = "trace")]
    pub(crate) layers: Option<u32>,
    /// Bytes of one of them
    #[arg(long, value_name = "SIZE", value_parser = parse_size, required_unless_present = "trace")]
    pub(crate) bytes: Option<u64>,
    /// Compute of one of them in ms, or a range such as 5.6..6.5
    #[arg(long, value_name = "MS", required_unless_present = "trace")]
    pub(crate) compute: Option<Range>,
    /// Take what is not given from this run: large copies a step, their bytes, compute between them
    #[arg(long, value_name = "PATH")]
    pub(crate) trace: Option<PathBuf>,
    /// The GPU's link or the GPU (pcie4x16, h200, …), a rate in GB/s, or a measured profile.json [default:
    /// that of the trace, else PCIe 4 x16]
    #[arg(long, value_name = "NAME")]
    pub(crate) link: Option<String>,
    /// Layers copied ahead of the one that runs; 0 blocks
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) depth: u32,
    /// Share of the layers that stays on the GPU
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = parse_share)]
    pub(crate) resident: f64,
    /// Ranks whose copies share one link to the host
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) sharing: u32,
    /// Bytes from other GPUs over the same link during each layer
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) all_to_all: Option<u64>,
    /// Host memory is pageable
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
    #[arg(long, value_name = "N")]
    pub(crate) layers: u32,
    #[arg(long, value_name = "N")]
    pub(crate) hidden: u32,
    #[arg(long, value_name = "N")]
    pub(crate) heads: u32,
    #[arg(long, value_name = "N", default_value_t = 32_000)]
    pub(crate) vocabulary: u32,
    /// Sequences a step over all ranks
    #[arg(long, value_name = "N")]
    pub(crate) batch: u32,
    /// Tokens of a sequence
    #[arg(long, value_name = "N")]
    pub(crate) sequence: u32,
    /// Of activations and gradients
    #[arg(long, value_name = "TYPE", default_value = "bf16", value_parser = parse_dtype)]
    pub(crate) dtype: f64,
    /// The GPU, for its rate and memory: h200, h100-pcie, a100-sxm, …
    #[arg(long, value_name = "NAME", default_value = "h100-sxm")]
    pub(crate) gpu: String,
    /// Share of the GPU's rate that kernels reach
    #[arg(long, value_name = "SHARE", default_value = "40%", value_parser = parse_share)]
    pub(crate) utilization: f64,
    /// Micro-batches of a pipeline
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) microbatches: u32,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    /// Bytes a step
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) bytes: u64,
    /// Of copies this large [default: one copy]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) copy: Option<u64>,
    /// The GPU's link or the GPU (pcie4x16, h200, …), a rate in GB/s, or a measured profile.json
    #[arg(long, value_name = "NAME")]
    pub(crate) link: String,
    /// Length of a step in ms
    #[arg(long, value_name = "MS")]
    pub(crate) step: Option<f64>,
    /// The rate that was observed, in GB/s
    #[arg(long, value_name = "GB/s")]
    pub(crate) observed: Option<f64>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

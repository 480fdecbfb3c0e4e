//! `busbound plan`.

use std::path::PathBuf;

use busbound::machine::Interconnect;
use busbound::whatif::Range;
use busbound::whatif::plan::parallel::{Workload, Zero};
use busbound::whatif::plan::stream::LayeredModel;
use clap::{Args, Subcommand, ValueEnum};

use super::names::{any_gpu, any_machine};
use super::shared::{EmitArgs, OutputArgs, ReadingArgs};
use super::values::{parse_count, parse_dtype, parse_share, parse_size, parse_size_or_zero};

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Estimate how long an all-reduce takes over a link
    #[command(
        after_help = "Examples:\n  busbound plan allreduce --params 7e9 --dtype fp16 --ranks 8 \\\n      --link pcie4x16 --compare\n  busbound plan allreduce --params 125M,1B,7B --ranks 2,4,8 \\\n      --link pcie3x16,pcie4x16,nvlink4         sizes and ranks by link"
    )]
    Allreduce(AllreduceArgs),
    /// Estimate what host copies and collectives cost each other where they share a wire
    #[command(
        after_help = "Examples:\n  busbound plan contention --gpu h100-pcie --gpus 8 --below-switch 4\n  busbound plan contention --gpu h100-sxm --gpus 8\n  busbound plan contention --machine machine.json  with measured slowdowns\n  busbound plan contention --topology topo.json    the machine of busbound topo"
    )]
    Contention(ContentionArgs),
    /// Estimate what gradient synchronization costs per step, and how much accumulation hides it
    #[command(
        after_help = "Examples:\n  busbound plan ddp --params 7e9 --ranks 8 --link nvlink4 \\\n      --compute 180..220 --batch 4 --efficiency 95%\n  busbound plan ddp --params 125M --dtype fp32 --ranks 2,4 --compute 300 \\\n      --link pcie3x16,pcie4x16,nvlink3 --sequence 2048 --steps 50000"
    )]
    Ddp(DdpArgs),
    /// Choose how the blocks of a KV cache cross the bus, and whether to reload or recompute them
    #[command(
        after_help = "Examples:\n  busbound plan kv --layers 32 --kv-heads 8 --head-dim 128 \\\n      --blocks 64,1024 --prefill-tokens-per-s 20000 --machine machine.json\n  busbound plan kv --block-bytes 16KiB,2MiB --machine h200"
    )]
    Kv(KvArgs),
    /// Estimate whether prefetching hides weights that stay in host memory
    #[command(
        after_help = "Examples:\n  busbound plan offload --layers 40 --bytes 168MB --compute 6.5 --link h200\n  busbound plan offload --layers 40 --bytes 168MB --compute 1.5 \\\n      --gpu-memory 4GB --link h200                 which layers stay on the GPU\n  busbound plan offload --gpu-memory 8GB --link h200 \\\n      --model text=24x400MB:3.1 --model denoiser=57x420MB:9.5:50\n  busbound plan offload --trace run.json.gz    layers, bytes, compute from a run\n  busbound plan offload --layers 40 --bytes 168MB --compute 6.5 \\\n      --topology topo.json                         the machine of busbound topo"
    )]
    Offload(OffloadArgs),
    /// Choose a parallelism for a transformer on these GPUs
    #[command(
        // Clap does not wrap a usage line, and this one would be wider than the help.
        override_usage = "busbound plan parallel [OPTIONS] --layers <N> --hidden <N> --heads <N> --batch <N>\n                               --sequence <N> --ranks <N>",
        after_help = "Examples:\n  busbound plan parallel --layers 32 --hidden 4096 --heads 32 --batch 64 \\\n      --sequence 4096 --ranks 8 --gpu h200\n  busbound plan parallel --layers 80 --hidden 8192 --heads 64 --kv-heads 8 \\\n      --batch 128 --sequence 4096 --ranks 32 --nodes 4 --net ib-hdr\n  busbound plan parallel --workload decode --layers 80 --hidden 8192 \\\n      --heads 64 --kv-heads 8 --batch 64 --sequence 8192 --ranks 8"
    )]
    Parallel(ParallelArgs),
    /// Choose what to recompute, shard or offload first for a model that does not fit
    #[command(
        after_help = "Examples:\n  busbound plan memory --params 7B --batch 8 --gpu a100-pcie\n  busbound plan memory --params 13B --batch 64 --ranks 8 --gpu h100-sxm"
    )]
    Memory(MemoryArgs),
    /// Estimate how much of a step these bytes take on the bus
    #[command(
        after_help = "Examples:\n  busbound plan budget --bytes 2GB --link pcie5x16 --step 300 --observed 9.8\n  busbound plan budget --bytes 6.72GB --copy 168MB --link machine.json"
    )]
    Budget(BudgetArgs),
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Number of GPUs
    #[arg(long, value_name = "N")]
    pub(crate) ranks: u32,
    /// Link between the GPUs of a node: nvlink4, pcie4x16 and so on, or GB/s in one direction [default: the link of
    /// --gpu]
    #[arg(long, value_name = "LINK", value_parser = Interconnect::named)]
    pub(crate) link: Option<Interconnect>,
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
}

/// One or several clusters to compare.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClustersArgs {
    /// Number of GPUs, or several: 2,4,8
    #[arg(long, value_name = "N", required = true, value_delimiter = ',')]
    pub(crate) ranks: Vec<u32>,
    /// Link between the GPUs of a node: nvlink4, h100-sxm, pcie4x16 and so on, or GB/s in one direction; or several
    #[arg(long, value_name = "LINK", default_value = "nvlink4", value_parser = Interconnect::named, value_delimiter = ',')]
    pub(crate) link: Vec<Interconnect>,
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct NodeArgs {
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) nodes: u32,
    /// Network port between nodes: ib-ndr, eth-400 and so on, or GB/s
    #[arg(long, value_name = "LINK", value_parser = Interconnect::named)]
    pub(crate) net: Option<Interconnect>,
    /// Network ports per node [default: one per GPU]
    #[arg(long, value_name = "N")]
    pub(crate) ports: Option<u32>,
    /// Plan without reduction in NVSwitches, as with NCCL_NVLS_ENABLE=0
    #[arg(long)]
    pub(crate) no_nvls: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// Number of parameters: 7e9, 7B, 125M; or several
    #[arg(long, value_name = "N", value_parser = parse_count, required_unless_present = "bytes", value_delimiter = ',')]
    pub(crate) params: Vec<f64>,
    /// Data type of the parameters: fp32, bf16, fp16, fp8 and so on
    #[arg(long, value_name = "TYPE", default_value = "bf16", value_parser = parse_dtype)]
    pub(crate) dtype: f64,
    /// Size in bytes instead of parameters: 14GB; or several
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "params", value_delimiter = ',')]
    pub(crate) bytes: Vec<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct AllreduceArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) clusters: ClustersArgs,
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
    pub(crate) clusters: ClustersArgs,
    /// Forward and backward time of one micro-batch in ms, or a range such as 180..220
    #[arg(long, help_heading = "Run", value_name = "MS")]
    pub(crate) compute: Range,
    /// Share of --compute that is the backward pass
    #[arg(long, help_heading = "Run", value_name = "SHARE", default_value = "66.7%", value_parser = parse_share)]
    pub(crate) backward: f64,
    /// Gradient bucket size
    #[arg(long, help_heading = "Run", value_name = "SIZE", default_value = "25MiB", value_parser = parse_size)]
    pub(crate) bucket: u64,
    /// Micro-batches per step
    #[arg(long, help_heading = "Run", value_name = "N", default_value_t = 1)]
    pub(crate) accumulation: u32,
    /// Samples per micro-batch and rank
    #[arg(long, help_heading = "Run", value_name = "N", default_value_t = 1.0)]
    pub(crate) batch: f64,
    /// Tokens per sample, for tokens/s
    #[arg(long, help_heading = "Run", value_name = "N")]
    pub(crate) sequence: Option<u64>,
    /// How many times smaller compressed gradients are, one or several [default: 2 with fp32 gradients]
    #[arg(long, help_heading = "Run", value_name = "N", value_delimiter = ',')]
    pub(crate) compress: Vec<f64>,
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
pub(crate) struct ContentionArgs {
    /// GPU, for its links: h100-sxm, h100-pcie, a100-pcie and so on [default: h100-pcie, or the GPU of --machine]
    #[arg(long, value_name = "NAME", value_parser = any_gpu(), hide_possible_values = true)]
    pub(crate) gpu: Option<String>,
    /// GPUs of the node [default: 8, or those of --machine]
    #[arg(long, value_name = "N")]
    pub(crate) gpus: Option<u32>,
    /// Machine profile from busbound bench: its rates, and the slowdowns that --suite contention measured; or a GPU
    #[arg(long, value_name = "FILE", conflicts_with = "topology")]
    pub(crate) machine: Option<String>,
    /// GPUs that share the uplink of a PCIe switch [default: all, at most 4]
    #[arg(long, value_name = "N")]
    pub(crate) below_switch: Option<u32>,
    /// Plan for the machine in this file instead: written by `busbound topo -o topo.json` or NCCL_TOPO_DUMP_FILE, or a
    /// directory with its sys/ and proc/
    #[arg(long, help_heading = "Input", value_name = "FILE", conflicts_with_all = ["gpu", "gpus", "below_switch"])]
    pub(crate) topology: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KvArgs {
    /// Size of a block that lies in one piece, or several; instead of the shape of a model
    #[arg(long, value_name = "SIZE", value_parser = parse_size, value_delimiter = ',', required_unless_present = "layers", conflicts_with_all = ["layers", "kv_heads", "head_dim", "dtype"])]
    pub(crate) block_bytes: Vec<u64>,
    /// Number of layers
    #[arg(long, value_name = "N", requires = "kv_heads", requires = "head_dim")]
    pub(crate) layers: Option<u32>,
    /// KV heads on one GPU
    #[arg(long, value_name = "N", requires = "layers")]
    pub(crate) kv_heads: Option<u32>,
    /// Size of a head
    #[arg(long, value_name = "N", requires = "layers")]
    pub(crate) head_dim: Option<u32>,
    /// Data type of the cache: bf16, fp8 and so on
    #[arg(long, value_name = "TYPE", default_value = "bf16", value_parser = parse_dtype)]
    pub(crate) dtype: f64,
    /// Tokens per block
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub(crate) block_tokens: u32,
    /// Blocks that are moved together, or several numbers
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "64,256,1024")]
    pub(crate) blocks: Vec<u64>,
    /// Tokens per second that the engine computes in prefill, for reload or recompute
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) prefill_tokens_per_s: Option<f64>,
    /// Profile of `busbound bench`, or a GPU, link or rate in GB/s with assumed costs: machine.json, h200, pcie4x16
    #[arg(long, value_name = "NAME", value_parser = any_machine(), hide_possible_values = true)]
    pub(crate) machine: Option<String>,
    /// The cache on the host is in pageable memory
    #[arg(long)]
    pub(crate) pageable: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OffloadArgs {
    /// Number of layers, or groups of layers, that are copied one by one
    #[arg(long, value_name = "N", required_unless_present_any = ["trace", "model"])]
    pub(crate) layers: Option<u32>,
    /// Size of one layer
    #[arg(long, value_name = "SIZE", value_parser = parse_size, required_unless_present_any = ["trace", "model"])]
    pub(crate) bytes: Option<u64>,
    /// Compute time of one layer in ms, or a range such as 5.6..6.5
    #[arg(long, value_name = "MS", required_unless_present_any = ["trace", "model"])]
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
    /// Ranks that share one link to the host [default: 1, or those of --topology]
    #[arg(long, value_name = "N")]
    pub(crate) sharing: Option<u32>,
    /// Take the link to the host, the ranks that share it and the way between GPUs from this topology, as written by
    /// `busbound topo -o topo.json` or NCCL_TOPO_DUMP_FILE
    #[arg(long, help_heading = "Input", value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// Bytes that each layer gets from other GPUs before its kernels run: over NVLink if the GPU of --link has it, else
    /// over the link of the copies
    #[arg(long, value_name = "SIZE", value_parser = parse_size_or_zero)]
    pub(crate) all_to_all: Option<u64>,
    /// Copy from pageable host memory
    #[arg(long)]
    pub(crate) pageable: bool,
    #[command(flatten)]
    pub(crate) within: WithinArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) emit: EmitArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A given amount of GPU memory.
#[derive(Debug, Args)]
#[command(next_help_heading = "Within the memory of a GPU")]
pub(crate) struct WithinArgs {
    /// Choose the layers that stay on the GPU and stream the others, as busbound.offload does, within this much memory
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with_all = ["depth", "resident", "all_to_all", "pageable", "emit"])]
    pub(crate) gpu_memory: Option<u64>,
    /// Part of --gpu-memory for weights outside of the layers and for activations
    #[arg(long, value_name = "SIZE", value_parser = parse_size_or_zero, default_value = "0", requires = "gpu_memory")]
    pub(crate) outside: u64,
    /// One of several models that run one after another: NAME=LAYERSxSIZE:MS[:PASSES], such as denoiser=57x420MB:9.5:50
    #[arg(long, value_name = "MODEL", value_parser = parse_model, value_delimiter = ',', requires = "gpu_memory", conflicts_with_all = ["layers", "bytes", "compute", "trace"])]
    pub(crate) model: Vec<LayeredModel>,
}

/// `denoiser=57x420MB:9.5..10:50`; without passes, one.
fn parse_model(text: &str) -> Result<LayeredModel, String> {
    let wrong = || format!("{text:?} is not NAME=LAYERSxSIZE:MS[:PASSES], such as denoiser=57x420MB:9.5:50");
    let (name, rest) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
    let mut parts = rest.split(':');
    let (layers, size) = parts.next().and_then(|shape| shape.split_once('x')).ok_or_else(wrong)?;
    let model = LayeredModel {
        name: Some(name.to_owned()),
        layers: layers.trim().parse().map_err(|_| wrong())?,
        layer_bytes: parse_size(size)?,
        compute_ms: parts.next().ok_or_else(wrong)?.parse()?,
        uses: parts.next().map_or(Ok(1.0), parse_count)?,
    };
    if parts.next().is_some() { Err(wrong()) } else { Ok(model) }
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
    /// Heads of keys and values, for the KV cache [default: --heads]
    #[arg(long, value_name = "N")]
    pub(crate) kv_heads: Option<u32>,
    /// Experts per layer
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) experts: u32,
    /// Experts that each token uses
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) active_experts: u32,
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
    /// GPU, for its speed and memory: h200, h100-pcie, a100-sxm and so on [default: that of --topology or
    /// --link, else h100-sxm]
    #[arg(long, value_name = "NAME", value_parser = any_gpu(), hide_possible_values = true)]
    pub(crate) gpu: Option<String>,
    /// Take the link between the GPUs of a node and the GPU from this topology, as written by `busbound topo -o topo.json`
    /// or NCCL_TOPO_DUMP_FILE
    #[arg(long, help_heading = "Input", value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// Share of the GPU's peak that kernels reach
    #[arg(long, value_name = "SHARE", default_value = "40%", value_parser = parse_share)]
    pub(crate) utilization: f64,
    /// What the GPUs do
    #[arg(long, value_enum, value_name = "KIND", default_value = "train")]
    pub(crate) workload: WorkloadArg,
    /// Micro-batches per pipeline [default: the best]
    #[arg(long, value_name = "N")]
    pub(crate) microbatches: Option<u32>,
    /// ZeRO stage: 0 is DDP, 3 is FSDP [default: the best]
    #[arg(long, value_name = "STAGE", value_parser = parse_zero)]
    pub(crate) zero: Option<Zero>,
    /// Whether to recompute activations [default: the best]
    #[arg(long, value_name = "BOOL")]
    pub(crate) recompute: Option<bool>,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    /// Number of parameters: 7e9, 7B, 125M
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) params: f64,
    /// Sequences per step, over all ranks
    #[arg(long, value_name = "N")]
    pub(crate) batch: u32,
    /// Tokens per sequence
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub(crate) sequence: u32,
    /// Data type of weights, activations and gradients
    #[arg(long, value_name = "TYPE", default_value = "bf16", value_parser = parse_dtype)]
    pub(crate) dtype: f64,
    /// GPU, for its speed, memory and links: h200, h100-pcie, a100-sxm and so on [default: that of --machine, else h100-sxm]
    #[arg(long, value_name = "NAME", value_parser = any_gpu(), hide_possible_values = true)]
    pub(crate) gpu: Option<String>,
    /// Number of GPUs, of one node
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) ranks: u32,
    /// Link between the GPUs: nvlink4, pcie4x16 and so on, or GB/s in one direction [default: the link of --gpu]
    #[arg(long, value_name = "LINK", value_parser = Interconnect::named)]
    pub(crate) link: Option<Interconnect>,
    /// Link to the host, and the GPU if none is given: GPU, link, rate in GB/s or profile of `busbound bench` [default:
    /// the link of --gpu]
    #[arg(long, value_name = "NAME", value_parser = any_machine(), hide_possible_values = true)]
    pub(crate) machine: Option<String>,
    /// Ranks that share one link to the host
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) sharing: u32,
    /// Share of the GPU's peak that kernels reach
    #[arg(long, value_name = "SHARE", default_value = "40%", value_parser = parse_share)]
    pub(crate) utilization: f64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What the GPUs do with the model.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum WorkloadArg {
    /// Forward, backward and Adam
    Train,
    /// Inference: whole prompts
    Prefill,
    /// Inference: one token per sequence
    Decode,
    /// One denoising step
    Diffusion,
}

impl From<WorkloadArg> for Workload {
    fn from(arg: WorkloadArg) -> Self {
        match arg {
            WorkloadArg::Train => Self::Train,
            WorkloadArg::Prefill => Self::Prefill,
            WorkloadArg::Decode => Self::Decode,
            WorkloadArg::Diffusion => Self::Diffusion,
        }
    }
}

fn parse_zero(text: &str) -> Result<Zero, String> {
    text.parse().ok().and_then(Zero::stage).ok_or_else(|| "give a stage from 0 to 3".to_owned())
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
    /// Copy from pageable host memory
    #[arg(long)]
    pub(crate) pageable: bool,
    /// Rate that you observed, in GB/s
    #[arg(long, value_name = "GB/s")]
    pub(crate) observed: Option<f64>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

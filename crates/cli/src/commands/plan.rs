//! `busbound plan`.

use std::path::Path;

use busbound::diagnosis::{MemoryPlan, MemoryQuestion, ParallelAnswer, advice_of_ddp, advice_of_offload};
use busbound::machine::topology::TrafficPlan;
use busbound::machine::{GpuFacts, Interconnect, LinkFacts, gpu_of_key, gpu_of_name};
use busbound::report::{Plan, plan_statement};
use busbound::whatif::Range;
use busbound::whatif::plan::BadInput;
use busbound::whatif::plan::allreduce::AllReduce;
use busbound::whatif::plan::budget::{Budget, BudgetInputs};
use busbound::whatif::plan::cluster::Cluster;
use busbound::whatif::plan::contention::ContentionPlan;
use busbound::whatif::plan::ddp::{Ddp, DdpInputs};
use busbound::whatif::plan::kv::{KvBlock, KvPlan, KvQuestion, KvShape};
use busbound::whatif::plan::offload::{Offload, OffloadInputs};
use busbound::whatif::plan::parallel::{Parallel, ParallelInputs};
use busbound::whatif::plan::stream::{LayeredModel, Placement, PlacementInputs};
use busbound::{Diagnosis, Format, Machine, Options, SeenLayers};

use crate::args::names::gpus;
use crate::args::plan::{
    AllreduceArgs, BudgetArgs, ClustersArgs, ContentionArgs, DdpArgs, KvArgs, MemoryArgs, ModelArgs,
    NodeArgs, OffloadArgs, ParallelArgs, PlanCommand,
};
use crate::args::shared::OutputArgs;
use crate::failure::Failure;
use crate::io::output;
use crate::io::reading::each_run;
use crate::request::{machine_named, read_topology, resolve_output};
use busbound::machine::spelling::did_you_mean;

pub(crate) fn run(command: &PlanCommand) -> Result<(), Failure> {
    let plan = plan_with(command, |_| match command {
        PlanCommand::Offload(args) => seen(args),
        _ => Err(Failure::usage("only offload takes a trace")),
    })?;
    match command {
        PlanCommand::Allreduce(args) => show(&plan, &args.output),
        PlanCommand::Contention(args) => show(&plan, &args.output),
        PlanCommand::Ddp(args) => show_or_emit(&plan, args.emit.emit, &args.output),
        PlanCommand::Kv(args) => show(&plan, &args.output),
        PlanCommand::Offload(args) => show_or_emit(&plan, args.emit.emit, &args.output),
        PlanCommand::Parallel(args) => show(&plan, &args.output),
        PlanCommand::Memory(args) => show(&plan, &args.output),
        PlanCommand::Budget(args) => show(&plan, &args.output),
    }
}

/// The plan; `seen` finds the layers of a recorded run.
pub(super) fn plan_with(
    command: &PlanCommand,
    seen: impl FnOnce(&Path) -> Result<SeenLayers, Failure>,
) -> Result<Plan, Failure> {
    match command {
        PlanCommand::Allreduce(args) => allreduce(args),
        PlanCommand::Contention(args) => contention(args),
        PlanCommand::Ddp(args) => ddp(args),
        PlanCommand::Kv(args) => kv(args),
        PlanCommand::Offload(args) => offload(args, seen),
        PlanCommand::Parallel(args) => parallel(args),
        PlanCommand::Memory(args) => memory(args),
        PlanCommand::Budget(args) => budget(args),
    }
}

fn show(plan: &Plan, args: &OutputArgs) -> Result<(), Failure> {
    output::show(plan, &resolve_output(args)?, "plan.html")
}

fn show_or_emit(plan: &Plan, emit: Option<Format>, args: &OutputArgs) -> Result<(), Failure> {
    let Some(format) = emit else { return show(plan, args) };
    let statement = plan_statement(plan);
    let advice = match plan.alone() {
        Plan::Ddp(plan) => advice_of_ddp(plan, &statement),
        Plan::Offload(plan) => advice_of_offload(plan, &statement),
        _ => return show(plan, args),
    };
    output::show(&advice, &resolve_output(args)?.with_format(format), "")
}

fn usage(error: BadInput) -> Failure {
    Failure::usage(error)
}

fn cluster(ranks: u32, link: &Interconnect, args: &NodeArgs) -> Cluster {
    let per_node = ranks / args.nodes.max(1);
    let link = link.clone();
    Cluster {
        ranks,
        nodes: args.nodes,
        link: if args.no_nvls { link.without_nvls() } else { link },
        net: args.net.clone(),
        ports: args.ports.unwrap_or(per_node.max(1)),
    }
}

/// Every number of ranks with every link.
fn clusters(args: &ClustersArgs) -> Vec<Cluster> {
    let of = |&ranks: &u32| args.link.iter().map(move |link| cluster(ranks, link, &args.nodes));
    args.ranks.iter().flat_map(of).collect()
}

/// The sizes to reduce.
fn sizes(args: &ModelArgs) -> Vec<f64> {
    let counted = args.params.iter().map(|params| params * args.dtype);
    counted.chain(args.bytes.iter().map(|&bytes| bytes as f64)).collect()
}

fn allreduce(args: &AllreduceArgs) -> Result<Plan, Failure> {
    let mut clusters = clusters(&args.clusters);
    if args.compare {
        let names =
            ["pcie3x16", "pcie4x16", "pcie5x16", "pcie6x16", "nvlink2", "nvlink3", "nvlink4", "nvlink5"];
        for link in names.iter().filter_map(|name| Interconnect::named(name).ok()) {
            for &ranks in &args.clusters.ranks {
                if args.clusters.link.iter().all(|given| given.name != link.name) {
                    clusters.push(cluster(ranks, &link, &args.clusters.nodes));
                }
            }
        }
    }
    let mut plans = Vec::new();
    for bytes in sizes(&args.model) {
        for cluster in &clusters {
            plans.push(AllReduce::plan(cluster.clone(), bytes).map_err(usage)?);
        }
    }
    Ok(Plan::AllReduce(plans))
}

fn ddp(args: &DdpArgs) -> Result<Plan, Failure> {
    // fp32 gradients can be sent as bf16.
    let usual = if args.model.dtype >= 4.0 { vec![2.0] } else { Vec::new() };
    let compressions = if args.compress.is_empty() { usual } else { args.compress.clone() };
    let sizes = sizes(&args.model);
    let first = sizes.first().copied().unwrap_or(1.0);
    let mut plans = Vec::new();
    for &bytes in &sizes {
        for cluster in clusters(&args.clusters) {
            let inputs = DdpInputs {
                cluster,
                bytes,
                bucket_bytes: args.bucket as f64,
                compute_ms: args.compute.map(|ms| ms * bytes / first),
                backward_share: args.backward,
                accumulation: args.accumulation,
                samples: args.batch,
                tokens_per_sample: args.sequence,
                compressions: compressions.clone(),
                steps: args.steps,
                wanted_efficiency: args.efficiency,
            };
            plans.push(Ddp::plan(inputs).map_err(usage)?);
        }
    }
    Ok(if plans.len() == 1 { Plan::Ddp(Box::new(plans.remove(0))) } else { Plan::DdpMatrix(plans) })
}

/// What copies and collectives share on the machine in a file.
fn traffic_at(path: &Path) -> Result<TrafficPlan, Failure> {
    TrafficPlan::of(&read_topology(path)?)
        .map_err(|why| Failure::Unreadable(format!("{} {why}", path.display())))
}

/// What `plan contention` is about if nothing is given.
const CONTENTION_GPU: &str = "h100-pcie";
const CONTENTION_GPUS: u32 = 8;

fn contention(args: &ContentionArgs) -> Result<Plan, Failure> {
    if let Some(path) = &args.topology {
        return Ok(Plan::Traffic(Box::new(traffic_at(path)?)));
    }
    let given = args.machine.as_deref().map(machine_named).transpose()?;
    let link = given.as_ref().map(|machine| machine.link_of(None));
    let profile = link.as_ref().and_then(LinkFacts::measured);
    let facts = gpu_of(args.gpu.as_deref(), given.as_ref(), CONTENTION_GPU)?;
    let known = profile.and_then(|profile| profile.identity.as_ref()).map(|machine| machine.gpus);
    let gpus = args.gpus.or(known).unwrap_or(CONTENTION_GPUS);
    let below = args.below_switch.unwrap_or(gpus.min(4));
    let machine = given.unwrap_or_else(|| Machine::of_gpu(facts));
    let plan = ContentionPlan::plan(facts, gpus, below, &machine).map_err(usage)?;
    Ok(Plan::Contention(Box::new(plan)))
}

fn kv(args: &KvArgs) -> Result<Plan, Failure> {
    let shape =
        |layers, kv_heads, head_dim| KvShape { layers, kv_heads, head_dim, bytes_per_value: args.dtype };
    let block = match (args.layers, args.kv_heads, args.head_dim) {
        (Some(layers), Some(heads), Some(size)) => KvBlock::Shape(shape(layers, heads, size)),
        _ => KvBlock::Bytes(args.block_bytes.clone()),
    };
    let question = KvQuestion {
        link: args.machine.as_deref().map_or_else(|| Ok(Machine::default().link_of(None)), link)?,
        pageable: args.pageable,
        block_tokens: args.block_tokens,
        block,
        blocks: args.blocks.clone(),
        prefill_tokens_per_s: args.prefill_tokens_per_s,
    };
    Ok(Plan::Kv(Box::new(KvPlan::plan(question).map_err(usage)?)))
}

fn gpu(name: &str) -> Result<&'static GpuFacts, Failure> {
    gpu_of_key(name).ok_or_else(|| {
        let hint = did_you_mean(name, gpus(), 3)
            .unwrap_or_else(|| "busbound diagnose --help lists the GPUs".to_owned());
        Failure::usage(format!("unknown GPU {name:?}; {hint}"))
    })
}

/// The GPU that is given, else that of the machine, which may be a GPU or a profile of one, else the usual one.
fn gpu_of(given: Option<&str>, machine: Option<&Machine>, usual: &str) -> Result<&'static GpuFacts, Failure> {
    if let Some(name) = given {
        return gpu(name);
    }
    if let Some(known) = machine.and_then(Machine::gpu) {
        return Ok(known);
    }
    match machine.map(|machine| machine.link_of(None)).as_ref().and_then(LinkFacts::measured) {
        Some(profile) => Err(Failure::usage(format!(
            "the memory and links of {} are unknown: name a similar GPU with --gpu",
            profile.gpu
        ))),
        None => gpu(usual),
    }
}

fn link(name: &str) -> Result<LinkFacts, Failure> {
    Ok(machine_named(name)?.link_of(None))
}

fn offload(
    args: &OffloadArgs,
    seen: impl FnOnce(&Path) -> Result<SeenLayers, Failure>,
) -> Result<Plan, Failure> {
    let seen = args.trace.as_deref().map(seen).transpose()?;
    let topology = args.topology.as_deref().map(traffic_at).transpose()?;
    let on_machine = topology.as_ref().map(TrafficPlan::host_link);
    let link = match (&args.link, &on_machine, &seen) {
        (Some(name), ..) => link(name)?,
        (None, Some((link, _)), _) => link.clone(),
        (None, None, Some(seen)) => seen.link.clone(),
        (None, None, None) => Machine::default().link_of(None),
    };
    let sharing = args.sharing.or(on_machine.map(|(_, sharing)| sharing)).unwrap_or(1);
    if let Some(gpu_bytes) = args.within.gpu_memory {
        let models = models(args, seen.as_ref())?;
        let outside_bytes = args.within.outside;
        let inputs = PlacementInputs { models, link, sharing, gpu_bytes, outside_bytes };
        return Ok(Plan::Stream(Box::new(Placement::plan(inputs).map_err(usage)?)).on(topology));
    }
    let (layers, layer_bytes, compute_ms) = layers(args, seen.as_ref())?;
    let inputs = OffloadInputs {
        layers,
        layer_bytes,
        compute_ms,
        link,
        pinned: !args.pageable,
        depth: args.depth,
        resident: args.resident,
        sharing,
        all_to_all_bytes: args.all_to_all.unwrap_or(0) as f64,
    };
    Ok(Plan::Offload(Box::new(Offload::plan(inputs).map_err(usage)?)).on(topology))
}

/// How many layers, their size and their compute time: as given, else as seen in a trace.
fn layers(args: &OffloadArgs, seen: Option<&SeenLayers>) -> Result<(u32, f64, Range), Failure> {
    let missing =
        || Failure::usage("the trace has no large H2D copies: give --layers, --bytes and --compute");
    let layers = args.layers.or(seen.map(|seen| seen.layers)).ok_or_else(missing)?;
    let bytes = args.bytes.map(|bytes| bytes as f64).or(seen.map(|seen| seen.bytes)).ok_or_else(missing)?;
    let compute_ms = args.compute.or(seen.map(|seen| seen.compute_ms)).ok_or_else(missing)?;
    Ok((layers, bytes, compute_ms))
}

/// The models that share the memory of a GPU: those given, or the only one.
fn models(args: &OffloadArgs, seen: Option<&SeenLayers>) -> Result<Vec<LayeredModel>, Failure> {
    if !args.within.model.is_empty() {
        return Ok(args.within.model.clone());
    }
    let (layers, bytes, compute_ms) = layers(args, seen)?;
    Ok(vec![LayeredModel { name: None, layers, layer_bytes: bytes as u64, compute_ms, uses: 1.0 }])
}

/// The layers of a recorded run.
fn seen(args: &OffloadArgs) -> Result<SeenLayers, Failure> {
    let output = resolve_output(&args.output)?;
    let mut runs: Vec<Diagnosis> = Vec::new();
    let paths: Vec<_> = args.trace.iter().cloned().collect();
    each_run(&paths, &args.reading, &output, |run| {
        runs.push(run.diagnose(&Machine::default(), &Options::default()));
    })?;
    let [run] = runs.as_slice() else { return Err(Failure::usage("--trace takes one trace: name one file")) };
    layers_of(run)
}

/// The same of one file, without progress.
pub(super) fn seen_in(path: &Path) -> Result<SeenLayers, Failure> {
    layers_of(&busbound::open(path)?.diagnose(&Machine::default(), &Options::default()))
}

fn layers_of(run: &Diagnosis) -> Result<SeenLayers, Failure> {
    SeenLayers::of(run).ok_or_else(|| {
        Failure::usage(
            "the trace has no large H2D copies between its kernels: give --layers, --bytes and --compute",
        )
    })
}

fn parallel(args: &ParallelArgs) -> Result<Plan, Failure> {
    let topology = args.topology.as_deref().map(traffic_at).transpose()?;
    if let Some(topology) = &topology {
        check_ranks(args, topology)?;
    }
    let of_machine =
        topology.as_ref().and_then(|topology| gpu_of_name(topology.gpus.first()?.name.as_deref()?));
    let of_link = args.cluster.link.as_ref().and_then(|link| gpu_of_key(link.gpu?));
    let gpu = match (&args.gpu, of_machine.or(of_link)) {
        (Some(name), _) => gpu(name)?,
        (None, Some(gpu)) => gpu,
        (None, None) => gpu(USUAL_GPU)?,
    };
    let of_machine = topology.as_ref().and_then(TrafficPlan::interconnect);
    let link = args.cluster.link.clone().or(of_machine).unwrap_or_else(|| Interconnect::of_gpu(gpu));
    let inputs = ParallelInputs {
        workload: args.workload.into(),
        layers: args.layers,
        hidden: args.hidden,
        heads: args.heads,
        kv_heads: args.kv_heads.unwrap_or(args.heads),
        vocabulary: args.vocabulary,
        experts: args.experts,
        active_experts: args.active_experts,
        batch: args.batch,
        sequence: args.sequence,
        bytes_per_value: args.dtype,
        cluster: cluster(args.cluster.ranks, &link, &args.cluster.nodes),
        gpu: gpu.key,
        tflops: gpu.bf16_tflops,
        utilization: args.utilization,
        gpu_gb: gpu.memory_gb,
        memory_gbps: gpu.memory_gbps,
        microbatches: args.microbatches,
        zero: args.zero,
        recompute: args.recompute,
    };
    let plan = Parallel::plan(inputs).map_err(usage)?;
    let host = match &topology {
        Some(topology) => topology.host_link().0,
        None => Machine::of_gpu(gpu).link_of(None),
    };
    Ok(Plan::Parallel(Box::new(ParallelAnswer::of(plan, &host))).on(topology))
}

fn memory(args: &MemoryArgs) -> Result<Plan, Failure> {
    let machine = args.machine.as_deref().map(machine_named).transpose()?;
    let gpu = gpu_of(args.gpu.as_deref(), machine.as_ref(), USUAL_GPU)?;
    let question = MemoryQuestion {
        parameters: args.params,
        bytes_per_value: args.dtype,
        batch: args.batch,
        sequence: args.sequence,
        gpu,
        ranks: args.ranks,
        link: args.link.clone().unwrap_or_else(|| Interconnect::of_gpu(gpu)),
        host: machine.unwrap_or_else(|| Machine::of_gpu(gpu)).link_of(None),
        sharing: args.sharing,
        utilization: args.utilization,
    };
    Ok(Plan::Memory(Box::new(MemoryPlan::plan(&question).map_err(usage)?)))
}

/// The GPU of `plan parallel` and `plan memory` if nothing names one.
const USUAL_GPU: &str = "h100-sxm";

/// A node has no more ranks than GPUs.
fn check_ranks(args: &ParallelArgs, topology: &TrafficPlan) -> Result<(), Failure> {
    let (ranks, nodes) = (args.cluster.ranks, args.cluster.nodes.nodes.max(1));
    let gpus = topology.gpus.len();
    if (ranks / nodes) as usize > gpus {
        let why =
            format!("--ranks {ranks} on {nodes} nodes are more per node than the {gpus} GPUs of --topology");
        return Err(Failure::usage(why));
    }
    Ok(())
}

fn budget(args: &BudgetArgs) -> Result<Plan, Failure> {
    let inputs = BudgetInputs {
        bytes: args.bytes as f64,
        copy_bytes: args.copy.unwrap_or(args.bytes).min(args.bytes) as f64,
        step_ms: args.step,
        link: link(&args.link)?,
        pageable: args.pageable,
        observed_gbps: args.observed,
    };
    Ok(Plan::Budget(Budget::plan(inputs).map_err(usage)?))
}

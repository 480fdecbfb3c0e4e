//! `busbound plan`.

use busbound::diagnosis::{advice_of_ddp, advice_of_offload};
use busbound::machine::{HostMemory, Interconnect, LinkFacts, gpu_of_key};
use busbound::report::{Plan, plan_statement};
use busbound::whatif::plan::BadInput;
use busbound::whatif::plan::allreduce::{AllReduce, Cluster};
use busbound::whatif::plan::budget::Budget;
use busbound::whatif::plan::ddp::{Ddp, DdpInputs};
use busbound::whatif::plan::offload::{Offload, OffloadInputs};
use busbound::whatif::plan::parallel::{Parallel, ParallelInputs};
use busbound::{Diagnosis, Format, Machine, Options, SeenLayers};

use crate::args::names::gpus;
use crate::args::plan::{
    AllreduceArgs, BudgetArgs, ClusterArgs, DdpArgs, ModelArgs, OffloadArgs, ParallelArgs, PlanCommand,
};
use crate::args::shared::OutputArgs;
use crate::failure::Failure;
use crate::io::output;
use crate::io::reading::each_run;
use crate::request::{machine_named, resolve_output};
use busbound::machine::spelling::did_you_mean;

pub(crate) fn run(command: &PlanCommand) -> Result<(), Failure> {
    match command {
        PlanCommand::Allreduce(args) => show(&allreduce(args)?, &args.output),
        PlanCommand::Ddp(args) => show_or_emit(&ddp(args)?, args.emit.emit, &args.output),
        PlanCommand::Offload(args) => show_or_emit(&offload(args)?, args.emit.emit, &args.output),
        PlanCommand::Parallel(args) => show(&parallel(args)?, &args.output),
        PlanCommand::Budget(args) => show(&budget(args)?, &args.output),
    }
}

fn show(plan: &Plan, args: &OutputArgs) -> Result<(), Failure> {
    output::show(plan, &resolve_output(args)?, "plan.html")
}

fn show_or_emit(plan: &Plan, emit: Option<Format>, args: &OutputArgs) -> Result<(), Failure> {
    let Some(format) = emit else { return show(plan, args) };
    let statement = plan_statement(plan);
    let advice = match plan {
        Plan::Ddp(plan) => advice_of_ddp(plan, &statement),
        Plan::Offload(plan) => advice_of_offload(plan, &statement),
        _ => return show(plan, args),
    };
    output::show(&advice, &resolve_output(args)?.with_format(format), "")
}

fn usage(error: BadInput) -> Failure {
    Failure::usage(error)
}

/// `usual` is the link if none is given.
fn cluster(args: &ClusterArgs, usual: Interconnect) -> Cluster {
    let per_node = args.ranks / args.nodes.max(1);
    let link = args.link.clone().unwrap_or(usual);
    Cluster {
        ranks: args.ranks,
        nodes: args.nodes,
        link,
        net: args.net.clone(),
        ports: args.ports.unwrap_or(per_node.max(1)),
    }
}

/// The link of most training nodes.
fn usual_link() -> Result<Interconnect, Failure> {
    Interconnect::named("nvlink4").map_err(Failure::usage)
}

fn bytes(args: &ModelArgs) -> f64 {
    args.bytes.map_or_else(|| args.params.unwrap_or(0.0) * args.dtype, |bytes| bytes as f64)
}

fn allreduce(args: &AllreduceArgs) -> Result<Plan, Failure> {
    let (cluster, bytes) = (cluster(&args.cluster, usual_link()?), bytes(&args.model));
    let mut plans = vec![AllReduce::plan(cluster.clone(), bytes).map_err(usage)?];
    if args.compare {
        let names =
            ["pcie3x16", "pcie4x16", "pcie5x16", "pcie6x16", "nvlink2", "nvlink3", "nvlink4", "nvlink5"];
        for link in names.iter().filter_map(|name| Interconnect::named(name).ok()) {
            if link.name != cluster.link.name {
                plans.push(AllReduce::plan(Cluster { link, ..cluster.clone() }, bytes).map_err(usage)?);
            }
        }
    }
    Ok(Plan::AllReduce(plans))
}

fn ddp(args: &DdpArgs) -> Result<Plan, Failure> {
    let inputs = DdpInputs {
        cluster: cluster(&args.cluster, usual_link()?),
        bytes: bytes(&args.model),
        bucket_bytes: args.bucket as f64,
        compute_ms: args.compute,
        backward_share: args.backward,
        accumulation: args.accumulation,
        samples: args.batch,
        steps: args.steps,
        wanted_efficiency: args.efficiency,
    };
    Ok(Plan::Ddp(Box::new(Ddp::plan(inputs).map_err(usage)?)))
}

fn link(name: &str) -> Result<LinkFacts, Failure> {
    Ok(machine_named(name)?.link_of(None))
}

fn offload(args: &OffloadArgs) -> Result<Plan, Failure> {
    let seen = args.trace.is_some().then(|| seen(args)).transpose()?;
    let link = match (&args.link, &seen) {
        (Some(name), _) => link(name)?,
        (None, Some(seen)) => seen.link.clone(),
        (None, None) => Machine::default().link_of(None),
    };
    let missing =
        || Failure::usage("the trace has no large H2D copies: give --layers, --bytes and --compute");
    let inputs = OffloadInputs {
        layers: args.layers.or(seen.as_ref().map(|seen| seen.layers)).ok_or_else(missing)?,
        layer_bytes: args
            .bytes
            .map(|bytes| bytes as f64)
            .or(seen.as_ref().map(|seen| seen.bytes))
            .ok_or_else(missing)?,
        compute_ms: args.compute.or(seen.as_ref().map(|seen| seen.compute_ms)).ok_or_else(missing)?,
        link,
        pinned: !args.pageable,
        depth: args.depth,
        resident: args.resident,
        sharing: args.sharing,
        all_to_all_bytes: args.all_to_all.unwrap_or(0) as f64,
    };
    Ok(Plan::Offload(Box::new(Offload::plan(inputs).map_err(usage)?)))
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
    SeenLayers::of(run).ok_or_else(|| {
        Failure::usage(
            "the trace has no large H2D copies between its kernels: give --layers, --bytes and --compute",
        )
    })
}

fn parallel(args: &ParallelArgs) -> Result<Plan, Failure> {
    let gpu = gpu_of_key(&args.gpu).ok_or_else(|| {
        let hint = did_you_mean(&args.gpu, gpus(), 3)
            .unwrap_or_else(|| "busbound diagnose --help lists the GPUs".to_owned());
        Failure::usage(format!("unknown GPU {:?}; {hint}", args.gpu))
    })?;
    let inputs = ParallelInputs {
        layers: args.layers,
        hidden: args.hidden,
        heads: args.heads,
        vocabulary: args.vocabulary,
        batch: args.batch,
        sequence: args.sequence,
        bytes_per_value: args.dtype,
        cluster: cluster(&args.cluster, Interconnect::of_gpu(gpu)),
        tflops: gpu.bf16_tflops,
        utilization: args.utilization,
        gpu_gb: gpu.memory_gb,
        microbatches: args.microbatches,
    };
    Ok(Plan::Parallel(Box::new(Parallel::plan(inputs).map_err(usage)?)))
}

fn budget(args: &BudgetArgs) -> Result<Plan, Failure> {
    let link = link(&args.link)?;
    let copy = args.copy.unwrap_or(args.bytes);
    let reached = link.expected_gbps(copy, HostMemory::Pinned);
    let mut rates = vec![("line peak", link.peak_gbps), ("pinned copies of this size", reached)];
    rates.push(("pageable copies of this size", link.expected_gbps(copy, HostMemory::Pageable)));
    if let Some(observed) = args.observed {
        rates.push(("observed", observed));
    }
    Ok(Plan::Budget(Budget::plan(args.bytes as f64, args.step, &rates).map_err(usage)?))
}

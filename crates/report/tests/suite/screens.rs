//! What people see: every kind of answer on terminals of 60, 80 and 140 columns.

use std::path::Path;

use crate::common::paths::fixture_path;
use crate::common::replayed::replayed;
use busbound_diagnosis::{
    Diagnosis, MemoryPlan, MemoryQuestion, Options, Requirement, Source, compare, diagnose, explain, gate,
    judge_bench, survey, what_if,
};
use busbound_fleet::{Fleet, RankSummary, Unread};
use busbound_machine::bench::Samples;
use busbound_machine::compile_log::CompileLog;
use busbound_machine::nccl_log::NcclLog;
use busbound_machine::topology::{TrafficPlan, from_nccl, saved_topology};
use busbound_machine::{Interconnect, Machine, Reference, gpu_of_key};
use busbound_report::{Format, Plan, Report, Style};
use busbound_trace::{ReadOptions, Trace, open, read};
use busbound_whatif::plan::allreduce::AllReduce;
use busbound_whatif::plan::budget::{Budget, BudgetInputs};
use busbound_whatif::plan::cluster::Cluster;
use busbound_whatif::plan::contention::ContentionPlan;
use busbound_whatif::plan::kv::{KvBlock, KvPlan, KvQuestion, KvShape};
use serde_json::json;

fn snapshots(name: &str, report: &(impl Report + ?Sized), verbose: bool) {
    for width in [60, 80, 140] {
        let text = report.render(Format::Terminal, &Style { width, color: false, verbose }).unwrap();
        insta::assert_snapshot!(format!("{name}_{width}"), text);
    }
}

fn trace(name: &str) -> Trace {
    open(&fixture_path(name), &ReadOptions::default()).unwrap()
}

fn run(name: &str) -> Diagnosis {
    diagnose(&trace(name), &Source::named(name), &Machine::default(), &Options::default())
}

/// One of each verdict, and a trace that cannot say.
#[test]
fn answers() {
    for (name, file) in [
        ("transfer", "off_block_pageable_c4.json.gz"),
        ("compute", "compute_only_c4.json.gz"),
        ("launch", "launch_bound.json.gz"),
        ("input", "train_pageable.json.gz"),
        ("sync", "pipe_serial.json.gz"),
        ("serialized", "off_block_pinned_c4.json.gz"),
        ("inconclusive", "cpuonly_block_pageable.json.gz"),
    ] {
        snapshots(&format!("answer_{name}"), &run(file), false);
    }
    snapshots("figures_transfer", &run("off_block_pageable_c4.json.gz"), true);
}

/// "Host syncs within the step: fix saves 2.82 µs/iteration" of 666 µs was the first thing to fix.
#[test]
fn a_finding_that_saves_less_than_one_percent_is_not_shown() {
    let mut events = Vec::new();
    let mut at = 0;
    for i in 0..600 {
        let (name, dur) = if i % 2 == 0 { ("Fan1", 3) } else { ("Fan2", 640) };
        let host = |name: &str, at: u32, dur: u32, id: u32| json!({"ph":"X","cat":"cuda_runtime","name":name,"pid":1,"tid":1,"ts":at,"dur":dur,"args":{"correlation":id}});
        events.push(host("cudaLaunchKernel", at, 4, 2 * i + 1));
        events.push(json!({"ph":"X","cat":"kernel","name":name,"pid":0,"tid":7,"ts":at + 6,"dur":dur,
            "args":{"device":0,"stream":7,"correlation":2 * i + 1}}));
        events.push(host("cudaDeviceSynchronize", at + 5, dur + 3, 2 * i + 2));
        at += dur + 9;
    }
    let trace = json!({"traceEvents": events}).to_string();
    let trace = read(trace.as_bytes(), Path::new("t"), &ReadOptions::default()).unwrap();
    let run = diagnose(&trace, &Source::named("t"), &Machine::default(), &Options::default());
    let saves = run.findings.first().unwrap().saves_ms_per_step.high;
    assert!(saves > 0.0 && saves < 0.01 * run.window.baseline_ms, "{:?}", run.findings);
    let text = |verbose| run.render(Format::Terminal, &Style { width: 80, color: false, verbose }).unwrap();
    assert!(
        text(false).contains("Nothing to fix between host and GPU.\n  and 1 small finding (-v)"),
        "{}",
        text(false)
    );
    assert!(text(true).contains("Host syncs within the iteration: fix saves"), "{}", text(true));
    // "next: busbound explain sync_in_loop", of which the answer said nothing.
    assert!(text(false).contains("busbound explain compute"), "{}", text(false));
}

#[test]
fn questions_about_one_or_two_runs() {
    let (before, after) = (run("off_block_pageable_c4.json.gz"), run("off_block_pinned_c4.json.gz"));
    snapshots("compare", &compare(&[before.clone(), after.clone()], None), false);
    let wanted = ["step_p50 <= 100", "findings == 0"].map(|text| Requirement::parse(text).unwrap());
    snapshots("gate", &gate(std::slice::from_ref(&before), &wanted, None, false), false);
    let name = "off_block_pageable_c4.json.gz";
    let trace = trace(name);
    snapshots(
        "whatif",
        &what_if(&trace, name, &Machine::default(), &Options::default(), &[]).unwrap(),
        false,
    );
    snapshots("survey", &survey(&trace, &Source::named(name)), false);
    snapshots("explain", &explain("pageable_copies").unwrap(), false);
    snapshots("explain_bounds", &explain("bounds").unwrap(), false);
    snapshots("runs", [before, after].as_slice(), false);
}

#[test]
fn ranks_and_machines() {
    let ranks = (0..6).map(|rank| RankSummary::of(&run(&format!("ranks/rank-{rank}.json"))));
    snapshots("ranks", &Fleet::of(ranks).answer(None), false);
    let text = |name: &str| std::fs::read_to_string(fixture_path(name)).unwrap();
    snapshots("topo", &from_nccl(&text("topology/nccl-eight-gpus.xml")).unwrap().topology(), false);
    for (name, file) in
        [("traffic_nvlink", "nccl-eight-gpus.xml"), ("traffic_refused", "nvlink-refused.json")]
    {
        let topology = saved_topology(&text(&format!("topology/{file}"))).unwrap();
        snapshots(name, &Plan::Traffic(Box::new(TrafficPlan::of(&topology).unwrap())), false);
    }
    snapshots("topo_refused", &saved_topology(&text("topology/nvlink-refused.json")).unwrap(), false);
    snapshots("links", &Reference::links(), false);
    snapshots("gpus", &Reference::gpus(), false);
    snapshots("nccl_log", &NcclLog::parse(&text("nccl/shm.log")).unwrap(), false);
    snapshots("compile_log", &CompileLog::parse(&text("compile/breaks.log")).unwrap(), false);
    let samples = Samples::parse(&text("machines/raw/h200-quick.json")).unwrap();
    snapshots("bench", &judge_bench(&samples), false);
}

/// `plan`, `top` and `merge`. What `summarize` and `export` write is not for reading; what they say is one line.
#[test]
fn estimates_live_figures_and_merged_ranks() {
    let cluster = Cluster::one_node(8, Interconnect::named("nvlink4").unwrap());
    snapshots("plan_allreduce", &Plan::AllReduce(vec![AllReduce::plan(cluster, 14e9).unwrap()]), false);
    let inputs = BudgetInputs {
        bytes: 2e9,
        copy_bytes: 1e8,
        step_ms: Some(100.0),
        link: Machine::named("pcie4x16").unwrap().link_of(None),
        pageable: true,
        observed_gbps: None,
    };
    snapshots("plan_budget", &Plan::Budget(Budget::plan(inputs).unwrap()), false);
    let contention = {
        let gpu = gpu_of_key("h100-pcie").unwrap();
        ContentionPlan::plan(gpu, 8, 4, &Machine::of_gpu(gpu)).unwrap()
    };
    snapshots("plan_contention", &Plan::Contention(Box::new(contention)), false);
    let question = KvQuestion {
        link: Machine::named("pcie4x16").unwrap().link_of(None),
        pageable: false,
        block_tokens: 16,
        block: KvBlock::Shape(KvShape { layers: 32, kv_heads: 8, head_dim: 128, bytes_per_value: 2.0 }),
        blocks: vec![64, 1024],
        prefill_tokens_per_s: Some(20_000.0),
    };
    snapshots("plan_kv", &Plan::Kv(Box::new(KvPlan::plan(question).unwrap())), false);
    let gpu = gpu_of_key("rtx-4090").unwrap();
    let question = MemoryQuestion {
        parameters: 1.3e9,
        bytes_per_value: 2.0,
        batch: 8,
        sequence: 2048,
        gpu,
        ranks: 1,
        link: Interconnect::of_gpu(gpu),
        host: Machine::of_gpu(gpu).link_of(None),
        sharing: 1,
        utilization: 0.4,
    };
    snapshots("plan_memory", &Plan::Memory(Box::new(MemoryPlan::plan(&question).unwrap())), false);
    snapshots("top", replayed().last().unwrap(), false);
    let ranks = (0..6).map(|rank| RankSummary::of(&run(&format!("ranks/rank-{rank}.json"))));
    let unread = [Unread::new(
        "rank-7.json",
        "rank-7.json is empty: the profiler was stopped before it wrote anything",
    )];
    snapshots("merge", &Fleet::of(ranks).with_unread(unread).answer(None), false);
}

//! Traces without GPU events: is everything reported that host events show, and nothing else?

use std::path::Path;

use busbound_diagnosis::{CpuCopyClass, Diagnosis, FigureId, Options, Source, compare, diagnose, survey};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, open, read};

use crate::common::{diagnosis_of, root};

fn fixture(name: &str) -> Diagnosis {
    diagnosis_of(&root().join("fixtures").join(format!("{name}.json.gz")))
}

#[test]
fn blocking_copies_have_percentiles_sizes_rates_and_places() {
    let run = fixture("cpuonly_block_pageable");
    let bus = run.cpu_copies.iter().find(|sum| sum.class == CpuCopyClass::BusTransfer).unwrap();
    let rates = bus.rates.unwrap();
    assert!(rates.p10 <= rates.p50 && rates.p50 <= rates.p90, "{rates:?}");
    assert!((rates.weighted - bus.gbps.unwrap()).abs() < 1e-9);
    // 36 copies of 168 MB each: one size class, and every copy in one bin.
    assert_eq!(
        bus.sizes.iter().map(|class| (class.label, class.count)).collect::<Vec<_>>(),
        [("over 100 MB", 36)]
    );
    assert_eq!(bus.histogram.iter().map(|bin| bin.count).sum::<u64>(), 36);
    assert_eq!(bus.places.iter().map(|place| place.count).sum::<u64>(), 36);
    assert_eq!(bus.places[0].place, "traces.py(41): f", "the innermost function of the program");
    let each = bus.each.unwrap();
    assert!((each.p50_us / 1e3 * 36.0 / bus.host_ms - 1.0).abs() < 0.2, "{each:?}");
}

#[test]
fn a_launch_has_a_cost_and_no_rate() {
    let run = fixture("runs/cpu_only_mixed");
    let launched = run.cpu_copies.iter().find(|sum| sum.class == CpuCopyClass::AsynchronousLaunch).unwrap();
    assert!(launched.rates.is_none() && launched.sizes.is_empty() && launched.histogram.is_empty());
    let cost = FigureId::AsyncCopyLaunchUs.of(&run).unwrap();
    assert!(cost > 10.0 && cost < 100.0, "{cost}");
    assert_eq!(FigureId::AsyncCopies.of(&run), Some(1.0));
}

/// The comparison of two runs without GPU events used to have no row about copies, and the last step of a host that
/// runs ahead counted as one of 4.57 ms.
#[test]
fn runs_without_gpu_events_are_compared_by_their_copies() {
    let runs = ["cpuonly_block_pageable", "cpuonly_layerwise_d2"].map(fixture);
    let steps = runs[1].window.steps.as_ref().unwrap();
    assert!(steps.min_ms > 0.9 * steps.p50_ms, "{steps:?}");
    let compared = compare(&runs, None);
    let row = |label: &str| {
        let figure = compared.figures.iter().find(|figure| figure.name == label);
        figure.unwrap_or_else(|| panic!("{label}")).values.clone()
    };
    assert_eq!(row("blocking copies"), [12.0, 0.0]);
    assert_eq!(row("asynchronous copies"), [0.0, 12.0]);
}

fn host_only(events: &str) -> Diagnosis {
    let trace =
        read(format!("[{events}]").as_bytes(), Path::new("written.json"), &ReadOptions::default()).unwrap();
    diagnose(&trace, &Source::named("written.json".to_owned()), &Machine::default(), &Options::default())
}

/// FSDP with CPU offload copies a shard and then gathers it.
#[test]
fn launches_without_gpu_work_are_counted() {
    let launch = r#"{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":5,"dur":4,"args":{"correlation":3}}"#;
    let statement = host_only(launch).verdict.statement;
    assert!(statement.contains("although the host launched 1 kernel"), "{statement}");
}

#[test]
fn communication_is_counted_and_paired_with_the_copies_before_it() {
    let mut events = Vec::new();
    for i in 0..10 {
        let at = f64::from(i) * 20_000.0;
        let event = |name: &str, ts: f64, dur: f64, args: &str| {
            format!(
                r#"{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#
            )
        };
        let copied = r#""Input Dims":[[1000000],[1000000],[]],"Input type":["float","float","Scalar"],"Concrete Inputs":["","","False"]"#;
        events.push(event("aten::copy_", at, 1_000.0, copied));
        events.push(event("c10d::_allgather_base_", at + 1_500.0, 300.0, ""));
        events.push(event("nccl:_all_gather_base", at + 1_600.0, 100.0, ""));
    }
    let run = host_only(&events.join(","));
    let issued: Vec<_> =
        run.cpu_collectives.iter().map(|sum| (sum.name.as_str(), sum.count, sum.copies_before)).collect();
    assert_eq!(issued, [("c10d::_allgather_base_", 10, 10), ("nccl:_all_gather_base", 10, 0)]);
    assert!((run.cpu_collectives[0].gap_ms.unwrap() - 0.5).abs() < 1e-9);
    assert_eq!(FigureId::CpuCollectives.of(&run), Some(20.0));
}

/// A file that was cut off used to get the advice to record more: stacks and memory samples.
#[test]
fn a_cut_file_gets_the_advice_to_record_less() {
    let path = root().join("fixtures/hostile/cut_before_gpu.json");
    let trace = open(&path, &ReadOptions::default()).unwrap();
    let survey = survey(&trace, &Source::named("cut".to_owned()));
    let remedies: Vec<&str> = survey.missing.iter().map(|missing| missing.remedy).collect();
    assert!(remedies[0].starts_with("record less"), "{remedies:?}");
    assert!(remedies.iter().all(|remedy| !remedy.contains("with_stack=True")), "{remedies:?}");
    assert!(remedies.iter().all(|remedy| !remedy.contains("profile_memory=True")), "{remedies:?}");
}

#[test]
fn a_slow_loader_gets_as_many_workers_as_it_needs() {
    let run = fixture("runs/slow_loader");
    let finding = run.findings.iter().find(|finding| finding.id.as_str() == "input_wait").unwrap();
    let value = |key: &str| finding.evidence[key].as_f64().unwrap();
    let (fetch, rest) = (value("fetch_ms_per_step"), value("rest_of_step_ms"));
    let workers = value("workers");
    assert!(fetch / workers <= rest || workers == 64.0, "{fetch} ms by {workers} workers for {rest} ms");
    assert!(finding.fix.contains(&format!("num_workers={workers}")), "{}", finding.fix);
}

/// Ranks that reduce with gloo: between two collectives, operators are compute, waiting for the data loader is input, and the rest is idle.
#[test]
fn collectives_on_the_host_have_what_the_host_did_before_them() {
    let mut events = Vec::new();
    for number in 0..6 {
        let at = f64::from(number) * 40_000.0;
        let event = |category: &str, name: &str, thread: i32, from: f64, to: f64| {
            let (ts, dur) = (at + from * 1e3, (to - from) * 1e3);
            format!(
                r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":1,"tid":{thread},"ts":{ts},"dur":{dur}}}"#
            )
        };
        events.push(event("user_annotation", &format!("ProfilerStep#{}", number + 3), 1, 0.0, 40.0));
        let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        events.push(event("user_annotation", loader, 1, 0.0, 5.0));
        // Of the data set: no compute.
        events.push(event("cpu_op", "aten::rand", 1, 1.0, 3.0));
        events.push(event("cpu_op", "aten::mm", 1, 6.0, 16.0));
        events.push(event("cpu_op", "c10d::allreduce_", 1, 20.0, 29.0));
        events.push(event("user_annotation", "gloo:all_reduce", 2, 20.0, 30.0));
        events.push(event("cpu_op", "c10d::allreduce_", 1, 33.0, 34.0));
        events.push(event("user_annotation", "gloo:all_reduce", 2, 33.0, 39.0));
    }
    let times = host_only(&events.join(",")).collective_times;
    assert!(times.len() >= 10 && times.per_step == 2.0, "{times:?}");
    let before: Vec<[i64; 4]> = (0..times.len())
        .map(|at| [times.compute_ns[at], times.copy_ns[at], times.input_ns[at], times.idle_ns[at]])
        .collect();
    // From 39 of the last step to 20 of this one, and from 30 to 33.
    let (first, second) = ([10_000_000, 0, 5_000_000, 6_000_000], [0, 0, 0, 3_000_000]);
    assert_eq!(&before[1..], &[[second], [first]].concat().repeat(6)[..times.len() - 1]);
    assert_eq!((times.starts_ns[1], times.durations_ns[1]), (33_000_000, 6_000_000));
    assert_eq!(before[0], [10_000_000, 0, 5_000_000, 5_000_000], "since the first step began");
}

//! Are collectives judged as nccl-tests would? Real traces with figures computed by hand, and synthetic ones with known waits.

use crate::common::{diagnosis_of, root};
use busbound_diagnosis::{
    CollectiveGroup, CollectiveOp, Diagnosis, FigureId, FindingId, Options, Source, diagnose,
};
use busbound_machine::{AllReduceFacts, Machine, MachineProfile, Processes};
use busbound_trace::{Collective, Gpu, GpuLimits, Trace, TraceBuilder};

fn recorded(file: &str) -> Diagnosis {
    diagnosis_of(&root().join("fixtures/collectives").join(file))
}

fn group(diagnosis: &Diagnosis, op: CollectiveOp, bytes: u64) -> &CollectiveGroup {
    diagnosis.collectives.iter().find(|group| (group.op, group.bytes) == (op, Some(bytes))).unwrap()
}

/// Elements, their size, and the duration of the fastest kernel in µs, as in the file.
fn is_near(value: Option<f64>, expected: f64) {
    assert!((value.unwrap() / expected - 1.0).abs() < 1e-9, "{value:?}, {expected}");
}

/// Two ranks: the factor of an all-reduce is 2 (2 − 1) / 2 = 1.
#[test]
fn all_reduces_of_two_ranks_have_the_rates_of_nccl_tests() {
    let diagnosis = recorded("ddp_2_ranks.json.gz");
    for (elements, times_us) in [
        (2_049_000, [3306.963, 2520.607, 5993.392]),
        (7_875_584, [2424.415, 2673.916, 5983.024]),
        (6_563_840, [2368.513, 2621.533, 5807.89]),
        (6_637_568, [2636.669, 2160.803, 2417.184]),
        (2_431_040, [2129.38, 1689.577, 2028.293]),
    ] {
        let bytes = elements * 4;
        let group = group(&diagnosis, CollectiveOp::AllReduce, bytes);
        let fastest_us = times_us.iter().copied().fold(f64::INFINITY, f64::min);
        assert_eq!((group.count, group.ranks, group.dtype.as_deref()), (3, Some(2), Some("Float")));
        is_near(group.algbw_gbps, bytes as f64 / fastest_us / 1e3);
        is_near(group.busbw_gbps, bytes as f64 / fastest_us / 1e3);
        is_near(Some(group.ms), times_us.iter().sum::<f64>() / 1e3);
        is_near(group.waiting_ms, (times_us.iter().sum::<f64>() - 3.0 * fastest_us) / 1e3);
    }
    is_near(group(&diagnosis, CollectiveOp::Broadcast, 53_120 * 4).busbw_gbps, 212_480.0 / 29.184 / 1e3);
    is_near(group(&diagnosis, CollectiveOp::Broadcast, 53 * 8).busbw_gbps, 424.0 / 7.648 / 1e3);
}

/// Eight ranks: the factor of an all-reduce is 2 (8 − 1) / 8 = 1.75.
#[test]
fn all_reduces_of_eight_ranks_have_the_rates_of_nccl_tests() {
    let diagnosis = recorded("ddp_8_mi300.json.gz");
    for (elements, fastest_us) in [(2_873_320, 6678.4), (8_816_192, 8656.708)] {
        let bytes = elements * 2;
        let group = group(&diagnosis, CollectiveOp::AllReduce, bytes);
        assert_eq!((group.ranks, group.dtype.as_deref()), (Some(8), Some("BFloat16")));
        is_near(group.algbw_gbps, bytes as f64 / fastest_us / 1e3);
        is_near(group.busbw_gbps, 1.75 * bytes as f64 / fastest_us / 1e3);
    }
    // Kernels that were launched before the recording have no message: no rate is made up for them.
    let unknown = diagnosis.collectives.iter().find(|group| group.bytes.is_none()).unwrap();
    assert_eq!((unknown.op, unknown.count), (CollectiveOp::Other, 5));
    assert_eq!((unknown.algbw_gbps, unknown.busbw_gbps, unknown.waiting_ms), (None, None, None));
}

/// Steps of 10 ms: 5 ms of compute, then a collective of `elements` floats over eight ranks per entry, of that many µs.
fn steps(gpu: &str, elements: u64, steps: &[&[i64]]) -> Trace {
    steps_in(TraceBuilder::default(), gpu, &[elements], steps)
}

/// The collectives of a step have these numbers of elements, in turn.
fn steps_in(mut trace: TraceBuilder, gpu: &str, elements: &[u64], steps: &[&[i64]]) -> Trace {
    for id in 0..8 {
        let name = gpu.to_owned();
        trace.gpu(Gpu {
            id,
            name,
            memory: None,
            multiprocessors: None,
            compute_capability: None,
            link: None,
            limits: GpuLimits::default(),
        });
    }
    let (host, compute, comm) = (trace.thread(1, 1), trace.stream(0, 7), trace.stream(0, 30));
    let (name, dtype, group) = (trace.name("allreduce"), trace.name("Float"), trace.name("0"));
    let mut correlation = 0;
    for (number, collectives) in steps.iter().enumerate() {
        let mut at = 10_000_000 * number as i64;
        trace.annotation(host, &format!("ProfilerStep#{number}"), at..at + 10_000_000);
        correlation += 1;
        trace.runtime_call(host, "cudaLaunchKernel", at..at + 1000).correlation(correlation);
        trace.kernel(compute, "gemm", at + 5000..at + 5_000_000).correlation(correlation);
        let mut call = at + 2000;
        at += 5_000_000;
        for (place, micros) in collectives.iter().enumerate() {
            let elements = elements[place % elements.len()];
            correlation += 1;
            trace.runtime_call(host, "cudaLaunchKernel", call..call + 1000).correlation(correlation);
            let message = Collective {
                name,
                dtype,
                group,
                element_bytes: Some(4),
                group_size: Some(8),
                elements_in: Some(elements),
                elements_out: Some(elements),
                ..Collective::default()
            };
            let time = at..at + micros * 1000;
            trace.kernel(comm, "ncclDevKernel_AllReduce", time).correlation(correlation).collective(message);
            at += micros * 1000;
            call += 1500;
        }
    }
    trace.finish()
}

fn judged(trace: &Trace) -> Diagnosis {
    diagnose(trace, &Source::named("made.json"), &Machine::default(), &Options::default())
}

fn has(diagnosis: &Diagnosis, id: FindingId) -> bool {
    diagnosis.findings.iter().any(|finding| finding.id == id)
}

/// 1 ms is the transfer; 2, 2 and 3 ms are waiting.
#[test]
fn what_collectives_take_longer_than_the_fastest_is_waiting() {
    let diagnosis =
        judged(&steps("NVIDIA H100 80GB HBM3", 25_000_000, &[&[1000], &[3000], &[3000], &[4000]]));
    let group = group(&diagnosis, CollectiveOp::AllReduce, 100_000_000);
    assert_eq!((group.count, group.fastest_ms, group.waiting_ms), (4, 1.0, Some(7.0)));
    assert_eq!(group.exposed_waiting_ms, Some(7.0));
    assert_eq!((group.algbw_gbps, group.busbw_gbps), (Some(100.0), Some(175.0)));
    assert!((group.share_of_link.unwrap() - 175.0 / 450.0).abs() < 1e-9, "{:?}", group.share_of_link);
    assert!(has(&diagnosis, FindingId::CollectiveWaiting));
    assert_eq!(FigureId::CollectiveWaitingMs.of(&diagnosis), Some(7.0 / 4.0));
    assert_eq!(FigureId::CollectiveMb.of(&diagnosis), Some(100.0));
    assert_eq!(FigureId::BusbwGbps.of(&diagnosis), Some(175.0));
}

/// Gathers that waited for a late rank were "far below the link: NCCL may not use it", beside reductions of the same ranks at 291 GB/s.
#[test]
fn a_fast_collective_of_the_same_ranks_shows_that_the_others_wait() {
    let of = |elements: u64| {
        let sizes = [25_000_000, elements];
        judged(&steps_in(TraceBuilder::default(), "NVIDIA H100 80GB HBM3", &sizes, &[&[4000, 700][..]; 4]))
    };
    assert!(has(&of(1000), FindingId::SlowCollective));
    assert!(!has(&of(50_000_000), FindingId::SlowCollective));
}

/// One process per GPU is how training runs, and eight GPUs of one machine are not eight machines.
#[test]
fn all_reduces_are_compared_with_those_of_processes_like_theirs() {
    let trace = steps("NVIDIA H100 80GB HBM3", 25_000_000, &[&[1000], &[3000], &[3000]]);
    let one_per_gpu = |nodes| Processes::OnePerGpu { nodes };
    let measured = |measured: &[(u32, Processes, f64)]| {
        let json = include_str!("../../../../fixtures/machines/h200.json");
        let mut profile = MachineProfile::parse(json).unwrap();
        let facts = |(ranks, processes, busbw_gbps): &(u32, Processes, f64)| AllReduceFacts {
            ranks: *ranks,
            processes: *processes,
            bytes: 64 << 20,
            algbw_gbps: 1.0,
            busbw_gbps: *busbw_gbps,
        };
        profile.set_allreduce(&measured.iter().map(facts).collect::<Vec<_>>());
        let machine = Machine::measured(profile);
        let diagnosis = diagnose(&trace, &Source::named("made.json"), &machine, &Options::default());
        group(&diagnosis, CollectiveOp::AllReduce, 100_000_000).measured_busbw_gbps
    };
    let all = [(8, one_per_gpu(8), 40.0), (8, Processes::One, 300.0), (8, one_per_gpu(1), 350.0)];
    assert_eq!(measured(&all), Some(350.0));
    assert_eq!(measured(&all[..2]), Some(300.0));
    assert_eq!(measured(&all[..1]), Some(40.0));
    assert_eq!(measured(&[(16, one_per_gpu(2), 40.0)]), None);
}

/// 100 MB in 4 ms are 43.75 GB/s on links of 450.
#[test]
fn a_collective_far_below_its_link_is_a_finding_and_a_fast_one_is_not() {
    let slow = judged(&steps("NVIDIA H100 80GB HBM3", 25_000_000, &[&[4000], &[4000], &[4000], &[4000]]));
    assert!(has(&slow, FindingId::SlowCollective) && !has(&slow, FindingId::CollectiveWaiting));
    let fast = judged(&steps("NVIDIA H100 80GB HBM3", 100_000_000, &[&[2000], &[2000], &[2000], &[2000]]));
    assert!(!has(&fast, FindingId::SlowCollective), "{:?}", fast.collectives);
    // An unknown GPU has no link to compare with.
    let unknown = judged(&steps("Some GPU", 25_000_000, &[&[4000], &[4000], &[4000], &[4000]]));
    assert!(!has(&unknown, FindingId::SlowCollective));
    assert_eq!(unknown.collectives[0].share_of_link, None);
}

#[test]
fn many_small_collectives_are_a_finding_and_one_large_one_is_not() {
    let small = [&[50; 20][..]; 4];
    let many = judged(&steps("NVIDIA H100 80GB HBM3", 1000, &small));
    assert!(has(&many, FindingId::SmallCollectives), "{:?}", many.findings);
    let one = judged(&steps("NVIDIA H100 80GB HBM3", 20_000, &[&[50][..]; 4]));
    assert!(!has(&one, FindingId::SmallCollectives));
}

/// DDP buckets were advised to tensor-parallel inference, where each layer waits for its own all-reduce.
#[test]
fn inference_has_no_gradient_buckets_to_change() {
    let fixes = |operators: &[&str]| {
        let mut trace = TraceBuilder::default();
        for operator in operators {
            trace.name(operator);
        }
        let run = judged(&steps_in(trace, "NVIDIA H100 80GB HBM3", &[1000], &[&[150; 20][..]; 4]));
        let of = |id: FindingId| {
            run.findings.iter().find(|finding| finding.id == id).map(|found| found.fix.clone())
        };
        [of(FindingId::SmallCollectives).unwrap(), of(FindingId::ExposedCommunication).unwrap()]
    };
    for fix in fixes(&["aten::mm"]) {
        assert!(
            fix.contains("each layer needs its result") || fix.contains("Each layer needs its result"),
            "{fix}"
        );
    }
    for fix in fixes(&["aten::mm", "autograd::engine::evaluate_function: MmBackward0"]) {
        assert!(fix.contains("bucket_cap_mb"), "{fix}");
    }
}

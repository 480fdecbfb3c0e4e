//! Does a change on one rank carry through the collectives to the step of the job? Synthetic ranks with known times.

use busbound_diagnosis::{JobMember, NoJobReplay, Options, Source, job_member, job_what_if};
use busbound_machine::Machine;
use busbound_trace::{Collective, MemoryKind, Trace, TraceBuilder, Transfer};
use busbound_whatif::replay::{Change, NoJob};

const MS: i64 = 1_000_000;
const TRANSFER: i64 = 10 * MS;

/// A step is a blocking copy of 100 MB, compute, and an all-reduce that ends when the step does.
fn trace(copy: (MemoryKind, i64), compute: i64, step: i64, numbered: bool) -> Trace {
    let mut trace = TraceBuilder::default();
    let (host, work, comm) = (trace.thread(1, 1), trace.stream(0, 7), trace.stream(0, 30));
    let (name, group) = (trace.name("allreduce"), trace.name("0"));
    for number in 0..8 {
        let (at, id) = (number * step, 10 * number as u64);
        let mark = if numbered { format!("ProfilerStep#{number}") } else { "step".to_owned() };
        trace.annotation(host, &mark, at..at + step - 1000);
        let copied = at + 20_000 + copy.1;
        trace.runtime_call(host, "cudaMemcpyAsync", at + 5_000..copied).correlation(id + 1);
        trace
            .copy(work, Transfer::host_to_device(copy.0, 100_000_000), at + 20_000..copied)
            .correlation(id + 1);
        trace.runtime_call(host, "cudaLaunchKernel", copied + 1_000..copied + 5_000).correlation(id + 2);
        let computed = copied + 10_000 + compute;
        trace.kernel(work, "gemm", copied + 10_000..computed).correlation(id + 2);
        trace.runtime_call(host, "cudaLaunchKernel", copied + 6_000..copied + 9_000).correlation(id + 3);
        let message = Collective {
            name,
            group,
            element_bytes: Some(4),
            group_size: Some(4),
            elements_in: Some(1_000_000),
            elements_out: Some(1_000_000),
            ..Collective::default()
        };
        let (arrived, ended) = (computed + 5_000, at + step - 30_000);
        trace.kernel(comm, "ncclDevKernel_AllReduce", arrived..ended).correlation(id + 3).collective(message);
        trace.runtime_call(host, "cudaDeviceSynchronize", copied + 10_000..ended + 5_000).correlation(id + 4);
    }
    trace.finish()
}

fn member(rank: usize, trace: &Trace, apply: &str) -> JobMember {
    let source = Source::named(format!("rank-{rank}.json"));
    let changes: Vec<Vec<Change>> = vec![vec![apply.parse().unwrap()]];
    job_member(trace, &source, &Machine::named("63").unwrap(), &Options::default(), &changes).unwrap()
}

/// Rank 2 copies from pageable memory in 32 ms, the others from pinned memory in 2: the others wait 30 ms of each step.
fn job(apply: &str, numbered: bool) -> Vec<JobMember> {
    let step = 32 * MS + 40 * MS + TRANSFER + 65_000;
    (0..4)
        .map(|rank| {
            let copy = if rank == 2 { (MemoryKind::Pageable, 32 * MS) } else { (MemoryKind::Pinned, 2 * MS) };
            member(rank, &trace(copy, 40 * MS, step, numbered), apply)
        })
        .collect()
}

/// With pinned memory, 100 MB take about 1.6 ms at 63 GB/s: rank 2 arrives first, and the others set the step.
#[test]
fn pinning_on_the_late_rank_shortens_the_step_of_all() {
    let answer = job_what_if(job("pin", true), 2).unwrap();
    assert_eq!((answer.rank, answer.ranks), (Some(2), Some(4)));
    assert!((answer.baseline_ms - 82.0).abs() < 1.0, "{answer:?}");
    let pinned = &answer.scenarios[0];
    // The others take 2 + 40 + 10 ms.
    assert!((pinned.step_ms - 52.0).abs() < 1.5, "{pinned:?}");
    assert!(answer.statement.starts_with("On rank 2 of the job: `pin` gives "), "{}", answer.statement);
}

/// A rank that waits for the others gains them nothing.
#[test]
fn a_change_on_a_rank_that_waits_changes_nothing_for_the_job() {
    let answer = job_what_if(job("link=128", true), 0).unwrap();
    let faster = &answer.scenarios[0];
    assert!((faster.step_ms - answer.baseline_ms).abs() < 0.5, "{faster:?}");
}

#[test]
fn ranks_that_cannot_be_matched_are_refused_with_the_reason() {
    assert_eq!(job_what_if(job("pin", false), 2).unwrap_err(), NoJobReplay::Job(NoJob::NoCollectives));
    let missing = job_what_if(job("pin", true), 9).unwrap_err();
    assert_eq!(missing.to_string(), "no trace is of rank 9: there are ranks 0, 1, 2, 3");
}

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

/// A step of a rank without a GPU: a batch from the loader, operators, and an all-reduce of gloo, which a thread of its own carries out.
/// The rank that works until `arrives` is the last one; `beside` is what the thread does while the collective runs, `early` how long before the
/// end of the collective's annotation it goes on.
fn on_cpu(input: i64, compute: i64, arrives: i64, beside: Option<i64>, early: i64) -> Trace {
    let step = arrives + TRANSFER + MS;
    let mut trace = TraceBuilder::default();
    let (host, gloo) = (trace.thread(1, 1), trace.thread(1, 2));
    for number in 0..8 {
        let at = number * step;
        trace.annotation(host, &format!("ProfilerStep#{number}"), at..at + step - 1000);
        let loaded = at + 10_000 + input;
        let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        trace.annotation(host, loader, at + 10_000..loaded);
        let computed = loaded + 10_000 + compute;
        trace.operator(host, "aten::mm", loaded + 10_000..computed);
        trace.operator(host, "c10d::allreduce_", computed + 10_000..computed + 100_000);
        let ended = at + arrives + TRANSFER;
        trace.annotation(gloo, "gloo:all_reduce", computed + 50_000..ended);
        if let Some(beside) = beside {
            trace.operator(host, "aten::mm", computed + 110_000..computed + 110_000 + beside);
        }
        if early > 0 {
            let copied = ended - early..ended - early + 30_000;
            trace.operator(host, "torch.distributed.ddp.reducer::copy_bucket_to_grad", copied);
        }
    }
    trace.finish()
}

/// Three ranks without a GPU, rank 1 late because its batches take `input`.
fn job_on_cpu(input: i64, beside: Option<i64>, early: i64, apply: &str) -> Vec<JobMember> {
    let arrives = input + 20 * MS + 70_000;
    let rank = |number: usize| {
        let own = if number == 1 { input } else { MS };
        member(number, &on_cpu(own, 20 * MS, arrives, beside, early), apply)
    };
    (0..3).map(rank).collect()
}

/// Collectives of gloo were not understood: `--rank` worked only for those on the GPU.
#[test]
fn a_change_on_a_rank_without_a_gpu_is_carried_through_collectives_on_the_host() {
    let answer = job_what_if(job_on_cpu(40 * MS, None, 0, "workers=4"), 1).unwrap();
    // 40 ms of input, 20 of compute, 10 of exchange.
    assert!((answer.baseline_ms - 71.1).abs() < 0.5, "{answer:?}");
    let faster = &answer.scenarios[0];
    // The others take 1 + 20 + 10 ms; worker processes leave a few percent of the 40 ms.
    assert!((31.5..33.5).contains(&faster.step_ms), "{faster:?}");
    assert!(answer.notes[1].contains("collectives on the host"), "{:?}", answer.notes);
    // Notes about GPUs are about nothing here.
    assert!(!answer.notes.iter().any(|note| note.contains("Kernel times")), "{:?}", answer.notes);
}

#[test]
fn a_rank_without_a_gpu_that_waits_gains_the_job_nothing() {
    let answer = job_what_if(job_on_cpu(40 * MS, None, 0, "workers=4"), 0).unwrap();
    assert!((answer.scenarios[0].step_ms - answer.baseline_ms).abs() < 0.2, "{answer:?}");
}

/// What a thread does while its collective runs is not a wait: the step cannot become shorter than that.
#[test]
fn work_beside_a_collective_on_the_host_is_not_taken_for_a_wait() {
    let answer = job_what_if(job_on_cpu(40 * MS, Some(9 * MS), 0, "workers=4"), 1).unwrap();
    let beside = answer.scenarios[0].step_ms;
    assert!((answer.baseline_ms - 71.1).abs() < 0.5, "{answer:?}");
    assert!((30.0..33.5).contains(&beside), "{answer:?}");
}

/// Three collectives that are issued together and carried out one after the other: those behind the first one waited for its end, and
/// that counted twice.
#[test]
fn collectives_that_queue_behind_another_are_not_delayed_twice() {
    let rank = |number: usize| {
        let (arrives, own) = (60 * MS, if number == 1 { 40 * MS } else { MS });
        let step = arrives + 3 * TRANSFER + MS;
        let mut trace = TraceBuilder::default();
        let (host, gloo) = (trace.thread(1, 1), trace.thread(1, 2));
        for number in 0..8 {
            let at = number * step;
            trace.annotation(host, &format!("ProfilerStep#{number}"), at..at + step - 1000);
            let loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
            trace.annotation(host, loader, at + 10_000..at + 10_000 + own);
            let computed = at + own + 20 * MS - 400_000;
            trace.operator(host, "aten::mm", at + own + 20_000..computed);
            let ended = |of: i64| at + arrives + (of + 1) * TRANSFER;
            for of in 0..3 {
                let issued = computed + 10_000 + of * 100_000;
                trace.operator(host, "c10d::allreduce_", issued..issued + 50_000);
                let taken = if of == 0 { issued + 20_000 } else { ended(of - 1) + 1_000 };
                trace.annotation(gloo, "gloo:all_reduce", taken..ended(of));
            }
        }
        member(number, &trace.finish(), "workers=4")
    };
    let answer = job_what_if((0..3).map(rank).collect(), 1).unwrap();
    assert!((answer.baseline_ms - 91.0).abs() < 0.6, "{answer:?}");
    // 1 + 19 ms until the others arrive, and three exchanges.
    assert!((50.5..53.5).contains(&answer.scenarios[0].step_ms), "{answer:?}");
}

/// DistributedDataParallel's thread goes on before the annotation of gloo ends: that was taken for work beside the collective, and the
/// wait for the late rank for work that stays.
#[test]
fn a_thread_that_goes_on_before_the_annotation_ends_has_waited() {
    let answer = job_what_if(job_on_cpu(40 * MS, None, 100_000, "workers=4"), 1).unwrap();
    assert!((answer.baseline_ms - 71.1).abs() < 0.5, "{answer:?}");
    assert!((31.5..33.5).contains(&answer.scenarios[0].step_ms), "{answer:?}");
}

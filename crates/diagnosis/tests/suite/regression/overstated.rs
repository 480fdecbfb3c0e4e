//! Does an answer promise or name more than a trace shows? Each was so on a public trace; these are small ones like it.

use std::ops::Range;

use busbound_diagnosis::{Bound, FindingId, LimitationId, Options, Unit, what_if};
use busbound_machine::Machine;
use busbound_trace::{MemoryKind, Migration, MigrationCause, Trace, Transfer};
use busbound_whatif::replay::{Change, CudaGraph, Pin};

use super::claims::{MS, Program, US, found};

/// Milliseconds per step now and with a change.
fn predicted(trace: &Trace, change: Change) -> (f64, f64) {
    let machine = Machine::named("pcie4x16").unwrap();
    let answer = what_if(trace, "built", &machine, &Options::default(), &[vec![change]]).unwrap();
    (answer.baseline_ms, answer.scenarios[0].step_ms)
}

/// Repeats five kernels, each with its own name: `times` of 0.5 ms each from the start of `host` on.
fn repeat_five(program: &mut Program, from: i64, times: i64) -> Range<i64> {
    for i in 0..5 * times {
        let at = from + i * 100 * US;
        program.kernel(
            ["norm", "qkv", "attention", "out", "mlp"][(i % 5) as usize],
            at,
            at + 10 * US,
            60 * US,
        );
    }
    from..from + times * 500 * US
}

/// The layers of one pass were "iterations".
#[test]
fn layers_inside_one_call_are_no_iterations() {
    let unit = |is_one_call: bool| {
        let mut program = Program::new();
        let time = repeat_five(&mut program, MS, 12);
        if is_one_call {
            program.trace.python_frame(
                program.host,
                "nn.Module: Transformer_0",
                time.start - US..time.end + US,
            );
        }
        let steps = program.diagnosed().window.steps;
        steps.map_or(Unit::Trace, |steps| steps.found.unit())
    };
    assert_eq!(unit(true), Unit::Trace);
    assert_eq!(unit(false), Unit::Iteration);
}

/// What a program copies before it ends was part of the last detected iteration, which made the verdict another one.
#[test]
fn the_last_iteration_is_as_long_as_the_others() {
    let mut program = Program::new();
    let time = repeat_five(&mut program, 0, 20);
    for i in 0..3 {
        let at = time.end + 2 * MS + i * 4 * MS;
        let result = Transfer::device_to_host(MemoryKind::Pageable, 32 << 20);
        program.named_copy("cudaMemcpy", at..at + MS, result, at + 100 * US..at + MS - 10 * US);
    }
    let run = program.diagnosed();
    let steps = run.window.steps.as_ref().expect("iterations are detected");
    assert!(steps.max_ms < 1.2 * steps.p50_ms, "{steps:?}");
    assert!(
        run.verdict.bound != Bound::Mixed && run.time.exposed_bus_copy_ms == 0.0,
        "{}",
        run.verdict.because
    );
}

/// "Host-bound: 100% of the 3.20 s trace", of 56 kernels and copies that take 0.06 ms.
#[test]
fn a_gpu_that_hardly_ran_has_no_verdict() {
    let mut program = Program::new();
    for i in 0..56i64 {
        let at = i * 57 * MS;
        program.kernel(&format!("kernel{}", i * i % 97), at, at + 10 * US, US);
    }
    let run = program.diagnosed();
    assert_eq!(run.verdict.withheld, Some(LimitationId::StartUp), "{}", run.verdict.statement);
    assert!(
        run.verdict.because.contains("56 kernels, 56.0 µs in total, are the only GPU work"),
        "{}",
        run.verdict.because
    );
}

/// "Mostly in distributed_training": the range that the whole program is in.
#[test]
fn a_range_around_the_program_is_no_place() {
    let because = |outer: &str| {
        let mut program = Program::new();
        program.trace.annotation(program.host, outer, 0..400 * MS);
        for i in 0..100i64 {
            let at = MS + i * 3_900 * US;
            program.trace.annotation(program.host, "prepare", at + 900 * US..at + 1_200 * US);
            program.kernel("gemm", at + 3_800 * US, at + 3_810 * US, 300 * US);
        }
        let run = program.diagnosed();
        assert_eq!(run.verdict.bound, Bound::Host, "{}", run.verdict.statement);
        format!("{} {:?}", run.verdict.because, run.host)
    };
    let text = because("whole_program");
    assert!(!text.contains("whole_program") && text.contains("prepare"), "{text}");
}

/// Kernels of a microsecond were predicted to follow each other without a gap in a CUDA graph.
#[test]
fn short_kernels_of_a_graph_keep_their_distance() {
    let mut program = Program::new();
    for i in 0..1000i64 {
        let at = i * 20 * US;
        program.kernel("add", at, at + 8 * US, 500);
    }
    let (now, step_ms) = predicted(&program.trace.finish(), CudaGraph.into());
    assert!((1.1..1.3).contains(&step_ms) && now > 15.0, "{step_ms} of {now}");
}

/// A graph was predicted to start at once what started 5 ms after its launch for a reason that is not in the trace.
#[test]
fn a_graph_does_not_remove_waits_that_are_not_in_the_trace() {
    let mut program = Program::new();
    for i in 0..100i64 {
        let at = i * 50 * US + if i < 50 { 0 } else { 6 * MS };
        let late = if i == 40 { 5 * MS } else { 10 * US };
        let start = if i > 40 && i < 50 { 40 * 50 * US + 5 * MS + (i - 40) * 20 * US } else { at + late };
        program.kernel("add", at, start, 15 * US);
    }
    let (now, step_ms) = predicted(&program.trace.finish(), CudaGraph.into());
    assert!(step_ms > 5.0 && step_ms < now, "{step_ms} of {now}");
}

/// "Mostly aten::view", which took 7% of it.
#[test]
fn only_what_takes_most_of_the_time_is_mostly_it() {
    let because = |names: &[&str]| {
        let mut program = Program::new();
        for i in 0..60i64 {
            let (at, length) = (i * 4 * MS, 3 * MS / names.len() as i64);
            for (place, name) in names.iter().enumerate() {
                let begin = at + place as i64 * length;
                program.trace.operator(program.host, *name, begin..begin + length - US);
            }
            program.kernel("gemm", at + 3_500 * US, at + 3_510 * US, 200 * US);
        }
        program.diagnosed().verdict.because
    };
    assert!(because(&["aten::topk"]).contains("mostly aten::topk"), "{}", because(&["aten::topk"]));
    let many = because(&["aten::topk", "aten::sort", "aten::unique", "aten::cumsum"]);
    assert!(many.contains("is the largest part (2") && !many.contains("mostly"), "{many}");
}

/// "Run `aten::_foreach_add_` on the GPU", where it launches kernels through the operators that it calls.
#[test]
fn operators_that_launch_through_others_are_not_on_the_cpu() {
    let is_on_cpu = |launched: i64| {
        let mut program = Program::new();
        for i in 0..40i64 {
            let at = i * 6 * MS;
            program.trace.operator(program.host, "aten::_foreach_add_", at..at + 5 * MS);
            program.trace.operator(program.host, "aten::add_", at + 4 * MS..at + 4_900 * US);
            program.kernel("add", at + launched, at + launched + 10 * US, 700 * US);
        }
        found(&program.diagnosed(), FindingId::CpuOperators).is_some()
    };
    assert!(!is_on_cpu(4_800 * US), "launched within");
    assert!(is_on_cpu(5_100 * US), "launched after it");
}

/// Pinning "saves 48.3 ms" of copies whose calls take 41 ms.
#[test]
fn pinning_saves_no_more_than_its_copies_take() {
    let (mut program, count, call) = (Program::new(), 48i64, 850 * US);
    for i in 0..count {
        let at = i * 4 * MS;
        let batch = Transfer::host_to_device(MemoryKind::Pageable, 4_500_000);
        program.named_copy("cuMemcpyHtoDAsync_v2", at..at + call, batch, at + 400 * US..at + call - 10 * US);
    }
    let (now, step_ms) = predicted(&program.trace.finish(), Pin.into());
    let calls_ms = (count * call) as f64 / 1e6;
    assert!(
        now - step_ms <= 1.01 * calls_ms && now - step_ms > 0.5 * calls_ms,
        "{now} to {step_ms}, {calls_ms}"
    );
}

/// A loop that reads a flag after each kernel to know whether to go on was promised the time without the reads.
#[test]
fn a_value_that_decides_what_runs_next_promises_nothing() {
    let loop_on_a_flag = || {
        let mut program = Program::new();
        for i in 0..300i64 {
            let at = i * 400 * US;
            program.kernel("relax", at, at + 10 * US, 200 * US);
            let flag = Transfer::device_to_host(MemoryKind::Pageable, 4);
            let copied = at + 212 * US..at + 214 * US;
            program.named_copy("cudaMemcpy", at + 20 * US..at + 220 * US, flag, copied);
        }
        program
    };
    let run = loop_on_a_flag().diagnosed();
    let sync = found(&run, FindingId::SyncInLoop).expect("the host waits in each iteration");
    assert!(!sync.saving_known && sync.fix.contains("decides"), "{sync:?}");
    assert!(run.prize.is_none_or(|prize| prize.fixes.iter().all(|fix| fix.apply != ["nosync"])));
    let (trace, machine) = (loop_on_a_flag().trace.finish(), Machine::named("pcie4x16").unwrap());
    let tried = what_if(&trace, "built", &machine, &Options::default(), &[]).unwrap();
    let is_read_less =
        |apply: &Vec<String>| apply.iter().any(|change| change == "nosync" || change == "coalesce");
    assert!(!tried.scenarios.iter().any(|one| is_read_less(&one.apply)), "{}", tried.statement);
}

/// Time in which the host reads managed memory, page by page, was idle time "whose cause is not visible".
#[test]
fn the_host_that_touches_managed_memory_is_named() {
    let mut program = Program::new();
    for i in 0..20i64 {
        program.kernel("add", i * MS, i * MS + 10 * US, 900 * US);
    }
    for i in 0..400i64 {
        let at = 20 * MS + i * 500 * US;
        let pages = Transfer::device_to_host(MemoryKind::Managed, 64 << 10);
        let migration = Migration { address: None, cause: MigrationCause::Fault };
        program.trace.copy(program.stream, pages, at..at + 20 * US).migration(migration);
    }
    let run = program.diagnosed();
    assert!(!run.verdict.statement.contains("not visible"), "{}", run.verdict.statement);
    assert!(run.verdict.because.contains("managed memory"), "{}", run.verdict.because);
}

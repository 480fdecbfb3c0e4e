//! Is host work that the GPU waits for named, and is the right finding reported? Traces built for it.

use busbound_diagnosis::{Diagnosis, Finding, FindingId, HostUse, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{MemoryKind, TraceBuilder, TrackId, Transfer};

const US: i64 = 1_000;
const MS: i64 = 1_000_000;
const STEP: i64 = 10 * MS;
const STEPS: i64 = 6;

/// A program with steps of 10 ms, one thread and one stream for kernels and copies.
struct Program {
    trace: TraceBuilder,
    host: TrackId,
    stream: TrackId,
    calls: u64,
}

impl Program {
    /// Adds the events of each step of a PyTorch program, at its start.
    fn of(step: impl FnMut(&mut Self, i64)) -> Diagnosis {
        let mut trace = TraceBuilder::default();
        trace.name("aten::mm");
        Self::in_trace(trace, step)
    }

    fn in_trace(mut trace: TraceBuilder, mut step: impl FnMut(&mut Self, i64)) -> Diagnosis {
        let (host, stream) = (trace.thread(1, 1), trace.stream(0, 7));
        let mut program = Self { trace, host, stream, calls: 0 };
        for number in 0..STEPS {
            let start = number * STEP;
            program.trace.annotation(program.host, &format!("ProfilerStep#{number}"), start..start + STEP);
            step(&mut program, start);
        }
        let machine = Machine::named("pcie5x16").unwrap();
        diagnose(&program.trace.finish(), &Source::named("built"), &machine, &Options::default())
    }

    /// A launch call of 5 µs, and the kernel from 10 µs after it until `until`.
    fn kernel(&mut self, at: i64, until: i64) {
        self.queued_kernel(at, at + 10 * US..until);
    }

    /// A launch call of 5 µs, and its kernel.
    fn queued_kernel(&mut self, at: i64, time: std::ops::Range<i64>) {
        self.calls += 1;
        self.trace.runtime_call(self.host, "cudaLaunchKernel", at..at + 5 * US).correlation(self.calls);
        self.trace.kernel(self.stream, "gemm", time).correlation(self.calls);
    }

    /// A copy call, and the copy.
    fn copy(&mut self, call: std::ops::Range<i64>, transfer: Transfer, time: std::ops::Range<i64>) {
        self.calls += 1;
        self.trace.runtime_call(self.host, "cudaMemcpyAsync", call).correlation(self.calls);
        self.trace.copy(self.stream, transfer, time).correlation(self.calls);
    }

    /// The host works from the start of the step for 4 ms, then launches a kernel that ends with the step.
    fn after_work(work: impl Fn(&mut TraceBuilder, TrackId, i64)) -> Diagnosis {
        Self::of(|program, t| {
            work(&mut program.trace, program.host, t);
            program.kernel(t + 4 * MS, t + STEP);
        })
    }
}

pub(crate) fn ids(diagnosis: &Diagnosis) -> Vec<&'static str> {
    diagnosis.findings.iter().map(|finding| finding.id.as_str()).collect()
}

pub(crate) fn finding(diagnosis: &Diagnosis, id: FindingId) -> &Finding {
    let found = diagnosis.findings.iter().find(|finding| finding.id == id);
    found.unwrap_or_else(|| panic!("{id} is missing: {:?}", ids(diagnosis)))
}

fn is_near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-6
}

/// A figure of a finding's evidence.
#[track_caller]
fn assert_evidence(finding: &Finding, key: &str, expected: f64) {
    let value = finding.evidence[key].as_f64().unwrap();
    assert!(is_near(value, expected), "{} {key}: {value}, expected {expected}", finding.id);
}

#[track_caller]
fn assert_saves(finding: &Finding, low: f64, high: f64) {
    let saves = finding.saves_ms_per_step;
    assert!(is_near(saves.low, low) && is_near(saves.high, high), "{}: {saves:?}", finding.id);
}

#[test]
fn host_work_is_listed_by_use_with_the_names_that_took_the_time() {
    let run = Program::after_work(|trace, host, t| {
        trace.operator(host, "aten::index_select", t..t + 3 * MS);
        trace.operator(host, "aten::sort", t + 3 * MS..t + 4 * MS);
    });
    let listed: Vec<_> = run.host.iter().map(|work| (work.what, work.operators.clone(), work.ms)).collect();
    assert_eq!(
        listed,
        [
            (HostUse::Gather, vec!["aten::index_select".to_owned()], 3.0),
            (HostUse::Operator, vec!["aten::sort".to_owned()], 1.0)
        ]
    );
}

#[test]
fn unrecorded_time_is_named_after_what_is_around_it() {
    let of = |work: fn(&mut TraceBuilder, TrackId, i64)| {
        let run = Program::after_work(work);
        (run.host[0].what, run.host[0].operators.clone(), run.host[0].ms)
    };
    let named = |name: &str| (HostUse::Python, vec![name.to_owned()], 4.0);
    assert_eq!(of(|_, _, _| ()), named("not recorded"));
    let annotated = |trace: &mut TraceBuilder, host: TrackId, t: i64| {
        trace.annotation(host, "tokenize", t..t + 4 * MS);
    };
    assert_eq!(of(annotated), named("tokenize"));
    let framed = |trace: &mut TraceBuilder, host: TrackId, t: i64| {
        trace.python_frame(host, "sample.py(12): draw", t..t + 4 * MS);
    };
    assert_eq!(of(framed), named("sample.py(12): draw"));
}

#[test]
fn a_gather_on_the_cpu_is_reported() {
    let run = Program::after_work(|trace, host, t| {
        trace.operator(host, "aten::index_select", t..t + 4 * MS);
    });
    assert_eq!(ids(&run), ["host_gather"]);
    let gather = finding(&run, FindingId::HostGather);
    assert_evidence(gather, "idle_ms_per_step", 4.0);
    assert_saves(gather, 2.0, 4.0);
}

#[test]
fn a_gather_that_the_gpu_does_not_wait_for_is_not_reported() {
    let run = Program::of(|program, t| {
        program.kernel(t, t + STEP - US);
        program.trace.operator(program.host, "aten::index_select", t + MS..t + 5 * MS);
    });
    assert!(ids(&run).is_empty(), "{:?}", ids(&run));
    assert!(run.host.iter().all(|work| work.what != HostUse::Gather), "{:?}", run.host);
}

#[test]
fn casts_on_the_cpu_are_reported() {
    let run = Program::after_work(|trace, host, t| {
        trace.operator(host, "aten::_to_copy", t..t + 4 * MS);
    });
    assert_eq!(ids(&run), ["cpu_casts"]);
    assert_saves(finding(&run, FindingId::CpuCasts), 2.0, 4.0);
}

#[test]
fn operators_on_the_cpu_are_reported_and_views_and_reads_are_not() {
    let of = |name: &'static str| {
        Program::after_work(move |trace, host, t| {
            trace.operator(host, name, t..t + 4 * MS);
        })
    };
    let run = of("aten::topk");
    assert_eq!(ids(&run), ["cpu_operators"]);
    assert_saves(finding(&run, FindingId::CpuOperators), 2.0, 4.0);
    // The advice was "Run aten::item on the GPU": `Adam` reads its step counts with it.
    for name in ["aten::view", "aten::item"] {
        assert!(ids(&of(name)).is_empty(), "{name}: {:?}", ids(&of(name)));
    }
}

#[test]
fn memory_that_is_pinned_in_each_step_is_reported() {
    let run = Program::after_work(|trace, host, t| {
        trace.runtime_call(host, "cudaHostAlloc", t..t + 4 * MS);
    });
    assert_eq!(ids(&run), ["pinning_in_loop"]);
    let found = finding(&run, FindingId::PinningInLoop);
    assert_evidence(found, "calls_per_step", 1.0);
    assert!(found.saves_ms_per_step.high > 3.5, "{:?}", found.saves_ms_per_step);
}

/// `x.pin_memory().to(device)` in each step: the data is copied on the host first, into pinned memory.
#[test]
fn pin_memory_in_each_step_is_a_second_copy() {
    let run = Program::after_work(|trace, host, t| {
        trace.operator(host, "aten::pin_memory", t..t + 4 * MS);
        trace.operator(host, "aten::_pin_memory", t + 10 * US..t + 4 * MS - 10 * US);
        trace.operator(host, "aten::copy_", t + MS..t + 4 * MS - 20 * US);
    });
    let found = finding(&run, FindingId::PinningInLoop);
    assert!(found.seen.starts_with("1 call of pin_memory() per step takes 4.00 ms"), "{}", found.seen);
    assert!(found.seen.contains("the copy to the GPU is the second one"), "{}", found.seen);
    assert_evidence(found, "calls_per_step", 1.0);
}

/// The pin thread of a loader allocates and copies with the interpreter's lock: the thread that launches does nothing meanwhile.
#[test]
fn a_pin_thread_that_keeps_the_launching_thread_waiting_is_reported() {
    let of = |pins: bool| {
        Program::of(|program, t| {
            program.kernel(t, t + 5 * MS);
            // The GPU is idle for 3 ms; nothing is recorded on the launching thread.
            program.kernel(t + 8 * MS, t + STEP);
            if pins {
                let pin_thread = program.trace.thread(1, 2);
                program.trace.operator(pin_thread, "aten::pin_memory", t + 5 * MS..t + 8 * MS);
                program.trace.runtime_call(pin_thread, "cudaHostAlloc", t + 5 * MS + US..t + 7 * MS);
            }
        })
    };
    let run = of(true);
    let found = finding(&run, FindingId::PinningInLoop);
    assert_evidence(found, "idle_beside_ms_per_step", 3.0);
    assert!(found.seen.contains("run on another thread, such as the loader's pin thread"), "{}", found.seen);
    assert_eq!(found.saves_ms_per_step.low, 0.0);
    assert!(!ids(&of(false)).contains(&"pinning_in_loop"));
}

/// The loader pins, and the program casts the batch afterwards: what is copied is pageable.
#[test]
fn a_batch_that_is_pinned_and_then_cast_is_pinned_in_vain() {
    let of = |pins: bool| {
        Program::of(|program, t| {
            if pins {
                program.trace.operator(program.host, "aten::pin_memory", t..t + 50 * US);
            }
            let up = Transfer::host_to_device(MemoryKind::Pageable, 30_000_000);
            program.copy(t + 100 * US..t + 4 * MS, up, t + 200 * US..t + 4 * MS);
            program.kernel(t + 4 * MS, t + STEP);
        })
    };
    let said = |run: &Diagnosis| {
        finding(run, FindingId::PageableCopies).seen.contains("what it copies is not the result")
    };
    assert!(said(&of(true)) && !said(&of(false)));
}

/// The backward pass launches one kernel of 2 ms; then the optimizer runs for 3 ms.
fn optimizer(operator: Option<&str>) -> Diagnosis {
    Program::of(|program, t| {
        let (host, backward) = (program.host, "autograd::engine::evaluate_function: MmBackward0");
        program.trace.operator(host, backward, t..t + 20 * US);
        program.kernel(t, t + 2 * MS + 10 * US);
        let update = t + 2 * MS + 10 * US..t + 5 * MS + 10 * US;
        program.trace.annotation(host, "Optimizer.step#SGD.step", update.clone());
        if let Some(operator) = operator {
            program.trace.operator(host, operator, update);
        }
        program.kernel(t + 5 * MS + 10 * US, t + STEP);
    })
}

#[test]
fn an_optimizer_on_the_cpu_saves_at_most_what_the_backward_pass_hides() {
    let run = optimizer(Some("aten::add_"));
    let found = finding(&run, FindingId::CpuOptimizer);
    assert_evidence(found, "idle_ms_per_step", 3.0);
    assert_evidence(found, "backward_ms_per_step", 2.0);
    assert_saves(found, 0.0, 2.0);
}

#[test]
fn the_python_of_an_optimizer_on_the_gpu_is_not_an_optimizer_on_the_cpu() {
    assert!(!ids(&optimizer(None)).contains(&"cpu_optimizer"));
}

/// A step with an optimizer that runs for 3 ms: its first operator launches a kernel, and takes this long.
fn optimizer_that_launches(first: i64) -> Diagnosis {
    Program::of(|program, t| {
        let (host, begin, end) = (program.host, t + 2 * MS, t + 5 * MS);
        program.kernel(t, begin);
        program.trace.annotation(host, "Optimizer.step#SGD.step", begin..end);
        program.trace.operator(host, "aten::_foreach_add_", begin..begin + first);
        program.kernel(begin + first - 50 * US, begin + first);
        program.trace.operator(host, "aten::_foreach_mul_", begin + first..end);
        program.kernel(end, t + STEP);
    })
}

/// The slow operators of an optimizer on the GPU were an optimizer on the CPU.
#[test]
fn an_optimizer_whose_operators_launch_its_update_is_not_on_the_cpu() {
    let is_on_cpu = |run: &Diagnosis| run.host.iter().any(|work| work.what == HostUse::Optimizer);
    assert!(!is_on_cpu(&optimizer_that_launches(2900 * US)));
    // It scales gradients on the device, and updates on the CPU.
    let run = optimizer_that_launches(100 * US);
    assert!(is_on_cpu(&run) && ids(&run).contains(&"cpu_optimizer"), "{:?}", ids(&run));
}

#[test]
fn long_python_time_is_reported_with_the_way_to_see_it() {
    let run = Program::after_work(|_, _, _| ());
    assert_eq!(ids(&run), ["python_time"]);
    let found = finding(&run, FindingId::PythonTime);
    assert_saves(found, 1.2, 4.0);
    assert!(found.fix.starts_with("Record with with_stack=True"), "{}", found.fix);
    let garbage = Program::after_work(|trace, host, t| {
        trace.python_frame(host, "<built-in method collect of module object at 0x7f>", t..t + 4 * MS);
    });
    assert!(finding(&garbage, FindingId::PythonTime).fix.contains("gc.freeze()"));
}

/// 60 pieces of 50 µs: the host is launching, not busy with something else.
#[test]
fn short_python_between_launches_is_not_python_time() {
    let run = Program::of(|program, t| {
        for launch in 0..60 {
            let at = t + launch * 150 * US + 50 * US;
            program.kernel(at, at + 100 * US);
        }
        program.kernel(t + 9_050 * US, t + STEP);
    });
    assert_eq!(ids(&run), ["launch_bound"]);
}

type Hook = fn(&mut TraceBuilder, TrackId, std::ops::Range<i64>);

/// A hook of 3 ms without operators inside, which moves a weight of 1 MiB.
fn hooked(hook: Hook) -> Diagnosis {
    Program::of(move |program, t| {
        hook(&mut program.trace, program.host, t..t + 3 * MS);
        let weight = Transfer::host_to_device(MemoryKind::Pinned, 1 << 20);
        program.copy(t + MS..t + MS + 5 * US, weight, t + MS + 10 * US..t + MS + 60 * US);
        program.kernel(t + 4 * MS, t + STEP);
    })
}

#[test]
fn hooks_of_frameworks_are_reported_with_their_own_settings() {
    let annotated = hooked(|trace, host, time| {
        trace.annotation(host, "FSDP::pre_forward (layers.0)", time);
    });
    assert_eq!(ids(&annotated), ["framework_hooks"]);
    let fsdp = finding(&annotated, FindingId::FrameworkHooks);
    assert_saves(fsdp, 0.882, 2.94);
    assert!(fsdp.fix_code.as_deref().unwrap().contains("set_modules_to_forward_prefetch"));
    let framed = hooked(|trace, host, time| {
        trace.python_frame(host, "accelerate/hooks.py(358): pre_forward", time);
    });
    let accelerate = finding(&framed, FindingId::FrameworkHooks);
    assert_eq!(accelerate.evidence["framework"], "accelerate");
    let group = hooked(|trace, host, time| {
        trace.python_frame(host, "diffusers/hooks/group_offloading.py(200): onload_", time);
    });
    assert!(finding(&group, FindingId::FrameworkHooks).fix.contains("leaf_level"));
}

#[test]
fn a_frame_around_the_whole_forward_is_not_a_hook() {
    let run = hooked(|trace, host, time| {
        trace.python_frame(host, "accelerate/hooks.py(186): new_forward", time);
    });
    assert_eq!(ids(&run), ["python_time"]);
}

/// 64 copies per step, issued every `pitch`; each takes `time` on the device after the previous one.
fn loop_of_copies(bytes: u64, pitch: i64, time: i64) -> Diagnosis {
    Program::of(|program, t| {
        let mut free = t;
        for number in 0..64 {
            let call = t + number * pitch;
            let start = free.max(call + 8 * US);
            free = start + time;
            let transfer = Transfer::host_to_device(MemoryKind::Pinned, bytes);
            program.copy(call..call + 5 * US, transfer, start..free);
        }
        program.kernel(free - 20 * US, t + STEP);
    })
}

/// 192 KiB take 4 µs on the bus and 40 µs to issue.
#[test]
fn copies_that_take_longer_to_issue_than_to_run_are_reported() {
    let run = loop_of_copies(192 << 10, 40 * US, 4 * US);
    let found = finding(&run, FindingId::CopyCalls);
    assert_evidence(found, "copies_per_step", 64.0);
    assert_evidence(found, "bytes_per_step", f64::from(64 * (192 << 10)));
    assert_evidence(found, "device_ms_per_step", 0.256);
    assert!(found.saves_ms_per_step.high <= 64.0 * 0.04, "{:?}", found.saves_ms_per_step);
}

#[test]
fn copies_that_take_longer_to_run_than_to_issue_are_not() {
    let run = loop_of_copies(4 << 20, 20 * US, 80 * US);
    assert!(!ids(&run).contains(&"copy_calls"), "{:?}", ids(&run));
}

/// One blocking D2H copy of 8 MiB to pageable memory per step.
fn saved(time: i64) -> Diagnosis {
    Program::of(|program, t| {
        let copy = t + 20 * US..t + 20 * US + time;
        program.copy(t..copy.end, Transfer::device_to_host(MemoryKind::Pageable, 8 << 20), copy.clone());
        program.kernel(copy.end, t + STEP);
    })
}

#[test]
fn slow_copies_to_pageable_memory_go_to_fresh_memory() {
    let run = saved(4 * MS);
    assert_eq!(ids(&run), ["page_faults"]);
    assert_evidence(finding(&run, FindingId::PageFaults), "gbps_with_host", 8.388608 / 4.0);
    assert_eq!(ids(&saved(700 * US)), ["pageable_d2h"], "12 GB/s: the memory is reused");
}

/// 32 MiB up and 32 MiB down, each at 55 GB/s, in this order.
fn both_ways(up_first: bool) -> Diagnosis {
    const TIME: i64 = 610 * US;
    Program::of(|program, t| {
        let up = Transfer::host_to_device(MemoryKind::Pinned, 32 << 20);
        let down = Transfer::device_to_host(MemoryKind::Pinned, 32 << 20);
        let (first, second) = if up_first { (up, down) } else { (down, up) };
        program.copy(t..t + 5 * US, first, t + 10 * US..t + 10 * US + TIME);
        program.queued_kernel(t + 20 * US, t + 620 * US..t + 5 * MS);
        program.copy(t + 30 * US..t + 35 * US, second, t + 5 * MS..t + 5 * MS + TIME);
        program.queued_kernel(t + 40 * US, t + 5_610 * US..t + STEP);
    })
}

#[test]
fn data_that_goes_up_and_comes_down_is_copied_back() {
    let run = both_ways(true);
    let found = finding(&run, FindingId::CopiedBack);
    assert_evidence(found, "d2h_bytes_per_step", f64::from(32 << 20));
    assert_evidence(found, "returned_share", 1.0);
    assert_evidence(found, "exposed_ms_per_step", 0.61);
    assert!(found.saves_ms_per_step.high <= 1.05 * 0.61, "{:?}", found.saves_ms_per_step);
    assert!(!ids(&both_ways(false)).contains(&"copied_back"), "gradients down, then weights up");
}

/// A host far ahead queues copies of `time` on one stream, back to back, and for each a kernel of 9 ms that waits for it.
fn streamed(time: i64) -> Diagnosis {
    let mut trace = TraceBuilder::default();
    let (host, compute, side) = (trace.thread(1, 1), trace.stream(0, 7), trace.stream(0, 20));
    let period = time.max(9 * MS) + 2 * US;
    for number in 0..20 {
        let (t, at) = (number * 100 * US, number * period + 20 * US);
        let id = 2 * number as u64 + 1;
        trace.annotation(host, &format!("ProfilerStep#{number}"), t..t + 100 * US);
        trace.runtime_call(host, "cudaMemcpyAsync", t + US..t + 6 * US).correlation(id);
        let transfer = Transfer::host_to_device(MemoryKind::Pinned, time as u64 * 54);
        trace.copy(side, transfer, at..at + time).correlation(id);
        trace.runtime_call(host, "cudaLaunchKernel", t + 10 * US..t + 15 * US).correlation(id + 1);
        trace.kernel(compute, "gemm", at + time + 2 * US..at + time + 9 * MS).correlation(id + 1);
    }
    let machine = Machine::named("pcie5x16").unwrap();
    diagnose(&trace.finish(), &Source::named("built"), &machine, &Options::default())
}

#[test]
fn a_link_that_is_always_busy_is_saturated() {
    let run = streamed(9_800 * US);
    let found = finding(&run, FindingId::LinkSaturated);
    assert!(is_near(found.evidence["gbps"].as_f64().unwrap(), 54.0), "{:?}", found.evidence);
    let saves = found.saves_ms_per_step;
    assert!(0.0 <= saves.low && saves.low <= saves.high && saves.high <= 1.0, "{saves:?}");
    assert!(!ids(&streamed(5 * MS)).contains(&"link_saturated"));
}

/// "Record with with_stack=True (torch.profiler)" for a C++ program, and 30% to 100% of time in which the host may sleep.
#[test]
fn what_a_program_without_pytorch_does_beside_cuda_is_unknown() {
    let run = Program::in_trace(TraceBuilder::default(), |program, t| program.kernel(t + 4 * MS, t + STEP));
    let found = finding(&run, FindingId::PythonTime);
    assert!(found.fix.starts_with("Record with nsys profile --trace=cuda,nvtx,osrt"), "{}", found.fix);
    assert!(!found.saving_known && found.saves_ms_per_step.high == 0.0, "{:?}", found.saves_ms_per_step);
    assert!(run.verdict.statement.contains("makes no CUDA call"), "{}", run.verdict.statement);
    assert!(!format!("{} {} {}", run.verdict.statement, found.title, found.seen).contains("Python"));
}

/// `aten::normal_` draws a million numbers in 3 ms: pinning was said to take 2.8 ms off that, for pages that are touched first.
#[test]
fn random_numbers_are_not_drawn_faster_into_pinned_memory() {
    let run = Program::of(|program, t| {
        program.trace.operator(program.host, "aten::normal_", t..t + 3 * MS);
        let pageable = Transfer::host_to_device(MemoryKind::Pageable, 4 << 20);
        program.copy(t + 3 * MS..t + 3_700 * US, pageable, t + 3_020 * US..t + 3_690 * US);
        program.kernel(t + 4 * MS, t + STEP);
    });
    let found = finding(&run, FindingId::CpuOperators);
    assert!(found.fix.contains("create the tensor there (device=\"cuda\")"), "{}", found.fix);
    assert_eq!(run.host[0].what, HostUse::Random);
    let pinned = finding(&run, FindingId::PageableCopies);
    assert!(pinned.saves_ms_per_step.high < 1.3, "{:?}", pinned.saves_ms_per_step);
}

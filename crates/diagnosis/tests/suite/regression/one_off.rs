//! Is a run that does each thing once distinguished from a loop? Found in traces that other people published.

use busbound_diagnosis::{Bound, Diagnosis, Finding, FindingId, Options, Source, diagnose, survey, what_if};
use busbound_machine::Machine;
use busbound_trace::{Direction, Interval, MemoryKind, Timestamp, Trace, TraceBuilder, Transfer, format};
use serde_json::Value;

use super::events::{H2D, call, check_words, copy, diagnosis, kernel};

const GPU: &str = "NVIDIA A100-SXM4-40GB";
const FROM_PAGEABLE: &str = "Memcpy HtoD (Pageable -> Device)";
const TO_PAGEABLE: &str = "Memcpy DtoH (Device -> Pageable)";

fn found(run: &Diagnosis, id: FindingId) -> &Finding {
    run.findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("{:?}", run.findings))
}

/// A launch call of 247 ms, the first of its process, was counted as a clock that is 247 ms off.
#[test]
fn a_kernel_that_its_first_launch_loads_is_not_late() {
    let events = [
        call("cudaLaunchKernel", 1, 0, 247_000),
        kernel("k", 7, 1, 246_900, 20_000),
        call("cudaDeviceSynchronize", 2, 247_010, 19_900),
    ];
    let run = diagnosis(&events, GPU);
    check_words(&run);
    assert!(!run.verdict.statement.contains("clocks"), "{}", run.verdict.statement);
}

/// Late by more than the longest queue after its call returned: the clocks are apart.
#[test]
fn a_kernel_long_after_its_launch_is_late() {
    let events = [call("cudaLaunchKernel", 1, 0, 10), kernel("k", 7, 1, 246_900, 20_000)];
    let run = diagnosis(&events, GPU);
    assert!(run.verdict.statement.contains("clocks"), "{}", run.verdict.statement);
}

/// Launches every 10 µs, kernels of 30 µs: the part of them that begins before `end`.
fn window(end: u32) -> Vec<Value> {
    let launches = (0..400).map(|i| (i * 10, i + 1)).filter(|(at, _)| *at < end);
    let launches = launches.map(|(at, id)| call("cudaLaunchKernel", id, at, 5));
    let kernels = (0..400).map(|i| (20 + i * 30, i + 1)).filter(|(at, _)| *at < end);
    launches.chain(kernels.map(|(at, id)| kernel("k", 7, id, at, 30))).collect()
}

fn incomplete(events: &[Value]) -> (bool, Diagnosis) {
    let run = diagnosis(events, GPU);
    (!run.source.complete, run)
}

/// Two of three launches have no kernel, because it runs after the window: the profiler was said to have dropped records.
#[test]
fn work_that_is_queued_where_a_window_ends_is_not_lost() {
    let (is_incomplete, run) = incomplete(&window(3_000));
    assert!(!is_incomplete);
    assert_eq!(run.verdict.bound, Bound::Compute, "{}", run.verdict.statement);
}

/// The same calls, and a GPU that looks idle long before the recording ends: its kernels are lost.
#[test]
fn kernels_that_end_before_the_recording_does_are_lost() {
    let is_early = |event: &&Value| event["cat"] != "kernel" || event["ts"].as_u64().unwrap() < 1_000;
    let events = window(3_000);
    let early: Vec<Value> = events.iter().filter(is_early).cloned().collect();
    let (is_incomplete, run) = incomplete(&early);
    assert!(is_incomplete);
    assert_eq!(run.verdict.bound, Bound::Unknown);
}

/// Every third kernel is missing, of a queue that is as deep: those are lost.
#[test]
fn kernels_missing_from_a_deep_queue_are_lost() {
    let is_kept = |event: &&Value| {
        event["cat"] != "kernel" || !event["args"]["correlation"].as_u64().unwrap().is_multiple_of(3)
    };
    let events = window(12_500);
    let kept: Vec<Value> = events.iter().filter(is_kept).cloned().collect();
    assert!(!incomplete(&events).0);
    assert!(incomplete(&kept).0);
}

/// Kernels of 140 µs in a recording of 262 ms were a verdict, with a fix for 7 µs.
#[test]
fn a_few_short_kernels_in_a_long_recording_have_no_verdict() {
    let events = [
        call("cudaMallocManaged", 1, 0, 74_000),
        call("cudaLaunchKernel", 2, 74_100, 100),
        kernel("add", 7, 2, 74_250, 109),
        kernel("add", 7, 3, 74_400, 30),
        call("cudaLaunchKernel", 3, 74_300, 50),
        call("cudaDeviceSynchronize", 4, 74_400, 180_000),
    ];
    let run = diagnosis(&events, GPU);
    check_words(&run);
    assert_eq!(run.verdict.bound, Bound::Unknown);
    let said = "2 kernels, 139 µs in total, are the only GPU work in this recording";
    assert!(run.verdict.statement.contains(said), "{}", run.verdict.statement);
}

/// Thousands of short kernels in no order, each read back: nothing repeats exactly, so there are no iterations.
fn irregular() -> Vec<Value> {
    let (mut events, mut at, mut random) = (vec![call("cudaMalloc", 1, 0, 141_000)], 141_100u32, 7u32);
    for id in 2..2_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let name = ["find", "mark", "solve", "reset", "set"][(random >> 16) as usize % 5];
        events.push(call("cudaLaunchKernel", id, at, 6));
        events.push(kernel(name, 7, id, at + 8, 2));
        at += 9 + (random >> 24) % 7;
    }
    events
}

/// The context was created before them in 141 ms, more than they take together: that was all that was said.
#[test]
fn a_context_created_before_thousands_of_kernels_does_not_withhold_the_verdict() {
    let run = diagnosis(&irregular(), GPU);
    check_words(&run);
    assert_eq!(run.verdict.bound, Bound::Launch, "{}", run.verdict.statement);
}

/// "Without its kernels, a trace would take 80.3 ms" of 80.8 ms: the launches were long because the queue was full of kernels.
#[test]
fn launches_that_wait_for_room_in_the_queue_cost_nothing_without_kernels() {
    let mut events = Vec::new();
    let mut at = 0u32;
    for i in 0..4_000u32 {
        let ends_of_earlier = if i >= 1_000 { 20 + (i - 1_000) * 100 } else { 0 };
        let took = if ends_of_earlier > at + 5 { ends_of_earlier - at } else { 5 };
        events.push(call("cudaLaunchKernel", i + 1, at, took));
        events.push(kernel("k", 7, i + 1, 20 + i * 100, 99));
        at += took + 1;
    }
    let run = diagnosis(&events, GPU);
    assert_eq!(run.verdict.bound, Bound::Compute, "{}", run.verdict.statement);
    let headroom = run.verdict.headroom.unwrap();
    assert!(headroom.step_if_free_ms < 0.2 * run.window.baseline_ms, "{headroom:?}");
}

/// Data in, 50 kernels, data out.
fn load_compute_store() -> Vec<Value> {
    let mut events = vec![
        call("cudaMemcpyAsync", 1, 0, 105_000),
        copy(FROM_PAGEABLE, 7, 1, 10, 104_900, 512_000_000),
        call("cudaMemcpyAsync", 2, 105_010, 105_000),
        copy(FROM_PAGEABLE, 7, 2, 105_020, 104_900, 512_000_000),
    ];
    for i in 0..50 {
        events.push(call("cudaLaunchKernel", 10 + i, 210_020 + i * 10, 8));
        events.push(kernel(&format!("solve{i}"), 7, 10 + i, 210_040 + i * 8_000, 8_000));
    }
    events.push(call("cudaMemcpyAsync", 99, 210_600, 400_000 + 105_000));
    events.push(copy(TO_PAGEABLE, 7, 99, 610_050, 104_900, 512_000_000));
    events
}

/// "1.22 s → 1.08–1.10 s by pinning host buffers", in a program that copies each of them once: pinning 1.5 GB takes longer.
#[test]
fn buffers_that_are_copied_once_are_not_worth_pinning() {
    let run = diagnosis(&load_compute_store(), GPU);
    check_words(&run);
    assert_eq!(run.prize, None);
    let finding = found(&run, FindingId::PageableCopies);
    assert_eq!(finding.saves_ms_per_step.high, 0.0);
    assert!(finding.candidate.is_empty(), "{:?}", finding.candidate);
    assert!(finding.fix.contains("copied once"), "{}", finding.fix);
    assert!(run.findings.iter().all(|finding| finding.saves_ms_per_step.high == 0.0), "{:?}", run.findings);
}

/// Copies between the kernels are copied again and again.
#[test]
fn buffers_that_are_copied_between_kernels_are_worth_pinning() {
    let mut events = load_compute_store();
    for i in 0..6u32 {
        let at = 620_000 + 200_000 + i * 120_000;
        events.push(call("cudaMemcpyAsync", 200 + 2 * i, at, 105_000));
        events.push(copy(FROM_PAGEABLE, 7, 200 + 2 * i, at + 10, 104_900, 512_000_000));
        events.push(call("cudaLaunchKernel", 201 + 2 * i, at + 105_010, 8));
        events.push(kernel(&format!("more{i}"), 7, 201 + 2 * i, at + 105_030, 9_000));
    }
    let run = diagnosis(&events, GPU);
    assert!(found(&run, FindingId::PageableCopies).saves_ms_per_step.high > 0.0);
}

/// "104 ms → 11.7–76.3 ms by moving host work out of the loop", where no loop is to be seen.
#[test]
fn host_work_in_a_trace_without_steps_has_no_loop_and_no_known_saving() {
    let (mut events, mut random) = (Vec::new(), 7u32);
    for i in 0..30u32 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let at = i * 7_000 + i * i * 20;
        events.push(call("cudaLaunchKernel", i + 1, at, 8));
        events.push(kernel(&format!("k{}", random >> 28), 7, i + 1, at + 10, 900));
    }
    let run = diagnosis(&events, GPU);
    check_words(&run);
    assert_eq!(run.prize, None);
    let finding = found(&run, FindingId::PythonTime);
    assert!(!finding.saving_known);
    assert!(!finding.fix.contains("loop") && !finding.fix.contains("every N steps"), "{}", finding.fix);
}

/// "30.8 ms/step → down to 105 µs by finding what slows the link down": copies in both directions at the same time.
#[test]
fn a_slow_link_still_has_to_carry_the_busier_direction() {
    let mut events = Vec::new();
    for i in 0..10u32 {
        let at = i * 31_000;
        events.push(super::events::step(i, at, 30_990));
        for (j, (name, bytes)) in
            [(H2D, 154_000_000), ("Memcpy DtoH (Device -> Pinned)", 154_000_000)].iter().enumerate()
        {
            let id = 2 * i + j as u32 + 1;
            events.push(call("cudaMemcpyAsync", id, at + 10 + j as u32 * 10, 6));
            events.push(copy(name, 7 + j as u32, id, at + 40, 30_600, *bytes));
        }
    }
    let run = diagnosis(&events, GPU);
    // 154 MB at no more than 32 GB/s.
    let left = 31.0 - found(&run, FindingId::SlowLink).saves_ms_per_step.high;
    assert!(left > 4.8, "{left}");
    assert!(left < 10.0, "{left}");
}

/// One pause of 5 s among steps of 100 ms made each millisecond that pinning saves thirteen: "1.70 s → 695 ms" for copies of 71 ms per step.
#[test]
fn a_pause_before_the_steps_is_not_saved_by_pinning() {
    let mut events = Vec::new();
    for i in 0..4u32 {
        let at = if i == 0 { 0 } else { 5_000_000 + (i - 1) * 100_000 };
        let start = if i == 0 { 4_900_000 } else { at };
        let id = 3 * i + 1;
        events.push(super::events::step(i, at, start + 99_900 - at));
        events.push(call("cudaLaunchKernel", id, at + 10, 8));
        events.push(kernel("first", 7, id, at + 30, 900));
        events.push(call("cudaMemcpyAsync", id + 1, start + 1_010, 60_000));
        events.push(copy(FROM_PAGEABLE, 7, id + 1, start + 1_020, 59_900, 250_000_000));
        events.push(call("cudaLaunchKernel", id + 2, start + 61_020, 8));
        events.push(kernel("second", 7, id + 2, start + 61_040, 38_000));
    }
    let run = super::events::with(&events, |options| options.warmup = Some(0));
    let finding = found(&run, FindingId::PageableCopies);
    assert!(run.window.baseline_ms > 1_000.0, "{:?}", run.window);
    assert!(finding.saves_ms_per_step.high < 100.0, "{:?}", finding.saves_ms_per_step);
    assert!(finding.saves_ms_per_step.high > 30.0, "{:?}", finding.saves_ms_per_step);
}

fn nanos(from: i64, length: i64) -> Interval {
    Interval::new(Timestamp::from_nanos(from), Timestamp::from_nanos(from + length))
}

/// A program in CUDA, recorded by Nsight Systems: six iterations of a pageable copy and a kernel, with other times each.
fn cuda_program(kernel: &str) -> Trace {
    let mut trace = TraceBuilder::new(format("nsys-sqlite").unwrap());
    let (thread, stream) = (trace.thread(1, 1), trace.stream(0, 7));
    let transfer = Transfer {
        bytes: Some(busbound_trace::Bytes::new(256_000_000)),
        direction: Direction::HostToDevice,
        src: MemoryKind::Pageable,
        dst: MemoryKind::Device,
    };
    for i in 0..12u64 {
        let at = i as i64 * 70_000_000;
        trace.runtime_call(thread, "cudaMemcpy", nanos(at, 60_000_000)).correlation(2 * i + 1);
        trace.copy(stream, transfer, nanos(at + 10_000, 59_900_000)).correlation(2 * i + 1);
        trace.runtime_call(thread, "cudaLaunchKernel", nanos(at + 60_010_000, 8_000)).correlation(2 * i + 2);
        trace.kernel(stream, kernel, nanos(at + 60_030_000, 9_900_000)).correlation(2 * i + 2);
    }
    trace.finish()
}

/// A program in Fortran had the advice to call `buf.pin_memory()`.
#[test]
fn advice_for_a_program_without_pytorch_names_the_calls_of_cuda() {
    let fix = |kernel: &str| {
        let run = diagnose(
            &cuda_program(kernel),
            &Source::named("t"),
            &Machine::named("a100-sxm").unwrap(),
            &Options::default(),
        );
        found(&run, FindingId::PageableCopies).fix.clone()
    };
    let cuda = fix("nvkernel_solve_F1L210_2");
    assert!(cuda.contains("cudaMallocHost") && !cuda.contains("pin_memory"), "{cuda}");
    let torch = fix("void at::native::vectorized_elementwise_kernel<4>");
    assert!(torch.contains("pin_memory"), "{torch}");
}

/// The survey names no missing records in a window whose queue is full.
#[test]
fn the_survey_of_a_cut_window_is_complete() {
    let survey = survey(&super::events::trace(&window(3_000)), &Source::named("t"));
    assert!(survey.headline.starts_with("Complete"), "{}", survey.headline);
}

/// "`graph` gives 1.08 ms/trace instead of 773 ms, 718.0x faster", of the start of a program.
#[test]
fn nothing_is_predicted_from_the_start_of_a_program() {
    let mut events = Vec::new();
    for i in 0..20u32 {
        let at = i * 40_000;
        events.push(call("cudaLaunchKernel", i + 1, at, 25_000));
        events.push(kernel(&format!("kernel{i}"), 7, i + 1, at + 25_100, 50));
    }
    let trace = super::events::trace(&events);
    let answer = what_if(&trace, "t", &Machine::default(), &Options::default(), &[]);
    let why = answer.unwrap_err().to_string();
    assert!(why.contains("loading kernels at their first use"), "{why}");
}

//! What an answer left unsaid, or said of too much. Each was wrong on a public trace; these are small ones like it.

use busbound_diagnosis::{Bound, FindingId, LimitationId};
use busbound_trace::{Interval, MemoryKind, OsCall, Transfer};

use super::claims::{MS, Program, US, found};

/// Ten iterations of 10 ms.
fn iterations(program: &mut Program, from: i64) {
    for i in 0..10i64 {
        let at = from + i * 10 * MS;
        for (place, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            let at = at + place as i64 * 1_900 * US;
            program.kernel(name, at, at + 10 * US, 1_800 * US);
        }
    }
}

/// A worker starts for two seconds after a first kernel: "501 ms per iteration on average", where each takes 334 ms.
#[test]
fn what_comes_before_the_first_iteration_is_in_none() {
    let mut program = Program::new();
    program.kernel("set_up", 0, 10 * US, 100 * US);
    iterations(&mut program, 200 * MS);
    let run = program.diagnosed();
    assert!((run.window.baseline_ms - 10.0).abs() < 0.5, "{} ms", run.window.baseline_ms);
    assert!(run.time.analyzed_ms < 110.0, "{} ms", run.time.analyzed_ms);
    let said = run.limitations.iter().find(|limitation| limitation.id == LimitationId::Coverage).unwrap();
    assert!(
        said.text.contains("of the 299 ms in which the GPU had work; before: 200 ms (GPU 0% busy)"),
        "{said:?}"
    );
}

#[test]
fn iterations_that_are_nearly_all_of_the_time_need_no_remark() {
    let mut program = Program::new();
    iterations(&mut program, 0);
    let run = program.diagnosed();
    assert!(run.limitations.iter().all(|limitation| limitation.id != LimitationId::Coverage));
}

/// Eight bytes go up from pageable memory behind long kernels, and the host waits for them instead of launching short ones: "host syncs busy
/// 0 ns, CUDA graphs".
#[test]
fn a_copy_of_a_few_bytes_that_waits_for_everything_is_a_sync() {
    let mut program = Program::new();
    let mut at = 0;
    for i in 0..40i64 {
        let name = |k: i64| format!("k{}", (i * 7 + k * k) % 97);
        for k in 0..20 {
            program.kernel(&name(k), at + k * 20 * US, at + k * 20 * US + 10 * US, 5 * US);
        }
        let long = at + 420 * US;
        for k in 0..5 {
            program.kernel(&name(20 + k), long + k * 10 * US, long + 10 * US + k * 100 * US, 100 * US);
        }
        let (host, end) = (program.host, long + 510 * US);
        program.trace.operator(host, "aten::copy_", long + 50 * US..end + 20 * US);
        let up = Transfer::host_to_device(MemoryKind::Pageable, 8);
        program.copy(long + 52 * US..long + 58 * US, up, end..end + US);
        let wait = program.trace.runtime_call(host, "cudaStreamSynchronize", long + 59 * US..end + 15 * US);
        wait.correlation(1_000_000 + i as u64);
        at = end + 30 * US;
    }
    let run = program.diagnosed();
    let finding = found(&run, FindingId::SyncInLoop).unwrap_or_else(|| panic!("{:?}", run.findings));
    assert!(finding.fix.starts_with("Create small tensors on the GPU"), "{}", finding.fix);
}

/// A single-precision product is half of the kernel time, and the host is the other half of the problem: "CUDA graphs" was all there was.
#[test]
fn products_in_fp32_count_where_compute_is_one_of_two_bounds() {
    let mut program = Program::new();
    let mut at = 0;
    for i in 0..60i64 {
        // The host works as long as the kernels run.
        let name = if i % 2 == 0 { "ampere_sgemm_128x128_tn" } else { "reduce" };
        program.kernel(name, at, at + 10 * US, 900 * US);
        let wait =
            program.trace.runtime_call(program.host, "cudaDeviceSynchronize", at + 6 * US..at + 915 * US);
        wait.correlation(1_000_000 + i as u64);
        at += 1_800 * US + i * i % 7 * US;
    }
    program.name_gpu("NVIDIA A100-SXM4-40GB", (8, 0));
    let run = program.diagnosed();
    assert!(run.verdict.between.contains(&Bound::Compute), "{}", run.verdict.statement);
    assert!(found(&run, FindingId::Fp32Matmul).is_some(), "{:?}", run.findings);
}

/// Nsight traced that the host waits for a key: "what it does is not recorded".
#[test]
fn waits_in_system_calls_are_named() {
    let mut program = Program::new();
    for i in 0..10i64 {
        let at = i * 100 * MS;
        program.kernel("a", at, at + 10 * US, 5 * MS);
        program.kernel("b", at + 6 * MS, at + 6_010 * US, 5 * MS);
        let name = program.trace.name("getc");
        let interval = Interval::from(at + 12 * MS..at + 99 * MS);
        program.trace.os_call(OsCall { track: program.host, interval, name });
    }
    let run = program.diagnosed();
    assert_eq!(run.verdict.bound, Bound::Host, "{}", run.verdict.statement);
    let said = "waits for input from the terminal or a file, mostly in getc()";
    assert!(run.verdict.statement.contains(said), "{}", run.verdict.statement);
    let finding = found(&run, FindingId::PythonTime).unwrap();
    let waits = "while the host waits for input from the terminal or a file: ";
    assert!(!finding.saving_known && finding.seen.contains(waits), "{finding:?}");
}

/// An array goes up and its sorted form comes down to the same place, slowly: "this memory is new".
#[test]
fn results_may_go_to_where_their_input_was() {
    let of = |uploaded: u64| {
        let mut program = Program::new();
        let up = Transfer::host_to_device(MemoryKind::Pageable, uploaded);
        program.copy(0..100 * MS, up, 10 * US..100 * MS);
        for i in 0..40i64 {
            let at = 100 * MS + i * 10 * MS;
            program.kernel("exchange", at, at + 10 * US, 9 * MS);
        }
        let down = Transfer::device_to_host(MemoryKind::Pageable, 500_000_000);
        program.copy(500 * MS..801 * MS, down, 500 * MS + 10 * US..800 * MS);
        program.diagnosed()
    };
    assert!(found(&of(500_000_000), FindingId::PageFaults).is_none());
    let new = of(400_000_000);
    let finding = found(&new, FindingId::PageFaults).unwrap();
    assert!(finding.seen.contains("this memory is probably new"), "{}", finding.seen);
}

/// Four chunks, each with two uploads, a kernel and a download, and then a wait for each of four streams: the last "iteration" had half of the
/// launches and was counted whole, "20.4 ms per iteration".
#[test]
fn waits_at_the_end_do_not_complete_an_iteration() {
    let mut program = Program::new();
    let chunk = 24 * MS;
    for i in 0..4i64 {
        let (call, at) = (i * 100 * US, i * chunk);
        let up = Transfer::host_to_device(MemoryKind::Pinned, 100_000_000);
        let down = Transfer::device_to_host(MemoryKind::Pinned, 100_000_000);
        program.copy(call..call + 5 * US, up, at + 10 * MS / 10..at + 8 * MS);
        program.copy(call + 10 * US..call + 15 * US, up, at + 8 * MS..at + 15 * MS);
        program.kernel("add", call + 20 * US, at + 15 * MS, MS);
        program.copy(call + 30 * US..call + 35 * US, down, at + 16 * MS..at + 24 * MS);
    }
    for stream in 0..4u64 {
        let at = 400 * US + stream as i64;
        let wait = program.trace.runtime_call(program.host, "cudaStreamSynchronize", at..at + chunk * 4);
        wait.correlation(1_000_000 + stream);
    }
    let run = program.diagnosed();
    for group in &run.copies {
        let whole = group.count as f64 / run.window.step_count;
        assert!(
            (whole - whole.round()).abs() < 0.01,
            "{} in {} iterations",
            group.count,
            run.window.step_count
        );
    }
}

/// A training loop whose launches vary from step to step: "no iteration is detected", although the optimizer says where each step ends.
#[test]
fn an_optimizer_ends_the_steps_of_a_loop_that_varies() {
    let mut program = Program::new();
    for i in 0..12i64 {
        let at = i * 10 * MS;
        let count = 20 + i * i * 7 % 13;
        for k in 0..count {
            let at = at + k * 200 * US;
            program.kernel(&format!("k{}", (i * 31 + k * k * 17) % 101), at, at + 10 * US, 180 * US);
        }
        program.trace.annotation(program.host, "Optimizer.step#SGD.step", at + 9 * MS..at + 9_500 * US);
    }
    let run = program.diagnosed();
    let steps = run.window.steps.as_ref().expect("the optimizer marks them");
    assert_eq!(steps.count, 11);
    assert!((run.window.baseline_ms - 10.0).abs() < 0.2, "{} ms", run.window.baseline_ms);
}

/// Pageable copies of a program in confidential computing, and of one on an instance of a shared GPU.
#[test]
fn encrypted_copies_are_not_to_be_pinned_and_instances_share_their_link() {
    let of = |name: &str, is_confidential: bool| {
        let mut program = Program::new();
        for i in 0..20i64 {
            let at = i * 10 * MS;
            let up = Transfer::host_to_device(MemoryKind::Pageable, 25_000_000);
            program.copy(at..at + 5 * MS, up, at + 10 * US..at + 5 * MS);
            program.kernel("work", at + 5 * MS, at + 5_010 * US, 4 * MS);
        }
        program.name_gpu(name, (9, 0));
        program.trace.origin().is_confidential = is_confidential;
        program.diagnosed()
    };
    let has = |run: &busbound_diagnosis::Diagnosis, id| {
        run.limitations.iter().any(|limitation| limitation.id == id)
    };
    let plain = of("NVIDIA H100 80GB HBM3", false);
    assert!(found(&plain, FindingId::PageableCopies).is_some());
    assert!(!has(&plain, LimitationId::Confidential) && !has(&plain, LimitationId::SharedLink));
    let encrypted = of("NVIDIA H100 80GB HBM3", true);
    assert_eq!(encrypted.verdict.bound, plain.verdict.bound);
    assert!(has(&encrypted, LimitationId::Confidential));
    for finding in &encrypted.findings {
        let changes = finding.candidate.join(" ");
        assert!(
            !["pin", "prefetch", "async", "stage"].iter().any(|change| changes.contains(change)),
            "{finding:?}"
        );
    }
    assert!(found(&encrypted, FindingId::PageableCopies).is_none());
    assert!(has(&of("NVIDIA H100 80GB HBM3 MIG 1g.10gb", false), LimitationId::SharedLink));
}

/// A program in CUDA takes its memory from a pool, whose advice was to "take it from a pool (cudaMallocAsync)".
#[test]
fn a_program_that_uses_a_pool_keeps_its_memory() {
    let fix = |allocate: &str| {
        let mut program = Program::new();
        for i in 0..40i64 {
            let at = i * 5 * MS;
            program.trace.runtime_call(program.host, allocate, at..at + 2 * MS);
            program.kernel("solve", at + 2_010 * US, at + 2_020 * US, 2_500 * US);
            program.trace.runtime_call(
                program.host,
                "cudaDeviceSynchronize",
                at + 2_030 * US..at + 4_530 * US,
            );
        }
        let run = program.diagnosed();
        found(&run, FindingId::AllocationInLoop).unwrap_or_else(|| panic!("{:?}", run.findings)).fix.clone()
    };
    assert!(fix("cudaMallocAsync").contains("cudaMemPoolAttrReleaseThreshold"));
    assert!(fix("cudaMalloc").contains("take it from a pool"));
}

/// Device memory is allocated before each upload: "pinning host buffers saves 1.2 s", of 0.4 s of copies. Pinning leaves those calls as they are.
#[test]
fn pinning_does_not_make_calls_that_allocate_faster() {
    let mut program = Program::new();
    for i in 0..40i64 {
        let at = i * 40 * MS;
        program.trace.runtime_call(program.host, "cudaMallocPitch", at..at + 3 * MS);
        let call = at + 3_010 * US..at + 4_000 * US;
        let up = Transfer::host_to_device(MemoryKind::Pageable, 8_000_000);
        program.copy(call, up, at + 3_100 * US..at + 3_990 * US);
        program.kernel("search", at + 4_010 * US, at + 4_020 * US, 30 * MS);
        program.trace.runtime_call(program.host, "cudaDeviceSynchronize", at + 4_020 * US..at + 34_030 * US);
    }
    let run = program.diagnosed();
    let saves = found(&run, FindingId::PageableCopies).map_or(0.0, |finding| finding.saves_ms_per_step.high);
    assert!(saves < 42.0, "{saves} ms, of 40 times 0.89 ms of copies and 0.1 ms before them");
}

/// A solver on one stream that reads a flag after every few kernels: "2,664 times the host waits, for 5.10 ms … saves 25.8 ms … let streams wait
/// for each other". The reads were in what was saved, and not in what was said.
#[test]
fn reads_by_a_synchronous_copy_are_host_syncs() {
    let mut program = Program::new();
    for i in 0..200i64 {
        let at = i * 40 * US;
        program.kernel("reset", at, at + 8 * US, US);
        program.kernel("solve", at + 6 * US, at + 14 * US, 2 * US);
        let down = Transfer::device_to_host(MemoryKind::Pageable, 4);
        let read = at + 20 * US..at + 21 * US;
        program.named_copy("cudaMemcpyFromSymbol", at + 12 * US..at + 24 * US, down, read);
        program.trace.runtime_call(program.host, "cudaDeviceSynchronize", at + 26 * US..at + 28 * US);
    }
    let run = program.diagnosed();
    let finding = found(&run, FindingId::SyncInLoop).unwrap_or_else(|| panic!("{:?}", run.findings));
    assert!(finding.fix.starts_with("Keep values on the GPU"), "{}", finding.fix);
    assert!(finding.seen.starts_with("39"), "{}", finding.seen);
}

/// Kernels of one stream run in order, and the host waits after each: "Let streams wait for each other".
#[test]
fn advice_for_streams_needs_several_streams() {
    let fix = |streams: i64| {
        let mut program = Program::new();
        let other = program.trace.stream(0, 8);
        let first = program.stream;
        for i in 0..200i64 {
            let at = i * 100 * US;
            program.stream = if i % streams == 0 { first } else { other };
            program.kernel("k", at, at + 10 * US, 60 * US);
            program.trace.runtime_call(program.host, "cudaDeviceSynchronize", at + 6 * US..at + 75 * US);
        }
        let run = program.diagnosed();
        found(&run, FindingId::SyncInLoop).unwrap_or_else(|| panic!("{:?}", run.findings)).fix.clone()
    };
    assert!(fix(1).contains("the work of one stream runs in order"), "{}", fix(1));
    assert!(fix(2).contains("cudaStreamWaitEvent"), "{}", fix(2));
}

/// One forward and one backward pass of a program that was just started: "Host-bound: 90% of the 1.62 s trace is lost to CPU work on the host".
#[test]
fn a_program_that_loads_kernels_to_its_end_has_only_started() {
    let verdict = |last_load: i64| {
        let mut program = Program::new();
        for i in 0..30i64 {
            let (at, name) = (i * 20 * MS, format!("k{}", i.min(last_load)));
            // The first launch of a kernel loads it.
            let loads = if i <= last_load { 2_500 * US } else { 0 };
            program.trace.runtime_call(program.host, "cuLibraryLoadData", at..at + loads);
            program.kernel(&name, at + loads, at + loads + 10 * US, 100 * US);
            for k in 0..i % 7 {
                let again = at + 4 * MS + k * MS;
                program.kernel(&format!("k{}", k.min(i)), again, again + 10 * US, 100 * US);
            }
        }
        program.diagnosed().verdict
    };
    let started = verdict(29);
    assert_eq!(started.bound, Bound::Unknown, "{}", started.statement);
    assert!(started.statement.contains("loading kernels at their first use"), "{}", started.statement);
    assert_eq!(verdict(20).bound, Bound::Host, "{}", verdict(20).statement);
}

/// A layer that runs twelve times was all that an answer was about: the note that it leaves out a third of the time had no room.
#[test]
fn what_iterations_leave_out_comes_before_what_an_iteration_is() {
    let mut program = Program::new();
    program.kernel("set_up", 0, 10 * US, 100 * US);
    iterations(&mut program, 200 * MS);
    let run = program.diagnosed();
    let place = |id| run.limitations.iter().position(|limitation| limitation.id == id).unwrap();
    assert!(place(LimitationId::Coverage) < place(LimitationId::StepsByPeriod));
}

/// Two benchmarks with a pause of ten minutes between them: "Host-bound: 100% of 154 s per iteration on average (median 357 ms)".
#[test]
fn a_few_iterations_of_which_one_is_a_pause_say_nothing() {
    let bound = |pause: i64| {
        let mut program = Program::new();
        for i in 0..4i64 {
            let from = i * 100 * MS + if i == 3 { pause } else { 0 };
            for (place, name) in ["a", "b", "c", "d", "e", "f", "g", "h"].into_iter().enumerate() {
                let at = from + place as i64 * 12 * MS;
                program.kernel(name, at, at + 10 * US, 11 * MS);
            }
        }
        program.diagnosed().verdict
    };
    assert_eq!(bound(0).bound, Bound::Compute, "{}", bound(0).statement);
    let paused = bound(60_000 * MS);
    assert_eq!(paused.bound, Bound::Unknown, "{}", paused.statement);
}

/// Two GPUs whose kernels are loaded by one process each: "takes 497 ms of the 3.25 s in this trace", which is 1.62 s long.
#[test]
fn a_start_on_two_gpus_is_as_long_as_on_one() {
    let mut program = Program::new();
    for device in 0..2i32 {
        let (host, stream) =
            (program.trace.thread(1, i64::from(10 + device)), program.trace.stream(device, 7));
        for i in 0..10i64 {
            let (at, id) = (i * 100 * MS, (i64::from(100 * device) + i + 1) as u64);
            program.trace.runtime_call(host, "cudaLaunchKernel", at..at + 60 * MS).correlation(id);
            program.trace.kernel(stream, &format!("k{i}"), at + 60 * MS..at + 61 * MS).correlation(id);
        }
    }
    let verdict = program.diagnosed().verdict;
    assert!(verdict.statement.contains("of the 901 ms in this trace"), "{}", verdict.statement);
}

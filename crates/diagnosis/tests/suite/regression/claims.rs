//! Does an answer claim what the trace refutes, or does not show? Each was wrong on a public trace; these are small ones like it.

use busbound_diagnosis::{Bound, Diagnosis, Finding, FindingId, Options, Source, diagnose, what_if};
use busbound_machine::Machine;
use busbound_trace::{Gpu, GpuLimits, MemoryKind, TraceBuilder, TrackId, Transfer};
use busbound_whatif::replay::{CudaGraph, NoSync};

pub(super) const US: i64 = 1_000;
pub(super) const MS: i64 = 1_000_000;

/// A program on one stream.
pub(super) struct Program {
    pub(super) trace: TraceBuilder,
    pub(super) host: TrackId,
    pub(super) stream: TrackId,
    calls: u64,
}

impl Program {
    pub(super) fn new() -> Self {
        let mut trace = TraceBuilder::default();
        let (host, stream) = (trace.thread(1, 1), trace.stream(0, 7));
        Self { trace, host, stream, calls: 0 }
    }

    /// A launch call of 5 µs, and its kernel.
    pub(super) fn kernel(&mut self, name: &str, call: i64, start: i64, length: i64) {
        self.calls += 1;
        self.trace.runtime_call(self.host, "cudaLaunchKernel", call..call + 5 * US).correlation(self.calls);
        self.trace.kernel(self.stream, name, start..start + length).correlation(self.calls);
    }

    pub(super) fn copy(
        &mut self,
        call: std::ops::Range<i64>,
        transfer: Transfer,
        time: std::ops::Range<i64>,
    ) {
        self.named_copy("cudaMemcpyAsync", call, transfer, time);
    }

    pub(super) fn named_copy(
        &mut self,
        name: &str,
        call: std::ops::Range<i64>,
        transfer: Transfer,
        time: std::ops::Range<i64>,
    ) {
        self.calls += 1;
        self.trace.runtime_call(self.host, name, call).correlation(self.calls);
        self.trace.copy(self.stream, transfer, time).correlation(self.calls);
    }

    pub(super) fn name_gpu(&mut self, name: &str, capability: (u32, u32)) {
        let (name, memory) = (name.to_owned(), None);
        let gpu = Gpu {
            id: 0,
            name,
            memory,
            multiprocessors: None,
            compute_capability: Some(capability),
            link: None,
            limits: GpuLimits::default(),
        };
        self.trace.gpu(gpu);
    }

    pub(super) fn diagnosed(self) -> Diagnosis {
        let machine = Machine::named("pcie4x16").unwrap();
        diagnose(&self.trace.finish(), &Source::named("built"), &machine, &Options::default())
    }
}

pub(super) fn found(run: &Diagnosis, id: FindingId) -> Option<&Finding> {
    run.findings.iter().find(|finding| finding.id == id)
}

/// Two kernels by turns, one of which takes longer in the second half.
fn two_kernels(longest: &str, other_slows: bool) -> Diagnosis {
    let mut program = Program::new();
    let mut at = 0;
    for i in 0..1_000i64 {
        let slow = i64::from(i >= 400);
        let lengths = [42 * US + slow * 9 * US, 39 * US + if other_slows { slow * 8 * US } else { 0 }];
        for (name, length) in [longest, "integrate"].into_iter().zip(lengths) {
            program.kernel(name, i * 20 * US, at, length);
            at += length + US;
        }
    }
    program.diagnosed()
}

/// "The GPU clocks down", while the other kernel kept its pace: this one had more to do.
#[test]
fn a_kernel_that_slows_down_alone_is_not_a_lower_clock() {
    let claims = |run: &Diagnosis| found(run, FindingId::PowerLimited).is_some();
    assert!(!claims(&two_kernels("collide", false)));
    assert!(claims(&two_kernels("collide", true)));
    // The work of a matrix kernel is fixed by its grid; the other one may wait for memory.
    assert!(claims(&two_kernels("sm90_gemm", false)));
}

/// "Inconclusive: 13.7 → 3.89 ms by removing host syncs", where kernels start late on an idle GPU for a reason outside of the trace.
#[test]
fn nothing_is_promised_for_time_that_nobody_can_explain() {
    let mut program = Program::new();
    for i in 0..40i64 {
        let at = i * 500 * US;
        program.kernel("small", at, at + 400 * US, 20 * US);
        program.trace.runtime_call(program.host, "cudaStreamSynchronize", at + 6 * US..at + 425 * US);
        program.trace.operator(program.host, "aten::_coalesce", at..at + 430 * US);
    }
    let run = program.diagnosed();
    assert_eq!(run.verdict.bound, Bound::Unknown, "{}", run.verdict.statement);
    assert!(run.prize.is_none(), "{:?}", run.prize);
    let visible = run.window.baseline_ms * (1.0 - run.verdict.share);
    for finding in &run.findings {
        assert!(
            finding.saves_ms_per_step.high <= 1.01 * visible,
            "{}: {:?}",
            finding.id,
            finding.saves_ms_per_step
        );
    }
}

/// "By using CUDA graphs", where an allocation, a small copy and a sync follow each kernel: `whatif` found nothing to capture.
#[test]
fn launches_between_syncs_are_no_cuda_graph() {
    let mut program = Program::new();
    for i in 0..300i64 {
        let at = i * 60 * US;
        program.trace.driver_call(program.host, "cuMemAlloc_v2", at..at + 8 * US);
        program.kernel("fill", at + 15 * US, at + 25 * US, 3 * US);
        let small = Transfer::host_to_device(MemoryKind::Pageable, 1024);
        program.copy(at + 35 * US..at + 41 * US, small, at + 40 * US..at + 41 * US);
        program.trace.driver_call(program.host, "cuStreamSynchronize", at + 42 * US..at + 46 * US);
    }
    let run = program.diagnosed();
    let launches = found(&run, FindingId::LaunchBound).expect("the GPU waits for launches");
    assert!(!launches.fix.contains("Replay") && launches.saves_ms_per_step.high == 0.0, "{}", launches.fix);
    assert!(run.prize.is_none_or(|prize| prize.fixes.iter().all(|fix| fix.apply != ["graph"])));
}

/// A graph was predicted to be faster than its kernels: the step without the profiler is shorter than the replayed one.
#[test]
fn no_prediction_is_below_the_time_of_the_kernels() {
    let mut program = Program::new();
    let length = 40 * US;
    for i in 0..200i64 {
        let at = i * 100 * US;
        program.trace.operator(program.host, "aten::relu", at..at + 50 * US);
        program.kernel("relu", at + 20 * US, at + 30 * US, length);
    }
    let trace = program.trace.finish();
    let machine = Machine::named("pcie4x16").unwrap();
    let mut options = Options::default();
    options.wall_ms = Some(11.0);
    let answer = what_if(&trace, "built", &machine, &options, &[vec![CudaGraph.into()]]).unwrap();
    let kernels_ms = (200 * length) as f64 / 1e6;
    for scenario in &answer.scenarios {
        assert!(scenario.step_ms >= 0.999 * kernels_ms, "{}: {}", scenario.step_ms, kernels_ms);
    }
}

/// The recording of two processes ends while copies are queued on both GPUs: "the profiler dropped records", because the calls of
/// the second process were judged by the stream of the first.
#[test]
fn a_recording_that_ends_before_queued_work_is_complete() {
    let mut trace = TraceBuilder::default();
    let pinned = || Transfer::host_to_device(MemoryKind::Pinned, 4 << 20);
    for process in 1..3i64 {
        let (host, stream) = (trace.thread(process, process), trace.stream(process as i32 - 1, 7));
        let first = process as u64 * 100_000;
        for i in 0..400i64 {
            let (id, call) = (first + i as u64, i * 100 * US - process * 2 * MS);
            trace.runtime_call(host, "cudaMemcpyAsync", call..call + 5 * US).correlation(id);
            // The host is far ahead: the last 200 copies are still queued when the recording ends.
            let at = i * 200 * US;
            if i < 200 {
                trace.copy(stream, pinned(), at..at + 199 * US).correlation(id);
            }
            let kernel = id + 50_000;
            trace.runtime_call(host, "cudaLaunchKernel", call + 10 * US..call + 15 * US).correlation(kernel);
            if i < 200 {
                trace.kernel(stream, "gemm", at + 199 * US..at + 200 * US).correlation(kernel);
            }
        }
    }
    let machine = Machine::named("pcie4x16").unwrap();
    let run = diagnose(&trace.finish(), &Source::named("built"), &machine, &Options::default());
    assert_eq!(run.verdict.bound, Bound::Transfer, "{}", run.verdict.statement);
}

/// Two GPUs that copy the same: savings and bytes of both, and a trace twice as long as it is.
#[test]
fn savings_bytes_and_the_span_are_those_of_one_gpu() {
    let of = |gpus: i64| {
        let mut trace = TraceBuilder::default();
        for gpu in 0..gpus {
            let (host, stream) = (trace.thread(gpu + 1, gpu + 1), trace.stream(gpu as i32, 7));
            let copies = trace.stream(gpu as i32, 9);
            for i in 0..30i64 {
                let (id, at) = ((gpu * 1000 + 2 * i) as u64, i * 10 * MS);
                if gpu == 0 {
                    trace.annotation(host, &format!("ProfilerStep#{i}"), at..at + 10 * MS);
                }
                trace.runtime_call(host, "cudaMemcpyAsync", at..at + 5 * US).correlation(id);
                let pinned = Transfer::host_to_device(MemoryKind::Pinned, 220_000_000);
                trace.copy(copies, pinned, at + 10 * US..at + 9 * MS).correlation(id);
                trace.runtime_call(host, "cudaLaunchKernel", at + 10 * US..at + 15 * US).correlation(id + 1);
                trace.kernel(stream, "gemm", at + 9 * MS..at + 9_900 * US).correlation(id + 1);
            }
        }
        let machine = Machine::named("pcie4x16").unwrap();
        diagnose(&trace.finish(), &Source::named("built"), &machine, &Options::default())
    };
    let (one, two) = (of(1), of(2));
    assert!((two.window.span_ms - one.window.span_ms).abs() < 0.01, "{}", two.window.span_ms);
    let of = |run: &Diagnosis| {
        let finding = found(run, FindingId::BandwidthDeficit).expect("too many bytes for the link");
        (finding.saves_ms_per_step.high, finding.fix.clone())
    };
    let ((one_ms, one_fix), (two_ms, two_fix)) = (of(&one), of(&two));
    assert!((two_ms / one_ms - 1.0).abs() < 0.05, "{one_ms} and {two_ms}");
    assert_eq!(one_fix, two_fix);
}

/// 14 kernels of 35 µs in a recording of 149 ms: "Host-bound: 100%".
#[test]
fn a_few_kernels_that_run_once_are_a_start() {
    let mut program = Program::new();
    for i in 0..14i64 {
        let at = i * 10 * MS;
        program.kernel(&format!("kernel_{i}"), at, at + 20 * US, 3 * US);
    }
    let run = program.diagnosed();
    assert_eq!(run.verdict.bound, Bound::Unknown, "{}", run.verdict.statement);
}

/// A hundred iterations of 10 ms, and one of 600 ms with five times as many kernels, where the program does something else.
#[test]
fn a_detected_iteration_with_more_kernels_is_not_like_the_others() {
    let mut program = Program::new();
    for i in 0..101i64 {
        let at = i * 10 * MS;
        for (place, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            let at = at + place as i64 * 1_500 * US;
            program.kernel(name, at, at + 10 * US, 1_400 * US);
        }
    }
    let other = 1_011 * MS;
    for i in 0..25i64 {
        let at = other + i * 24 * MS;
        program.kernel(&format!("other_{i}"), at, at + 10 * US, 23 * MS);
    }
    let run = program.diagnosed();
    let steps = run.window.steps.as_ref().expect("the loop is found");
    assert!(
        (run.window.baseline_ms - 10.0).abs() < 0.5,
        "{} ms, {} steps",
        run.window.baseline_ms,
        steps.count
    );
}

/// Forty iterations of 10 ms with a pause of half a second between two of them: "50% of each 22 ms iteration waits for the host".
#[test]
fn one_pause_is_not_spread_over_all_iterations() {
    let mut program = Program::new();
    for i in 0..41i64 {
        let at = i * 10 * MS + if i > 15 { 500 * MS } else { 0 };
        for (place, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            let at = at + place as i64 * 1_800 * US;
            program.kernel(name, at, at + 10 * US, 1_700 * US);
        }
    }
    let run = program.diagnosed();
    assert!((run.window.baseline_ms - 10.0).abs() < 0.5, "{} ms", run.window.baseline_ms);
    assert_eq!(run.verdict.bound, Bound::Compute, "{}", run.verdict.statement);
    let said = run.window.outliers.iter().any(|outlier| outlier.statement.contains("took 510 ms (median 10"));
    assert!(said, "{:?}", run.window.outliers);
}

/// Arrays that go up before each kernel and come down after it, as `map(tofrom:)` does: "by pinning host buffers and prefetching", although
/// each upload needs the download just before it.
#[test]
fn what_comes_down_and_goes_straight_up_could_stay_on_the_gpu() {
    let of = |pause: i64| {
        let mut program = Program::new();
        let (bytes, length) = (256 << 20, 40 * MS);
        let mut at = 0;
        for _ in 0..12 {
            for transfer in [
                Transfer::host_to_device(MemoryKind::Pageable, bytes),
                Transfer::device_to_host(MemoryKind::Pageable, bytes),
            ] {
                for _ in 0..2 {
                    program.copy(at..at + length, transfer, at + 5 * US..at + length - 5 * US);
                    at += length + 100 * US;
                }
                if transfer == Transfer::host_to_device(MemoryKind::Pageable, bytes) {
                    program.kernel("work", at, at + 10 * US, 20 * MS);
                    at += 20 * MS + 50 * US;
                }
            }
            at += pause;
        }
        program.diagnosed()
    };
    let run = of(0);
    let again = found(&run, FindingId::RoundTrip).expect("the same bytes go up again");
    assert!(
        (again.evidence["bytes_down_and_up_per_step"].as_f64().unwrap() / f64::from(2 << 28) - 1.0).abs()
            < 0.1
    );
    let prize = run.prize.expect("pinned copies are faster");
    assert!(prize.fixes.iter().all(|fix| !fix.apply.iter().any(|change| change.starts_with("prefetch"))));
    // In 100 ms, the host can change 512 MiB.
    assert!(found(&of(100 * MS), FindingId::RoundTrip).is_none());
}

/// A program allocates for 240 ms, then runs for 1.4 ms: "`nosync` gives 2.36 ms instead of 1.53 ms, which is slower".
#[test]
fn what_comes_before_the_first_kernel_is_no_part_of_a_prediction() {
    let mut program = Program::new();
    let (allocated, pitch) = (240 * MS, 14 * US);
    program.trace.runtime_call(program.host, "cudaMalloc", 0..allocated - 10 * US).correlation(1_000_000);
    for i in 0..100i64 {
        let at = allocated + i * pitch;
        program.kernel("k", at, at + 6 * US, 5 * US);
        let wait = at + 4_100..at + pitch - 300;
        program
            .trace
            .runtime_call(program.host, "cudaDeviceSynchronize", wait)
            .correlation(2_000_000 + i as u64);
    }
    let trace = program.trace.finish();
    let machine = Machine::named("pcie4x16").unwrap();
    let answer = what_if(&trace, "built", &machine, &Options::default(), &[vec![NoSync.into()]]).unwrap();
    let [now, faster] = [answer.baseline_ms, answer.scenarios[0].step_ms];
    assert!((1.3..1.6).contains(&now) && (0.45..0.9).contains(&faster), "{now} → {faster} ms");
}

/// Three iterations that are 5% of the GPU's work, and then kernels that never repeat: "Launch-bound, compute 3%" of a busy GPU.
#[test]
fn iterations_that_cover_little_do_not_speak_for_the_run() {
    let mut program = Program::new();
    let pitch = 50 * US;
    for i in 0..120i64 {
        program.kernel(["a", "b", "c"][i as usize % 3], i * pitch, i * pitch + 10 * US, 5 * US);
    }
    let later = 120 * pitch;
    for i in 0..200i64 {
        let at = later + i * 210 * US;
        program.kernel(&format!("k{}", i * i % 197), at, at + 10 * US, 200 * US);
    }
    let run = program.diagnosed();
    assert!(run.window.steps.is_none(), "{:?}", run.window.steps);
    assert_eq!(run.verdict.bound, Bound::Compute, "{}", run.verdict.statement);
}

/// One vector addition in four pieces: "keep 92% of the copied data on the GPU", where all of it is copied once.
#[test]
fn data_that_is_copied_once_is_not_to_be_kept() {
    let mut program = Program::new();
    for i in 0..4i64 {
        let at = i * 1_500 * US;
        let up = Transfer::host_to_device(MemoryKind::Pinned, 16 << 20);
        program.copy(at..at + 5 * US, up, at + 10 * US..at + 1_300 * US);
        program.kernel(&format!("piece{i}"), at + 20 * US, at + 1_310 * US, 50 * US);
    }
    let run = program.diagnosed();
    let found = found(&run, FindingId::BandwidthDeficit).expect("the link is the limit");
    assert!(!found.saving_known && found.fix.starts_with("Send less"), "{}", found.fix);
}

/// A recording of the capture of one graph after another: "by using CUDA graphs".
#[test]
fn a_program_that_captures_graphs_is_at_its_start() {
    let mut program = Program::new();
    for i in 0..25i64 {
        let at = i * 2 * MS;
        program.trace.runtime_call(program.host, "cudaStreamBeginCapture", at..at + 5 * US);
        for k in 0..5i64 {
            let at = at + 100 * US + k * 100 * US;
            program.kernel(["a", "b", "c", "d", "e"][k as usize], at, at + 10 * US, 5 * US);
        }
        program.trace.runtime_call(program.host, "cudaStreamEndCapture", at + MS..at + MS + 50 * US);
    }
    let run = program.diagnosed();
    assert_eq!(run.verdict.bound, Bound::Unknown, "{}", run.verdict.statement);
    assert!(run.verdict.statement.contains("captures a CUDA graph"), "{}", run.verdict.statement);
    assert!(run.prize.is_none());
}

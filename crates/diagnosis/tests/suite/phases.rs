//! Loading, evaluation and checkpoints are reported apart from the steps, and loading says what bounds it.

use busbound_diagnosis::{
    Diagnosis, Loading, LoadingBound, Options, PhaseFound, PhaseKind, Source, diagnose,
};
use busbound_machine::Machine;
use busbound_trace::{
    Bytes, FileReads, Gpu, GpuLimits, MemoryKind, Nanos, ReadOptions, RecordedLink, Timestamp, TraceBuilder,
    TrackId, Transfer, open,
};

use crate::common::{diagnosis_of, root};

const MS: i64 = 1_000_000;

/// A run that is built: what came before its steps, and steps with a kernel each.
struct Run {
    trace: TraceBuilder,
    host: TrackId,
    stream: TrackId,
    correlation: u64,
}

impl Run {
    fn new() -> Self {
        let mut trace = TraceBuilder::default();
        let (host, stream) = (trace.thread(1, 1), trace.stream(0, 7));
        let link = RecordedLink { generation: 5, lanes: 16, most_generation: 5, most_lanes: 16 };
        trace.gpu(Gpu {
            id: 0,
            name: "NVIDIA H200".to_owned(),
            memory: None,
            multiprocessors: None,
            compute_capability: None,
            link: Some(link),
            limits: GpuLimits::default(),
        });
        Self { trace, host, stream, correlation: 0 }
    }

    /// A copy of 100 MB within a call, both in milliseconds.
    fn load(&mut self, from: MemoryKind, call: std::ops::Range<i64>, copy: std::ops::Range<i64>) {
        self.correlation += 1;
        let time = |range: std::ops::Range<i64>| range.start * MS..range.end * MS;
        self.trace.runtime_call(self.host, "cudaMemcpyAsync", time(call)).correlation(self.correlation);
        let transfer = Transfer::host_to_device(from, 100_000_000);
        self.trace.copy(self.stream, transfer, time(copy)).correlation(self.correlation);
    }

    /// Steps of these lengths in milliseconds, with a kernel each, from a time on; with a range inside where a name is given.
    fn steps(&mut self, from: i64, steps: &[(i64, Option<&str>)]) {
        let mut at = from * MS;
        for (number, (length, within)) in steps.iter().enumerate() {
            let end = at + length * MS;
            self.trace.annotation(self.host, &format!("ProfilerStep#{number}"), at..end);
            if let Some(name) = within {
                self.trace.annotation(self.host, *name, at + MS..end - MS);
            }
            self.correlation += 1;
            self.trace
                .runtime_call(self.host, "cudaLaunchKernel", at + 10_000..at + 20_000)
                .correlation(self.correlation);
            self.trace.kernel(self.stream, "gemm", at + 30_000..end - 30_000).correlation(self.correlation);
            at = end;
        }
    }

    /// The kernel's counts every 100 ms for 2 s, with this much more for each of the first 1.8 s, all in the order of their fields.
    fn files(&mut self, [read, disk, major_faults, minor_faults, user, system]: [u64; 6]) {
        // Before the recording, the process has read something else.
        for tick in 0..=20u64 {
            let until = tick.min(18);
            let nanos = |each: u64| Nanos::new((40_000_000 + each * until) as i64);
            self.trace.file_reads(FileReads {
                at: Timestamp::from_nanos(tick as i64 * 100 * MS),
                read: Bytes::new(777_777 + read * until),
                disk: Bytes::new(77_777 + disk * until),
                major_faults: 7 + major_faults * until,
                minor_faults: 77 + minor_faults * until,
                user: nanos(user),
                system: nanos(system),
            });
        }
    }

    fn diagnosis(self) -> Diagnosis {
        diagnose(&self.trace.finish(), &Source::named("run"), &Machine::default(), &Options::default())
    }
}

/// Ten copies one after the other, each inside a call that is `staging` milliseconds longer.
fn loaded(from: MemoryKind, copy: i64, staging: i64, within: i64) -> Diagnosis {
    let mut run = Run::new();
    run.trace.annotation(run.host, "from_pretrained", 0..within * MS);
    for i in 0..10 {
        let at = i * (copy + staging);
        run.load(from, at..at + copy + staging, at + staging..at + staging + copy);
    }
    run.steps(within, &[(100, None); 6]);
    run.diagnosis()
}

#[test]
fn loading_says_what_bounds_it_and_its_parts_add_up() {
    let cases = [
        // 100 MB in 2 ms are 50 of 63 GB/s.
        (loaded(MemoryKind::Pinned, 2, 0, 25), LoadingBound::Link, [20.0, 0.0, 5.0], "Copy fewer bytes"),
        (
            loaded(MemoryKind::Pageable, 20, 5, 300),
            LoadingBound::Copies,
            [200.0, 50.0, 50.0],
            "busbound run -- CMD",
        ),
        (loaded(MemoryKind::Pinned, 20, 0, 300), LoadingBound::Copies, [200.0, 0.0, 100.0], "larger pieces"),
        (
            loaded(MemoryKind::Pageable, 20, 5, 2000),
            LoadingBound::Unknown,
            [200.0, 50.0, 1750.0],
            "look the same here",
        ),
    ];
    for (diagnosis, bound, [copy, staging, unrecorded], fix) in cases {
        let [phase] = &diagnosis.phases[..] else { panic!("{:?}", diagnosis.phases) };
        let loading = phase.loading.as_ref().unwrap();
        assert_eq!((phase.kind, phase.found, phase.count), (PhaseKind::Loading, PhaseFound::Named, 1));
        assert_eq!((phase.h2d_bytes, loading.bound), (1_000_000_000, bound), "{}", phase.statement);
        let parts = [loading.copy_ms, loading.staging_ms, loading.unrecorded_ms];
        for (part, expected) in parts.into_iter().zip([copy, staging, unrecorded]) {
            assert!((part - expected).abs() < 1e-6, "{parts:?}");
        }
        let all: f64 = parts.iter().sum::<f64>() + loading.deserialization_ms + loading.operator_ms;
        assert!((all - phase.ms).abs() < 1e-6);
        assert!(loading.fix.contains(fix), "{}", loading.fix);
        assert!(phase.statement.starts_with("loading (`from_pretrained`, 1 time): "), "{}", phase.statement);
        assert!((diagnosis.window.steps.as_ref().unwrap().p50_ms - 100.0).abs() < 1.0);
    }
}

/// Loading of 2 s, of which copies take 200 ms, with these counts every 100 ms.
fn read_meanwhile(counts: [u64; 6]) -> (Loading, String) {
    let mut run = Run::new();
    run.trace.annotation(run.host, "busbound:phase=load", 0..2000 * MS);
    run.files(counts);
    for i in 0..10 {
        let at = 1_800 + i * 20;
        run.load(MemoryKind::Pinned, at..at + 20, at..at + 20);
    }
    run.steps(2000, &[(100, None); 6]);
    let diagnosis = run.diagnosis();
    let [phase] = &diagnosis.phases[..] else { panic!("{:?}", diagnosis.phases) };
    assert_eq!(phase.found, PhaseFound::Marked);
    (phase.loading.clone().unwrap(), phase.statement.clone())
}

/// Bytes in 100 ms, and nanoseconds of CPU time in them.
const READ: u64 = 120_000_000;
const BUSY: u64 = 95_000_000;
const IDLE: u64 = 10_000_000;

#[test]
fn the_kernels_counts_tell_disk_page_cache_and_cpu_apart() {
    let cases = [
        // Read with `read` from a cold disk, and as a mapped file.
        ([READ, READ, 0, 500, IDLE, IDLE], LoadingBound::Disk, "Files: 2.16 GB from disk at 1.20 GB/s; CPU"),
        (
            [0, READ, 1_000, 500, IDLE, IDLE],
            LoadingBound::Disk,
            "Files: 2.16 GB from disk at 1.20 GB/s (18,000 page faults that waited for it); CPU",
        ),
        (
            [READ, 0, 0, 500, IDLE, BUSY],
            LoadingBound::PageCache,
            "Files: nothing from disk, 2.16 GB from the page cache; CPU 180 ms in the program, 1.71 s in the kernel.",
        ),
        // Mapped, and in memory already.
        ([0, 0, 0, 30_000, IDLE, BUSY], LoadingBound::PageFaults, "Files: nothing from disk; CPU"),
        (
            [READ, 0, 0, 500, BUSY, IDLE],
            LoadingBound::CpuWork,
            "2.16 GB from the page cache; CPU 1.71 s in the program",
        ),
        // The disk is read while the CPU is busy: nobody knows which of them waits.
        ([READ, READ, 0, 500, BUSY, IDLE], LoadingBound::Unknown, "2.16 GB from disk"),
        ([READ, READ, 0, 500, IDLE, BUSY], LoadingBound::Unknown, "2.16 GB from disk"),
        // A network file system that counts nothing, or a lock.
        ([READ, 0, 0, 500, IDLE, IDLE], LoadingBound::Unknown, "2.16 GB from the page cache"),
        // Hardly anything: the disk reads a tenth of what is copied, all the time.
        ([READ / 40, READ / 40, 0, 500, IDLE, IDLE], LoadingBound::Unknown, "54.0 MB from disk"),
    ];
    for (counts, bound, said) in cases {
        let (loading, statement) = read_meanwhile(counts);
        assert_eq!(loading.bound, bound, "{statement}");
        assert!(statement.contains(said), "{statement}");
        assert!(!loading.fix.contains("look the same here"), "{}", loading.fix);
    }
    let (loading, _) = read_meanwhile([READ, READ / 2, 3, 500, IDLE, 2 * IDLE]);
    let files = loading.files.unwrap();
    assert_eq!((files.read_bytes, files.disk_bytes, files.major_faults), (18 * READ, 9 * READ, 54));
    assert_eq!((files.disk_ms, files.user_ms, files.system_ms), (1_800.0, 180.0, 360.0));
    assert!((files.disk_gbps.unwrap() - 0.6).abs() < 1e-9);
}

/// fixtures/recorded/loading.py on an H200: what each program was to spend its time on was written down before. The disk there reads as fast as `torch.load` copies from the
/// page cache (1.02 s beside 0.92 s), so nobody can say which of them that program waits for.
#[test]
fn loading_on_a_gpu_is_bound_by_what_the_program_did() {
    let cases = [
        ("disk", LoadingBound::Unknown, "either may wait for the other"),
        ("cache", LoadingBound::PageCache, "busbound.offload.load"),
        // The copies themselves take as long as the disk: the driver reads the mapped file.
        ("mapped", LoadingBound::Disk, "from a faster disk"),
        // Each tensor that is cast is new memory: 3.7 million page faults.
        ("cast", LoadingBound::PageFaults, "on the meta device"),
        ("pageable", LoadingBound::Copies, "`busbound run -- CMD`"),
        ("pinned", LoadingBound::Link, "Copy fewer bytes"),
    ];
    for (program, bound, fix) in cases {
        let trace =
            open(&root().join(format!("fixtures/recorded/loading/{program}.bbt")), &ReadOptions::default());
        let machine = Machine::named("h200").unwrap();
        let diagnosis = diagnose(&trace.unwrap(), &Source::named(program), &machine, &Options::default());
        let [phase] = &diagnosis.phases[..] else { panic!("{program}: {:?}", diagnosis.phases) };
        let loading = phase.loading.as_ref().unwrap();
        assert_eq!(loading.bound, bound, "{program}: {}", phase.statement);
        assert!(loading.fix.contains(fix), "{program}: {}", loading.fix);
    }
}

#[test]
fn counts_that_end_within_the_loading_say_nothing() {
    let mut run = Run::new();
    run.trace.annotation(run.host, "from_pretrained", 0..4000 * MS);
    run.files([READ, READ, 0, 0, IDLE, IDLE]);
    run.steps(4000, &[(100, None); 6]);
    let diagnosis = run.diagnosis();
    let loading = diagnosis.phases[0].loading.clone().unwrap();
    assert_eq!((loading.files, loading.bound), (None, LoadingBound::Unknown));
    assert!(loading.fix.contains("`busbound record` tells them apart"), "{}", loading.fix);
}

/// Copies of mapped files wait for the disk inside their calls: the copies are not what is slow.
#[test]
fn copy_calls_that_wait_for_the_disk_are_bound_by_it() {
    let mut run = Run::new();
    run.trace.annotation(run.host, "load_weights", 0..2000 * MS);
    run.files([0, READ, 900, 0, IDLE, IDLE]);
    for i in 0..10 {
        let at = i * 180;
        run.load(MemoryKind::Pageable, at..at + 180, at + 170..at + 180);
    }
    run.steps(2000, &[(100, None); 6]);
    let loading = run.diagnosis().phases[0].loading.clone().unwrap();
    assert_eq!((loading.staging_ms, loading.bound), (1_700.0, LoadingBound::Disk));
}

#[test]
fn functions_that_unpickle_bound_loading() {
    let mut run = Run::new();
    run.trace.python_frame(run.host, "train.py(3): main", 0..1000 * MS);
    run.trace.python_frame(run.host, "torch/serialization.py(1392): load", 0..400 * MS);
    run.trace.python_frame(run.host, "torch/_weights_only_unpickler.py(300): load", 10 * MS..390 * MS);
    run.steps(400, &[(100, None); 6]);
    let diagnosis = run.diagnosis();
    let loading = diagnosis.phases[0].loading.clone().unwrap();
    assert_eq!((loading.bound, loading.deserialization_ms), (LoadingBound::Deserialization, 400.0));
}

#[test]
fn what_is_copied_before_the_first_step_is_loading() {
    let mut run = Run::new();
    for i in 0..10 {
        run.load(MemoryKind::Pageable, i * 20..i * 20 + 20, i * 20 + 5..i * 20 + 20);
    }
    run.steps(500, &[(100, None); 6]);
    let diagnosis = run.diagnosis();
    let [phase] = &diagnosis.phases[..] else { panic!("{:?}", diagnosis.phases) };
    assert_eq!((phase.kind, phase.found), (PhaseKind::Loading, PhaseFound::Inferred));
    assert_eq!((phase.ms, phase.h2d_bytes), (200.0, 1_000_000_000));
    // Programs that copy weights for each layer, or activations and back, warm up: that is no loading.
    for name in ["accelerate-decode", "accelerate-prefill", "save_on_cpu", "loader"] {
        let path = root().join(format!("fixtures/try/recorded/{name}.bbt"));
        assert_eq!(diagnosis_of(&path).phases, [], "{name}");
    }
    // A batch before the first step is none.
    let mut run = Run::new();
    run.correlation = 1;
    run.trace
        .copy(run.stream, Transfer::host_to_device(MemoryKind::Pinned, 10_000_000), 0..MS)
        .correlation(1);
    run.steps(500, &[(100, None); 6]);
    assert_eq!(run.diagnosis().phases, []);
}

#[test]
fn steps_that_evaluate_are_apart_from_those_that_train() {
    // Evaluation takes half as long: it is no outlier.
    let mut steps = [(100, None); 14];
    steps[8..11].fill((50, Some("evaluate")));
    let mut run = Run::new();
    run.steps(0, &steps);
    let diagnosis = run.diagnosis();
    let [phase] = &diagnosis.phases[..] else { panic!("{:?}", diagnosis.phases) };
    assert_eq!((phase.kind, phase.count, phase.ms), (PhaseKind::Evaluation, 3, 144.0));
    let times = diagnosis.window.steps.as_ref().unwrap();
    assert_eq!((times.count, times.outliers_dropped), (8, 6), "the longest stretch of training");
    assert!((times.min_ms - 100.0).abs() < 1.0 && (times.max_ms - 100.0).abs() < 1.0, "{times:?}");
    let said = diagnosis.limitations.iter().find(|one| one.id.as_str() == "outliers_left_out").unwrap();
    assert!(said.text.starts_with("In 3 steps, the program evaluates, saves or loads"), "{}", said.text);
}

/// A program that trains: forward passes of six kernels, backward passes with four, an optimizer with one.
struct Training {
    run: Run,
    at: i64,
    steps: usize,
}

impl Training {
    fn new() -> Self {
        Self { run: Run::new(), at: 0, steps: 0 }
    }

    /// Kernels of 2 ms each, one after the other.
    fn launch(&mut self, names: &[&str]) {
        for name in names {
            self.run.correlation += 1;
            let (at, correlation) = (self.at, self.run.correlation);
            self.run
                .trace
                .runtime_call(self.run.host, "cudaLaunchKernel", at..at + 10_000)
                .correlation(correlation);
            self.run
                .trace
                .kernel(self.run.stream, *name, at + 20_000..at + 1_990_000)
                .correlation(correlation);
            self.at += 2 * MS;
        }
    }

    fn forward(&mut self) {
        self.launch(&["embed", "gemm", "softmax", "gemm", "gelu", "loss"]);
    }

    fn backward(&mut self) {
        self.launch(&["softmax_backward", "gemm", "gelu_backward", "gemm"]);
        self.launch(&["multi_tensor_apply_kernel"]);
    }

    fn step(&mut self, within: impl FnOnce(&mut Self)) {
        let begin = self.at;
        within(self);
        let name = format!("ProfilerStep#{}", self.steps);
        self.run.trace.annotation(self.run.host, &name, begin..self.at);
        self.steps += 1;
    }

    fn train(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step(|run| {
                run.forward();
                run.backward();
            });
        }
    }
}

#[test]
fn evaluation_without_a_name_is_a_phase_of_its_own() {
    // As steps of its own, and within the step after which it comes.
    for within in [false, true] {
        let mut run = Training::new();
        run.train(8);
        let begin = run.at + if within { 22 * MS } else { 0 };
        match within {
            false => (0..3).for_each(|_| run.step(Training::forward)),
            true => run.step(|run| {
                run.forward();
                run.backward();
                (0..3).for_each(|_| run.forward());
            }),
        }
        assert_eq!(run.at - begin, 36 * MS);
        run.train(4);
        let diagnosis = run.run.diagnosis();
        let [phase] = &diagnosis.phases[..] else { panic!("{:?}", diagnosis.phases) };
        assert_eq!((phase.kind, phase.found), (PhaseKind::Evaluation, PhaseFound::Inferred));
        // From the end of the optimizer's call on, if no step begins there.
        assert!((phase.ms - 36.0).abs() < 2.1 && phase.count == 1, "{}", phase.statement);
        assert!(
            phase
                .statement
                .starts_with("evaluation (inferred: forward passes without a backward pass, 1 time): "),
            "{}",
            phase.statement
        );
        let times = diagnosis.window.steps.as_ref().unwrap();
        assert_eq!(times.count, 8, "the longest stretch of training");
        assert!((times.max_ms - 22.0).abs() < 0.1, "{times:?}");
    }
}

/// What is between training steps is called evaluation only if forward passes repeat there, and only now and then.
#[test]
fn other_work_between_training_steps_is_not_called_evaluation() {
    let one_pass: fn(&mut Training) = |run| run.step(Training::forward);
    let generation: fn(&mut Training) = |run| {
        for _ in 0..10 {
            run.step(|run| run.launch(&["decode_attention", "gemv", "gemv", "sample", "gemv", "argmax"]));
        }
    };
    let metrics: fn(&mut Training) = |run| run.step(|run| run.launch(&["gemm"; 40]));
    // With a backward pass each: gradients are accumulated.
    let accumulation: fn(&mut Training) = |run| {
        for _ in 0..4 {
            run.step(|run| {
                run.forward();
                run.launch(&["softmax_backward", "gemm", "gelu_backward", "gemm"]);
            });
        }
    };
    let nothing: fn(&mut Training) = |run| run.step(|run| run.at += 200 * MS);
    for (what, between) in [
        ("one pass", one_pass),
        ("generation", generation),
        ("metrics", metrics),
        ("accumulation", accumulation),
        ("nothing", nothing),
    ] {
        let mut run = Training::new();
        run.train(8);
        between(&mut run);
        run.train(4);
        assert_eq!(run.run.diagnosis().phases, [], "{what}");
    }
    // Before every other training step, it is part of training.
    let mut run = Training::new();
    for _ in 0..8 {
        run.train(2);
        (0..3).for_each(|_| run.step(Training::forward));
    }
    run.train(1);
    assert_eq!(run.run.diagnosis().phases, []);
    // A server has no training steps between.
    let mut run = Training::new();
    (0..12).for_each(|_| run.step(Training::forward));
    assert_eq!(run.run.diagnosis().phases, []);
}

#[test]
fn a_step_with_a_checkpoint_is_apart_and_a_run_that_only_evaluates_is_not() {
    let mut steps = [(100, None); 12];
    steps[9] = (130, Some("busbound:phase=checkpoint"));
    let mut run = Run::new();
    run.steps(0, &steps);
    let diagnosis = run.diagnosis();
    let [phase] = &diagnosis.phases[..] else { panic!("{:?}", diagnosis.phases) };
    assert_eq!(
        (phase.kind, phase.found, &phase.name[..]),
        (PhaseKind::Checkpoint, PhaseFound::Marked, "checkpoint")
    );
    assert_eq!(diagnosis.window.steps.as_ref().unwrap().count, 9);
    let mut run = Run::new();
    run.steps(0, &[(100, Some("evaluate")); 12]);
    let evaluated = run.diagnosis();
    assert_eq!(evaluated.window.steps.as_ref().unwrap().count, 12);
    assert!((evaluated.phases[0].share - 0.98).abs() < 0.01);
}

#[test]
fn other_marks_are_listed_and_leave_nothing_out() {
    let mut steps = [(100, None); 12];
    steps[5] = (100, Some("busbound:phase=generate"));
    let mut run = Run::new();
    run.steps(0, &steps);
    let diagnosis = run.diagnosis();
    assert_eq!(diagnosis.phases[0].statement, "phase (`generate`, 1 time): 98.0 ms, 8% of the trace");
    assert_eq!(diagnosis.window.steps.as_ref().unwrap().count, 12);
}

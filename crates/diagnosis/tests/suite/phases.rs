//! Loading, evaluation and checkpoints are reported apart from the steps, and loading says what bounds it.

use busbound_diagnosis::{Diagnosis, LoadingBound, Options, PhaseFound, PhaseKind, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{Gpu, MemoryKind, RecordedLink, TraceBuilder, TrackId, Transfer};

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
        let (memory, multiprocessors, compute_capability) = (None, None, None);
        let name = "NVIDIA H200".to_owned();
        trace.gpu(Gpu { id: 0, name, memory, multiprocessors, compute_capability, link: Some(link) });
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

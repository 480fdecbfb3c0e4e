//! Does the replay handle rare cases? Small handwritten traces; each one once caused a wrong prediction.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use busbound_cause::{Activity, CollectiveNames, Graph, Host, Model, StepMarks};
use busbound_machine::Machine;
use busbound_trace::{MemoryKind, Timestamp, TraceBuilder, Transfer};
use busbound_whatif::replay::{Models, Predicted, Replay, TraceRange, usual_sharing};

/// Device and stream.
type At = (u32, u32);

/// Events in microseconds.
#[derive(Default)]
struct Written(TraceBuilder);

fn micros(at: f64, takes: f64) -> std::ops::Range<i64> {
    let nanos = |us: f64| (us * 1e3).round() as i64;
    nanos(at)..nanos(at) + nanos(takes)
}

impl Written {
    fn call(&mut self, name: &str, thread: u32, at: f64, takes: f64, id: u32) -> &mut Self {
        let thread = self.0.thread(1, thread);
        self.0.runtime_call(thread, name, micros(at, takes)).correlation(u64::from(id));
        self
    }

    fn kernel(&mut self, (gpu, stream): At, at: f64, takes: f64, id: u32) -> &mut Self {
        let stream = self.0.stream(i32::try_from(gpu).unwrap(), stream.into());
        self.0.kernel(stream, "gemm", micros(at, takes)).correlation(u64::from(id));
        self
    }

    fn copy(
        &mut self,
        memory: MemoryKind,
        (gpu, stream): At,
        at: f64,
        takes: f64,
        (id, bytes): (u32, u64),
    ) -> &mut Self {
        let transfer = Transfer::host_to_device(memory, bytes);
        let transfer = Transfer { bytes: transfer.bytes.filter(|bytes| bytes.get() > 0), ..transfer };
        let stream = self.0.stream(i32::try_from(gpu).unwrap(), stream.into());
        self.0.copy(stream, transfer, micros(at, takes)).correlation(u64::from(id));
        self
    }

    fn replay(&mut self, starts: &[f64], end: f64) -> Option<Replay> {
        let trace = std::mem::take(&mut self.0).finish();
        let at = |us: f64| Timestamp::from_nanos((us * 1e3) as i64);
        let stretch = TraceRange {
            starts: starts.iter().map(|us| at(*us)).collect(),
            whole: starts.len(),
            end: at(end),
        };
        let host = Host::of(&trace);
        let collectives = CollectiveNames::of(trace.names());
        let activity = Activity { trace: &trace, host: &host, collectives: &collectives };
        let steps = StepMarks { starts: stretch.starts.clone(), ends: None };
        let graph = Graph::of(activity, &steps);
        let link = Machine::named("h200").unwrap().link_of(None);
        let model = Model::of(&graph, &stretch, &usual_sharing(&link));
        Replay::of(Models::recorded(model), &link)
    }
}

fn predict(replay: &Replay, change: &str) -> Predicted {
    let predicted = replay.predict(&[change.parse().unwrap()]);
    assert!(
        predicted.low_ms > 0.0
            && predicted.low_ms <= predicted.step_ms
            && predicted.step_ms <= predicted.high_ms
    );
    predicted
}

/// One call issues a copy and kernels: its nodes cannot be moved separately and must not be lost.
#[test]
fn a_graph_launch_with_a_copy_stays_intact() {
    let mut written = Written::default();
    written.call("cudaGraphLaunch", 1, 0.0, 20.0, 1);
    written.copy(MemoryKind::Pinned, (0, 7), 30.0, 2000.0, (1, 100_000_000)).kernel(
        (0, 7),
        2031.0,
        7000.0,
        1,
    );
    written.call("cudaDeviceSynchronize", 1, 30.0, 9010.0, 2);
    let replay = written.replay(&[0.0], 9040.0).unwrap();
    for change in ["prefetch=1", "resident=100%", "coalesce", "async"] {
        let predicted = predict(&replay, change);
        assert!(!predicted.applies && (predicted.step_ms - 9.04).abs() < 0.05, "{change}: {predicted:?}");
    }
}

/// Two short kernels that start at the same time after an unexplained wait do not wait for each other.
#[test]
fn kernels_that_start_at_the_same_time_do_not_wait_for_each_other() {
    let mut written = Written::default();
    written.call("cudaLaunchKernel", 1, 0.0, 5.0, 1).call("cudaLaunchKernel", 1, 6.0, 5.0, 2);
    written.kernel((0, 7), 100.0, 1.0, 1).kernel((0, 8), 100.0, 1.0, 2);
    written.call("cudaLaunchKernel", 1, 200.0, 5.0, 3).kernel((0, 7), 210.0, 9000.0, 3);
    written.call("cudaDeviceSynchronize", 1, 210.0, 9005.0, 4);
    let replay = written.replay(&[0.0], 9215.0).unwrap();
    assert!(replay.confidence().error.abs() < 0.001, "{:?}", replay.confidence());
}

/// A step whose work ends after the next step's work must not get a negative time.
#[test]
fn overlapping_steps_have_no_negative_time() {
    let mut written = Written::default();
    for step in 0..4u32 {
        let (at, id) = (f64::from(step) * 1000.0, 10 * step);
        written.call("cudaLaunchKernel", 1, at, 5.0, id + 1).call(
            "cudaLaunchKernel",
            1,
            at + 10.0,
            5.0,
            id + 2,
        );
        // The first stream lags far behind.
        written.kernel((0, 7), f64::from(step) * 3000.0 + 20.0, 2990.0, id + 1);
        written.kernel((0, 8), at + 30.0, 900.0, id + 2);
    }
    let replay = written.replay(&[0.0, 1000.0, 2000.0, 3000.0], 12_020.0).unwrap();
    assert!(replay.step_ms() > 0.8 && replay.step_ms() < 3.1, "{}", replay.step_ms());
    predict(&replay, "link=pcie3x16");
}

/// Each GPU has its own link and its own kernels.
#[test]
fn two_gpus_do_not_share_a_link() {
    let of = |gpus: &[u32]| {
        let mut written = Written::default();
        for layer in 0..6u32 {
            let at = f64::from(layer) * 2000.0;
            for gpu in gpus {
                let (thread, id) = (10 + gpu, 100 * gpu + 10 * layer);
                written.call("cudaMemcpyAsync", thread, at, 10.0, id + 1);
                written.copy(MemoryKind::Pinned, (*gpu, 7), at + 10.0, 1000.0, (id + 1, 55_000_000));
                written.call("cudaStreamSynchronize", thread, at + 11.0, 1002.0, id + 2);
                written.call("cudaLaunchKernel", thread, at + 1015.0, 5.0, id + 3);
                written.kernel((*gpu, 7), at + 1025.0, 960.0, id + 3);
            }
        }
        for gpu in gpus {
            written.call("cudaDeviceSynchronize", 10 + gpu, 11_100.0, 890.0, 100 * gpu + 99);
        }
        written.replay(&[0.0], 11_990.0).unwrap()
    };
    let (one, two) = (of(&[0]), of(&[0, 1]));
    assert!(two.confidence().error.abs() < 0.01, "{:?}", two.confidence());
    let (one, two) = (predict(&one, "prefetch=1").step_ms, predict(&two, "prefetch=1").step_ms);
    assert!(one < 8.0 && (two / one - 1.0).abs() < 0.05, "{one} and {two}");
}

/// Two processes may use the same ids: work is issued once.
#[test]
fn an_id_that_two_calls_share_issues_its_work_once() {
    let mut written = Written::default();
    written.call("cudaLaunchKernel", 1, 0.0, 5.0, 1).call("cudaLaunchKernel", 2, 10.0, 5.0, 1);
    written.kernel((0, 7), 20.0, 5000.0, 1).kernel((0, 7), 5025.0, 3000.0, 1);
    let replay = written.replay(&[0.0], 8025.0).unwrap();
    assert!((replay.step_ms() - 8.025).abs() < 0.05, "{}", replay.step_ms());
}

/// A copy of unknown size must not become free.
#[test]
fn a_copy_of_unknown_size_stays_unchanged() {
    let mut written = Written::default();
    written.call("cudaMemcpyAsync", 1, 0.0, 5000.0, 1).copy(
        MemoryKind::Pageable,
        (0, 7),
        10.0,
        4980.0,
        (1, 0),
    );
    written.call("cudaLaunchKernel", 1, 5010.0, 5.0, 2).kernel((0, 7), 5020.0, 1000.0, 2);
    let replay = written.replay(&[0.0], 6020.0).unwrap();
    assert!(!predict(&replay, "pin").applies);
}

/// Host work after a small copy does not depend on the copy.
#[test]
fn pinning_a_few_bytes_does_not_halve_the_host_work() {
    let mut written = Written::default();
    written.call("cudaMemcpyAsync", 1, 0.0, 40.0, 1).copy(MemoryKind::Pageable, (0, 7), 10.0, 5.0, (1, 4));
    written.call("cudaLaunchKernel", 1, 90_000.0, 5.0, 2).kernel((0, 7), 90_010.0, 1000.0, 2);
    let replay = written.replay(&[0.0], 91_010.0).unwrap();
    let predicted = predict(&replay, "pin");
    assert!(predicted.step_ms > 90.9, "{predicted:?}");
}

/// A plain `cudaMemcpy` from pinned memory blocks the host until it is made asynchronous.
#[test]
fn a_blocking_pinned_copy_can_be_made_asynchronous() {
    let mut written = Written::default();
    for layer in 0..6u32 {
        let (at, id) = (f64::from(layer) * 2000.0, 10 * layer);
        written.call("cudaMemcpy", 1, at, 1015.0, id + 1);
        written.copy(MemoryKind::Pinned, (0, 7), at + 10.0, 1000.0, (id + 1, 55_000_000));
        written.call("cudaLaunchKernel", 1, at + 1016.0, 5.0, id + 3).kernel(
            (0, 7),
            at + 1025.0,
            960.0,
            id + 3,
        );
    }
    written.call("cudaDeviceSynchronize", 1, 11_100.0, 890.0, 99);
    let replay = written.replay(&[0.0], 11_990.0).unwrap();
    for change in ["prefetch=1", "async"] {
        let predicted = predict(&replay, change);
        assert!(predicted.applies && predicted.step_ms < 9.5, "{change}: {predicted:?}");
    }
}

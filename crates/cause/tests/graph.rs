//! Is the graph correct for small traces with known dependencies, and consistent for real ones?

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::path::Path;

use busbound_cause::host::HostActivity;
use busbound_cause::path::{PathClass, Walk};
use busbound_cause::{
    Activity, Awaited, CollectiveNames, Confidence, Graph, Host, HostAction, Rule, StepMarks,
};
use busbound_trace::{Interval, Nanos, ReadOptions, Timestamp, Trace, open, read};

fn trace(events: &[String]) -> Trace {
    let json = format!("[{}]", events.join(","));
    read(json.as_bytes(), Path::new("written.json"), &ReadOptions::default()).unwrap()
}

fn event(cat: &str, name: &str, tid: u32, ts: f64, dur: f64, args: &str) -> String {
    let pid = if cat == "kernel" || cat == "gpu_memcpy" { 0 } else { 1 };
    format!(
        r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#
    )
}

fn call(name: &str, thread: u32, ts: f64, dur: f64, correlation: u32) -> String {
    event("cuda_runtime", name, thread, ts, dur, &format!(r#""correlation":{correlation}"#))
}

fn kernel(stream: u32, ts: f64, dur: f64, correlation: u32) -> String {
    let args = format!(r#""device":0,"stream":{stream},"correlation":{correlation}"#);
    event("kernel", "gemm", stream, ts, dur, &args)
}

fn graph(trace: &Trace) -> Graph {
    let host = Host::of(trace);
    let collectives = CollectiveNames::of(trace.names());
    Graph::of(Activity { trace, host: &host, collectives: &collectives }, &StepMarks::default())
}

#[test]
fn work_waits_for_its_call_its_stream_and_its_event() {
    let trace = trace(&[
        call("cudaLaunchKernel", 10, 0.0, 5.0, 1),
        kernel(7, 10.0, 100.0, 1),
        call("cudaStreamWaitEvent", 10, 20.0, 2.0, 2),
        call("cudaLaunchKernel", 10, 25.0, 5.0, 3),
        kernel(8, 112.0, 50.0, 3),
        call("cudaDeviceSynchronize", 10, 40.0, 125.0, 4),
    ]);
    let graph = graph(&trace);
    assert_eq!(graph.work.len(), 2);
    assert_eq!(graph.calls.len(), 3);
    let (first, second) = (&graph.work[0], &graph.work[1]);
    assert_eq!((first.call(), second.call()), (Some(0), Some(1)));
    assert!(graph.waits_of(0).is_empty());
    let [wait] = *graph.waits_of(1) else { panic!("{:?}", graph.waits_of(1)) };
    assert_eq!((wait.on(), wait.rule), (0, Rule::EndedBeforeWait));
    assert_eq!(wait.rule.confidence(), Confidence::Likely);
    assert_eq!(graph.action(2), HostAction::Wait { awaited: Awaited::Device(0), copy: None });
    assert_eq!(graph.released_by(2).map(|wait| (wait.on(), wait.rule)), Some((1, Rule::DeviceSync)));
}

#[test]
fn a_thread_that_works_while_another_one_launches_does_not_wait() {
    let threads = |operator: bool| {
        let mut events = vec![
            call("cudaLaunchKernel", 10, 0.0, 5.0, 1),
            kernel(7, 10.0, 20.0, 1),
            call("cudaLaunchKernel", 11, 200.0, 5.0, 2),
            kernel(7, 210.0, 20.0, 2),
            call("cudaLaunchKernel", 10, 400.0, 5.0, 3),
            kernel(7, 410.0, 20.0, 3),
        ];
        if operator {
            events.push(event("cpu_op", "aten::sort", 10, 10.0, 380.0, ""));
        }
        let graph = graph(&trace(&events));
        // Calls are numbered per thread: 0 and 1 are on thread 10.
        graph.after(1)
    };
    assert_eq!(threads(false), Some(2));
    assert_eq!(threads(true), None);
}

#[test]
fn the_path_of_a_step_has_no_gaps() {
    let trace = trace(&[
        event("cpu_op", "aten::mm", 10, 0.0, 12.0, ""),
        call("cudaLaunchKernel", 10, 2.0, 5.0, 1),
        kernel(7, 10.0, 100.0, 1),
        call("cudaDeviceSynchronize", 10, 20.0, 95.0, 2),
        event("cpu_op", "aten::mm", 10, 150.0, 20.0, ""),
        call("cudaLaunchKernel", 10, 155.0, 5.0, 3),
        kernel(7, 165.0, 35.0, 3),
    ]);
    let host = Host::of(&trace);
    let graph = graph(&trace);
    let step = Interval::new(Timestamp::from_nanos(0), Timestamp::from_nanos(200_000));
    let path = Walk::new(&graph, &host, &[]).step(step);
    let length: i64 = path.iter().map(|segment| segment.interval.length().get()).sum();
    assert_eq!(length, 200_000);
    for pair in path.windows(2) {
        assert_eq!(pair[0].interval.start, pair[1].interval.end);
    }
    let of = |class| {
        let these = path.iter().filter(|segment| segment.class == class);
        these.map(|segment| segment.interval.length().get()).sum::<i64>()
    };
    assert_eq!(of(PathClass::Compute), 135_000);
    // From the return of the host sync to the next launch.
    assert_eq!((of(PathClass::Launch), of(PathClass::Host)), (60_000, 0));
}

#[test]
fn segments_of_a_thread_tile_every_window() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/train_pageable.json.gz");
    let trace = open(&path, &ReadOptions::default()).unwrap();
    let host = Host::of(&trace);
    for track in trace.threads() {
        let Some(last) = track.events().map(|event| event.end()).max() else { continue };
        let first = track.events().next().unwrap().start();
        let window = Interval::new(first + Nanos::new(-1_000), last + Nanos::new(1_000));
        let segments = host.segments(track.id(), window);
        assert_eq!(segments.first().unwrap().interval.start, window.start);
        assert_eq!(segments.last().unwrap().interval.end, window.end);
        assert_eq!(segments.first().unwrap().activity, HostActivity::Unrecorded);
        for pair in segments.windows(2) {
            assert_eq!(pair[0].interval.end, pair[1].interval.start);
        }
    }
}

#[test]
fn every_edge_of_real_traces_goes_forward_in_time() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    for name in ["train_pageable", "off_layerwise_d2_c4", "off_layerwise_d2_c4_syncevents", "swap_duplex"] {
        let trace = open(&folder.join(format!("{name}.json.gz")), &ReadOptions::default()).unwrap();
        let graph = graph(&trace);
        assert!(!graph.work.is_empty(), "{name}");
        for (id, work) in graph.work.iter().enumerate() {
            assert!(graph.waits_of(id).iter().all(|wait| graph.work[wait.on()].start < work.start), "{name}");
            assert!(work.call().is_none_or(|call| graph.issued_by(call).any(|issued| issued == id)));
            assert!(graph.streams[graph.stream_of(id)].work.contains(&id));
        }
        for (id, call) in graph.calls.iter().enumerate() {
            let released_by = graph.released_by(id);
            assert!(released_by.is_none_or(|wait| graph.work[wait.on()].end > call.start), "{name}");
        }
        let again = self::graph(&trace);
        assert_eq!(format!("{:?}", again.work), format!("{:?}", graph.work), "{name}");
    }
    // Recorded waits take precedence over inferred ones.
    let trace =
        open(&folder.join("off_layerwise_d2_c4_syncevents.json.gz"), &ReadOptions::default()).unwrap();
    let graph = graph(&trace);
    let released = (0..graph.calls.len()).filter_map(|call| graph.released_by(call));
    let host_waits: Vec<Rule> = released.map(|wait| wait.rule).collect();
    assert!(host_waits.contains(&Rule::RecordedHostWait), "{host_waits:?}");
}

/// Streams used to be searched one by one for each sync and each late start: 40,000 of them took minutes.
#[test]
fn with_many_streams_the_work_that_ended_last_is_the_same() {
    for streams in [8, 300] {
        let all = (0..streams).flat_map(|stream| (0..3).map(move |nth| (stream, nth)));
        let start =
            |(stream, nth): (u32, u32)| f64::from((stream * 7919 + nth * 5003) % 10_007 + 20_000 * nth);
        let kernels = all.map(|at| kernel(at.0, start(at), f64::from(1 + at.0 % 11), at.0 * 3 + at.1 + 1));
        let graph = graph(&trace(&kernels.collect::<Vec<_>>()));
        assert_eq!(graph.streams.len() as u32, streams);
        let wanted = |work: usize| !work.is_multiple_of(5);
        for end in (0..60_000_000).step_by(97_000) {
            let ended = (0..graph.work.len()).filter(|work| graph.work[*work].end <= end && wanted(*work));
            let expected = ended.max_by_key(|work| (graph.work[*work].end, *work));
            assert_eq!(graph.last_ended(None, end, usize::MAX, wanted), expected, "{streams} streams");
            assert_eq!(graph.last_ended(Some(0), end, usize::MAX, wanted), expected, "{streams} streams");
            assert_eq!(graph.last_ended(Some(1), end, usize::MAX, wanted), None);
        }
    }
}

/// ROCm reports copies on stream 0, on which kernels run at the same time: they are not in its order.
#[test]
fn copies_of_rocm_that_run_beside_kernels_of_their_stream_are_apart() {
    let streams = |launch: &str, copied_at: f64| {
        let copy = event(
            "gpu_memcpy",
            "CopyHostToDevice",
            0,
            copied_at,
            80.0,
            r#""device":0,"stream":0,"correlation":2,"bytes":1000"#,
        );
        let trace = trace(&[
            call(launch, 10, 0.0, 5.0, 1),
            kernel(0, 10.0, 100.0, 1),
            call("hipMemcpyAsync", 10, 6.0, 2.0, 2),
            copy,
        ]);
        let graph = graph(&trace);
        let copy = graph.work.iter().position(|work| work.kind.is_copy()).unwrap();
        (graph.streams.len(), graph.before(copy).is_some())
    };
    assert_eq!(streams("hipLaunchKernel", 20.0), (2, false), "beside it");
    assert_eq!(
        streams("hipLaunchKernel", 110.0),
        (1, true),
        "after it: nothing says that it is not in order"
    );
}

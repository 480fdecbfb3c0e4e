//! Do stages on different ranks overlap? Logs of stage timestamps and traces with known times, on clocks that are hours apart.

use std::fmt::Write;
use std::path::Path;

use busbound_diagnosis::{Options, PipelineShape, Source, diagnose};
use busbound_fleet::{Fleet, FleetAnswer, RankName, RankSummary};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, TraceBuilder, read};

fn summary_of_log(path: &str, text: &str) -> RankSummary {
    let trace = read(text.as_bytes(), Path::new(path), &ReadOptions::default()).unwrap();
    RankSummary::of(&diagnose(&trace, &Source::named(path), &Machine::default(), &Options::default()))
}

/// Rank 0 works 20 ms before it sends and 15 after it receives, rank 1 `stage1` ms; items come every `period` ms.
fn logged(stage1: f64, period: f64) -> FleetAnswer {
    let (mut first, mut second) = (String::new(), String::new());
    for k in 0..20 {
        let at = 100.0 + f64::from(k) * period / 1e3;
        let received = at + 0.5;
        let _ = writeln!(
            first,
            r#"{{"item": {k}, "rank": 0, "tA0": {at}, "tA1": {}, "tSend": {}, "tRecv": {received}, "tDecode": {}, "tEmit": {}}}"#,
            at + 0.020,
            at + 0.021,
            received + 0.015,
            received + 0.015,
        );
        let at = at + 7200.0;
        let _ = writeln!(second, r#"{{"item": {k}, "rank": 1, "tB0": {at}, "tB1": {}}}"#, at + stage1 / 1e3);
    }
    let ranks = [summary_of_log("rank0.stages.jsonl", &first), summary_of_log("rank1.stages.jsonl", &second)];
    Fleet::of(ranks).answer(None)
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-3
}

/// Stages of 35 and 30 ms every 35 ms: all of the shorter one is hidden.
#[test]
fn stages_of_two_ranks_that_overlap_score_one() {
    let pipeline = logged(30.0, 35.0).pipeline.unwrap();
    assert_eq!((pipeline.items, pipeline.shape), (20, PipelineShape::Longest));
    assert!(near(pipeline.period_ms, 35.0) && near(pipeline.overlap_score, 1.0), "{pipeline:?}");
    let [first, second] = &pipeline.stages[..] else { panic!("{pipeline:?}") };
    assert_eq!((first.name.as_str(), &first.ranks[..]), ("stage0", &[RankName::Number(0)][..]));
    assert!(near(first.median_ms, 35.0) && near(first.idle_ms, 0.0), "{first:?}");
    assert!(near(second.median_ms, 30.0) && near(second.idle_ms, 5.0), "{second:?}");
}

#[test]
fn stages_of_two_ranks_that_are_serialized_score_zero() {
    let answer = logged(30.0, 65.0);
    let pipeline = answer.pipeline.unwrap();
    assert_eq!(pipeline.shape, PipelineShape::Sum);
    assert!(near(pipeline.overlap_score, 0.0) && near(pipeline.hidden_ms, 0.0), "{pipeline:?}");
    assert!(near(pipeline.stages[1].idle_ms, 35.0));
    assert_eq!(
        pipeline.statement,
        "Overlap score 0.00: each item takes the sum of its stages (65.0 ms; stage0 35.0 ms, stage1 30.0 ms): the stages are serialized. stage1 (rank 1) is idle for 35.0 ms of each item."
    );
}

/// NVTX names as people write them, on two ranks with kernels.
#[test]
fn annotated_stages_of_rank_traces_are_joined() {
    let rank = |rank: i64, stage_ms: i64| {
        let mut trace = TraceBuilder::default();
        let (host, stream) = (trace.thread(1, 1), trace.stream(0, 7));
        for k in 0..10 {
            let at = rank * 3_600_000_000_000 + k * 50_000_000;
            trace.annotation(host, &format!("nvtx:pp:stage{rank}:work"), at..at + 1_000_000);
            trace.runtime_call(host, "cudaLaunchKernel", at + 1000..at + 2000).correlation(k as u64);
            trace.kernel(stream, "gemm", at + 5000..at + 5000 + stage_ms * 1_000_000).correlation(k as u64);
        }
        let source = Source::named(format!("rank-{rank}.json"));
        RankSummary::of(&diagnose(&trace.finish(), &source, &Machine::default(), &Options::default()))
    };
    let pipeline = Fleet::of([rank(0, 40), rank(1, 30)]).answer(None).pipeline.unwrap();
    assert!(near(pipeline.period_ms, 50.0) && near(pipeline.hidden_ms, 20.0), "{pipeline:?}");
    assert!(near(pipeline.overlap_score, 20.0 / 30.0), "{pipeline:?}");
}

/// A rank that runs every stage answers alone, and ranks without stages are no pipeline.
#[test]
fn ranks_that_run_the_same_stages_are_no_pipeline() {
    let line = |k: i32| format!("{{\"tA0\": {k}.0, \"tA1\": {k}.2, \"tB0\": {k}.2, \"tB1\": {k}.5}}\n");
    let text: String = (0..10).map(line).collect();
    let both = ["rank0.stages.jsonl", "rank1.stages.jsonl"].map(|path| summary_of_log(path, &text));
    assert_eq!(Fleet::of(both).answer(None).pipeline, None);
}

//! The figures of the gate that need torch.compile or a count per step.

use crate::regression::events::{call, kernel, step, with};
use busbound_diagnosis::{Baseline, Diagnosis, FigureId, Options, PerStep, Requirement, gate};
use busbound_machine::compile_log::CompileLog;
use serde_json::{Value, json};

fn marked(lengths: &[u32]) -> Vec<Value> {
    let (mut events, mut at) = (Vec::new(), 0);
    for (i, &length) in (1u32..).zip(lengths) {
        events.push(step(i, at, length));
        events.push(call("cudaLaunchKernel", i, at + 1, 5));
        events.push(kernel("k", 7, i, at + 10, length - 10));
        at += length;
    }
    events
}

fn given(options: &mut Options) {
    options.warmup = Some(0);
    options.per_step = vec!["tokens=16384".parse().unwrap(), "samples=8".parse().unwrap()];
}

fn why(run: &Diagnosis, text: &str, per_step: &[PerStep], baseline: Option<&Baseline>) -> Option<String> {
    let wanted = [Requirement::parse_with(text, per_step).unwrap()];
    gate(std::slice::from_ref(run), &wanted, baseline, false).runs[0].checks[0].why.clone()
}

#[test]
fn a_count_per_step_gives_a_rate() {
    let mut options = Options::default();
    given(&mut options);
    let per_step = &options.per_step;
    let run = with(&marked(&[2000; 5]), given);
    let figures = Baseline::of(&run).figures;
    assert_eq!((figures["tokens_per_s"], figures["samples_per_s"]), (8_192_000.0, 4_000.0));
    assert_eq!(why(&run, "tokens_per_s >= 8000000", per_step, None), None);
    assert_eq!(why(&run, "samples_per_s > 5000", per_step, None).unwrap(), "4000/s is not > 5000/s");
    let faster = Baseline::of(&with(&marked(&[1000; 5]), given));
    assert_eq!(
        why(&run, "tokens_per_s >= 0.9 * baseline", per_step, Some(&faster)).unwrap(),
        "8192000/s is not >= 14745600/s"
    );
    let older = Baseline::of(&with(&marked(&[1000; 5]), |_| ()));
    assert_eq!(
        why(&run, "tokens_per_s >= baseline", per_step, Some(&older)).unwrap(),
        "tokens_per_s is not available in the baseline"
    );
}

/// A detected iteration may be a part of a step: tokens per second would be a multiple of the truth.
#[test]
fn without_marked_steps_there_is_no_rate() {
    let bare: Vec<Value> =
        marked(&[2000; 8]).into_iter().filter(|event| event["cat"] != "user_annotation").collect();
    let run = with(&bare, given);
    assert_eq!(run.throughput[0].per_s, None);
    let per_step = ["tokens=16384".parse().unwrap()];
    assert_eq!(
        why(&run, "tokens_per_s > 1", &per_step, None).unwrap(),
        "tokens_per_s is not available in this run (needs marked steps: --steps names them)"
    );
}

fn region(name: &str, ts: u32) -> Value {
    json!({"ph":"X","cat":"cpu_op","name":format!("Torch-Compiled Region: {name}"),"pid":1,"tid":1,"ts":ts,"dur":5})
}

fn python(name: &str, ts: u32) -> Value {
    json!({"ph":"X","cat":"python_function","name":name,"pid":1,"tid":1,"ts":ts,"dur":6,"args":{"Python id":1}})
}

#[test]
fn graph_breaks_are_counted_and_unknown_is_not_zero() {
    let figures = |more: &[Value]| {
        let events: Vec<Value> = marked(&[2000; 3]).into_iter().chain(more.iter().cloned()).collect();
        let run = with(&events, |_| ());
        [FigureId::CompiledRegions, FigureId::GraphBreaks, FigureId::Recompilations].map(|id| id.of(&run))
    };
    assert_eq!(figures(&[]), [None, None, None], "nothing is compiled");
    assert_eq!(figures(&[region("0/0", 20)]), [Some(1.0), Some(0.0), Some(0.0)]);
    let two = [region("0/0", 20), region("1/0", 40), region("1/1", 60)];
    assert_eq!(figures(&two), [Some(2.0), None, Some(1.0)], "two functions, or one that breaks");
    let with_stacks = [&two[..], &[python("model.py(3): forward", 19)]].concat();
    assert_eq!(figures(&with_stacks), [Some(2.0), Some(0.0), Some(1.0)]);
    let broken = [&two[..], &[python("model.py(9): torch_dynamo_resume_in_forward_at_9", 39)]].concat();
    assert_eq!(figures(&broken), [Some(2.0), Some(1.0), Some(1.0)]);
}

#[test]
fn a_log_counts_what_the_trace_cannot() {
    let log = |text: &str| CompileLog::parse(text);
    let figures = |more: &[Value], text: &str| {
        let events: Vec<Value> = marked(&[2000; 3]).into_iter().chain(more.iter().cloned()).collect();
        let run = with(&events, |options| options.compile_log = log(text));
        [FigureId::GraphBreaks, FigureId::Recompilations].map(|id| id.of(&run))
    };
    let breaks = "Graph break in user code at a/model.py:9\nReason: call print\n";
    let quiet = "TORCH_LOGS=graph_breaks,recompiles\n";
    let two = [region("0/0", 20), region("1/0", 40), region("1/1", 60)];
    assert_eq!(figures(&two, breaks), [Some(1.0), Some(1.0)], "recompilations from the trace");
    assert_eq!(figures(&two, quiet), [Some(0.0), Some(1.0)], "the larger number of both");
    assert_eq!(figures(&[], quiet), [Some(0.0), Some(0.0)], "without compiled regions");
    assert_eq!(figures(&[], breaks), [Some(1.0), None], "nothing says that recompilations are logged");
    assert_eq!(figures(&[region("0/0", 20)], breaks), [Some(1.0), Some(0.0)]);
    let events: Vec<Value> = marked(&[2000; 3]).into_iter().chain(two).collect();
    let run = with(&events, |options| options.compile_log = log(breaks));
    assert_eq!(
        run.launches.compiled.statement.unwrap(),
        "torch.compile: 1 recompilation: a frame has several compiled versions, usually one per input shape; 1 graph break in \
         the log: model.py:9 (call print); the log shows no recompilations, and does not say that they are logged: print \
         TORCH_LOGS into it."
    );
}

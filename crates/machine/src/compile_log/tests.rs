//! Logs as PyTorch 2.5 to 2.11 prints them: most put together by hand, one recorded.

use super::*;

/// PyTorch 2.8 and later: two places, three recompilations, and a function that reached the limit.
const BREAKS: &str = include_str!("../../../../fixtures/compile/breaks.log");
/// PyTorch 2.5: lines of two ranks, mixed.
const RANKS: &str = include_str!("../../../../fixtures/compile/ranks.log");
const EXPLAIN: &str = include_str!("../../../../fixtures/compile/explain.txt");
/// PyTorch 2.11, recorded: `TORCH_LOGS=graph_breaks,recompiles python fixtures/compile/program.py`.
const RECORDED: &str = include_str!("../../../../fixtures/compile/recorded.log");
const QUIET: &str = include_str!("../../../../fixtures/compile/quiet.log");

fn breaks(log: &CompileLog) -> Vec<(&str, &str, u64)> {
    log.breaks
        .iter()
        .map(|one| (one.place.as_deref().unwrap_or("–"), one.reason.as_str(), one.count))
        .collect()
}

#[test]
fn breaks_are_counted_by_place_and_repeats_are_not_new_breaks() {
    let log = CompileLog::parse(BREAKS).unwrap();
    assert_eq!((log.graph_breaks, log.recompilations), (Some(2), Some(3)));
    assert_eq!(
        breaks(&log),
        [
            (
                "/repo/train/model.py:102",
                "Unsupported Tensor.item() call with capture_scalar_outputs=False",
                2
            ),
            ("/repo/train/model.py:140", "Failed to trace builtin operator", 1),
        ]
    );
    let hint = log.breaks[0].hint.as_deref().unwrap();
    assert!(hint.starts_with("Set `torch._dynamo.config.capture_scalar_outputs = True`"), "{hint}");
}

#[test]
fn recompilations_are_grouped_by_what_the_guard_checks() {
    let log = CompileLog::parse(BREAKS).unwrap();
    let [sizes, number] = log.recompiled.as_slice() else { panic!("{:?}", log.recompiled) };
    assert_eq!((sizes.function.as_str(), sizes.place.as_str()), ("forward", "/repo/train/model.py:88"));
    assert_eq!(
        (sizes.reason.as_str(), sizes.count),
        ("tensor 'x' size mismatch at index 1. expected 512, actual 480", 2)
    );
    assert!(number.reason.starts_with("n == 512"), "{}", number.reason);
    let [limit] = log.limits.as_slice() else { panic!("{:?}", log.limits) };
    assert_eq!(
        (limit.limit.as_str(), limit.function.as_str(), limit.place.as_str()),
        ("recompile_limit (8)", "torch_dynamo_resume_in_forward_at_102", "/repo/train/model.py:102")
    );
    assert!(limit.reason.starts_with("n == 504"), "{}", limit.reason);
}

#[test]
fn lines_belong_to_their_rank_even_if_ranks_are_mixed() {
    let log = CompileLog::parse(RANKS).unwrap();
    assert_eq!(
        breaks(&log),
        [
            ("/repo/train/model.py:57", "Unsupported: Tensor.item", 2),
            ("/repo/train/head.py:12", "setattr() on Tensor.requires_grad", 1),
        ],
        "a frame that is skipped breaks where the user's stack ends, not in PyTorch"
    );
    assert_eq!((log.graph_breaks, log.recompilations), (Some(2), Some(2)));
    let of = |rank| log.counts_of(rank);
    assert_eq!(of(Some(0)), CompileCounts { graph_breaks: Some(1), recompilations: Some(1) });
    assert_eq!(of(Some(1)), CompileCounts { graph_breaks: Some(2), recompilations: Some(2) });
    assert_eq!(of(Some(7)), of(None), "a rank that printed nothing is not known to be without breaks");
    let mixed = format!("{}\n{RANKS}", RANKS.lines().next().unwrap().trim_start_matches("[rank0]:"));
    let mixed = CompileLog::parse(&mixed).unwrap();
    assert_eq!(mixed.counts_of(Some(0)), mixed.counts_of(None), "a line without a rank may be rank 0's");
    assert_eq!(mixed.counts_of(Some(0)).graph_breaks, Some(2));
}

#[test]
fn what_explain_prints_is_read() {
    let log = CompileLog::parse(EXPLAIN).unwrap();
    assert_eq!(breaks(&log), [("/repo/train/toy.py:9", "generic_jump TensorVariable()", 1)]);
    assert_eq!((log.graph_breaks, log.recompilations), (Some(1), None), "explain compiles once");
    let none =
        CompileLog::parse("Graph Count: 1\nGraph Break Count: 0\nOp Count: 5\nBreak Reasons:\n").unwrap();
    assert_eq!(none.graph_breaks, Some(0));
}

#[test]
fn silence_is_zero_only_if_the_log_says_what_is_logged() {
    let of = |text: &str| CompileLog::parse(text).map(|log| (log.graph_breaks, log.recompilations));
    assert_eq!(of(QUIET), Some((Some(0), Some(0))));
    assert_eq!(of("+ export TORCH_LOGS='recompiles'\nstep 0"), Some((None, Some(0))));
    assert_eq!(of("TORCH_LOGS=\"+dynamo\" python train.py"), Some((Some(0), Some(0))));
    assert_eq!(of("TORCH_LOGS=dynamo python train.py"), None, "without + these lines are not printed");
    assert_eq!(of("TORCH_LOGS=output_code\nstep 0"), None);
    assert_eq!(of("step 0: loss 11.03"), None);
    let recompiles_only: String = BREAKS
        .lines()
        .filter(|line| line.contains("[__recompiles]"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(of(&recompiles_only), Some((None, Some(3))));
    let limit_only: String =
        BREAKS.lines().filter(|line| line.starts_with('W')).map(|line| format!("{line}\n")).collect();
    assert_eq!(of(&limit_only), Some((None, None)), "PyTorch's hint to set TORCH_LOGS says nothing");
}

#[test]
fn older_prefixes_and_bare_lines_are_read() {
    let text = "[2024-03-15 16:13:26,741] torch._dynamo.guards.__recompiles: [DEBUG] Recompiling function fn in a.py:15\n\
                [2024-03-15 16:13:26,741] torch._dynamo.guards.__recompiles: [DEBUG]     triggered by the following guard failure(s):\n\
                [2024-03-15 16:13:26,741] torch._dynamo.guards.__recompiles: [DEBUG]     - len(L['x']) == 3\n\
                Graph break in user code at a.py:9\nReason: Unsupported: call print\n";
    let log = CompileLog::parse(text).unwrap();
    assert_eq!(log.recompiled[0].reason, "len(L['x']) == 3");
    assert_eq!(breaks(&log), [("a.py:9", "Unsupported: call print", 1)]);
}

#[test]
fn a_cut_log_keeps_what_is_before_the_cut() {
    for cut in (0..BREAKS.len()).filter(|at| BREAKS.is_char_boundary(*at)).step_by(37) {
        let _ = CompileLog::parse(&BREAKS[..cut]);
    }
    let cut = BREAKS.find("Graph Break Reason").unwrap();
    assert_eq!(
        breaks(&CompileLog::parse(&BREAKS[..cut]).unwrap()),
        [("/repo/train/model.py:102", "not in the log", 1)]
    );
}

#[test]
fn a_recorded_log_has_the_breaks_of_its_program() {
    let log = CompileLog::parse(RECORDED).unwrap();
    assert_eq!((log.graph_breaks, log.recompilations), (Some(2), Some(11)));
    let mut found = breaks(&log);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("/repo/program.py:16", "Failed to trace builtin operator", 3),
            ("/repo/program.py:7", "Unsupported Tensor.item() call with capture_scalar_outputs=False", 6),
        ]
    );
}

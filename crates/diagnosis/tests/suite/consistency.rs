//! Do verdict, findings, critical path and predictions of one run agree? For every recorded run of the fixtures.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use busbound_diagnosis::{
    Bound, Diagnosis, FindingId, Options, PathClass, Resource, Source, WhatIf, diagnose_and_predict,
};
use busbound_machine::{Machine, MachineProfile};
use busbound_trace::{ReadOptions, open};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn traces(folder: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(fixtures().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut traces: Vec<PathBuf> =
        files.filter(|path| path.to_string_lossy().ends_with(".json.gz")).collect();
    traces.sort();
    traces
}

/// Every run, computed once: its name, its diagnosis, and the changes that suit it.
static RUNS: LazyLock<Vec<(String, Diagnosis, Option<WhatIf>)>> = LazyLock::new(runs);

fn runs() -> Vec<(String, Diagnosis, Option<WhatIf>)> {
    let text = std::fs::read_to_string(fixtures().join("machines/h200.json")).unwrap();
    let machine = Machine::measured(MachineProfile::parse(&text).unwrap());
    let all: Vec<PathBuf> = ["", "pairs", "frameworks/traces"].into_iter().flat_map(traces).collect();
    let run = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let trace = open(path, &ReadOptions::default()).unwrap();
        let source = Source::named(&name);
        let (run, changes) = diagnose_and_predict(&trace, &source, &machine, &Options::default(), &[]);
        (name, run, changes.ok())
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let chunks = all.chunks(all.len().div_ceil(threads));
        let threads: Vec<_> = chunks.map(|chunk| scope.spawn(|| chunk.iter().map(run).collect())).collect();
        threads.into_iter().flat_map(|thread| -> Vec<_> { thread.join().unwrap() }).collect()
    })
}

/// What the verdict is about.
fn own_step_ms(run: &Diagnosis) -> f64 {
    let recorded = run.time.analyzed_ms / run.window.step_count / run.devices.len().max(1) as f64;
    run.window.steps.as_ref().and_then(|steps| steps.unprofiled_ms).map_or(recorded, |own| own.mid)
}

/// The bounds that the largest part of the critical path may mean.
fn bounds_of(class: PathClass) -> &'static [Bound] {
    match class {
        PathClass::Compute | PathClass::Memset | PathClass::KernelGap => &[Bound::Compute],
        PathClass::Communication => &[Bound::Communication],
        PathClass::Copy | PathClass::Staging => &[Bound::Transfer],
        // A sync makes the host's time part of the path.
        PathClass::Launch => &[Bound::Launch, Bound::Sync],
        PathClass::Host => &[Bound::Host, Bound::Sync],
        PathClass::Input => &[Bound::Input],
        PathClass::Synchronization => &[Bound::Sync],
        PathClass::Contended | PathClass::Unexplained => &[Bound::Unknown],
    }
}

fn problems(run: &Diagnosis) -> Vec<String> {
    let mut problems = Vec::new();
    let step = own_step_ms(run);
    for finding in &run.findings {
        let saving = finding.saves_ms_per_step;
        if saving.low > saving.high + 1e-9 || saving.high > 1.001 * step {
            problems.push(format!("{} saves {saving:?} of {step} ms", finding.id));
        }
    }
    for bound in &run.bounds {
        let (faster, free) = (bound.step_if_10pct_faster_ms, bound.step_if_free_ms);
        if free > faster + 0.001 * step || faster > 1.001 * step {
            problems.push(format!("{:?}: free {free}, 10% faster {faster}, now {step}", bound.resource));
        }
    }
    problems.extend(below_compute(run));
    if let Some(prize) = &run.prize
        && prize.fixed_ms > 1.001 * prize.step_ms
    {
        problems.push(format!("the prize is slower: {prize:?}"));
    }
    problems.extend(first_fix_problem(run));
    problems
}

/// Without syncs, two kernels that fill the GPU ran at the same time: 59 ms for 71 ms of kernels.
fn below_compute(run: &Diagnosis) -> Vec<String> {
    let reads_host_memory = run.findings.iter().any(|finding| finding.id == FindingId::ZeroCopy);
    let compute = run.bounds.iter().find(|bound| bound.resource == Resource::Compute);
    let least =
        compute.filter(|_| !reads_host_memory).map_or(0.0, |bound| bound.busy_ms.min(own_step_ms(run)));
    let others = run.bounds.iter().filter(|bound| bound.resource != Resource::Compute);
    others
        .filter(|bound| bound.step_if_free_ms < 0.999 * least)
        .map(|bound| format!("{:?} free: {} ms, kernels {least}", bound.resource, bound.step_if_free_ms))
        .collect()
}

/// The first fix of the prize and its finding are one prediction: "saves 290 ms (659 ms → 114 ms)" is wrong.
fn first_fix_problem(run: &Diagnosis) -> Option<String> {
    let fix = run.prize.as_ref()?.fixes.first()?;
    let finding = run.findings.iter().find(|finding| finding.id == fix.finding)?;
    let (gain, saves) = (fix.before_ms - fix.after_ms, finding.saves_ms_per_step);
    let is_inside = (0.999 * saves.low..=1.001 * saves.high).contains(&gain);
    // Findings that share a fix keep their own bounds.
    let is_replayed = finding.saving_basis.starts_with("replay");
    (is_replayed && !is_inside).then(|| format!("{} saves {saves:?}, and its arrow {gain} ms", finding.id))
}

#[test]
fn no_saving_exceeds_the_step_and_no_resource_costs_time_when_it_is_free() {
    let found: Vec<String> = RUNS
        .iter()
        .flat_map(|(name, run, _)| problems(run).into_iter().map(move |problem| format!("{name}: {problem}")))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Runs with two paths of the same length, and why.
const TIES: &[(&str, &str)] = &[(
    "checkpoint-state_4-pinned_async.json.gz",
    "copies and the optimizer of one step take 4.45 ms, and the kernels of the next one beside them 4.52 ms",
)];

/// Where the profiler hardly matters: with it, the path is of the recorded run and the verdict is not.
#[test]
fn the_critical_path_and_the_verdict_name_the_same_resource() {
    let mut wrong = Vec::new();
    for (name, run, _) in RUNS.iter() {
        let Some(path) = &run.critical_path else { continue };
        let is_recorded = run.window.steps.as_ref().is_none_or(|steps| steps.unprofiled_ms.is_none());
        let Some(first) = path.classes.first().filter(|_| is_recorded) else { continue };
        let named = TIES.iter().any(|(tie, _)| *tie == name.as_str())
            || [Bound::Mixed, Bound::Unknown].contains(&run.verdict.bound)
            || bounds_of(first.class).contains(&run.verdict.bound);
        if !named {
            wrong.push(format!(
                "{name}: path {:?} {:.0}%, verdict {:?}",
                first.class,
                100.0 * first.share,
                run.verdict.bound
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Share of the step. A change that gains more must not come as a surprise after the findings.
const WORTH_A_FINDING: f64 = 0.05;

/// Runs without such a finding, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    (
        "saved-mlp-async.json.gz",
        "half of the idle time in launches is before copies, which have their own findings; the rest is 5% of the time",
    ),
    ("saved-mlp_2-async.json.gz", "the same program"),
];

/// The changes and the findings that are about what a verdict names.
fn about(bound: Bound) -> (&'static [&'static str], &'static [&'static str]) {
    match bound {
        Bound::Transfer => (
            &["pin", "prefetch", "async", "stream", "coalesce", "keep", "resident", "loader", "spread"],
            &[
                "bandwidth_deficit",
                "copied_back",
                "copy_calls",
                "late_prefetch",
                "link_saturated",
                "managed_faults",
                "managed_thrashing",
                "narrow_link",
                "non_blocking_pageable",
                "page_faults",
                "pageable_copies",
                "pageable_d2h",
                "serialized_copies",
                "slow_link",
                "unneeded_offload",
                "wrong_numa_node",
            ],
        ),
        // Copies issued one by one are launches, and those of single values are syncs.
        Bound::Launch => (&["graph"], &["launch_bound", "copy_calls"]),
        Bound::Sync => (&["nosync"], &["sync_in_loop", "copy_calls"]),
        Bound::Input => (&["loader"], &["input_wait"]),
        Bound::Host => (&["optimizer"], &["cpu_optimizer", "python_time"]),
        _ => (&[], &[]),
    }
}

#[test]
fn a_change_that_gains_much_of_what_the_verdict_names_has_a_finding() {
    let mut wrong = Vec::new();
    for (name, run, changes) in RUNS.iter() {
        let Some(changes) = changes else { continue };
        let (these, findings) = about(run.verdict.bound);
        let gains = changes.scenarios.iter().any(|scenario| {
            let is_about = |change: &str| these.contains(&change.split('=').next().unwrap_or_default());
            scenario.apply.iter().all(|change| is_about(change))
                && scenario.gain_ms >= WORTH_A_FINDING * changes.baseline_ms
        });
        let is_found = run.findings.iter().any(|finding| findings.contains(&finding.id.as_str()));
        if gains && !is_found {
            wrong.push(name.as_str());
        }
    }
    let expected: Vec<&str> = EXCEPTIONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(wrong, expected);
}

/// A run whose kernels run for 95% of each step was "55% spent in compute kernels": the gain without them.
#[test]
fn the_share_in_the_sentence_is_the_share_in_the_bar() {
    let mut compared = 0;
    for (name, run, _) in RUNS.iter() {
        let because = &run.verdict.because;
        if run.verdict.bound != Bound::Compute || !because.contains("is spent in compute kernels") {
            continue;
        }
        let percent: f64 = because.split('%').next().unwrap().parse().unwrap();
        let share = 100.0 * run.time.compute_ms / run.time.analyzed_ms;
        assert!((percent - share).abs() <= 2.0, "{name}: {because} ({share:.1}%)");
        compared += 1;
    }
    assert!(compared > 5, "{compared}");
}

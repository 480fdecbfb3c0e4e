//! Do recordings of real programs have the finding about their problem, and versions without the problem not?

use busbound_diagnosis::{Diagnosis, FindingId, HostUse};

use crate::common::{diagnosis_of, root};
use crate::host_work::{finding, ids};

fn recorded(name: &str) -> Diagnosis {
    diagnosis_of(&root().join("fixtures/frameworks/traces").join(format!("{name}.json.gz")))
}

/// A program that has the problem, and versions of it that do not.
const RECORDED: &[(FindingId, &str, &[&str])] = &[
    (FindingId::CpuOptimizer, "optimizer-sgd-serial_pinned", &["optimizer-sgd-gpu", "optimizer-adam-gpu"]),
    (FindingId::HostGather, "embedding-gather-pinned", &["embedding-gather-gpu"]),
    (
        FindingId::CopyCalls,
        "kv_swap-in_256k-loop_pinned",
        &["kv_swap-in_256k-flat_pinned", "kv_swap-in_4096k-loop_pinned"],
    ),
    (
        FindingId::PageFaults,
        "checkpoint-activations-fresh",
        &["checkpoint-activations-pinned", "checkpoint-state-pageable", "loader-w8_large-pageable"],
    ),
    (
        FindingId::CopiedBack,
        "keep-cache-returned",
        &["keep-cache-kept", "optimizer-sgd-serial_pinned", "optimizer-adam-overlap"],
    ),
    (FindingId::CopiedBack, "keep-layers-moved", &["keep-layers-kept_pageable"]),
    (FindingId::PageFaults, "keep-layers-moved", &[]),
    (FindingId::PageFaults, "embedding-gather-fresh", &["embedding-gather-pageable"]),
    (
        FindingId::RoundTrip,
        "serving-handed_over_5-pinned",
        // The host updates what came down before it goes up.
        &[
            "optimizer-adam_4-overlap",
            "optimizer-adam_8-overlap",
            "saved-mlp-async",
            "optimizer-sgd-serial_pinned",
        ],
    ),
    (
        FindingId::FrameworkHooks,
        "accelerate-prefill-default",
        &[
            "accelerate-prefill-gpu",
            "accelerate-prefill-streamed",
            "weights-even-serial_pageable",
            "keep-layers-moved",
        ],
    ),
];

#[test]
fn recorded_programs_have_their_finding_and_fixed_ones_do_not() {
    for (id, with, without) in RECORDED {
        let run = recorded(with);
        assert!(ids(&run).contains(&id.as_str()), "{with}: {:?}", ids(&run));
        for name in *without {
            let run = recorded(name);
            assert!(!ids(&run).contains(&id.as_str()), "{name}: {:?}", ids(&run));
        }
    }
}

#[test]
fn no_finding_about_host_work_saves_more_than_the_idle_time_it_explains() {
    let explained = [
        (FindingId::CpuOptimizer, HostUse::Optimizer),
        (FindingId::HostGather, HostUse::Gather),
        (FindingId::CpuCasts, HostUse::Cast),
        (FindingId::PythonTime, HostUse::Python),
    ];
    for (_, name, _) in RECORDED {
        let run = recorded(name);
        let step = run.time.span_ms / run.step_count();
        for finding in &run.findings {
            let saves = finding.saves_ms_per_step;
            assert!(
                0.0 <= saves.low && saves.low <= saves.high && saves.high <= step,
                "{name}: {}",
                finding.id
            );
            // On the GPU, the optimizer needs no copies either.
            if finding.candidate == ["optimizer=gpu"] {
                continue;
            }
            let what = explained.iter().find(|(id, _)| *id == finding.id).map(|(_, what)| *what);
            let idle = run.host.iter().find(|work| Some(work.what) == what).map(|work| work.ms);
            assert!(idle.is_none_or(|idle| saves.high <= idle + 1e-9), "{name}: {}", finding.id);
        }
    }
}

/// The same program with frames in the trace and without them.
#[test]
fn accelerate_is_recognized_with_and_without_frames() {
    for (name, inferred) in
        [("accelerate-prefill-default", true), ("accelerate-prefill-default.stack", false)]
    {
        let run = recorded(name);
        let found = finding(&run, FindingId::FrameworkHooks);
        assert_eq!(
            (&found.evidence["framework"], &found.evidence["inferred"]),
            (&"accelerate".into(), &inferred.into())
        );
    }
}

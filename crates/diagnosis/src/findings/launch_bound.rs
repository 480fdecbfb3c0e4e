//! Does the host launch kernels more slowly than the GPU runs them?

use busbound_cause::{HostUse, Resource};
use busbound_whatif::replay::CudaGraph;
use serde_json::json;

use super::common::copies::gaps_of;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use busbound_cause::idle::GapCause;
use busbound_cause::training::is_optimizer;

use crate::activity::gaps::{IdleCause, call_times, idle_around_ms};
use crate::analysis::facts::Facts;
use crate::analysis::host_work::HostWork;
use crate::analysis::program::Program;
use crate::quantity::{milliseconds, plural};
use crate::saving::Saving;
use crate::settings::Target;
use crate::unit::Unit;

pub(super) static RULE: Rule = Rule {
    title: "Launch overhead",
    doing: "using CUDA graphs",
    precondition: "Shapes and control flow repeat. The profiler itself slows down launches, so check the step time without it first.",
    basis: "bound: idle time with an empty queue; part of it is profiler overhead",
    candidate: Candidate::Changes(|| vec![CudaGraph.into()]),
    effort: Effort::OneLine,
    unless: &[],
    relieves: &[Resource::Launch],
    check,
    document: Document {
        meaning: "The GPU queue runs empty, because the host launches work more slowly than the GPU finishes it. The host is \
                  busy, not waiting.",
        computed: "Evidence: idle time with an empty queue is at least 10% of the time. Idle time that other findings explain \
                   does not count: before copies, and inside allocation calls. Kernels that load at first use, and \
                   a single long gap, count only toward the high end. Saving: by replaying the \
                   trace with its launches as CUDA graphs; without a replay, 30% to 100% of the idle time. It is unknown where a graph \
                   cannot hold the launches: the host waits, copies or allocates between nearly all of them.",
        fix: "Launch fewer kernels: use `torch.compile(mode=\"reduce-overhead\")` or CUDA graphs, and larger batches (longer kernels per launch). If the \
              step has an optimizer, a fused one launches fewer kernels too.",
        code: &[CODE, TRAINING_CODE],
        assumes: "Shapes and control flow repeat. Part of the time is profiler overhead, so check the step time without the \
                  profiler first.",
    },
};

const CODE: &str = "step = torch.compile(step, mode=\"reduce-overhead\")    # CUDA graphs inside";

/// For a step with an optimizer.
const TRAINING_CODE: &str = "\
step = torch.compile(step, mode=\"reduce-overhead\")    # CUDA graphs inside
optimizer = torch.optim.AdamW(model.parameters(), fused=True)";

/// Nanoseconds. A normal launch takes a few microseconds.
const LONG_CALL: i64 = 1_000_000;

/// One-time costs do not recur in every step: kernels that load at first use, a single long gap. Returns their duration
/// and a sentence about them.
fn once(facts: &Facts<'_>, cause: &IdleCause, idle: f64) -> (f64, String) {
    let long = facts.host.launches().filter(|call| call.duration().get() > LONG_CALL);
    let loading = idle_around_ms(&facts.gaps, &[GapCause::Launch], &call_times(long)).min(idle);
    let longest = cause.longest_ms;
    if loading > 0.3 * idle {
        let text = format!(
            " {} of it is around launch calls longer than 1 ms, which may load kernels at first use: warm up before recording.",
            milliseconds(loading / facts.steps()),
        );
        (loading, text)
    } else if longest > 0.3 * idle && longest < idle {
        let place = cause.longest_place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        (longest, format!(" A single gap takes {} of it{place}.", milliseconds(longest)))
    } else {
        (0.0, String::new())
    }
}

/// Idle time for host work is worth saying from this share of the time that the GPU waits for launches.
const MUCH_HOST: f64 = 0.5;

/// Host work per step that a graph replays without: not that of an optimizer or a gather on the CPU.
fn between_launches_ms(facts: &Facts<'_>) -> f64 {
    let is_python = |work: &&HostWork| matches!(work.what, HostUse::Python | HostUse::Launching);
    facts.host_work().iter().filter(is_python).map(|work| work.ms).sum()
}

/// Whether the replay finds launches that a graph can hold: without a sync, an H2D copy or an update on the CPU between them.
fn can_be_captured(facts: &Facts<'_>) -> bool {
    let Some(replay) = facts.replay() else { return true };
    let waits_often = facts.model().is_some_and(|model| {
        let waits = model.calls.iter().filter(|call| call.blocks()).count();
        let kernels = model.work.iter().filter(|work| work.kind.is_kernel()).count();
        FEWEST_IN_A_GRAPH * waits > kernels
    });
    let graphs = [CudaGraph.into()];
    if waits_often { replay.gains(&graphs) } else { replay.expect_ms(&graphs).is_some() }
}

/// Kernels between two waits: graphs of fewer may gain nothing.
const FEWEST_IN_A_GRAPH: usize = 3;

/// Where something between the launches cannot be captured.
const NOT_CAPTURED: &str = "The host waits, copies or allocates between these launches, so a CUDA graph cannot hold them. Allocate once, copy once, and \
                            wait once at the end; then launch fewer, longer kernels.";

/// A fused optimizer helps only where there is an optimizer.
fn fix(facts: &Facts<'_>) -> Fix {
    let what = if facts.unit() == Unit::Trace { "work that repeats" } else { "the step" };
    match facts.program {
        Program::PyTorch => {}
        Program::Xla => {
            return Fix::new(
                "Put more of the step into one jax.jit, so that fewer programs are launched, and let XLA launch them as CUDA graphs (XLA_FLAGS=--xla_gpu_enable_command_buffer=FUSION,CUSTOM_CALL). Or launch longer kernels: larger batches.",
            );
        }
        Program::Cuda => {
            return Fix::new(format!(
                "Capture {what} as a CUDA graph (cudaStreamBeginCapture) and replay it with cudaGraphLaunch. Or launch fewer, longer kernels."
            ));
        }
    }
    let optimizes = facts.host.annotations().iter().any(|event| is_optimizer(event.name()));
    let (fused, code) = match optimizes {
        true => ("a fused optimizer (fused=True), ", TRAINING_CODE),
        false => ("", CODE),
    };
    let text = format!(
        "Replay {what} as a CUDA graph: torch.compile(mode=\"reduce-overhead\") or torch.cuda.graph. Or launch fewer, longer kernels: {fused}larger batches."
    );
    Fix::new(text).code(code)
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let cause = facts.idle.iter().find(|idle| idle.cause == GapCause::Launch)?;
    // Other findings explain idle time before small copies and idle time during allocation.
    let idle = cause.ms - cause.before_copies_ms - facts.allocating_idle_ms;
    if idle < 0.1 * facts.time.analyzed_ms {
        return None;
    }
    let (steps, unit, launches) = (facts.steps(), facts.unit(), &facts.launches);
    let per = unit.per();
    let operators: Vec<_> =
        launches.operators.iter().map(|o| format!("{} {:.0}%", o.operator, 100.0 * o.share)).collect();
    let by =
        if operators.is_empty() { String::new() } else { format!(" Launched by {}.", operators.join(", ")) };
    let (once, one_time) = once(facts, cause, idle);
    let host = between_launches_ms(facts);
    let is_capturable = can_be_captured(facts);
    let more = match host > MUCH_HOST * idle / steps {
        true => format!(
            " CUDA graphs also remove most host work between launches, which the GPU waits for {}{per}.",
            milliseconds(host)
        ),
        false => String::new(),
    };
    Some(Draft {
        title: None,
        seen: format!(
            "{} per {unit}, median kernel {:.1} µs, median launch call {:.1} µs: the GPU waits with an empty queue for {}{per}.{more}{one_time}{by}",
            plural((launches.kernels as f64 / steps).round() as u64, "kernel", "kernels"),
            launches.median_kernel_us,
            launches.median_call_us,
            milliseconds(idle / steps),
        ),
        evidence: json!({
            "kernels_per_step": launches.kernels as f64 / steps,
            "median_kernel_us": launches.median_kernel_us,
            "median_launch_call_us": launches.median_call_us,
            "long_calls": launches.long_calls,
            "long_calls_ms_per_step": launches.long_calls_ms / steps,
            "graph_launches": launches.graph_launches,
            "idle_ms_per_step": idle / steps,
            "longest_gap_ms": cause.longest_ms,
            "operators": operators,
        }),
        saves: match is_capturable {
            true => Saving {
                low: 0.3 * (idle - once).max(0.0) / facts.gpu_steps(),
                high: idle / facts.gpu_steps(),
            },
            false => Saving::NONE,
        },
        fix: match is_capturable {
            true => fix(facts)
                .setting(Target::Compile, "mode", "reduce-overhead")
                .setting(Target::Vllm, "enforce_eager", false)
                .setting(Target::Sglang, "disable_cuda_graph", false)
                .setting(Target::Accelerate, "dynamo_config.dynamo_backend", "INDUCTOR")
                .setting(Target::Accelerate, "dynamo_config.dynamo_mode", "reduce-overhead"),
            false => {
                Fix::new(NOT_CAPTURED).doing("merging copies and removing host syncs").saving_known(false)
            }
        },
        at: gaps_of(facts, GapCause::Launch),
    })
}

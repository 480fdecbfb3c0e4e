//! Does the GPU wait for Python, or for something else that the profiler does not record?

use busbound_cause::thresholds::HOST_STRETCH;
use busbound_cause::{HostUse, Resource};
use busbound_trace::Nanos;
use serde_json::json;

use super::common::host_idle::HostIdle;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::collectives::ON_HOST;
use crate::analysis::facts::Facts;
use crate::analysis::host_work::{NOT_RECORDED, waits_for};
use crate::analysis::program::Program;
use crate::findings::FindingId;
use crate::quantity::{milliseconds, plural};
use crate::saving::Saving;
use crate::unit::Unit;

pub(super) static RULE: Rule = Rule {
    title: "Waiting for Python or unrecorded host work",
    doing: "moving host work out of the loop",
    precondition: "The work can run on another thread, or less often. The profiler itself slows Python down, so check the step time without it first.",
    basis: "bound: idle time in long stretches without a recorded operator",
    candidate: Candidate::None(
        "No what-if change removes Python time: the trace does not show which of it the next launch needs.",
    ),
    effort: Effort::Restructuring,
    unless: &[
        FindingId::FrameworkHooks,
        FindingId::PageFaults,
        FindingId::ManagedThrashing,
        FindingId::ManagedFaults,
    ],
    relieves: &[Resource::Host],
    check,
    document: Document {
        meaning: "The GPU is idle while the launching thread runs Python, or something else that the profiler does not record: \
                  tokenizers, samplers, logging, garbage collection, freeing of memory.",
        computed: "Evidence: GPU idle time in stretches of at least 200 µs without any recorded operator or launch is more than \
                   10% of the time. Not reported if `framework_hooks`, `page_faults`, `managed_thrashing` or `managed_faults` \
                   is reported. Saving: 30% to 100% of that idle time; unknown in a trace without steps, where the host may do this once, and where only CUDA calls are recorded: then the host may sleep.",
        fix: "If Python frames are not recorded, record with `with_stack=True` (torch.profiler) or add NVTX ranges \
              to see what runs; with Nsight, add `--trace=osrt --sample=process-tree`. Move it to another thread or \
              process, or do it every N steps. If it is garbage collection, call `gc.freeze()` after the setup, or collect \
              between epochs. If it is a collective of gloo, the host waits for other ranks: use NCCL for GPU tensors.",
        code: &[CODE_STACK, CODE_GC],
        assumes: "The next launch does not need the result. Part of the time is profiler overhead, so check the step time without \
                  the profiler first.",
    },
};

const CODE_STACK: &str = "\
with torch.profiler.profile(with_stack=True) as prof:    # records Python frames
    step()";

const CODE_GC: &str = "\
gc.collect(); gc.freeze()    # after the setup: these objects are not searched again
gc.disable()                 # and collect between epochs: gc.collect()";

/// Share of the time that the GPU must wait.
const LEAST: f64 = 0.10;

/// Frames of Python's garbage collector.
fn collects_garbage(name: &str) -> bool {
    name.contains("gc.collect")
        || name.contains("method collect of module")
        || name.contains("<built-in function collect")
}

/// How to find out what runs, and what to do then.
fn see_what_runs(facts: &Facts<'_>, often: &str) -> Fix {
    let program = facts.program;
    let has = |what: &str| facts.trace.origin().settings.get(what) == Some(&true);
    let record = match program {
        Program::PyTorch => "Record with with_stack=True (torch.profiler) or add NVTX ranges",
        Program::Xla => "Add jax.profiler.TraceAnnotation ranges",
        Program::Cuda if has("cpu_samples") => {
            "Look at these times in Nsight Systems, which has CPU samples of them,"
        }
        Program::Cuda if has("os_runtime") => {
            "The threads wait in no system call. Record with nsys profile --trace=cuda,nvtx,osrt --sample=process-tree, or add NVTX ranges,"
        }
        Program::Cuda => {
            "Record with nsys profile --trace=cuda,nvtx,osrt --sample=process-tree, or add NVTX ranges,"
        }
    };
    let fix =
        Fix::new(format!("{record} to see what runs. Then move it to another thread or process{often}."));
    if program == Program::PyTorch { fix.code(CODE_STACK) } else { fix }
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let mut idle = HostIdle::of(facts, HostUse::Python, LEAST)?;
    // Short pieces between operators are part of launching.
    idle.keep_longer(facts, Nanos::new(HOST_STRETCH));
    if idle.ms < LEAST * facts.step_ms() {
        return None;
    }
    let has_frames = facts.trace.stats().stacks_seen;
    let garbage = idle.operators.iter().any(|name| collects_garbage(name));
    let longest = idle.at.iter().map(|gap| gap.length()).max().unwrap_or_default().as_millis();
    let in_collective = idle.operators.first().is_some_and(|name| name.starts_with(ON_HOST));
    let program = facts.program;
    // Without steps, it is unknown whether the host does this again and again, or once.
    let recurs = facts.unit() != Unit::Trace;
    // Nsight records no Python and often no system calls: the host may sleep, or wait for a frame or a file.
    let is_work = program != Program::Cuda || idle.operators.first().is_some_and(|name| name != NOT_RECORDED);
    let waits = idle.operators.first().and_then(|name| waits_for(name));
    // How long it waits is not up to the program alone.
    let is_known = recurs && is_work && waits.is_none();
    let often = if recurs { ", or do it every N steps" } else { "" };
    let fix = match (garbage, has_frames) {
        _ if in_collective => Fix::new(
            "Exchange GPU tensors with the NCCL backend: torch.distributed.init_process_group(\"nccl\"). To see which rank the others wait for, diagnose the traces of all ranks together.",
        )
        .doing("exchanging tensors with NCCL"),
        (true, _) => Fix::new(
            "Call gc.collect() and gc.freeze() after the setup. Then call gc.disable(), and collect between epochs.",
        )
        .doing("collecting garbage between epochs")
        .code(CODE_GC),
        _ if waits.is_some() => Fix::new("Let another thread wait for it, or wait before the loop."),
        (false, true) => Fix::new(format!("Move this work to another thread or process{often}.")),
        (false, false) => see_what_runs(facts, often),
    };
    Some(Draft {
        title: match (in_collective, garbage) {
            (true, _) => Some("Waiting for other ranks in collectives on the CPU".to_owned()),
            (false, true) => Some("Waiting for garbage collection".to_owned()),
            _ if waits.is_some() => Some("The host waits outside of CUDA".to_owned()),
            (false, false) => {
                (program == Program::Cuda).then(|| "Waiting for code that is not recorded".to_owned())
            }
        },
        seen: format!(
            "The GPU is idle while the host {}: {}, in {}, the longest {}.",
            match in_collective {
                true => "waits for other ranks, or sends and adds up data on the CPU".to_owned(),
                false => match waits {
                    Some(wait) => format!("waits for {wait}"),
                    None => format!("runs {}", program.not_recorded()),
                },
            },
            idle.describe(facts),
            plural(idle.at.len() as u64, "stretch", "stretches"),
            milliseconds(longest),
        ),
        evidence: json!({
            "idle_ms_per_step": idle.ms,
            "stretches": idle.at.len(),
            "longest_ms": longest,
            "operators": idle.operators,
            "frames_recorded": has_frames,
            "garbage_collection": garbage,
        }),
        saves: if is_known { idle.saving(0.3) } else { Saving::NONE },
        fix: fix.saving_known(is_known),
        at: idle.at,
    })
}

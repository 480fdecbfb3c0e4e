//! The catalog: every figure of a run with its name, texts, unit and how it is computed.

use busbound_trace::{Direction, MemoryKind};

use super::value::{
    compiled, every_step, gbps, judged_steps, megabytes, on_path, per_device, per_step, with_device,
};
use super::{Better, Definition, FigureUnit};
use crate::activity::route::CopyRoute;
use crate::analysis::breakdown::Part;
use crate::findings::Severity;
use busbound_cause::idle::GapCause;
use busbound_cause::path::PathClass;

macro_rules! catalog {
    ($($id:ident = $name:literal {
        label: $label:literal, unit: $unit:ident, better: $better:ident,
        summary: $summary:literal,
        definition: $definition:literal,
        of: $of:expr,
    })*) => {
        /// A figure of a run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FigureId {
            $(#[doc = $definition] $id,)*
        }

        impl FigureId {
            /// Every figure, in the order in which they are listed.
            pub const ALL: &'static [Self] = &[$(Self::$id,)*];

            pub(super) fn entry(self) -> &'static Definition {
                static ENTRIES: &[Definition] = &[$(Definition {
                    name: $name,
                    label: $label,
                    unit: FigureUnit::$unit,
                    better: Better::$better,
                    summary: $summary,
                    definition: $definition,
                    of: $of,
                },)*];
                &ENTRIES[self as usize]
            }
        }
    };
}

catalog! {
    // The length of steps.
    StepP50 = "step_p50" {
        label: "step, median with outliers", unit: Milliseconds, better: Lower,
        summary: "median length of a step",
        definition: "Median length of all steps after the warm-up.",
        of: |run| every_step(run, |steps| steps.p50_ms),
    }
    StepP90 = "step_p90" {
        label: "step, 90th percentile", unit: Milliseconds, better: Lower,
        summary: "90th percentile of it",
        definition: "90th percentile of the length of all steps after the warm-up.",
        of: |run| every_step(run, |steps| steps.p90_ms),
    }
    StepP99 = "step_p99" {
        label: "step, 99th percentile", unit: Milliseconds, better: Lower,
        summary: "99th percentile of it",
        definition: "99th percentile of the length of all steps after the warm-up.",
        of: |run| every_step(run, |steps| steps.p99_ms),
    }
    StepMax = "step_max" {
        label: "step, most with outliers", unit: Milliseconds, better: Lower,
        summary: "the longest step",
        definition: "Length of the longest step after the warm-up.",
        of: |run| every_step(run, |steps| steps.max_ms),
    }
    OutlierSteps = "outlier_steps" {
        label: "outlier steps", unit: Count, better: Lower,
        summary: "steps that took clearly longer",
        definition: "Steps after the warm-up that took clearly longer than the others.",
        of: |run| run.window.steps.as_ref().map(|_| run.window.outlier_count as f64),
    }
    JudgedStepP50 = "judged_step_p50" {
        label: "step, median", unit: Milliseconds, better: Lower,
        summary: "median length of the steps that are judged",
        definition: "Median length of the steps that the other figures describe: without warm-up and without outliers that are left out. Where there are no steps, `span_ms`.",
        of: |run| judged_steps(run, |steps| steps.p50_ms).or_else(|| run.breakdown.per_step_ms(|_| true)),
    }
    JudgedStepMin = "judged_step_min" {
        label: "step, least", unit: Milliseconds, better: Lower,
        summary: "the shortest of them",
        definition: "Length of the shortest step that is judged.",
        of: |run| judged_steps(run, |steps| steps.min_ms),
    }
    JudgedStepMax = "judged_step_max" {
        label: "step, most", unit: Milliseconds, better: Lower,
        summary: "the longest of them",
        definition: "Length of the longest step that is judged.",
        of: |run| judged_steps(run, |steps| steps.max_ms),
    }

    // The breakdown of a step.
    SpanMs = "span_ms" {
        label: "span", unit: MillisecondsPerStep, better: Lower,
        summary: "first to last work of the device",
        definition: "Time from the first to the last work of the device: the sum of all parts of the step.",
        of: |run| run.breakdown.per_step_ms(|_| true),
    }
    BusyMs = "busy_ms" {
        label: "busy", unit: MillisecondsPerStep, better: Neither,
        summary: "the device doing anything",
        definition: "Time at which the device did anything: kernels, copies or memsets.",
        of: |run| run.breakdown.per_step_ms(|part| !part.is_idle()),
    }
    ComputeMs = "compute_ms" {
        label: "compute", unit: MillisecondsPerStep, better: Lower,
        summary: "compute kernels",
        definition: "Time at which at least one kernel ran that does not communicate.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Compute),
    }
    CopyMs = "copy_ms" {
        label: "copies", unit: MillisecondsPerStep, better: Neither,
        summary: "copies",
        definition: "Time at which at least one copy ran, on any route.",
        of: |run| per_device(run, run.time.copy_ms),
    }
    CommMs = "comm_ms" {
        label: "communication", unit: MillisecondsPerStep, better: Neither,
        summary: "communication kernels",
        definition: "Time at which at least one communication kernel ran.",
        of: |run| per_device(run, run.time.comm_ms),
    }
    IdleMs = "idle_ms" {
        label: "idle", unit: MillisecondsPerStep, better: Lower,
        summary: "the device idle",
        definition: "Time between the first and the last work of the device at which it did nothing.",
        of: |run| run.breakdown.per_step_ms(Part::is_idle),
    }
    ExposedCopyMs = "exposed_copy_ms" {
        label: "exposed copies on any route", unit: MillisecondsPerStep, better: Lower,
        summary: "copies with no kernel beside them",
        definition: "Time at which a copy ran, on any route, and no kernel.",
        of: |run| run.breakdown.per_step_ms(Part::is_copy),
    }
    ExposedCommMs = "exposed_comm_ms" {
        label: "exposed communication", unit: MillisecondsPerStep, better: Lower,
        summary: "communication with no compute beside it",
        definition: "Time at which a communication kernel ran and no compute kernel.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Communication),
    }
    ExposedBusCopyMs = "exposed_bus_copy_ms" {
        label: "exposed copy", unit: MillisecondsPerStep, better: Lower,
        summary: "of exposed copies, those between host and device",
        definition: "Time at which a bus copy ran (host to device or device to host) and no kernel.",
        of: |run| run.breakdown.per_step_ms(Part::is_bus_copy),
    }
    ExposedPeerCopyMs = "exposed_peer_copy_ms" {
        label: "exposed copy between GPUs", unit: MillisecondsPerStep, better: Lower,
        summary: "of exposed copies, those between GPUs",
        definition: "Time at which a peer copy ran (from one GPU to another), no bus copy and no kernel.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Copy(CopyRoute::Peer)),
    }
    ExposedDeviceCopyMs = "exposed_device_copy_ms" {
        label: "copy within the device", unit: MillisecondsPerStep, better: Lower,
        summary: "of exposed copies, those within the device",
        definition: "Time at which a copy within the device ran, no bus or peer copy and no kernel.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Copy(CopyRoute::WithinDevice)),
    }
    ExposedUnplacedCopyMs = "exposed_unplaced_copy_ms" {
        label: "copy of unknown way", unit: MillisecondsPerStep, better: Lower,
        summary: "of exposed copies, those of unknown direction",
        definition: "Time at which a copy ran of which the trace does not record where it goes, no other copy and no kernel.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Copy(CopyRoute::Unplaced)),
    }
    ExposedMemsetMs = "exposed_memset_ms" {
        label: "memset", unit: MillisecondsPerStep, better: Lower,
        summary: "memsets with nothing beside them",
        definition: "Time at which a memset ran, no copy and no kernel.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Memset),
    }
    IdleInputMs = "idle_input_ms" {
        label: "idle: waiting for input", unit: MillisecondsPerStep, better: Lower,
        summary: "idle while the host waits for its next batch",
        definition: "Idle time of the device while the host waited for its next batch.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Input)),
    }
    IdleLaunchMs = "idle_launch_ms" {
        label: "idle: host had not launched yet", unit: MillisecondsPerStep, better: Lower,
        summary: "idle because the host had not launched yet",
        definition: "Idle time of the device with an empty queue: the host had not launched yet.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Launch)),
    }
    IdleSyncMs = "idle_sync_ms" {
        label: "idle: host had synchronized first", unit: MillisecondsPerStep, better: Lower,
        summary: "idle because the host had waited for the device",
        definition: "Idle time of the device after the host had waited for it to finish and only then launched on.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Synchronization)),
    }
    IdleCopyMs = "idle_copy_ms" {
        label: "idle: host inside a copy call", unit: MillisecondsPerStep, better: Lower,
        summary: "idle while the host is inside a copying call",
        definition: "Idle time of the device while the host was inside a copying call.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Copy)),
    }
    IdleUnexplainedMs = "idle_unexplained_ms" {
        label: "idle: not explained by the trace", unit: MillisecondsPerStep, better: Lower,
        summary: "idle for reasons the trace does not show",
        definition: "Idle time of the device for reasons the trace does not show.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Unexplained)),
    }
    IdleTurnaroundMs = "idle_turnaround_ms" {
        label: "idle: turn-around between pieces of work", unit: MillisecondsPerStep, better: Lower,
        summary: "idle between two pieces of queued work",
        definition: "Idle time of the device in gaps too short to have a cause of their own.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Turnaround)),
    }
    OwnMs = "own_ms" {
        label: "outside communication", unit: MillisecondsPerStep, better: Lower,
        summary: "all but exposed communication",
        definition: "`span_ms` without `exposed_comm_ms`: what the rank does by itself. Of ranks that wait for each other, the one with most of it is the one the others wait for.",
        of: |run| run.breakdown.per_step_ms(|part| part != Part::Communication),
    }
    BusyShare = "busy_share" {
        label: "busy, share", unit: Share, better: Higher,
        summary: "busy time of the span",
        definition: "`busy_ms` over `span_ms`.",
        of: |run| run.breakdown.share_of(|part| !part.is_idle()),
    }
    ComputeShare = "compute_share" {
        label: "compute, share", unit: Share, better: Higher,
        summary: "compute time of the span",
        definition: "`compute_ms` over `span_ms`.",
        of: |run| run.breakdown.share_of(|part| part == Part::Compute),
    }
    IdleShare = "idle_share" {
        label: "idle, share", unit: Share, better: Lower,
        summary: "idle time of the span",
        definition: "`idle_ms` over `span_ms`.",
        of: |run| run.breakdown.share_of(Part::is_idle),
    }
    ExposedCopyShare = "exposed_copy_share" {
        label: "exposed copies on any route, share", unit: Share, better: Lower,
        summary: "exposed copies of the span",
        definition: "`exposed_copy_ms` over `span_ms`.",
        of: |run| run.breakdown.share_of(Part::is_copy),
    }

    // Kinds of work at once.
    CopyComputeMs = "copy_compute_ms" {
        label: "copies beside compute", unit: MillisecondsPerStep, better: Higher,
        summary: "copies and compute kernels at once",
        definition: "Time at which a copy and a compute kernel ran at once.",
        of: |run| per_device(run, run.overlap.copy_compute_ms),
    }
    CommComputeMs = "comm_compute_ms" {
        label: "communication beside compute", unit: MillisecondsPerStep, better: Higher,
        summary: "communication and compute kernels at once",
        definition: "Time at which a communication kernel and a compute kernel ran at once.",
        of: |run| per_device(run, run.overlap.comm_compute_ms),
    }
    CopyCommMs = "copy_comm_ms" {
        label: "copies beside communication", unit: MillisecondsPerStep, better: Neither,
        summary: "copies and communication at once",
        definition: "Time at which a copy and a communication kernel ran at once.",
        of: |run| per_device(run, run.overlap.copy_comm_ms),
    }
    CommComputePct = "comm_compute_pct" {
        label: "communication beside compute", unit: Percent, better: Higher,
        summary: "communication with compute beside it",
        definition: "`comm_compute_ms` over `comm_ms`.",
        of: |run| run.overlap.comm_compute_pct_of_comm,
    }
    OverlapScore = "overlap_score" {
        label: "overlap score", unit: Share, better: Higher,
        summary: "how far a pipeline's stages are hidden (--stage)",
        definition: "How far the stages of a pipeline are hidden behind each other; needs `--stage`.",
        of: |run| Some(run.stages.as_ref()?.overlap_score),
    }
    PeriodMs = "period_ms" {
        label: "period", unit: MillisecondsPerItem, better: Lower,
        summary: "time between items of a pipeline (--stage)",
        definition: "Time between two items of a pipeline; needs `--stage`.",
        of: |run| Some(run.stages.as_ref()?.period_ms),
    }

    // Copies.
    H2dGbps = "h2d_gbps" {
        label: "H2D rate", unit: GigabytesPerSecond, better: Higher,
        summary: "rate of copies from host to device",
        definition: "Bytes copied from host to device over the time at which such copies ran, added up over kinds of host memory and GPUs. Copies without recorded bytes are left out.",
        of: |run| gbps(run, Direction::HostToDevice),
    }
    D2hGbps = "d2h_gbps" {
        label: "D2H rate", unit: GigabytesPerSecond, better: Higher,
        summary: "rate of copies from device to host",
        definition: "Bytes copied from device to host over the time at which such copies ran, added up over kinds of host memory and GPUs. Copies without recorded bytes are left out.",
        of: |run| gbps(run, Direction::DeviceToHost),
    }
    H2dMb = "h2d_mb" {
        label: "H2D bytes", unit: MegabytesPerStep, better: Lower,
        summary: "bytes from host to device",
        definition: "Bytes copied from host to device.",
        of: |run| megabytes(run, Direction::HostToDevice),
    }
    D2hMb = "d2h_mb" {
        label: "D2H bytes", unit: MegabytesPerStep, better: Lower,
        summary: "bytes from device to host",
        definition: "Bytes copied from device to host.",
        of: |run| megabytes(run, Direction::DeviceToHost),
    }
    PageableMb = "pageable_mb" {
        label: "pageable bytes", unit: MegabytesPerStep, better: Lower,
        summary: "bytes from or to pageable memory",
        definition: "Bytes copied from or to pageable host memory.",
        of: |run| {
            let is_pageable = |group: &&crate::CopyGroup| [group.src, group.dst].contains(&MemoryKind::Pageable);
            let bytes: f64 = run.copies.iter().filter(is_pageable).map(|group| group.bytes as f64).sum();
            per_step(run, bytes / 1e6)
        },
    }
    BlockingMs = "blocking_ms" {
        label: "host inside copying calls", unit: MillisecondsPerStep, better: Lower,
        summary: "host inside copying calls that wait",
        definition: "Host time inside copying calls that waited for their copy.",
        of: |run| per_step(run, run.copies.iter().map(|group| group.blocking.ms).sum()),
    }

    // What the host does.
    SyncMs = "sync_ms" {
        label: "host in synchronizations", unit: MillisecondsPerStep, better: Lower,
        summary: "host inside synchronizations",
        definition: "Host time inside calls that wait for the device.",
        of: |run| per_step(run, run.synchronizations.iter().map(|total| total.host_ms).sum()),
    }
    LaunchMs = "launch_ms" {
        label: "host in launches", unit: MillisecondsPerStep, better: Lower,
        summary: "host inside launching calls",
        definition: "Host time inside calls that launch kernels.",
        of: |run| with_device(run, run.launches.calls_ms_per_step),
    }
    Kernels = "kernels" {
        label: "kernels", unit: PerStep, better: Neither,
        summary: "kernels launched",
        definition: "Kernels that ran.",
        of: |run| per_step(run, run.launches.kernels as f64),
    }
    KernelUs = "kernel_us" {
        label: "kernel, median", unit: Microseconds, better: Neither,
        summary: "median length of a kernel",
        definition: "Median duration of a kernel.",
        of: |run| with_device(run, run.launches.median_kernel_us),
    }
    LaunchCallUs = "launch_call_us" {
        label: "launch call, median", unit: Microseconds, better: Lower,
        summary: "median length of a launching call",
        definition: "Median host time inside a call that launches a kernel.",
        of: |run| with_device(run, run.launches.median_call_us),
    }
    EmptyQueueShare = "empty_queue_share" {
        label: "empty queue, share", unit: Share, better: Lower,
        summary: "time with nothing waiting to begin on the device",
        definition: "Share of the time at which no launched work was waiting to begin on the device.",
        of: |run| Some(run.launches.queue.as_ref()?.empty_share),
    }

    // What torch.compile did, in the whole trace.
    CompiledRegions = "compiled_regions" {
        label: "compiled regions", unit: Count, better: Neither,
        summary: "distinct frames that torch.compile compiled",
        definition: "Distinct compiled frames of torch.compile (`Torch-Compiled Region`) in the trace. Not available if the trace has none.",
        of: |run| compiled(run, |compiled| Some(compiled.frames as f64)),
    }
    GraphBreaks = "graph_breaks" {
        label: "graph breaks", unit: Count, better: Lower,
        summary: "graph breaks of torch.compile (record with_stack=True)",
        definition: "Compiled frames that resume after a graph break. Not available without compiled regions, or if several frames were compiled and the trace has no Python stacks (`with_stack=True`).",
        of: |run| compiled(run, |compiled| compiled.breaks.map(|breaks| breaks as f64)),
    }
    Recompilations = "recompilations" {
        label: "recompilations", unit: Count, better: Lower,
        summary: "recompilations of torch.compile",
        definition: "Versions of compiled frames beyond the first version of each frame. Not available without compiled regions.",
        of: |run| compiled(run, |compiled| Some(compiled.recompiled as f64)),
    }
    CompileMs = "compile_ms" {
        label: "time spent compiling", unit: Milliseconds, better: Lower,
        summary: "time that torch.compile spends compiling",
        definition: "Time spent compiling within the whole trace, warm-up included. Not available without compiled regions.",
        of: |run| compiled(run, |compiled| Some(compiled.compiling_ms)),
    }

    // The critical path and the findings.
    PathCopyShare = "path_copy_share" {
        label: "critical path, copies", unit: Share, better: Lower,
        summary: "copies on the critical path",
        definition: "Share of the critical path in copies.",
        of: |run| on_path(run, PathClass::Copy),
    }
    PathComputeShare = "path_compute_share" {
        label: "critical path, compute", unit: Share, better: Higher,
        summary: "compute on the critical path",
        definition: "Share of the critical path in compute kernels.",
        of: |run| on_path(run, PathClass::Compute),
    }
    PathHostShare = "path_host_share" {
        label: "critical path, host", unit: Share, better: Lower,
        summary: "host work on the critical path",
        definition: "Share of the critical path in work of the host.",
        of: |run| on_path(run, PathClass::Host),
    }
    Findings = "findings" {
        label: "findings", unit: Count, better: Lower,
        summary: "findings",
        definition: "Findings of any severity.",
        of: |run| Some(run.findings.len() as f64),
    }
    HighFindings = "high_findings" {
        label: "findings of high severity", unit: Count, better: Lower,
        summary: "findings of high severity",
        definition: "Findings of high severity.",
        of: |run| Some(run.findings.iter().filter(|finding| finding.severity == Severity::High).count() as f64),
    }
}

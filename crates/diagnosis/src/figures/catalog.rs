//! Which figures exist? Every figure of a run with its name, texts, unit and computation.
//!
//! Long because it is a list: one entry for each figure.

use busbound_trace::{Direction, MemoryKind};

use super::declare::catalog;
use super::value::{
    analyzed_steps, bus_bandwidth, compiled, every_step, gbps, host_only, megabytes, of_host, on_path,
    per_device, per_step, with_device,
};
use super::{Better, Definition, FigureUnit};
use crate::activity::route::CopyRoute;
use crate::analysis::breakdown::Part;
use crate::analysis::cpu_copies::CpuCopyClass;
use crate::findings::Severity;
use busbound_cause::idle::GapCause;
use busbound_cause::path::PathClass;

catalog! {
    // Step times.
    StepP50 = "step_p50" {
        label: "step, median with outliers", unit: Milliseconds, better: Lower,
        summary: "median step time, as recorded",
        definition: "Median time of all steps after the warm-up, as recorded: `step_unprofiled_ms` is without the profiler.",
        of: |run| every_step(run, |steps| steps.p50_ms),
    }
    StepP90 = "step_p90" {
        label: "step, 90th percentile", unit: Milliseconds, better: Lower,
        summary: "90th percentile of step time",
        definition: "90th percentile of the time of all steps after the warm-up.",
        of: |run| every_step(run, |steps| steps.p90_ms),
    }
    StepP99 = "step_p99" {
        label: "step, 99th percentile", unit: Milliseconds, better: Lower,
        summary: "99th percentile of step time",
        definition: "99th percentile of the time of all steps after the warm-up.",
        of: |run| every_step(run, |steps| steps.p99_ms),
    }
    StepMax = "step_max" {
        label: "step, max with outliers", unit: Milliseconds, better: Lower,
        summary: "longest step",
        definition: "Time of the longest step after the warm-up.",
        of: |run| every_step(run, |steps| steps.max_ms),
    }
    OutlierSteps = "outlier_steps" {
        label: "outlier steps", unit: Count, better: Lower,
        summary: "outlier steps",
        definition: "Steps after the warm-up that took clearly longer than the others.",
        of: |run| run.window.steps.as_ref().map(|_| run.window.outlier_count as f64),
    }
    AnalyzedStepP50 = "analyzed_step_p50" {
        label: "step, median", unit: Milliseconds, better: Lower,
        summary: "median time of the analyzed steps",
        definition: "Median time of the analyzed steps, which the other figures describe: without the warm-up and without excluded outliers. If the trace has no steps, `span_ms`.",
        of: |run| analyzed_steps(run, |steps| steps.p50_ms).or_else(|| run.breakdown.per_step_ms(|_| true)),
    }
    AnalyzedStepMin = "analyzed_step_min" {
        label: "step, min", unit: Milliseconds, better: Lower,
        summary: "shortest analyzed step",
        definition: "Time of the shortest analyzed step.",
        of: |run| analyzed_steps(run, |steps| steps.min_ms),
    }
    AnalyzedStepMax = "analyzed_step_max" {
        label: "step, max", unit: Milliseconds, better: Lower,
        summary: "longest analyzed step",
        definition: "Time of the longest analyzed step.",
        of: |run| analyzed_steps(run, |steps| steps.max_ms),
    }

    StepUnprofiledMs = "step_unprofiled_ms" {
        label: "step, without the profiler", unit: MillisecondsPerStep, better: Lower,
        summary: "step time without the profiler",
        definition: "Mean time of the analyzed steps without the profiler: given with `--wall`, measured by `busbound.profiler_handler`, or estimated from what each recorded event costs. Equal to `span_ms` if the cost of the profiler is unknown or within 3%.",
        of: |run| with_device(run, run.window.baseline_ms),
    }
    HeadroomMs = "headroom_ms" {
        label: "headroom (saved without what bounds the step)", unit: MillisecondsPerStep, better: Lower,
        summary: "what a step gains if what bounds it is free",
        definition: "`step_unprofiled_ms` minus the step if what bounds it took no time (`verdict.headroom`). Not available if the trace cannot say.",
        of: |run| Some(run.window.baseline_ms - run.verdict.headroom.as_ref()?.step_if_free_ms),
    }

    // The breakdown of a step.
    SpanMs = "span_ms" {
        label: "step, mean", unit: MillisecondsPerStep, better: Lower,
        summary: "mean time of the analyzed steps, as recorded",
        definition: "Mean time of the analyzed steps, as recorded: the sum of all parts of the step. If the trace has no steps, the time from the start of the first to the end of the last GPU work.",
        of: |run| run.breakdown.per_step_ms(|_| true),
    }
    BusyMs = "busy_ms" {
        label: "busy", unit: MillisecondsPerStep, better: Neither,
        summary: "GPU busy",
        definition: "Time in which the GPU ran anything: kernels, copies or memsets.",
        of: |run| run.breakdown.per_step_ms(|part| !part.is_idle()),
    }
    ComputeMs = "compute_ms" {
        label: "compute", unit: MillisecondsPerStep, better: Lower,
        summary: "compute kernels",
        definition: "Time in which at least one compute kernel ran. Communication kernels do not count.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Compute),
    }
    KernelWaitMs = "kernel_wait_ms" {
        label: "kernels waiting for host memory", unit: MillisecondsPerStep, better: Lower,
        summary: "kernels that wait for host memory",
        definition: "The part of `compute_ms` in which kernels wait for host memory: memory that they access over the bus (with the byte counters of `busbound record`), or pages of managed memory (if the same kernels also ran without faults).",
        of: |run| per_device(run, run.kernel_waits_ms),
    }
    CopyMs = "copy_ms" {
        label: "copies", unit: MillisecondsPerStep, better: Neither,
        summary: "copies",
        definition: "Time in which at least one copy ran, in any direction.",
        of: |run| per_device(run, run.time.copy_ms),
    }
    CommMs = "comm_ms" {
        label: "communication", unit: MillisecondsPerStep, better: Neither,
        summary: "communication kernels",
        definition: "Time in which at least one communication kernel ran.",
        of: |run| per_device(run, run.time.comm_ms),
    }
    IdleMs = "idle_ms" {
        label: "idle", unit: MillisecondsPerStep, better: Lower,
        summary: "GPU idle",
        definition: "Time between the first and the last GPU work in which the GPU ran nothing.",
        of: |run| run.breakdown.per_step_ms(Part::is_idle),
    }
    ExposedCopyMs = "exposed_copy_ms" {
        label: "exposed copies, any direction", unit: MillisecondsPerStep, better: Lower,
        summary: "copies not overlapped with any kernel",
        definition: "Time in which a copy ran, in any direction, and no kernel ran.",
        of: |run| run.breakdown.per_step_ms(Part::is_copy),
    }
    ExposedCommMs = "exposed_comm_ms" {
        label: "communication only", unit: MillisecondsPerStep, better: Lower,
        summary: "communication not overlapped with compute",
        definition: "Time in which a communication kernel ran and no compute kernel ran.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Communication),
    }
    ExposedBusCopyMs = "exposed_bus_copy_ms" {
        label: "copying only", unit: MillisecondsPerStep, better: Lower,
        summary: "exposed copies between host and device",
        definition: "Time in which a bus copy (H2D or D2H) ran and no kernel ran.",
        of: |run| run.breakdown.per_step_ms(Part::is_bus_copy),
    }
    ExposedPeerCopyMs = "exposed_peer_copy_ms" {
        label: "copying between GPUs only", unit: MillisecondsPerStep, better: Lower,
        summary: "exposed copies between GPUs",
        definition: "Time in which a peer copy (from one GPU to another) ran, and no bus copy or kernel ran.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Copy(CopyRoute::Peer)),
    }
    ExposedDeviceCopyMs = "exposed_device_copy_ms" {
        label: "D2D copying only", unit: MillisecondsPerStep, better: Lower,
        summary: "exposed D2D copies",
        definition: "Time in which a D2D copy within one GPU ran, and no bus copy, peer copy or kernel ran.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Copy(CopyRoute::WithinDevice)),
    }
    ExposedUnplacedCopyMs = "exposed_unplaced_copy_ms" {
        label: "copying only, unknown direction", unit: MillisecondsPerStep, better: Lower,
        summary: "exposed copies of unknown direction",
        definition: "Time in which a copy without a recorded direction ran, and no other copy or kernel ran.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Copy(CopyRoute::Unplaced)),
    }
    ExposedMemsetMs = "exposed_memset_ms" {
        label: "memset", unit: MillisecondsPerStep, better: Lower,
        summary: "memsets not overlapped with a copy or kernel",
        definition: "Time in which a memset ran, and no copy or kernel ran.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Memset),
    }
    IdleInputMs = "idle_input_ms" {
        label: "idle: waiting for input", unit: MillisecondsPerStep, better: Lower,
        summary: "idle while the host waits for the next batch",
        definition: "GPU idle time while the host waited for the next batch.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Input)),
    }
    IdleLaunchMs = "idle_launch_ms" {
        label: "idle: waiting for a launch", unit: MillisecondsPerStep, better: Lower,
        summary: "idle, waiting for a launch",
        definition: "GPU idle time with an empty queue, waiting for the host to launch.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Launch)),
    }
    IdleSyncMs = "idle_sync_ms" {
        label: "idle: host inside a sync call", unit: MillisecondsPerStep, better: Lower,
        summary: "idle while the host is inside a sync call",
        definition: "GPU idle time while the host was still inside a call that waits for the GPU.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Synchronization)),
    }
    IdleCopyMs = "idle_copy_ms" {
        label: "idle: host inside a copy call", unit: MillisecondsPerStep, better: Lower,
        summary: "idle while the host is inside a copy call",
        definition: "GPU idle time while the host was inside a copy call.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Copy)),
    }
    IdleHostMs = "idle_host_ms" {
        label: "idle: host busy with CPU work", unit: MillisecondsPerStep, better: Lower,
        summary: "idle while the host does CPU work",
        definition: "GPU idle time while the host did work of its own before the next launch: operators on the CPU, memory allocation, Python.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Host)),
    }
    IdleQueuedMs = "idle_queued_ms" {
        label: "idle: launched, but waiting for something not in this trace", unit: MillisecondsPerStep, better: Lower,
        summary: "idle with launched work that waits for something",
        definition: "GPU idle time in which the next work was launched and still did not start, because it waited for something that is not in the trace.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Queued)),
    }
    IdleUnexplainedMs = "idle_unexplained_ms" {
        label: "idle: cause not visible in this trace", unit: MillisecondsPerStep, better: Lower,
        summary: "idle, cause not visible in the trace",
        definition: "GPU idle time whose cause is not visible in the trace.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::Unexplained)),
    }
    IdleKernelGapMs = "idle_kernel_gap_ms" {
        label: "idle: gap between kernels", unit: MillisecondsPerStep, better: Lower,
        summary: "idle in short gaps between kernels",
        definition: "GPU idle time in gaps between queued kernels, copies and memsets that are too short to have another cause.",
        of: |run| run.breakdown.per_step_ms(|part| part == Part::Idle(GapCause::KernelGap)),
    }
    OwnMs = "own_ms" {
        label: "outside communication", unit: MillisecondsPerStep, better: Lower,
        summary: "everything except exposed communication",
        definition: "`span_ms` minus `exposed_comm_ms`: the rank's own work. Among ranks that synchronize with each other, the rank with the largest value is the straggler that the others wait for.",
        of: |run| run.breakdown.per_step_ms(|part| part != Part::Communication),
    }
    BusyShare = "busy_share" {
        label: "busy, share", unit: Share, better: Higher,
        summary: "busy share of the span",
        definition: "`busy_ms` divided by `span_ms`.",
        of: |run| run.breakdown.share_of(|part| !part.is_idle()),
    }
    ComputeShare = "compute_share" {
        label: "compute, share", unit: Share, better: Higher,
        summary: "compute share of the span",
        definition: "`compute_ms` divided by `span_ms`.",
        of: |run| run.breakdown.share_of(|part| part == Part::Compute),
    }
    IdleShare = "idle_share" {
        label: "idle, share", unit: Share, better: Lower,
        summary: "idle share of the span",
        definition: "`idle_ms` divided by `span_ms`.",
        of: |run| run.breakdown.share_of(Part::is_idle),
    }
    ExposedCopyShare = "exposed_copy_share" {
        label: "exposed copies, any direction, share", unit: Share, better: Lower,
        summary: "exposed-copy share of the span",
        definition: "`exposed_copy_ms` divided by `span_ms`.",
        of: |run| run.breakdown.share_of(Part::is_copy),
    }

    // Overlap between types of work.
    CopyComputeMs = "copy_compute_ms" {
        label: "copies overlapping compute", unit: MillisecondsPerStep, better: Higher,
        summary: "overlap of copies and compute",
        definition: "Time in which a copy and a compute kernel ran at the same time.",
        of: |run| per_device(run, run.overlap.copy_compute_ms),
    }
    CommComputeMs = "comm_compute_ms" {
        label: "communication overlapping compute", unit: MillisecondsPerStep, better: Higher,
        summary: "overlap of communication and compute",
        definition: "Time in which a communication kernel and a compute kernel ran at the same time.",
        of: |run| per_device(run, run.overlap.comm_compute_ms),
    }
    CopyCommMs = "copy_comm_ms" {
        label: "copies overlapping communication", unit: MillisecondsPerStep, better: Neither,
        summary: "overlap of copies and communication",
        definition: "Time in which a copy and a communication kernel ran at the same time.",
        of: |run| per_device(run, run.overlap.copy_comm_ms),
    }
    CommComputePct = "comm_compute_pct" {
        label: "communication overlapping compute", unit: Percent, better: Higher,
        summary: "overlapped share of communication",
        definition: "`comm_compute_ms` divided by `comm_ms`.",
        of: |run| run.overlap.comm_compute_pct_of_comm,
    }
    OverlapScore = "overlap_score" {
        label: "overlap score", unit: Share, better: Higher,
        summary: "how much pipeline stages overlap (--stage)",
        definition: "How much the stages of a pipeline overlap; needs `--stage`.",
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
        summary: "rate of H2D copies",
        definition: "Bytes copied H2D, divided by the time in which such copies ran, summed over memory kinds and GPUs. Copies without a recorded size are excluded.",
        of: |run| gbps(run, Direction::HostToDevice),
    }
    D2hGbps = "d2h_gbps" {
        label: "D2H rate", unit: GigabytesPerSecond, better: Higher,
        summary: "rate of D2H copies",
        definition: "Bytes copied D2H, divided by the time in which such copies ran, summed over memory kinds and GPUs. Copies without a recorded size are excluded.",
        of: |run| gbps(run, Direction::DeviceToHost),
    }
    H2dMb = "h2d_mb" {
        label: "H2D bytes", unit: MegabytesPerStep, better: Lower,
        summary: "bytes copied H2D",
        definition: "Bytes copied from host to device (H2D).",
        of: |run| megabytes(run, Direction::HostToDevice),
    }
    D2hMb = "d2h_mb" {
        label: "D2H bytes", unit: MegabytesPerStep, better: Lower,
        summary: "bytes copied D2H",
        definition: "Bytes copied from device to host (D2H).",
        of: |run| megabytes(run, Direction::DeviceToHost),
    }
    PageableMb = "pageable_mb" {
        label: "pageable bytes", unit: MegabytesPerStep, better: Lower,
        summary: "bytes copied from or to pageable memory",
        definition: "Bytes copied from or to pageable host memory.",
        of: |run| {
            let is_pageable = |group: &&crate::CopyGroup| [group.src, group.dst].contains(&MemoryKind::Pageable);
            let bytes: f64 = run.copies.iter().filter(is_pageable).map(|group| group.bytes as f64).sum();
            per_step(run, bytes / 1e6)
        },
    }
    BlockingMs = "blocking_ms" {
        label: "host inside copy calls", unit: MillisecondsPerStep, better: Lower,
        summary: "host time inside copy calls that wait",
        definition: "Host time inside copy calls that waited for their copy.",
        of: |run| per_step(run, run.copies.iter().map(|group| group.blocking.ms).sum()),
    }

    // Collectives.
    CollectiveMb = "collective_mb" {
        label: "collective messages", unit: MegabytesPerStep, better: Neither,
        summary: "bytes of the collectives' messages",
        definition: "Bytes of the messages of all collectives, as nccl-tests counts them. Not available if the trace records no sizes.",
        of: |run| {
            let known = run.collectives.iter().filter_map(|group| Some(group.bytes? as f64 * group.count as f64));
            per_step(run, known.sum::<f64>() / 1e6).filter(|_| run.collectives.iter().any(|group| group.bytes.is_some()))
        },
    }
    BusbwGbps = "busbw_gbps" {
        label: "bus bandwidth of collectives", unit: GigabytesPerSecond, better: Higher,
        summary: "bus bandwidth of collectives without waiting",
        definition: "Bus bandwidth (nccl-tests' definition) over all collectives with a recorded size, if each took as long as the fastest with the same message.",
        of: bus_bandwidth,
    }
    CollectiveWaitingMs = "collective_waiting_ms" {
        label: "collectives waiting", unit: MillisecondsPerStep, better: Lower,
        summary: "what collectives take longer than the fastest with the same message",
        definition: "Time that collectives take longer than the fastest with the same message: waiting for other ranks. Not available if there are fewer than three of every message.",
        of: |run| {
            let waits: Vec<f64> = run.collectives.iter().filter_map(|group| group.waiting_ms).collect();
            per_device(run, waits.iter().sum()).filter(|_| !waits.is_empty())
        },
    }

    // The host.
    SyncMs = "sync_ms" {
        label: "host in syncs", unit: MillisecondsPerStep, better: Lower,
        summary: "host time inside syncs",
        definition: "Host time inside calls that wait for the GPU.",
        of: |run| per_step(run, run.synchronizations.iter().map(|total| total.host_ms).sum()),
    }
    LaunchMs = "launch_ms" {
        label: "host in launches", unit: MillisecondsPerStep, better: Lower,
        summary: "host time inside launch calls",
        definition: "Host time inside kernel launch calls.",
        of: |run| with_device(run, run.launches.calls_ms_per_step),
    }
    Kernels = "kernels" {
        label: "kernels", unit: PerStep, better: Neither,
        summary: "kernels launched",
        definition: "Number of kernels that ran.",
        of: |run| per_step(run, run.launches.kernels as f64),
    }
    KernelUs = "kernel_us" {
        label: "kernel, median", unit: Microseconds, better: Neither,
        summary: "median kernel duration",
        definition: "Median kernel duration.",
        of: |run| with_device(run, run.launches.median_kernel_us),
    }
    LaunchCallUs = "launch_call_us" {
        label: "launch call, median", unit: Microseconds, better: Lower,
        summary: "median duration of a launch call",
        definition: "Median host time inside a kernel launch call.",
        of: |run| with_device(run, run.launches.median_call_us),
    }
    EmptyQueueShare = "empty_queue_share" {
        label: "empty queue, share", unit: Share, better: Lower,
        summary: "time with an empty launch queue",
        definition: "Share of the time in which no launched work was queued on the GPU.",
        of: |run| Some(run.launches.queue.as_ref()?.empty_share),
    }

    // Copy operators and collectives of a trace without GPU events.
    CpuCopyMs = "cpu_copy_ms" {
        label: "blocking copies, host time", unit: MillisecondsPerStep, better: Lower,
        summary: "host time in blocking copy operators (traces without GPU events)",
        definition: "Host time in copy operators that block and are slow enough to have crossed the bus. Only for traces without GPU events.",
        of: |run| of_host(run, CpuCopyClass::BusTransfer, |sum| sum.host_ms),
    }
    CpuCopyMb = "cpu_copy_mb" {
        label: "blocking copies, bytes", unit: MegabytesPerStep, better: Neither,
        summary: "bytes of blocking copy operators (traces without GPU events)",
        definition: "Bytes of the copy operators of `cpu_copy_ms`.",
        of: |run| of_host(run, CpuCopyClass::BusTransfer, |sum| sum.bytes as f64 / 1e6),
    }
    CpuCopies = "cpu_copies" {
        label: "blocking copies", unit: PerStep, better: Neither,
        summary: "blocking copy operators (traces without GPU events)",
        definition: "Number of the copy operators of `cpu_copy_ms`.",
        of: |run| of_host(run, CpuCopyClass::BusTransfer, |sum| sum.count as f64),
    }
    CpuCopyGbps = "cpu_copy_gbps" {
        label: "blocking copies, rate", unit: GigabytesPerSecond, better: Higher,
        summary: "rate of blocking copy operators (traces without GPU events)",
        definition: "Bytes over operator time of the copy operators of `cpu_copy_ms`.",
        of: |run| run.cpu_copies.iter().find_map(|sum| sum.gbps),
    }
    AsyncCopies = "async_copies" {
        label: "asynchronous copies", unit: PerStep, better: Neither,
        summary: "copy operators with non_blocking=True (traces without GPU events)",
        definition: "Number of copy operators with `non_blocking=True`. Only for traces without GPU events.",
        of: |run| of_host(run, CpuCopyClass::AsynchronousLaunch, |sum| sum.count as f64),
    }
    AsyncCopyMb = "async_copy_mb" {
        label: "asynchronous copies, bytes", unit: MegabytesPerStep, better: Neither,
        summary: "bytes of copy operators with non_blocking=True (traces without GPU events)",
        definition: "Bytes of the copy operators of `async_copies`.",
        of: |run| of_host(run, CpuCopyClass::AsynchronousLaunch, |sum| sum.bytes as f64 / 1e6),
    }
    AsyncCopyLaunchUs = "async_copy_launch_us" {
        label: "asynchronous copies, launch cost", unit: Microseconds, better: Lower,
        summary: "median host time of an asynchronous copy operator (traces without GPU events)",
        definition: "Median host time of the copy operators of `async_copies`: what launching one costs.",
        of: |run| {
            let mut launched = run.cpu_copies.iter().filter(|sum| sum.class == CpuCopyClass::AsynchronousLaunch);
            launched.find_map(|sum| Some(sum.each?.p50_us))
        },
    }
    CpuCollectives = "cpu_collectives" {
        label: "communication operators", unit: PerStep, better: Neither,
        summary: "operators of communication libraries (traces without GPU events)",
        definition: "Number of `nccl:`, `c10d::` and similar operators. One may contain another. Only for traces without GPU events.",
        of: |run| host_only(run, run.cpu_collectives.iter().map(|sum| sum.count as f64).sum()),
    }
    CpuCollectiveMs = "cpu_collective_ms" {
        label: "communication operators, host time", unit: MillisecondsPerStep, better: Lower,
        summary: "host time in operators of communication libraries (traces without GPU events)",
        definition: "Host time in the operators of `cpu_collectives`.",
        of: |run| host_only(run, run.cpu_collectives.iter().map(|sum| sum.host_ms).sum()),
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
        summary: "graph breaks of torch.compile (record with_stack=True, or give --compile-log)",
        definition: "Compiled frames that resume after a graph break, or places that break in the log of `--compile-log`; the larger number if both are known. From the trace, not available without compiled regions, or if several frames were compiled and the trace has no Python stacks (`with_stack=True`). From the log, not available if it has no graph break and does not say that they are logged (a line `TORCH_LOGS=graph_breaks`).",
        of: |run| run.launches.compiled.all_breaks().map(|breaks| breaks as f64),
    }
    Recompilations = "recompilations" {
        label: "recompilations", unit: Count, better: Lower,
        summary: "recompilations of torch.compile (in the trace, or give --compile-log)",
        definition: "Versions of compiled frames beyond the first version of each frame, or recompilations in the log of `--compile-log`; the larger number if both are known. From the trace, not available without compiled regions. From the log, not available if it has none and does not say that they are logged (a line `TORCH_LOGS=recompiles`).",
        of: |run| run.launches.compiled.all_recompilations().map(|number| number as f64),
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
        definition: "Share of the critical path in host work.",
        of: |run| on_path(run, PathClass::Host),
    }
    Findings = "findings" {
        label: "findings", unit: Count, better: Lower,
        summary: "findings",
        definition: "Number of findings of any severity.",
        of: |run| Some(run.findings.len() as f64),
    }
    HighFindings = "high_findings" {
        label: "high-severity findings", unit: Count, better: Lower,
        summary: "high-severity findings",
        definition: "Number of high-severity findings.",
        of: |run| Some(run.findings.iter().filter(|finding| finding.severity == Severity::High).count() as f64),
    }
}

//! What can a trace lack? One line each: the id, and what it means for the answer.

/// Declares the enum of ids and the meaning of each.
macro_rules! limitations {
    ($($variant:ident = $id:literal: $meaning:literal,)+) => {
        words! {
            /// What a trace does not show.
            pub enum LimitationId: "limitation" {
                $($variant = $id,)+
            }
        }

        impl LimitationId {
            /// What it means for the answer.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)+
                }
            }
        }
    };
}

limitations! {
    Lost = "lost": "Part of the file could not be read. No figure includes the lost part.",
    EndOfFile = "end_of_file": "The file ends early. Record less next time, so that it is written completely.",
    Events = "events": "The file has no events, or none of a type that busbound reads.",
    GpuActivity = "gpu_activity": "No GPU activity was recorded. The only evidence about copies is how long their operators took on the host.",
    GpuTail = "gpu_tail": "GPU events end well before host events, most likely because the end of the file is missing. The GPU looks idle there.",
    RuntimeCalls = "runtime_calls": "No CUDA runtime or driver calls were recorded, so what launched each kernel, and the blocking time inside copy calls, are unknown.",
    Correlation = "correlation": "GPU events without a correlation ID cannot be linked to the call that launched them.",
    Operators = "operators": "No framework operators were recorded, so copies and gaps have no operator name.",
    CopyBytes = "copy_bytes": "Some copies have no recorded size, so their bandwidth is unknown.",
    CopyDirection = "copy_direction": "Some copies have no recorded direction, so whether they crossed the bus is unknown.",
    MemoryKind = "memory_kind": "For some copies, the trace does not record whether host memory was pageable or pinned.",
    GpuNames = "gpu_names": "The trace does not name the GPU. Set its link with `--machine`; otherwise it is assumed.",
    GpuOfProcess = "gpu_of_process": "Several processes use the same device number, and the trace does not record which GPU each of them used.",
    GraphNodes = "graph_nodes": "Each CUDA graph was recorded as a single event. All of its time counts as compute.",
    KernelRecords = "kernel_records": "Kernels were launched or copies issued, but not all of them were recorded. The GPU looks idle while they ran.",
    CallRecords = "call_records": "GPU work has no launch call in the trace, because the profiler dropped calls. Why the GPU was idle before that work is unknown.",
    Clocks = "clocks": "GPU and host times contradict each other: the clocks are apart, or the units differ. What the GPU waited for is unknown.",
    StreamOrder = "stream_order": "Work overlaps other work of the same stream, which no GPU does. Times or stream numbers are wrong.",
    CopyRates = "copy_rates": "Copies are faster than any link. Their times or sizes are wrong.",
    Duplicates = "duplicates": "Events are in the file twice. Each counts once.",
    GraphWork = "graph_work": "CUDA graphs were launched, but the work inside them was not recorded. The GPU looks idle there.",
    PageFaults = "page_faults": "Managed memory migrated, but page faults were not recorded.",
    Shapes = "shapes": "No input shapes were recorded, so the sizes of copy operators are unknown.",
    Stacks = "stacks": "No Python stacks were recorded, so copies and gaps have no source line.",
    Memory = "memory": "No allocator samples were recorded, so whether offloaded weights would fit is unknown.",
    Synchronizations = "synchronizations": "No synchronization events were recorded. Waits between streams are inferred from order and timing.",
    Steps = "steps": "No steps are marked. Figures are for the whole trace, unless an iteration is detected in the launches.",
    Sampled = "sampled": "The trace is long and has no steps. The verdict and the predictions are computed from the part that is most like the whole.",
    StepsByPeriod = "steps_by_period": "No steps are marked. Figures are per iteration (detected in the launches). A step of the program may contain several iterations.",
    Coverage = "coverage": "Detected iterations cover only a part of the time in which the GPU had work. What is before and after them is in no figure.",
    EarlyWork = "early_work": "Work was already queued when the first step started. It counts too.",
    LongStepLeftOut = "long_step_left_out": "A single step took a fifth of the time or more, many times as long as the others. No figure includes it.",
    OutliersLeftOut = "outliers_left_out": "Outlier steps (clearly longer than the others) are excluded from the figures.",
    WarmUp = "warm_up": "The first steps took clearly longer. They are excluded as warm-up.",
    StartUp = "start_up": "The trace shows the start of a program, two steps that differ much, or a single kernel or copy. What later steps take is unknown.",
    LinkAssumed = "link_assumed": "The GPU's link is unknown, so one is assumed. Set it with `--machine`.",
    Confidential = "confidential": "The program ran in confidential computing: copies are encrypted on the CPU, pinned or not. Nothing that pinned memory gains is advised.",
    SharedLink = "shared_link": "The GPU is a MIG instance: other instances use the same link.",
    LinkState = "link_state": "The file does not record whether the link was downgraded or the process ran on the wrong NUMA node.",
    UnlikeGpus = "unlike_gpus": "The GPUs do different work. The verdict is for all of them combined.",
    LinkWrong = "link_wrong": "Copies run faster than the stated link allows, so the run used another link.",
    NoKernels = "no_kernels": "No kernel was recorded, so all copies look exposed.",
    ManagedInKernels = "managed_in_kernels": "Kernels run while pages of managed memory migrate. In the table, that time counts as compute.",
    HostMemory = "host_memory": "Kernels read their operands as slowly as if these were in host memory (UVA, zero-copy). Only a recording with the link's counters shows whether they are.",
    ProfilerCost = "profiler_cost": "The profiler slows down the host. Without it, the GPU waits less for launches.",
    OneRank = "one_rank": "This is one rank of several. The reason for a slow collective may be visible only in another rank.",
    FlightRecorder = "flight_recorder": "PyTorch's flight recorder has collectives that never ended, or what the trace lacks about them (`--flight-recorder`).",
    LostRows = "lost_rows": "Rows of GPU work could not be read. No figure includes their time.",
    NoEnd = "no_end": "Some GPU work or calls have no valid end time. No figure includes their time.",
    CpuOnly = "cpu_only": "Without GPU events, the direction of copies, device time, overlap and idle time are unknown.",
    Asynchronous = "asynchronous": "Only the launch cost of asynchronous copies is visible. Their bandwidth is unknown.",
    Undecided = "undecided": "Some copy operators may or may not have crossed the bus.",
    NoShapes = "no_shapes": "Copy operators have no shapes, so their size in bytes is unknown.",
    Stages = "stages": "The stages given with `--stage`, or named by the program, cannot be analyzed.",
    Blocks = "blocks": "No annotation matches `--by`, so no time is attributed to blocks.",
}

impl LimitationId {
    /// Whether records contradict each other, so that it is not known which of them are right.
    pub(crate) fn is_contradiction(self) -> bool {
        matches!(self, Self::Clocks | Self::StreamOrder | Self::CopyRates)
    }
}

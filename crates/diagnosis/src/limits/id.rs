//! Everything that a trace may not show, one line each: the id, and what it means for the answer.

/// Makes the type of ids, and the way from an id to its meaning.
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
    Lost = "lost": "Part of the file could not be read. What was lost is in no figure.",
    Events = "events": "The file holds no events, or none of a kind that is kept.",
    GpuActivity = "gpu_activity": "No GPU activity was recorded. Copies can only be judged by how long their operator took on the host.",
    GpuTail = "gpu_tail": "GPU events end well before the host's, most likely cut off with the end of the file. The device looks idle there.",
    RuntimeCalls = "runtime_calls": "No CUDA runtime or driver calls were recorded: who launched what, and blocking time inside copies, are unknown.",
    Correlation = "correlation": "GPU events without a correlation cannot be joined to the call that launched them.",
    Operators = "operators": "No framework operators were recorded, so copies and gaps have no operator's name.",
    CopyBytes = "copy_bytes": "Some copies do not say how many bytes they moved, so they have no bandwidth.",
    CopyDirection = "copy_direction": "Some copies have no direction, so whether they crossed the bus is unknown.",
    MemoryKind = "memory_kind": "Some copies do not say whether host memory was pageable or pinned.",
    GpuNames = "gpu_names": "The GPU's name is not in the trace, so its link must be given or assumed.",
    GpuOfProcess = "gpu_of_process": "Several processes use the same device number, and nothing says which GPU each means.",
    GraphNodes = "graph_nodes": "CUDA graphs were recorded as one piece of work each. Their whole time counts as compute.",
    GraphWork = "graph_work": "Launches of CUDA graphs left no record of what ran in them. The device looks idle there.",
    PageFaults = "page_faults": "Managed memory moved, and page faults were not recorded.",
    Shapes = "shapes": "No input shapes were recorded, so copy operators have no size.",
    Stacks = "stacks": "No Python stacks were recorded, so copies and gaps have no source line.",
    Memory = "memory": "No allocator samples were recorded, so whether offloaded weights would fit is unknown.",
    Synchronizations = "synchronizations": "No synchronization events were recorded. Waits between streams are inferred from order and time.",
    Steps = "steps": "No steps are marked. Figures are for the whole trace, unless a period shows in the launches.",
    StepsByPeriod = "steps_by_period": "No steps are marked. Figures are for an iteration that was detected in the launches; a step of the program may hold several.",
    EarlyWork = "early_work": "Work was already queued when the first step began, and counts too.",
    OutliersLeftOut = "outliers_left_out": "Steps that took clearly longer are left out of the figures.",
    WarmUp = "warm_up": "The first steps took clearly longer and are left out as warm-up.",
    LinkAssumed = "link_assumed": "The GPU's link is unknown and assumed. Give it with `--machine`.",
    LinkState = "link_state": "Whether the link was trained down, or the process ran on the wrong NUMA node, is not in the file.",
    UnlikeGpus = "unlike_gpus": "The GPUs do different work. The verdict is for all of them together.",
    LinkWrong = "link_wrong": "Copies run faster than the stated link can: it is not the link that was used.",
    NoKernels = "no_kernels": "No kernel was recorded, so all copies look exposed.",
    ManagedInKernels = "managed_in_kernels": "Kernels run while pages of managed memory are on their way. In the table that time counts as compute.",
    ProfilerCost = "profiler_cost": "The profiler slows the host. Without it, less time is spent waiting for launches.",
    OneRank = "one_rank": "One rank of several: why a collective took long may only show in another rank.",
    LostRows = "lost_rows": "Rows of GPU work could not be read. Their time is in no figure.",
    NoEnd = "no_end": "GPU work without a usable end. Its time is in no figure.",
    CpuOnly = "cpu_only": "Without GPU events, direction of copies, device time, overlap and idle time are unknown.",
    Asynchronous = "asynchronous": "Asynchronous copies show their launch cost only. No bandwidth follows from it.",
    Undecided = "undecided": "Some copy operators may or may not have crossed the bus.",
    NoShapes = "no_shapes": "Copy operators have no shapes, so their bytes are unknown.",
    Stages = "stages": "The stages that were asked for, or named by the program, cannot be followed.",
    Blocks = "blocks": "No annotation matches `--by`, so no time is attributed to blocks.",
}

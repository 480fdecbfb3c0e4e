//! What should be changed? Each finding has evidence, a precondition, a fix and a saving. No evidence, no finding.
//!
//! This file is the registry. Each finding is one file next to it, named after the finding's id, that declares a
//! [`Rule`](common::Rule) with everything about it. [`common`] holds what findings share.

mod allocation_in_loop;
mod bandwidth_deficit;
mod collective_waiting;
mod common;
mod copied_back;
mod copy_calls;
mod copy_collective_contention;
mod copy_race;
mod cpu_casts;
mod cpu_operators;
mod cpu_optimizer;
mod device_copies;
mod exposed_communication;
mod float_input;
mod fp32_matmul;
mod framework_hooks;
mod host_gather;
mod input_wait;
mod late_prefetch;
mod launch_bound;
mod link_saturated;
mod managed_faults;
mod managed_thrashing;
mod narrow_link;
mod non_blocking_pageable;
mod page_faults;
mod pageable_copies;
mod pageable_d2h;
mod pinned_rounding;
mod pinning_in_loop;
mod power_limited;
mod profiler_distortion;
mod python_time;
mod round_trip;
mod serialized_copies;
mod shm_transport;
mod slow_collective;
mod slow_link;
mod small_collectives;
mod sync_in_loop;
mod unfused_attention;
mod unneeded_offload;
mod unused_offload;
mod wrong_numa_node;
mod zero_copy;

pub(crate) use common::find::{explaining_first, findings, limit_to_visible};
pub(crate) use common::prize::prize;
pub use common::prize::{AppliedFix, Prize};
pub use common::{Candidate, Cost, Document, Effort, EvidenceUnit, Finding, Severity, WithoutCode};

/// Declares the enum of ids and the rule of each.
macro_rules! registry {
    ($($variant:ident = $id:literal in $file:ident,)+) => {
        words! {
            /// The id of a finding.
            pub enum FindingId: "finding" {
                $($variant = $id,)+
            }
        }

        impl FindingId {
            pub(crate) fn rule(self) -> &'static common::Rule {
                match self {
                    $(Self::$variant => &$file::RULE,)+
                }
            }
        }
    };
}

// In the order of the documentation: findings about copies first, findings that only explain last.
registry! {
    PageableCopies = "pageable_copies" in pageable_copies,
    PageableD2h = "pageable_d2h" in pageable_d2h,
    NonBlockingPageable = "non_blocking_pageable" in non_blocking_pageable,
    SerializedCopies = "serialized_copies" in serialized_copies,
    LatePrefetch = "late_prefetch" in late_prefetch,
    BandwidthDeficit = "bandwidth_deficit" in bandwidth_deficit,
    FloatInput = "float_input" in float_input,
    LinkSaturated = "link_saturated" in link_saturated,
    ZeroCopy = "zero_copy" in zero_copy,
    CopyCalls = "copy_calls" in copy_calls,
    CopiedBack = "copied_back" in copied_back,
    RoundTrip = "round_trip" in round_trip,
    PageFaults = "page_faults" in page_faults,
    SyncInLoop = "sync_in_loop" in sync_in_loop,
    InputWait = "input_wait" in input_wait,
    LaunchBound = "launch_bound" in launch_bound,
    CpuOptimizer = "cpu_optimizer" in cpu_optimizer,
    HostGather = "host_gather" in host_gather,
    CpuCasts = "cpu_casts" in cpu_casts,
    CpuOperators = "cpu_operators" in cpu_operators,
    FrameworkHooks = "framework_hooks" in framework_hooks,
    PythonTime = "python_time" in python_time,
    AllocationInLoop = "allocation_in_loop" in allocation_in_loop,
    PinningInLoop = "pinning_in_loop" in pinning_in_loop,
    ExposedCommunication = "exposed_communication" in exposed_communication,
    ShmTransport = "shm_transport" in shm_transport,
    CollectiveWaiting = "collective_waiting" in collective_waiting,
    SlowCollective = "slow_collective" in slow_collective,
    SmallCollectives = "small_collectives" in small_collectives,
    CopyCollectiveContention = "copy_collective_contention" in copy_collective_contention,
    UnneededOffload = "unneeded_offload" in unneeded_offload,
    UnusedOffload = "unused_offload" in unused_offload,
    PinnedRounding = "pinned_rounding" in pinned_rounding,
    SlowLink = "slow_link" in slow_link,
    NarrowLink = "narrow_link" in narrow_link,
    WrongNumaNode = "wrong_numa_node" in wrong_numa_node,
    ManagedThrashing = "managed_thrashing" in managed_thrashing,
    ManagedFaults = "managed_faults" in managed_faults,
    DeviceCopies = "device_copies" in device_copies,
    Fp32Matmul = "fp32_matmul" in fp32_matmul,
    UnfusedAttention = "unfused_attention" in unfused_attention,
    CopyRace = "copy_race" in copy_race,
    ProfilerDistortion = "profiler_distortion" in profiler_distortion,
    PowerLimited = "power_limited" in power_limited,
}

impl FindingId {
    /// The title without figures of a run.
    pub fn title(self) -> &'static str {
        self.rule().title
    }

    /// What the finding means, how it is computed and how to fix it.
    pub fn document(self) -> &'static Document {
        &self.rule().document
    }

    /// Whether it explains idle time of the GPU by what the host does.
    pub(crate) fn is_about_idle_time(self) -> bool {
        use busbound_cause::Resource::{Host, Input, Launch, Sync};
        let relieves = self.rule().relieves;
        !relieves.is_empty()
            && relieves.iter().all(|resource| matches!(resource, Host | Input | Launch | Sync))
    }

    /// Whether it is about the kernels themselves: these matter only where compute bounds the run, alone or with something else.
    pub(crate) fn is_about_kernels(self) -> bool {
        matches!(self, Self::Fp32Matmul | Self::UnfusedAttention)
    }

    /// Whether it is about correct results, not about speed.
    pub fn is_about_correctness(self) -> bool {
        matches!(self, Self::CopyRace)
    }

    /// The what-if changes that apply its fix, or why none exist.
    pub fn candidate(self) -> &'static Candidate {
        &self.rule().candidate
    }
}

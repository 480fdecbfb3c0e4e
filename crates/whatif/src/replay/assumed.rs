//! What does a replay assume that the trace does not show? An expected, a best and a worst case.

use busbound_cause::{Once, Time};

use super::models::RecordingIs;
use super::power::Effect;

/// Which estimate of the data that a kernel reads, without what it reads again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum OnceIs {
    Least,
    Likely,
    Most,
}

impl OnceIs {
    pub(super) fn of(self, once: Once) -> u64 {
        match self {
            Self::Least => once.least,
            Self::Likely => once.likely,
            Self::Most => once.most,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Assumed {
    /// Time of changed copies, as a multiple of the curve's time.
    pub(super) copies: f64,
    /// Host work right after a staged copy, as a multiple of its measured time: staging evicts the CPU caches, so
    /// the work after it runs with cold caches.
    pub(super) behind_staging: f64,
    /// Host work that fills memory before it is copied, as a multiple of its measured time, if the memory is reused.
    pub(super) first_touch: f64,
    /// Time of a gather that fills reused pages instead of fresh ones, as a multiple of its measured time, and its rate in bytes per
    /// nanosecond: the shorter one counts. Measured (fixtures/frameworks): 0.11 to 0.41, and 28 to 76 while it is recorded.
    pub(super) gather_fresh: f64,
    pub(super) gather_rate: f64,
    /// Time of a gather that fills pinned memory instead of pages that were touched before, as a multiple of its measured time.
    /// Measured (fixtures/frameworks): 0.63 to 0.88.
    pub(super) gather_reused: f64,
    /// Python time after a staged copy, as a multiple of its measured time, if the memory is not freed then.
    pub(super) freeing: f64,
    /// Host work that exists only for copies that are removed, as a multiple of its measured time.
    pub(super) hooks: f64,
    /// Longest host work between two launches once hooks are removed, as a multiple of the usual one.
    pub(super) longest_gap: f64,
    /// Time of a pageable copy from pages that no longer change in each step, as a multiple of its measured time. Measured on
    /// the pairs with `keep` in fixtures/frameworks: 0.75 to 1.
    pub(super) reused_pages: f64,
    /// Host work between launches in steps that no longer move their weights into new host memory, as a multiple of its measured time:
    /// the kernel maps and unmaps less. Measured (`accelerate-model_offload` in fixtures/frameworks, five sizes): 0.57 to 0.77.
    pub(super) without_churn: f64,
    /// How much of an optimizer that runs beside backward is hidden, as a share of the time that the host has for it.
    pub(super) hidden: f64,
    /// Host work between launches that a CUDA graph cannot capture, as a multiple, if the host reads values within the step.
    pub(super) uncaptured: f64,
    /// The same if the host reads no values: real programs still fill input buffers and keep some operators outside of graphs.
    pub(super) outside_graphs: f64,
    /// Gap between two kernels of a CUDA graph, in nanoseconds.
    pub(super) node_gap: Time,
    /// From the beginning of a node of a CUDA graph to that of the next one on its stream, at least, in nanoseconds. Measured on 17 graphs in
    /// fixtures/frameworks: the fastest twentieth of these times is 1.12 to 1.38 µs as recorded, 0.18 less without the profiler; the 600
    /// kernels of `launch-elementwise`, of 0.99 µs each, take 1.21 µs each with all that is around them.
    pub(super) node_every: Time,
    /// Host work per merged copy, as a multiple of its measured time: the data has to be packed.
    pub(super) packing: f64,
    /// The rate of staged copies, as a share of pinned ones: docs/results/try.md.
    pub(super) staged_share: f64,
    /// How many times faster several threads bring in new pages than the driver: docs/results/try.md, 16 to 256 MiB.
    pub(super) new_pages_gain: f64,
    /// Time for a batch in a worker process, as a multiple of its time in the training process.
    pub(super) worker: f64,
    /// Time of the loader's thread to receive and pin a batch, as a multiple of what the training thread took.
    pub(super) pin_thread: f64,
    /// Time of the training thread to take a batch from that thread, as a share of the time to receive it. That thread receives
    /// batches in Python, too, and one of the two runs at a time. Measured (seven pairs in fixtures/frameworks): 0.7 to 1.4.
    pub(super) handing_over: f64,
    /// Time to receive a batch from a worker, as a share of the time to make it.
    pub(super) receiving: f64,
    /// Host time per copy that moves to a stream of its own, in nanoseconds: an event, a wait and the switch of streams, in Python.
    pub(super) side_stream: Time,
    /// A framework's hooks wait for the copies of a group before they issue those of the next, as diffusers' do.
    pub(super) hooks_wait: bool,
    /// Time of a kernel that reads host memory, once it reads device memory instead, as a share of its measured time.
    pub(super) beside_link: f64,
    /// The same of a matrix product that reads its weights once per row of tiles. A row of 256 makes 256 operations of each byte, which at
    /// 51 GB/s is 2% of what an H200 does in the time; other GPUs have slower links in about the same proportion.
    pub(super) product_beside_link: f64,
    /// How much of what a kernel reads from host memory is different data.
    pub(super) once: OnceIs,
    /// How much of the power effect to assume.
    pub(super) power: Effect,
    /// Concurrent work does not use the copied data: it belongs to the previous or the next iteration.
    pub(super) independent: bool,
    /// How much of the host's time was the profiler's.
    pub(super) recording: RecordingIs,
}

impl Assumed {
    pub(super) const EXPECTED: Self = Self {
        copies: 1.0,
        behind_staging: 0.5,
        first_touch: 0.45,
        gather_fresh: 0.25,
        gather_rate: 60.0,
        gather_reused: 0.8,
        freeing: 0.3,
        hooks: 0.1,
        longest_gap: 3.0,
        reused_pages: 0.88,
        without_churn: 0.75,
        hidden: 0.5,
        uncaptured: 0.4,
        outside_graphs: 0.0,
        node_gap: 150,
        node_every: 1_120,
        packing: 0.2,
        staged_share: 0.85,
        new_pages_gain: 10.0,
        worker: 1.2,
        pin_thread: 1.1,
        handing_over: 0.9,
        receiving: 0.05,
        side_stream: 15_000,
        hooks_wait: true,
        beside_link: 0.08,
        product_beside_link: 0.02,
        once: OnceIs::Likely,
        power: Effect::AsMeasured,
        independent: false,
        recording: RecordingIs::Expected,
    };
    pub(super) const BEST: Self = Self {
        copies: 0.98,
        behind_staging: 0.35,
        first_touch: 0.3,
        gather_fresh: 0.1,
        gather_rate: 120.0,
        gather_reused: 0.6,
        freeing: 0.0,
        hooks: 0.0,
        longest_gap: 1.5,
        reused_pages: 0.75,
        without_churn: 0.6,
        hidden: 1.0,
        uncaptured: 0.1,
        outside_graphs: 0.0,
        node_gap: 50,
        node_every: 1_000,
        packing: 0.0,
        staged_share: 0.95,
        new_pages_gain: 14.0,
        worker: 1.0,
        pin_thread: 0.8,
        handing_over: 0.4,
        receiving: 0.01,
        side_stream: 3_000,
        hooks_wait: false,
        beside_link: 0.01,
        product_beside_link: 0.005,
        once: OnceIs::Least,
        power: Effect::None,
        independent: true,
        recording: RecordingIs::Most,
    };
    pub(super) const WORST: Self = Self {
        copies: 1.03,
        behind_staging: 0.75,
        first_touch: 1.0,
        gather_fresh: 0.9,
        gather_rate: 20.0,
        gather_reused: 1.0,
        freeing: 1.0,
        hooks: 0.3,
        longest_gap: 6.0,
        reused_pages: 1.0,
        without_churn: 1.0,
        hidden: -0.5,
        uncaptured: 0.7,
        outside_graphs: 0.1,
        node_gap: 300,
        node_every: 1_400,
        packing: 0.6,
        staged_share: 0.65,
        new_pages_gain: 6.0,
        worker: 1.6,
        pin_thread: 1.5,
        handing_over: 1.0,
        receiving: 0.2,
        side_stream: 60_000,
        hooks_wait: true,
        beside_link: 0.3,
        product_beside_link: 0.06,
        once: OnceIs::Most,
        power: Effect::Most,
        independent: false,
        recording: RecordingIs::Least,
    };
}

//! Every number that separates one cause from another, each with its evidence.
//!
//! Nothing else in this crate, or in the crates above it, decides who waited for whom by a number of its own.

use crate::Time;

/// Device work that starts this long after everything known to precede it waited for something else.
/// Evidence: kernels that are ready start within 10 µs of their predecessor in the recorded runs (H200, CUPTI's clock);
/// events between streams add up to 5 µs.
pub const UNEXPLAINED_START: Time = 20_000;

/// Work of another stream that ended at most this long before such a start may be what it waited for.
/// Evidence: with recorded waits (CUPTI synchronization records) the source ends 2 to 40 µs before the waiting work starts.
pub const SOURCE_ENDED_WITHIN: Time = 60_000;

/// A thread with nothing recorded for this long may be waiting for another thread.
/// Evidence: Python between two operators leaves holes of up to 15 µs on the machines recorded; autograd's handover leaves
/// holes as long as the backward pass.
pub const THREAD_IDLE: Time = 20_000;

/// Time from the end of awaited work to the start of the waiting work when nothing else is in the way: how long an event takes
/// to pass from one stream to another. Evidence: the median over recorded waits on an H200 is 1.6 µs.
pub const EVENT_PASSES: Time = 2_000;

/// Gap between two works of one stream when the trace shows no typical one. Evidence: back-to-back kernels on an H200 are 0.9 to
/// 1.6 µs apart.
pub const STREAM_GAP: Time = 1_500;

/// A shorter idle gap of a device is its own gap between kernels and has no other cause. Evidence: as above, with CUPTI's
/// timestamps being exact to about 1 µs at each end.
pub const KERNEL_GAP: Time = 3_000;

/// Work launched before the device ran dry starts within this time, for reasons of the device. Evidence: launches through
/// CUDA graphs and programmatic stream serialization; longer ones were always explained by something else.
pub const QUEUED_GAP: Time = 15_000;

/// Time from a launch call to the start of its work on an idle device, at most. Evidence: 4 to 12 µs usually, up to 50 µs when
/// the GPU has been idle for long.
pub const LAUNCH_LATENCY: Time = 50_000;

/// A wait longer than this before device work is looked at for other work in the way. Evidence: see [`STREAM_GAP`].
pub const SHORT_WAIT: Time = 5_000;

/// The last device work ends a step if it ends this shortly before the step does. Evidence: a synchronization returns to the
/// host 3 to 9 µs after the work it waited for.
pub const STEP_ENDS_WITH_WORK: Time = 10_000;

/// A call that enqueues a copy takes this long when the trace shows no typical one. Evidence: 6 to 14 µs for
/// `cudaMemcpyAsync` from pinned memory on an H200's host.
pub const COPY_CALL: Time = 10_000;

/// A copy call of this length has waited for the copy or staged it. Evidence: see [`COPY_CALL`]; ten times as long.
pub const LONG_COPY_CALL: Time = 100_000;

/// The host came out of a wait just before a device ran dry if it was inside one this long before or after: clock skew between
/// host and device, and the time until the device has drained.
pub const BEFORE_DRY: Time = 2_000;
pub const AFTER_DRY: Time = 50_000;

/// A wait that follows its copy this closely belongs to it, where no operator says so. Evidence: `.to()` issues both within one
/// operator, 5 to 30 µs apart.
pub const WAIT_FOLLOWS_COPY: Time = 50_000;

/// Less than this share of a window recorded on the host: nothing can be said about what it did.
pub const RECORDED_SHARE: f64 = 0.2;

/// Other work that holds the device for this share of a wait was in the way.
pub const CONTENDED_SHARE: f64 = 0.8;

/// Launches of CUDA graphs without recorded work above this share are no accident: the last ones of a recording may lack
/// theirs.
pub const UNSEEN_GRAPHS: f64 = 0.10;

/// How far back a stream is searched for work that had been issued by a moment. Bounds the time spent on hostile traces.
pub const SEARCH_DEPTH: usize = 4096;
/// The same where every work is searched for.
pub const SHORT_SEARCH_DEPTH: usize = 64;

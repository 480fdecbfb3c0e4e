//! Every number that separates one cause from another, each with its evidence.
//!
//! Nothing else in this crate decides who waited for whom by a number of its own. "Measured" refers to docs/results/thresholds.md:
//! distributions over the recorded runs under fixtures/, computed by this crate's example `evidence`. Where nothing is measured, that
//! is said: such a number was chosen, and what speaks for it is the accuracy of predictions (docs/results/whatif.md).

use crate::Time;

/// Device work that starts this long after everything known to precede it waited for something else.
/// Measured: 90% of work that was queued in time starts within 4.6 µs of its predecessor, 90% of launches on an idle stream within
/// 16.3 µs of their call.
pub const UNEXPLAINED_START: Time = 20_000;

/// Work of another stream that ended at most this long before such a start may be what it waited for. Chosen.
pub const SOURCE_ENDED_WITHIN: Time = 60_000;

/// A thread with nothing recorded for this long may be waiting for another thread.
/// Measured: 90% of the holes between operators and calls of launching threads are shorter than 18.3 µs.
pub const THREAD_IDLE: Time = 20_000;

/// Time from the end of awaited work to the start of the waiting work when nothing else is in the way. Chosen, near the median
/// gap of 1.6 µs between works of one stream.
pub const EVENT_PASSES: Time = 2_000;

/// Gap between two works of one stream when the trace shows no typical one. Measured: median 1.6 µs.
pub const STREAM_GAP: Time = 1_500;

/// A shorter idle gap of a device is its own gap between kernels and has no other cause. Measured: between the median (1.6 µs) and
/// the 90th percentile (4.6 µs) of gaps before work that was queued in time.
pub const KERNEL_GAP: Time = 3_000;

/// Work launched before the device ran dry starts within this time, for reasons of the device. Chosen, three times the 90th
/// percentile of such gaps.
pub const QUEUED_GAP: Time = 15_000;

/// Time from a launch call to the start of its work on an idle device, at most. Measured: median 7.5 µs, 90th percentile 16.3 µs;
/// three times that.
pub const LAUNCH_LATENCY: Time = 50_000;

/// A wait longer than this before device work is looked at for other work in the way. Measured: 90% of gaps before queued work are
/// shorter than 4.6 µs.
pub const SHORT_WAIT: Time = 5_000;

/// The last device work ends a step if it ends this shortly before the step does. Measured: 90% of synchronizations return within
/// 9.8 µs of the end of the work they waited for.
pub const STEP_ENDS_WITH_WORK: Time = 10_000;

/// A call that enqueues a copy takes this long when the trace shows no typical one. Measured: median 5.8 µs, 90th percentile
/// 15.5 µs.
pub const COPY_CALL: Time = 10_000;

/// A copy call of this length has waited for the copy or staged it. Measured: 99% of asynchronous calls take less than 43.7 µs, 90% of
/// blocking ones more than 1.19 ms.
pub const LONG_COPY_CALL: Time = 100_000;

/// The host came out of a wait just before a device ran dry if it was inside one this long before or after: clock skew between
/// host and device, and the time until the device has drained. Measured: 99% of synchronizations return within 26.0 µs.
pub const BEFORE_DRY: Time = 2_000;
pub const AFTER_DRY: Time = 50_000;

/// A wait that follows its copy this closely belongs to it, where no operator says so. Measured: 99% of such waits follow within
/// 8.6 µs where the operator does say so.
pub const WAIT_FOLLOWS_COPY: Time = 50_000;

/// Less than this share of a window recorded on the host: nothing can be said about what it did. Chosen.
pub const RECORDED_SHARE: f64 = 0.2;

/// Other work that holds the device for this share of a wait was in the way. Chosen.
pub const CONTENDED_SHARE: f64 = 0.8;

/// Launches of CUDA graphs without recorded work above this share are no accident: the last ones of a recording may lack
/// theirs. Chosen.
pub const UNSEEN_GRAPHS: f64 = 0.10;

/// How far back a stream is searched for work that had been issued by a moment. Bounds the time spent on hostile traces.
pub const SEARCH_DEPTH: usize = 4096;
/// The same where every work is searched for.
pub const SHORT_SEARCH_DEPTH: usize = 64;

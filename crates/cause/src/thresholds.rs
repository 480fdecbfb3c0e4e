//! Which numbers separate one cause from another? All of them, each with its evidence.
//!
//! No other file in this crate uses its own number to decide what waited for what. "Measured" refers to
//! docs/results/thresholds.md: distributions over the recorded runs in fixtures/, computed by this crate's example `evidence`.
//! "Chosen" numbers are not measured; the accuracy of predictions (docs/results/whatif.md) supports them.

use crate::Time;

/// Device work that starts this long after all of its known predecessors waited for something else.
/// Measured: 90% of work that was queued in time starts within 4.6 µs of its predecessor; 90% of launches on an idle stream start
/// within 16.3 µs of their call.
pub const UNEXPLAINED_START: Time = 20_000;

/// Such work may have waited for work on another stream that ended at most this long before. Chosen.
pub const SOURCE_ENDED_WITHIN: Time = 60_000;

/// A launch call this long waited for something, such as the driver's lock. Chosen, above 99% of launch calls; in `loops-thread_6-pageable`
/// (fixtures/frameworks) launches that wait for another thread's staged copy take 4.1 ms.
pub const LONG_LAUNCH: Time = 100_000;

/// A launch that waited for the lock of a staged copy returns within this time of the copy's call. Measured in the same run: 121 µs.
pub const RETURNS_AFTER_LOCK: Time = 300_000;

/// A thread with nothing recorded for this long may be waiting for another thread.
/// Measured: 90% of the gaps between operators and calls of launching threads are shorter than 18.3 µs.
pub const THREAD_IDLE: Time = 20_000;

/// A longer stretch of host time without a launch, copy or sync call is work of its own; a shorter one is part of launching.
/// Measured: 90% of the gaps between operators and calls of launching threads are shorter than 18.3 µs, ten times less.
pub const HOST_STRETCH: Time = 200_000;

/// A thread on which nothing is recorded for at least this share of a stretch, while the device is busy for most of it, may have
/// waited for the device. Chosen.
pub const SILENT_SHARE: f64 = 0.8;
pub const BUSY_MEANWHILE: f64 = 0.5;

/// Time from the end of awaited work to the start of the waiting work without other delays. Chosen, near the median gap of
/// 1.6 µs between kernels on one stream.
pub const EVENT_PASSES: Time = 2_000;

/// Gap between two kernels on one stream if the trace shows no typical one. Measured: median 1.6 µs.
pub const STREAM_GAP: Time = 1_500;

/// A shorter idle gap is a gap between kernels and has no other cause. Measured: between the median (1.6 µs) and the 90th
/// percentile (4.6 µs) of gaps before work that was queued in time.
pub const KERNEL_GAP: Time = 3_000;

/// Work launched before the device became idle starts within this time; the device itself causes the delay. Chosen, three times
/// the 90th percentile of such gaps.
pub const QUEUED_GAP: Time = 15_000;

/// Time from a launch call to the start of its work on an idle device. Measured: median 7.5 µs. In a trace in which every launch
/// waits in a queue, the shortest time says nothing.
pub const USUAL_LATENCY: Time = 7_500;

/// Maximum time from a launch call to the start of its work on an idle device. Measured: median 7.5 µs, 90th percentile 16.3 µs;
/// three times that.
pub const LAUNCH_LATENCY: Time = 50_000;

/// A longer wait before device work is checked for other work that occupied the device. Measured: 90% of gaps before queued work
/// are shorter than 4.6 µs.
pub const SHORT_WAIT: Time = 5_000;

/// The last device work ends a step if it ends at most this long before the end of the step. Measured: 90% of host syncs return
/// within 9.8 µs of the end of the work they waited for.
pub const STEP_ENDS_WITH_WORK: Time = 10_000;

/// Duration of a call that enqueues a copy if the trace shows no typical one. Measured: median 5.8 µs, 90th percentile 15.5 µs.
pub const COPY_CALL: Time = 10_000;

/// A copy call that only enqueues a copy of pinned memory. Measured: median 5.8 µs under the profiler, which adds 1.8 µs.
pub const PINNED_COPY_CALL: Time = 4_000;

/// A longer copy call waited for the copy or staged it. Measured: 99% of asynchronous calls take less than 43.7 µs, 90% of blocking
/// ones more than 1.19 ms.
pub const LONG_COPY_CALL: Time = 100_000;

/// A host wait ended when the device became idle if the host was still in it this long before or after that moment. This allows
/// for clock skew between host and device, and for the return of the call. Measured: 99% of host syncs return within 26.0 µs.
pub const BEFORE_IDLE: Time = 2_000;
pub const AFTER_IDLE: Time = 50_000;

/// Without operators in the trace, a wait that follows a copy within this time belongs to it. Measured: 99% of waits in a copy's
/// operator follow the copy within 8.6 µs.
pub const WAIT_FOLLOWS_COPY: Time = 50_000;

/// If other work occupies the device for this share of a wait, it caused the wait. Chosen.
pub const CONTENDED_SHARE: f64 = 0.8;

/// A launch call with this much unfinished work before it on its stream, and this long, waits for room in the launch queue. Measured
/// in somebody else's trace: launches block at 735 to 862 unfinished kernels, and return when some of them have run.
pub const FULL_QUEUE: usize = 500;
pub const BLOCKED_LAUNCH: Time = 20_000;
/// What such a call takes by itself. Chosen, from the usual ones.
pub const LAUNCH_CALL: Time = 10_000;

/// Above this share of CUDA graph launches without recorded work, the trace does not record graph work. Below it, these are the
/// last launches of a recording. Chosen.
pub const UNSEEN_GRAPHS: f64 = 0.10;

/// Above this share of kernel launches without a kernel in the trace, the profiler dropped records. Of more than 110 complete traces (fixtures
/// and other people's) none has more than 0.1%, apart from launches into a captured graph; a trace with dropped records has 40%.
pub const UNRECORDED_LAUNCHES: f64 = 0.01;

/// Above this share of GPU work without a launch call in the trace, the profiler dropped calls. Of the same traces none has more than
/// 4%, apart from work that was launched before the recording. Chosen.
pub const UNRECORDED_CALLS: f64 = 0.10;

/// Up to this share of the launches may still be queued when a recording stops. Of the same traces none has any. Chosen.
pub const QUEUED_AT_THE_END: f64 = 0.10;

/// A stream whose last work ends this near to the end of a recording, as a part of all recorded GPU time, still had work then. Chosen.
pub const BUSY_TO_THE_END: i64 = 100;

/// Of the calls after that of the last recorded work, those whose work ran after the recording are more than this share: in a
/// stream all of them, in other streams none. Chosen.
pub const MOSTLY_QUEUED: f64 = 0.5;

/// Above this share, records that contradict each other are no accident. No trace that we have has any. Chosen.
pub const CONFLICTING_RECORDS: f64 = 0.01;

/// The clocks of host and GPU agree better than this. In all recorded traces no work begins 1 µs before its call. Chosen, a thousand
/// times that.
pub const CLOCKS_APART: Time = 1_000_000;

/// Work does not stay in a launch queue for longer than this, or than all recorded work takes. Chosen.
pub const LONGEST_QUEUE: Time = 200_000_000;

/// Above this share of a stream's time, work that overlaps other work of its stream has wrong times, or the wrong stream. In the recorded
/// traces it is at most 0.04%. Chosen.
pub const OVERLAPPING_WORK: f64 = 0.02;

/// A copy that ended less than this after a call began may have been done by then: clocks of GPU and host are related with some
/// error. Chosen, far above the microseconds that CUPTI's conversion is off by.
pub const CLOCKS_AGREE: Time = 50_000;
/// With more streams that copy, races are not looked for: each wait is compared with all of them.
pub const MOST_COPYING_STREAMS: usize = 256;
/// Races that are looked for. A loop has the same one again and again.
pub const MOST_RACES: usize = 10_000;

/// How far back a stream is searched for work issued before a moment. Limits the time spent on malicious traces.
pub const SEARCH_DEPTH: usize = 4096;
/// The same for searches that run for every kernel and copy.
pub const SHORT_SEARCH_DEPTH: usize = 64;
/// With more streams, those of a device are searched together, not one by one: the time must not grow with their number.
pub const FEW_STREAMS: usize = 64;
/// With more launching threads, no thread is taken to wait for another one: every gap of each would be compared with all others.
pub const MANY_THREADS: usize = 256;
/// How far back the calls inside an operator are searched.
pub const OPERATOR_SEARCH_DEPTH: usize = 1_000;

/// A program can do without reading a value of up to this size within a step. Chosen: a few numbers, not data.
pub const SMALL_READ: u64 = 4 << 10;

/// The wait for such a value follows the call that copies it within this time. Measured: 99% of waits in a copy's operator follow
/// the copy within 8.6 µs.
pub const READ_AND_WAIT: Time = 20_000;

/// Of the host time before a call and of the call itself, at least this share is the program's own, and not the profiler's.
/// Set with the runs marked learn in fixtures/frameworks: from 0.25 to 0.40, steps without the profiler within 10% of the walls rise
/// from 86% to 91% of the runs and ranges of predictions get narrower; beyond it, fewer predictions are inside.
pub const OWN_SHARE: f64 = 0.4;

/// What the link's counters count for each byte of a copy: packets with their heads. Measured: a copy loop at 55.3 GB/s was counted as
/// 59.6 (docs/results/record.md).
pub const COPY_PACKET: f64 = 1.078;

/// The same for kernels that read or write host memory, whose packets are shorter. Measured on an H200: 1.157 for 32-MiB reads by
/// elementwise kernels, 1.19 for matrix products and for writes (docs/results/zero_copy.md).
pub const KERNEL_PACKET: f64 = 1.17;

/// An allocation that differs by less than this from what a kernel reads may be what it reads: what launches read is known within 3%
/// (docs/results/zero_copy.md). Chosen.
pub const AS_LARGE: f64 = 0.06;

/// Rows of tiles of one matrix product: 8,192 tokens in tiles of 128. Chosen.
pub const MOST_REREADS: f64 = 64.0;

/// Allocations that could be what a kernel reads are considered if there is this share of the memory of the likeliest ones. Chosen.
pub const WORTH_CONSIDERING: f64 = 0.1;

/// Requests that the other direction carries for each counted byte that is read. Measured: 0.085 for copies, 0.14–0.17 for
/// kernels.
pub const REQUESTS: f64 = 0.17;

/// Less traffic than this, in bytes per nanosecond, is not attributed to kernels. Reading the counters makes 0.03 itself. Chosen.
pub const LEAST_TRAFFIC: f64 = 0.5;

/// Below this share of the counted bytes, traffic that no copy explains is not attributed. Chosen: copies are counted with an error
/// of a few percent.
pub const LEAST_UNEXPLAINED: f64 = 0.1;

/// A kernel that moves host memory at this share of the fastest rate seen, or more, waits for the link. Chosen.
pub const LINK_BOUND: f64 = 0.5;

/// Without the kernel, the rest must explain its traffic this much worse for the kernel to be named with certainty: the squared
/// error, as a factor. Chosen.
pub const NEEDED: f64 = 1.5;

/// A kernel is added to those that explain the traffic if the squared error falls to this share. Chosen.
pub const FIT_WORTH_ADDING: f64 = 0.7;

/// An explanation whose error is at most this share of the traffic is plausible, although another one is better. Chosen: the time of
/// a reading is known to half a millisecond of eight.
pub const FIT_PLAUSIBLE: f64 = 0.15;

/// Kernels whose fit leaves a larger share than this did not make the traffic. Chosen.
pub const FIT_WRONG: f64 = 0.4;

/// The search ends when less than this share of the traffic is left. Chosen.
pub const FIT_EXPLAINED: f64 = 0.03;

/// Kernels with a smaller share of all kernels' time are not considered. Chosen.
pub const LEAST_KERNEL_TIME: f64 = 0.005;

/// Kernels with a smaller share of the attributed bytes are not named. Chosen.
pub const LEAST_CARRIED: f64 = 0.05;

/// A kernel that takes this many times as long as the next shorter one of its name and grid does something else. Measured: a reading
/// of the counters makes a kernel that reads host memory take 1.5 times as long (docs/results/zero_copy.md).
pub const OTHER_KERNEL: Time = 3;

/// Readings further apart say nothing about single kernels. Chosen, five times the usual distance.
pub const LONGEST_READING: Time = 40_000_000;

/// Pages of smaller buffers are not fresh: they come from memory that the allocator keeps. Chosen.
pub const WORTH_FAULTS: u64 = 1 << 20;

/// Larger buffers have fresh pages whether or not something records: glibc maps and unmaps each of them and keeps none. Its
/// `DEFAULT_MMAP_THRESHOLD_MAX` on 64-bit machines; `evaluate-logits_4-once` in fixtures/frameworks copies 94 MiB into fresh pages and
/// takes as long with the profiler as without.
pub const ALWAYS_FRESH: u64 = 32 << 20;

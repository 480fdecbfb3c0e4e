//! Which thread waited for another one? The most common case: the autograd thread and the thread that calls `backward()`.

use busbound_trace::{Interval, IntervalSet, Nanos, Timestamp, TrackId};

use super::builder::Builder;
use super::{CallId, NodeId};
use crate::Time;
use crate::host::Host;
use crate::search::first_after;
use crate::thresholds::{MANY_THREADS, THREAD_IDLE};

/// If a thread was idle within a window while another launching thread worked: the other thread, and when its work ended. The
/// latest such gap counts.
pub fn waited_for_thread(host: &Host<'_>, thread: TrackId, window: Interval) -> Option<(TrackId, Timestamp)> {
    if host.launching_threads().len() > MANY_THREADS {
        return None;
    }
    let own = &host.thread(thread)?.worked;
    let free = IntervalSet::from_unsorted([window]).difference(&own.within(window));
    let worked = |gap: Interval| {
        let others = host.launching_threads().filter(|(track, _)| *track != thread);
        others
            .filter_map(|(track, times)| Some((track, times.worked.within(gap).hull()?.end)))
            .max_by_key(|(track, left)| (*left, std::cmp::Reverse(*track)))
    };
    free.iter().rev().filter(|gap| gap.length() >= Nanos::new(THREAD_IDLE)).find_map(worked)
}

/// Adds an edge to each call after such a gap, from the other thread's last call before it.
pub(super) fn link_threads(builder: &mut Builder<'_>) {
    if !(2..=MANY_THREADS).contains(&builder.activity.host.launching_threads().len()) {
        return;
    }
    let calls = 0..builder.graph.calls.len();
    builder.graph.after = calls.map(|call| awaited_call(builder, call).map(NodeId::of)).collect();
}

fn awaited_call(builder: &Builder<'_>, call: CallId) -> Option<CallId> {
    let graph = &builder.graph;
    let node = &graph.calls[call];
    let thread = &graph.threads[graph.thread_of(call)];
    let since = graph.call_before(call).map_or(Time::MIN, |before| graph.calls[before].end);
    if node.start.saturating_sub(since) < THREAD_IDLE {
        return None;
    }
    let host = builder.activity.host;
    let begin = host.thread(thread.track)?.worked.hull()?.start.as_nanos();
    let window = Interval::new(
        Timestamp::from_nanos(since.max(begin.min(node.start))),
        Timestamp::from_nanos(node.start),
    );
    let (other, left) = waited_for_thread(host, thread.track, window)?;
    let other = graph.threads.iter().find(|thread| thread.track == other)?;
    // Calls that start at the same time do not wait for each other.
    let upto = first_after(&other.calls, |id| graph.calls[id].start < node.start.min(left.as_nanos() + 1));
    let last = (other.calls.start..upto).rev().find(|id| graph.calls[*id].end <= node.start)?;
    (graph.calls[last].end > since).then_some(last)
}

//! Which thread waited for another one? The most common case: the autograd thread and the thread that calls `backward()`. While one
//! thread stages a copy, launches of the others wait in their calls for the driver's lock.

use busbound_trace::{Interval, Nanos, Timestamp, TrackId};

use super::builder::Builder;
use super::{CallAction, CallId, NodeId, WorkKind};
use crate::Time;
use crate::host::Host;
use crate::search::first_after;
use crate::thresholds::{LONG_LAUNCH, MANY_THREADS, RETURNS_AFTER_LOCK, THREAD_IDLE};

/// If a thread was idle within a window while another launching thread worked: the other thread, and when its work ended. The
/// latest such gap counts.
pub fn waited_for_thread(host: &Host<'_>, thread: TrackId, window: Interval) -> Option<(TrackId, Timestamp)> {
    if host.launching_threads().len() > MANY_THREADS {
        return None;
    }
    let others = || host.launching_threads().filter(|(track, _)| *track != thread);
    // Mostly no other one worked, and looking is cheaper than what follows.
    if !others().any(|(_, times)| times.worked.touches(window)) {
        return None;
    }
    let own = &host.thread(thread)?.worked;
    let worked = |gap: Interval| {
        others()
            .filter_map(|(track, times)| Some((track, times.worked.last_within(gap)?)))
            .max_by_key(|(track, left)| (*left, std::cmp::Reverse(*track)))
    };
    own.free_from_end(window).filter(|gap| gap.length() >= Nanos::new(THREAD_IDLE)).find_map(worked)
}

/// Adds an edge to each call after such a gap, from the other thread's last call before it, and to each launch that a copy call of
/// another thread blocked.
pub(super) fn link_threads(builder: &mut Builder<'_>) {
    let launching = builder.activity.host.launching_threads().len();
    let threads = builder.graph.threads.iter().filter(|thread| !thread.calls.is_empty()).count();
    if threads < 2 {
        return;
    }
    let staging = staging_calls(builder);
    // A thread that only copies may wait for one that launches.
    let may_wait = (1..=MANY_THREADS).contains(&launching);
    let begin = builder.graph.calls.iter().map(|call| call.start).min().unwrap_or(0);
    let awaited = |call| {
        let holder = blocked_by(builder, &staging, call);
        holder.or_else(|| may_wait.then(|| awaited_call(builder, call, begin)).flatten())
    };
    let calls = 0..builder.graph.calls.len();
    builder.graph.after = calls.map(|call| awaited(call).map(NodeId::of)).collect();
}

/// Calls that stage a copy for long, by their end.
fn staging_calls(builder: &Builder<'_>) -> Vec<CallId> {
    let graph = &builder.graph;
    let stages = |call: &CallId| {
        let node = &graph.calls[*call];
        let CallAction::IssueBlocking { copy, .. } = node.action else { return false };
        let is_pageable = matches!(graph.work[copy.get()].kind, WorkKind::Copy { pageable: true, .. });
        is_pageable && node.end - node.start >= LONG_LAUNCH
    };
    let mut calls: Vec<CallId> = (0..graph.calls.len()).filter(stages).collect();
    calls.sort_by_key(|call| (graph.calls[*call].end, *call));
    calls
}

/// The call of another thread that staged a copy while a launch waited for the driver's lock: the launch began within it and returned
/// just after it.
fn blocked_by(builder: &Builder<'_>, staging: &[CallId], call: CallId) -> Option<CallId> {
    let graph = &builder.graph;
    let node = &graph.calls[call];
    if !matches!(node.action, CallAction::Issue { .. }) || node.end - node.start < LONG_LAUNCH {
        return None;
    }
    let upto = staging.partition_point(|other| graph.calls[*other].end <= node.end);
    let other = *staging[..upto].last()?;
    let held = &graph.calls[other];
    let is_other_thread = graph.thread_of(other) != graph.thread_of(call);
    let waits = held.start < node.start && held.end > node.start && node.end - held.end < RETURNS_AFTER_LOCK;
    (is_other_thread && waits).then_some(other)
}

fn awaited_call(builder: &Builder<'_>, call: CallId, begin: Time) -> Option<CallId> {
    let graph = &builder.graph;
    let node = &graph.calls[call];
    let thread = &graph.threads[graph.thread_of(call)];
    // What a thread does first, another one asked for: it was idle from the beginning on.
    let since = graph.call_before(call).map_or(begin, |before| graph.calls[before].end);
    if node.start.saturating_sub(since) < THREAD_IDLE {
        return None;
    }
    let host = builder.activity.host;
    let window =
        Interval::new(Timestamp::from_nanos(since.min(node.start)), Timestamp::from_nanos(node.start));
    let (other, left) = waited_for_thread(host, thread.track, window)?;
    let other = graph.threads.iter().find(|thread| thread.track == other)?;
    // Calls that start at the same time do not wait for each other.
    let upto = first_after(&other.calls, |id| graph.calls[id].start < node.start.min(left.as_nanos() + 1));
    let last = (other.calls.start..upto).rev().find(|id| graph.calls[*id].end <= node.start)?;
    (graph.calls[last].end > since).then_some(last)
}

//! `copied`: what kernels read from or write to host memory is copied instead, on a separate stream: reads one block ahead.

use std::collections::BTreeMap;
use std::fmt;

use busbound_cause::thresholds::{EVENT_PASSES, PINNED_COPY_CALL};
use busbound_cause::{
    CallId, Few, HostAction, HostBytes, HostCall, HostTime, HostUse, Model, Time, Work, WorkId, WorkKind,
};
use busbound_trace::Direction;

use super::edit::{copy_ns, is_alone, new_stream};
use super::{About, Declared, Made, Prefetch, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied;

/// Bytes per nanosecond that a kernel reads from the memory of its device, if that is all it does.
const DEVICE_MEMORY: f64 = 1_500.0;

impl Declared for Copied {
    const ABOUT: About = About {
        name: "copied",
        spelling: "copied",
        help: "copy what kernels read from host memory, on a separate stream and one block ahead",
        doing: "copying ahead what kernels read from host memory",
        effort: "two buffers on the device, a copy stream and one event per block",
        precondition: "what a kernel reads is known before it starts; matrix products may read it several times, as the sizes of pinned \
                       allocations say, others read each byte once",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let moving =
            |id: &WorkId| graph.work[*id].host.is_some() && !graph.work[*id].dropped && is_alone(graph, *id);
        let kernels: Vec<WorkId> = (0..graph.work.len()).filter(moving).collect();
        let mut inserted = Inserted::default();
        let (mut changed, mut largest) = (0, 0);
        for kernel in kernels {
            let Some(mut host) = graph.work[kernel].host.take() else { continue };
            let rereads = host.once.likely < host.bytes;
            let share = if rereads { terms.assumed.product_beside_link } else { terms.assumed.beside_link };
            host.bytes = terms.assumed.once.of(host.once);
            inserted.add(graph, terms, kernel, host);
            let recorded = graph.work[kernel].alone;
            let own = (share * recorded).max(host.bytes as f64 / DEVICE_MEMORY);
            graph.work[kernel].alone = own.min(recorded);
            (changed, largest) = (changed + 1, largest.max(host.bytes));
        }
        inserted.place(graph);
        if changed > 0 {
            free_the_link(graph, terms);
        }
        Prefetch(1).apply(graph, terms);
        Made { changed, extra_bytes: 2 * largest }
    }
}

/// Copies shared the link with the kernels, which their measured times include.
fn free_the_link(graph: &mut Model, terms: &Terms<'_>) {
    for work in &mut graph.work {
        if let WorkKind::Copy { direction, pageable: false, bytes: bytes @ 1.. } = work.kind
            && work.kind.bus().is_some()
        {
            work.alone = work.alone.min(copy_ns(bytes, direction, false, terms.link) * terms.assumed.copies);
        }
    }
}

/// Copies that are added, and where.
#[derive(Default)]
struct Inserted {
    /// Calls to insert before and after other calls.
    before: BTreeMap<CallId, CallId>,
    after: BTreeMap<CallId, CallId>,
    /// Copies to insert before kernels on their streams.
    ahead: BTreeMap<WorkId, WorkId>,
    /// The stream of copies to the host.
    out: Option<usize>,
}

impl Inserted {
    fn add(&mut self, graph: &mut Model, terms: &Terms<'_>, kernel: WorkId, host: HostBytes) {
        let Some(of_kernel) = graph.work[kernel].call else { return };
        let (copy, call) = (graph.work.len(), graph.calls.len());
        let is_read = host.direction == Direction::HostToDevice;
        let stream = if is_read {
            graph.work[kernel].stream
        } else {
            *self.out.get_or_insert_with(|| new_stream(graph, kernel))
        };
        let alone = copy_ns(host.bytes, host.direction, false, terms.link) * terms.assumed.copies;
        let like = graph.work[kernel].clone();
        let waits = if is_read { like.waits.clone() } else { Few::one((kernel, EVENT_PASSES)) };
        graph.work.push(Work {
            kind: WorkKind::Copy { direction: host.direction, pageable: false, bytes: host.bytes },
            stream,
            call: Some(call),
            alone,
            after_call: 0,
            after_work: EVENT_PASSES,
            waits,
            end: like.start + alone as Time,
            ..like
        });
        graph.calls.push(HostCall {
            action: HostAction::Issue(Few::one(copy)),
            since: HostTime::default(),
            after: None,
            after_work: None,
            cost: PINNED_COPY_CALL,
            cost_use: HostUse::Launching,
            is_synchronous: false,
            is_unpacking: false,
            ..graph.calls[of_kernel].clone()
        });
        if is_read {
            self.before.insert(of_kernel, call);
            self.ahead.insert(kernel, copy);
        } else {
            self.after.insert(of_kernel, call);
            graph.streams[stream].push(copy);
        }
    }

    fn place(&self, graph: &mut Model) {
        for thread in &mut graph.threads {
            let around =
                |call: &CallId| [self.before.get(call).copied(), Some(*call), self.after.get(call).copied()];
            *thread = thread.iter().flat_map(around).flatten().collect();
        }
        for stream in &mut graph.streams {
            *stream = stream
                .iter()
                .flat_map(|work| [self.ahead.get(work).copied(), Some(*work)])
                .flatten()
                .collect();
        }
    }
}

impl fmt::Display for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}

//! Which devices, streams, processes and threads does the trace contain?

use std::collections::BTreeMap;

use busbound_trace::{EventKind, Label, Place, Trace};

use crate::quantity::printable;

use super::{Device, Process, Stream, Thread, Totals};

pub(crate) fn devices(trace: &Trace, totals: &Totals) -> Vec<Device> {
    let mut devices: BTreeMap<i32, Vec<Stream>> = BTreeMap::new();
    for track in trace.streams() {
        let Place::Stream { device, stream } = track.place() else { continue };
        let sums = totals.on_track(track.id().index());
        let count = |kind| sums.get(&kind).map_or(0, |&(count, _)| count);
        if sums.is_empty() {
            continue;
        }
        devices.entry(device).or_default().push(Stream {
            id: stream,
            kernels: count(EventKind::Kernel),
            copies: count(EventKind::Copy),
            memsets: count(EventKind::Memset),
            synchronizations: count(EventKind::Synchronization),
            work_ns: sums.iter().filter(|(kind, _)| kind.is_gpu_work()).map(|(_, &(_, time))| time).sum(),
        });
    }
    let name = |id| {
        trace
            .origin()
            .gpus
            .iter()
            .find(|gpu| gpu.id == id)
            .map(|gpu| gpu.name.clone())
            .filter(|name| !name.trim().is_empty())
    };
    devices.into_iter().map(|(id, streams)| Device { id, name: name(id), streams }).collect()
}

pub(crate) fn processes(trace: &Trace, totals: &Totals) -> Vec<Process> {
    let mut processes: BTreeMap<Label, Vec<Thread>> = BTreeMap::new();
    for track in trace.threads() {
        let Place::Thread { process, thread } = track.place() else { continue };
        // The profiler's own rows ("Spans", overhead under process −1) are not a process of the run.
        let events = totals.on_track(track.id().index()).iter();
        let events: u64 = events
            .filter(|(kind, _)| !matches!(kind, EventKind::ProfilerSpan | EventKind::ProfilerOverhead))
            .map(|(_, &(count, _))| count)
            .sum();
        if events == 0 {
            continue;
        }
        processes.entry(process).or_default().push(Thread {
            id: printable(&thread.display(trace.names())),
            name: trace.given_name(process, Some(thread)).map(printable),
            events,
        });
    }
    processes
        .into_iter()
        .map(|(process, threads)| Process {
            id: printable(&process.display(trace.names())),
            name: trace.given_name(process, None).map(printable),
            threads,
        })
        .collect()
}

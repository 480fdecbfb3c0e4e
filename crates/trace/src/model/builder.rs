//! How is a trace built? Track by track and event by event, by file readers and by tests.

use crate::interval::Interval;
use crate::model::access::{Access, Accesses};
use crate::model::collective::Collective;
use crate::model::copy_operator::CopyOperator;
use crate::model::events::{EventId, Events, Row};
use crate::model::files::FileReads;
use crate::model::format::Format;
use crate::model::kind::EventKind;
use crate::model::launch::Launch;
use crate::model::link::{Link, LinkTraffic};
use crate::model::managed::{Faults, Migration};
use crate::model::memory::MemorySample;
use crate::model::names::{NameId, Names};
use crate::model::numa::{HostNode, HostNodes};
use crate::model::origin::{Gpu, Origin};
use crate::model::os_call::OsCall;
use crate::model::sanity;
use crate::model::size::Bytes;
use crate::model::stats::{ImportStats, LossKind};
use crate::model::sync::Synchronization;
use crate::model::trace::{Recorded, Trace};
use crate::model::track::{Label, Place, TrackId};
use crate::model::transfer::{MemoryKind, Transfer};

/// Builds a [`Trace`] from tracks and events.
///
/// Add tracks first: a host thread or a GPU stream. An event belongs to a track and takes an [`Interval`] or a range
/// of nanoseconds. Add what only some events have (a correlation, a launch geometry) to the returned event.
///
/// ```
/// use busbound_trace::{EventKind, Launch, MemoryKind, SyncKind, Synchronization, TraceBuilder, Transfer};
///
/// let mut trace = TraceBuilder::default();
/// let host = trace.thread(4711, 1);
/// let stream = trace.stream(0, 7);
/// trace.annotation(host, "step", 0..1_000);
/// trace.runtime_call(host, "cudaMemcpyAsync", 10..20).correlation(1);
/// trace.copy(stream, Transfer::host_to_device(MemoryKind::Pinned, 4096), 25..65).correlation(1);
/// trace.runtime_call(host, "cudaLaunchKernel", 30..40).correlation(2);
/// let launch = Launch { grid: [8, 1, 1], block: [256, 1, 1], ..Launch::default() };
/// trace.kernel(stream, "gemm", 65..165).correlation(2).launch(launch);
/// trace.synchronization(stream, Synchronization::of(SyncKind::StreamSync), 50..170);
/// let trace = trace.finish();
///
/// let copy = trace.events().find(|event| event.kind() == EventKind::Copy).unwrap();
/// assert_eq!(copy.name(), "Memcpy HtoD (Pinned -> Device)");
/// assert_eq!(copy.transfer().unwrap().bytes.unwrap().get(), 4096);
/// assert_eq!(trace.streams().next().unwrap().len(), 3);
/// ```
#[derive(Debug, Default)]
pub struct TraceBuilder {
    pub(crate) trace: Recorded,
}

/// The name of an event: text, or the id that [`TraceBuilder::name`] returned for it.
pub trait EventName {
    #[doc(hidden)]
    fn intern_in(self, names: &mut Names) -> NameId;
}

impl EventName for NameId {
    fn intern_in(self, _: &mut Names) -> NameId {
        self
    }
}

impl EventName for &str {
    fn intern_in(self, names: &mut Names) -> NameId {
        names.intern(self)
    }
}

impl EventName for &String {
    fn intern_in(self, names: &mut Names) -> NameId {
        names.intern(self)
    }
}

impl TraceBuilder {
    /// A builder for the contents of a file of this format. Traces built without a file use the default format.
    pub fn new(format: &'static Format) -> Self {
        let mut trace = Recorded::default();
        trace.origin.format = format;
        Self { trace }
    }

    /// The id of a text, for names that are used many times.
    pub fn name(&mut self, text: &str) -> NameId {
        self.trace.names.intern(text)
    }

    /// A thread or process that has a text label instead of a number.
    pub fn label(&mut self, text: &str) -> Label {
        Label::Text(self.name(text))
    }

    /// The track of a host thread.
    pub fn thread(&mut self, process: impl Into<Label>, thread: impl Into<Label>) -> TrackId {
        self.track(Place::Thread { process: process.into(), thread: thread.into() })
    }

    /// The track of a GPU stream; stream −1 is for what concerns the whole GPU.
    pub fn stream(&mut self, device: i32, stream: i64) -> TrackId {
        self.track(Place::Stream { device, stream })
    }

    /// The track of a place.
    pub fn track(&mut self, place: Place) -> TrackId {
        self.trace.tracks.intern(place)
    }

    /// The track of a place that has events.
    pub(crate) fn find_track(&self, place: Place) -> Option<TrackId> {
        self.trace.tracks.find(place)
    }

    /// Names a process.
    pub fn name_process(&mut self, process: impl Into<Label>, name: impl EventName) {
        let name = name.intern_in(&mut self.trace.names);
        self.trace.given_names.insert((process.into(), None), name);
    }

    /// Names a thread.
    pub fn name_thread(&mut self, process: impl Into<Label>, thread: impl Into<Label>, name: impl EventName) {
        let name = name.intern_in(&mut self.trace.names);
        self.trace.given_names.insert((process.into(), Some(thread.into())), name);
    }

    /// A kernel on a stream.
    pub fn kernel(
        &mut self,
        stream: TrackId,
        name: impl EventName,
        time: impl Into<Interval>,
    ) -> AddedEvent<'_> {
        self.event(EventKind::Kernel, stream, name, time)
    }

    /// A copy on a stream. Its name is derived from the transfer.
    pub fn copy(&mut self, stream: TrackId, transfer: Transfer, time: impl Into<Interval>) -> AddedEvent<'_> {
        let name = self.name(&transfer.copy_label());
        let event = self.event(EventKind::Copy, stream, name, time);
        event.events.set_transfer(transfer);
        event
    }

    /// A memset of this kind of memory on a stream.
    pub fn memset(
        &mut self,
        stream: TrackId,
        memory: MemoryKind,
        bytes: Option<Bytes>,
        time: impl Into<Interval>,
    ) -> AddedEvent<'_> {
        let transfer = Transfer::memset(memory, bytes);
        let name = self.name(&transfer.memset_label());
        let event = self.event(EventKind::Memset, stream, name, time);
        event.events.set_transfer(transfer);
        event
    }

    /// A synchronization recorded on a stream, named after its kind.
    pub fn synchronization(
        &mut self,
        stream: TrackId,
        sync: Synchronization,
        time: impl Into<Interval>,
    ) -> AddedEvent<'_> {
        let event = self.event(EventKind::Synchronization, stream, sync.kind.label(), time);
        event.events.set_sync(sync);
        event
    }

    /// A call into the CUDA or HIP runtime on a thread.
    pub fn runtime_call(
        &mut self,
        thread: TrackId,
        name: impl EventName,
        time: impl Into<Interval>,
    ) -> AddedEvent<'_> {
        self.event(EventKind::RuntimeCall, thread, name, time)
    }

    /// A call into the driver on a thread.
    pub fn driver_call(
        &mut self,
        thread: TrackId,
        name: impl EventName,
        time: impl Into<Interval>,
    ) -> AddedEvent<'_> {
        self.event(EventKind::DriverCall, thread, name, time)
    }

    /// A framework operator on a thread, e.g. `aten::mm`.
    pub fn operator(
        &mut self,
        thread: TrackId,
        name: impl EventName,
        time: impl Into<Interval>,
    ) -> AddedEvent<'_> {
        self.event(EventKind::Operator, thread, name, time)
    }

    /// A range on a thread that the program or the framework named.
    pub fn annotation(
        &mut self,
        thread: TrackId,
        name: impl EventName,
        time: impl Into<Interval>,
    ) -> AddedEvent<'_> {
        self.event(EventKind::Annotation, thread, name, time)
    }

    /// A call of a Python function on a thread.
    pub fn python_frame(
        &mut self,
        thread: TrackId,
        name: impl EventName,
        time: impl Into<Interval>,
    ) -> AddedEvent<'_> {
        self.trace.stats.stacks_seen = true;
        self.event(EventKind::PythonFrame, thread, name, time)
    }

    /// Accesses to managed memory that was not resident.
    pub fn page_fault(
        &mut self,
        track: TrackId,
        name: impl EventName,
        faults: Faults,
        time: impl Into<Interval>,
    ) -> AddedEvent<'_> {
        let event = self.event(EventKind::PageFault, track, name, time);
        event.events.set_faults(faults);
        event
    }

    /// An event of any kind. Kinds with facts of their own have a method above.
    pub fn event(
        &mut self,
        kind: EventKind,
        track: TrackId,
        name: impl EventName,
        time: impl Into<Interval>,
    ) -> AddedEvent<'_> {
        let (name, time) = (name.intern_in(&mut self.trace.names), time.into());
        self.trace.events.push(Row {
            kind,
            name,
            track,
            start: time.start,
            duration: time.length(),
            correlation: None,
            external: None,
        });
        AddedEvent { events: &mut self.trace.events }
    }

    /// A GPU of the machine. If two have the same number, the first one counts.
    pub fn gpu(&mut self, gpu: Gpu) {
        let gpus = &mut self.trace.origin.gpus;
        if !gpus.iter().any(|known| known.id == gpu.id) {
            gpus.push(gpu);
        }
    }

    /// A forward operator and its backward operator.
    pub fn link(&mut self, link: Link) {
        self.trace.links.push(link);
    }

    /// An allocation or release.
    pub fn memory_sample(&mut self, sample: MemorySample) {
        self.trace.memory.push(sample);
    }

    /// A reading of the byte counters of a GPU's link.
    pub fn link_traffic(&mut self, traffic: LinkTraffic) {
        self.trace.link_traffic.push(traffic);
    }

    /// A call of a system library by a thread.
    pub fn os_call(&mut self, call: OsCall) {
        self.trace.os_calls.push(call);
    }

    /// What the process has read from files until a moment.
    pub fn file_reads(&mut self, reads: FileReads) {
        self.trace.file_reads.push(reads);
    }

    /// The NUMA nodes of the host memory of all copies where it is known, by the correlation of their calls.
    pub fn host_nodes(&mut self, of_calls: Vec<(u64, HostNode)>) {
        self.trace.host_nodes = HostNodes::of(of_calls);
    }

    /// The memory of all copies and memsets where it is known, by the correlation of their calls; and the streams that waited for
    /// something else than an event.
    pub fn accesses(&mut self, of_calls: Vec<(u64, Access)>, other_waits: Vec<i64>) {
        self.trace.accesses = Accesses::of(of_calls, other_waits);
    }

    /// Something that was lost at a byte offset of the file.
    pub fn lose(&mut self, what: LossKind, offset: u64, bytes: u64) {
        self.trace.stats.lose(what, offset, bytes);
    }

    /// Something complete and readable that is not kept, because no analysis needs it.
    pub fn skip(&mut self, what: &str, count: u64) {
        *self.trace.stats.not_kept.entry(what.to_owned()).or_default() += count;
    }

    /// What is known about how the trace was recorded.
    pub fn origin(&mut self) -> &mut Origin {
        &mut self.trace.origin
    }

    /// What was read and lost so far.
    pub fn stats(&self) -> &ImportStats {
        &self.trace.stats
    }

    /// Gives an event another name, by its index.
    pub(crate) fn rename(&mut self, event: usize, new: impl FnOnce(&str) -> String) {
        let Recorded { events, names, .. } = &mut self.trace;
        let text = new(names.get(events.name(event)));
        events.rename(event, names.intern(&text));
    }

    /// What the collectives of these events exchanged, by their indices.
    pub(crate) fn collectives(&mut self, of_events: Vec<(usize, Collective)>) {
        self.trace.events.set_collectives(of_events);
    }

    /// Makes room for this many events, so that growing columns do not take twice their size.
    pub(crate) fn reserve(&mut self, events: usize) {
        self.trace.events.reserve(events);
    }

    /// The same for what only the first of these events have.
    pub(crate) fn reserve_ids(&mut self, events: usize) {
        self.trace.events.reserve_ids(events);
    }

    pub(crate) fn names(&mut self) -> &mut Names {
        &mut self.trace.names
    }

    pub(crate) fn stats_mut(&mut self) -> &mut ImportStats {
        &mut self.trace.stats
    }

    /// Number of events so far.
    pub fn len(&self) -> usize {
        self.trace.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.trace.events.len() == 0
    }

    /// Whether another event would exceed the range of event ids or this many bytes.
    pub fn is_full(&self, memory_bound: u64) -> bool {
        self.trace.heap_bytes() as u64 > memory_bound || self.len() >= EventId::MAX
    }

    /// Memory that the trace takes so far.
    pub fn heap_bytes(&self) -> usize {
        self.trace.heap_bytes()
    }

    /// The trace, without events that cannot be right: for what was read from a file.
    pub(crate) fn finish_file(mut self) -> Trace {
        self.trace.events.shrink();
        let kept = sanity::keep_possible(&mut self.trace);
        self.trace.stats.events = kept.as_ref().map_or(self.len(), Vec::len) as u64;
        Trace::of_some(self.trace, kept)
    }

    /// The trace.
    pub fn finish(mut self) -> Trace {
        self.trace.stats.events = self.len() as u64;
        self.trace.into()
    }
}

/// The event that was added last, to add what only some events have.
#[derive(Debug)]
pub struct AddedEvent<'a> {
    events: &'a mut Events,
}

impl AddedEvent<'_> {
    /// Its id.
    pub fn id(&self) -> EventId {
        self.events.last()
    }

    /// Joins a call and the GPU work that it launched.
    pub fn correlation(self, id: impl Into<Option<u64>>) -> Self {
        self.events.set_correlation(id.into());
        self
    }

    /// Joins GPU work and calls to the operator that they ran under.
    pub fn external_id(self, id: impl Into<Option<u64>>) -> Self {
        self.events.set_external(id.into());
        self
    }

    /// The launch geometry of a kernel; ignored for other events.
    pub fn launch(self, launch: Launch) -> Self {
        if self.is(EventKind::Kernel) {
            self.events.set_launch(launch);
        }
        self
    }

    /// The arguments of a copy operator; ignored for other events.
    pub fn copy_operator(self, operator: CopyOperator) -> Self {
        if self.is(EventKind::Operator) {
            self.events.set_copy_operator(operator);
        }
        self
    }

    /// What an operator must read at least.
    pub fn operand_bytes(self, bytes: Bytes) -> Self {
        self.events.set_operand_bytes(bytes);
        self
    }

    /// What a collective exchanged.
    pub fn collective(self, collective: Collective) -> Self {
        self.events.set_collective(collective);
        self
    }

    /// Why a copy of managed memory happened.
    pub fn migration(self, migration: Migration) -> Self {
        self.events.set_migration(migration);
        self
    }

    fn is(&self, kind: EventKind) -> bool {
        self.events.kind[self.id().index()] == kind
    }
}

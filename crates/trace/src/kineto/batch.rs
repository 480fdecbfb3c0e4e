//! What did one segment of the file contain? Its events in their own columns, with their own names and tracks, so
//! that segments can be read in parallel and merged in order.

use std::collections::BTreeMap;

use crate::kineto::cursor::Raw;
use crate::kineto::event::{Args, Draft, RawLabel};
use crate::kineto::list::{elements, items, unquoted};
use crate::kineto::names::{
    element_size, is_copy_operator, kind_of_category, kind_of_mtia, non_blocking_position, sync_of_name,
    transfer_of_name,
};
use crate::kineto::number::{NotUsable, integer, natural};
use crate::kineto::operands::{is_bound_by_memory, operand_bytes};
use crate::kineto::text::decode;
use crate::model::collective::Collective;
use crate::model::copy_operator::CopyOperator;
use crate::model::events::{Events, Row};
use crate::model::kind::EventKind;
use crate::model::launch::Launch;
use crate::model::memory::{MemoryOwner, MemorySample};
use crate::model::names::{NameId, Names};
use crate::model::size::Bytes;
use crate::model::stats::{ImportStats, LossKind, Repair};
use crate::model::sync::Synchronization;
use crate::model::time::{Nanos, Timestamp};
use crate::model::track::{Label, Place, TrackId, Tracks};

/// One end of an arrow from a forward operator to its backward operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowEnd {
    pub(crate) id: u64,
    pub(crate) track: TrackId,
    pub(crate) at: Timestamp,
    pub(crate) is_start: bool,
}

/// The head of a flow arrow from a launching call to the work it launched; `id` is the correlation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaunchArrow {
    pub(crate) id: u64,
    pub(crate) device: i32,
    pub(crate) stream: i64,
    pub(crate) at: Timestamp,
}

/// What was read from one segment of the file.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) names: Names,
    pub(crate) tracks: Tracks,
    pub(crate) events: Events,
    pub(crate) memory: Vec<MemorySample>,
    /// They repeat the correlation. Kept until all GPU events are known to have one.
    pub(crate) launch_arrows: Vec<LaunchArrow>,
    pub(crate) backward_flows: Vec<FlowEnd>,
    pub(crate) given_names: Vec<((Label, Option<Label>), NameId)>,
    pub(crate) stats: ImportStats,
    launch_arrows_seen: u64,
    last_thread: Option<(RawKey, RawKey, TrackId)>,
    last_stream: Option<(i32, i64, TrackId)>,
    /// Not kept, by phase and category. Converted to text once per batch.
    not_kept: BTreeMap<(u8, Box<[u8]>), u64>,
}

/// A short label exactly as in the file, to check quickly whether it changed since the last event. Longer ones are
/// looked up each time.
type RawKey = (bool, u8, [u8; 14]);

fn raw_key(label: RawLabel<'_>) -> Option<RawKey> {
    let bytes = label.text.bytes;
    let mut key = [0; 14];
    key.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some((label.quoted, u8::try_from(bytes.len()).ok()?, key))
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.tracks.clear();
        self.events.clear();
        self.memory.clear();
        self.launch_arrows.clear();
        self.launch_arrows_seen = 0;
        self.backward_flows.clear();
        self.given_names.clear();
        self.stats = ImportStats::default();
        self.last_thread = None;
        self.last_stream = None;
        self.not_kept.clear();
    }

    /// Moves the counts from their quick form into the statistics.
    pub(crate) fn finish(&mut self) {
        self.stats.events = self.events.len() as u64;
        if self.launch_arrows_seen > 0 {
            let what = "launch arrows (redundant with the correlation)".to_owned();
            self.stats.not_kept.insert(what, self.launch_arrows_seen);
        }
        for ((phase, category), count) in std::mem::take(&mut self.not_kept) {
            let what = describe_not_kept(phase, &category);
            *self.stats.not_kept.entry(what).or_default() += count;
        }
    }

    /// Adds one object of the event list, which begins at `offset`.
    pub(crate) fn push(&mut self, draft: &Draft<'_>, offset: u64) {
        self.stats.objects += 1;
        match draft.phase {
            b'X' => self.push_complete(draft, offset),
            b's' | b'f' => self.push_flow(draft),
            b'i' | b'I' if draft.name.bytes == b"[memory]" => self.push_memory(draft, offset),
            b'M' => self.push_metadata(draft),
            0 => self.stats.lose(LossKind::NotAnEvent, offset, 0),
            _ => self.count_not_kept(draft),
        }
    }

    fn push_complete(&mut self, draft: &Draft<'_>, offset: u64) {
        let kind = self.kind_of(draft);
        let Some(start) = timestamp(draft) else {
            if kind.is_gpu_work() {
                *self.stats.lost_work.stray.entry(kind).or_default() += 1;
            }
            return self.stats.lose(LossKind::NotAnEvent, offset, 0);
        };
        let args = &draft.args;
        let duration = self.duration(draft, kind);
        let track = if kind.is_on_device() { self.stream_track(draft) } else { self.thread_track(draft) };
        let name = self.intern(draft.name);
        self.events.push(Row {
            kind,
            name,
            track,
            start,
            duration,
            correlation: args.correlation.and_then(natural),
            external: args.external.and_then(natural),
        });
        match kind {
            EventKind::Copy | EventKind::Memset => {
                let bytes = args.bytes.and_then(natural).map(Bytes::new);
                self.events.set_transfer(transfer_of_name(self.names.get(name), bytes));
            }
            EventKind::Kernel if args.grid.is_some() || args.block.is_some() => {
                self.events.set_launch(launch(args));
            }
            EventKind::Synchronization => {
                self.events.set_sync(synchronization(args, draft.name));
            }
            EventKind::Operator => {
                self.stats.shapes_seen |= args.input_dims.is_some();
                self.stats.stacks_seen |= args.has_stack;
                if is_copy_operator(draft.name.bytes) && args.input_dims.is_some() {
                    let operator = self.copy_operator(draft);
                    self.events.set_copy_operator(operator);
                } else if let (Some(dims), Some(types)) = (args.input_dims, args.input_types)
                    && is_bound_by_memory(draft.name.bytes)
                    && let Some(bytes) = operand_bytes(draft.name.bytes, dims, types)
                {
                    self.events.set_operand_bytes(bytes);
                }
            }
            EventKind::PythonFrame => self.stats.stacks_seen = true,
            _ => {}
        }
        if args.collective.is_some() {
            let collective = self.collective(args);
            self.events.set_collective(collective);
        }
    }

    fn collective(&mut self, args: &Args<'_>) -> Collective {
        let small = |number: u64| u32::try_from(number).ok();
        let mut text = |raw: Option<Raw<'_>>| self.intern(raw.unwrap_or_default());
        Collective {
            name: text(args.collective),
            dtype: text(args.dtype),
            group: text(args.group),
            group_description: text(args.group_description),
            group_ranks: text(args.group_ranks),
            element_bytes: args.dtype.and_then(|dtype| element_size(dtype.bytes)).and_then(small),
            group_size: args.group_size.and_then(natural).and_then(small),
            sequence: args.sequence.and_then(natural),
            elements_in: args.elements_in.and_then(natural),
            elements_out: args.elements_out.and_then(natural),
            ..Collective::default()
        }
    }

    fn kind_of(&mut self, draft: &Draft<'_>) -> EventKind {
        if draft.category == b"mtia_ccp_events" {
            return kind_of_mtia(draft.name.bytes);
        }
        if let Some(kind) = kind_of_category(draft.category) {
            return kind;
        }
        // PyTorch before Kineto wrote no categories; the process name says whether it is host or device.
        match (draft.category, draft.process.text.bytes) {
            (b"", b"CPU functions") => return EventKind::Operator,
            (b"", b"CUDA functions") => return EventKind::Kernel,
            _ => {}
        }
        let category = match draft.category {
            b"" => "(none)".to_owned(),
            named => String::from_utf8_lossy(named).into_owned(),
        };
        *self.stats.unknown_categories.entry(category).or_default() += 1;
        EventKind::Other
    }

    fn duration(&mut self, draft: &Draft<'_>, kind: EventKind) -> Nanos {
        let fault = match draft.duration {
            Some(Ok(nanos)) if nanos >= 0 => return Nanos::new(nanos),
            Some(Ok(_)) => Repair::NegativeDuration,
            Some(Err(NotUsable::NotANumber | NotUsable::OutOfRange)) => Repair::UnusableDuration,
            None => Repair::MissingDuration,
        };
        self.stats.repair(fault);
        if kind.is_gpu_work() || kind.is_call() {
            *self.stats.lost_work.without_end.entry(kind).or_default() += 1;
        }
        Nanos::ZERO
    }

    fn push_flow(&mut self, draft: &Draft<'_>) {
        let (Some(at), Some(id)) = (timestamp(draft), draft.flow.and_then(natural)) else {
            return self.count_not_kept(draft);
        };
        let is_start = draft.phase == b's';
        match draft.category {
            b"fwdbwd" | b"forward_backward" => {
                let track = self.thread_track(draft);
                self.backward_flows.push(FlowEnd { id, track, at, is_start });
            }
            b"ac2g" | b"async_gpu" | b"async" => {
                self.launch_arrows_seen += 1;
                if !is_start {
                    let (device, stream) = device_and_stream(draft);
                    self.launch_arrows.push(LaunchArrow { id, device, stream, at });
                }
            }
            _ => self.count_not_kept(draft),
        }
    }

    fn push_memory(&mut self, draft: &Draft<'_>, offset: u64) {
        let Some(at) = timestamp(draft) else {
            return self.stats.lose(LossKind::NotAnEvent, offset, 0);
        };
        let args = &draft.args;
        let device = args.device_id.and_then(integer).and_then(|id| i32::try_from(id).ok());
        // Device type 0 is the CPU in every version of c10::DeviceType.
        let owner = match (args.device_type, device) {
            (Some(b"0") | None, _) | (_, None) => MemoryOwner::Host,
            (Some(_), Some(id)) => MemoryOwner::Device(id),
        };
        self.memory.push(MemorySample {
            at,
            owner,
            change: args.memory_change.and_then(integer).unwrap_or(0),
            allocated: args.allocated.and_then(natural).unwrap_or(0),
            reserved: args.reserved.and_then(natural).unwrap_or(0),
        });
    }

    fn push_metadata(&mut self, draft: &Draft<'_>) {
        let whole_process = match draft.name.bytes {
            b"process_name" => true,
            b"thread_name" => false,
            _ => return self.count_not_kept(draft),
        };
        let Some(given) = draft.args.given_name else { return self.count_not_kept(draft) };
        let process = self.label(draft.process);
        let thread = (!whole_process).then(|| self.label(draft.thread));
        let name = self.intern(given);
        self.given_names.push(((process, thread), name));
    }

    fn count_not_kept(&mut self, draft: &Draft<'_>) {
        let category = match draft.phase {
            b'M' => draft.name.bytes,
            _ => draft.category,
        };
        *self.not_kept.entry((draft.phase, category.into())).or_default() += 1;
    }

    fn intern(&mut self, raw: Raw<'_>) -> NameId {
        if !raw.escaped
            && let Some(id) = self.names.find_bytes(raw.bytes)
        {
            return id;
        }
        let decoded = decode(raw);
        if decoded.stray_backslash {
            self.stats.repair(Repair::StrayBackslash);
        }
        if decoded.invalid_utf8 {
            self.stats.repair(Repair::InvalidUtf8);
        }
        self.names.intern(&decoded.text)
    }

    fn label(&mut self, raw: RawLabel<'_>) -> Label {
        match integer(raw.text.bytes) {
            // Older traces quote numbers; they refer to the same thread.
            Some(number) => Label::Number(number),
            None => Label::Text(self.intern(raw.text)),
        }
    }

    fn thread_track(&mut self, draft: &Draft<'_>) -> TrackId {
        let key = raw_key(draft.process).zip(raw_key(draft.thread));
        if let (Some((p, t, track)), Some(key)) = (self.last_thread, key)
            && (p, t) == key
        {
            return track;
        }
        let place = Place::Thread { process: self.label(draft.process), thread: self.label(draft.thread) };
        let track = self.tracks.intern(place);
        self.last_thread = key.map(|(p, t)| (p, t, track));
        track
    }

    fn stream_track(&mut self, draft: &Draft<'_>) -> TrackId {
        let (device, stream) = device_and_stream(draft);
        match self.last_stream {
            Some((d, s, track)) if (d, s) == (device, stream) => track,
            _ => {
                let track = self.tracks.intern(Place::Stream { device, stream });
                self.last_stream = Some((device, stream, track));
                track
            }
        }
    }

    fn copy_operator<'a>(&mut self, draft: &Draft<'a>) -> CopyOperator {
        let args = &draft.args;
        let list = |array: Option<&'a [u8]>| items(array.unwrap_or_default()).collect::<Vec<_>>();
        let (dims, types) = (list(args.input_dims), list(args.input_types));
        let inputs = list(args.concrete_inputs);
        // copy_(self, src): the source is second. to(self, …): the source is the first and only tensor.
        let (src, dst) = if draft.name.bytes == b"aten::copy_" { (1, Some(0)) } else { (0, None) };
        let shape = dims.get(src).copied().unwrap_or_default();
        let dtype = |at: Option<usize>| at.and_then(|at| types.get(at)).map(|raw| unquoted(raw));
        let mut named = |dtype: Option<Raw<'a>>| dtype.map_or(NameId::EMPTY, |raw| self.intern(raw));
        let (src_dtype, dst_dtype) = (named(dtype(Some(src))), named(dtype(dst)));
        let elements = elements(shape);
        let size = dtype(Some(src)).and_then(|raw| element_size(raw.bytes));
        let non_blocking = non_blocking_position(draft.name.bytes, inputs.len())
            .and_then(|at| inputs.get(at))
            .and_then(|raw| match unquoted(raw).bytes {
                b"True" | b"true" | b"1" => Some(true),
                b"False" | b"false" | b"0" => Some(false),
                _ => None,
            });
        CopyOperator {
            elements,
            bytes: elements.zip(size).and_then(|(count, size)| count.checked_mul(size)).map(Bytes::new),
            shape: self.intern(Raw { bytes: shape, escaped: false }),
            src_dtype,
            dst_dtype,
            non_blocking,
        }
    }
}

fn synchronization(args: &Args<'_>, name: Raw<'_>) -> Synchronization {
    Synchronization {
        kind: sync_of_name(args.sync_kind.unwrap_or(name).bytes),
        waits_on_stream: args.sync_stream.and_then(natural).and_then(|s| i64::try_from(s).ok()),
        waits_on_record: args.sync_record.and_then(natural),
        waits_on_event: args.sync_event.and_then(natural),
    }
}

/// From the arguments, else from process and thread, which mean the same for device events.
fn device_and_stream(draft: &Draft<'_>) -> (i32, i64) {
    let device = draft.args.device.and_then(integer).or_else(|| integer(draft.process.text.bytes));
    let stream = draft.args.stream.and_then(integer).or_else(|| {
        let thread = draft.thread.text.bytes;
        integer(thread.strip_prefix(b"stream ").unwrap_or(thread))
    });
    (device.and_then(|id| i32::try_from(id).ok()).unwrap_or(-1), stream.unwrap_or(-1))
}

fn timestamp(draft: &Draft<'_>) -> Option<Timestamp> {
    draft.timestamp?.ok().map(Timestamp::from_nanos)
}

fn launch(args: &Args<'_>) -> Launch {
    let small =
        |token: Option<&[u8]>| token.and_then(natural).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    let triple = |array: Option<&[u8]>| {
        let mut sides = [0; 3];
        for (side, token) in sides.iter_mut().zip(items(array.unwrap_or_default())) {
            *side = small(Some(token));
        }
        sides
    };
    Launch {
        grid: triple(args.grid),
        block: triple(args.block),
        registers_per_thread: small(args.registers),
        shared_memory: small(args.shared_memory),
    }
}

fn describe_not_kept(phase: u8, category: &[u8]) -> String {
    let category = String::from_utf8_lossy(category);
    match phase {
        b'M' => format!("metadata {category}"),
        b'i' | b'I' | b'R' if category.is_empty() => "instant events".to_owned(),
        b'i' | b'I' | b'R' => format!("instant events {category}"),
        b's' | b't' | b'f' => format!("flow arrows {category}"),
        b'C' => "counters".to_owned(),
        b'B' | b'E' => "begin/end pairs".to_owned(),
        b'b' | b'n' | b'e' => "asynchronous ranges".to_owned(),
        other => format!("phase {}", (other as char).escape_default()),
    }
}

//! Table `events`: everything that was recorded.

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use busbound_diagnosis::Items;
use busbound_trace::{Event, EventKind, Place, Trace};

use crate::column::Column;
use crate::column::ColumnType::{Bytes, Index, Nanoseconds, Number, Word};
use crate::columns::{durations, ids, indices, numbers, optional_numbers, sizes, steps, times};
use crate::words::Words;

pub(crate) const COLUMNS: &[Column] = &[
    Column::always("event", Number, "Its id, which other tables refer to: the row in this table."),
    Column::always(
        "kind",
        Word,
        "What it records: kernel, copy, operator, runtime_call …, as in the JSON of `busbound survey`.",
    ),
    Column::always("name", Word, "As the profiler wrote it."),
    Column::always("start_ns", Nanoseconds, "On the profiler's own clock."),
    Column::always("duration_ns", Nanoseconds, "0 for events without a duration."),
    Column::maybe("device", Index, "For events on a device."),
    Column::maybe("stream", Number, "For events on a device; −1 for what concerns the whole device."),
    Column::maybe("process", Word, "For events on a host thread; usually a number."),
    Column::maybe("thread", Word, "For events on a host thread; usually a number."),
    Column::maybe("correlation", Number, "Joins a call and the device work that it launched."),
    Column::maybe("external_id", Number, "Joins calls and device work to the operator that they ran under."),
    Column::maybe("bytes", Bytes, "For copies and memsets, if recorded."),
    Column::maybe("step", Index, "For device work: the step that launched it."),
];

/// The string columns of the table.
#[derive(Debug)]
pub(crate) struct EventWords {
    kinds: Words,
    names: Words,
    processes: Words,
    threads: Words,
}

impl EventWords {
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut labels: Vec<Option<(String, String)>> = Vec::new();
        for track in trace.tracks() {
            let index = track.id().index();
            labels.resize(labels.len().max(index + 1), None);
            if let Place::Thread { process, thread } = track.place() {
                labels[index] = Some((process.display(trace.names()), thread.display(trace.names())));
            }
        }
        Self {
            kinds: Words::of_values(&EventKind::ALL),
            names: Words::of_names(trace, trace.events().map(|event| event.name_id().index())),
            processes: Words::of(labels.iter().map(|label| Some(label.as_ref()?.0.as_str()))),
            threads: Words::of(labels.iter().map(|label| Some(label.as_ref()?.1.as_str()))),
        }
    }
}

pub(crate) fn columns(
    trace: &Trace,
    items: &Items,
    words: &EventWords,
    rows: Range<usize>,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let events = || trace.events_in(rows.clone());
    let device = |event: &Event<'_>| match event.place() {
        Place::Stream { device, stream } => Some((device, stream)),
        Place::Thread { .. } => None,
    };
    let thread = |event: &Event<'_>| device(event).is_none().then(|| event.track_id().index());
    let bytes = |event: &Event<'_>| Some(event.transfer()?.bytes?.get());
    Ok(vec![
        numbers(events().map(|event| event.id().index() as i64)),
        words.kinds.column(events().map(|event| Some(event.kind() as usize)))?,
        words.names.column(events().map(|event| Some(event.name_id().index())))?,
        times(events().map(|event| event.start())),
        durations(events().map(|event| event.duration())),
        indices(events().map(|event| Some(device(&event)?.0))),
        optional_numbers(events().map(|event| Some(device(&event)?.1))),
        words.processes.column(events().map(|event| thread(&event)))?,
        words.threads.column(events().map(|event| thread(&event)))?,
        ids(events().map(|event| event.correlation())),
        ids(events().map(|event| event.external_id())),
        sizes(events().map(|event| bytes(&event))),
        steps(events().map(|event| items.step_of(event.id()))),
    ])
}

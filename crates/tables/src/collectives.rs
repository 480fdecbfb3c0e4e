//! Table `collectives`: what each collective exchanged, how fast, and how long it waited.

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use busbound_diagnosis::{CollectiveItem, CollectiveOp, Items};
use busbound_trace::{Collective, NameId, Trace};

use crate::column::Column;
use crate::column::ColumnType::{Bytes, Flag, GigabytesPerSecond, Index, Nanoseconds, Number, Word};
use crate::columns::{durations, flags, ids, indices, numbers, optional_numbers, rates, sizes, steps, times};
use crate::words::Words;

pub(crate) const COLUMNS: &[Column] = &[
    Column::always("event", Number, "Row in `events`."),
    Column::always("start_ns", Nanoseconds, "When this rank arrived, on the profiler's own clock."),
    Column::always("duration_ns", Nanoseconds, "Time on the device, including waiting for other ranks."),
    Column::always("device", Index, "The device of its stream."),
    Column::always("stream", Number, "The stream."),
    Column::always(
        "op",
        Word,
        "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather, scatter, send_recv, barrier or other.",
    ),
    Column::maybe("dtype", Word, "As PyTorch writes it, e.g. BFloat16."),
    Column::maybe("group", Word, "The name of the process group."),
    Column::maybe("group_ranks", Word, "Its ranks as PyTorch writes them, e.g. [0, 1]."),
    Column::maybe("group_size", Number, "Number of ranks in it."),
    Column::maybe("sequence", Number, "Its number within the process group, the same on all ranks."),
    Column::maybe("reduction", Word, "sum, prod, max, min or avg; only from Nsight's NCCL ranges."),
    Column::maybe("root", Number, "The rank that has the data or gets it; only from Nsight's NCCL ranges."),
    Column::maybe(
        "peer",
        Number,
        "The other rank of a single send or receive; only from Nsight's NCCL ranges.",
    ),
    Column::maybe("bytes", Bytes, "Of the message, as nccl-tests counts them; null if not recorded."),
    Column::maybe("algbw_gbps", GigabytesPerSecond, "Bytes divided by duration, including waiting."),
    Column::maybe("busbw_gbps", GigabytesPerSecond, "The same times nccl-tests' factor for the operation."),
    Column::always("exposed_ns", Nanoseconds, "The part of its duration in which no compute kernel ran."),
    Column::maybe(
        "waiting_ns",
        Nanoseconds,
        "What it took longer than the fastest with the same message; null if there are fewer than three.",
    ),
    Column::maybe("step", Index, "The step that launched it."),
    Column::always("analyzed", Flag, "Whether the diagnosis includes it."),
];

/// The string columns of the table.
#[derive(Debug)]
pub(crate) struct CollectiveWords {
    ops: Words,
    names: Words,
}

impl CollectiveWords {
    pub(crate) fn of(trace: &Trace, items: &Items) -> Self {
        let messages = items.collectives.iter().filter_map(|one| one.message);
        let names = messages
            .flat_map(|message| [message.dtype, message.group, message.group_ranks, message.reduction]);
        Self {
            ops: Words::of_values(&CollectiveOp::ALL),
            names: Words::of_names(trace, names.map(NameId::index)),
        }
    }
}

pub(crate) fn columns(
    trace: &Trace,
    collectives: &[CollectiveItem],
    words: &CollectiveWords,
) -> Result<Vec<ArrayRef>, ArrowError> {
    let each = || collectives.iter();
    let event = |one: &CollectiveItem| trace.event(one.event);
    let text = |of: fn(&Collective) -> NameId| {
        let name =
            move |one: &CollectiveItem| one.message.as_ref().map(of).filter(|name| *name != NameId::EMPTY);
        words.names.column(each().map(move |one| name(one).map(NameId::index)))
    };
    Ok(vec![
        numbers(each().map(|one| one.event.index() as i64)),
        times(each().map(|one| event(one).start())),
        durations(each().map(|one| event(one).duration())),
        indices(each().map(|one| Some(one.device))),
        numbers(each().map(|one| one.stream)),
        words.ops.column(each().map(|one| Some(one.op as usize)))?,
        text(|message| message.dtype)?,
        text(|message| message.group)?,
        text(|message| message.group_ranks)?,
        optional_numbers(each().map(|one| Some(i64::from(one.message?.group_size?)))),
        ids(each().map(|one| one.message?.sequence)),
        text(|message| message.reduction)?,
        optional_numbers(each().map(|one| Some(i64::from(one.message?.root?)))),
        optional_numbers(each().map(|one| Some(i64::from(one.message?.peer?)))),
        sizes(each().map(|one| one.bytes)),
        rates(each().map(|one| one.algbw_gbps)),
        rates(each().map(|one| one.busbw_gbps)),
        durations(each().map(|one| one.exposed)),
        optional_numbers(each().map(|one| Some(one.waiting?.get()))),
        steps(each().map(|one| one.step)),
        flags(each().map(|one| one.analyzed)),
    ])
}

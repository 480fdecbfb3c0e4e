//! Table `steps`: how long each step took, and what the devices did in it.

use arrow_array::ArrayRef;
use busbound_diagnosis::StepItem;

use crate::column::Column;
use crate::column::ColumnType::{Flag, Index, Nanoseconds};
use crate::columns::{durations, flags, indices, times};

pub(crate) const COLUMNS: &[Column] = &[
    Column::always("step", Index, "Its number, from 0."),
    Column::always("start_ns", Nanoseconds, "When the previous step ended, on the profiler's own clock."),
    Column::always("duration_ns", Nanoseconds, "Until its last work ended."),
    Column::always("host_start_ns", Nanoseconds, "When the host began it, which may be much earlier."),
    Column::always("warm_up", Flag, "Whether it is skipped as warm-up."),
    Column::always("outlier", Flag, "Whether it took clearly longer than the others."),
    Column::always("analyzed", Flag, "Whether the diagnosis includes it."),
    Column::always("compute_ns", Nanoseconds, "Time with a kernel running that is not communication."),
    Column::always("comm_ns", Nanoseconds, "Time with communication running."),
    Column::always("copy_ns", Nanoseconds, "Time with a copy running."),
    Column::always("exposed_copy_ns", Nanoseconds, "Part of copy_ns not overlapped with any kernel."),
    Column::always("exposed_comm_ns", Nanoseconds, "Part of comm_ns not overlapped with compute."),
    Column::always(
        "idle_ns",
        Nanoseconds,
        "Time with nothing running, between the device's first and last work.",
    ),
];

/// `first` is the number of the first step.
pub(crate) fn columns(items: &[StepItem], first: usize) -> Vec<ArrayRef> {
    let each = || items.iter();
    vec![
        indices((first..first + items.len()).map(|step| i32::try_from(step).ok())),
        times(each().map(|step| step.start)),
        durations(each().map(|step| step.duration)),
        times(each().map(|step| step.host_start)),
        flags(each().map(|step| step.warm_up)),
        flags(each().map(|step| step.outlier)),
        flags(each().map(|step| step.analyzed)),
        durations(each().map(|step| step.compute)),
        durations(each().map(|step| step.communication)),
        durations(each().map(|step| step.copying)),
        durations(each().map(|step| step.exposed_copy)),
        durations(each().map(|step| step.exposed_communication)),
        durations(each().map(|step| step.idle)),
    ]
}

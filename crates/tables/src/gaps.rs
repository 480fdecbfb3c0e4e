//! Table `gaps`: when a device was idle, and why.

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use busbound_diagnosis::{GapCause, GapItem};

use crate::column::Column;
use crate::column::ColumnType::{Flag, Index, Nanoseconds, Number, Word};
use crate::columns::{durations, flags, indices, optional_numbers, steps, times};
use crate::words::Words;

pub(crate) const COLUMNS: &[Column] = &[
    Column::always("device", Index, "The device that was idle."),
    Column::always("start_ns", Nanoseconds, "On the profiler's own clock."),
    Column::always("duration_ns", Nanoseconds, "Until its next work began."),
    Column::always(
        "cause",
        Word,
        "copy (the host was inside a copy call), launch (waiting for a launch), synchronization (the host was inside a sync call), input (the host waited for its next batch), host (the host did CPU work of its own), queued (launched in time, but waiting for something not in the trace), kernel_gap (gap between kernels, too short to have a cause) or unexplained.",
    ),
    Column::maybe("ended_by", Number, "The work that ended it: a row in `events`."),
    Column::maybe("step", Index, "The step that launched that work."),
    Column::always("analyzed", Flag, "Whether the diagnosis includes it."),
];

/// The string columns of the table.
#[derive(Debug)]
pub(crate) struct GapWords {
    causes: Words,
}

impl Default for GapWords {
    fn default() -> Self {
        Self { causes: Words::of_values(GapCause::ALL) }
    }
}

pub(crate) fn columns(gaps: &[GapItem], words: &GapWords) -> Result<Vec<ArrayRef>, ArrowError> {
    let each = || gaps.iter();
    Ok(vec![
        indices(each().map(|gap| Some(gap.device))),
        times(each().map(|gap| gap.start)),
        durations(each().map(|gap| gap.duration)),
        words.causes.column(each().map(|gap| Some(gap.cause as usize)))?,
        optional_numbers(each().map(|gap| Some(gap.ended_by?.index() as i64))),
        steps(each().map(|gap| gap.step)),
        flags(each().map(|gap| gap.analyzed)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_in_enum_order() {
        assert!(GapCause::ALL.iter().enumerate().all(|(i, &cause)| cause as usize == i));
    }
}

//! What ROCm's profiler reports differently.

use busbound_trace::{EventKind, Nanos, Place, Timestamp, Trace, Track};

/// Copies that share more of their time than this with other work of "their" stream are on another one. Work of one stream is in order, and
/// rounding gives far less.
const APART: f64 = 0.05;

/// Whether the trace is of a program on AMD's GPUs.
pub fn is_rocm(trace: &Trace) -> bool {
    trace.names().iter().any(|name| name.starts_with("hip"))
}

/// Whether the copies of a stream are in truth on another one. ROCm reports every copy on stream 0, which kernels use, too.
pub(crate) fn has_copies_of_others(track: Track<'_>) -> bool {
    if !matches!(track.place(), Place::Stream { stream: 0, .. }) {
        return false;
    }
    let (mut last_copy, mut last_other) = (None::<Timestamp>, None::<Timestamp>);
    let (mut all, mut shared) = (Nanos::ZERO, Nanos::ZERO);
    for event in track.events().filter(|event| event.kind().is_gpu_work()) {
        let is_copy = event.kind() == EventKind::Copy;
        let (same, other) = if is_copy { (&mut last_copy, last_other) } else { (&mut last_other, last_copy) };
        if let Some(other) = other.filter(|other| *other > event.start()) {
            shared += other.min(event.end()) - event.start();
        }
        *same = (*same).max(Some(event.end()));
        all += if is_copy { event.duration() } else { Nanos::ZERO };
    }
    shared.get() as f64 > APART * all.get() as f64
}

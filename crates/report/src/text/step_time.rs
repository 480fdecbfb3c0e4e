//! What does a step take, as recorded and without the profiler?

use busbound_diagnosis::quantity::{milliseconds, milliseconds_range};
use busbound_diagnosis::{Diagnosis, FigureId, Unprofiled, UnprofiledSource};

/// The recorded step, which its parts sum to.
pub(crate) fn recorded_ms(diagnosis: &Diagnosis) -> f64 {
    FigureId::SpanMs.of(diagnosis).unwrap_or(0.0)
}

/// An estimate whose range is a larger share of it is said as a range.
const WIDE: f64 = 0.4;

/// Whether what a step takes without the profiler is a guess.
pub(crate) fn is_vague(diagnosis: &Diagnosis) -> bool {
    let is_wide =
        |one: Unprofiled| one.source == UnprofiledSource::Model && one.high - one.low > WIDE * one.mid;
    diagnosis.window.unprofiled.is_some_and(is_wide)
}

/// `274 ms/step`, or `about 6.90 ms/step without the profiler (12.4 ms recorded)`.
pub(crate) fn now(diagnosis: &Diagnosis) -> String {
    let (now, unit) = (milliseconds(diagnosis.window.baseline_ms), diagnosis.unit().per());
    match diagnosis.window.unprofiled {
        None => format!("{now}{unit}"),
        Some(unprofiled) => {
            let range = match is_vague(diagnosis) {
                true => format!("{}; ", milliseconds_range(unprofiled.low, unprofiled.high)),
                false => String::new(),
            };
            let (about, recorded) = (about(diagnosis), milliseconds(recorded_ms(diagnosis)));
            format!("{about}{unit} without the profiler ({range}{recorded} recorded)")
        }
    }
}

/// `about 6.90 ms`: what predictions start from.
pub(crate) fn about(diagnosis: &Diagnosis) -> String {
    let is_estimated = diagnosis.window.unprofiled.is_some_and(|one| one.source == UnprofiledSource::Model);
    let about = if is_estimated { "about " } else { "" };
    format!("{about}{}", milliseconds(diagnosis.window.baseline_ms))
}

/// `about 6.90 ms (6.10–7.60 ms, estimated)`; `None` if the profiler makes no difference.
pub(crate) fn unprofiled(diagnosis: &Diagnosis) -> Option<String> {
    let unprofiled = diagnosis.window.unprofiled?;
    let time = milliseconds(unprofiled.mid);
    Some(match unprofiled.source {
        UnprofiledSource::Model => {
            format!("about {time} ({}, estimated)", milliseconds_range(unprofiled.low, unprofiled.high))
        }
        UnprofiledSource::Measured => format!("{time} (measured without the profiler)"),
        UnprofiledSource::Given => format!("{time} (given with --wall)"),
    })
}

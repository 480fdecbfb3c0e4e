//! A diagnosis that can be drawn: with a picture of the run, and with what the run would take with changes.

use busbound_machine::Machine;
use busbound_trace::Trace;
use busbound_whatif::replay::Change;

use super::{Detail, Picture, draw};
use crate::answers::diagnosis::{Diagnosis, diagnose_and};
use crate::answers::survey::Source;
use crate::answers::whatif::{self, NoReplay, WhatIf};
use crate::options::Options;

/// A diagnosis with what it takes to draw it.
#[derive(Debug)]
pub struct Drawn {
    pub diagnosis: Diagnosis,
    pub picture: Picture,
    /// What the run would take with changes.
    pub whatif: Result<WhatIf, NoReplay>,
}

/// As [`diagnose`](crate::diagnose), with a picture and a prediction: of the changes named, or of those worth trying.
pub fn diagnose_and_draw(
    trace: &Trace,
    source: &Source,
    machine: &Machine,
    options: &Options,
    wanted: &[Vec<Change>],
    detail: Detail,
) -> Drawn {
    let (diagnosis, (picture, whatif)) = diagnose_and(trace, source, machine, options, |judged| {
        let (whatif, best) = whatif::with_timeline(judged.facts, &source.path, wanted);
        (draw(judged, best.as_ref(), detail), whatif)
    });
    Drawn { diagnosis, picture, whatif }
}

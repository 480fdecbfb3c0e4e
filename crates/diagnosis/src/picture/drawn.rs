//! A diagnosis with a picture of the run, and a prediction of the run with changes.

use busbound_machine::Machine;
use busbound_trace::Trace;
use busbound_whatif::replay::Change;

use super::{Detail, Picture, draw};
use crate::answers::diagnosis::{Diagnosis, diagnose_and};
use crate::answers::survey::Source;
use crate::answers::whatif::{self, NoReplay, WhatIf};
use crate::options::Options;

/// A diagnosis with everything needed to draw it.
#[derive(Debug)]
pub struct Drawn {
    pub diagnosis: Diagnosis,
    pub picture: Picture,
    /// How long the run would take with changes.
    pub whatif: Result<WhatIf, NoReplay>,
}

/// Like [`diagnose`](crate::diagnose), with a picture and a prediction: of the given changes, or of those worth trying.
pub fn diagnose_and_draw(
    trace: &Trace,
    source: &Source,
    machine: &Machine,
    options: &Options,
    wanted: &[Vec<Change>],
    detail: Detail,
) -> Drawn {
    let (diagnosis, (picture, whatif)) = diagnose_and(trace, source, machine, options, |analyzed| {
        let (whatif, best) = whatif::with_timeline(analyzed, &source.path, wanted);
        (draw(analyzed, best.as_ref(), detail), whatif)
    });
    Drawn { diagnosis, picture, whatif }
}

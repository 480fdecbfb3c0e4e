//! What is needed to find the steps of a trace, and the steps.

use std::ops::Range;

use busbound_cause::parallel::join;
use busbound_cause::{CollectiveNames, Host};
use busbound_trace::Trace;

use crate::options::Options;
use crate::steps::window::Window;

/// The steps of a trace, and what they were found with.
pub(crate) struct Basis<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) host: Host<'a>,
    pub(crate) communication: CollectiveNames,
    pub(crate) window: Window,
}

impl<'a> Basis<'a> {
    pub(crate) fn of(trace: &'a Trace, options: &Options) -> Self {
        let (communication, host) = join(|| CollectiveNames::of(trace.names()), || Host::of(trace));
        let window = Window::of(trace, &host, options, None);
        Self { trace, host, communication, window }
    }

    /// For a view of the same trace, which shares its names and has these steps of it.
    pub(crate) fn of_part<'p>(&self, part: &'p Trace, options: &Options, steps: &Range<usize>) -> Basis<'p> {
        let host = self.host.of_part(part);
        let window = self.window.of_part(steps.clone(), part, &host, options).unwrap_or_else(|| {
            let from = self.window.steps.get(steps.start).map(|step| step.start);
            Window::of(part, &host, options, from)
        });
        Basis { trace: part, host, communication: self.communication.clone(), window }
    }
}

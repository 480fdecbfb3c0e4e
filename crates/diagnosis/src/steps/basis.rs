//! What is needed to find the steps of a trace, and the steps.

use busbound_cause::{CollectiveNames, Host};
use busbound_trace::{Timestamp, Trace};

use crate::options::Options;
use crate::parallel::join;
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
        Self::on(trace, host, communication, options, None)
    }

    /// For a view of the same trace, which shares its names. `first` is the first step of the view.
    pub(crate) fn of_part<'p>(&self, part: &'p Trace, options: &Options, first: usize) -> Basis<'p> {
        let from = self.window.steps.get(first).map(|step| step.start);
        Basis::on(part, self.host.of_part(part), self.communication.clone(), options, from)
    }

    fn on(
        trace: &'a Trace,
        host: Host<'a>,
        communication: CollectiveNames,
        options: &Options,
        from: Option<Timestamp>,
    ) -> Self {
        let window = Window::of(trace, &host, options, from);
        Self { trace, host, communication, window }
    }
}

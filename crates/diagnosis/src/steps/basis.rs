//! What is needed to find the steps of a trace, and the steps.

use busbound_cause::{CollectiveNames, Host};
use busbound_trace::Trace;

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
        Self::on(trace, host, communication, options)
    }

    /// For a view of the same trace, which shares its names.
    pub(crate) fn of_part<'p>(&self, part: &'p Trace, options: &Options) -> Basis<'p> {
        Basis::on(part, self.host.of_part(part), self.communication.clone(), options)
    }

    fn on(trace: &'a Trace, host: Host<'a>, communication: CollectiveNames, options: &Options) -> Self {
        let window = Window::of(trace, &host, options);
        Self { trace, host, communication, window }
    }
}

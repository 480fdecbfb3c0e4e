//! What has to be read of a trace before its steps are known, and the steps.

use busbound_cause::{CollectiveNames, Host};
use busbound_trace::Trace;

use crate::activity::timeline::{self, DeviceTimeline};
use crate::options::Options;
use crate::parallel::join;
use crate::steps::window::Window;

/// What it takes to know the steps of a trace.
pub(crate) struct Basis<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) host: Host<'a>,
    pub(crate) communication: CollectiveNames,
    pub(crate) timelines: Vec<DeviceTimeline>,
    pub(crate) window: Window,
}

impl<'a> Basis<'a> {
    pub(crate) fn of(trace: &'a Trace, options: &Options) -> Self {
        let communication = CollectiveNames::of(trace.names());
        let (host, timelines) = join(|| Host::of(trace), || timeline::timelines(trace, &communication));
        let window = Window::of(trace, &host, options);
        Self { trace, host, communication, timelines, window }
    }
}

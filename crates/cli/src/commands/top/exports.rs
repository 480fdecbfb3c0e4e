//! Who else gets the figures of each interval?

use busbound::Format;
use busbound::machine::live::Snapshot;

use super::metrics::Metrics;
use super::otlp::Otlp;
use super::{Show, rendered};
use crate::args::top::TopArgs;
use crate::failure::Failure;
use crate::io::output::warn;

/// The metrics of the last interval: served to Prometheus, sent to OpenTelemetry.
pub(super) struct Exports {
    prometheus: Option<Metrics>,
    otlp: Option<Otlp>,
}

impl Exports {
    /// Whether the addresses are addresses.
    pub(super) fn check(args: &TopArgs) -> Result<(), Failure> {
        args.prometheus.as_deref().map_or(Ok(()), Metrics::check)?;
        args.otlp.as_ref().map_or(Ok(()), |given| Otlp::check(given.as_deref()))
    }

    pub(super) fn start(args: &TopArgs, show: Show) -> Result<Self, Failure> {
        let prometheus = args.prometheus.as_deref().map(Metrics::serve).transpose()?;
        if let Some(metrics) = &prometheus {
            warn(&format!("metrics are at http://{}/metrics", metrics.address()));
        }
        let start = |given: &Option<String>| Otlp::start(given.as_deref(), show != Show::Screen);
        let otlp = args.otlp.as_ref().map(start).transpose()?;
        if let Some(otlp) = &otlp {
            warn(&format!("sending metrics to {} every {} s", otlp.endpoint(), args.interval));
        }
        Ok(Self { prometheus, otlp })
    }

    pub(super) fn is_any(&self) -> bool {
        self.is_served() || self.otlp.is_some()
    }

    /// Whether someone may still ask for the last interval.
    pub(super) fn is_served(&self) -> bool {
        self.prometheus.is_some()
    }

    pub(super) fn publish(&self, snapshot: &Snapshot) -> Result<(), Failure> {
        if let Some(metrics) = &self.prometheus {
            metrics.publish(rendered(snapshot, Format::Prometheus)?);
        }
        if let Some(otlp) = &self.otlp {
            otlp.publish(snapshot);
        }
        Ok(())
    }

    /// What the screen says about it; nothing as long as it works.
    pub(super) fn describe(&self) -> &'static str {
        let is_failing = self.otlp.as_ref().is_some_and(Otlp::is_failing);
        if is_failing { " · the collector takes no metrics" } else { "" }
    }
}

//! How long does the data loader take for a batch, and how many workers would make batches as fast as the steps need them?

use busbound_cause::idle::GapCause;

use crate::activity::gaps::IdleCause;
use crate::analysis::facts::Facts;

/// A loader that keeps the GPU idle for a smaller share of the time is not worth a change.
const WORTH_IT: f64 = 0.03;

/// A data loader that the GPU waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct InputLoader {
    /// Host time to fetch a batch.
    pub(crate) batch_ms: f64,
    /// The step if fetching took no time.
    pub(crate) rest_ms: f64,
    /// Whether it runs in the training process (`num_workers=0`). Not every trace shows that.
    pub(crate) is_in_main_process: bool,
}

impl InputLoader {
    /// `None` if the GPU hardly waits for input.
    pub(crate) fn of(facts: &Facts<'_>) -> Option<Self> {
        let idle_ms = Self::idle(facts)?.ms / facts.steps();
        let threads = facts.host.launching_threads();
        let total: f64 = threads.map(|(_, times)| times.input.length().as_millis()).sum();
        let names = facts.trace.names();
        Some(Self {
            batch_ms: (total / facts.steps()).max(idle_ms),
            // The GPU works for longer than the host does something else than fetching.
            rest_ms: (facts.step_ms() - idle_ms).max(0.02 * facts.step_ms()),
            is_in_main_process: names.iter().any(|name| name.contains("_SingleProcessDataLoaderIter")),
        })
    }

    /// The idle time that is spent on it.
    pub(crate) fn idle<'f>(facts: &'f Facts<'_>) -> Option<&'f IdleCause> {
        let idle = facts.idle.iter().find(|idle| idle.cause == GapCause::Input)?;
        (idle.ms >= WORTH_IT * facts.time.analyzed_ms).then_some(idle)
    }

    /// Enough workers to make batches faster than the steps need them.
    pub(crate) fn workers(&self) -> u32 {
        /// A worker takes longer for a batch than the training process, and batches differ.
        const ROOM: f64 = 1.25;
        ((ROOM * self.batch_ms / self.rest_ms).ceil()).clamp(2.0, 64.0) as u32
    }

    /// How often the workers have a batch ready.
    pub(crate) fn made_ms(&self) -> f64 {
        self.batch_ms / f64::from(self.workers())
    }
}

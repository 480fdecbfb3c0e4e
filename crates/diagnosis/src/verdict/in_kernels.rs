//! How long do kernels wait for transfers? That time looks like compute.

use crate::analysis::breakdown::Part;
use crate::analysis::facts::Facts;

/// Transfers that kernels wait for, over all devices and steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct InKernels {
    /// Pages of managed memory. The length of the wait is known only if the same kernels also ran without faults.
    pub(super) pages_ms: f64,
    /// Host memory that kernels read or write themselves.
    pub(super) link_ms: f64,
}

/// How long kernels wait for host memory, over all devices and steps.
pub(crate) fn kernel_waits_ms(facts: &Facts<'_>) -> f64 {
    InKernels::of(facts).total_ms()
}

impl InKernels {
    pub(super) fn of(facts: &Facts<'_>) -> Self {
        let pages_ms = facts.managed.excess_ms().unwrap_or(0.0).min(facts.time.compute_ms);
        let link_ms = facts.link_waits_ms().min(facts.time.compute_ms - pages_ms);
        Self { pages_ms, link_ms }
    }

    pub(super) fn total_ms(self) -> f64 {
        self.pages_ms + self.link_ms
    }

    /// What the kernels wait for, if that is more than exposed copies are.
    pub(super) fn named(self, facts: &Facts<'_>) -> Option<&'static str> {
        let is_most = self.total_ms() > facts.part_ms(Part::is_transfer);
        is_most.then_some(match self.pages_ms >= self.link_ms {
            true => "pages of managed memory",
            false => "host memory",
        })
    }
}

//! How long does each kernel run per step? Every kernel by name, so that runs can be compared.

use busbound_trace::{EventKind, Nanos};

use crate::analysis::facts::Facts;
use crate::quantity::printable;

/// All runs of the kernels with one name, over all GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelTotal {
    pub name: String,
    pub runs_per_step: f64,
    pub ms_per_step: f64,
}

/// In the order in which the trace first names them.
pub(crate) fn kernel_totals(facts: &Facts<'_>) -> Vec<KernelTotal> {
    let names = facts.trace.names();
    let mut sums: Vec<(u64, Nanos)> = vec![(0, Nanos::ZERO); names.len()];
    let kernels = facts.trace.streams().flat_map(|stream| stream.events());
    for kernel in kernels.filter(|event| event.kind() == EventKind::Kernel) {
        let (runs, time) = &mut sums[kernel.name_id().index()];
        *runs += 1;
        *time += kernel.duration();
    }
    let steps = facts.steps();
    let total = |(name, (runs, time)): (&str, (u64, Nanos))| KernelTotal {
        name: printable(name),
        runs_per_step: runs as f64 / steps,
        ms_per_step: time.as_millis() / steps,
    };
    names.iter().zip(sums).filter(|(_, (runs, _))| *runs > 0).map(total).collect()
}

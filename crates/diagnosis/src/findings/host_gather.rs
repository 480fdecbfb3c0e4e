//! Does the GPU wait while the CPU gathers rows?

use busbound_cause::{HostUse, Resource};

use super::common::host_idle::{HostIdle, WORTH_IT};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;

pub(super) static RULE: Rule = Rule {
    title: "Gather on the CPU",
    doing: "keeping the table on the GPU",
    precondition: "The table fits on the GPU, or the indices of the next step are known one step ahead.",
    basis: "bound: idle time while the CPU gathers",
    candidate: Candidate::None(
        "No what-if change moves a gather to the GPU or to another thread: the trace does not show how long it takes there.",
    ),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::Host],
    check,
    document: Document {
        meaning: "The GPU is idle while the launching thread gathers or indexes rows in host memory (`index_select`, \
                  `embedding`, `gather`, `take`).",
        computed: "Evidence: GPU idle time while the launching thread is in such an operator, with no launch for at least \
                   200 µs, is 3% or more of the time. Saving: 50% to 100% of that idle time.",
        fix: "Keep the table on the GPU and copy only the indices. If it does not fit, gather the rows of the next step in a \
              thread, into a pinned buffer.",
        code: &[CODE],
        assumes: "The table fits on the GPU, or the indices of the next step are known one step ahead.",
    },
};

const CODE: &str = "\
table = table.to(device)                                  # once, if it fits
rows = table[indices.to(device, non_blocking=True)]

pool = concurrent.futures.ThreadPoolExecutor(1)           # if not: gather one step ahead
def gather(indices, out):                                 # `out`: one of two pinned buffers
    return torch.index_select(table, 0, indices, out=out)
pending = pool.submit(gather, first, buffers[0])
for step, following in enumerate(later_indices, 1):
    rows = pending.result().to(device, non_blocking=True)
    copied[(step - 1) % 2].record()
    copied[step % 2].synchronize()                        # the other buffer is free again
    pending = pool.submit(gather, following, buffers[step % 2])
    train(rows)";

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let idle = HostIdle::of(facts, HostUse::Gather, WORTH_IT)?;
    Some(Draft {
        title: None,
        seen: format!("The GPU is idle while the CPU gathers rows: {}.", idle.describe(facts)),
        evidence: idle.evidence(),
        saves: idle.saving(0.5),
        fix: Fix::new(
            "Keep the table on the GPU and copy only the indices. If it does not fit, gather the rows of the next step in a thread, into a pinned buffer.",
        )
        .code(CODE),
        at: idle.at,
    })
}

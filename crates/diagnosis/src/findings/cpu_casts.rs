//! Does the GPU wait while the CPU copies or casts?

use busbound_cause::{HostUse, Resource};

use super::common::host_idle::{HostIdle, WORTH_IT};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;

pub(super) static RULE: Rule = Rule {
    title: "Casts and copies on the CPU",
    doing: "casting on the GPU",
    precondition: "The GPU has memory for the tensor in both dtypes.",
    basis: "bound: idle time while the CPU casts or copies",
    candidate: Candidate::None(
        "No what-if change moves a cast to the GPU: the trace does not show the dtypes before and after it.",
    ),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::Host],
    check,
    document: Document {
        meaning: "The GPU is idle while the launching thread casts or copies tensors from host memory to host memory \
                  (`.to(dtype)`, `clone`, `contiguous`, `cat`, `stack`).",
        computed: "Evidence: GPU idle time while the launching thread is in such an operator, with no launch for at least \
                   200 µs, is 3% or more of the time. Saving: 50% to 100% of that idle time.",
        fix: "Copy the tensor as it is, and cast on the GPU: fewer bytes if the cast makes it larger; more if it makes it smaller, \
              which is still faster where the CPU casts more slowly than the link copies. Write into one pinned buffer instead of \
              joining tensors.",
        code: &[CODE],
        assumes: "The GPU has memory for the tensor in both dtypes.",
    },
};

const CODE: &str = "\
x = x.to(device, non_blocking=True).to(torch.float32)     # not x.float().to(device)
g = g.to(torch.bfloat16).to(\"cpu\")                        # down: cast first, copy the smaller one";

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let idle = HostIdle::of(facts, HostUse::Cast, WORTH_IT)?;
    Some(Draft {
        title: None,
        seen: format!("The GPU is idle while the CPU casts and copies tensors: {}.", idle.describe(facts)),
        evidence: idle.evidence(),
        saves: idle.saving(0.5),
        fix: Fix::new(
            "Copy the tensor as it is and cast on the GPU: .to(device).to(dtype), not .to(dtype).to(device).",
        )
        .code(CODE),
        at: idle.at,
    })
}

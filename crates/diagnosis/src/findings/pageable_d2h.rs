//! Do D2H copies write to pageable memory?

use busbound_cause::Resource;
use busbound_trace::Direction;
use busbound_whatif::replay::{Pin, Stage};

use super::common::copies::times_of;
use super::common::frameworks::{FSDP_PIN_CODE, Framework};
use super::common::pageable::{self, Buffers, Staged, copied_once, is_once, pageable};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::findings::FindingId;

pub(super) static RULE: Rule = Rule {
    title: "D2H copies to pageable memory",
    doing: "pinning the buffers of D2H copies",
    precondition: pageable::PRECONDITION,
    basis: pageable::BASIS,
    candidate: Candidate::AlsoWithoutCode(|| vec![Pin.into()], || vec![Stage.into()]),
    effort: Effort::FewLines,
    unless: &[FindingId::PageFaults],
    relieves: &[Resource::D2h],
    check,
    document: Document {
        meaning: "D2H copies write to pageable memory. `.cpu()` and copies into unpinned tensors block the host until they \
                  finish, even with `non_blocking=True`.",
        computed: "As for `pageable_copies`, in the D2H direction. Not reported if `page_faults` is reported.",
        fix: "Create a pinned buffer once. Copy into it with `non_blocking=True`, and wait for an event before reading \
              it.",
        code: &[CODE, FSDP_PIN_CODE],
        assumes: "The same buffer receives results many times, and the host has other work until it reads them.",
    },
};

const CODE: &str = "\
out = torch.empty(result.shape, dtype=result.dtype, pin_memory=True)    # once
done = torch.cuda.Event()
out.copy_(result, non_blocking=True)
done.record()
...                   # work that does not need it
done.synchronize()    # before reading `out`";

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let copies: Vec<_> = pageable(facts, Direction::DeviceToHost).collect();
    let staged = Staged::of(facts, &copies)?;
    Some(Draft {
        title: None,
        saves: staged.saving(staged.bound())?,
        seen: staged.seen("to"),
        evidence: staged.evidence(),
        fix: match Buffers::of(facts, &copies) {
            _ if is_once(facts, &copies) => copied_once(),
            fsdp @ Buffers::Offloaded(Framework::Fsdp) => fsdp.fix(""),
            Buffers::Cuda => Fix::new(
                "Allocate the buffer once with cudaMallocHost. Copy into it with cudaMemcpyAsync, and wait for an event before reading it.",
            ),
            _ => Fix::new(
                "Create a buffer once with torch.empty(…, pin_memory=True). Copy into it with non_blocking=True, and wait for an event before reading it.",
            )
            .code(CODE),
        },
        at: times_of(&copies),
    })
}

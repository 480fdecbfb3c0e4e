//! Do H2D copies read from pageable memory?

use busbound_cause::Resource;
use busbound_trace::Direction;
use busbound_whatif::replay::{LoaderPin, Pin, Stage};

use super::common::copies::times_of;
use super::common::pageable::{
    self, Buffers, Staged, copied_once, is_asynchronous_in_name_only, is_once, pageable,
};
use super::common::{Candidate, Document, Draft, Effort, Rule};
use crate::analysis::facts::Facts;
use crate::settings::Target;
use crate::settings::offload::pinned;

pub(super) static RULE: Rule = Rule {
    title: "H2D copies from pageable memory",
    doing: "pinning host buffers",
    precondition: pageable::PRECONDITION,
    basis: pageable::BASIS,
    candidate: Candidate::AlsoWithoutCode(|| vec![Pin.into()], || vec![Stage.into()]),
    effort: Effort::OneLine,
    unless: &[],
    relieves: &[Resource::H2d],
    check,
    document: Document {
        meaning: "H2D copies read from pageable memory. The driver stages them through its own pinned buffers, at a third to \
                  an eighth of the link's rate, and the call returns only after the data is staged.",
        computed: "Evidence: copies of 64 KiB or more from pageable memory take at least 1% of the time. Where the kind of memory is not \
                   recorded (AMD), copies of 1 MiB or more whose call waits for 80% of their time, and that take twice as long as pinned \
                   ones, count as probably pageable. Saving: the trace \
                   replayed with `pin`. If that is not possible, a bound: their time beyond the link's pinned rate for \
                   their sizes, limited to exposed time. None for buffers that are copied once: in a trace without steps, \
                   all before its first kernel, or all after its last.",
        fix: "Pin the host buffers once and reuse them. `DataLoader(pin_memory=True)` does so for batches, \
              and `CPUOffloadPolicy(pin_memory=True)` for the weights that FSDP2 offloads.",
        code: pageable::PIN_CODES,
        assumes: "The same buffer is copied many times. Pinning memory for a single copy costs more than it saves.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let copies: Vec<_> = pageable(facts, Direction::HostToDevice)
        .filter(|copy| !is_asynchronous_in_name_only(facts, copy))
        .collect();
    let staged = Staged::of(facts, &copies)?;
    let buffers = Buffers::of(facts, &copies);
    let fix = buffers.fix("");
    Some(Draft {
        title: None,
        saves: staged.saving(staged.bound())?,
        seen: staged.seen("from"),
        evidence: staged.evidence(),
        fix: match buffers {
            _ if is_once(facts, &copies) => copied_once(),
            Buffers::Loader => {
                fix.setting(Target::DataLoader, "pin_memory", true).replayed_as(vec![LoaderPin.into()])
            }
            Buffers::Offloaded(_) | Buffers::Own => fix.settings(pinned()),
            Buffers::Cuda => fix,
        },
        at: times_of(&copies),
    })
}

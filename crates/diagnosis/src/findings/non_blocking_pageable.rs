//! Do asynchronous copies block because their memory is pageable?

use busbound_cause::Resource;
use busbound_trace::Direction;
use busbound_whatif::replay::{Pin, Stage};

use super::common::copies::times_of;
use super::common::pageable::{self, Buffers, Staged, is_asynchronous_in_name_only, pageable};
use super::common::{Candidate, Document, Draft, Effort, Rule};
use crate::analysis::facts::Facts;
use crate::settings::offload::pinned;

pub(super) static RULE: Rule = Rule {
    title: "Async copies that block (pageable memory)",
    doing: "pinning host buffers",
    precondition: pageable::PRECONDITION,
    basis: pageable::BASIS,
    candidate: Candidate::AlsoWithoutCode(|| vec![Pin.into()], || vec![Stage.into()]),
    effort: Effort::OneLine,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h],
    check,
    document: Document {
        meaning: "Copies were requested with `non_blocking=True`, or issued on a copy-only stream, but they block the host \
                  anyway because their memory is pageable.",
        computed: "Evidence: as for `pageable_copies`, for copies whose operator was called with `non_blocking=True` \
                   (visible if shapes were recorded) or whose stream runs no kernels. With pinned memory, the stream \
                   and its events take effect, so the bound is all of the exposed time.",
        fix: "Pin the host buffers once and reuse them. The copy stream and its events can stay unchanged.",
        code: pageable::PIN_CODES,
        assumes: "The same buffer is copied many times, and the program already uses an event to wait for the copy.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let copies: Vec<_> = pageable(facts, Direction::HostToDevice)
        .filter(|copy| is_asynchronous_in_name_only(facts, copy))
        .collect();
    let staged = Staged::of(facts, &copies)?;
    let bound = if staged.pinned < facts.time.compute_ms {
        // The copy stream and its events already exist: with pinned memory, the copies overlap with compute.
        (0.85 * staged.exposed.min(staged.faster), staged.exposed + staged.staging)
    } else {
        staged.bound()
    };
    let buffers = Buffers::of(facts, &copies);
    Some(Draft {
        title: None,
        saves: staged.saving(bound)?,
        seen: staged.seen("from"),
        evidence: staged.evidence(),
        fix: buffers.fix(" The copy stream and its events then work as intended.").settings(pinned()),
        at: times_of(&copies),
    })
}

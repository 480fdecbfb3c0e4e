//! Were copies from pageable memory meant to be asynchronous?

use busbound_trace::Direction;
use busbound_whatif::replay::Pin;

use super::common::copies::times_of;
use super::common::pageable::{self, Buffers, Staged, is_asynchronous_in_name_only, pageable};
use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::settings::offload::pinned;

pub(super) static RULE: Rule = Rule {
    title: "non_blocking copies from pageable memory are not asynchronous",
    precondition: pageable::PRECONDITION,
    basis: pageable::BASIS,
    candidate: Candidate::Changes(|| vec![Pin.into()]),
    unless: &[],
    check,
    document: Document {
        meaning: "Copies were requested with `non_blocking=True`, or issued on a stream of their own, and blocked the \
                  host all the same because their memory is pageable.",
        computed: "Evidence: as for `pageable_copies`, for copies whose operator was called with `non_blocking=True` \
                   (visible where shapes were recorded) or whose stream runs no kernels. Once the memory is pinned, the \
                   stream and its events take effect, so the bound is all of their exposed time.",
        fix: "Pin the host buffers once and keep them; the copy stream and its events can stay as they are.",
        code: &[pageable::PIN_CODE, pageable::LOADER_CODE],
        assumes: "The same buffer is sent many times, and the program already waits for the copy by an event.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let copies: Vec<_> = pageable(facts, Direction::HostToDevice)
        .filter(|copy| is_asynchronous_in_name_only(facts, copy))
        .collect();
    let staged = Staged::of(facts, &copies)?;
    let bound = if staged.pinned < facts.time.compute_ms {
        // Its own stream and events are there already: pinned, it hides behind compute.
        (0.85 * staged.exposed.min(staged.faster), staged.exposed + staged.staging)
    } else {
        staged.bound()
    };
    let buffers = Buffers::of(facts);
    Some(Draft {
        title: None,
        saves: staged.saving(bound)?,
        seen: staged.seen("from"),
        evidence: staged.evidence(),
        fix: Fix::new(format!(
            "{} The copy stream and its events then work as they were meant to.",
            buffers.pin()
        ))
        .code(buffers.code())
        .settings(pinned()),
        at: times_of(&copies),
    })
}

//! `stream`: one flat pinned copy per block on a stream of its own, one block ahead, without host
//! syncs and without hooks.

use std::fmt;

use busbound_cause::thresholds::PINNED_COPY_CALL;
use busbound_cause::{Few, HostAction, HostUse, Model, WorkKind};

use super::edit::{
    Hooks, OwnWaits, bytes_of, copy_ns, groups, is_fetched, remove_call, remove_host_work, small_copies,
};
use super::{About, Declared, Made, Prefetch, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream;

impl Declared for Stream {
    const ABOUT: About = About {
        name: "stream",
        spelling: "stream",
        help: "fetch each block with one pinned copy on a separate stream, one block ahead",
        doing: "streaming the weights",
        effort: "one flat pinned buffer per block, two buffers on the device, a copy stream and events",
        precondition: "the copied data are weights that do not change within a step",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let (own, hooks) = (OwnWaits::of(graph), Hooks::of(graph));
        let kept = terms.assumed.hooks;
        for group in groups(graph, |id| is_fetched(graph, id)).into_iter().flatten() {
            let total = group.copies.iter().map(|id| bytes_of(graph, *id)).sum();
            let Some((&first, rest)) = group.copies.split_first() else { continue };
            for id in rest.iter().copied().chain(small_copies(graph, &group)) {
                hooks.drop_copy(graph, id, &own, kept);
            }
            if let WorkKind::Copy { direction, .. } = graph.work[first].kind {
                graph.work[first].kind = WorkKind::Copy { direction, pageable: false, bytes: total };
                graph.work[first].alone = copy_ns(total, direction, false, terms.link) * terms.assumed.copies;
            }
            hooks.shorten(graph, &group, terms.assumed.longest_gap);
            if let Some(wait) = own.get(first) {
                remove_call(graph, wait);
                remove_host_work(graph, wait, kept);
                hooks.remove_after(graph, wait, kept);
            }
            if let Some(call) = graph.work[first].call {
                remove_host_work(graph, call, kept);
                hooks.remove_after(graph, call, kept);
                let call = &mut graph.calls[call];
                call.action = HostAction::Issue(Few::one(first));
                (call.cost, call.cost_use) = (PINNED_COPY_CALL, HostUse::Launching);
            }
        }
        Prefetch(1).apply(graph, terms)
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}

//! When does the program pin tensors?

use busbound_trace::{Event, EventKind};

use crate::analysis::facts::Facts;

/// PyTorch's operators that copy a tensor into pinned memory. The first contains the second.
pub(in crate::findings) const PIN_OPERATORS: [&str; 2] = ["aten::pin_memory", "aten::_pin_memory"];

/// These operators, on all threads.
pub(in crate::findings) fn pin_operators<'a>(facts: &Facts<'a>) -> Vec<Event<'a>> {
    let wanted: Vec<bool> = facts.trace.names().iter().map(|name| PIN_OPERATORS.contains(&name)).collect();
    if !wanted.contains(&true) {
        return Vec::new();
    }
    let is_one = |event: &Event<'_>| event.kind() == EventKind::Operator && wanted[event.name_id().index()];
    facts.trace.threads().flat_map(|track| track.events().filter(is_one).collect::<Vec<_>>()).collect()
}

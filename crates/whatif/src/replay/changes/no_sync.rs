//! `nosync`: removes host syncs within a step.

use std::collections::BTreeMap;
use std::fmt;

use busbound_cause::{HostAction, Model, Time};
use busbound_trace::Direction;

use super::edit::remove_call;
use super::{About, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSync;

impl Declared for NoSync {
    const ABOUT: About = About {
        name: "nosync",
        spelling: "nosync",
        help: "remove host syncs within a step",
        doing: "removing host syncs",
        effort: "remove the host syncs",
        precondition: "the host does not need the results within the step",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, _terms: &Terms<'_>) -> Made {
        let mut made = Made::default();
        // The last wait of a step ends it: the program may need it to return its result.
        let mut last: BTreeMap<usize, Time> = BTreeMap::new();
        for call in graph.calls.iter().filter(|call| matches!(call.action, HostAction::Wait { .. })) {
            let at = last.entry(call.step).or_insert(call.start);
            *at = (*at).max(call.start);
        }
        for id in 0..graph.calls.len() {
            let call = &graph.calls[id];
            let HostAction::Wait { copy, .. } = call.action else { continue };
            // The host needs to wait for a value that it reads.
            let needed =
                copy.is_some_and(|copy| graph.work[copy].kind.bus() == Some(Direction::DeviceToHost));
            if needed || last.get(&call.step) == Some(&call.start) {
                continue;
            }
            remove_call(graph, id);
            made.changed += 1;
        }
        made
    }
}

impl fmt::Display for NoSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}

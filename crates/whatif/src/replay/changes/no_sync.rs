//! `nosync`: removes host syncs within a step.

use std::fmt;

use busbound_cause::{Few, HostAction, Model, avoidable_waits};

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
        precondition: "the host does not need the results within the step, and decides nothing by them",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, _terms: &Terms<'_>) -> Made {
        let mut made = Made::default();
        let avoidable = avoidable_waits(graph);
        for call in (0..graph.calls.len()).filter(|call| avoidable[*call]) {
            match graph.calls[call].action {
                // The copy stays, and the host does not wait for it.
                HostAction::IssueBlocking(copy) => {
                    graph.calls[call].action = HostAction::Issue(Few::one(copy))
                }
                _ => remove_call(graph, call),
            }
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

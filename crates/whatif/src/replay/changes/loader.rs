//! `loader=pin`: batches are pinned by the loader's own thread.

use std::fmt;

use busbound_cause::{HostUse, Model, Time, WorkId, WorkKind};
use busbound_trace::Direction;

use super::{About, Declared, Made, Pin, Terms};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoaderPin;

impl Declared for LoaderPin {
    const ABOUT: About = About {
        name: "loader",
        spelling: "loader=pin",
        help: "let the loader's own thread pin each batch",
        doing: "pinning batches in the loader",
        effort: "`DataLoader(pin_memory=True)` and `non_blocking=True`",
        precondition: "the loader's thread keeps up with the steps",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        if value == Some("pin") { Ok(Self) } else { Err("loader takes pin") }
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        // Shared memory of a worker is mapped and unmapped by the thread that receives the batch: then the loader's thread does.
        for id in 0..graph.work.len() {
            if is_batch(graph, id)
                && let Some(call) = graph.work[id].call
            {
                for (what, time) in &mut graph.calls[call].since.uses {
                    if matches!(what, HostUse::Python | HostUse::Cast) {
                        *time = (*time as f64 * terms.assumed.first_touch) as Time;
                    }
                }
            }
        }
        Pin.apply(graph, terms)
    }
}

fn is_batch(graph: &Model, id: WorkId) -> bool {
    let work = &graph.work[id];
    !work.dropped
        && matches!(work.kind, WorkKind::Copy { direction: Direction::HostToDevice, pageable: true, .. })
}

impl fmt::Display for LoaderPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=pin", Self::ABOUT.name)
    }
}

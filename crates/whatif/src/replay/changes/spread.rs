//! `spread`: moves host copies out of the collectives that they contend with.

use std::fmt;

use busbound_cause::thresholds::EVENT_PASSES;
use busbound_cause::{Model, WorkId, WorkKind};

use super::{About, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread;

/// How much longer a collective takes while host copies run, as a share. A public report has 8–11% (NCCL issue 2218).
const SLOWER: f64 = 0.10;

impl Declared for Spread {
    const ABOUT: About = About {
        name: "spread",
        spelling: "spread",
        help: "move host copies out of the collectives that they contend with",
        doing: "moving copies out of collectives",
        effort: "let the copy stream wait for the collective's event",
        precondition: "the copies are not needed before the collective ends",
        depends_on_data: true,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let of = |wanted: fn(WorkKind) -> bool| -> Vec<WorkId> {
            (0..graph.work.len())
                .filter(|id| wanted(graph.work[*id].kind) && !graph.work[*id].dropped)
                .collect()
        };
        let collectives = of(|kind| kind == WorkKind::Collective);
        let mut copies = of(|kind| kind.bus().is_some());
        copies.sort_by_key(|id| graph.work[*id].start);
        let mut made = Made::default();
        for collective in collectives {
            let (start, end) = (graph.work[collective].start, graph.work[collective].end);
            let first = copies.partition_point(|id| graph.work[*id].start < start);
            let during = copies[first..].iter().copied().take_while(|id| graph.work[*id].start < end);
            let mut shared = 0;
            for copy in during.collect::<Vec<_>>() {
                shared += graph.work[copy].end.min(end) - graph.work[copy].start;
                graph.work[copy].waits.push((collective, EVENT_PASSES));
                made.changed += 1;
            }
            let slower = if terms.assumed.independent { SLOWER } else { 0.8 * SLOWER };
            let lost = shared.min(end - start) as f64 * slower / (1.0 + slower);
            graph.work[collective].alone = (graph.work[collective].alone - lost).max(0.0);
        }
        made
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}

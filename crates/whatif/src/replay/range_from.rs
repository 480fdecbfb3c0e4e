//! Where does the range of a prediction come from? Each unknown is put at its best and at its worst, the others as expected.

use serde::Serialize;

use busbound_cause::Model;

use super::assumed::Assumed;
use super::{Change, Predicted, Replay};

/// What a prediction does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RangeFrom {
    /// How much of the host's time was the profiler's.
    Recording,
    /// How fast changed copies are.
    Copies,
    /// Host work around copies that are changed or removed.
    HostWork,
    /// What runs at the same time then.
    Overlap,
    /// Clocks of a GPU that is idle less.
    Power,
    /// How well the replay reproduces the trace.
    Replay,
}

/// Takes the assumptions of one kind from `from`.
type Mix = fn(&mut Assumed, &Assumed);

const UNKNOWNS: [(RangeFrom, Mix); 5] = [
    (RangeFrom::Recording, |to, from| to.recording = from.recording),
    (RangeFrom::Copies, |to, from| {
        (to.copies, to.staged_share, to.new_pages_gain) =
            (from.copies, from.staged_share, from.new_pages_gain);
        to.reused_pages = from.reused_pages;
    }),
    (RangeFrom::HostWork, |to, from| {
        (to.behind_staging, to.first_touch, to.packing) =
            (from.behind_staging, from.first_touch, from.packing);
        (to.freeing, to.without_churn) = (from.freeing, from.without_churn);
        (to.gather_fresh, to.gather_reused) = (from.gather_fresh, from.gather_reused);
        to.gather_rate = from.gather_rate;
        (to.pin_thread, to.handing_over) = (from.pin_thread, from.handing_over);
        (to.hooks, to.longest_gap) = (from.hooks, from.longest_gap);
    }),
    (RangeFrom::Overlap, |to, from| {
        (to.hidden, to.uncaptured, to.independent) = (from.hidden, from.uncaptured, from.independent);
        (to.outside_graphs, to.node_gap, to.node_every) =
            (from.outside_graphs, from.node_gap, from.node_every);
    }),
    (RangeFrom::Power, |to, from| to.power = from.power),
];

impl RangeFrom {
    /// To follow "mostly from", for a machine that was measured or not.
    pub fn describe(self, is_measured: bool) -> &'static str {
        match self {
            Self::Recording => {
                "the profiler's cost, which is estimated: time some steps without it and pass --wall MS"
            }
            Self::Copies if is_measured => "how fast the changed copies are, also at the measured rates",
            Self::Copies => {
                "how fast the changed copies are: a `busbound bench` profile with --machine narrows it"
            }
            Self::HostWork => "host work around these copies, which a trace does not separate",
            Self::Overlap => "what can run at the same time, which depends on the program",
            Self::Power if is_measured => "the clocks of a busier GPU",
            Self::Power => "the clocks of a busier GPU: a `busbound bench` profile with --machine narrows it",
            Self::Replay => "how well the replay reproduces this trace",
        }
    }
}

impl Replay {
    /// The unknown that moves this prediction of the changes most.
    pub fn range_from(&self, changes: &[Change], predicted: &Predicted) -> RangeFrom {
        let own = (predicted.high_ms - predicted.worst_ms) + (predicted.best_ms - predicted.low_ms);
        let mut graph = Model::default();
        let moved = UNKNOWNS.iter().map(|(unknown, mix)| {
            let mut at = |extreme: &Assumed| {
                let mut assumed = Assumed::EXPECTED;
                mix(&mut assumed, extreme);
                self.run(&mut graph, changes, assumed).step_ms
            };
            (*unknown, (at(&Assumed::WORST) - at(&Assumed::BEST)).abs())
        });
        let most = moved.max_by(|(_, a), (_, b)| a.total_cmp(b));
        most.filter(|(_, ms)| *ms > own).map_or(RangeFrom::Replay, |(unknown, _)| unknown)
    }
}

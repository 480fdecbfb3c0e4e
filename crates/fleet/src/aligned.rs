//! What did ranks do at the same time? Their lanes on one clock, for a page.

use busbound_diagnosis::{LaneTimes, RankLanes};

use crate::align::Clock;
use crate::arrivals::Arrivals;
use crate::name::RankName;
use crate::summary::RankSummary;

/// The lanes of the ranks whose clocks are aligned. Times are nanoseconds since the first of them.
#[derive(Debug, Clone, PartialEq)]
pub struct AlignedLanes {
    pub length_ns: i64,
    /// In the order of the ranks.
    pub ranks: Vec<AlignedRank>,
}

/// One rank on the shared clock.
#[derive(Debug, Clone, PartialEq)]
pub struct AlignedRank {
    pub rank: RankName,
    /// How far its clock may be off.
    pub error_us: f64,
    /// Whether the others wait for it at collectives.
    pub is_late: bool,
    pub lanes: RankLanes,
}

impl AlignedLanes {
    /// `None` if fewer than two ranks have lanes and a clock.
    pub(crate) fn of(
        ranks: &[(&RankSummary, Clock)],
        arrivals: Option<&Arrivals>,
        step_ms: f64,
    ) -> Option<Self> {
        let known = || ranks.iter().filter(|(rank, _)| !rank.lanes.is_empty());
        let begin =
            known().map(|(rank, clock)| clock.shared(rank.lanes.from_ns)).fold(f64::INFINITY, f64::min);
        let end = known().map(|(rank, clock)| clock.shared(rank.lanes.until_ns)).fold(begin, f64::max);
        let late = |rank: &RankName| {
            let mut late = arrivals.iter().flat_map(|arrivals| &arrivals.late);
            late.any(|late| late.rank == *rank && late.matters(step_ms))
        };
        let one = |(rank, clock): &(&RankSummary, Clock)| {
            let rank_name = rank.label();
            AlignedRank {
                error_us: clock.error_ns / 1e3,
                is_late: late(&rank_name),
                rank: rank_name,
                lanes: moved(&rank.lanes, |own| (clock.shared(own) - begin) as i64),
            }
        };
        let aligned: Vec<AlignedRank> = known().map(one).collect();
        (aligned.len() > 1 && end > begin).then_some(Self { length_ns: (end - begin) as i64, ranks: aligned })
    }
}

fn moved(lanes: &RankLanes, shared: impl Fn(i64) -> i64) -> RankLanes {
    let lane = |times: &LaneTimes| {
        let (starts_ns, durations_ns) =
            times.iter().map(|(start, end)| (shared(start), shared(end) - shared(start))).unzip();
        LaneTimes { starts_ns, durations_ns }
    };
    RankLanes {
        from_ns: shared(lanes.from_ns),
        until_ns: shared(lanes.until_ns),
        h2d: lane(&lanes.h2d),
        d2h: lane(&lanes.d2h),
        collectives: lane(&lanes.collectives),
        collectives_on_host: lanes.collectives_on_host,
        compute: lane(&lanes.compute),
    }
}

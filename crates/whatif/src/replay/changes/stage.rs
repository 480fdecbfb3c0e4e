//! `stage`: copies of pageable memory go through pinned memory that several threads fill, as with `busbound run`.

use std::fmt;

use busbound_cause::thresholds::EVENT_PASSES;
use busbound_cause::{Model, Time, WorkId, WorkKind};
use busbound_machine::LinkFacts;
use busbound_trace::Direction;

use super::super::assumed::Assumed;
use super::edit::copy_ns;
use super::{About, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage;

/// Smaller copies are left to the driver, as by `busbound run`.
const SMALLEST: u64 = 2 << 20;
/// What it takes to begin and end a staged copy, in nanoseconds: docs/results/try.md, small copies.
const BEGIN_AND_END: f64 = 60_000.0;
/// The share of the driver's time that staging has to stay below to be worth waking threads. On an H200's host, staged copies gain from 2 MiB on
/// (docs/results/try.md), where this time is 0.42 (H2D) and 0.59 (D2H) of the driver's, and not at 1 MiB, where it is 0.64 and 0.79.
const WORTH_IT: f64 = 0.6;
/// The driver reads and writes memory that exists at several GB/s. Below this, in bytes per nanosecond, the pages were new, and bringing
/// them in is what takes the time.
const NEW_PAGES: f64 = 3.0;

impl Declared for Stage {
    const ABOUT: About = About {
        name: "stage",
        spelling: "stage",
        help: "stage pageable copies with several threads: busbound run",
        doing: "staging pageable copies with several threads",
        effort: "`busbound try -- python train.py` copies pageable data through pinned buffers, without code changes",
        precondition: "the host has enough spare CPU cores to fill the link",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let mut made = Made::default();
        for id in 0..graph.work.len() {
            made.changed += usize::from(stage(graph, id, terms));
        }
        made
    }
}

/// The time of a staged copy, in nanoseconds, with the share of the pinned rate that it reaches.
fn through_ring(bytes: u64, direction: Direction, link: &LinkFacts, share: f64) -> f64 {
    copy_ns(bytes, direction, false, link) / share + BEGIN_AND_END
}

/// From which size on staging gains on a machine, both ways: a power of two from 64 KiB to 1 GiB. `None` if the machine was not measured.
pub fn staged_from(link: &LinkFacts) -> Option<u64> {
    const SIZES: std::ops::RangeInclusive<u32> = 16..=30;
    link.measured()?;
    let gains = |bytes: u64| {
        [Direction::HostToDevice, Direction::DeviceToHost].into_iter().all(|direction| {
            let staged = through_ring(bytes, direction, link, Assumed::EXPECTED.staged_share);
            staged < WORTH_IT * copy_ns(bytes, direction, true, link)
        })
    };
    let largest_without = SIZES.rev().find(|power| !gains(1 << power));
    Some(largest_without.map_or(1 << SIZES.start(), |power| 1 << (power + 1).min(*SIZES.end())))
}

/// The call still waits for the copy, which is faster.
fn stage(graph: &mut Model, id: WorkId, terms: &Terms<'_>) -> bool {
    let work = &mut graph.work[id];
    let WorkKind::Copy { direction, pageable: true, bytes } = work.kind else { return false };
    if work.kind.bus().is_none() || work.dropped || bytes < SMALLEST {
        return false;
    }
    let through_ring = through_ring(bytes, direction, terms.link, terms.assumed.staged_share);
    let is_new = direction == Direction::DeviceToHost && (bytes as f64) < NEW_PAGES * work.alone;
    let pages = if is_new { work.alone / terms.assumed.new_pages_gain } else { 0.0 };
    // Never slower: a program that gains nothing is not run this way.
    let staged = through_ring.max(pages).min(work.alone);
    let saved = (work.alone - staged).max(0.0);
    work.alone = staged;
    work.after_call = work.after_call.min(2 * EVENT_PASSES);
    if let Some(call) = work.call {
        // The time of the call beyond the copy is staging too.
        let cost = graph.calls[call].cost;
        graph.calls[call].cost = cost - cost.min(saved as Time);
    }
    true
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}

#[cfg(test)]
mod tests {
    use busbound_machine::bench::Memory;
    use busbound_machine::{Machine, MachineProfile};

    use super::*;

    /// The threshold of the library was measured on the same machine, by staging (docs/results/try.md).
    #[test]
    fn a_measured_machine_says_from_which_size_on_staging_gains() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/machines/h200.json");
        let profile: MachineProfile = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let link = Machine::measured(profile.clone()).link_of(None);
        assert_eq!(staged_from(&link), Some(SMALLEST));
        // A host whose driver stages as fast as the link leaves nothing to gain.
        let mut fast = profile;
        for curve in fast.curves.iter_mut().filter(|curve| curve.memory == Memory::Pageable) {
            curve.points.iter_mut().for_each(|point| point.gbps *= 8.0);
        }
        assert_eq!(staged_from(&Machine::measured(fast).link_of(None)), Some(1 << 30));
        assert_eq!(staged_from(&Machine::named("h200").unwrap().link_of(None)), None);
    }
}

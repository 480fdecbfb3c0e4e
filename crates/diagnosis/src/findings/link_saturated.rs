//! Is the link busy all the time, at its full rate, while kernels run?

use busbound_cause::Resource;
use busbound_machine::{LinkSource, bench};
use busbound_trace::{Direction, Nanos};
use serde_json::json;

use super::common::copies::{bytes_moved, times_of};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::activity::route::CopyRoute;
use crate::analysis::bounds::Asked;
use crate::analysis::facts::Facts;
use crate::findings::FindingId;
use crate::quantity::milliseconds;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "The link is saturated",
    doing: "sending fewer bytes",
    precondition: "Part of the data can stay on the GPU, or be sent in a smaller dtype, or serve a larger batch.",
    basis: "the dependency graph with copies that take 90% and 50% of their time",
    candidate: Candidate::None(
        "`resident=N%` takes a given share. Which share can stay on the GPU depends on its free memory, which the trace does \
         not show.",
    ),
    effort: Effort::Restructuring,
    unless: &[FindingId::BandwidthDeficit],
    relieves: &[Resource::H2d, Resource::D2h],
    check,
    document: Document {
        meaning: "Copies in one direction keep the link busy almost all the time, at about the rate that it can reach, and kernels \
                  run at the same time. Overlap is already good: only fewer bytes make the step shorter.",
        computed: "Evidence: copies in one direction run for at least 80% of the time, at 80% or more of the rate that the \
                   stated link reaches; at least half of the kernel time overlaps with them; and the step gains at least 5% \
                   if they take half of their time. Not reported if the link is only assumed, or if `bandwidth_deficit` is \
                   reported. Saving: what the step gains with 10% to 50% fewer bytes, by the dependency graph.",
        fix: "Send fewer bytes: keep part of the data on the GPU, use a smaller dtype (quantize), or process more per copy (a \
              larger batch for the same weights).",
        code: &[],
        assumes: "Part of the data can stay on the GPU, or be sent in a smaller dtype, or serve a larger batch.",
    },
};

/// Shares of the time, of the link's rate, of the kernels' time, and of the step.
const BUSY: f64 = 0.8;
const FAST: f64 = 0.8;
const OVERLAPPED: f64 = 0.5;
const WORTH_IT: f64 = 0.05;

/// Copies in one direction that saturate the link.
struct Saturated<'f, 'a> {
    copies: Vec<&'f Copy<'a>>,
    direction: Direction,
    busy_share: f64,
    gbps: f64,
}

impl<'f, 'a> Saturated<'f, 'a> {
    fn of(facts: &'f Facts<'a>, direction: Direction) -> Option<Self> {
        let route = CopyRoute::of(direction);
        let busy: Nanos = facts.timelines.iter().map(|line| line.copies_on(route).length()).sum();
        let shared = facts.timelines.iter().map(|line| line.copies_on(route).intersection(&line.compute));
        let overlapped = shared.map(|both| both.length()).sum::<Nanos>().as_millis();
        let copies: Vec<&Copy<'a>> =
            facts.issued_copies().filter(|copy| copy.transfer.direction == direction).collect();
        let gbps = bytes_moved(&copies, direction) as f64 / busy.get().max(1) as f64;
        let busy_share = busy.as_millis() / facts.time.analyzed_ms;
        let is_saturated = busy_share >= BUSY
            && gbps >= FAST * reachable(facts, direction)
            && facts.time.compute_ms > 0.0
            && overlapped >= OVERLAPPED * facts.time.compute_ms;
        is_saturated.then_some(Self { copies, direction, busy_share, gbps })
    }

    fn word(&self) -> &'static str {
        if self.direction == Direction::HostToDevice { "H2D" } else { "D2H" }
    }
}

/// What copies in this direction reach.
fn reachable(facts: &Facts<'_>, direction: Direction) -> f64 {
    let direction = match direction {
        Direction::DeviceToHost => bench::Direction::D2h,
        _ => bench::Direction::H2d,
    };
    facts.link.reachable_of(direction)
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    if facts.link.source == LinkSource::Assumed || facts.is_faster_than_link() {
        return None;
    }
    let of = |direction| Saturated::of(facts, direction);
    let found = of(Direction::HostToDevice).or_else(|| of(Direction::DeviceToHost))?;
    let asked = Asked::of(facts)?;
    let with = |share| asked.step_if(&[Resource::H2d, Resource::D2h], share);
    let (free, half, less) = (with(0.0), with(0.5), with(0.9));
    if asked.step_ms - half < WORTH_IT * asked.step_ms {
        return None;
    }
    let (unit, reachable) = (facts.unit(), reachable(facts, found.direction));
    let moved = bytes_moved(&found.copies, found.direction) as f64 / facts.steps();
    Some(Draft {
        title: None,
        seen: format!(
            "{} copies keep the link busy for {:.0}% of the time at {:.1} GB/s; {} reaches {reachable:.1} GB/s. With half of the bytes the {unit} would take {} instead of {}, without copies {}.",
            found.word(),
            100.0 * found.busy_share,
            found.gbps,
            facts.link.name,
            milliseconds(half),
            milliseconds(asked.step_ms),
            milliseconds(free),
        ),
        evidence: json!({
            "direction": found.word(),
            "bytes_per_step": moved,
            "busy_share": found.busy_share,
            "gbps": found.gbps,
            "reachable_gbps": reachable,
            "step_ms": asked.step_ms,
            "step_with_half_the_bytes_ms": half,
            "step_if_free_ms": free,
        }),
        saves: Saving { low: asked.step_ms - less, high: asked.step_ms - half },
        fix: Fix::new(
            "Send fewer bytes: keep part of the data on the GPU, quantize it, or process more per copy (a larger batch for the same weights). More overlap does not help.",
        ),
        at: times_of(&found.copies),
    })
}

//! What bounds the run? The resource whose removal shortens the step most.

use busbound_cause::Resource;
use busbound_cause::idle::GapCause;

use super::clauses::{clause, gained, has_device_copies, lost_to, percent};
use super::in_kernels::InKernels;
use super::{Bound, Headroom, OVERLAPPED, Verdict};
use crate::activity::route::CopyRoute;
use crate::analysis::bounds::Asked;
use crate::analysis::breakdown::Part;
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;

/// Everything that can bound a run, and its resources.
const CANDIDATES: [(Bound, &[Resource]); 7] = [
    (Bound::Compute, &[Resource::Compute]),
    (Bound::Transfer, &[Resource::H2d, Resource::D2h, Resource::Peer]),
    (Bound::Communication, &[Resource::Collectives]),
    (Bound::Launch, &[Resource::Launch]),
    (Bound::Host, &[Resource::Host]),
    (Bound::Sync, &[Resource::Sync]),
    (Bound::Input, &[Resource::Input]),
];

/// The host bounds a step that gains at least this share without its work.
const BALANCED: f64 = 0.12;
/// Two gains within this factor make a run mixed.
const ALIKE: f64 = 0.5;
/// The same, where the smaller gain is that of compute.
const ALIKE_COMPUTE: f64 = 0.6;
/// A smaller gain, as a share of the step, bounds nothing.
const NOTHING: f64 = 0.02;

/// Two gains on the host of which the smaller one has this share of the larger are the same.
const TIE: f64 = 0.95;
/// From this share of the step on, a gain other than compute's is named alone.
const NAMED: f64 = 0.45;
/// A gain that is larger than its part of the step by this share of the step is named as a gain.
const UNEXPLAINED: f64 = 0.1;
/// From this share on, time whose cause is not visible is mentioned.
const MUCH_UNKNOWN: f64 = 0.2;

impl Bound {
    /// What the step would have to do without; none for mixed and unknown bounds.
    pub(crate) fn resources(self) -> &'static [Resource] {
        let of = CANDIDATES.iter().find(|(bound, _)| *bound == self);
        of.map_or(&[], |(_, resources)| *resources)
    }
}

/// What a step gains if each candidate is free, in milliseconds.
#[derive(Debug, Clone)]
struct Gains {
    /// Largest first.
    each: Vec<(Bound, f64)>,
    /// Time whose cause is not visible.
    unknown: f64,
    step_ms: f64,
    /// Whether syncs are part of copies that block, and not calls of their own.
    syncs_end_uploads: bool,
    /// What the device waits for longer: launches or other work of the host.
    waits_for: Bound,
}

impl Gains {
    fn of(facts: &Facts<'_>, asked: Option<&Asked<'_>>) -> Self {
        let waits = InKernels::of(facts);
        // The graph knows which kernels wait for the link.
        let hidden = if asked.is_some() { waits.pages_ms } else { waits.total_ms() };
        let hidden = facts.breakdown.averaged(hidden).unwrap_or(0.0);
        let step_ms = asked.map_or_else(|| facts.step_ms(), |asked| asked.step_ms);
        let unknown = facts.breakdown.per_step_ms(|part| bound_of(part) == Some(Bound::Unknown));
        let unknown = unknown.unwrap_or(0.0);
        // A replay may shorten time that nobody can explain; that is no gain.
        let visible = (step_ms - unknown).max(0.0);
        let gain = |(bound, resources): (Bound, &[Resource])| {
            let gain = match asked {
                Some(asked) => asked.gain(resources),
                // The graph does not reproduce the run: exposed time is the best guess.
                None => facts.breakdown.per_step_ms(|part| bound_of(part) == Some(bound)).unwrap_or(0.0),
            };
            (bound, (gain + moved(bound, hidden)).min(visible))
        };
        let mut each: Vec<(Bound, f64)> = CANDIDATES.into_iter().map(gain).collect();
        if asked.is_none() {
            merge_host(&mut each);
        }
        each.sort_by(|a, b| b.1.total_cmp(&a.1));
        let syncs_end_uploads = asked.is_some_and(Asked::syncs_end_uploads);
        let is_host = facts.idle_ms(GapCause::Host) > facts.idle_ms(GapCause::Launch);
        let waits_for = if is_host { Bound::Host } else { Bound::Launch };
        Self { each, unknown, step_ms, syncs_end_uploads, waits_for }
    }

    fn of_bound(&self, bound: Bound) -> f64 {
        self.each.iter().find(|(known, _)| *known == bound).map_or(0.0, |(_, gain)| *gain)
    }

    /// What bounds the step, and what comes next.
    fn leaders(&self) -> ((Bound, f64), (Bound, f64)) {
        let (mut first, mut second) = (self.each[0], self.each[1]);
        let by_host = |bound: Bound| matches!(bound, Bound::Launch | Bound::Host);
        // Launches and the work between them are one chain on the host: if both gain the same, idle time says which it is.
        let is_tie = by_host(first.0) && by_host(second.0) && second.1 >= TIE * first.1;
        if is_tie && first.0 != self.waits_for {
            (first, second) = (second, first);
        }
        // Host time costs a step only because a sync keeps the host from running ahead.
        let sync = self.of_bound(Bound::Sync);
        if by_host(first.0) && sync >= ALIKE * first.1 && !self.syncs_end_uploads {
            return ((Bound::Sync, sync), first);
        }
        (first, second)
    }
}

/// Launches and the work between them are one chain on the host: without a graph, their parts of the idle time are one gain, that of the
/// larger one. Apart, each could be less than compute while the device is idle for more than half of the time.
fn merge_host(each: &mut [(Bound, f64)]) {
    let place = |bound: Bound| each.iter().position(|(other, _)| *other == bound);
    let (Some(launch), Some(host)) = (place(Bound::Launch), place(Bound::Host)) else { return };
    let both = each[launch].1 + each[host].1;
    let (to, from) = if each[launch].1 >= each[host].1 { (launch, host) } else { (host, launch) };
    each[to].1 = both;
    each[from].1 = 0.0;
}

/// What bounds the run if this part takes most of its time; `None` for parts that nobody can change.
fn bound_of(part: Part) -> Option<Bound> {
    Some(match part {
        Part::Compute | Part::Copy(CopyRoute::WithinDevice) => Bound::Compute,
        Part::Copy(CopyRoute::HostToDevice | CopyRoute::DeviceToHost | CopyRoute::Peer) => Bound::Transfer,
        Part::Idle(GapCause::Copy) => Bound::Transfer,
        Part::Communication => Bound::Communication,
        Part::Idle(GapCause::Launch) => Bound::Launch,
        Part::Idle(GapCause::Host) => Bound::Host,
        Part::Idle(GapCause::Synchronization) => Bound::Sync,
        Part::Idle(GapCause::Input) => Bound::Input,
        Part::Idle(GapCause::Queued | GapCause::Unexplained) | Part::Copy(CopyRoute::Unplaced) => {
            Bound::Unknown
        }
        Part::Memset | Part::Idle(GapCause::KernelGap) => return None,
    })
}

/// Share of the time whose cause is not visible: idle time, and copies that may or may not have crossed the bus.
pub(crate) fn unknown_share(facts: &Facts<'_>) -> f64 {
    facts.breakdown.share_of(|part| bound_of(part) == Some(Bound::Unknown)).unwrap_or(0.0)
}

/// What a bound gets if kernels waited for transfers this long: the wait does not belong to compute.
fn moved(bound: Bound, waited: f64) -> f64 {
    match bound {
        Bound::Compute => -waited,
        Bound::Transfer => waited,
        _ => 0.0,
    }
}

pub(crate) fn verdict(facts: &Facts<'_>, asked: Option<&Asked<'_>>) -> Verdict {
    if facts.time.analyzed_ms <= 0.0 {
        return Verdict::of(Bound::Unknown, 0.0, "all GPU events in this trace have zero duration");
    }
    let gains = Gains::of(facts, asked);
    let (first, second) = gains.leaders();
    let bound = decide(&gains, first, second);
    let headroom = asked.filter(|_| bound != Bound::Unknown).map(|asked| headroom(asked, first.0));
    let because = because(facts, &gains, bound, (first, second));
    let mut verdict = match bound {
        Bound::Mixed => (asked.and_then(|asked| together(facts, asked, first)))
            .unwrap_or_else(|| mixed(facts, &gains, first, second, headroom.as_ref())),
        Bound::Unknown => Verdict::of(bound, gains.unknown / gains.step_ms, &because),
        _ => Verdict::of(bound, first.1 / gains.step_ms, &because),
    };
    verdict.headroom = headroom;
    verdict
}

/// Why this bounds the step, as a sentence without its capital letter and its period.
fn because(
    facts: &Facts<'_>,
    gains: &Gains,
    bound: Bound,
    (first, second): ((Bound, f64), (Bound, f64)),
) -> String {
    let share = |gain: f64| gain / gains.step_ms;
    let clause = |bound| clause(facts, bound);
    let unknown = unknown_share(facts);
    match bound {
        Bound::Unknown => {
            let (next, share) = largest_part(facts);
            format!(
                "{} {} {}; the next largest part, {}, {}",
                percent(unknown),
                facts.of_each_recorded(),
                clause(Bound::Unknown),
                percent(share),
                clause(next)
            )
        }
        Bound::Transfer if share(first.1) < OVERLAPPED && gains.unknown <= NOTHING * gains.step_ms => {
            let device = |ms: f64| milliseconds(facts.breakdown.averaged(ms).unwrap_or(0.0));
            format!(
                "copies over the bus ({}) and kernels ({}) run side by side; faster copies alone gain at most {} {}",
                device(facts.bus_busy_ms()),
                device(facts.time.compute_ms),
                percent(share(first.1)),
                facts.of_each_own(),
            )
        }
        _ => {
            let of = claim(facts, gains, first).sentence() + &beside(facts, gains, first, second);
            match unknown >= MUCH_UNKNOWN {
                true => format!("{of}; {} {}", percent(unknown), clause(Bound::Unknown)),
                false => of,
            }
        }
    }
}

/// Launches beside other work of the host: both are the host, and each has fixes of its own.
fn beside(facts: &Facts<'_>, gains: &Gains, first: (Bound, f64), second: (Bound, f64)) -> String {
    let is_alike = second.1 >= ALIKE * first.1;
    match (first.0, second.0) {
        (Bound::Host, Bound::Launch) if is_alike => {
            format!("; launches are another {}", claim(facts, gains, second).percent)
        }
        (Bound::Launch, Bound::Host) if is_alike => {
            format!("; other work on the host is another {}", claim(facts, gains, second).percent)
        }
        _ => String::new(),
    }
}

/// The part of the step that is largest, other than what is not visible, and its share.
fn largest_part(facts: &Facts<'_>) -> (Bound, f64) {
    let share = |bound: Bound| facts.breakdown.share_of(|part| bound_of(part) == Some(bound)).unwrap_or(0.0);
    let parts = CANDIDATES.iter().map(|(bound, _)| (*bound, share(*bound)));
    parts.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((Bound::Compute, 0.0))
}

/// What a share of each step is: `54%`, `of each 275 ms step`, `waits for H2D copies from pageable memory`.
struct Claim {
    percent: String,
    of: String,
    what: String,
}

impl Claim {
    /// A part of the recorded step.
    fn part(facts: &Facts<'_>, bound: Bound, share: f64) -> Self {
        let what = clause(facts, bound);
        Self { percent: percent(share), of: facts.of_each_recorded(), what }
    }

    /// What a step gains.
    fn gain(facts: &Facts<'_>, bound: Bound, share: f64) -> Self {
        let what = lost_to(gained(facts, bound).as_deref());
        Self { percent: percent(share), of: facts.of_each_own(), what }
    }

    /// `54% of each 275 ms step waits for H2D copies`. No part of the step is as long as what it gains: `40% of each 12.0 ms step
    /// is lost to host syncs`.
    fn sentence(&self) -> String {
        let Self { percent, of, what } = self;
        format!("{percent} {of} {what}")
    }
}

/// The part of the step that the reader sees in the bar, not the gain: kernels that run for 95% of a step are 95% of it,
/// also if copies would take half of it without them. Only a gain that no part explains is named as a gain.
fn claim(facts: &Facts<'_>, gains: &Gains, (bound, gain): (Bound, f64)) -> Claim {
    // D2D copies that are too short to be mentioned are not compute kernels either.
    let is_named = |part: Part| part != Part::Copy(CopyRoute::WithinDevice) || has_device_copies(facts);
    let part =
        facts.breakdown.share_of(|part| bound_of(part) == Some(bound) && is_named(part)).unwrap_or(0.0)
            + moved(bound, InKernels::of(facts).total_ms() / facts.time.analyzed_ms);
    let gain = gain / gains.step_ms;
    match part + UNEXPLAINED < gain || bound == Bound::Sync {
        true => Claim::gain(facts, bound, gain),
        false => Claim::part(facts, bound, part),
    }
}

/// What can bound a run, and its resources.
type Chain = (Bound, &'static [Resource]);

/// Chains of work that run side by side.
const CHAINS: [Chain; 4] = [
    (Bound::Compute, &[Resource::Compute]),
    (Bound::Transfer, &[Resource::H2d, Resource::D2h, Resource::Peer]),
    (Bound::Communication, &[Resource::Collectives]),
    (Bound::Host, &[Resource::Launch, Resource::Host, Resource::Sync, Resource::Input]),
];
/// Two chains hide each other if a step gains this many times as much without both as without one.
const HIDDEN: f64 = 2.0;

/// Two chains that take nearly the whole step each: without one of them, the other is left.
fn together(facts: &Facts<'_>, asked: &Asked<'_>, first: (Bound, f64)) -> Option<Verdict> {
    if first.1 >= BALANCED * asked.step_ms {
        return None;
    }
    let pairs = CHAINS.iter().enumerate().flat_map(|(i, a)| CHAINS[i + 1..].iter().map(move |b| (a, b)));
    let gain = |(a, b): (&Chain, &Chain)| {
        let both: Vec<Resource> = a.1.iter().chain(b.1).copied().collect();
        ([a.0, b.0], [asked.gain(a.1), asked.gain(b.1)], asked.gain(&both))
    };
    let (between, alone, gain) = pairs.map(gain).max_by(|a, b| a.2.total_cmp(&b.2))?;
    let share = |gain: f64| percent(gain / asked.step_ms);
    let named = |bound: Bound| match bound {
        Bound::Host => "launches, syncs and other host work".to_owned(),
        other => gained(facts, other).unwrap_or_else(|| "compute".to_owned()),
    };
    let hides = gain >= HIDDEN * alone[0].max(alone[1]) && gain >= BALANCED * asked.step_ms;
    hides.then(|| {
        let because = format!(
            "{} and {} take about as long and run side by side: without the first alone, {} {} would be saved, without \
             the second alone {}, without both {}",
            named(between[0]),
            named(between[1]),
            share(alone[0]),
            facts.of_each_own(),
            share(alone[1]),
            share(gain)
        );
        Verdict::mixed(between, first.1 / asked.step_ms, &because)
    })
}

/// Why no single thing bounds the step: two gain about the same, or one gains little because another takes nearly as long.
fn mixed(
    facts: &Facts<'_>,
    gains: &Gains,
    first: (Bound, f64),
    second: (Bound, f64),
    headroom: Option<&Headroom>,
) -> Verdict {
    let next = headroom.and_then(|headroom| headroom.next_bound);
    let is_one = second.1 < ALIKE * first.1 || on_host(first.0) && on_host(second.0);
    let share = first.1 / gains.step_ms;
    match (next, gained(facts, first.0)) {
        (Some(next), Some(without)) if is_one => {
            let because = format!(
                "without {without}, only {} {} would be saved: then it is {}",
                percent(share),
                facts.of_each_own(),
                next.title().to_lowercase()
            );
            Verdict::mixed([first.0, next], share, &because)
        }
        _ => Verdict::mixed([first.0, second.0], share, &both(facts, gains, first, second)),
    }
}

/// Two claims about the same step.
fn both(facts: &Facts<'_>, gains: &Gains, first: (Bound, f64), second: (Bound, f64)) -> String {
    let of = |leader| claim(facts, gains, leader);
    let gain = |(bound, gain): (Bound, f64)| Claim::gain(facts, bound, gain / gains.step_ms);
    let (mut a, mut b) = (of(first), of(second));
    if a.of != b.of {
        (a, b) = (gain(first), gain(second));
    }
    format!("{}, {} {}, and {} {}", a.of, a.percent, a.what, b.percent, b.what)
}

/// Launching and other host work are both the host; a sync exposes them.
fn on_host(bound: Bound) -> bool {
    matches!(bound, Bound::Launch | Bound::Host | Bound::Sync | Bound::Input)
}

fn decide(gains: &Gains, first: (Bound, f64), second: (Bound, f64)) -> Bound {
    // Without any gain, time that nobody can explain is the largest, but it must be enough to bound something itself.
    if gains.unknown > first.1 && gains.unknown > NOTHING * gains.step_ms {
        return Bound::Unknown;
    }
    // Kernels are what the run is for: beside a part that gains enough alone, they must gain more to share the name.
    let is_beside_kernels = second.0 == Bound::Compute && first.1 >= BALANCED * gains.step_ms;
    let alike = if is_beside_kernels { ALIKE_COMPUTE } else { ALIKE };
    let alike = second.1 >= alike * first.1 && second.1 > NOTHING * gains.step_ms;
    // Nearly half of the step is enough to be named, unless it is compute: then the rest is what can be changed.
    let alike = alike && (first.1 < NAMED * gains.step_ms || first.0 == Bound::Compute);
    // A step that is hardly shorter without the host's work is as long for another reason too.
    let is_balanced = on_host(first.0) && first.1 < BALANCED * gains.step_ms && second.1 > 0.0;
    match is_balanced || alike && !(on_host(first.0) && on_host(second.0)) {
        true => Bound::Mixed,
        false => first.0,
    }
}

/// What the step takes without what bounds it, and what bounds it then.
fn headroom(asked: &Asked<'_>, bound: Bound) -> Headroom {
    let free = bound.resources();
    let step_if_free_ms = asked.step_if_free(free);
    let rest = CANDIDATES.iter().filter(|(other, _)| *other != bound);
    let gain = |(other, more): &(Bound, &[Resource])| {
        let both: Vec<Resource> = free.iter().chain(*more).copied().collect();
        (*other, step_if_free_ms - asked.step_if(&both, 0.0))
    };
    let next = rest.map(gain).max_by(|a, b| a.1.total_cmp(&b.1));
    let next_bound = next.filter(|(_, gain)| *gain > NOTHING * step_if_free_ms).map(|(bound, _)| bound);
    Headroom { resource: bound, step_if_free_ms, next_bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A forward pass without operators was idle for 45% of the time, waiting for launches and for host work between them in equal parts,
    /// and "compute-bound ... 1.7 to 2.0x by using CUDA graphs".
    #[test]
    fn launches_and_the_work_between_them_are_one_gain_without_a_graph() {
        let mut each =
            vec![(Bound::Compute, 12.4), (Bound::Launch, 4.8), (Bound::Host, 5.5), (Bound::Input, 0.1)];
        merge_host(&mut each);
        assert_eq!(
            each,
            [(Bound::Compute, 12.4), (Bound::Launch, 0.0), (Bound::Host, 10.3), (Bound::Input, 0.1)]
        );
        let gains =
            Gains { each, unknown: 0.0, step_ms: 23.0, syncs_end_uploads: false, waits_for: Bound::Host };
        let (first, second) = ((Bound::Compute, 12.4), (Bound::Host, 10.3));
        assert_eq!(decide(&gains, first, second), Bound::Mixed);
    }

    /// The host launched everything ahead and was then busy to the end, so that nothing gained alone: "Inconclusive: 2% … is idle time whose cause
    /// is not visible; the next largest part, 96%, is spent in compute kernels".
    #[test]
    fn little_time_without_a_cause_does_not_hide_what_fills_the_rest() {
        let decided = |unknown: f64| {
            let each = vec![(Bound::Compute, 0.0), (Bound::Launch, 0.0)];
            let gains =
                Gains { each, unknown, step_ms: 4.06, syncs_end_uploads: false, waits_for: Bound::Host };
            decide(&gains, (Bound::Compute, 0.0), (Bound::Launch, 0.0))
        };
        assert_eq!(decided(0.064), Bound::Compute);
        assert_eq!(decided(0.4), Bound::Unknown);
    }
}

//! What bounds the run? One word, its share, one sentence.

use serde::{Deserialize, Serialize};

use crate::activity::copies::CopyGroup;
use crate::activity::route::CopyRoute;
use crate::analysis::breakdown::Part;
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use busbound_cause::idle::GapCause;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Bound {
    Transfer,
    Communication,
    Compute,
    Launch,
    Sync,
    Input,
    Mixed,
    Unknown,
}

impl Bound {
    /// Every verdict.
    pub const ALL: &'static [Self] = &[
        Self::Transfer,
        Self::Communication,
        Self::Compute,
        Self::Launch,
        Self::Sync,
        Self::Input,
        Self::Mixed,
        Self::Unknown,
    ];

    /// The name in JSON, and what `busbound explain` calls it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Transfer => "transfer",
            Self::Communication => "communication",
            Self::Compute => "compute",
            Self::Launch => "launch",
            Self::Sync => "sync",
            Self::Input => "input",
            Self::Mixed => "mixed",
            Self::Unknown => "unknown",
        }
    }

    /// As the answer begins: `Transfer-bound`.
    pub fn title(self) -> String {
        match self {
            Self::Mixed => "Mixed".to_owned(),
            Self::Unknown => "Inconclusive".to_owned(),
            bound => format!("{}-bound", word(bound)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    pub bound: Bound,
    /// Share of the device's time that goes to it, 0 to 1.
    pub share: f64,
    pub statement: String,
    /// The statement without the name of the verdict, as a sentence of its own.
    #[serde(skip)]
    pub because: String,
}

impl Verdict {
    /// `because` is a sentence without its capital letter and its period.
    pub(crate) fn of(bound: Bound, share: f64, because: &str) -> Self {
        let statement = format!("{}: {because}.", bound.title());
        let mut letters = because.chars();
        let capital: String = letters.next().iter().flat_map(|first| first.to_uppercase()).collect();
        Self { bound, share, statement, because: format!("{capital}{}.", letters.as_str()) }
    }

    /// Where work of the devices is lost.
    pub(crate) fn not_told(why: &str, has_gpu: bool) -> Self {
        let because = match has_gpu {
            true => format!("{why}; figures are for the rest alone"),
            false => format!("the GPU's events could not be read: {why}"),
        };
        Self::of(Bound::Unknown, 0.0, &because)
    }
}

/// What bounds the run where this part is most of its time; `None` for what nobody can change.
fn bound_of(part: Part) -> Option<Bound> {
    Some(match part {
        Part::Compute | Part::Copy(CopyRoute::WithinDevice) => Bound::Compute,
        Part::Copy(CopyRoute::HostToDevice | CopyRoute::DeviceToHost | CopyRoute::Peer) => Bound::Transfer,
        Part::Idle(GapCause::Copy) => Bound::Transfer,
        Part::Communication => Bound::Communication,
        Part::Idle(GapCause::Launch) => Bound::Launch,
        Part::Idle(GapCause::Synchronization) => Bound::Sync,
        Part::Idle(GapCause::Input) => Bound::Input,
        Part::Idle(GapCause::Unexplained) | Part::Copy(CopyRoute::Unplaced) => Bound::Unknown,
        Part::Memset | Part::Idle(GapCause::Turnaround) => return None,
    })
}

/// Shares of the device's time by what bounds it, the largest first. Time in which kernels wait for pages of managed
/// memory is transfer and not compute.
fn shares(facts: &Facts<'_>, for_pages: f64) -> Vec<(Bound, f64)> {
    const CANDIDATES: [Bound; 7] = [
        Bound::Compute,
        Bound::Transfer,
        Bound::Communication,
        Bound::Launch,
        Bound::Sync,
        Bound::Input,
        Bound::Unknown,
    ];
    let span = facts.time.span_ms;
    if span <= 0.0 {
        return Vec::new();
    }
    let share = |bound: Bound| {
        let moved = match bound {
            Bound::Compute => -for_pages,
            Bound::Transfer => for_pages,
            _ => 0.0,
        };
        (bound, (facts.part_ms(|part| bound_of(part) == Some(bound)) + moved) / span)
    };
    let mut shares: Vec<(Bound, f64)> = CANDIDATES.into_iter().map(share).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

/// A kernel that waits for pages of managed memory does not compute. How long it does is known where the same kernels ran without
/// faults too.
fn waits_for_pages_ms(facts: &Facts<'_>) -> f64 {
    facts.managed.excess_ms().unwrap_or(0.0).min(facts.time.compute_ms)
}

/// Share of the device's time that copies within the device take alone.
fn device_copy_share(facts: &Facts<'_>) -> f64 {
    let share = facts.breakdown.share_of(|part| part == Part::Copy(CopyRoute::WithinDevice));
    share.unwrap_or(0.0)
}

/// A part other than compute bounds the run from this share on; below it compute does, or nothing alone.
const BOUNDS: f64 = 0.40;
/// Beside compute, a part of this share makes the run mixed.
const MATTERS: f64 = 0.25;
/// A share that rounds to nothing is not worth words.
const NOTHING: f64 = 0.005;

pub(crate) fn verdict(facts: &Facts<'_>) -> Verdict {
    let for_pages = waits_for_pages_ms(facts);
    let shares = shares(facts, for_pages);
    let clause = |bound| clause(facts, bound, for_pages);
    let Some(&(first, share)) = shares.first() else {
        return Verdict::of(Bound::Unknown, 0.0, "the GPU events of this trace take no time at all");
    };
    if let Some(turns) = streams_take_turns(facts) {
        return Verdict::of(Bound::Sync, turns.share, &turns.because);
    }
    let second = shares[1];
    let bound = match first {
        Bound::Compute if second.1 >= MATTERS => Bound::Mixed,
        Bound::Compute if share >= BOUNDS => Bound::Compute,
        other if share >= BOUNDS => other,
        Bound::Unknown => Bound::Unknown,
        _ => Bound::Mixed,
    };
    let because = match bound {
        Bound::Mixed => format!(
            "{} {} {} and {} {}",
            facts.of_each(),
            percent(share),
            clause(first),
            percent(second.1),
            clause(second.0)
        ),
        Bound::Unknown => {
            let rest = shares.iter().find(|(bound, _)| *bound != Bound::Unknown).copied().unwrap_or(second);
            format!(
                "{} {} {}; next, {} {}",
                percent(share),
                facts.of_each(),
                clause(Bound::Unknown),
                percent(rest.1),
                clause(rest.0)
            )
        }
        bound => {
            format!("{} {} {}", percent(share), facts.of_each(), clause(bound))
        }
    };
    Verdict::of(bound, share, &because)
}

fn word(bound: Bound) -> &'static str {
    match bound {
        Bound::Transfer => "Transfer",
        Bound::Communication => "Communication",
        Bound::Compute => "Compute",
        Bound::Launch => "Launch",
        Bound::Sync => "Synchronization",
        Bound::Input => "Input",
        Bound::Mixed => "Mixed",
        Bound::Unknown => "Unknown",
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// What happens in that share of the step: `waits for host-to-device copies from pageable memory`.
fn clause(facts: &Facts<'_>, bound: Bound, for_pages: f64) -> String {
    match bound {
        Bound::Transfer => waits_for_copies(facts, for_pages),
        Bound::Communication => "waits for communication between GPUs".to_owned(),
        Bound::Compute if device_copy_share(facts) >= NOTHING => format!(
            "is the GPU's own work ({} in compute kernels, {} in copies within the device)",
            percent(facts.time.compute_ms / facts.time.span_ms),
            percent(device_copy_share(facts))
        ),
        Bound::Compute => "is spent in compute kernels".to_owned(),
        Bound::Launch if facts.launch_waits_are_for_copies() => {
            "the GPU waits for the host to issue small copies, one call after the other".to_owned()
        }
        Bound::Launch if facts.allocating_idle_ms > 0.5 * facts.idle_ms(GapCause::Launch) => {
            "the GPU waits for the host, which is allocating memory".to_owned()
        }
        Bound::Launch => {
            let launches = &facts.launches;
            format!(
                "the GPU waits for the host to launch (median kernel {:.1} µs, {:.1} µs of host time a launch)",
                launches.median_kernel_us, launches.median_call_us
            )
        }
        Bound::Sync => "the GPU stands still because the host had stopped to wait for it".to_owned(),
        Bound::Input => "the GPU waits for the next batch of input".to_owned(),
        Bound::Mixed | Bound::Unknown => not_told(facts),
    }
}

/// Idleness without a cause, and copies that may or may not have crossed the bus; both with their share where both are there.
fn not_told(facts: &Facts<'_>) -> String {
    const IDLE: &str = "the GPU is idle for reasons this trace does not show";
    const COPYING: &str = "the GPU copies, and this trace does not tell whether over the bus";
    let span = facts.time.span_ms;
    let (idle, copying) =
        (facts.idle_ms(GapCause::Unexplained) / span, facts.time.exposed_unplaced_copy_ms / span);
    match (idle >= NOTHING, copying >= NOTHING) {
        (_, false) => IDLE.to_owned(),
        (false, true) => COPYING.to_owned(),
        (true, true) => format!("{IDLE} ({}), or {COPYING} ({})", percent(idle), percent(copying)),
    }
}

/// The share of a step is that of all transfers; which of them is said with their own share, unless they are nearly all.
fn waits_for_copies(facts: &Facts<'_>, for_pages: f64) -> String {
    let copying = facts.part_ms(Part::is_transfer);
    if for_pages > 0.95 * (for_pages + copying) {
        return "kernels wait for pages of managed memory".to_owned();
    }
    if for_pages > copying {
        let share = percent(for_pages / facts.time.span_ms);
        return format!(
            "waits for transfers over the bus, {share} in kernels that need pages of managed memory"
        );
    }
    let between_gpus = facts.part_ms(|part| part == Part::Copy(CopyRoute::Peer)) > 0.0;
    let all = if between_gpus { "copies over the bus and between GPUs" } else { "copies over the bus" };
    let transfers = facts.groups.iter().filter(|group| CopyRoute::of(group.direction).is_transfer());
    let Some(most) = transfers.clone().max_by(|a, b| a.exposed_ms.total_cmp(&b.exposed_ms)) else {
        return format!("waits for {all}");
    };
    if most.exposed_ms >= 0.95 * transfers.map(|group| group.exposed_ms).sum::<f64>() {
        return format!("waits for {}", words(most));
    }
    let share = percent(most.exposed_ms / facts.time.span_ms);
    format!("waits for {all}, {share} for {}", words(most))
}

/// Such copies, in words.
fn words(group: &CopyGroup) -> String {
    use busbound_trace::{Direction, MemoryKind};
    let (way, memory) = match group.direction {
        Direction::HostToDevice => ("host-to-device copies from", group.src),
        Direction::DeviceToHost => ("device-to-host copies to", group.dst),
        _ => return "copies between GPUs".to_owned(),
    };
    let memory = match memory {
        MemoryKind::Device | MemoryKind::Unknown => "host",
        known => known.word(),
    };
    format!("{way} {memory} memory")
}

struct Turns {
    share: f64,
    because: String,
}

/// Two streams or more that never run at once, because the host waits for each piece before it
/// launches the next. The device looks busy; it is the order that costs.
fn streams_take_turns(facts: &Facts<'_>) -> Option<Turns> {
    let parting = facts.streams_that_take_turns()?;
    let waits = facts.syncs.avoidable();
    let share = waits.ms / facts.time.span_ms;
    Some(Turns {
        share,
        because: format!(
            "{} {} the host waits for the GPU in the middle of the {unit} ({:.0} times), so {} \
             streams take turns and never run at once; {} a {unit} of the smaller one could run beside the other",
            percent(share),
            facts.of_each(),
            waits.count as f64 / facts.steps(),
            parting.streams,
            milliseconds(parting.smaller_ms / facts.steps()),
            unit = facts.unit(),
        ),
    })
}

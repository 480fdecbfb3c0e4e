//! What bounds the run? One word, its share and one sentence.

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

    /// The name in JSON and in `busbound explain`.
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

    /// How the answer begins: `Transfer-bound`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Transfer => "Transfer-bound",
            Self::Communication => "Communication-bound",
            Self::Compute => "Compute-bound",
            Self::Launch => "Launch-bound",
            Self::Sync => "Synchronization-bound",
            Self::Input => "Input-bound",
            Self::Mixed => "Mixed",
            Self::Unknown => "Inconclusive",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    pub bound: Bound,
    /// Share of the device's time that the bound takes, 0 to 1.
    pub share: f64,
    pub statement: String,
    /// The statement without the name of the verdict, as a sentence of its own.
    #[serde(default)]
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

    /// The verdict when part of the GPU work could not be read.
    pub(crate) fn inconclusive(why: &str, has_gpu: bool) -> Self {
        let because = match has_gpu {
            true => format!("{why}; figures cover only the rest"),
            false => format!("the GPU events could not be read: {why}"),
        };
        Self::of(Bound::Unknown, 0.0, &because)
    }
}

/// What bounds the run if this part takes most of its time; `None` for parts that nobody can change.
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
        Part::Memset | Part::Idle(GapCause::KernelGap) => return None,
    })
}

/// Shares of the device's time by bound, largest first. Time in which kernels wait for pages of managed memory counts
/// as transfer, not as compute.
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

/// A kernel that waits for pages of managed memory does not compute. The length of the wait is known only if the same
/// kernels also ran without faults.
fn waits_for_pages_ms(facts: &Facts<'_>) -> f64 {
    facts.managed.excess_ms().unwrap_or(0.0).min(facts.time.compute_ms)
}

/// Share of the device's time in D2D copies that nothing overlaps.
fn device_copy_share(facts: &Facts<'_>) -> f64 {
    let share = facts.breakdown.share_of(|part| part == Part::Copy(CopyRoute::WithinDevice));
    share.unwrap_or(0.0)
}

/// From this share on, a part other than compute bounds the run. Below it, compute does, or the run is mixed.
const BOUNDS: f64 = 0.40;
/// If compute is the largest part, a second part of this share makes the run mixed.
const MATTERS: f64 = 0.25;
/// A smaller share rounds to 0% and is not mentioned.
const NOTHING: f64 = 0.005;

pub(crate) fn verdict(facts: &Facts<'_>) -> Verdict {
    let for_pages = waits_for_pages_ms(facts);
    let shares = shares(facts, for_pages);
    let clause = |bound| clause(facts, bound, for_pages);
    let Some(&(first, share)) = shares.first() else {
        return Verdict::of(Bound::Unknown, 0.0, "all GPU events in this trace have zero duration");
    };
    if let Some(serialized) = serialized_streams(facts) {
        return Verdict::of(Bound::Sync, serialized.share, &serialized.because);
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
            "{}, {} {} and {} {}",
            facts.of_each(),
            percent(share),
            clause(first),
            percent(second.1),
            clause(second.0)
        ),
        Bound::Unknown => {
            let rest = shares.iter().find(|(bound, _)| *bound != Bound::Unknown).copied().unwrap_or(second);
            format!(
                "{} {} {}; the next largest part, {}, {}",
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

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

/// What happens in that share of the step: `waits for H2D copies from pageable memory`.
fn clause(facts: &Facts<'_>, bound: Bound, for_pages: f64) -> String {
    match bound {
        Bound::Transfer => waits_for_copies(facts, for_pages),
        Bound::Communication => "waits for communication between GPUs".to_owned(),
        Bound::Compute if device_copy_share(facts) >= NOTHING => format!(
            "is on-device work ({} in compute kernels, {} in D2D copies)",
            percent(facts.time.compute_ms / facts.time.span_ms),
            percent(device_copy_share(facts))
        ),
        Bound::Compute => "is spent in compute kernels".to_owned(),
        Bound::Launch if facts.launch_waits_are_for_copies() => {
            "is idle time waiting for the host to issue small copies, one call at a time".to_owned()
        }
        Bound::Launch if facts.allocating_idle_ms > 0.5 * facts.idle_ms(GapCause::Launch) => {
            "is idle time waiting for the host, mostly while it allocates memory".to_owned()
        }
        Bound::Launch => {
            let launches = &facts.launches;
            format!(
                "is idle time waiting for the host to launch kernels (median kernel {:.1} µs, median launch call {:.1} µs)",
                launches.median_kernel_us, launches.median_call_us
            )
        }
        Bound::Sync => "is idle time after a host sync".to_owned(),
        Bound::Input => "is idle time waiting for the next input batch".to_owned(),
        Bound::Mixed | Bound::Unknown => inconclusive(facts),
    }
}

/// Idle time without a visible cause, and copies that may or may not have crossed the bus. If both occur, each gets its
/// share.
fn inconclusive(facts: &Facts<'_>) -> String {
    const IDLE: &str = "is idle time whose cause is not visible in this trace";
    const COPYING: &str = "is spent in copies that may or may not have crossed the bus";
    let span = facts.time.span_ms;
    let (idle, copying) =
        (facts.idle_ms(GapCause::Unexplained) / span, facts.time.exposed_unplaced_copy_ms / span);
    match (idle >= NOTHING, copying >= NOTHING) {
        (_, false) => IDLE.to_owned(),
        (false, true) => COPYING.to_owned(),
        (true, true) => format!("{IDLE} ({}) or {COPYING} ({})", percent(idle), percent(copying)),
    }
}

/// The share of the step covers all transfers. The largest group is named with its own share, unless it is nearly all
/// of them.
fn waits_for_copies(facts: &Facts<'_>, for_pages: f64) -> String {
    let copying = facts.part_ms(Part::is_transfer);
    if for_pages > 0.95 * (for_pages + copying) {
        return "is spent in kernels that wait for pages of managed memory".to_owned();
    }
    if for_pages > copying {
        let share = percent(for_pages / facts.time.span_ms);
        return format!(
            "waits for transfers over the bus ({share} in kernels that wait for pages of managed memory)"
        );
    }
    let between_gpus = facts.part_ms(|part| part == Part::Copy(CopyRoute::Peer)) > 0.0;
    let all = if between_gpus { "copies over the bus and between GPUs" } else { "copies over the bus" };
    let transfers = facts.groups.iter().filter(|group| CopyRoute::of(group.direction).is_transfer());
    let Some(largest) = transfers.clone().max_by(|a, b| a.exposed_ms.total_cmp(&b.exposed_ms)) else {
        return format!("waits for {all}");
    };
    if largest.exposed_ms >= 0.95 * transfers.map(|group| group.exposed_ms).sum::<f64>() {
        return format!("waits for {}", words(largest));
    }
    let share = percent(largest.exposed_ms / facts.time.span_ms);
    format!("waits for {all} ({share} for {})", words(largest))
}

/// The group in words: `H2D copies from pageable memory`.
fn words(group: &CopyGroup) -> String {
    use busbound_trace::{Direction, MemoryKind};
    let (copies, memory) = match group.direction {
        Direction::HostToDevice => ("H2D copies from", group.src),
        Direction::DeviceToHost => ("D2H copies to", group.dst),
        _ => return "copies between GPUs".to_owned(),
    };
    let memory = match memory {
        MemoryKind::Device | MemoryKind::Unknown => "host",
        known => known.word(),
    };
    format!("{copies} {memory} memory")
}

struct SerializedStreams {
    share: f64,
    because: String,
}

/// Two or more streams that never overlap, because the host waits for the work of one before it launches on the next.
/// The device looks busy, but the serialization costs time.
fn serialized_streams(facts: &Facts<'_>) -> Option<SerializedStreams> {
    let streams = facts.serialized_streams()?;
    let waits = facts.syncs.avoidable();
    let share = waits.ms / facts.time.span_ms;
    Some(SerializedStreams {
        share,
        because: format!(
            "for {} {}, the host waits for the GPU within the {unit} ({:.0} times), so {} streams \
             are serialized and never overlap; {}/{unit} of work outside the busiest stream could overlap with it",
            percent(share),
            facts.of_each(),
            waits.count as f64 / facts.steps(),
            streams.streams,
            milliseconds(streams.smaller_ms / facts.steps()),
            unit = facts.unit(),
        ),
    })
}

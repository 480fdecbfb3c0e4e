//! What does a verdict say? One sentence from the figures of the run.

use busbound_cause::HostUse;
use busbound_cause::idle::GapCause;

use super::Bound;
use super::in_kernels::InKernels;
use crate::activity::collectives::ON_HOST;
use crate::activity::copies::CopyGroup;
use crate::activity::route::CopyRoute;
use crate::analysis::breakdown::Part;
use crate::analysis::facts::Facts;
use crate::analysis::host_work::{NOT_RECORDED, waits_for};
use crate::analysis::program::Program;

/// A smaller share rounds to 0% and is not mentioned.
const NOTHING: f64 = 0.005;

/// D2D copies of a smaller share of the step are not mentioned.
const WORTH_NAMING: f64 = 0.03;

/// Share of the device's time in D2D copies that nothing overlaps.
fn device_copy_share(facts: &Facts<'_>) -> f64 {
    let share = facts.breakdown.share_of(|part| part == Part::Copy(CopyRoute::WithinDevice));
    share.unwrap_or(0.0)
}

/// Whether D2D copies are worth mentioning.
pub(super) fn has_device_copies(facts: &Facts<'_>) -> bool {
    device_copy_share(facts) >= WORTH_NAMING
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

/// What happens in that share of the step: `waits for H2D copies from pageable memory`.
pub(super) fn clause(facts: &Facts<'_>, bound: Bound) -> String {
    match bound {
        Bound::Transfer => waits_for_copies(facts),
        Bound::Communication => "waits for communication between GPUs".to_owned(),
        Bound::Compute if has_device_copies(facts) => format!(
            "is on-device work ({} in compute kernels, {} in D2D copies)",
            percent(facts.time.compute_ms / facts.time.analyzed_ms),
            percent(device_copy_share(facts))
        ),
        Bound::Compute => "is spent in compute kernels".to_owned(),
        Bound::Launch if facts.launch_waits_are_for_copies() => {
            let small = if facts.has_mostly_small_copies() { "small " } else { "" };
            format!("is idle time waiting for the host to issue {small}copies, one call at a time")
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
        Bound::Host => match (collective_on_host(facts), waits_in_system(facts)) {
            (Some(name), _) => format!("is idle time while the host waits for other ranks, mostly in {name}"),
            (None, Some(wait)) => format!("is idle time while the host waits for {wait}"),
            (None, None) if host_is_silent(facts) => {
                "is idle time while the host makes no CUDA call; what it does is not recorded".to_owned()
            }
            (None, None) => format!("is idle time waiting for CPU work on the host{}", mostly(facts)),
        },
        Bound::Sync => lost_to(gained(facts, bound).as_deref()),
        Bound::Input => "is idle time waiting for the next input batch".to_owned(),
        Bound::Mixed | Bound::Unknown => inconclusive(facts),
    }
}

/// What the share of a step is that a bound gains, if no part of the step is as large.
pub(super) fn lost_to(gained: Option<&str>) -> String {
    match gained {
        Some(what) => format!("is lost to {what}"),
        None => "is on-device work".to_owned(),
    }
}

/// What a step would have to do without to gain; `None` for compute.
pub(super) fn gained(facts: &Facts<'_>, bound: Bound) -> Option<String> {
    Some(match bound {
        Bound::Transfer => match InKernels::of(facts).named(facts) {
            Some(what) => format!("kernels' waits for {what}"),
            None => copies(facts),
        },
        Bound::Communication => "communication between GPUs".to_owned(),
        Bound::Compute => return None,
        Bound::Launch => "launching from the host".to_owned(),
        Bound::Host => match collective_on_host(facts) {
            Some(name) => format!("waits of the host for other ranks, mostly in {name}"),
            None => match waits_in_system(facts) {
                Some(wait) => format!("waits of the host for {wait}"),
                None => format!("CPU work on the host{}", mostly(facts)),
            },
        },
        // The GPU is not idle inside the syncs but after them: the host has not launched ahead.
        Bound::Sync if facts.idle_ms(GapCause::Launch) > facts.idle_ms(GapCause::Synchronization) => {
            "host syncs (after each, the GPU waits for the next launch)".to_owned()
        }
        Bound::Sync => "host syncs".to_owned(),
        Bound::Input => "waiting for input".to_owned(),
        Bound::Mixed | Bound::Unknown => "what bounds it".to_owned(),
    })
}

/// The collective on the CPU that is the largest part of the host's work: there it waits for other ranks.
fn collective_on_host<'f>(facts: &'f Facts<'_>) -> Option<&'f str> {
    let work = facts.host_work().iter().find(|work| work.what.is_work())?;
    work.operators.first().map(String::as_str).filter(|name| name.starts_with(ON_HOST))
}

/// What the host waits for outside of CUDA, if that is the largest part: `another thread, mostly in sem_wait()`.
fn waits_in_system(facts: &Facts<'_>) -> Option<String> {
    let work = facts.host_work().iter().find(|work| work.what.is_work())?;
    let call = work.operators.first()?;
    Some(format!("{}, mostly in {call}", waits_for(call)?))
}

/// Whether nothing says what the host does: Nsight records no Python, and the host may also sleep.
fn host_is_silent(facts: &Facts<'_>) -> bool {
    let work = facts.host_work().iter().find(|work| work.what.is_work());
    let is_named = work.is_none_or(|work| work.operators.first().is_some_and(|name| name != NOT_RECORDED));
    !is_named && facts.program == Program::Cuda
}

/// "Mostly" is this share at least.
const MOST: f64 = 0.5;

/// The largest part of the host's work is named.
fn mostly(facts: &Facts<'_>) -> String {
    let work = facts.host_work().iter().find(|work| work.what.is_work());
    let named = work.map(|work| match work.operators.first().map(String::as_str) {
        // Its name is that of the migrations.
        _ if work.what == HostUse::Managed => {
            ", mostly touching managed memory, whose pages come back from the GPU".to_owned()
        }
        Some(name) if work.first_share < MOST && name != NOT_RECORDED => {
            format!(", of which {name} is the largest part ({:.0}%)", 100.0 * work.first_share)
        }
        Some(name) if [HostUse::Operator, HostUse::Random].contains(&work.what) => format!(", mostly {name}"),
        Some(name) if work.what != HostUse::Python => format!(", mostly {name} ({})", work.what.describe()),
        Some(NOT_RECORDED) | None => format!(", mostly in {}", facts.program.not_recorded()),
        Some(name) => format!(", mostly in {name}"),
    });
    named.unwrap_or_default()
}

/// Idle time without a visible cause, and copies that may or may not have crossed the bus. If both occur, each gets its
/// share.
fn inconclusive(facts: &Facts<'_>) -> String {
    const IDLE: &str = "is idle time whose cause is not visible in this trace";
    const COPYING: &str = "is spent in copies that may or may not have crossed the bus";
    let span = facts.time.analyzed_ms;
    let (idle, copying) = (
        (facts.idle_ms(GapCause::Unexplained) + facts.idle_ms(GapCause::Queued)) / span,
        facts.time.exposed_unplaced_copy_ms / span,
    );
    match (idle >= NOTHING, copying >= NOTHING) {
        (_, false) => IDLE.to_owned(),
        (false, true) => COPYING.to_owned(),
        (true, true) => format!("{IDLE} ({}) or {COPYING} ({})", percent(idle), percent(copying)),
    }
}

fn waits_for_copies(facts: &Facts<'_>) -> String {
    let copying = facts.part_ms(Part::is_transfer);
    let waits = InKernels::of(facts);
    match waits.named(facts) {
        Some(what) if waits.total_ms() > 0.95 * (waits.total_ms() + copying) => {
            format!("is spent in kernels that wait for {what}")
        }
        Some(what) => {
            let share = percent(waits.total_ms() / facts.time.analyzed_ms);
            format!("waits for transfers over the bus ({share} in kernels that wait for {what})")
        }
        None => format!("waits for {}{}", copies(facts), in_calls(facts)),
    }
}

/// From this share of the step on, time inside copy calls is said beside that of the copies.
const WORTH_SPLITTING: f64 = 0.015;

/// ` (12% copying, 36% inside the copy calls)`, where the GPU also waits for the calls that copy.
fn in_calls(facts: &Facts<'_>) -> String {
    let share = |wanted: fn(Part) -> bool| facts.breakdown.share_of(wanted).unwrap_or(0.0);
    let calling = share(|part| part == Part::Idle(GapCause::Copy));
    if calling < WORTH_SPLITTING {
        return String::new();
    }
    // As many percent as are said of both together.
    let rounded = |share: f64| (100.0 * share).round() as u32;
    let copying = share(Part::is_transfer);
    let calling = rounded(copying + calling).saturating_sub(rounded(copying));
    format!(" ({}% copying, {calling}% inside the copy calls)", rounded(copying))
}

/// The transfers of a run. The largest group is named, alone if it is nearly all of them.
fn copies(facts: &Facts<'_>) -> String {
    let between_gpus = facts.part_ms(|part| part == Part::Copy(CopyRoute::Peer)) > 0.0;
    let all = if between_gpus { "copies over the bus and between GPUs" } else { "copies over the bus" };
    let transfers = facts.groups.iter().filter(|group| CopyRoute::of(group.direction).is_transfer());
    let Some(largest) = transfers.clone().max_by(|a, b| a.exposed_ms.total_cmp(&b.exposed_ms)) else {
        return all.to_owned();
    };
    if largest.exposed_ms >= 0.95 * transfers.map(|group| group.exposed_ms).sum::<f64>() {
        return words(largest);
    }
    format!("{all}, mostly {}", words(largest))
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

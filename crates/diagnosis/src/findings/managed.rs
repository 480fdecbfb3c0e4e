//! Does managed memory go to and fro, and do kernels wait for its pages?

use busbound_trace::{Direction, MigrationCause, Nanos};
use serde_json::json;

use super::{Draft, Saving, times_of};
use crate::activity::copies::{Copy, expected_ns};
use crate::activity::managed::{Managed, is_on_demand};
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, count, milliseconds};

/// Of the time, below which neither is worth a word.
const WORTH_IT: f64 = 0.02;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let managed = facts.managed();
    let mut drafts = Vec::new();
    drafts.extend(thrashing(facts, managed));
    drafts.extend(faults(facts, managed));
    drafts
}

fn moved(copies: &[&Copy<'_>], direction: Direction) -> u64 {
    let these = copies.iter().filter(|copy| copy.transfer.direction == direction);
    these.filter_map(|copy| copy.bytes()).fold(0, u64::saturating_add)
}

fn time_ms(copies: &[&Copy<'_>]) -> f64 {
    copies.iter().map(|copy| copy.event.duration()).sum::<Nanos>().as_millis()
}

/// The same blocks leave and come back, again and again.
fn thrashing(facts: &Facts<'_>, managed: &Managed) -> Option<Draft> {
    let blocks = managed.blocks?;
    let (returns, migrations) = (&facts.copies_at(&managed.returns), facts.copies_at(&managed.migrations));
    let (steps, unit) = (facts.steps(), facts.unit());
    let (time, all) = (time_ms(returns), time_ms(&migrations));
    // There and back once is how a program starts; and most of what moves must be such.
    if blocks.returns_each < 2.0 || time < 0.5 * all || time < WORTH_IT * facts.time.span_ms {
        return None;
    }
    let exposed = facts.exposed_ms(returns.iter().copied());
    let (inward, outward) =
        (moved(returns, Direction::HostToDevice), moved(returns, Direction::DeviceToHost));
    let is_eviction = |copy: &&&Copy<'_>| {
        copy.event.migration().is_some_and(|migration| migration.cause == MigrationCause::Eviction)
    };
    let evicted: Vec<_> = returns.iter().filter(is_eviction).copied().collect();
    let is_too_large = moved(&evicted, Direction::DeviceToHost) * 2 > outward;
    let host_place = managed.host_place.map(|name| facts.trace.names().get(name));
    let touched = match (is_too_large, host_place) {
        (true, _) => ", driven out because the device's memory was full".to_owned(),
        (false, Some(place)) => {
            format!("; the host reaches for them ({})", place.trim_start_matches("CPU page fault "))
        }
        (false, None) => String::new(),
    };
    let fix = if is_too_large {
        "More is used on the GPU than fits. Use less of it at a time, or leave the part that is read once where it is \
         (cudaMemAdvise with SetPreferredLocation on the host and SetAccessedBy for the GPU)."
    } else {
        "Keep host and GPU off the same pages: copy what the host needs to a buffer of its own, mark what both only read \
         (cudaMemAdvise with SetReadMostly), or use cudaMalloc and explicit copies."
    };
    Some(Draft {
        at: times_of(returns),
        id: "managed_thrashing",
        title: "Managed memory goes to and fro".to_owned(),
        seen: format!(
            "{} blocks of managed memory change sides {:.0} times each: {} to the GPU and {} back a {unit}, {} of \
             migrations, {} of it with no kernel beside it{touched}.",
            count(blocks.count as u64),
            blocks.returns_each,
            bytes((inward as f64 / steps) as u64),
            bytes((outward as f64 / steps) as u64),
            milliseconds(time / steps),
            milliseconds(exposed / steps),
        ),
        evidence: json!({
            "blocks": blocks.count,
            "turns_per_block": blocks.returns_each,
            "to_gpu_bytes_per_step": inward as f64 / steps,
            "to_host_bytes_per_step": outward as f64 / steps,
            "migration_ms_per_step": time / steps,
            "exposed_ms_per_step": exposed / steps,
            "evicted_bytes_per_step": moved(&evicted, Direction::DeviceToHost) as f64 / steps,
            "host_page_faults_per_step": managed.host_faults as f64 / steps,
            "host_place": host_place,
        }),
        precondition: "Not both of them change the data every time.",
        // What runs beside kernels may still hold them; how long is the other finding's question.
        saves: Saving { low: 0.5 * exposed / steps, high: time / steps },
        basis: "bound: the time of these migrations; of that with no kernel beside them, at least half",
        fix: fix.to_owned(),
    })
}

/// Kernels run while the pages they need are elsewhere.
fn faults(facts: &Facts<'_>, managed: &Managed) -> Option<Draft> {
    let waiting = managed.waiting_ms();
    if waiting < WORTH_IT * facts.time.span_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let inbound: Vec<&Copy<'_>> = facts
        .copies_at(&managed.migrations)
        .into_iter()
        .filter(|copy| is_on_demand(copy) && copy.transfer.direction == Direction::HostToDevice)
        .collect();
    let came = moved(&inbound, Direction::HostToDevice);
    let took = time_ms(&inbound);
    let prefetched = inbound.iter().map(|copy| expected_ns(copy, &facts.link)).sum::<f64>() / 1e6;
    let kernels: usize = managed.waits.iter().map(|wait| wait.kernels).sum();
    let excess = managed.excess_ms();
    let recorded = match managed.gpu_faults {
        0 => "pages come in".to_owned(),
        faults => {
            format!("{} page faults of the GPU are served", count((faults as f64 / steps).round() as u64))
        }
    };
    let brought = if came > 0 && took > 0.0 {
        format!(
            " {} come in on demand, in {} pieces at {:.1} GB/s.",
            bytes((came as f64 / steps) as u64),
            count((inbound.len() as f64 / steps).round().max(1.0) as u64),
            came as f64 / 1e6 / took,
        )
    } else {
        String::new()
    };
    let compared = match excess {
        Some(excess) => {
            format!(" Without faults the same kernels take {} a {unit} less.", milliseconds(excess / steps))
        }
        None => String::new(),
    };
    let at = managed.waits.iter().flat_map(|wait| wait.times.iter()).collect();
    Some(Draft {
        at,
        id: "managed_faults",
        title: "Kernels wait for pages of managed memory".to_owned(),
        seen: format!(
            "{recorded} a {unit} while kernels run: {} of their time in {} of them.{brought}{compared}",
            milliseconds(waiting / steps),
            count((kernels as f64 / steps).round().max(1.0) as u64),
        ),
        evidence: json!({
            "gpu_page_faults_per_step": managed.gpu_faults as f64 / steps,
            "kernel_ms_beside_faults_per_step": waiting / steps,
            "kernels_per_step": kernels as f64 / steps,
            "on_demand_bytes_per_step": came as f64 / steps,
            "on_demand_migrations_per_step": inbound.len() as f64 / steps,
            "on_demand_ms_per_step": took / steps,
            "prefetched_ms_per_step": prefetched / steps,
            "excess_ms_per_step": excess.map(|excess| excess / steps),
        }),
        precondition: "What a kernel touches is known before it starts.",
        saves: Saving {
            low: excess.map_or(0.0, |excess| (excess - prefetched).max(0.0)) / steps,
            high: waiting / steps,
        },
        basis: "bound: kernel time beside page faults; at least what these kernels took longer than without them, less the \
                time to bring the same bytes in ahead",
        fix: "Bring it in before the kernel (cudaMemPrefetchAsync on a stream, the pages of the next step while this one \
              computes), say where it lives (cudaMemAdvise with SetPreferredLocation), or use cudaMalloc and a pinned copy."
            .to_owned(),
    })
}

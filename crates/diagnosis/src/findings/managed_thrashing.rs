//! Does managed memory thrash between host and GPU?

use busbound_trace::{Direction, MigrationCause};
use serde_json::json;

use super::common::copies::{bytes_moved, times_of};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::activity::managed::{WORTH_IT, migration_ms};
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds, plural};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Managed memory thrashing",
    doing: "keeping managed pages in one place",
    precondition: "Host and GPU do not both write the data every time.",
    basis: "bound: the time of these migrations; the low end is half of the part that no kernel overlaps",
    candidate: Candidate::None(
        "No what-if change moves migrations: the program does not issue them, and the trace does not show how long kernels \
         would take without them.",
    ),
    effort: Effort::Restructuring,
    unless: &[],
    relieves: &[],
    check,
    document: Document {
        meaning: "The same 2 MiB blocks of managed memory repeatedly migrate to the GPU and back.",
        computed: "Evidence: blocks return at least twice on average, and these returns take at least half of all migration \
                   time and at least 2% of the time. Inferred from the addresses that Nsight Systems records with each \
                   migration; without addresses, this is not reported. Migrations that the program requested \
                   (`cudaMemPrefetchAsync`) do not count. Saving: at most the time of these migrations, at least half of \
                   the part that no kernel overlaps.",
        fix: "If GPU memory was full (cause *eviction*), use less of it at a time, or leave data that is read once on the \
              host. Otherwise, do not share pages between host and GPU: copy what the host needs, mark read-only data \
              (`cudaMemAdvise` with `SetReadMostly`), or use `cudaMalloc` and explicit copies.",
        code: &[],
        assumes: "Host and GPU do not both write the data every time.",
    },
};

/// Why blocks return.
enum Because<'a> {
    /// GPU memory was full.
    Full,
    /// The host accesses the pages, at this place if recorded.
    Host(Option<&'a str>),
}

impl Because<'_> {
    fn clause(&self) -> String {
        match self {
            Self::Full => ", evicted because GPU memory was full".to_owned(),
            Self::Host(Some(place)) => {
                // The reader prefixes the name of such an event with its type.
                format!("; the host accesses them ({})", place.trim_start_matches("CPU page fault "))
            }
            Self::Host(None) => String::new(),
        }
    }

    fn fix(&self) -> Fix {
        Fix::new(match self {
            Self::Full => {
                "Use less GPU memory at a time: the data does not fit. Or leave data that is read once on the host \
                 (cudaMemAdvise with SetPreferredLocation on the host and SetAccessedBy for the GPU)."
            }
            Self::Host(_) => {
                "Do not share pages between host and GPU: copy what the host needs to a separate buffer, mark read-only data \
                 (cudaMemAdvise with SetReadMostly), or use cudaMalloc and explicit copies."
            }
        })
    }
}

fn is_eviction(copy: &Copy<'_>) -> bool {
    copy.event.migration().is_some_and(|migration| migration.cause == MigrationCause::Eviction)
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let managed = &facts.managed;
    let blocks = managed.blocks?;
    let returns: Vec<&Copy<'_>> = managed.returns(&facts.copies).collect();
    let (steps, unit) = (facts.steps(), facts.unit());
    let (time, all) =
        (migration_ms(&returns), migration_ms(&managed.migrations(&facts.copies).collect::<Vec<_>>()));
    // One round trip is normal at the start of a program, and returns must take most of the migration time.
    if blocks.returns_each < 2.0 || time < 0.5 * all || time < WORTH_IT * facts.time.analyzed_ms {
        return None;
    }
    let exposed = facts.exposed_ms(returns.iter().copied());
    let inward = bytes_moved(&returns, Direction::HostToDevice);
    let outward = bytes_moved(&returns, Direction::DeviceToHost);
    let evictions: Vec<&Copy<'_>> = returns.iter().filter(|copy| is_eviction(copy)).copied().collect();
    let evicted = bytes_moved(&evictions, Direction::DeviceToHost);
    let because = if evicted * 2 > outward { Because::Full } else { Because::Host(managed.host_place) };
    Some(Draft {
        title: None,
        seen: format!(
            "{} of managed memory migrate back and forth {:.0} times each: {} to the GPU and {} back per {unit}, {} of \
             migrations, {} of it not overlapped with any kernel{}.",
            plural(blocks.count as u64, "block", "blocks"),
            blocks.returns_each,
            bytes((inward as f64 / steps) as u64),
            bytes((outward as f64 / steps) as u64),
            milliseconds(time / steps),
            milliseconds(exposed / steps),
            because.clause(),
        ),
        evidence: json!({
            "blocks": blocks.count,
            "turns_per_block": blocks.returns_each,
            "to_gpu_bytes_per_step": inward as f64 / steps,
            "to_host_bytes_per_step": outward as f64 / steps,
            "migration_ms_per_step": time / steps,
            "exposed_ms_per_step": exposed / steps,
            "evicted_bytes_per_step": evicted as f64 / steps,
            "host_page_faults_per_step": managed.host_faults as f64 / steps,
            "host_place": managed.host_place,
        }),
        // Migrations that overlap with kernels may still stall them. `managed_faults` covers that time.
        saves: Saving { low: 0.5 * exposed / facts.gpu_steps(), high: time / facts.gpu_steps() },
        fix: because.fix(),
        at: times_of(&returns),
    })
}

//! Does managed memory go back and forth between host and device?

use busbound_trace::{Direction, MigrationCause};
use serde_json::json;

use super::common::copies::{bytes_moved, times_of};
use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::activity::copies::Copy;
use crate::activity::managed::{WORTH_IT, migration_ms};
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, count, milliseconds};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Managed memory goes to and fro",
    precondition: "Not both of them change the data every time.",
    basis: "bound: the time of these migrations; of that with no kernel beside them, at least half",
    candidate: Candidate::None(
        "No change moves migrations: nobody called for them, and what kernels would take without them is not in the \
         trace.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "Thrashing: the same 2 MiB blocks of managed memory go to the GPU and back, again and again.",
        computed: "Evidence: blocks return twice or more on average, such returns are most of what migrates, and take 2% \
                   of the time. Inferred from the addresses that Nsight Systems records with each migration; without \
                   them there is no finding. Migrations that the program requested (`cudaMemPrefetchAsync`) do not \
                   count. Saving: the time of these migrations at most, half of what no kernel overlaps at least.",
        fix: "Where the GPU's memory was full (cause *eviction*), use less at a time, or leave on the host what is read \
              once. Otherwise keep host and GPU off the same pages: copy what the host needs, mark what both only read \
              (`cudaMemAdvise` with `SetReadMostly`), or use `cudaMalloc` and explicit copies.",
        code: &[],
        assumes: "Not both sides change the data every time.",
    },
};

/// Why blocks return.
enum Because<'a> {
    /// The device's memory was full.
    Full,
    /// The host touches them, at this place where that is recorded.
    Host(Option<&'a str>),
}

impl Because<'_> {
    fn clause(&self) -> String {
        match self {
            Self::Full => ", driven out because the device's memory was full".to_owned(),
            Self::Host(Some(place)) => {
                // The reader's name of such an event begins with what it is.
                format!("; the host reaches for them ({})", place.trim_start_matches("CPU page fault "))
            }
            Self::Host(None) => String::new(),
        }
    }

    fn fix(&self) -> Fix {
        Fix::new(match self {
            Self::Full => {
                "More is used on the GPU than fits. Use less of it at a time, or leave the part that is read once where it is \
                 (cudaMemAdvise with SetPreferredLocation on the host and SetAccessedBy for the GPU)."
            }
            Self::Host(_) => {
                "Keep host and GPU off the same pages: copy what the host needs to a buffer of its own, mark what both only read \
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
    // There and back once is how a program starts; and most of what moves must be such.
    if blocks.returns_each < 2.0 || time < 0.5 * all || time < WORTH_IT * facts.time.span_ms {
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
            "{} blocks of managed memory change sides {:.0} times each: {} to the GPU and {} back a {unit}, {} of \
             migrations, {} of it with no kernel beside it{}.",
            count(blocks.count as u64),
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
        // Migrations that run while kernels do may still hold them; how long is the other finding's question.
        saves: Saving { low: 0.5 * exposed / steps, high: time / steps },
        fix: because.fix(),
        at: times_of(&returns),
    })
}

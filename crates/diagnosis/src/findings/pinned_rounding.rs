//! How much more memory does PyTorch pin than its tensors need?

use std::collections::BTreeMap;

use busbound_trace::MemoryKind;
use serde_json::json;

use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::analysis::program::Program;
use crate::quantity::{bytes, plural};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Pinned memory rounded up to powers of two",
    doing: "pinning exact sizes",
    precondition: "Host memory is scarce, or the program pins much of it.",
    basis: "none: memory, not time",
    candidate: Candidate::None("It costs memory, not time."),
    effort: Effort::Setting,
    unless: &[],
    relieves: &[],
    check,
    document: Document {
        meaning: "PyTorch's allocator of pinned memory rounds sizes up to a power of two: 130 MB asked are 268 MB pinned \
                  (fixtures/machines/raw/pinned.json). The operating system cannot use the rest for anything else, and weights that fit into \
                  the host's memory may not fit pinned.",
        computed: "Evidence: recordings of `busbound record` that saw all allocations have the sizes of pinned memory (their number is correct \
                   to a factor of two). For each power of two from 1 MiB on, the largest pinned copy of more than half of it is what was \
                   asked for; sizes without such a copy count as used. Reported from 256 MB and a fifth of the pinned memory on. \
                   Nothing is saved but memory.",
        fix: "Set `PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:64` (recent versions, pytorch#171662): larger sizes are not rounded. Or put tensors into one flat \
              buffer, or pin exact sizes with `cudaHostRegister`, as `busbound.offload` does.",
        code: &[],
        assumes: "Each allocation holds one tensor, and the largest copy from it moves all of that.",
    },
};

/// Smaller allocations do not matter.
const SMALLEST: u64 = 1 << 20;
/// Bytes and share of the pinned memory that must be unused.
const WORTH_IT: u64 = 256_000_000;
const SHARE: f64 = 0.2;

/// Pinned allocations of one size.
struct Rounded {
    size: u64,
    count: u64,
    asked: u64,
}

impl Rounded {
    fn unused(&self) -> u64 {
        (self.size - self.asked).saturating_mul(self.count)
    }
}

/// The allocations of these sizes, with what was asked for by the largest copy that fits.
fn rounded(sizes: &BTreeMap<u64, u32>, copied: &[u64]) -> Vec<Rounded> {
    let of = |(&size, &count): (&u64, &u32)| {
        let fits = copied.iter().copied().filter(|bytes| *bytes <= size && *bytes > size / 2);
        let asked = fits.max().unwrap_or(size);
        (size.is_power_of_two() && size >= SMALLEST).then_some(Rounded {
            size,
            count: u64::from(count),
            asked,
        })
    };
    sizes.iter().filter_map(of).collect()
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let sizes = facts.trace.origin().pinned_sizes.as_ref()?;
    if facts.program != Program::PyTorch {
        return None;
    }
    let is_pinned = |copy: &&Copy<'_>| copy.host_memory() == Some(MemoryKind::Pinned);
    let copied: Vec<u64> = facts.copies.iter().filter(is_pinned).filter_map(Copy::bytes).collect();
    let all = rounded(sizes, &copied);
    let pinned =
        sizes.iter().map(|(size, count)| size.saturating_mul(u64::from(*count))).fold(0, u64::saturating_add);
    let unused = all.iter().map(Rounded::unused).fold(0, u64::saturating_add);
    let worst = all.iter().max_by_key(|one| one.unused())?;
    if unused < WORTH_IT || (unused as f64) < SHARE * pinned as f64 {
        return None;
    }
    Some(Draft {
        title: None,
        seen: format!(
            "About {} are pinned for {} of data: PyTorch's allocator rounds sizes up to powers of two. Mostly {} of {} for tensors of {}.",
            bytes(pinned),
            bytes(pinned - unused),
            plural(worst.count, "allocation", "allocations"),
            bytes(worst.size),
            bytes(worst.asked),
        ),
        evidence: json!({
            "pinned_bytes": pinned,
            "asked_bytes": pinned - unused,
            "allocation_bytes": worst.size,
            "pinning_calls": worst.count,
            "tensor_bytes": worst.asked,
        }),
        saves: Saving::NONE,
        fix: Fix::new(
            "Set PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:64 (recent versions of PyTorch), or put tensors into one flat pinned buffer.",
        )
        .saving_known(false),
        at: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What torch's allocator pinned for what was asked, on an H200's host (fixtures/machines/raw/pinned.json).
    #[test]
    fn what_was_asked_for_is_the_largest_copy_from_an_allocation() {
        let sizes = BTreeMap::from([
            (268_435_456, 8),
            (4_194_304, 2),
            (1_073_741_824, 1),
            (300_000_000, 4),
            (65_536, 100),
        ]);
        let found = rounded(&sizes, &[136_314_880, 3_145_728, 1_000, 60_000]);
        let of = |size: u64| found.iter().find(|one| one.size == size);
        assert_eq!(of(268_435_456).map(Rounded::unused), Some(8 * (268_435_456 - 136_314_880)));
        assert_eq!(of(4_194_304).map(Rounded::unused), Some(2 * 1_048_576));
        // No copy from it, a size that nobody rounds, and small ones.
        assert_eq!(of(1_073_741_824).map(Rounded::unused), Some(0));
        assert!(of(300_000_000).is_none() && of(65_536).is_none());
    }
}

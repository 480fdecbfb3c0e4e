//! What does confidential computing change? Every copy goes through an encrypted buffer that the driver pins itself, with the CPU's help:
//! pinned copies wait as pageable ones do, and all run at about 5 GB/s (vllm-project/vllm#52226 and #55428). Not tested on such a machine.

use busbound_trace::Trace;
use busbound_whatif::replay::Change;

use crate::findings::{Finding, FindingId};

/// Changes that gain by pinned memory, or by copies that the host does not wait for.
const MOOT: [&str; 6] = ["pin", "loader", "async", "prefetch", "stage", "copied"];

/// What a prediction says.
pub(crate) const NOTE: &str = "The program ran in confidential computing, where pinned copies are encrypted and wait as pageable ones do: predictions of pin, \
                               async, prefetch, stage and copied do not hold.";

/// Findings about the rate of the link, which encryption sets.
const ABOUT_THE_RATE: [FindingId; 5] = [
    FindingId::SlowLink,
    FindingId::NarrowLink,
    FindingId::NonBlockingPageable,
    FindingId::PinningInLoop,
    FindingId::WrongNumaNode,
];

/// Whether the program ran in confidential computing; false where nothing says so.
pub(crate) fn is_on(trace: &Trace) -> bool {
    trace.origin().is_confidential
}

/// Whether a change gains nothing there.
pub(crate) fn is_moot(change: &Change) -> bool {
    MOOT.contains(&change.about().name)
}

/// Leaves out what gains nothing there.
pub(crate) fn retain(findings: &mut Vec<Finding>) {
    let is_moot = |finding: &Finding| {
        let changes = finding.id.candidate().changes().unwrap_or_default();
        changes.iter().any(is_moot) || ABOUT_THE_RATE.contains(&finding.id)
    };
    findings.retain(|finding| !is_moot(finding));
}

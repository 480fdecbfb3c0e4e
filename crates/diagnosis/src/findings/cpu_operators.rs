//! Does the GPU wait while operators run on the CPU?

use busbound_cause::{HostUse, Resource};
use busbound_trace::{EventKind, Nanos};

use super::common::host_idle::{HostIdle, WORTH_IT};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::gaps::call_times;
use crate::analysis::facts::Facts;

pub(super) static RULE: Rule = Rule {
    title: "Operators on the CPU",
    doing: "running these operators on the GPU",
    precondition: "The operators exist for the GPU, or their results are not needed before the next launch.",
    basis: "bound: idle time while these operators run on the CPU",
    candidate: Candidate::None(
        "No what-if change moves an operator to the GPU or to another thread: the trace does not show how long it takes there.",
    ),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::Host],
    check,
    document: Document {
        meaning: "The GPU is idle while the launching thread runs operators on tensors in host memory, for example a sort, a \
                  top-k or a mask.",
        computed: "Evidence: GPU idle time while the launching thread is in an operator that launches nothing for at least \
                   200 µs is 3% or more of the time, most of it in an \
                   `aten` operator that launches nothing anywhere in the trace. The optimizer, gathers, copies and casts have findings of their own. Saving: \
                   50% to 100% of that idle time.",
        fix: "Move the tensors to the GPU before these operators, or run them in a thread while the GPU works on another step.",
        code: &[CODE],
        assumes: "The operators exist for the GPU, or their results are not needed before the next launch.",
    },
};

const CODE: &str = "\
x = x.to(device, non_blocking=True)    # first move the data, from pinned memory
order = x.argsort()                    # then the operator runs on the GPU";

/// Operators that only describe tensors. If one takes long, the host was busy with something else.
const VIEWS: [&str; 16] = [
    "alias",
    "as_strided",
    "chunk",
    "detach",
    "empty_like",
    "expand",
    "narrow",
    "permute",
    "reshape",
    "select",
    "slice",
    "split",
    "squeeze",
    "t",
    "transpose",
    "unsqueeze",
];

/// Operators that read one number, which no GPU does faster: `Adam` reads its step counts with them.
const READS: [&str; 3] = ["is_nonzero", "item", "local_scalar_dense"];

/// Operators that copy. Copies between host and device have their own findings; those within the host are in `cpu_casts`.
const COPIES: [&str; 5] = ["clone", "contiguous", "copy_", "to", "to_copy"];

/// Whether an operator computes on the CPU: its name is known not to launch anything in this trace.
fn computes(facts: &Facts<'_>, name: &str) -> bool {
    let is_other = |name: &str| {
        let plain = name.trim_start_matches('_');
        let others = [VIEWS.as_slice(), &READS, &COPIES];
        name.contains("view") || others.iter().any(|names| names.contains(&plain))
    };
    let Some(own) = name.strip_prefix("aten::").filter(|name| !is_other(name)) else { return false };
    !launches_within(facts, |other| other.strip_prefix("aten::") == Some(own))
}

/// Whether any of these operators launches something, itself or through others.
fn launches_within(facts: &Facts<'_>, is_one: impl Fn(&str) -> bool) -> bool {
    let launches = call_times(facts.host.launches());
    let is_this: Vec<bool> = facts.trace.names().iter().map(is_one).collect();
    let operators = facts.trace.events().filter(|event| event.kind() == EventKind::Operator);
    operators.filter(|operator| is_this[operator.name_id().index()]).any(|operator| {
        let times = launches.get(&operator.track_id());
        times.is_some_and(|times| times.length_within(operator.interval()) > Nanos::ZERO)
    })
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let of = |what| HostIdle::of(facts, what, WORTH_IT).map(|idle| (what, idle));
    let found = [HostUse::Operator, HostUse::Random].into_iter().filter_map(of);
    let (what, idle) = found.max_by(|a, b| a.1.ms.total_cmp(&b.1.ms))?;
    let first = idle.operators.first().filter(|name| what == HostUse::Random || computes(facts, name))?;
    let how = match what {
        HostUse::Random => "create the tensor there (device=\"cuda\"), then nothing is copied either",
        _ => "move its inputs there first",
    };
    let fix =
        format!("Run {first} on the GPU: {how}. Or run it in a thread while the GPU works on another step.");
    Some(Draft {
        title: None,
        seen: format!("The GPU is idle while operators run on the CPU: {}.", idle.describe(facts)),
        evidence: idle.evidence(),
        saves: idle.saving(0.5),
        fix: Fix::new(fix).doing(format!("running {first} on the GPU")).code(CODE),
        at: idle.at,
    })
}

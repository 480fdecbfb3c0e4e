//! What does the trace lack, what does that prevent, and how is it recorded next time?

use busbound_trace::Trace;
use serde::Serialize;

use super::lacks::{self, Lack, Scope};
use super::{Survey, Totals};
use crate::limits::id::LimitationId;

/// One thing the trace does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    pub id: LimitationId,
    /// What is not there, and why, as far as that can be told.
    pub what: String,
    /// Which answers that rules out.
    pub prevents: &'static str,
    /// How to have it next time.
    pub remedy: &'static str,
    /// Whether the diagnosis is limited by it.
    #[serde(skip)]
    pub(crate) limits_diagnosis: bool,
}

/// Whether what is missing limits the diagnosis. What only names things, or what no copy needs, is said by the
/// survey alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limits {
    Diagnosis,
    Survey,
}
use Limits::{Diagnosis, Survey as SurveyAlone};

type Check = fn(&Scope<'_>) -> Option<Lack>;

/// Everything that is looked for, in the order in which people read it.
const TABLE: &[(LimitationId, Limits, Check)] = &[
    (LimitationId::Events, Diagnosis, lacks::events),
    (LimitationId::GpuActivity, Diagnosis, lacks::gpu_activity),
    (LimitationId::GpuTail, Diagnosis, lacks::gpu_tail),
    (LimitationId::RuntimeCalls, Diagnosis, lacks::runtime_calls),
    (LimitationId::Correlation, Diagnosis, lacks::correlation),
    (LimitationId::Operators, Diagnosis, lacks::operators),
    (LimitationId::CopyBytes, Diagnosis, lacks::copy_bytes),
    (LimitationId::CopyDirection, Diagnosis, lacks::copy_direction),
    (LimitationId::MemoryKind, Diagnosis, lacks::memory_kind),
    (LimitationId::GpuNames, Diagnosis, lacks::gpu_names),
    (LimitationId::GpuOfProcess, Diagnosis, lacks::gpu_of_process),
    (LimitationId::GraphNodes, Diagnosis, lacks::graph_nodes),
    (LimitationId::GraphWork, Diagnosis, lacks::graph_work),
    (LimitationId::PageFaults, Diagnosis, lacks::page_faults),
    (LimitationId::Shapes, SurveyAlone, lacks::shapes),
    (LimitationId::Stacks, SurveyAlone, lacks::stacks),
    (LimitationId::Memory, SurveyAlone, lacks::memory),
    (LimitationId::Synchronizations, SurveyAlone, lacks::synchronizations),
    (LimitationId::Steps, SurveyAlone, lacks::steps),
];

pub(super) fn missing(trace: &Trace, totals: &Totals, survey: &Survey) -> Vec<Missing> {
    let scope = Scope { trace, totals, survey };
    let of = |&(id, limits, check): &(LimitationId, Limits, Check)| {
        let Lack { what, prevents, remedy } = check(&scope)?;
        let remedy = (trace.origin().format.remedy)(id.as_str(), survey.source.complete).unwrap_or(remedy);
        Some(Missing { id, what, prevents, remedy, limits_diagnosis: limits == Diagnosis })
    };
    // Of a trace without events nothing else is worth saying.
    let table = if trace.is_empty() { &TABLE[..1] } else { TABLE };
    table.iter().filter_map(of).collect()
}

/// What is looked for.
#[cfg(test)]
pub(crate) fn checked() -> impl Iterator<Item = LimitationId> {
    TABLE.iter().map(|(id, ..)| *id)
}

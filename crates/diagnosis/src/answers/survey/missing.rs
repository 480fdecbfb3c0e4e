//! What is missing from the trace, what does that prevent, and how do you record it next time?

use busbound_trace::Trace;
use serde::Serialize;

use super::lacks::{self, Lack, Scope};
use super::{Survey, Totals};
use crate::limits::id::LimitationId;

/// One thing missing from the trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    pub id: LimitationId,
    /// What is missing, and why, if known.
    pub what: String,
    /// What cannot be determined without it.
    pub prevents: &'static str,
    /// How to record it next time.
    pub remedy: &'static str,
    /// Whether it limits the diagnosis.
    #[serde(skip)]
    pub(crate) limits_diagnosis: bool,
}

/// Whether a missing item limits the diagnosis. Only the survey reports items that merely add names or that no copy
/// needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limits {
    Diagnosis,
    Survey,
}
use Limits::{Diagnosis, Survey as SurveyOnly};

type Check = fn(&Scope<'_>) -> Option<Lack>;

/// All checks, in display order.
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
    (LimitationId::KernelRecords, Diagnosis, lacks::kernel_records),
    (LimitationId::GraphWork, Diagnosis, lacks::graph_work),
    (LimitationId::PageFaults, Diagnosis, lacks::page_faults),
    (LimitationId::Shapes, SurveyOnly, lacks::shapes),
    (LimitationId::Stacks, SurveyOnly, lacks::stacks),
    (LimitationId::Memory, SurveyOnly, lacks::memory),
    (LimitationId::Synchronizations, SurveyOnly, lacks::synchronizations),
    (LimitationId::Steps, SurveyOnly, lacks::steps),
];

pub(super) fn missing(trace: &Trace, totals: &Totals, survey: &Survey) -> Vec<Missing> {
    let scope = Scope { trace, totals, survey };
    let of = |&(id, limits, check): &(LimitationId, Limits, Check)| {
        let Lack { what, prevents, remedy } = check(&scope)?;
        let remedy = (trace.origin().format.remedy)(id.as_str(), survey.source.complete).unwrap_or(remedy);
        Some(Missing { id, what, prevents, remedy, limits_diagnosis: limits == Diagnosis })
    };
    // If the trace has no events, nothing else is worth reporting.
    let table = if trace.is_empty() { &TABLE[..1] } else { TABLE };
    table.iter().filter_map(of).collect()
}

/// The ids of all checks.
#[cfg(test)]
pub(crate) fn checked() -> impl Iterator<Item = LimitationId> {
    TABLE.iter().map(|(id, ..)| *id)
}

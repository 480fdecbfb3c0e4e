//! What is missing from the trace, what does that prevent, and how do you record it next time?

use std::cell::OnceCell;

use busbound_trace::{Recordable, Trace};
use serde::Serialize;

use super::lacks::{self, Lack, Scope};
use super::lost_records;
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
    /// What it does to the diagnosis.
    #[serde(skip)]
    pub(crate) limits: Limits,
}

/// What a missing item does to the diagnosis. Only the survey reports items that merely add names or that no copy needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limits {
    /// Figures mislead: there is no verdict.
    Verdict,
    Diagnosis,
    Survey,
}
use Limits::{Diagnosis, Survey as SurveyOnly, Verdict};

impl Missing {
    pub(crate) fn limits_diagnosis(&self) -> bool {
        self.limits != SurveyOnly
    }

    /// Why there is no verdict: records are missing, or contradict each other.
    pub(crate) fn withholds(missing: &[Self]) -> Option<&Self> {
        missing.iter().find(|missing| missing.limits == Verdict)
    }
}

type Check = fn(&Scope<'_>) -> Option<Lack>;

/// All checks, in display order: what is missing, the limitation that this is, and how to find out.
const TABLE: &[(Recordable, LimitationId, Limits, Check)] = &[
    (Recordable::Events, LimitationId::Events, Diagnosis, lacks::events),
    (Recordable::EndOfFile, LimitationId::EndOfFile, SurveyOnly, lacks::whole_file),
    (Recordable::GpuActivity, LimitationId::GpuActivity, Diagnosis, lacks::gpu_activity),
    (Recordable::GpuTail, LimitationId::GpuTail, Diagnosis, lacks::gpu_tail),
    (Recordable::RuntimeCalls, LimitationId::RuntimeCalls, Diagnosis, lacks::runtime_calls),
    (Recordable::Correlation, LimitationId::Correlation, Diagnosis, lacks::correlation),
    (Recordable::Operators, LimitationId::Operators, Diagnosis, lacks::operators),
    (Recordable::CopyBytes, LimitationId::CopyBytes, Diagnosis, lacks::copy_bytes),
    (Recordable::CopyDirection, LimitationId::CopyDirection, Diagnosis, lacks::copy_direction),
    (Recordable::MemoryKind, LimitationId::MemoryKind, Diagnosis, lacks::memory_kind),
    (Recordable::GpuNames, LimitationId::GpuNames, Diagnosis, lacks::gpu_names),
    (Recordable::GpuOfProcess, LimitationId::GpuOfProcess, Diagnosis, lacks::gpu_of_process),
    (Recordable::GraphNodes, LimitationId::GraphNodes, Diagnosis, lacks::graph_nodes),
    (Recordable::Kernels, LimitationId::KernelRecords, Verdict, lost_records::kernels),
    (Recordable::KernelRecords, LimitationId::KernelRecords, Verdict, lost_records::kernel_records),
    (Recordable::GraphWork, LimitationId::GraphWork, Verdict, lost_records::graph_work),
    (Recordable::Clocks, LimitationId::Clocks, Verdict, lacks::clocks),
    (Recordable::StreamOrder, LimitationId::StreamOrder, Verdict, lacks::stream_order),
    (Recordable::CopyRates, LimitationId::CopyRates, Verdict, lacks::copy_rates),
    (Recordable::CallRecords, LimitationId::CallRecords, Verdict, lost_records::call_records),
    (Recordable::OneOfEach, LimitationId::Duplicates, Diagnosis, lacks::duplicates),
    (Recordable::PageFaults, LimitationId::PageFaults, Diagnosis, lacks::page_faults),
    (Recordable::Shapes, LimitationId::Shapes, SurveyOnly, lacks::shapes),
    (Recordable::Stacks, LimitationId::Stacks, SurveyOnly, lacks::stacks),
    (Recordable::Memory, LimitationId::Memory, SurveyOnly, lacks::memory),
    (Recordable::Synchronizations, LimitationId::Synchronizations, SurveyOnly, lacks::synchronizations),
    (Recordable::Steps, LimitationId::Steps, SurveyOnly, lacks::steps),
];

pub(super) fn missing(trace: &Trace, totals: &Totals, survey: &Survey) -> Vec<Missing> {
    let scope = Scope { trace, totals, survey, records: OnceCell::new() };
    let of = |&(missing, id, limits, check): &(Recordable, LimitationId, Limits, Check)| {
        let Lack { what, prevents, remedy } = check(&scope)?;
        let remedy = (trace.origin().format.remedy)(missing, survey.source.complete).unwrap_or(remedy);
        Some(Missing { id, what, prevents, remedy, limits })
    };
    // If the trace has no events, nothing else is worth reporting.
    let table = if trace.is_empty() { &TABLE[..1] } else { TABLE };
    table.iter().filter_map(of).collect()
}

/// The ids of all checks.
#[cfg(test)]
pub(crate) fn checked() -> impl Iterator<Item = LimitationId> {
    TABLE.iter().map(|(_, id, ..)| *id)
}

//! What can be rendered? Every result of busbound, as one enum for the formats.

use busbound_diagnosis::{
    Advice, Benchmark, Comparison, Diagnosis, Drawn, Explanation, Gate, Survey, Trial, WhatIf,
};
use busbound_fleet::{FleetAnswer, History, RankSummary};
use busbound_machine::Reference;
use busbound_machine::compile_log::CompileLog;
use busbound_machine::flight_recorder::FlightRecorder;
use busbound_machine::live::Snapshot;
use busbound_machine::nccl_log::NcclLog;
use busbound_machine::topology::Topology;
use busbound_trace::Trace;

use crate::Format;
use crate::error::RenderError;
use crate::html::section::RunSection;
use crate::kind::AnswerKind;
use crate::runs::Runs;
use crate::text::plan::Plan;

/// A result of any kind. Each format matches on this.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Answer<'a> {
    Surveys(&'a [Survey]),
    Diagnoses(&'a [Diagnosis]),
    Drawn(&'a Drawn),
    Runs(Runs<'a>),
    Comparison(DrawnComparison<'a>),
    Predictions(Predictions<'a>),
    Gate(&'a Gate),
    Fleet(&'a FleetAnswer),
    Rank(&'a RankSummary),
    History(&'a History),
    Benchmark(&'a Benchmark),
    Topology(&'a Topology),
    NcclLog(&'a NcclLog),
    CompileLog(&'a CompileLog),
    FlightRecorder(&'a FlightRecorder),
    Trial(&'a Trial),
    Snapshot(&'a Snapshot),
    Plan(&'a Plan),
    Reference(&'a Reference),
    Explanations(&'a [Explanation]),
    Advice(&'a Advice),
    Timeline(Timeline<'a>),
}

impl Answer<'_> {
    pub fn kind(&self) -> AnswerKind {
        match self {
            Self::Surveys(_) => AnswerKind::Survey,
            Self::Diagnoses(_) | Self::Drawn(_) | Self::Runs(_) => AnswerKind::Diagnosis,
            Self::Comparison(_) => AnswerKind::Comparison,
            Self::Predictions(_) => AnswerKind::Prediction,
            Self::Gate(_) => AnswerKind::Gate,
            Self::Fleet(_) => AnswerKind::Fleet,
            Self::Rank(_) => AnswerKind::Rank,
            Self::History(_) => AnswerKind::History,
            Self::Benchmark(_) => AnswerKind::Benchmark,
            Self::Topology(_) => AnswerKind::Topology,
            Self::NcclLog(_) => AnswerKind::NcclLog,
            Self::CompileLog(_) => AnswerKind::CompileLog,
            Self::FlightRecorder(_) => AnswerKind::FlightRecorder,
            Self::Trial(_) => AnswerKind::Trial,
            Self::Snapshot(_) => AnswerKind::Snapshot,
            Self::Plan(_) => AnswerKind::Plan,
            Self::Reference(_) => AnswerKind::Reference,
            Self::Explanations(_) => AnswerKind::Explanation,
            Self::Advice(_) => AnswerKind::Advice,
            Self::Timeline(_) => AnswerKind::Timeline,
        }
    }

    /// The error for a format that cannot render this answer.
    pub(crate) fn not_available(&self, format: Format) -> RenderError {
        RenderError::NotAvailable { kind: self.kind(), format }
    }
}

/// A comparison and, for a page, the drawings of its runs.
#[derive(Debug, Clone, Copy)]
pub struct DrawnComparison<'a> {
    pub comparison: &'a Comparison,
    /// In the order of its runs; empty unless a page is requested.
    pub runs: &'a [Drawn],
}

/// Predicted step times and, for a page, the sections of the runs.
#[derive(Debug, Clone, Copy)]
pub struct Predictions<'a> {
    pub answers: &'a [WhatIf],
    /// Empty unless a page is requested.
    pub sections: &'a [RunSection],
}

/// A trace for a trace viewer, optionally with the analysis results.
#[derive(Debug, Clone, Copy)]
pub struct Timeline<'a> {
    pub trace: &'a Trace,
    pub drawn: Option<&'a Drawn>,
}

//! What can be shown? Every answer of busbound, as formats see it.

use busbound_diagnosis::{
    Advice, Benchmark, Comparison, Diagnosis, Drawn, Explanation, Gate, Survey, WhatIf,
};
use busbound_fleet::{FleetAnswer, RankSummary};
use busbound_machine::live::Snapshot;
use busbound_machine::topology::Topology;
use busbound_trace::Trace;

use crate::Format;
use crate::error::RenderError;
use crate::html::section::RunSection;
use crate::kind::AnswerKind;
use crate::runs::Runs;
use crate::text::plan::Plan;

/// An answer of any kind, as formats see it: each format's file matches on this.
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
    Benchmark(&'a Benchmark),
    Topology(&'a Topology),
    Snapshot(&'a Snapshot),
    Plan(&'a Plan),
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
            Self::Benchmark(_) => AnswerKind::Benchmark,
            Self::Topology(_) => AnswerKind::Topology,
            Self::Snapshot(_) => AnswerKind::Snapshot,
            Self::Plan(_) => AnswerKind::Plan,
            Self::Explanations(_) => AnswerKind::Explanation,
            Self::Advice(_) => AnswerKind::Advice,
            Self::Timeline(_) => AnswerKind::Timeline,
        }
    }

    /// A format is not made for it.
    pub(crate) fn not_available(&self, format: Format) -> RenderError {
        RenderError::NotAvailable { kind: self.kind(), format }
    }
}

/// A comparison and, for a page, what its runs look like.
#[derive(Debug, Clone, Copy)]
pub struct DrawnComparison<'a> {
    pub comparison: &'a Comparison,
    /// In the order of its runs; empty where no page is asked for.
    pub runs: &'a [Drawn],
}

/// What runs would take and, for a page, what they look like.
#[derive(Debug, Clone, Copy)]
pub struct Predictions<'a> {
    pub answers: &'a [WhatIf],
    /// Empty where no page is asked for.
    pub sections: &'a [RunSection],
}

/// A trace for a trace viewer, with what was found in it where that is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Timeline<'a> {
    pub trace: &'a Trace,
    pub drawn: Option<&'a Drawn>,
}

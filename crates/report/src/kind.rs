//! Which kinds of answers do formats distinguish?

use crate::Format;

/// The kinds of answers that formats distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnswerKind {
    Survey,
    Diagnosis,
    Comparison,
    Prediction,
    Gate,
    Fleet,
    Rank,
    History,
    Benchmark,
    Topology,
    NcclLog,
    CompileLog,
    FlightRecorder,
    Trial,
    Snapshot,
    Plan,
    Reference,
    Explanation,
    Advice,
    Timeline,
}

impl AnswerKind {
    /// The plural noun, for error messages.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Survey => "surveys",
            Self::Diagnosis => "diagnoses",
            Self::Comparison => "comparisons",
            Self::Prediction => "predictions",
            Self::Gate => "gates",
            Self::Fleet => "merged ranks",
            Self::Rank => "rank summaries",
            Self::History => "histories",
            Self::Benchmark => "benchmarks",
            Self::Topology => "topologies",
            Self::NcclLog => "logs of NCCL",
            Self::CompileLog => "logs of torch.compile",
            Self::FlightRecorder => "flight recorder dumps",
            Self::Trial => "trials",
            Self::Snapshot => "snapshots",
            Self::Plan => "plans",
            Self::Reference => "lists of links and GPUs",
            Self::Explanation => "explanations",
            Self::Advice => "launch settings",
            Self::Timeline => "timelines",
        }
    }

    /// The names of the formats it can be written in.
    pub(crate) fn formats(self) -> String {
        let has_general = !matches!(self, Self::Advice | Self::Timeline);
        let general = Format::ALL.iter().copied().filter(|format| has_general && format.is_general());
        let names: Vec<&str> = general.chain(Format::only_for(self)).map(Format::name).collect();
        names.join(", ")
    }
}

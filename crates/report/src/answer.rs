//! What can be shown? Every answer of busbound, and the one trait by which all of them are rendered.

use std::io::Write;

use busbound_diagnosis::{Advice, Benchmark, Comparison, Diagnosis, Drawn, Gate, Survey, WhatIf};
use busbound_fleet::{FleetAnswer, RankSummary};
use busbound_machine::live::Snapshot;
use busbound_machine::topology::Topology;
use busbound_trace::Trace;

use crate::error::RenderError;
use crate::html::RunSection;
use crate::runs::Runs;
use crate::text::plan::Plan;
use crate::{Format, Style};

/// Something that can be shown in every format made for it.
///
/// ```
/// use std::path::Path;
/// use busbound_diagnosis::{Options, Source, diagnose};
/// use busbound_machine::Machine;
/// use busbound_report::{Format, Report, Style};
/// use busbound_trace::{ReadOptions, read};
///
/// let json = br#"[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":200}]"#;
/// let trace = read(&json[..], Path::new("run.json"), &ReadOptions::default())?;
/// let run = diagnose(&trace, &Source::named("run.json"), &Machine::default(), &Options::default());
/// assert!(run.render(Format::Markdown, &Style::default())?.contains("run.json"));
/// assert!(run.render(Format::Junit, &Style::default()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Report {
    /// What there is to show.
    fn answer(&self) -> Answer<'_>;

    /// The answer as text.
    ///
    /// # Errors
    /// If the format is not made for such an answer.
    fn render(&self, format: Format, style: &Style) -> Result<String, RenderError> {
        let mut bytes = Vec::new();
        self.write(format, style, &mut bytes)?;
        String::from_utf8(bytes).map_err(RenderError::Text)
    }

    /// Writes the answer piece by piece: a timeline need not fit into memory.
    ///
    /// # Errors
    /// If the format is not made for such an answer, and those of the writer.
    fn write(&self, format: Format, style: &Style, out: &mut dyn Write) -> Result<(), RenderError> {
        format.write(&self.answer(), style, out)
    }
}

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
    Advice(&'a Advice),
    Timeline(Timeline<'a>),
}

/// The kinds of answers, as far as formats tell them apart.
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
    Benchmark,
    Topology,
    Snapshot,
    Plan,
    Advice,
    Timeline,
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
            Self::Advice(_) => AnswerKind::Advice,
            Self::Timeline(_) => AnswerKind::Timeline,
        }
    }
}

impl AnswerKind {
    /// The word for several of them.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Survey => "surveys",
            Self::Diagnosis => "diagnoses",
            Self::Comparison => "comparisons",
            Self::Prediction => "predictions",
            Self::Gate => "gates",
            Self::Fleet => "merged ranks",
            Self::Rank => "rank summaries",
            Self::Benchmark => "benchmarks",
            Self::Topology => "topologies",
            Self::Snapshot => "snapshots",
            Self::Plan => "plans",
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

impl<R: Report + ?Sized> Report for &R {
    fn answer(&self) -> Answer<'_> {
        (**self).answer()
    }
}

/// `impl Report` for answers that formats see as they are.
macro_rules! reports {
    ($($answer:ty => $variant:ident,)*) => {
        $(impl Report for $answer {
            fn answer(&self) -> Answer<'_> {
                Answer::$variant(self)
            }
        })*
    };
}

reports! {
    [Survey] => Surveys,
    [Diagnosis] => Diagnoses,
    Drawn => Drawn,
    Gate => Gate,
    FleetAnswer => Fleet,
    RankSummary => Rank,
    Benchmark => Benchmark,
    Topology => Topology,
    Snapshot => Snapshot,
    Plan => Plan,
    Advice => Advice,
}

impl Report for Survey {
    fn answer(&self) -> Answer<'_> {
        Answer::Surveys(std::slice::from_ref(self))
    }
}

impl Report for Diagnosis {
    fn answer(&self) -> Answer<'_> {
        Answer::Diagnoses(std::slice::from_ref(self))
    }
}

impl Report for Runs<'_> {
    fn answer(&self) -> Answer<'_> {
        Answer::Runs(*self)
    }
}

impl Report for Comparison {
    fn answer(&self) -> Answer<'_> {
        Answer::Comparison(DrawnComparison { comparison: self, runs: &[] })
    }
}

impl Report for DrawnComparison<'_> {
    fn answer(&self) -> Answer<'_> {
        Answer::Comparison(*self)
    }
}

impl Report for WhatIf {
    fn answer(&self) -> Answer<'_> {
        Answer::Predictions(Predictions { answers: std::slice::from_ref(self), sections: &[] })
    }
}

impl Report for [WhatIf] {
    fn answer(&self) -> Answer<'_> {
        Answer::Predictions(Predictions { answers: self, sections: &[] })
    }
}

impl Report for Predictions<'_> {
    fn answer(&self) -> Answer<'_> {
        Answer::Predictions(*self)
    }
}

impl Report for Timeline<'_> {
    fn answer(&self) -> Answer<'_> {
        Answer::Timeline(*self)
    }
}

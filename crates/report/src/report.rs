//! The one trait that renders every answer.

use std::io::Write;

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

use crate::Format;
use crate::answer::{Answer, DrawnComparison, Predictions, Timeline};
use crate::error::RenderError;
use crate::format::Style;
use crate::runs::Runs;
use crate::text::plan::Plan;

/// A result that can be rendered in every format that supports it.
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
    /// The answer to render.
    fn answer(&self) -> Answer<'_>;

    /// The answer as text.
    ///
    /// # Errors
    /// If the format does not support this kind of answer.
    fn render(&self, format: Format, style: &Style) -> Result<String, RenderError> {
        let mut bytes = Vec::new();
        self.write(format, style, &mut bytes)?;
        String::from_utf8(bytes).map_err(RenderError::Text)
    }

    /// Streams the answer: a timeline may not fit into memory.
    ///
    /// # Errors
    /// If the format does not support this kind of answer, and those of the writer.
    fn write(&self, format: Format, style: &Style, out: &mut dyn Write) -> Result<(), RenderError> {
        format.write(&self.answer(), style, out)
    }
}

impl<R: Report + ?Sized> Report for &R {
    fn answer(&self) -> Answer<'_> {
        (**self).answer()
    }
}

/// `impl Report` for answers that are passed on by reference.
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
    [Explanation] => Explanations,
    Drawn => Drawn,
    Gate => Gate,
    FleetAnswer => Fleet,
    RankSummary => Rank,
    History => History,
    Benchmark => Benchmark,
    Topology => Topology,
    NcclLog => NcclLog,
    CompileLog => CompileLog,
    FlightRecorder => FlightRecorder,
    Trial => Trial,
    Snapshot => Snapshot,
    Plan => Plan,
    Reference => Reference,
    Advice => Advice,
}

impl Report for Vec<Explanation> {
    fn answer(&self) -> Answer<'_> {
        Answer::Explanations(self)
    }
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

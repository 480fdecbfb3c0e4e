//! For programs: one object, or `runs` for several inputs.

use std::io;

use busbound_diagnosis::{Diagnosis, SURVEYS_SCHEMA, Surveys, WHATIFS_SCHEMA, WhatIfs};
use busbound_fleet::{DIAGNOSES_SCHEMA, Diagnoses, RankSummary};
use busbound_whatif::plan::PLAN_SCHEMA;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

use crate::answer::Answer;
use crate::error::RenderError;
use crate::format::{FormatSpec, Render, Scope};
use crate::runs::Runs;
use crate::text::plan::{Plan, plan};
use crate::{Format, Predictions};

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "json",
    suffixes: &["json"],
    about: "",
    scope: Scope::General,
    render: Render::Text(|answer, _| text(answer)),
};

/// One object for one input; `{"schema": …, "runs": […]}` for several.
fn text(answer: &Answer<'_>) -> Result<String, RenderError> {
    match answer {
        Answer::Surveys([one]) => pretty(one),
        Answer::Surveys(runs) => pretty(&Surveys { schema: SURVEYS_SCHEMA, runs }),
        Answer::Diagnoses(all) => diagnoses_as_json(all),
        Answer::Drawn(drawn) => pretty(&drawn.diagnosis),
        Answer::Runs(runs) => runs_as_json(runs),
        Answer::Comparison(drawn) => pretty(drawn.comparison),
        Answer::Predictions(Predictions { answers: [one], .. }) => pretty(one),
        Answer::Predictions(Predictions { answers, .. }) => {
            pretty(&WhatIfs { schema: WHATIFS_SCHEMA, runs: answers })
        }
        // A later gate can use it as its baseline if it has one run.
        Answer::Gate(gate) => pretty(gate),
        Answer::Fleet(fleet) => pretty(fleet),
        Answer::Rank(summary) => rank_as_json(summary),
        Answer::History(history) => pretty(history),
        Answer::Benchmark(bench) => pretty(bench),
        Answer::Topology(topology) => pretty(topology),
        Answer::NcclLog(log) => pretty(log),
        Answer::CompileLog(log) => pretty(log),
        Answer::FlightRecorder(read) => pretty(read),
        Answer::Trial(trial) => pretty(trial),
        Answer::Snapshot(snapshot) => one_line(snapshot),
        Answer::Plan(plan) => plan_as_json(plan),
        Answer::Reference(list) => pretty(list),
        Answer::Explanations([one]) => pretty(one),
        Answer::Explanations(all) => pretty(all),
        Answer::Advice(_) | Answer::Timeline(_) => Err(answer.not_available(Format::Json)),
    }
}

fn pretty(answer: &impl Serialize) -> Result<String, RenderError> {
    written(answer, PrettyFormatter::new())
}

pub(crate) fn one_line(answer: &impl Serialize) -> Result<String, RenderError> {
    written(answer, CompactFormatter)
}

fn written(answer: &impl Serialize, layout: impl Formatter) -> Result<String, RenderError> {
    let mut text = Vec::new();
    answer.serialize(&mut Serializer::with_formatter(&mut text, Unsigned(layout)))?;
    text.push(b'\n');
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A layout whose zeros have no sign: the sum of no numbers is -0.0, which reads as a small negative number.
struct Unsigned<F>(F);

/// Leaves these to the layout.
macro_rules! as_in_the_layout {
    ($($method:ident($($argument:ident: $of:ty),*);)+) => {
        $(fn $method<W: ?Sized + io::Write>(&mut self, writer: &mut W $(, $argument: $of)*) -> io::Result<()> {
            self.0.$method(writer $(, $argument)*)
        })+
    };
}

impl<F: Formatter> Formatter for Unsigned<F> {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        self.0.write_f64(writer, if value == 0.0 { 0.0 } else { value })
    }

    fn write_f32<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        self.0.write_f32(writer, if value == 0.0 { 0.0 } else { value })
    }

    as_in_the_layout! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }
}

fn diagnoses_as_json(all: &[Diagnosis]) -> Result<String, RenderError> {
    match all {
        [one] => pretty(one),
        runs => pretty(&Diagnoses { schema: DIAGNOSES_SCHEMA, runs, fleet: None, unread: &[] }),
    }
}

/// Several inputs: `runs`, `fleet` if they are ranks of one run, and `unread` if some could not be read.
fn runs_as_json(runs: &Runs<'_>) -> Result<String, RenderError> {
    if runs.is_one() {
        return diagnoses_as_json(runs.all);
    }
    let (schema, fleet) = (DIAGNOSES_SCHEMA, runs.fleet);
    pretty(&Diagnoses { schema, runs: runs.all, fleet, unread: runs.unread })
}

/// The summary of a rank on one line: jobs have many ranks, and only programs read this.
pub(crate) fn rank_as_json(rank: &RankSummary) -> Result<String, RenderError> {
    one_line(rank)
}

#[derive(Serialize)]
struct PlanObject<'a> {
    schema: &'static str,
    plan: &'static str,
    statement: String,
    formulas: &'static [&'static str],
    result: &'a Plan,
}

fn plan_as_json(answer: &Plan) -> Result<String, RenderError> {
    let text = plan(answer);
    pretty(&PlanObject {
        schema: PLAN_SCHEMA,
        plan: text.kind,
        statement: text.statement,
        formulas: text.formulas,
        result: answer,
    })
}

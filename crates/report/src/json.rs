//! For programs: one object, or `runs` for several inputs.

use busbound_diagnosis::{
    Benchmark, Comparison, Diagnosis, Gate, SURVEYS_SCHEMA, Survey, Surveys, WHATIFS_SCHEMA, WhatIf, WhatIfs,
};
use busbound_fleet::{DIAGNOSES_SCHEMA, Diagnoses, FleetAnswer, RankSummary};
use busbound_machine::live::Snapshot;
use busbound_machine::topology::Topology;
use busbound_whatif::plan::PLAN_SCHEMA;
use serde::Serialize;

use crate::runs::Runs;
use crate::text::plan::{Plan, plan};

fn pretty(answer: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(answer)? + "\n")
}

/// The survey of one input as one object; of several as `{"schema": …, "runs": […]}`.
///
/// # Errors
/// None in practice: the structure holds nothing that JSON cannot.
pub fn surveys_as_json(surveys: &[Survey]) -> serde_json::Result<String> {
    match surveys {
        [one] => pretty(one),
        runs => pretty(&Surveys { schema: SURVEYS_SCHEMA, runs }),
    }
}

/// As [`surveys_as_json`], for diagnoses.
///
/// # Errors
/// None in practice.
pub fn diagnoses_as_json(all: &[Diagnosis]) -> serde_json::Result<String> {
    match all {
        [one] => pretty(one),
        runs => pretty(&Diagnoses { schema: DIAGNOSES_SCHEMA, runs, fleet: None, unread: &[] }),
    }
}

/// Several inputs: `runs`, `fleet` where they are ranks of one run, and `unread` where some could not be read.
///
/// # Errors
/// None in practice.
pub fn runs_as_json(runs: &Runs<'_>) -> serde_json::Result<String> {
    if runs.is_one() {
        return diagnoses_as_json(runs.all);
    }
    let (schema, fleet) = (DIAGNOSES_SCHEMA, runs.fleet);
    let object = Diagnoses { schema, runs: runs.all, fleet, unread: runs.unread };
    pretty(&object)
}

/// The ranks of one run as one object, which `busbound merge` takes again.
///
/// # Errors
/// None in practice.
pub fn fleet_as_json(fleet: &FleetAnswer) -> serde_json::Result<String> {
    pretty(fleet)
}

/// What is kept of a rank: one line, because there are many and nobody reads them.
///
/// # Errors
/// None in practice.
pub fn rank_as_json(rank: &RankSummary) -> serde_json::Result<String> {
    Ok(serde_json::to_string(rank)? + "\n")
}

/// A comparison as one object.
///
/// # Errors
/// None in practice.
pub fn comparison_as_json(comparison: &Comparison) -> serde_json::Result<String> {
    pretty(comparison)
}

/// A gate as one object; of one run, it can be a later gate's baseline.
///
/// # Errors
/// None in practice.
pub fn gate_as_json(gate: &Gate) -> serde_json::Result<String> {
    pretty(gate)
}

#[derive(Serialize)]
struct PlanObject<'a> {
    schema: &'static str,
    plan: &'static str,
    statement: String,
    formulas: &'static [&'static str],
    result: &'a Plan,
}

/// A plan as one object.
///
/// # Errors
/// None in practice.
pub fn plan_as_json(answer: &Plan) -> serde_json::Result<String> {
    let text = plan(answer);
    let object = PlanObject {
        schema: PLAN_SCHEMA,
        plan: text.kind,
        statement: text.statement,
        formulas: text.formulas,
        result: answer,
    };
    pretty(&object)
}

/// A machine as one object.
///
/// # Errors
/// None in practice.
pub fn topology_as_json(topology: &Topology) -> serde_json::Result<String> {
    pretty(topology)
}

/// One interval as one line: what `--log` keeps and `--replay` reads.
///
/// # Errors
/// None in practice.
pub fn top_as_json_line(snapshot: &Snapshot) -> serde_json::Result<String> {
    Ok(serde_json::to_string(snapshot)? + "\n")
}

/// A benchmark as one object.
///
/// # Errors
/// None in practice.
pub fn bench_as_json(bench: &Benchmark) -> serde_json::Result<String> {
    pretty(bench)
}

/// Predictions: of one input as one object, of several as `runs`.
///
/// # Errors
/// None in practice.
pub fn whatif_as_json(all: &[WhatIf]) -> serde_json::Result<String> {
    match all {
        [one] => pretty(one),
        runs => pretty(&WhatIfs { schema: WHATIFS_SCHEMA, runs }),
    }
}

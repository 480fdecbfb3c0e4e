//! Is the GPU waiting for the bus, why, and what to change?

use busbound::diagnosis::{FindingId, LimitationId};
use busbound::fleet::Unread;
use busbound::{Bound, Diagnosis, RunGroup, Show};
use serde_json::{Value, json};

use super::super::fields::Field;
use super::runs::{ONE_OR_MORE, analysis_fields, paths_field, wall_field};
use super::{Asked, Tool, ToolAnswer, json_of, members, text_of};

pub(super) const TOOL: Tool = Tool {
    name: "diagnose",
    title: "Find out whether the GPU waits for the bus, and what to change",
    about: "Says what bounds a run (transfer, communication, compute, launch, host, sync, input), and what to change: findings \
            with their evidence, fix and gain per step. `inconclusive` has the reasons if the trace cannot tell.",
    fields,
    call,
};

const FINDING: [&str; 10] = [
    "id",
    "title",
    "severity",
    "saves_ms_per_step",
    "saving_basis",
    "seen",
    "fix",
    "fix_code",
    "precondition",
    "without_code",
];

const FLEET: [&str; 10] = [
    "statement",
    "stragglers",
    "job",
    "findings",
    "verdicts",
    "not_one_run",
    "arrivals",
    "pipeline",
    "steps",
    "limitations",
];

/// What makes figures less certain, though there is a verdict.
const WEAKENING: [LimitationId; 16] = [
    LimitationId::Lost,
    LimitationId::GpuTail,
    LimitationId::RuntimeCalls,
    LimitationId::Correlation,
    LimitationId::KernelRecords,
    LimitationId::CallRecords,
    LimitationId::GraphWork,
    LimitationId::Steps,
    LimitationId::StepsByPeriod,
    LimitationId::Coverage,
    LimitationId::UnlikeGpus,
    LimitationId::LinkWrong,
    LimitationId::NoKernels,
    LimitationId::LostRows,
    LimitationId::NoEnd,
    LimitationId::CpuOnly,
];

fn fields() -> Vec<Field> {
    let mut fields = vec![paths_field(1, ONE_OR_MORE)];
    fields.extend(analysis_fields());
    fields.push(wall_field());
    fields
}

fn call(asked: &Asked<'_>) -> Result<ToolAnswer, String> {
    let (machine, options) = (asked.machine()?, asked.options()?);
    let mut runs: Vec<Diagnosis> = Vec::new();
    let unread = asked.each_run(|run| runs.push(run.diagnose(&machine, &options)))?;
    if let ([one], []) = (runs.as_slice(), unread.as_slice()) {
        return Ok(ToolAnswer { text: text_of(one)?, parts: parts_of(one)? });
    }
    of_several(runs, unread)
}

fn parts_of(one: &Diagnosis) -> Result<Vec<(&'static str, Value)>, String> {
    let mut json = json_of(one)?;
    let findings: Vec<Value> = one.findings.iter().map(|finding| finding_of(&json!(finding))).collect();
    let mut parts = vec![
        ("path", json!(one.source.path)),
        ("verdict", json["verdict"].take()),
        ("confidence", json!(confidence(one))),
        ("inconclusive", inconclusive(one)),
        ("step_ms", json!(one.window.baseline_ms)),
        ("unit", json!(one.unit())),
        ("findings", Value::Array(findings)),
        ("next", next(one)),
    ];
    parts.extend(members(
        &mut json,
        &["prize", "limitations", "bounds", "machine", "copies", "idle", "collectives", "host"],
    ));
    Ok(parts)
}

/// Without its evidence in numbers, which `seen` has in words.
fn finding_of(finding: &Value) -> Value {
    let mut kept: serde_json::Map<String, Value> = FINDING
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), finding.get(*name)?.clone())))
        .filter(|(_, value)| !value.is_null())
        .collect();
    // As `whatif` takes it.
    if let Some(apply) =
        finding.get("candidate").filter(|list| list.as_array().is_some_and(|list| !list.is_empty()))
    {
        kept.insert("apply".to_owned(), apply.clone());
    }
    Value::Object(kept)
}

/// How far the verdict can be trusted: `none`, `limited` or `high`.
fn confidence(one: &Diagnosis) -> &'static str {
    let is_weak = one.limitations.iter().any(|limitation| WEAKENING.contains(&limitation.id));
    match one.verdict.bound {
        Bound::Unknown => "none",
        _ if is_weak || !one.source.complete => "limited",
        _ => "high",
    }
}

/// Why there is no verdict; `null` if there is one.
fn inconclusive(one: &Diagnosis) -> Value {
    if one.verdict.bound != Bound::Unknown {
        return Value::Null;
    }
    let limitations = one.limitations.iter().map(|limitation| limitation.text.clone());
    let reasons: Vec<String> = std::iter::once(one.verdict.because.clone()).chain(limitations).collect();
    json!({ "reasons": reasons, "limitation": one.verdict.withheld })
}

/// What to ask next.
fn next(one: &Diagnosis) -> Value {
    let path = &one.source.path;
    if one.verdict.bound == Bound::Unknown {
        return json!([{ "tool": "survey", "arguments": { "paths": [path] }, "why": "what to record next time" }]);
    }
    let mut next = Vec::new();
    let first = one.findings.first().map(|finding| (finding.id, json!(finding)["candidate"].clone()));
    if let Some((id, apply)) = first {
        if apply.as_array().is_some_and(|list| !list.is_empty()) {
            let arguments = json!({ "paths": [path], "apply": apply });
            next.push(json!({ "tool": "whatif", "arguments": arguments, "why": "predict the first fix" }));
        }
        next.push(explain(id));
    } else {
        next.push(
            json!({ "tool": "whatif", "arguments": { "paths": [path] }, "why": "try the changes that fit" }),
        );
    }
    Value::Array(next)
}

fn explain(id: FindingId) -> Value {
    json!({ "tool": "explain", "arguments": { "id": id.as_str() }, "why": "what it means and how to fix it" })
}

fn of_several(runs: Vec<Diagnosis>, unread: Vec<Unread>) -> Result<ToolAnswer, String> {
    let brief = |one: &Diagnosis| {
        json!({
            "path": one.source.path,
            "rank": one.rank.as_ref().map(|rank| rank.rank),
            "verdict": one.verdict.bound,
            "statement": one.verdict.statement,
            "confidence": confidence(one),
            "step_ms": one.window.baseline_ms,
            "findings": one.findings.iter().map(|finding| finding.id).collect::<Vec<_>>(),
        })
    };
    let briefs: Vec<Value> = runs.iter().map(brief).collect();
    let undecided: Vec<String> = runs
        .iter()
        .filter(|one| one.verdict.bound == Bound::Unknown)
        .map(|one| format!("{}: {}", one.source.path, one.verdict.because))
        .collect();
    let undecided = if undecided.is_empty() { Value::Null } else { json!({ "reasons": undecided }) };
    let unread_list = json!(unread);
    let group = RunGroup::of(runs, unread, None, Show::Few);
    let mut parts = Vec::new();
    if let Some(fleet) = group.fleet() {
        let chosen = members(&mut json_of(fleet)?, &FLEET);
        let chosen = chosen.into_iter().map(|(name, value)| (name.to_owned(), value));
        parts.push(("ranks", Value::Object(chosen.collect())));
    }
    parts.push(("runs", Value::Array(briefs)));
    parts.push(("inconclusive", undecided));
    parts.push(("unread", unread_list));
    Ok(ToolAnswer { text: text_of(&group)?, parts })
}

//! How long would a step take with a change?

use busbound::diagnosis::job_what_if;
use busbound::report::Predictions;
use busbound::whatif::replay::Change;
use busbound::{Machine, Options, WhatIf};
use serde_json::{Value, json};

use super::super::fields::{Field, Kind};
use super::runs::{ONE_OR_MORE, analysis_fields, paths_field, wall_field};
use super::{Asked, Tool, ToolAnswer, json_of, members, text_of};
use crate::args::names::parse_change;

pub(super) const TOOL: Tool = Tool {
    name: "whatif",
    title: "Predict the step time after a change",
    about: "Predicts the step time after a change, as a range, by replaying the trace with the change applied. Without `apply` it \
            tries the changes that fit the trace, best first. Use it before you change the program.",
    fields,
    call,
};

const MEMBERS: [&str; 12] = [
    "path",
    "statement",
    "baseline_ms",
    "unit",
    "scenarios",
    "replay_error",
    "unexplained",
    "notes",
    "recorded_ms",
    "link",
    "rank",
    "ranks",
];

fn fields() -> Vec<Field> {
    let changes: Vec<String> = busbound::whatif::replay::all_changes()
        .map(|about| format!("{} ({})", about.spelling, about.help))
        .collect();
    let apply = format!("Changes, applied together in this order: {}.", changes.join("; "));
    let rank = "Make the changes only on this rank, and predict the step of the whole job: give the traces of all ranks.";
    let mut fields = vec![
        paths_field(1, ONE_OR_MORE),
        Field::new("apply", Kind::Texts { least: 1 }, &apply),
        Field::new("rank", Kind::Whole, rank),
    ];
    fields.extend(analysis_fields());
    fields.push(wall_field());
    fields
}

/// What is asked of every run.
struct Question {
    machine: Machine,
    options: Options,
    scenarios: Vec<Vec<Change>>,
}

fn call(asked: &Asked<'_>) -> Result<ToolAnswer, String> {
    let changes: Vec<Change> =
        asked.arguments.texts("apply").into_iter().map(parse_change).collect::<Result<_, _>>()?;
    let question = Question {
        machine: asked.machine()?,
        options: asked.options()?,
        scenarios: if changes.is_empty() { Vec::new() } else { vec![changes] },
    };
    let (answers, refused) = match asked.arguments.whole("rank") {
        Some(rank) => of_job(asked, &question, u32::try_from(rank).unwrap_or(u32::MAX))?,
        None => of_each(asked, &question)?,
    };
    // A trace that cannot be replayed is an answer, with its reason.
    let inconclusive = json!({ "inconclusive": { "reasons": refused } });
    if answers.is_empty() {
        let text = format!("Inconclusive: {}", refused.join("; "));
        return Ok(ToolAnswer { text, parts: members(&mut { inconclusive }, &["inconclusive"]) });
    }
    let text = text_of(&Predictions { answers: &answers, sections: &[] })?;
    let mut parts = match answers.as_slice() {
        [one] => members(&mut json_of(one)?, &MEMBERS),
        several => vec![("runs", several.iter().map(brief).collect::<Result<Value, String>>()?)],
    };
    if !refused.is_empty() {
        parts.extend(members(&mut { inconclusive }, &["inconclusive"]));
    }
    Ok(ToolAnswer { text, parts })
}

fn brief(one: &WhatIf) -> Result<Value, String> {
    let chosen = members(&mut json_of(one)?, &["path", "statement", "baseline_ms", "scenarios"]);
    Ok(Value::Object(chosen.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
}

/// Predictions, and why some traces have none.
type Replayed = (Vec<WhatIf>, Vec<String>);

fn of_each(asked: &Asked<'_>, question: &Question) -> Result<Replayed, String> {
    let (mut answers, mut refused) = (Vec::new(), Vec::new());
    let unread = asked.each_run(|run| {
        match run.what_if(&question.machine, &question.options, &question.scenarios) {
            Ok(answer) => answers.push(answer),
            Err(why) => refused.push(format!("{}: {why}", run.source().path)),
        }
    })?;
    refused.extend(unread.into_iter().map(|one| one.why));
    Ok((answers, refused))
}

fn of_job(asked: &Asked<'_>, question: &Question, rank: u32) -> Result<Replayed, String> {
    let (mut ranks, mut refused) = (Vec::new(), Vec::new());
    let unread = asked.each_run(|run| {
        match run.job_member(&question.machine, &question.options, &question.scenarios) {
            Ok(member) => ranks.push(member),
            Err(why) => refused.push(format!("{}: {why}", run.source().path)),
        }
    })?;
    refused.extend(unread.into_iter().map(|one| one.why));
    if ranks.is_empty() {
        return Ok((Vec::new(), refused));
    }
    let answer = job_what_if(ranks, rank).map_err(|error| error.to_string())?;
    Ok((vec![answer], refused))
}

//! What is in a trace, and what is missing?

use std::path::PathBuf;

use busbound::Survey;
use serde_json::{Value, json};

use super::super::fields::Field;
use super::runs::{ONE_OR_MORE, paths_field};
use super::{Asked, Tool, ToolAnswer, json_of, members, text_of};
use crate::commands::survey::beside_traces;
use crate::failure::Failure;
use crate::io::kind::{FileKind, files_beside_traces};
use crate::request::{flight_recorder, read_compile_logs, read_nccl_logs};

pub(super) const TOOL: Tool = Tool {
    name: "survey",
    title: "List what a trace contains, and what is missing",
    about: "Lists what a profiler trace contains and what is missing: GPUs, steps, event counts, what was lost, and what to \
            record next time. Also reads logs of NCCL_DEBUG=INFO and TORCH_LOGS=graph_breaks,recompiles, and dumps of \
            PyTorch's flight recorder. Start here.",
    fields,
    call,
};

/// In the order of importance.
const MEMBERS: [&str; 14] = [
    "headline",
    "source",
    "recorded",
    "missing",
    "steps",
    "gpus",
    "rank",
    "copies",
    "kinds",
    "devices",
    "span",
    "versions",
    "settings",
    "profiler_messages",
];

fn fields() -> Vec<Field> {
    vec![paths_field(1, ONE_OR_MORE)]
}

fn call(asked: &Asked<'_>) -> Result<ToolAnswer, String> {
    if let Some(answer) = not_a_trace(asked)? {
        return Ok(answer);
    }
    let mut surveys: Vec<Survey> = Vec::new();
    let unread = asked.each_run(|run| surveys.push(run.survey()))?;
    let text = text_of(&surveys.as_slice())?;
    let mut parts = match surveys.as_slice() {
        [one] => members(&mut json_of(one)?, &MEMBERS),
        several => vec![("runs", several.iter().map(brief).collect())],
    };
    if !unread.is_empty() {
        parts.push(("unread", json!(unread)));
    }
    parts.push((
        "next",
        json!([{ "tool": "diagnose", "arguments": { "paths": asked.arguments.texts("paths") } }]),
    ));
    Ok(ToolAnswer { text, parts })
}

fn brief(one: &Survey) -> Value {
    json!({
        "path": one.source.path,
        "headline": one.headline,
        "complete": one.source.complete,
        "rank": one.rank,
        "missing": one.missing,
    })
}

/// Logs of NCCL and torch.compile and dumps of the flight recorder, which no other tool reads.
fn not_a_trace(asked: &Asked<'_>) -> Result<Option<ToolAnswer>, String> {
    let words = |failure: Failure| failure.message().unwrap_or_default();
    let inside: Result<Vec<_>, String> =
        asked.arguments.texts("paths").iter().map(|path| asked.roots.path(path)).collect();
    // Patterns and directories stand for traces, and what is outside is refused there.
    let Ok(inside) = inside else { return Ok(None) };
    let named: Vec<_> = inside.into_iter().map(|inside| inside.real).collect();
    // A link in a directory may lead out of it.
    let allowed = |path: &PathBuf| Some(asked.roots.inside(path)?.real);
    let paths: Vec<_> = files_beside_traces(&named).iter().filter_map(allowed).collect();
    let answer = |text: String, result: Value| ToolAnswer { text, parts: vec![("result", result)] };
    match beside_traces(&paths).map_err(words)? {
        None => Ok(None),
        Some(FileKind::NcclLog) => {
            let log = read_nccl_logs(&paths).map_err(words)?;
            Ok(Some(answer(text_of(&log)?, json_of(&log)?)))
        }
        Some(FileKind::CompileLog) => {
            let log = read_compile_logs(&paths).map_err(words)?;
            Ok(Some(answer(text_of(&log)?, json_of(&log)?)))
        }
        Some(_) => {
            let dumps = flight_recorder(&paths).map_err(words)?;
            Ok(Some(answer(text_of(&dumps)?, json_of(&dumps)?)))
        }
    }
}

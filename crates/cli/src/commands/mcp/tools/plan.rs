//! Estimates of runs that have not been launched. The questions and their options are those of the command, so that there is
//! one definition of each.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, Command, FromArgMatches, Subcommand};
use serde_json::Value;

use super::super::fields::{Field, Kind};
use super::{Asked, Tool, ToolAnswer, json_of, members, text_of};
use crate::args::plan::PlanCommand;
use crate::commands::plan::{plan_with, seen_in};
use crate::failure::Failure;

pub(super) const TOOL: Tool = Tool {
    name: "plan",
    title: "Estimate a run before launching it",
    about: "Estimates a run before it is launched, from its sizes and the hardware. Questions: allreduce (how long), contention \
            (host copies and collectives on one wire), ddp (what gradient synchronization costs), kv (how the blocks of a KV \
            cache cross the bus, reload or recompute), offload (does prefetching hide weights in host memory), parallel (which parallelism), memory (what to recompute, shard or offload first if a model does not fit), budget (how much of a step some bytes take on the bus).",
    fields,
    call,
};

const QUESTION: &str = "question";
/// Groups of options about files and formats, which a client does not choose.
const NOT_OFFERED: [&str; 2] = ["Output", "Input"];
/// The options that name a machine, and so may be a file: question and option.
const MACHINES: [(&str, &str); 4] =
    [("offload", "link"), ("budget", "link"), ("kv", "machine"), ("memory", "machine")];

fn questions() -> Command {
    PlanCommand::augment_subcommands(
        Command::new("plan").no_binary_name(true).color(clap::ColorChoice::Never),
    )
}

fn offered(question: &Command) -> impl Iterator<Item = &Arg> {
    question.get_arguments().filter(|arg| {
        arg.get_long().is_some() && !arg.get_help_heading().is_some_and(|group| NOT_OFFERED.contains(&group))
    })
}

fn fields() -> Vec<Field> {
    let command = questions();
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    let about: Vec<String> = command
        .get_subcommands()
        .map(|one| {
            format!("{}: {}", one.get_name(), one.get_about().map(ToString::to_string).unwrap_or_default())
        })
        .collect();
    let mut fields = vec![Field::new(QUESTION, Kind::OneOf(names), &about.join("; ")).required()];
    // Several questions may have an option of the same name: what it means for each.
    let mut meanings: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
    for question in command.get_subcommands() {
        for arg in offered(question) {
            let of = meanings.entry(arg.get_id().as_str()).or_default().entry(about_of(arg)).or_default();
            of.push(question.get_name());
            kinds
                .entry(arg.get_id().as_str())
                .and_modify(|kind| *kind = wider(kind, arg))
                .or_insert(kind_of(arg));
        }
    }
    for (name, by_meaning) in &meanings {
        let about: Vec<String> =
            by_meaning.iter().map(|(meaning, of)| format!("{}: {meaning}", of.join(", "))).collect();
        let kind = kinds.get(name).cloned().unwrap_or(Kind::Scalars);
        fields.push(Field::new(name, kind, &about.join(" | ")));
    }
    fields
}

fn kind_of(arg: &Arg) -> Kind {
    match (takes_value(arg), arg.get_value_delimiter()) {
        (false, _) => Kind::Flag,
        (true, None) => Kind::Scalar,
        (true, Some(_)) => Kind::Scalars,
    }
}

/// What two questions take, if they have an option of the same name.
fn wider(kind: &Kind, arg: &Arg) -> Kind {
    match kind_of(arg) {
        Kind::Scalars => Kind::Scalars,
        _ => kind.clone(),
    }
}

/// What an option means, and whether it must be given.
fn about_of(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let default: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    match (arg.is_required_set(), default.is_empty()) {
        (true, _) => format!("{help} (required)"),
        (false, false) if takes_value(arg) => format!("{help} [default: {}]", default.join(",")),
        _ => help,
    }
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn call(asked: &Asked<'_>) -> Result<ToolAnswer, String> {
    let command = questions();
    let name = asked.arguments.text(QUESTION).unwrap_or_default();
    let question = command.find_subcommand(name).ok_or("unknown question")?;
    let mut words = vec![name.to_owned()];
    for (name, value) in asked.arguments.iter().filter(|(name, _)| *name != QUESTION) {
        let arg = offered(question).find(|arg| arg.get_id().as_str() == name);
        let arg = arg.ok_or_else(|| format!("{} does not take `{name}`", question.get_name()))?;
        let is_machine = MACHINES.contains(&(question.get_name(), name.as_str()));
        words.extend(word_of(
            arg,
            value,
            |name| if is_machine { asked.known_machine(name) } else { Ok(name) },
        )?);
    }
    let parsed =
        command.clone().try_get_matches_from(words).and_then(|found| PlanCommand::from_arg_matches(&found));
    let parsed = parsed.map_err(|error| first_line(&error.to_string()))?;
    let plan = plan_with(&parsed, |path| {
        let inside = asked.roots.path(&path.to_string_lossy()).map_err(Failure::Usage)?;
        seen_in(&inside.real)
    });
    let plan = plan.map_err(|failure| failure.message().unwrap_or_default())?;
    let parts = members(&mut json_of(&plan)?, &["plan", "statement", "result", "formulas"]);
    Ok(ToolAnswer { text: text_of(&plan)?, parts })
}

/// `--name=value`, so that no value is taken for an option.
fn word_of(
    arg: &Arg,
    value: &Value,
    checked: impl FnOnce(String) -> Result<String, String>,
) -> Result<Option<String>, String> {
    let name = arg.get_long().unwrap_or_default();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let value = match value {
        Value::Bool(given) if !takes_value(arg) => return Ok(given.then(|| format!("--{name}"))),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(","),
        other => text(other),
    };
    if !takes_value(arg) {
        return Err(format!("`{}` must be true or false", arg.get_id()));
    }
    Ok(Some(format!("--{name}={}", checked(value)?)))
}

/// Clap's message without its usage and tips.
fn first_line(message: &str) -> String {
    let end = message.find("\n\n").unwrap_or(message.len());
    message[..end].trim_start_matches("error: ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_about_files_and_formats_are_not_offered() {
        let fields = fields();
        let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        for name in ["output", "open", "format", "json", "verbose", "quiet", "emit", "threads", "memory"] {
            assert!(!names.contains(&name), "{name}");
        }
        for name in ["params", "ranks", "link", "layers", "bytes", "trace", "gpu", "no_nvls"] {
            assert!(names.contains(&name), "{name}");
        }
    }
}

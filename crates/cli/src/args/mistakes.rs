//! What does a person read who mistyped a flag or a command? Clap's message, with tips that help.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags that people try, and what does it here.
const TRIED: [(&str, &str); 5] = [
    ("--html", "for a page, use -o FILE.html or --open"),
    ("--page", "for a page, use -o FILE.html or --open"),
    ("--markdown", "for Markdown, use -o FILE.md or --format markdown"),
    ("--md", "for Markdown, use -o FILE.md or --format markdown"),
    ("--no-color", "set NO_COLOR=1, or write to a file with -o"),
];

/// The same for single commands: the command, the flag, and what does it there.
const TRIED_IN: [(&str, &str, &str); 3] = [
    ("plan offload", "--machine", "the machine is given with --link: a GPU, a link, a rate or machine.json"),
    ("plan budget", "--machine", "the machine is given with --link: a GPU, a link, a rate or machine.json"),
    ("plan parallel", "--machine", "the machine is given with --gpu or --topology"),
];

/// What can be given instead of a missing flag: the command, the flag, and the others.
const INSTEAD: [(&str, &str, &str); 4] = [
    (
        "plan offload",
        "--layers",
        "or take them from a run with --trace FILE; or give models with --gpu-memory SIZE --model NAME=LAYERSxSIZE:MS",
    ),
    ("plan allreduce", "--params", "or give --bytes SIZE instead of --params"),
    ("plan ddp", "--params", "or give --bytes SIZE instead of --params"),
    ("plan kv", "--block-bytes", "or give --layers, --kv-heads and --head-dim instead of --block-bytes"),
];

/// Replaces clap's tip to pass a flag as a value, which nobody means.
pub(crate) fn with_tips(mut error: clap::Error) -> clap::Error {
    let tip = match (error.kind(), typed(&error)) {
        (ErrorKind::UnknownArgument, Some(flag)) => {
            let here = TRIED_IN.iter().filter(|(command, ..)| is_of(&error, command));
            let mut tried = here.map(|(_, tried, tip)| (*tried, *tip)).chain(TRIED);
            tried.find(|(tried, _)| *tried == flag).map(|(_, tip)| tip.to_owned())
        }
        (ErrorKind::MissingRequiredArgument, _) => match instead(&error) {
            Some(tip) => Some(tip.to_owned()),
            None => return error,
        },
        (ErrorKind::InvalidSubcommand, Some(word))
            if error.get(ContextKind::SuggestedSubcommand).is_none() =>
        {
            Some(format!("no file or directory is named '{word}'; to diagnose a trace, give its path"))
        }
        (ErrorKind::TooFewValues, _) => Some("give two or more, separated by spaces".to_owned()),
        (ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand, _) => None,
        _ => return error,
    };
    only_best(&mut error);
    if tip.is_some() {
        error.remove(ContextKind::SuggestedArg);
    }
    let others = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        _ => Vec::new(),
    };
    let others = others.into_iter().filter(|tip| !tip.to_string().contains("as a value"));
    let tips: Vec<StyledStr> = others.chain(tip.map(StyledStr::from)).collect();
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Whether the error is about this command, by the usage that clap shows with it.
fn is_of(error: &clap::Error, command: &str) -> bool {
    match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string().contains(&format!("busbound {command} ")),
        _ => false,
    }
}

/// What can be given instead of the flags that are missing.
fn instead(error: &clap::Error) -> Option<&'static str> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_missing = |flag: &str| missing.iter().any(|one| one.split(' ').next() == Some(flag));
    let found = INSTEAD.iter().find(|(command, flag, _)| is_of(error, command) && is_missing(flag));
    found.map(|(.., tip)| *tip)
}

/// Clap lists the best of several suggestions last.
fn only_best(error: &mut clap::Error) {
    if let Some(ContextValue::Strings(mut all)) = error.remove(ContextKind::SuggestedSubcommand) {
        all.drain(..all.len().saturating_sub(1));
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(all));
    }
}

/// Clap's message, which begins with `error:`, as every other message of the command begins.
pub(crate) fn like_our_errors(error: &clap::Error) -> String {
    error.render().ansi().to_string().replacen("error:", "busbound:", 1)
}

/// The flag or command that clap does not know.
fn typed(error: &clap::Error) -> Option<String> {
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => ContextKind::InvalidArg,
    };
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

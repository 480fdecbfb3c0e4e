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

/// Replaces clap's tip to pass a flag as a value, which nobody means.
pub(crate) fn with_tips(mut error: clap::Error) -> clap::Error {
    let tip = match (error.kind(), typed(&error)) {
        (ErrorKind::UnknownArgument, Some(flag)) => {
            let tried = TRIED.iter().find(|(tried, _)| *tried == flag);
            tried.map(|(_, tip)| (*tip).to_owned())
        }
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

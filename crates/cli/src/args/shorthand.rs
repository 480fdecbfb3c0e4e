//! `busbound PATH …` means `busbound diagnose PATH …`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::CommandFactory;

use super::Cli;

/// Inserts `diagnose` if the first argument is a path, or if flags come first and a path follows.
pub(crate) fn expand(mut args: Vec<OsString>) -> Vec<OsString> {
    let Some(first) = args.get(1) else { return args };
    let is_meant = if is_flag(first) {
        let asks_for_help = ["-h", "--help", "-V", "--version", "--"].iter().any(|flag| first == flag);
        let rest = args.iter().skip(1);
        !asks_for_help && !rest.clone().any(|arg| is_command(arg)) && rest.clone().any(|arg| is_path(arg))
    } else {
        !is_command(first) && is_path(first)
    };
    if is_meant {
        args.insert(1, "diagnose".into());
    }
    args
}

fn is_flag(arg: &OsStr) -> bool {
    arg != "-" && arg.as_encoded_bytes().starts_with(b"-")
}

fn is_command(arg: &OsStr) -> bool {
    arg == "help" || Cli::command().get_subcommands().any(|command| command.get_name() == arg)
}

/// An existing file, standard input, a pattern, or what is spelled like a file: with a slash or an ending.
fn is_path(arg: &OsStr) -> bool {
    let is_spelled_like_one =
        |text: &str| text.contains(['*', '?', '[', '/', '.']) || text.contains(std::path::MAIN_SEPARATOR);
    !is_flag(arg) && (arg == "-" || Path::new(arg).exists() || arg.to_str().is_none_or(is_spelled_like_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_diagnosed_and_mistyped_commands_are_not() {
        for (typed, wanted) in [
            ("run.json.gz", "diagnose run.json.gz"),
            ("run.json.gz --open", "diagnose run.json.gz --open"),
            ("--machine pcie4x8 run.json", "diagnose --machine pcie4x8 run.json"),
            ("- --quiet", "diagnose - --quiet"),
            ("traces/", "diagnose traces/"),
            ("rank*", "diagnose rank*"),
            // A directory of this package.
            ("src", "diagnose src"),
            ("diagnos", "diagnos"),
            ("comapre a.json b.json", "comapre a.json b.json"),
            ("survey run.json", "survey run.json"),
            ("help survey", "help survey"),
            ("--help", "--help"),
            ("-V", "-V"),
            ("--quiet survey run.json", "--quiet survey run.json"),
            ("--nonsense", "--nonsense"),
        ] {
            let words = |text: &str| -> Vec<OsString> { text.split(' ').map(OsString::from).collect() };
            let given = [vec!["busbound".into()], words(typed)].concat();
            assert_eq!(expand(given)[1..], words(wanted), "{typed}");
        }
    }
}

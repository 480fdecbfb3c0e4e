//! What did the user type? Parsed flags, nothing resolved yet.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Is your GPU waiting for the bus, where, and what do you gain by which change?
#[derive(Debug, Parser)]
#[command(name = "busbound", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 fine, 2 wrong usage, 3 nothing in the input could be read.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// What does this look like? Surveys a real trace that is built into the program.
    Demo(DemoArgs),
    /// What is in this file, and what is missing from it?
    #[command(after_help = SURVEY_EXAMPLES)]
    Survey(SurveyArgs),
}

const SURVEY_EXAMPLES: &str = "\
Reads .json and .json.gz of torch.profiler, whole, cut off or damaged: every readable event counts,
and what was lost is said with its place.

Examples:
  busbound survey run.json.gz
  busbound survey traces/                     every rank file in a directory
  zcat huge.json.gz | busbound survey -       from standard input
  busbound survey run.json --format json      for programs";

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SurveyArgs {
    /// Trace files, directories of rank files, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReadingArgs {
    /// Threads that scan [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Stop reading when a trace takes this much memory, e.g. 500MB or 8GB [default: half of what
    /// the machine has free]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// How to show the answer
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub(crate) format: Format,
    /// Write the answer to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// No progress and no remarks on standard error
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Terminal,
    Markdown,
    Json,
}

/// `500MB`, `8GB`, `1.5GiB` or plain bytes.
fn parse_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 9] = [
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("B", 1.0),
    ];
    let found = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1.0));
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value * factor < 1e18 => Ok((value * factor) as u64),
        _ => Err("give a size such as 500MB, 8GB or 2GiB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("500MB"), Ok(500_000_000));
        assert_eq!(parse_size("1.5GiB"), Ok(1_610_612_736));
        assert_eq!(parse_size("4096"), Ok(4096));
        for wrong in ["", "GB", "-1GB", "ten", "NaN", "1e30GB"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}

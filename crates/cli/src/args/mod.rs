//! What did the user type? Parsed flags, nothing resolved yet: one file for each command.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod diagnose;
pub(crate) mod export;
pub(crate) mod gate;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod shared;
pub(crate) mod summarize;
pub(crate) mod survey;
pub(crate) mod top;
pub(crate) mod topo;
pub(crate) mod values;
pub(crate) mod whatif;

use clap::{Parser, Subcommand};

/// Is your GPU waiting for the bus, where, and what do you gain by which change?
#[derive(Debug, Parser)]
#[command(name = "busbound", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 fine (also where only some of several inputs could be read), 1 a gate's requirement
does not hold, 2 wrong usage, 3 nothing in the input could be read, 4 no GPU to measure.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// What does this look like? Diagnoses a real trace that is built into the program and writes its page.
    Demo(demo::DemoArgs),
    /// Is my GPU waiting for the bus, where, what do I change, what do I gain?
    #[command(after_help = diagnose::EXAMPLES)]
    Diagnose(diagnose::DiagnoseArgs),
    /// What is worth keeping of each rank? Writes a small file for each, which merge takes.
    #[command(after_help = summarize::EXAMPLES)]
    Summarize(summarize::SummarizeArgs),
    /// How do the ranks differ? Lays the summaries of ranks together.
    #[command(after_help = merge::EXAMPLES)]
    Merge(merge::MergeArgs),
    /// What changed between two runs, or along a sweep?
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::CompareArgs),
    /// Does this run still meet its bar? Exit code 1 if not; for CI.
    #[command(after_help = gate::help())]
    Gate(gate::GateArgs),
    /// What would this run take if …?
    #[command(name = "whatif", after_help = whatif::help())]
    WhatIf(whatif::WhatIfArgs),
    /// What will a run take that I have not made, and which knobs suit it?
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    /// What is this machine: GPUs, switches, links, and what lies between them?
    #[command(after_help = topo::EXAMPLES)]
    Topo(topo::TopoArgs),
    /// What does this machine really reach? Measures its GPU and writes the profile that --machine takes.
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::BenchArgs),
    /// Record a run without touching its code.
    #[command(after_help = record::EXAMPLES)]
    Record(record::RecordArgs),
    /// What is the bus doing now?
    #[command(after_help = top::EXAMPLES)]
    Top(top::TopArgs),
    /// Hand it to the tools I already use.
    #[command(after_help = export::EXAMPLES)]
    Export(export::ExportArgs),
    /// What is in this file, and what is missing from it?
    #[command(after_help = survey::help())]
    Survey(survey::SurveyArgs),
    /// Print what a shell needs to complete busbound's command line.
    #[command(hide = true, after_help = completions::EXAMPLES)]
    Completions(completions::CompletionsArgs),
    /// Print the manual, or write its pages.
    #[command(hide = true, after_help = man::EXAMPLES)]
    Man(man::ManArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Help is wrapped to 100 columns; a line broken by hand that is longer leaves a word alone on the next one. The
    /// exit codes once had a line that read "does".
    #[test]
    fn prose_broken_by_hand_fits_the_width_that_help_is_wrapped_to() {
        let mut left = vec![Cli::command()];
        while let Some(command) = left.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            // Examples are indented, and stay in one line to be copied.
            for line in help.lines().filter(|line| !line.starts_with("  ")) {
                assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
            }
            left.extend(command.get_subcommands().cloned());
        }
    }
}

//! What did the user type? Parsed flags, nothing resolved yet: one file per command.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod diagnose;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod gate;
pub(crate) mod history;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod merge;
pub(crate) mod mistakes;
pub(crate) mod names;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod shared;
pub(crate) mod shorthand;
pub(crate) mod summarize;
pub(crate) mod survey;
pub(crate) mod top;
pub(crate) mod topo;
pub(crate) mod trial;
mod two_columns;
pub(crate) mod values;
pub(crate) mod whatif;

use clap::{Parser, Subcommand};

/// Find out whether your GPU waits for the bus, where, and what to change.
///
/// busbound reads traces of torch.profiler, Nsight Systems, JAX and `busbound record`. `busbound PATH` is short for
/// `busbound diagnose PATH`.
///
/// Settings for a project can be kept in a file named busbound.toml in the working directory or above it: machine, steps,
/// warmup, wall, [stages], and require and baseline in [gate]. Flags take precedence over it.
#[derive(Debug, Parser)]
#[command(
    name = "busbound",
    version,
    max_term_width = 100,
    override_usage = "busbound <PATH>... [OPTIONS]\n       busbound <COMMAND> [OPTIONS]",
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"),
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  busbound run.json.gz                  diagnose a trace
  busbound run.json.gz --open           open the page in the browser
  busbound compare before.json.gz after.json.gz
  busbound record -- python train.py    record a run, without code changes
  busbound try -- python train.py       run it with fast copies, and compare
  busbound demo                         try it on a built-in trace";

const EXIT_CODES: &str = "\
Exit codes:
  0  success, also if only some of several inputs could be read
  1  a requirement of the gate is not met
  2  wrong usage, or the answer could not be written
  3  no input could be read
  4  no GPU or driver";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find out whether the GPU waits for the bus, and what to change
    ///
    /// Copies are compared with the GPU's link: the one given with --machine, else the one of the GPU named in the trace,
    /// else an assumed one. The answer says which.
    ///
    /// Files that are ranks of one run are compared with each other: which ranks are stragglers, and what differs there.
    /// Other files are diagnosed separately.
    #[command(after_help = diagnose::EXAMPLES, after_long_help = diagnose::long_help())]
    Diagnose(diagnose::DiagnoseArgs),
    /// Show what changed between two runs, or along a sweep
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::CompareArgs),
    /// Predict the step time after a change
    ///
    /// Replays the trace with the change applied: copies take as long as the machine's curve says for their size and memory,
    /// the host continues where it no longer has to wait, and work waits for its data through events.
    #[command(name = "whatif", after_help = whatif::EXAMPLES, after_long_help = whatif::long_help())]
    WhatIf(whatif::WhatIfArgs),
    /// Check a run against requirements, for CI; exit code 1 if one is not met
    ///
    /// A requirement compares figures with numbers (5, 0.3, 30%) or with the baseline's figures, using + - * / ( ) and
    /// < <= > >= == !=. `baseline` is the baseline's value of the first figure in the requirement, `baseline.FIGURE` that of
    /// another figure. A figure that is not visible in the trace fails its requirement.
    #[command(after_help = gate::EXAMPLES, after_long_help = gate::long_help())]
    Gate(gate::GateArgs),
    /// Explain a finding, verdict, idle cause, figure, limitation, what-if change or term
    ///
    /// Says what it means, how it is computed and how to fix it. Answers name the id: [explain: pageable_copies].
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::ExplainArgs),
    /// List what a trace contains, and what is missing
    ///
    /// Reads complete, truncated and damaged files. Every readable event counts; the answer says what was lost, and where.
    #[command(after_help = survey::EXAMPLES, after_long_help = survey::long_help())]
    Survey(survey::SurveyArgs),
    /// Record a run without changing its code
    ///
    /// Starts CMD with a small library that records copies, kernels, calls, waits and NVTX ranges through the process's own
    /// CUPTI. Output, exit code and signals are those of CMD. Each further process that uses CUDA writes a file next to the
    /// first one, e.g. run.1234.bbt. A run that is killed loses the last second at most.
    #[command(after_help = record::EXAMPLES)]
    Record(record::RecordArgs),
    /// Run a program with its slow copies made fast, compare, and say what it gained
    ///
    /// Runs CMD as it is and with staged copies, alternating, and compares. With staging, copies of pageable memory go through pinned
    /// memory that several threads fill, instead of the driver's single thread: same bytes, same order, same errors. Nothing in the program
    /// changes, and its own memory is never pinned. What CMD prints goes to standard error. docs/try.md says when it helps.
    #[command(name = "try", after_help = trial::EXAMPLES)]
    Try(trial::TryArgs),
    /// Run a program with its slow copies made fast, without comparing
    ///
    /// As `busbound try`, once: output, exit code and signals are those of CMD. BUSBOUND_STAGE=off in the environment
    /// turns it off.
    #[command(after_help = run::EXAMPLES)]
    Run(run::RunArgs),
    /// Try busbound on a trace that is built into the program
    #[command(after_help = demo::EXAMPLES)]
    Demo(demo::DemoArgs),
    /// Write a trace for Perfetto, or as Parquet tables
    ///
    /// perfetto has every event that could be read on its own track, plus the bandwidth of the bus in both directions, why
    /// each GPU was idle, where each finding is, and the predicted timeline. parquet has the columns listed in docs/tables.md.
    #[command(after_help = export::EXAMPLES)]
    Export(export::ExportArgs),
    /// Write a small summary of each rank, for merge
    ///
    /// A summary has a few kilobytes: verdict, steps, where the time goes, copies, findings. Each rank can write its own next
    /// to its trace; only the summaries have to be collected.
    #[command(after_help = summarize::EXAMPLES)]
    Summarize(summarize::SummarizeArgs),
    /// Compare ranks by their summaries
    ///
    /// The order of the files does not matter. What merge writes with -o all.fleet.json can be merged again.
    #[command(after_help = merge::EXAMPLES)]
    Merge(merge::MergeArgs),
    /// Find out when a job became slower, on which ranks, and which part of the step
    ///
    /// Reads the summaries that `busbound summarize` wrote over days or weeks, in the order of their recording, and reports where
    /// the step time or a part of the step changes its level. Each directory is one job. A rank needs 10 recordings or more.
    #[command(after_help = history::EXAMPLES)]
    History(history::HistoryArgs),
    /// Measure this machine's GPU, and write the profile for --machine
    ///
    /// Uses at most an eighth of the free memory per buffer (up to 1 GiB, three buffers), changes no clocks and no modes,
    /// and stops on Ctrl-C with what was measured until then.
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::BenchArgs),
    /// Show this machine's GPUs, switches and links
    ///
    /// Reads the PCI tree, and NVLinks and peer access if an NVIDIA driver is loaded. Changes nothing.
    #[command(after_help = topo::EXAMPLES)]
    Topo(topo::TopoArgs),
    /// Watch the bus of this machine live
    ///
    /// Directions are the GPU's: RX is host to device, TX is device to host. Shares are of the peak that `busbound bench`
    /// measured if --machine names its profile, else of the link's nominal peak; the answer says which, and where the traffic
    /// figures come from. Changes nothing and needs no root.
    ///
    /// At a terminal this is a full screen; q, Esc or Ctrl-C quits. In a pipe it is one line per GPU and interval; with
    /// --prometheus or --otlp only the metrics are exported.
    #[command(after_help = top::EXAMPLES)]
    Top(top::TopArgs),
    /// Estimate a run before launching it
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    /// Serve busbound's answers to AI agents, over the Model Context Protocol
    ///
    /// Speaks the protocol over standard input and output: agents such as Claude Code, Cursor and VS Code start this command
    /// themselves. Tools: survey, diagnose, whatif, compare, explain, plan. Reads only below the --root directories, writes
    /// nothing and opens no connection. docs/mcp.md has the configuration of each agent.
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(mcp::McpArgs),
    /// Print a completion script for your shell
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::CompletionsArgs),
    /// Print the manual, or write its pages
    #[command(after_help = man::EXAMPLES)]
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

    /// Help is wrapped to the terminal, and at 80 columns no example or list may be wrapped: they stay aligned, and can be
    /// copied.
    #[test]
    fn examples_and_lists_fit_a_terminal_of_80_columns() {
        let mut left = vec![Cli::command()];
        while let Some(command) = left.pop() {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            for text in texts.into_iter().flatten().map(ToString::to_string) {
                for line in text.lines() {
                    assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
                    assert!(line.is_empty() || line.starts_with("  ") || line.ends_with(':'), "{line}");
                }
            }
            left.extend(command.get_subcommands().cloned());
        }
    }

    /// `-h` shows what people use; the rest is in `--help`.
    #[test]
    fn short_help_has_at_most_fourteen_flags() {
        for command in Cli::command().get_subcommands() {
            let short =
                command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_hide_short_help_set());
            let flags = short.filter(|arg| arg.get_long().is_some()).count();
            assert!(flags <= 14, "{}: {flags}", command.get_name());
        }
    }

    #[test]
    fn every_command_begins_with_a_verb_and_ends_without_a_period() {
        let command = Cli::command();
        let mut left: Vec<&clap::Command> = command.get_subcommands().collect();
        while let Some(command) = left.pop() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.starts_with(char::is_uppercase) && !about.ends_with(['.', '?']), "{about}");
            left.extend(command.get_subcommands());
        }
    }
}

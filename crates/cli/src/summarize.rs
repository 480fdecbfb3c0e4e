//! `busbound summarize`.

use std::fs;

use anyhow::Context;
use busbound_diagnosis::diagnose;
use busbound_diagnosis::quantity::plural;
use busbound_fleet::RankSummary;

use crate::args::Format;
use crate::args_fleet::SummarizeArgs;
use crate::diagnose::resolve_analysis;
use crate::failure::Failure;
use crate::machine::resolve_machine;
use crate::output::complain;
use crate::parallel::every_trace;
use crate::request::{Output, resolve_inputs};
use crate::summary_file::keep;

pub(crate) fn run(args: &SummarizeArgs) -> Result<(), Failure> {
    let output = Output::quiet_or_not(Format::Terminal, args.quiet);
    let machine = resolve_machine(args.machine.machine.as_deref())?;
    let options = resolve_analysis(&args.analysis)?;
    let inputs = resolve_inputs(&args.paths).map_err(Failure::Unreadable)?;
    let all = every_trace(&inputs, &args.jobs, &args.reading, &output, |_, trace, source| {
        RankSummary::of(&diagnose(trace, source, &machine, &options))
    })?;
    let folder = args.output.display();
    fs::create_dir_all(&args.output).with_context(|| folder.to_string()).map_err(Failure::Output)?;
    let summaries = plural(all.read.len() as u64, "summary", "summaries");
    for mut summary in all.read {
        summary.host = args.host.clone().or(summary.host);
        keep(&summary, &args.output).with_context(|| folder.to_string()).map_err(Failure::Output)?;
    }
    if !args.quiet {
        complain(&format!("{summaries} in {folder}: busbound merge {folder}"));
    }
    Ok(())
}

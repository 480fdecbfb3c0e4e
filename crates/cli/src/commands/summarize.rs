//! `busbound summarize`.

use std::fs;

use busbound::diagnosis::quantity::plural;
use busbound::fleet::RankSummary;
use busbound::{keep_summary, resolve_inputs};

use crate::args::summarize::SummarizeArgs;
use crate::failure::Failure;
use crate::io::output::warn;
use crate::io::reading::every_run;
use crate::request::{Output, resolve_analysis, resolve_machine};

pub(crate) fn run(args: &SummarizeArgs) -> Result<(), Failure> {
    let output = Output::quiet_or_not(args.quiet);
    let machine = resolve_machine(&args.machine)?;
    let options = resolve_analysis(&args.analysis)?;
    let inputs = resolve_inputs(&args.paths)?;
    let all = every_run(&inputs, &args.jobs, &args.reading, &output, |_, run| {
        RankSummary::of(&run.diagnose(&machine, &options))
    })?;
    let folder = args.output.display();
    fs::create_dir_all(&args.output).map_err(Failure::output_at(&folder))?;
    let summaries = plural(all.read.len() as u64, "summary", "summaries");
    for mut summary in all.read {
        summary.host = args.host.clone().or(summary.host);
        keep_summary(&summary, &args.output).map_err(Failure::output)?;
    }
    if !args.quiet {
        warn(&format!("{summaries} in {folder}: busbound merge {folder}"));
    }
    Ok(())
}

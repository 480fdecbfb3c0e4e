//! `busbound summarize`.

use std::fs;

use busbound::diagnosis::quantity::plural;
use busbound::fleet::RankSummary;
use busbound::{keep_summary, resolve_inputs};

use crate::args::summarize::SummarizeArgs;
use crate::failure::Failure;
use crate::io::output::warn;
use crate::io::reading::{every_run, warn_skipped};
use crate::request::{Output, resolve_analysis, resolve_machine};
use crate::warnings::{once, warn_of_misfits};

pub(crate) fn run(args: &SummarizeArgs) -> Result<(), Failure> {
    let output = Output::quiet_or_not(args.quiet);
    let machine = resolve_machine(&args.run.machine)?;
    let options = resolve_analysis(&args.run.analysis)?;
    let inputs = once(resolve_inputs(&args.paths)?);
    let all = every_run(&inputs, &args.jobs, &args.run.reading, &output, |number, run| {
        // A trace without a date was written when it was recorded, unless someone copied it since.
        let recorded = run.recorded_ms().or_else(|| inputs.list[number].written_ms());
        (run.diagnose(&machine, &options), recorded)
    })?;
    let (runs, recorded): (Vec<_>, Vec<_>) = all.read.into_iter().unzip();
    let unread: Vec<&str> = all.unread.iter().map(|file| file.why.as_str()).collect();
    warn_skipped(&unread);
    warn_of_misfits(&runs, &args.run, &output);
    let directory = args.output.display();
    fs::create_dir_all(&args.output).map_err(Failure::unwritable_at(&args.output))?;
    let summaries = plural(runs.len() as u64, "summary", "summaries");
    for (diagnosis, recorded) in runs.iter().zip(recorded) {
        let mut summary = RankSummary::of(diagnosis);
        summary.recorded_ms = recorded;
        summary.host = args.host.clone().or(summary.host);
        keep_summary(&summary, &args.output).map_err(Failure::output)?;
    }
    if !args.quiet {
        warn(&format!("wrote {summaries} to {directory}; next: busbound merge {directory}"));
    }
    Ok(())
}

//! `busbound summarize`.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Context;
use busbound_diagnosis::diagnose;
use busbound_diagnosis::quantity::plural;
use busbound_fleet::RankSummary;
use busbound_report::rank_as_json;

use crate::args::Format;
use crate::args_fleet::SummarizeArgs;
use crate::diagnose::{resolve_analysis, stem_of};
use crate::failure::Failure;
use crate::machine::resolve_machine;
use crate::output::{complain, write_file};
use crate::parallel::every_trace;
use crate::request::{Output, resolve_inputs};

pub(crate) fn run(args: &SummarizeArgs) -> Result<(), Failure> {
    let output = Output::quiet_or_not(Format::Terminal, args.quiet);
    let machine = resolve_machine(args.machine.machine.as_deref())?;
    let options = resolve_analysis(&args.analysis)?;
    let inputs = resolve_inputs(&args.paths).map_err(Failure::Unreadable)?;
    let all = every_trace(&inputs, &args.jobs, &args.reading, &output, |_, trace, source| {
        RankSummary::of(&diagnose(trace, source, &machine, &options))
    })?;
    fs::create_dir_all(&args.output)
        .with_context(|| args.output.display().to_string())
        .map_err(Failure::Output)?;
    let mut names = BTreeSet::new();
    for mut summary in all.read {
        summary.host = args.host.clone().or(summary.host);
        let text = rank_as_json(&summary).map_err(|error| Failure::Output(error.into()))?;
        write_file(&args.output.join(name_of(&summary, &mut names)), &text)?;
    }
    if !args.quiet {
        let summaries = plural(names.len() as u64, "summary", "summaries");
        complain(&format!("{summaries} in {}: busbound merge {0}", args.output.display()));
    }
    Ok(())
}

/// `rank-5.rank.json`; where no rank is told, after the trace. What this call has written is not written over.
fn name_of(summary: &RankSummary, names: &mut BTreeSet<String>) -> String {
    let stem = match &summary.rank {
        Some(rank) => format!("rank-{}", rank.rank),
        None => stem_of(summary.path.as_ref()),
    };
    let numbered = (2..).map(|n: u32| format!("{stem}-{n}.rank.json"));
    let mut candidates = std::iter::once(format!("{stem}.rank.json")).chain(numbered);
    let name = candidates.find(|name| !names.contains(name)).unwrap_or_default();
    names.insert(name.clone());
    name
}

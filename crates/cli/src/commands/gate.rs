//! `busbound gate`.

use std::path::Path;

use busbound::diagnosis::{Baseline, PerStep, Requirement};
use busbound::{Diagnosis, Format, Machine, Options, Report, Style, gate, saved_baseline, share_pipeline};

use crate::args::gate::{BarArgs, GateArgs};
use crate::failure::Failure;
use crate::io::output::{announce, save, show};
use crate::io::reading::{AllRead, each_run};
use crate::request::{
    Output, read_compile_logs, read_nccl_logs, resolve_analysis, resolve_machine, resolve_output,
};
use crate::warnings::warn_of_misfits;

pub(crate) fn run(args: &GateArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    let machine = resolve_machine(&args.run.machine)?;
    let mut options = resolve_analysis(&args.run.analysis)?;
    options.per_step.clone_from(&args.per_step);
    if !args.compile.compile_log.is_empty() {
        options.compile_log = Some(read_compile_logs(&args.compile.compile_log)?);
    }
    if !args.nccl.nccl_log.is_empty() {
        options.nccl_log = Some(read_nccl_logs(&args.nccl.nccl_log)?);
    }
    let requirements = resolve_requirements(&args.bar, &args.per_step)?;
    let baseline = args
        .bar
        .baseline
        .as_deref()
        .map(|path| baseline(path, args, &output, &machine, &options))
        .transpose()?;
    let mut runs = Vec::new();
    let all = each_run(&args.paths, &args.run.reading, &output, |run| {
        runs.push(run.diagnose(&machine, &options));
    })?;
    warn_of_misfits(&runs, &args.run, &output);
    share_pipeline(&mut runs);
    let gate = gate(&runs, &requirements, baseline.as_ref(), args.bar.partial);
    if let Some(path) = &args.reports.junit {
        save(&gate, Format::Junit, &output, path)?;
    }
    show(&gate, &output, "gate.html")?;
    if args.reports.github {
        announce(&gate.render(Format::Github, &Style::default()).map_err(Failure::output)?);
    }
    match (gate.passed, all) {
        (false, _) => Err(Failure::GateFailed),
        // A rank that cannot be read does not meet a requirement.
        (true, AllRead::No) => {
            Err(Failure::unreadable("the gate fails, because not every run could be read"))
        }
        (true, AllRead::Yes) => Ok(()),
    }
}

fn resolve_requirements(bar: &BarArgs, per_step: &[PerStep]) -> Result<Vec<Requirement>, Failure> {
    // The flag, or the file's key.
    let given =
        bar.file.as_ref().map_or("--require".to_owned(), |file| format!("require in {}", file.display()));
    if bar.require.is_empty() {
        let why =
            "nothing to check: give --require 'exposed_copy_ms < 5', or require in [gate] of busbound.toml";
        return Err(Failure::usage(why));
    }
    let parse = |text: &String| {
        Requirement::parse_with(text, per_step).map_err(|error| Failure::usage(format!("{given}: {error}")))
    };
    let requirements: Vec<Requirement> = bar.require.iter().map(parse).collect::<Result<_, _>>()?;
    if let Some(wanted) = requirements.iter().find(|wanted| wanted.needs_baseline())
        && bar.baseline.is_none()
    {
        return Err(Failure::usage(format!("{given}: {:?} needs a baseline: give --baseline", wanted.text)));
    }
    Ok(requirements)
}

/// From a trace, or from what an earlier gate saved.
fn baseline(
    path: &Path,
    args: &GateArgs,
    output: &Output,
    machine: &Machine,
    options: &Options,
) -> Result<Baseline, Failure> {
    if let Some(saved) = saved_baseline(path)? {
        return Ok(saved);
    }
    let mut runs: Vec<Diagnosis> = Vec::new();
    // --wall and the logs are about the checked run, not about its baseline.
    let mut options = options.clone();
    options.wall_ms = None;
    (options.compile_log, options.nccl_log) = (None, None);
    each_run(&[path.to_owned()], &args.run.reading, output, |run| {
        runs.push(run.diagnose(machine, &options))
    })?;
    match runs.as_slice() {
        [run] => Ok(Baseline::of(run)),
        runs => Err(Failure::usage(format!(
            "--baseline {} has {} traces: name one file",
            path.display(),
            runs.len()
        ))),
    }
}

//! `busbound gate`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use busbound_diagnosis::{Baseline, Diagnosis, GATE_SCHEMA, Options, Requirement, diagnose, gate};
use busbound_machine::Machine;
use busbound_report::{
    gate_as_github, gate_as_json, gate_as_junit, gate_as_markdown, gate_as_terminal, markdown_as_html,
};

use crate::args::{Format, GateArgs};
use crate::diagnose::resolve_analysis;
use crate::failure::Failure;
use crate::machine::resolve_machine;
use crate::output::{announce, write_answer};
use crate::reading::{AllRead, each_trace};
use crate::request::{Output, resolve_output};

pub(crate) fn run(args: &GateArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let machine = resolve_machine(args.machine.machine.as_deref())?;
    let options = resolve_analysis(&args.analysis)?;
    let requirements = resolve_requirements(args)?;
    let baseline =
        args.baseline.as_deref().map(|path| baseline(path, args, &output, &machine, &options)).transpose()?;
    let mut runs = Vec::new();
    let all = each_trace(&args.paths, &args.reading, &output, |trace, source| {
        runs.push(diagnose(trace, source, &machine, &options));
    })?;
    let gate = gate(&runs, &requirements, baseline.as_ref(), args.partial);
    let text = match output.format {
        Format::Terminal => gate_as_terminal(&gate, output.width),
        Format::Markdown => gate_as_markdown(&gate),
        Format::Html => markdown_as_html("Does the run meet its bar?", &gate_as_markdown(&gate)),
        Format::Json => gate_as_json(&gate).map_err(|e| Failure::Output(e.into()))?,
    };
    if let Some(path) = &args.junit {
        fs::write(path, gate_as_junit(&gate))
            .with_context(|| path.display().to_string())
            .map_err(Failure::Output)?;
    }
    write_answer(&text, &output)?;
    if args.github {
        announce(&gate_as_github(&gate));
    }
    match (gate.passed, all) {
        (false, _) => Err(Failure::GateFailed),
        // A rank that cannot be read has not met its bar.
        (true, AllRead::No) => Err(Failure::Unreadable(anyhow::anyhow!(
            "not every run could be read, so the gate does not pass"
        ))),
        (true, AllRead::Yes) => Ok(()),
    }
}

fn resolve_requirements(args: &GateArgs) -> Result<Vec<Requirement>, Failure> {
    let usage = |error: anyhow::Error| Failure::Usage(error.context("--require"));
    let parsed = args.require.iter().map(|text| Requirement::parse(text).map_err(|e| usage(e.into())));
    let requirements: Vec<Requirement> = parsed.collect::<Result<_, _>>()?;
    if let Some(wanted) = requirements.iter().find(|wanted| wanted.needs_baseline())
        && args.baseline.is_none()
    {
        return Err(usage(anyhow::anyhow!("{:?} speaks of a baseline: give --baseline", wanted.text)));
    }
    Ok(requirements)
}

/// Larger files are traces, in bytes.
const SAVED_GATE: u64 = 1 << 20;

/// A trace, or what an earlier gate saved.
fn baseline(
    path: &Path,
    args: &GateArgs,
    output: &Output,
    machine: &Machine,
    options: &Options,
) -> Result<Baseline, Failure> {
    let named = path.display().to_string();
    // A saved gate is small text; a trace may be neither.
    let is_small = fs::metadata(path).is_ok_and(|file| file.len() < SAVED_GATE);
    if is_small
        && let Ok(text) = fs::read_to_string(path)
        && text.trim_start().starts_with('{')
        && text.contains(GATE_SCHEMA)
    {
        return Baseline::saved(&named, &text)
            .map_err(|error| Failure::Unreadable(anyhow::anyhow!("{named} {error}")));
    }
    let mut runs: Vec<Diagnosis> = Vec::new();
    each_trace(&[path.to_owned()], &args.reading, output, |trace, source| {
        runs.push(diagnose(trace, source, machine, options));
    })?;
    match runs.as_slice() {
        [run] => Ok(Baseline::of(run)),
        runs => {
            Err(Failure::Usage(anyhow::anyhow!("--baseline {named} holds {} traces; give one", runs.len())))
        }
    }
}

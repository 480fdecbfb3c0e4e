//! `busbound gate`.

use std::path::Path;

use busbound::diagnosis::{Baseline, Requirement};
use busbound::{Diagnosis, Format, Machine, Options, Report, Style, gate, saved_baseline};

use crate::args::gate::GateArgs;
use crate::failure::Failure;
use crate::io::output::{announce, save, show};
use crate::io::reading::{AllRead, each_run};
use crate::request::{Output, resolve_analysis, resolve_machine, resolve_output};

pub(crate) fn run(args: &GateArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let machine = resolve_machine(&args.machine)?;
    let mut options = resolve_analysis(&args.analysis)?;
    options.per_step.clone_from(&args.per_step);
    let requirements = resolve_requirements(args)?;
    let baseline =
        args.baseline.as_deref().map(|path| baseline(path, args, &output, &machine, &options)).transpose()?;
    let mut runs = Vec::new();
    let all = each_run(&args.paths, &args.reading, &output, |run| {
        runs.push(run.diagnose(&machine, &options));
    })?;
    let gate = gate(&runs, &requirements, baseline.as_ref(), args.partial);
    if let Some(path) = &args.junit {
        save(&gate, Format::Junit, output.width, path)?;
    }
    show(&gate, &output, "gate.html")?;
    if args.github {
        announce(&gate.render(Format::Github, &Style::default()).map_err(Failure::output)?);
    }
    match (gate.passed, all) {
        (false, _) => Err(Failure::GateFailed),
        // A rank that cannot be read has not met its bar.
        (true, AllRead::No) => {
            Err(Failure::unreadable("not every run could be read, so the gate does not pass"))
        }
        (true, AllRead::Yes) => Ok(()),
    }
}

fn resolve_requirements(args: &GateArgs) -> Result<Vec<Requirement>, Failure> {
    let parse = |text: &String| {
        Requirement::parse_with(text, &args.per_step)
            .map_err(|error| Failure::usage(format!("--require: {error}")))
    };
    let requirements: Vec<Requirement> = args.require.iter().map(parse).collect::<Result<_, _>>()?;
    if let Some(wanted) = requirements.iter().find(|wanted| wanted.needs_baseline())
        && args.baseline.is_none()
    {
        let why = format!("--require: {:?} speaks of a baseline: give --baseline", wanted.text);
        return Err(Failure::usage(why));
    }
    Ok(requirements)
}

/// A trace, or what an earlier gate saved.
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
    each_run(&[path.to_owned()], &args.reading, output, |run| runs.push(run.diagnose(machine, options)))?;
    match runs.as_slice() {
        [run] => Ok(Baseline::of(run)),
        runs => Err(Failure::usage(format!(
            "--baseline {} holds {} traces; give one",
            path.display(),
            runs.len()
        ))),
    }
}

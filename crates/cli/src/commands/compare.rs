//! `busbound compare`.

use busbound::diagnosis::quantity::plural;
use busbound::diagnosis::{Detail, Labels, SeriesLabel};
use busbound::machine::compile_log::CompileLog;
use busbound::report::DrawnComparison;
use busbound::{Format, Options, compare};

use crate::args::compare::{CompareArgs, NUMBERS};
use crate::failure::Failure;
use crate::io::output::show;
use crate::io::reading::{AllRead, each_run};
use crate::request::{read_compile_logs, resolve_analysis, resolve_machine, resolve_output};
use crate::warnings::warn_of_misfits;

pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    let machine = resolve_machine(&args.run.machine)?;
    let labels = resolve_labels(args)?;
    let (mut options, wall) = resolve_each(args)?;
    let logs = resolve_logs(args)?;
    let (mut runs, mut drawn) = (Vec::new(), Vec::new());
    let detail = Detail::Page { runs: args.paths.len() };
    let all = each_run(&args.paths, &args.run.reading, &output, |run| {
        options.wall_ms = wall.get(runs.len()).copied();
        options.compile_log = logs.get(runs.len()).cloned();
        if output.format == Format::Html {
            let one = run.draw(&machine, &options, &[], detail);
            runs.push(one.diagnosis.clone());
            drawn.push(one);
        } else {
            runs.push(run.diagnose(&machine, &options));
        }
    })?;
    if all == AllRead::No {
        // Without one of the runs, the wrong ones would be compared.
        return Err(Failure::unreadable("nothing is compared, because not every run could be read"));
    }
    warn_of_misfits(&runs, &args.run, &output);
    let comparison = compare(&runs, labels.as_ref());
    show(&DrawnComparison { comparison: &comparison, runs: &drawn }, &output, "comparison.html")
}

/// The options of all runs, and the step time of each without the profiler, if these are given.
fn resolve_each(args: &CompareArgs) -> Result<(Options, Vec<f64>), Failure> {
    let mut analysis = args.run.analysis.clone();
    let (wall, runs) = (std::mem::take(&mut analysis.wall), args.paths.len());
    let common = resolve_analysis(&analysis)?;
    // A project's file has one time, and the runs differ.
    if analysis.wall_file.is_some() || wall.is_empty() {
        return Ok((common, Vec::new()));
    }
    if wall.len() != runs {
        let times = plural(wall.len() as u64, "time", "times");
        let why = format!("--wall has {times} for {runs} runs: give one per run, e.g. --wall 31.8ms,24ms");
        return Err(Failure::usage(why));
    }
    Ok((common, wall))
}

/// What torch.compile printed in each run, if that is given.
fn resolve_logs(args: &CompareArgs) -> Result<Vec<CompileLog>, Failure> {
    let (logs, runs) = (&args.compile.compile_log, args.paths.len());
    if !logs.is_empty() && logs.len() != runs {
        let logs = plural(logs.len() as u64, "log", "logs");
        return Err(Failure::usage(format!(
            "--compile-log has {logs} for {runs} runs: give one per run, in order"
        )));
    }
    logs.iter().map(|log| read_compile_logs(std::slice::from_ref(log))).collect()
}

/// What the runs differ in, one number per run.
fn resolve_labels(args: &CompareArgs) -> Result<Option<Labels>, Failure> {
    if let Some(path) = args.paths.iter().find(|path| path.is_dir()) {
        let why =
            format!("compare takes one trace per run, and {} is a directory: name the files", path.display());
        return Err(Failure::usage(why));
    }
    for (key, values) in &args.label {
        if values.len() != args.paths.len() {
            let (values, runs) = (plural(values.len() as u64, "number", "numbers"), args.paths.len());
            let one = if args.label.len() > 1 { format!(" {key}") } else { String::new() };
            return Err(Failure::usage(format!(
                "--label{one} has {values} for {runs} runs: give one number per run"
            )));
        }
    }
    // The first label that has only numbers is what the runs are swept over.
    let Some(place) = args.label.iter().position(|(_, values)| numbers(values).is_some()) else {
        return if args.label.is_empty() {
            Ok(None)
        } else {
            Err(Failure::usage(format!("--label: {NUMBERS}")))
        };
    };
    let (key, values) = &args.label[place];
    let others = args.label.iter().enumerate().filter(|(at, _)| *at != place);
    let others = others.map(|(_, (key, values))| SeriesLabel { key: key.clone(), values: values.clone() });
    let values = numbers(values).unwrap_or_default();
    Ok(Some(Labels { key: key.clone(), values, others: others.collect() }))
}

fn numbers(values: &[String]) -> Option<Vec<f64>> {
    values.iter().map(|value| value.parse().ok().filter(|value: &f64| *value > 0.0)).collect()
}

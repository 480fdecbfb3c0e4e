//! `busbound compare`.

use busbound::diagnosis::{Detail, Labels};
use busbound::report::DrawnComparison;
use busbound::{Format, compare};

use crate::args::compare::CompareArgs;
use crate::failure::Failure;
use crate::io::output::show;
use crate::io::reading::{AllRead, each_run};
use crate::request::{resolve_analysis, resolve_machine, resolve_output};

pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let machine = resolve_machine(&args.machine)?;
    let labels = resolve_labels(args)?;
    let options = resolve_analysis(&args.analysis)?;
    let (mut runs, mut drawn) = (Vec::new(), Vec::new());
    let detail = Detail::Page { runs: args.paths.len() };
    let all = each_run(&args.paths, &args.reading, &output, |run| {
        if output.format == Format::Html {
            let one = run.draw(&machine, &options, &[], detail);
            runs.push(one.diagnosis.clone());
            drawn.push(one);
        } else {
            runs.push(run.diagnose(&machine, &options));
        }
    })?;
    if all == AllRead::No {
        // A comparison with a run missing would compare the wrong ones.
        return Err(Failure::unreadable("nothing compared: not every run could be read"));
    }
    let comparison = compare(&runs, labels.as_ref());
    show(&DrawnComparison { comparison: &comparison, runs: &drawn }, &output, "comparison.html")
}

/// What the runs differ in, one number for each.
fn resolve_labels(args: &CompareArgs) -> Result<Option<Labels>, Failure> {
    if let Some(path) = args.paths.iter().find(|path| path.is_dir()) {
        let why = format!("compare takes one trace a run; {} is a directory", path.display());
        return Err(Failure::usage(why));
    }
    let labels = args.label.clone().map(|(key, values)| Labels { key, values });
    if let Some(labels) = &labels
        && labels.values.len() != args.paths.len()
    {
        let (values, runs) = (labels.values.len(), args.paths.len());
        return Err(Failure::usage(format!(
            "--label has {values} numbers for {runs} runs; give one for each"
        )));
    }
    Ok(labels)
}

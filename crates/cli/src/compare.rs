//! `busbound compare`.

use std::path::Path;

use busbound_diagnosis::{Detail, Labels, compare, diagnose, diagnose_and_draw};
use busbound_report::{
    comparison_as_html, comparison_as_json, comparison_as_markdown, comparison_as_terminal,
};

use crate::args::{CompareArgs, Format};
use crate::diagnose::resolve_analysis;
use crate::failure::Failure;
use crate::machine::resolve_machine;
use crate::output::{write_answer, write_page};
use crate::reading::{AllRead, each_trace};
use crate::request::resolve_output;

pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let machine = resolve_machine(args.machine.machine.as_deref())?;
    let usage = |text: String| Err(Failure::Usage(anyhow::anyhow!(text)));
    if let Some(path) = args.paths.iter().find(|path| path.is_dir()) {
        return usage(format!("compare takes one trace a run; {} is a directory", path.display()));
    }
    let labels = args.label.clone().map(|(key, values)| Labels { key, values });
    if let Some(labels) = &labels
        && labels.values.len() != args.paths.len()
    {
        let (values, runs) = (labels.values.len(), args.paths.len());
        return usage(format!("--label has {values} numbers for {runs} runs; give one for each"));
    }
    let (mut runs, mut drawn) = (Vec::new(), Vec::new());
    let detail = Detail::Page { runs: args.paths.len() };
    let options = resolve_analysis(&args.analysis)?;
    let all = each_trace(&args.paths, &args.reading, &output, |trace, source| {
        if output.format == Format::Html {
            let one = diagnose_and_draw(trace, source, &machine, &options, &[], detail);
            runs.push(one.diagnosis.clone());
            drawn.push(one);
        } else {
            runs.push(diagnose(trace, source, &machine, &options));
        }
    })?;
    if all == AllRead::No {
        // A comparison with a run missing would compare the wrong ones.
        return Err(Failure::Unreadable(anyhow::anyhow!("nothing compared: not every run could be read")));
    }
    let comparison = compare(&runs, labels.as_ref());
    let text = match output.format {
        Format::Terminal => comparison_as_terminal(&comparison, output.width),
        Format::Markdown => comparison_as_markdown(&comparison),
        Format::Json => comparison_as_json(&comparison).map_err(|e| Failure::Output(e.into()))?,
        Format::Html => {
            let page = comparison_as_html(&comparison, &drawn);
            return write_page(&page, Path::new("comparison.html"), &output);
        }
    };
    write_answer(&text, &output)
}

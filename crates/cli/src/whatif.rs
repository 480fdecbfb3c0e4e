//! `busbound whatif`.

use std::path::Path;

use busbound_diagnosis::{Detail, Options, Source, WhatIf, diagnose_and_draw, what_if};
use busbound_machine::Machine;
use busbound_report::{Lead, RunsPage, whatif_as_json, whatif_as_markdown, whatif_as_terminal};
use busbound_trace::Trace;
use busbound_whatif::replay::Change;

use crate::args::{Format, WhatIfArgs};
use crate::diagnose::{detail_of, page_of, resolve_analysis};
use crate::export::write_trace;
use crate::failure::Failure;
use crate::machine::resolve_machine;
use crate::output::{complain, write_answer, write_file, write_page};
use crate::reading::each_trace;
use crate::request::resolve_output;

pub(crate) fn run(args: &WhatIfArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let machine = resolve_machine(args.machine.machine.as_deref())?;
    let options = resolve_analysis(&args.analysis)?;
    // All changes named make one scenario, in order.
    let wanted = if args.apply.is_empty() { Vec::new() } else { vec![args.apply.clone()] };
    let mut answers: Vec<WhatIf> = Vec::new();
    let mut page = RunsPage::new(Lead::Prediction);
    let mut refused = Vec::new();
    let mut timeline = args.timeline.as_deref();
    let mut written = Ok(());
    // A page's runs share its room; what is not drawn needs no count of them.
    let detail = match output.format {
        Format::Html => detail_of(&args.paths)?,
        _ => Detail::Page { runs: 1 },
    };
    each_trace(&args.paths, &args.reading, &output, |trace, source| {
        // Only what is drawn needs the picture.
        let answer = if output.format == Format::Html {
            let drawn = diagnose_and_draw(trace, source, &machine, &options, &wanted, detail);
            let answer = drawn.whatif.clone();
            page.add(drawn);
            answer
        } else {
            what_if(trace, &source.path, &machine, &options, &wanted)
        };
        if answer.is_ok()
            && let Some(path) = timeline.take()
        {
            written = write_timeline(path, trace, source, &machine, &options, &wanted);
        }
        match answer {
            Ok(answer) => answers.push(answer),
            Err(why) => refused.push(format!("{}: {why}", source.path)),
        }
    })?;
    if answers.is_empty() {
        return Err(Failure::Unreadable(anyhow::anyhow!("{}", refused.join("; "))));
    }
    for why in refused {
        complain(&why);
    }
    match output.format {
        Format::Terminal => write_answer(&whatif_as_terminal(&answers, output.width), &output),
        Format::Markdown => write_answer(&whatif_as_markdown(&answers), &output),
        Format::Json => {
            let json = whatif_as_json(&answers).map_err(|error| Failure::Output(error.into()))?;
            write_answer(&json, &output)
        }
        Format::Html => write_page(&page.finish(), &page_of(&args.paths), &output),
    }?;
    written
}

/// As it was and as predicted: a page, or a file for a trace viewer.
fn write_timeline(
    path: &Path,
    trace: &Trace,
    source: &Source,
    machine: &Machine,
    options: &Options,
    wanted: &[Vec<Change>],
) -> Result<(), Failure> {
    let draw = |detail| diagnose_and_draw(trace, source, machine, options, wanted, detail);
    match path.extension() {
        Some(extension) if extension == "html" => {
            let mut page = RunsPage::new(Lead::Prediction);
            page.add(draw(Detail::Page { runs: 1 }));
            write_file(path, &page.finish())
        }
        _ => write_trace(path, trace, &draw(Detail::All)),
    }
}

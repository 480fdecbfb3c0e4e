//! `busbound whatif`.

use std::path::Path;

use busbound_diagnosis::{Drawn, WhatIf, diagnose_and_draw, what_if};
use busbound_report::{predictions_as_html, whatif_as_json, whatif_as_markdown, whatif_as_terminal};
use busbound_trace::Trace;

use crate::args::{Format, WhatIfArgs};
use crate::diagnose::{page_of, resolve_analysis, resolve_machine};
use crate::export::write_trace;
use crate::failure::Failure;
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
    let mut pages: Vec<Drawn> = Vec::new();
    let mut refused = Vec::new();
    let mut timeline = args.timeline.as_deref();
    let mut written = Ok(());
    each_trace(&args.paths, &args.reading, &output, |trace, source| {
        // Only what is drawn needs the picture.
        let answer = if output.format == Format::Html || timeline.is_some() {
            let drawn = diagnose_and_draw(trace, source, &machine, &options, &wanted);
            if drawn.whatif.is_ok()
                && let Some(path) = timeline.take()
            {
                written = write_timeline(path, trace, &drawn);
            }
            let answer = drawn.whatif.clone();
            pages.push(drawn);
            answer
        } else {
            what_if(trace, &source.path, &machine, &options, &wanted)
        };
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
        Format::Html => write_page(&predictions_as_html(&pages), &page_of(&args.paths), &output),
    }?;
    written
}

/// As it was and as predicted: a page, or a file for a trace viewer.
fn write_timeline(path: &Path, trace: &Trace, drawn: &Drawn) -> Result<(), Failure> {
    match path.extension() {
        Some(extension) if extension == "html" => {
            write_file(path, &predictions_as_html(std::slice::from_ref(drawn)))
        }
        _ => write_trace(path, trace, drawn),
    }
}

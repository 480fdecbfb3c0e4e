//! `busbound whatif`.

use busbound_diagnosis::{WhatIf, predicted_timeline, what_if};
use busbound_report::{
    timeline_as_chrome, timeline_as_html, whatif_as_json, whatif_as_markdown, whatif_as_terminal,
};
use busbound_whatif::replay::Change;

use crate::args::{Format, WhatIfArgs};
use crate::diagnose::{resolve_analysis, resolve_machine};
use crate::failure::Failure;
use crate::output::{complain, write_answer, write_file};
use crate::reading::each_trace;
use crate::request::resolve_output;

pub(crate) fn run(args: &WhatIfArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let machine = resolve_machine(args.machine.machine.as_deref())?;
    let options = resolve_analysis(&args.analysis)?;
    // All changes named make one scenario, in order.
    let wanted = if args.apply.is_empty() { Vec::new() } else { vec![args.apply.clone()] };
    let mut answers: Vec<WhatIf> = Vec::new();
    let mut refused = Vec::new();
    let mut timeline = None;
    each_trace(&args.paths, &args.reading, &output, |trace, source| {
        match what_if(trace, &source.path, &machine, &options, &wanted) {
            Ok(answer) => {
                if args.timeline.is_some() && timeline.is_none() {
                    let changes = best_of(&answer);
                    timeline = predicted_timeline(trace, &machine, &options, &changes).ok();
                }
                answers.push(answer);
            }
            Err(why) => refused.push(format!("{}: {why}", source.path)),
        }
    })?;
    if answers.is_empty() {
        return Err(Failure::Unreadable(anyhow::anyhow!("{}", refused.join("; "))));
    }
    for why in refused {
        complain(&why);
    }
    let text = match output.format {
        Format::Terminal => whatif_as_terminal(&answers, output.width),
        Format::Markdown => whatif_as_markdown(&answers),
        Format::Json => whatif_as_json(&answers).map_err(|error| Failure::Output(error.into()))?,
    };
    write_answer(&text, &output)?;
    if let (Some(path), Some(timeline)) = (&args.timeline, &timeline) {
        let text = match path.extension() {
            Some(extension) if extension == "html" => timeline_as_html(timeline),
            _ => timeline_as_chrome(timeline).map_err(|error| Failure::Output(error.into()))?,
        };
        write_file(path, &text)?;
    }
    Ok(())
}

/// The changes asked for, or the best of those tried.
fn best_of(answer: &WhatIf) -> Vec<Change> {
    let best = answer.scenarios.first().map(|one| one.apply.as_slice()).unwrap_or_default();
    best.iter().filter_map(|change| change.parse().ok()).collect()
}

//! `busbound whatif`.

use std::collections::BTreeSet;
use std::path::Path;

use busbound::diagnosis::{Detail, job_what_if};
use busbound::report::{Lead, Predictions, RunSection, Timeline};
use busbound::whatif::replay::Change;
use busbound::{Format, Machine, Options, RenderError, Run, WhatIf};

use crate::args::whatif::WhatIfArgs;
use crate::failure::Failure;
use crate::io::output::{save, show, warn};
use crate::io::reading::each_run;
use crate::request::{Output, detail_of, page_of, resolve_analysis, resolve_machine, resolve_output};
use crate::warnings::warn_of_misfit_predictions;

/// What is asked of every run.
struct Asked {
    machine: Machine,
    options: Options,
    scenarios: Vec<Vec<Change>>,
}

impl Asked {
    fn of(args: &WhatIfArgs) -> Result<Self, Failure> {
        Ok(Self {
            machine: resolve_machine(&args.run.machine)?,
            options: resolve_analysis(&args.run.analysis)?,
            // All changes together are one scenario, in order.
            scenarios: if args.apply.is_empty() { Vec::new() } else { vec![args.apply.clone()] },
        })
    }
}

pub(crate) fn run(args: &WhatIfArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    let asked = Asked::of(args)?;
    if let Some(rank) = args.rank {
        return of_job(args, rank, &asked, &output);
    }
    let mut answers: Vec<WhatIf> = Vec::new();
    let mut sections: Vec<Result<RunSection, RenderError>> = Vec::new();
    let (mut refused, mut ranks) = (Vec::new(), BTreeSet::new());
    let mut timeline = args.timeline.as_deref();
    let mut written = Ok(());
    // The runs on a page share its space; without a page nobody has to count them.
    let detail = match output.format {
        Format::Html => detail_of(&args.paths)?,
        _ => Detail::Page { runs: 1 },
    };
    each_run(&args.paths, &args.run.reading, &output, |run| {
        // Only a page needs the picture, which has a diagnosis with it.
        let answer = if output.format == Format::Html {
            let drawn = run.draw(&asked.machine, &asked.options, &asked.scenarios, detail);
            sections.push(RunSection::of(&drawn, sections.len(), Lead::Prediction));
            drawn.whatif
        } else {
            run.what_if(&asked.machine, &asked.options, &asked.scenarios)
        };
        if answer.is_ok()
            && let Some(path) = timeline.take()
        {
            written = write_timeline(path, run, &asked, &output);
        }
        ranks.extend(run.rank());
        match answer {
            Ok(answer) => answers.push(answer),
            Err(why) => refused.push(format!("{}: {why}", run.source().path)),
        }
    })?;
    if answers.is_empty() {
        return Err(Failure::unreadable(refused.join("; ")));
    }
    for why in refused {
        warn(&why);
    }
    if let Some(rank) = ranks.first().filter(|_| ranks.len() > 1 && !output.quiet) {
        warn(&format!(
            "each rank is predicted alone; --rank {rank} predicts the step of the whole job with the changes on rank {rank}"
        ));
    }
    warn_of_misfit_predictions(&answers, &args.run, &output);
    let sections: Vec<RunSection> =
        sections.into_iter().collect::<Result<_, _>>().map_err(Failure::output)?;
    show(&Predictions { answers: &answers, sections: &sections }, &output, page_of(&args.paths))?;
    written
}

/// The step of the whole job with the changes on one rank.
fn of_job(args: &WhatIfArgs, rank: u32, asked: &Asked, output: &Output) -> Result<(), Failure> {
    let (mut members, mut refused) = (Vec::new(), Vec::new());
    each_run(&args.paths, &args.run.reading, output, |run| {
        match run.job_member(&asked.machine, &asked.options, &asked.scenarios) {
            Ok(member) => members.push(member),
            Err(why) => refused.push(format!("{}: {why}", run.source().path)),
        }
    })?;
    if members.is_empty() {
        return Err(Failure::unreadable(refused.join("; ")));
    }
    for why in &refused {
        warn(why);
    }
    let answers = [job_what_if(members, rank).map_err(Failure::usage)?];
    warn_of_misfit_predictions(&answers, &args.run, output);
    show(&Predictions { answers: &answers, sections: &[] }, output, page_of(&args.paths))
}

/// Recorded and predicted: a page, or a file for a trace viewer.
fn write_timeline(path: &Path, run: &Run, asked: &Asked, output: &Output) -> Result<(), Failure> {
    let draw = |detail| run.draw(&asked.machine, &asked.options, &asked.scenarios, detail);
    if Format::of_path(path) == Some(Format::Html) {
        let section = RunSection::of(&draw(Detail::Page { runs: 1 }), 0, Lead::Prediction);
        let sections = [section.map_err(Failure::output)?];
        return save(&Predictions { answers: &[], sections: &sections }, Format::Html, output, path);
    }
    let timeline = Timeline { trace: run.trace(), drawn: Some(&draw(Detail::All)) };
    save(&timeline, Format::Perfetto, output, path)
}

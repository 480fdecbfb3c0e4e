//! `busbound diagnose`.

use busbound::diagnosis::{Detail, advice_of_diagnosis};
use busbound::report::{Lead, RunSection};
use busbound::{Diagnosis, Format, RenderError, RunGroup, Show, resolve_inputs};

use crate::args::diagnose::DiagnoseArgs;
use crate::failure::Failure;
use crate::io::output::show;
use crate::io::reading::every_run;
use crate::request::{page_of, resolve_diagnosis, resolve_machine, resolve_output, resolve_topology};
use crate::warnings::{once, warn_of_misfits};

pub(crate) fn run(args: &DiagnoseArgs) -> Result<(), Failure> {
    if let Some(directory) = &args.watch.watch {
        return super::watch::run(args, directory);
    }
    let output = resolve_output(&args.output)?;
    let machine = resolve_machine(&args.run.machine)?;
    let options = resolve_diagnosis(args)?;
    let wiring = resolve_topology(&args.fleet.topology)?;
    let inputs = once(resolve_inputs(&args.paths)?);
    let is_drawn = output.format == Format::Html && args.emit.emit.is_none();
    let detail = Detail::Page { runs: inputs.list.len() };
    let all = every_run(&inputs, &args.fleet.jobs, &args.run.reading, &output, |number, run| {
        if !is_drawn {
            return Ok((run.diagnose(&machine, &options), None));
        }
        let drawn = run.draw(&machine, &options, &[], detail);
        let section = RunSection::of(&drawn, number, Lead::Verdict)?;
        Ok((drawn.diagnosis, Some(section)))
    })?;
    let read: Result<Vec<_>, RenderError> = all.read.into_iter().collect();
    let (runs, sections): (Vec<Diagnosis>, Vec<Option<RunSection>>) =
        read.map_err(Failure::output)?.into_iter().unzip();
    warn_of_misfits(&runs, &args.run, &output);
    if let Some(format) = args.emit.emit {
        let [one] = runs.as_slice() else {
            return Err(Failure::usage(format!("--emit takes one trace, not {}: name one file", runs.len())));
        };
        return show(&advice_of_diagnosis(one), &output.with_format(format), "");
    }
    let which = if args.fleet.each { Show::Each } else { Show::Few };
    let together = RunGroup::of(runs, all.unread, wiring.as_deref(), which)
        .with_sections(sections.into_iter().flatten().collect());
    show(&together, &output, page_of(&args.paths))
}

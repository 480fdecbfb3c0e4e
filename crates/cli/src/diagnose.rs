//! `busbound diagnose` and `busbound demo`.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;

use busbound_diagnosis::{
    BlockChoice, CpuCopyThresholds, Detail, Diagnosis, Options, Source, advice_of_diagnosis, diagnose,
    diagnose_and_draw,
};
use busbound_fleet::{Fleet, RankSummary, one_run};
use busbound_machine::Machine;
use busbound_report::{
    Lead, RunSection, Runs, RunsPage, diagnoses_as_json, diagnoses_as_markdown, diagnoses_as_terminal,
    runs_as_json, runs_as_markdown, runs_as_terminal,
};
use busbound_trace::{NcuError, ReadOptions, read, read_ncu};

use crate::args::{AnalysisArgs, DemoArgs, DiagnoseArgs, Format};
use crate::failure::Failure;
use crate::machine::resolve_machine;
use crate::merge::resolve_topology;
use crate::output::{complain, write_advice, write_answer, write_file, write_page};
use crate::parallel::every_trace;
use crate::request::{Output, resolve_inputs, resolve_output};

/// A run of twelve groups of matrix products whose weights come from pageable memory, recorded on
/// an H200; see fixtures/README.md. A copy of the fixture, because a published crate holds nothing from outside its folder.
const DEMO: &[u8] = include_bytes!("../demo/off_block_pageable_c4.json.gz");

/// Up to so many ranks are shown one by one without being asked for.
const EACH_UP_TO: usize = 4;

pub(crate) fn run(args: &DiagnoseArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let machine = resolve_machine(args.machine.machine.as_deref())?;
    let options = resolve_options(args)?;
    let wiring = resolve_topology(&args.fleet.topology)?;
    let inputs = resolve_inputs(&args.paths).map_err(Failure::Unreadable)?;
    let is_drawn = output.format == Format::Html && args.emit.emit.is_none();
    let detail = Detail::Page { runs: inputs.list.len() };
    let all = every_trace(&inputs, &args.fleet.jobs, &args.reading, &output, |number, trace, source| {
        if is_drawn {
            let drawn = diagnose_and_draw(trace, source, &machine, &options, &[], detail);
            let section = RunSection::of(drawn, number, Lead::Verdict);
            (section.diagnosis().clone(), Some(section))
        } else {
            (diagnose(trace, source, &machine, &options), None)
        }
    })?;
    let (all, sections, unread) = {
        let (diagnoses, sections): (Vec<Diagnosis>, Vec<Option<RunSection>>) = all.read.into_iter().unzip();
        (diagnoses, sections, all.unread)
    };
    if let Some(emit) = args.emit.emit {
        return match all.as_slice() {
            [one] => write_advice(&advice_of_diagnosis(one), emit, &output),
            several => Err(Failure::Usage(anyhow::anyhow!("--emit takes one trace, not {}", several.len()))),
        };
    }
    let summaries: Vec<RankSummary> = all.iter().map(RankSummary::of).collect();
    let told = one_run(&summaries);
    let fleet = told.as_ref().ok().map(|_| {
        let all = Fleet::of(summaries.iter().cloned());
        all.with_unread(unread.iter().cloned()).answer(wiring.as_deref())
    });
    let why_apart = told
        .as_ref()
        .err()
        .map(|why| format!("Not taken for ranks of one run, because {why}: each is judged by itself."));
    let one_by_one = match told {
        Ok(told) if args.fleet.each || told.members.len() <= EACH_UP_TO => (0..all.len()).collect(),
        Ok(told) => told.others,
        Err(_) => Vec::new(),
    };
    let runs = Runs {
        all: &all,
        summaries: &summaries,
        fleet: fleet.as_ref(),
        why_apart: why_apart.as_deref(),
        told: &one_by_one,
        unread: &unread,
    };
    let text = match output.format {
        Format::Terminal => runs_as_terminal(&runs, output.width),
        Format::Markdown => runs_as_markdown(&runs),
        Format::Json => runs_as_json(&runs).map_err(|error| Failure::Output(error.into()))?,
        Format::Html => {
            let mut page = RunsPage::new(Lead::Verdict);
            let shown = sections.into_iter().enumerate().filter(|(number, _)| runs.tells(*number));
            shown.filter_map(|(_, section)| section).for_each(|section| page.add_section(section));
            return write_page(&page.finish_with(&runs), &page_of(&args.paths), &output);
        }
    };
    write_answer(&text, &output)
}

pub(crate) fn demo(args: &DemoArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output);
    let path = "fixtures/off_block_pageable_c4.json.gz";
    let trace =
        read(DEMO, path.as_ref(), &ReadOptions::default()).map_err(|e| Failure::Unreadable(e.into()))?;
    let (source, machine, options) = (Source::named(path), Machine::default(), Options::default());
    let drawn = diagnose_and_draw(&trace, &source, &machine, &options, &[], Detail::Page { runs: 1 });
    let diagnosis = drawn.diagnosis.clone();
    let mut page = RunsPage::new(Lead::Verdict);
    page.add(drawn);
    let page = page.finish();
    if output.format == Format::Html {
        return write_page(&page, &args.page, &output);
    }
    show(&[diagnosis], &output)?;
    write_file(&args.page, &page)?;
    complain(&format!("the page is in {}", args.page.display()));
    if args.open {
        open::that(&args.page).context("no browser could be opened").map_err(Failure::Output)?;
    }
    Ok(())
}

/// How much detail each of the runs on one page may have.
pub(crate) fn detail_of(paths: &[PathBuf]) -> Result<Detail, Failure> {
    let runs = resolve_inputs(paths).map_err(Failure::Unreadable)?.list.len();
    Ok(Detail::Page { runs })
}

/// `run.html` for `run.json.gz`, here.
pub(crate) fn page_of(paths: &[PathBuf]) -> PathBuf {
    PathBuf::from(format!("{}.html", stem_of(paths.first().map_or(Path::new("run"), PathBuf::as_path))))
}

/// `run` for `traces/run.json.gz`.
pub(crate) fn stem_of(path: &Path) -> String {
    let name = path.file_name().filter(|name| *name != "-").unwrap_or("run".as_ref()).to_string_lossy();
    let stem = busbound_trace::suffixes().find_map(|suffix| name.split_once(suffix));
    stem.map_or(&*name, |(stem, _)| stem).to_owned()
}

pub(crate) fn resolve_analysis(args: &AnalysisArgs) -> Result<Options, Failure> {
    if args.stages.len() == 1 {
        return Err(Failure::Usage(anyhow::anyhow!("one stage is no pipeline: give --stage twice or more")));
    }
    let mut options = Options::default();
    options.steps.clone_from(&args.steps);
    options.warmup = args.warmup;
    options.stages.clone_from(&args.stages);
    match (&args.by, args.depth) {
        (Some(wanted), _) => options.blocks = BlockChoice::Matching(wanted.clone()),
        (None, Some(depth)) => options.blocks = BlockChoice::Depth(usize::from(depth)),
        (None, None) => {}
    }
    Ok(options)
}

fn resolve_options(args: &DiagnoseArgs) -> Result<Options, Failure> {
    let mut options = resolve_analysis(&args.analysis)?;
    if !args.edges.iter().all(|edge| *edge > 0.0) || !args.edges.is_sorted() {
        return Err(Failure::Usage(anyhow::anyhow!(
            "--edges takes rates above zero in rising order, e.g. 5,20,50,80"
        )));
    }
    options.histogram_edges.clone_from(&args.edges);
    options.cpu_copies = CpuCopyThresholds {
        internal_gbps: args.internal_above,
        bus_share_of_peak: args.bus_below,
        shortest_ms: args.shortest,
    };
    if let Some(path) = &args.ncu {
        let unreadable = |error: NcuError| Failure::Unreadable(anyhow::anyhow!("{} {error}", path.display()));
        let file = File::open(path).map_err(|error| unreadable(error.into()))?;
        options.measured_kernels = Some(read_ncu(file).map_err(unreadable)?);
    }
    Ok(options)
}

fn show(all: &[Diagnosis], output: &Output) -> Result<(), Failure> {
    let text = match output.format {
        Format::Terminal => diagnoses_as_terminal(all, output.width),
        Format::Markdown => diagnoses_as_markdown(all),
        Format::Json | Format::Html => diagnoses_as_json(all).map_err(|e| Failure::Output(e.into()))?,
    };
    write_answer(&text, output)
}

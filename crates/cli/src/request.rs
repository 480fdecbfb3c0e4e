//! What is to be done? Flags resolved against the machine and the terminal, before any work.

use std::fs::File;
use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};

use busbound::diagnosis::{BlockChoice, CpuCopyThresholds, Detail};
use busbound::machine::topology::GpuPlace;
use busbound::trace::{NcuError, read_ncu};
use busbound::{Format, Machine, Options, ReadOptions, Style};

use crate::args::diagnose::DiagnoseArgs;
use crate::args::shared::{AnalysisArgs, MachineArgs, OutputArgs, ReadingArgs, TopologyArgs};
use crate::failure::Failure;

/// Where the answer goes and how it looks.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) file: Option<PathBuf>,
    pub(crate) width: u16,
    pub(crate) show_progress: bool,
    /// Nothing but the answer, and what went wrong.
    pub(crate) quiet: bool,
}

impl Output {
    /// For commands whose answer is a file of their own.
    pub(crate) fn quiet_or_not(quiet: bool) -> Self {
        let show_progress = !quiet && stderr().is_terminal();
        Self { format: Format::Terminal, file: None, width: Style::USUAL_WIDTH, show_progress, quiet }
    }

    /// The same in another format.
    pub(crate) fn with_format(&self, format: Format) -> Self {
        Self { format, ..self.clone() }
    }
}

pub(crate) fn resolve_output(args: &OutputArgs) -> Output {
    let terminal =
        (args.output.is_none() && stdout().is_terminal()).then(terminal_size::terminal_size).flatten();
    Output {
        format: if args.json { Format::Json } else { args.format },
        file: args.output.clone(),
        width: terminal.map_or(Style::USUAL_WIDTH, |(width, _)| width.0.clamp(60, 140)),
        show_progress: !args.quiet && stderr().is_terminal(),
        quiet: args.quiet,
    }
}

pub(crate) fn resolve_machine(args: &MachineArgs) -> Result<Machine, Failure> {
    Ok(busbound::resolve_machine(args.machine.as_deref())?)
}

/// How the machine is wired, where that is given.
pub(crate) fn resolve_topology(args: &TopologyArgs) -> Result<Option<Vec<GpuPlace>>, Failure> {
    Ok(args.topology.as_deref().map(busbound::read_topology).transpose()?)
}

pub(crate) fn resolve_reading(args: &ReadingArgs) -> ReadOptions {
    let mut options = ReadOptions::default();
    if let Some(threads) = args.threads {
        options = options.threads(usize::from(threads));
    }
    if let Some(memory) = args.memory {
        options = options.memory_bound(memory);
    }
    options
}

pub(crate) fn resolve_analysis(args: &AnalysisArgs) -> Result<Options, Failure> {
    if args.stages.len() == 1 {
        return Err(Failure::usage("one stage is no pipeline: give --stage twice or more"));
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

/// What `diagnose` can be told besides.
pub(crate) fn resolve_diagnosis(args: &DiagnoseArgs) -> Result<Options, Failure> {
    let mut options = resolve_analysis(&args.analysis)?;
    if !args.edges.iter().all(|edge| *edge > 0.0) || !args.edges.is_sorted() {
        return Err(Failure::usage("--edges takes rates above zero in rising order, e.g. 5,20,50,80"));
    }
    options.histogram_edges.clone_from(&args.edges);
    options.cpu_copies = CpuCopyThresholds {
        internal_gbps: args.internal_above,
        bus_share_of_peak: args.bus_below,
        shortest_ms: args.shortest,
    };
    if let Some(path) = &args.ncu {
        let unreadable = |error: NcuError| Failure::unreadable(format!("{} {error}", path.display()));
        let file = File::open(path).map_err(|error| unreadable(error.into()))?;
        options.measured_kernels = Some(read_ncu(file).map_err(unreadable)?);
    }
    Ok(options)
}

/// How much detail each of the runs on one page may have.
pub(crate) fn detail_of(paths: &[PathBuf]) -> Result<Detail, Failure> {
    Ok(Detail::Page { runs: busbound::resolve_inputs(paths)?.list.len() })
}

/// `run.html` for `run.json.gz`, here.
pub(crate) fn page_of(paths: &[PathBuf]) -> PathBuf {
    let first = paths.first().map_or(Path::new("run"), PathBuf::as_path);
    PathBuf::from(format!("{}.html", busbound::stem_of(first)))
}

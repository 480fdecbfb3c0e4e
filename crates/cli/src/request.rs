//! What is to be done? Flags resolved against the machine and the terminal, before any work.

use std::fs::File;
use std::io::{IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};

use busbound::diagnosis::{BlockChoice, CpuCopyThresholds, Detail};
use busbound::machine::compile_log::CompileLog;
use busbound::machine::flight_recorder::FlightRecorder;
use busbound::machine::nccl_log::NcclLog;
use busbound::machine::topology::{GpuPlace, Topology};
use busbound::trace::{NcuError, read_ncu};
use busbound::{Format, Machine, Options, ReadOptions, Style};

use crate::args::diagnose::{DiagnoseArgs, FineArgs};
use crate::args::names::machines;
use crate::args::shared::{
    AnalysisArgs, FlightRecorderArgs, MachineArgs, OutputArgs, ReadingArgs, TopologyArgs,
};
use crate::failure::Failure;
use crate::io::kind::{FileKind, files_beside_traces, instead_of, not_a};
use busbound::machine::spelling::did_you_mean;

/// Where the answer goes and how it looks.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) format: Format,
    pub(crate) file: Option<PathBuf>,
    /// Whether the page is opened in the browser.
    pub(crate) open: bool,
    pub(crate) width: u16,
    pub(crate) verbose: bool,
    pub(crate) show_progress: bool,
    /// Print only the answer and errors.
    pub(crate) quiet: bool,
}

impl Output {
    /// For commands that write files of their own.
    pub(crate) fn quiet_or_not(quiet: bool) -> Self {
        Self {
            format: Format::Terminal,
            file: None,
            open: false,
            width: Style::USUAL_WIDTH,
            verbose: false,
            show_progress: !quiet && stderr().is_terminal(),
            quiet,
        }
    }

    /// The same in another format.
    pub(crate) fn with_format(&self, format: Format) -> Self {
        Self { format, ..self.clone() }
    }

    pub(crate) fn style(&self, color: bool) -> Style {
        Style { width: self.width, color, verbose: self.verbose }
    }
}

pub(crate) fn resolve_output(args: &OutputArgs) -> Result<Output, Failure> {
    let terminal =
        (args.output.is_none() && stdout().is_terminal()).then(terminal_size::terminal_size).flatten();
    Ok(Output {
        format: resolve_format(args)?,
        file: args.output.clone(),
        open: args.open,
        width: terminal.map_or(Style::USUAL_WIDTH, |(width, _)| width.0.clamp(60, 140)),
        verbose: args.verbose,
        show_progress: !args.quiet && stderr().is_terminal(),
        quiet: args.quiet,
    })
}

/// --format, else the ending of the -o file, else HTML if a page is to be opened, else text.
fn resolve_format(args: &OutputArgs) -> Result<Format, Failure> {
    let given = if args.json { Some(Format::Json) } else { args.format };
    let by_name = args.output.as_deref().and_then(Format::of_path);
    if given.is_none() && by_name.is_none() {
        check_suffix(args.output.as_deref())?;
    }
    match (args.open, given.or(by_name)) {
        (false, format) => Ok(format.unwrap_or(Format::Terminal)),
        (true, None | Some(Format::Html)) => Ok(Format::Html),
        (true, Some(other)) => {
            let what = if given.is_some() { "--format html" } else { "-o FILE.html" };
            Err(Failure::usage(format!("--open shows a page, not {other}: use it with {what}, or without")))
        }
    }
}

/// Text may have any name, but a name that promises another kind of document gets no text.
fn check_suffix(file: Option<&Path>) -> Result<(), Failure> {
    const OTHERS: &[&str] =
        &["csv", "doc", "docx", "pdf", "png", "ps", "svg", "tsv", "xlsx", "xml", "yaml", "yml"];
    let suffix = file.and_then(Path::extension).and_then(|suffix| suffix.to_str()).unwrap_or_default();
    match OTHERS.contains(&suffix.to_ascii_lowercase().as_str()) {
        false => Ok(()),
        true => Err(Failure::usage(format!(
            "-o writes .html, .md, .json or text, not .{suffix}: use another name, or choose with --format"
        ))),
    }
}

pub(crate) fn resolve_machine(args: &MachineArgs) -> Result<Machine, Failure> {
    let Some(name) = args.machine.as_deref() else { return Ok(Machine::default()) };
    machine_named(name).map_err(|failure| match (&args.file, failure) {
        (Some(file), Failure::Usage(why)) => Failure::Usage(format!("{}: {why}", file.display())),
        (_, failure) => failure,
    })
}

/// A GPU, a link, a rate or a profile. An unknown name gets the closest ones.
pub(crate) fn machine_named(name: &str) -> Result<Machine, Failure> {
    busbound::resolve_machine(Some(name)).map_err(|error| {
        let path = Path::new(name);
        if !error.is_usage() {
            return not_a(FileKind::Machine, path).map_or_else(|| error.into(), Failure::Unreadable);
        }
        if path.is_file() {
            let why = instead_of(FileKind::Machine, path)
                .unwrap_or_else(|| format!("{name} does not end in .json, as machine profiles do"));
            return Failure::Usage(why);
        }
        let forms = "a GPU (h100-pcie), a link (pcie4x16), a rate in GB/s (63) or a profile (machine.json)";
        Failure::Usage(match did_you_mean(name, machines(), 3) {
            Some(meant) => format!("unknown machine {name:?}; {meant} Give {forms}"),
            None => {
                format!("unknown machine {name:?}: give {forms}; busbound diagnose --help lists the GPUs")
            }
        })
    })
}

/// Which GPUs share a link, if that is given.
pub(crate) fn resolve_topology(args: &TopologyArgs) -> Result<Option<Vec<GpuPlace>>, Failure> {
    let Some(path) = args.topology.as_deref() else { return Ok(None) };
    Ok(Some(read_topology(path)?.gpus))
}

/// A saved topology, or the directory of a machine.
pub(crate) fn read_topology(path: &Path) -> Result<Topology, Failure> {
    let explain = |error: busbound::Error| {
        not_a(FileKind::Topology, path).map_or_else(|| error.into(), Failure::Unreadable)
    };
    busbound::read_topology(path).map_err(explain)
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
    options.wall_ms = match args.wall.as_slice() {
        [] => None,
        [one] => Some(*one),
        several => {
            let why = format!("--wall has {} times: give one, the mean step of the run", several.len());
            return Err(Failure::usage(why));
        }
    };
    options.stages.clone_from(&args.stages);
    match (&args.by, args.depth) {
        (Some(wanted), _) => options.blocks = BlockChoice::Matching(wanted.clone()),
        (None, Some(depth)) => options.blocks = BlockChoice::Depth(usize::from(depth)),
        (None, None) => {}
    }
    Ok(options)
}

/// With the options that only `diagnose` has.
pub(crate) fn resolve_diagnosis(args: &DiagnoseArgs) -> Result<Options, Failure> {
    let mut options = resolve_analysis(&args.run.analysis)?;
    let FineArgs { ncu, host_memory, edges, internal_above, bus_below, shortest } = &args.fine;
    if !edges.iter().all(|edge| *edge > 0.0) || !edges.is_sorted() {
        return Err(Failure::usage("--edges takes rates above zero in rising order, e.g. 5,20,50,80"));
    }
    options.host_memory = *host_memory;
    options.histogram_edges.clone_from(edges);
    options.cpu_copies = CpuCopyThresholds {
        internal_gbps: *internal_above,
        bus_share_of_peak: *bus_below,
        shortest_ms: *shortest,
    };
    if let Some(path) = ncu {
        let unreadable = |error: NcuError| {
            let why = not_a(FileKind::Ncu, path);
            Failure::Unreadable(why.unwrap_or_else(|| format!("{} {error}", path.display())))
        };
        let file = File::open(path).map_err(Failure::unreadable_at(path))?;
        options.measured_kernels = Some(read_ncu(file).map_err(unreadable)?);
    }
    if !args.nccl.nccl_log.is_empty() {
        options.nccl_log = Some(read_nccl_logs(&args.nccl.nccl_log)?);
    }
    options.flight_recorder = read_flight_recorder(&args.flight)?;
    if !args.compile.compile_log.is_empty() {
        options.compile_log = Some(read_compile_logs(&args.compile.compile_log)?);
    }
    Ok(options)
}

/// What logs of NCCL, one for each rank or one for all, say together.
pub(crate) fn read_nccl_logs(paths: &[PathBuf]) -> Result<NcclLog, Failure> {
    let mut text = String::new();
    for path in paths {
        let bytes = std::fs::read(path).map_err(Failure::unreadable_at(path))?;
        if let Some(why) = not_a(FileKind::NcclLog, path) {
            return Err(Failure::Unreadable(why));
        }
        text.push_str(&String::from_utf8_lossy(&bytes));
        text.push('\n');
    }
    NcclLog::parse(&text).ok_or_else(|| Failure::Unreadable("the log has no line of NCCL".to_owned()))
}

/// The dumps that are given beside a trace, if any are.
pub(crate) fn read_flight_recorder(args: &FlightRecorderArgs) -> Result<Option<FlightRecorder>, Failure> {
    if args.flight_recorder.is_empty() {
        return Ok(None);
    }
    let files = files_beside_traces(&args.flight_recorder);
    if let Some(why) = files.iter().find_map(|path| not_a(FileKind::FlightRecorder, path)) {
        return Err(Failure::Unreadable(why));
    }
    flight_recorder(&files).map(Some)
}

/// What dumps of PyTorch's flight recorder, one for each rank, say together.
pub(crate) fn flight_recorder(paths: &[PathBuf]) -> Result<FlightRecorder, Failure> {
    let mut dumps = Vec::new();
    for path in paths {
        let bytes = std::fs::read(path).map_err(Failure::unreadable_at(path))?;
        dumps.push((path.to_string_lossy().into_owned(), bytes));
    }
    FlightRecorder::parse(&dumps).map_err(|error| Failure::Unreadable(format!("the file {error}")))
}

/// What logs of torch.compile, one for each rank or one for all, say together. A log may be NCCL's too.
pub(crate) fn read_compile_logs(paths: &[PathBuf]) -> Result<CompileLog, Failure> {
    let mut text = String::new();
    for path in paths {
        let bytes = std::fs::read(path).map_err(Failure::unreadable_at(path))?;
        let one = String::from_utf8_lossy(&bytes);
        if CompileLog::parse(&one).is_none() {
            let why = not_a(FileKind::CompileLog, path);
            return Err(Failure::Unreadable(why.unwrap_or_else(|| format!("{} is empty", path.display()))));
        }
        text.push_str(&one);
        text.push('\n');
    }
    CompileLog::parse(&text)
        .ok_or_else(|| Failure::Unreadable("the log has no line of torch.compile".to_owned()))
}

/// How much detail each of the runs on one page may have.
pub(crate) fn detail_of(paths: &[PathBuf]) -> Result<Detail, Failure> {
    Ok(Detail::Page { runs: busbound::resolve_inputs(paths)?.list.len() })
}

/// `run.html` for `run.json.gz`, in the working directory.
pub(crate) fn page_of(paths: &[PathBuf]) -> PathBuf {
    let first = paths.first().map_or(Path::new("run"), PathBuf::as_path);
    let stem = busbound::stem_of(first);
    // A pattern, or a path without a name such as `.`, is no name for a page.
    let is_name = !stem.is_empty() && !stem.contains(['*', '?', '[']);
    PathBuf::from(format!("{}.html", if is_name { &stem } else { "busbound" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_named_after_the_trace() {
        let page = |path: &str| page_of(&[PathBuf::from(path)]).display().to_string();
        assert_eq!(page("traces/run.json.gz"), "run.html");
        assert_eq!(page("traces/"), "traces.html");
        assert_eq!(page("traces/rank*.json"), "busbound.html");
        assert_eq!(page("-"), "run.html");
    }

    #[test]
    fn an_unknown_machine_gets_the_closest_names() {
        let why = |name: &str| machine_named(name).err().and_then(|failure| failure.message()).unwrap();
        assert_eq!(
            why("h100-pci"),
            "unknown machine \"h100-pci\"; did you mean h100-pcie, a100-pcie or v100-pcie? Give a GPU (h100-pcie), a \
             link (pcie4x16), a rate in GB/s (63) or a profile (machine.json)"
        );
        assert!(why("qqqqqqqqqqqqqqqqq").starts_with("unknown machine \"qqqqqqqqqqqqqqqqq\": give a GPU"));
    }
}

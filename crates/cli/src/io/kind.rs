//! What is a file that was given for something else? Known by its first bytes, so that the error can say where it belongs.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use busbound::machine::compile_log::CompileLog;
use busbound::machine::flight_recorder::FlightRecorder;
use busbound::machine::nccl_log::NcclLog;
use busbound::trace::{by_rank, discover};

/// Enough to find the schema of busbound's own files and the first member of others.
const LOOKED_AT: u64 = 64 << 10;
/// Most files of a folder that are looked at.
const MOST_LOOKED_AT: usize = 64;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Trace,
    Machine,
    Samples,
    RankSummary,
    TopLog,
    Topology,
    NcclTopology,
    SmiTopology,
    NcclLog,
    CompileLog,
    FlightRecorder,
    Gate,
    /// Another answer that busbound saved as JSON.
    Answer,
    Bench,
    Nvbandwidth,
    Ncu,
    Page,
}

impl FileKind {
    /// In words, with an article.
    fn describe(self) -> &'static str {
        match self {
            Self::Trace => "a profiler trace",
            Self::Machine => "a machine profile",
            Self::Samples => "a file of samples from `busbound bench --raw`",
            Self::RankSummary => "a rank summary",
            Self::TopLog => "a log of `busbound top`",
            Self::Topology => "a topology from `busbound topo`",
            Self::NcclTopology => "a topology file of NCCL",
            Self::SmiTopology => "the output of `nvidia-smi topo -m`",
            Self::NcclLog => "a log of NCCL",
            Self::CompileLog => "a log of torch.compile",
            Self::FlightRecorder => "a dump of PyTorch's flight recorder",
            Self::Gate => "a saved answer of `busbound gate`",
            Self::Answer => "a saved answer of busbound",
            Self::Bench => "a saved answer of `busbound bench`",
            Self::Nvbandwidth => "a result of nvbandwidth",
            Self::Ncu => "an export of Nsight Compute",
            Self::Page => "an HTML page",
        }
    }

    /// Whether it is no trace, but says something about a run: `survey` reads it.
    pub(crate) fn is_beside_traces(self) -> bool {
        matches!(self, Self::NcclLog | Self::CompileLog | Self::FlightRecorder)
    }

    /// What to do with it.
    fn next(self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Trace => format!("run busbound {path}"),
            Self::Machine => format!("pass it with --machine {path}"),
            Self::Samples => format!("run busbound bench --from {path}"),
            Self::RankSummary => format!("run busbound merge {path}"),
            Self::TopLog => format!("run busbound top --replay {path}"),
            Self::Topology => format!("pass it with --topology {path}"),
            Self::NcclTopology => {
                format!("pass it with --topology {path}, or run busbound topo --from-nccl {path}")
            }
            Self::SmiTopology => format!("run busbound topo --from-smi {path}"),
            Self::NcclLog => {
                format!(
                    "run busbound survey {path}, or pass it with diagnose --nccl-log {path}, next to a trace"
                )
            }
            Self::CompileLog => {
                format!("run busbound survey {path}, or pass it with --compile-log {path}, next to a trace")
            }
            Self::FlightRecorder => format!(
                "run busbound survey {path}, with the dumps of all ranks, or pass it with --flight-recorder {path}, next to a trace"
            ),
            Self::Gate => format!("pass it with gate --baseline {path}"),
            Self::Answer => "give the trace that it was made from".to_owned(),
            Self::Bench => "give the profile that bench wrote next to it, usually machine.json".to_owned(),
            Self::Nvbandwidth => "measure with busbound bench instead".to_owned(),
            Self::Ncu => format!("pass it with --ncu {path}, next to a trace"),
            Self::Page => format!("open {path} in a browser"),
        }
    }

    /// Where to get one.
    fn source(self) -> &'static str {
        match self {
            Self::Trace => "give a trace of torch.profiler, Nsight Systems, JAX or busbound record",
            Self::Machine => "give the profile that busbound bench wrote",
            Self::Samples => "give a file that busbound bench --raw wrote",
            Self::RankSummary => "give files that busbound summarize wrote",
            Self::TopLog => "give a file that busbound top --log wrote",
            Self::Topology => "give a file that busbound topo -o topo.json or NCCL_TOPO_DUMP_FILE wrote",
            Self::NcclTopology => "give a file that NCCL_TOPO_DUMP_FILE wrote",
            Self::SmiTopology => "give what nvidia-smi topo -m printed",
            Self::NcclLog => "give what a run printed with NCCL_DEBUG=INFO",
            Self::CompileLog => "give what a run printed with TORCH_LOGS=graph_breaks,recompiles",
            Self::FlightRecorder => "give what TORCH_NCCL_DUMP_ON_TIMEOUT wrote",
            Self::Gate => "give a file that busbound gate -o base.json wrote",
            Self::Ncu => "give what ncu --csv --page raw printed",
            Self::Answer | Self::Bench | Self::Nvbandwidth | Self::Page => "give another file",
        }
    }

    /// What to do with it where something else was expected.
    fn next_instead_of(self, wanted: Self, path: &Path) -> String {
        match (wanted, self) {
            (Self::RankSummary, Self::Trace) => {
                format!("run busbound {0}, or make a summary: busbound summarize {0}", path.display())
            }
            (Self::Machine, Self::Samples) => {
                format!("make a profile of it: busbound bench --from {} --save machine.json", path.display())
            }
            _ => self.next(path),
        }
    }
}

/// The sentence for a folder without traces that has files which `survey` reads; `None` for any other.
pub(crate) fn instead_of_traces(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten().take(MOST_LOOKED_AT);
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    let (file, kind) = files.iter().find_map(|file| {
        let kind = kind_of(file).filter(|kind| kind.is_beside_traces())?;
        Some((file.file_name()?.to_string_lossy(), kind))
    })?;
    let folder = folder.display();
    Some(format!("{folder} holds no trace, but {file} is {}: run busbound survey {folder}", kind.describe()))
}

/// The sentence for a file that is something else than `wanted`; `None` if it is that, or nothing known.
pub(crate) fn instead_of(wanted: FileKind, path: &Path) -> Option<String> {
    let kind = kind_of(path).filter(|kind| *kind != wanted)?;
    let next = kind.next_instead_of(wanted, path);
    Some(format!("{} is {}, not {}: {next}", path.display(), kind.describe(), wanted.describe()))
}

/// The same, and also if nothing is known about the file; `None` if it is what is wanted, damaged, or cannot be opened.
pub(crate) fn not_a(wanted: FileKind, path: &Path) -> Option<String> {
    match kind_of(path) {
        Some(_) => instead_of(wanted, path),
        None if path.is_file() => {
            Some(format!("{} is not {}: {}", path.display(), wanted.describe(), wanted.source()))
        }
        None => None,
    }
}

pub(crate) fn kind_of(path: &Path) -> Option<FileKind> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(LOOKED_AT).read_to_end(&mut head).ok()?;
    kind_of_bytes(&head, path)
}

fn kind_of_bytes(head: &[u8], path: &Path) -> Option<FileKind> {
    let is_trace_name = busbound::trace::suffixes().any(|suffix| path.to_string_lossy().ends_with(suffix));
    let is_compressed = head.starts_with(&[0x1f, 0x8b]);
    if is_compressed || head.starts_with(b"SQLite format 3\0") {
        return is_trace_name.then_some(FileKind::Trace);
    }
    if FlightRecorder::is_one(head) {
        return Some(FileKind::FlightRecorder);
    }
    let text = String::from_utf8_lossy(head);
    let start = text.trim_start();
    if let Some(kind) = text.find("\"busbound.").and_then(|at| kind_of_schema(&text[at + 10..])) {
        return Some(kind);
    }
    if start.starts_with('<') {
        let lower = start.get(..200).unwrap_or(start).to_lowercase();
        return match () {
            () if lower.contains("<html") || lower.starts_with("<!doctype html") => Some(FileKind::Page),
            () if text.contains("<system") => Some(FileKind::NcclTopology),
            () => None,
        };
    }
    if start.starts_with(['{', '[']) {
        return match () {
            () if text.contains("\"nvbandwidth\"") => Some(FileKind::Nvbandwidth),
            () if text.contains("\"traceEvents\"") || text.contains("\"ph\"") => Some(FileKind::Trace),
            // `[rank0]:` before each line.
            () if start.starts_with('[') => kind_of_log(&text),
            () => None,
        };
    }
    match () {
        () if text.contains("\"Kernel Name\"") => Some(FileKind::Ncu),
        () if text.contains("GPU0") && text.contains("CPU Affinity") => Some(FileKind::SmiTopology),
        () => kind_of_log(&text),
    }
}

/// What a run printed. A log may have lines of both.
fn kind_of_log(text: &str) -> Option<FileKind> {
    match () {
        () if NcclLog::is_one(text) => Some(FileKind::NcclLog),
        () if CompileLog::is_one(text) => Some(FileKind::CompileLog),
        () => None,
    }
}

/// By what follows `"busbound.`.
fn kind_of_schema(rest: &str) -> Option<FileKind> {
    let name = rest.split('/').next()?;
    Some(match name {
        "machine" => FileKind::Machine,
        "samples" => FileKind::Samples,
        "rank" | "fleet" => FileKind::RankSummary,
        "top" => FileKind::TopLog,
        "topology" => FileKind::Topology,
        "gate" => FileKind::Gate,
        "bench" => FileKind::Bench,
        "diagnosis" | "diagnoses" | "survey" | "surveys" | "whatif" | "whatifs" | "comparison" | "plan"
        | "history" => FileKind::Answer,
        _ => return None,
    })
}

/// The paths, with folders without traces as the files in them: dumps and logs have no names that say what they are.
pub(crate) fn files_beside_traces(paths: &[PathBuf]) -> Vec<PathBuf> {
    let inside = |folder: &PathBuf| {
        let is_beside = |file: &PathBuf| kind_beside_traces(file).is_some();
        let entries = fs::read_dir(folder).ok()?;
        if !discover(folder).ok()?.iter().all(is_beside) {
            return None;
        }
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_beside).collect();
        by_rank(&mut files);
        Some(files).filter(|files| !files.is_empty())
    };
    paths.iter().flat_map(|path| inside(path).unwrap_or_else(|| vec![path.clone()])).collect()
}

/// The kind of a file that is no trace, but says something about a run.
pub(crate) fn kind_beside_traces(path: &Path) -> Option<FileKind> {
    kind_of(path).filter(|kind| kind.is_beside_traces())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes() {
        let of = |text: &str| kind_of_bytes(text.as_bytes(), Path::new("x.json"));
        for (text, kind) in [
            ("{\"schema\": \"busbound.machine/1\", \"gpu\": 1}", Some(FileKind::Machine)),
            ("{\n  \"schema\":\"busbound.rank/2\"}", Some(FileKind::RankSummary)),
            ("{\"schema\":\"busbound.tables/9\"}", None),
            ("{\"schemaVersion\": 1, \"traceEvents\": [", Some(FileKind::Trace)),
            ("[{\"ph\": \"X\"}", Some(FileKind::Trace)),
            ("{\"nvbandwidth\": {}}", Some(FileKind::Nvbandwidth)),
            ("<!DOCTYPE html><html>", Some(FileKind::Page)),
            ("<system version=\"1\">", Some(FileKind::NcclTopology)),
            ("{\"version\": \"2.5\", \"pg_config\": {}}", Some(FileKind::FlightRecorder)),
            ("starting\nbox:1:2 [0] NCCL INFO Bootstrap", Some(FileKind::NcclLog)),
            ("step 0\nGraph break in user code at a.py:1\nReason: b", Some(FileKind::CompileLog)),
            (
                "[rank0]:V1 a.py:1] [0/0] [__graph_breaks] Graph break in user code at a:1",
                Some(FileKind::CompileLog),
            ),
            ("[rank0]: box:1:2 [0] NCCL INFO Bootstrap", Some(FileKind::NcclLog)),
            ("[1, 2]", None),
            ("TORCH_LOGS=recompiles\nstep 0", Some(FileKind::CompileLog)),
            ("{\"learning_rate\": 1}", None),
            ("", None),
        ] {
            assert_eq!(of(text), kind, "{text}");
        }
        assert_eq!(kind_of_bytes(&[0x1f, 0x8b, 8], Path::new("run.json.gz")), Some(FileKind::Trace));
        assert_eq!(kind_of_bytes(&[0x1f, 0x8b, 8], Path::new("x.tar.gz")), None);
    }
}

//! A program with the library in it, and a fake CUPTI. Used by several test binaries, not all of which use all of it.
#![expect(clippy::unwrap_used, reason = "a test that cannot build its parts has failed")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use busbound_capture::format::{Chunk, ChunkReader, FileCounts, MAGIC, Record, Records};
use busbound_capture::inject::layout::kind;
use serde_json::Value;

pub(crate) struct Rig {
    folder: tempfile::TempDir,
}

fn build(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The library, the fake CUPTI and the program, built once.
fn parts() -> &'static Path {
    static PARTS: OnceLock<PathBuf> = OnceLock::new();
    PARTS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"));
        std::fs::create_dir_all(&folder).unwrap();
        let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "busbound_capture"]);
        rustc.args(["--cfg", "feature=\"injected\"", "-o"]).arg(folder.join("library.so"));
        build(rustc.arg(crate_root.join("src/lib.rs")));
        let sources = crate_root.join("tests/common");
        let nvml = "../../../cli/tests/suite/common/nvml.c";
        std::fs::create_dir_all(folder.join("nvml")).unwrap();
        for (name, source) in
            [("libcupti.so.13", "cupti.c"), ("libcuda.so.1", "driver.c"), ("nvml/libnvidia-ml.so.1", nvml)]
        {
            let mut cc = Command::new("cc");
            build(cc.args(["-shared", "-fPIC", "-o"]).arg(folder.join(name)).arg(sources.join(source)));
        }
        let mut cc = Command::new("cc");
        build(cc.arg("-o").arg(folder.join("program")).arg(sources.join("program.c")).arg("-ldl"));
        folder
    })
}

impl Rig {
    pub(crate) fn new() -> Self {
        // Before anything is timed.
        parts();
        let rig = Self { folder: tempfile::tempdir().unwrap() };
        rig.write_buffer();
        rig
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Only records without addresses of the process that recorded them.
    fn write_buffer(&self) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cupti/cuda-13.0.jsonl");
        let text = std::fs::read_to_string(path).unwrap();
        let dumped: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        let bytes = dumped["bytes"].as_str().unwrap();
        let all = dumped["records"].as_array().unwrap();
        let start = |index: usize| {
            all.get(index)
                .map_or(bytes.len() / 2, |record| usize::try_from(record["at"].as_u64().unwrap()).unwrap())
        };
        let (mut buffer, mut sizes) = (Vec::new(), String::new());
        for (i, record) in all.iter().enumerate() {
            let of_kind = u32::try_from(record["kind"].as_u64().unwrap()).unwrap();
            if [kind::MEMCPY, kind::MEMSET, kind::OVERHEAD].contains(&of_kind) {
                let hex = &bytes[2 * start(i)..2 * start(i + 1)];
                let one =
                    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
                buffer.extend(one);
                sizes.push_str(&format!("{}\n", start(i + 1) - start(i)));
            }
        }
        std::fs::write(self.at("buffer"), buffer).unwrap();
        std::fs::write(self.at("sizes"), sizes).unwrap();
    }

    pub(crate) fn run(&self, how: &str, environment: &[(&str, &str)]) -> Output {
        self.program(how, environment).output().unwrap()
    }

    /// The program as it would be started.
    pub(crate) fn program(&self, how: &str, environment: &[(&str, &str)]) -> Command {
        let mut program = Command::new(parts().join("program"));
        program.arg(parts().join("library.so")).arg(how);
        // The fake NVML only where a test asks for it: others do without its counters.
        let nvml = environment.contains(&("WITH_NVML", "1")).then(|| parts().join("nvml"));
        let paths = std::iter::once(parts().to_owned()).chain(nvml);
        program.env("LD_LIBRARY_PATH", std::env::join_paths(paths).unwrap());
        program.env("BUSBOUND_RECORD_TO", self.at("run.bbt"));
        program.env("BUFFER", self.at("buffer")).env("SIZES", self.at("sizes"));
        program.env_remove("CUDA_HOME").env_remove("CUDA_PATH");
        program.envs(environment.iter().copied());
        program
    }
}

/// What a file has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) copies: usize,
    pub(crate) memsets: usize,
    pub(crate) overheads: usize,
    /// Kernels by name; those whose name is not defined are under an empty one.
    pub(crate) kernels: BTreeMap<String, usize>,
    pub(crate) kernels_off_ms: u64,
    pub(crate) gpus: Vec<(u32, String, u64)>,
    pub(crate) facts: Vec<String>,
    /// The values of facts, by their keys.
    pub(crate) values: BTreeMap<String, String>,
    pub(crate) notes: Vec<String>,
    /// The memory of copies, and the waits of streams for other things.
    pub(crate) accesses: Vec<String>,
    /// What was read from files until some moments.
    pub(crate) files: Vec<(u64, FileCounts)>,
    pub(crate) has_clock: bool,
    pub(crate) has_ended: bool,
}

impl Recorded {
    pub(crate) fn of(path: &Path) -> Self {
        let file = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut chunks = ChunkReader::new(file.strip_prefix(MAGIC).unwrap());
        let (mut shown, mut names) = (Self::default(), BTreeMap::new());
        while let Some(chunk) = chunks.next_chunk().unwrap() {
            let Chunk::Whole { payload, .. } = chunk else { panic!("{chunk:?}") };
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            for record in Records::of(&payload) {
                match record {
                    Record::Name { id, text: name } => _ = names.insert(id, text(name)),
                    Record::Fact { key, value } => {
                        shown.facts.push(text(key));
                        shown.values.insert(text(key), text(value));
                    }
                    Record::Note { text: note } => shown.notes.push(text(note)),
                    Record::Copy { .. } => shown.copies += 1,
                    Record::Memset { .. } => shown.memsets += 1,
                    Record::Overhead { .. } => shown.overheads += 1,
                    Record::Kernel { name, .. } => {
                        *shown.kernels.entry(names.get(&name).cloned().unwrap_or_default()).or_default() += 1;
                    }
                    Record::KernelsOff { start, end } => shown.kernels_off_ms += (end - start) / 1_000_000,
                    Record::Gpu { id, name, memory, .. } => {
                        shown.gpus.push((id, names.get(&name).cloned().unwrap_or_default(), memory));
                    }
                    Record::Access { .. } | Record::OtherWait { .. } => {
                        shown.accesses.push(format!("{record:?}"))
                    }
                    Record::FileReads { at, counts } => shown.files.push((at, counts)),
                    Record::Clock { .. } => shown.has_clock = true,
                    Record::End => shown.has_ended = true,
                    _ => {}
                }
            }
        }
        shown
    }
}

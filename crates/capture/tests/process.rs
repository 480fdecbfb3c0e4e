//! The library in a process: what ends up in the file, and what happens to the process. CUPTI itself needs a GPU; a
//! fake CUPTI delivers records that a real one wrote (fixtures/cupti).
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot build its parts has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use busbound_capture::format::{Chunk, ChunkReader, MAGIC, Record, Records};
use busbound_capture::inject::layout::kind;
use serde_json::Value;

struct Rig {
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
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("process");
        std::fs::create_dir_all(&folder).unwrap();
        let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "busbound_capture"]);
        rustc.args(["--cfg", "feature=\"injected\"", "-o"]).arg(folder.join("library.so"));
        build(rustc.arg(crate_root.join("src/lib.rs")));
        let sources = crate_root.join("tests/process");
        let mut cc = Command::new("cc");
        build(
            cc.args(["-shared", "-fPIC", "-o"])
                .arg(folder.join("libcupti.so.13"))
                .arg(sources.join("cupti.c")),
        );
        let mut cc = Command::new("cc");
        build(cc.arg("-o").arg(folder.join("program")).arg(sources.join("program.c")).arg("-ldl"));
        folder
    })
}

impl Rig {
    fn new() -> Self {
        let rig = Self { folder: tempfile::tempdir().unwrap() };
        rig.write_buffer();
        rig
    }

    fn at(&self, name: &str) -> PathBuf {
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

    fn run(&self, how: &str, environment: &[(&str, &str)]) -> Output {
        let mut program = Command::new(parts().join("program"));
        program.arg(parts().join("library.so")).arg(how);
        program.env("LD_LIBRARY_PATH", parts()).env("BUSBOUND_RECORD_TO", self.at("run.bbt"));
        program.env("BUFFER", self.at("buffer")).env("SIZES", self.at("sizes"));
        program.env_remove("CUDA_HOME").env_remove("CUDA_PATH");
        program.envs(environment.iter().copied()).output().unwrap()
    }

    /// Copies, memsets and overhead records in the file, and whether it has its end.
    fn recorded(&self) -> ([usize; 3], bool) {
        let file = std::fs::read(self.at("run.bbt")).unwrap();
        let mut chunks = ChunkReader::new(file.strip_prefix(MAGIC).unwrap());
        let (mut counts, mut has_ended) = ([0; 3], false);
        while let Some(chunk) = chunks.next_chunk().unwrap() {
            let Chunk::Whole { payload, .. } = chunk else { panic!("{chunk:?}") };
            for record in Records::of(&payload) {
                match record {
                    Record::Copy { .. } => counts[0] += 1,
                    Record::Memset { .. } => counts[1] += 1,
                    Record::Overhead { .. } => counts[2] += 1,
                    Record::End => has_ended = true,
                    _ => {}
                }
            }
        }
        (counts, has_ended)
    }
}

#[test]
fn buffers_are_written_to_the_file_and_the_program_exits_normally() {
    let rig = Rig::new();
    let output = rig.run("exit", &[]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, b"done\n");
    assert_eq!(rig.recorded(), ([10, 2, 8], true));
}

/// Regression: the child waited ten seconds for a thread that it does not have.
#[test]
fn a_forked_child_exits_immediately() {
    let rig = Rig::new();
    let output = rig.run("fork", &[]);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(rig.recorded(), ([10, 2, 8], true));
}

#[test]
fn a_killed_process_leaves_what_was_flushed() {
    use std::os::unix::process::ExitStatusExt;
    let rig = Rig::new();
    assert_eq!(rig.run("kill", &[]).status.signal(), Some(9));
    assert_eq!(rig.recorded(), ([10, 2, 8], false));
}

#[test]
fn with_another_profiler_the_program_continues_and_no_file_is_left() {
    let rig = Rig::new();
    let output = rig.run("exit", &[("TAKEN", "1")]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("another profiler already uses CUPTI in this process; nothing is recorded"),
        "{said}"
    );
    assert!(!rig.at("run.bbt").exists());
}

#[test]
fn without_cupti_the_message_lists_the_searched_folders() {
    let rig = Rig::new();
    let output = rig.run("exit", &[("LD_LIBRARY_PATH", "")]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("libcupti not found: none is loaded"), "{said}");
    assert!(!rig.at("run.bbt").exists());
}

#[test]
fn if_no_file_can_be_written_cupti_is_released() {
    let rig = Rig::new();
    let output = rig.run("exit", &[("BUSBOUND_RECORD_TO", "/nowhere/run.bbt")]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("unsubscribed\n") && said.contains("cannot write /nowhere/run.bbt"), "{said}");
}

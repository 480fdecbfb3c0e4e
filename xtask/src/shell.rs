//! Runs other programs, and prints what is done.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Cargo's build folder.
pub(crate) fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

thread_local! {
    /// Where the output of this thread goes, if not to the terminal.
    static LOG: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// Runs something with its output in a file, so that several threads can talk at once.
pub(crate) fn with_log<T>(path: &Path, something: impl FnOnce() -> T) -> anyhow::Result<T> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    let file = File::create(path)?;
    LOG.with_borrow_mut(|log| *log = Some(file));
    let result = something();
    LOG.with_borrow_mut(|log| *log = None);
    Ok(result)
}

/// This thread's log for a program's output, if it has one.
fn log() -> Stdio {
    let clone = LOG.with_borrow(|log| log.as_ref().and_then(|file| file.try_clone().ok()));
    clone.map_or_else(Stdio::inherit, Stdio::from)
}

#[expect(clippy::print_stdout, reason = "this program talks to a developer")]
pub(crate) fn say(text: &str) {
    let is_logged =
        LOG.with_borrow_mut(|log| log.as_mut().is_some_and(|file| writeln!(file, "{text}").is_ok()));
    if !is_logged {
        println!("{text}");
    }
}

/// Where libFuzzer is, if it is not to be compiled.
pub(crate) const LIBFUZZER: &str = "CUSTOM_LIBFUZZER_PATH";

/// The cargo that runs this program.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Fuzz targets are checked and not linked, so libFuzzer's C++ code is not needed: any path makes its build script skip it.
    command.args(args).current_dir(root()).env(LIBFUZZER, target().join("libfuzzer.a"));
    command
}

pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    say(&format!("\n$ {}", spelled(command)));
    let status = command.stdout(log()).stderr(log()).status().with_context(|| spelled(command))?;
    ensure!(status.success(), "{} failed: {status}", spelled(command));
    Ok(())
}

/// Standard output of a program, as text.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stderr(log()).output().with_context(|| spelled(command))?;
    ensure!(output.status.success(), "{} failed: {}", spelled(command), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Paths of all files under version control, and of new ones that are not ignored; deleted ones are left out.
pub(crate) fn files() -> anyhow::Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let listed = output(&mut git)?;
    Ok(listed.lines().filter(|path| root().join(path).is_file()).map(str::to_owned).collect())
}

/// Whether a program runs successfully.
pub(crate) fn works(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

fn spelled(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let args = command.get_args().map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(program).chain(args).collect::<Vec<_>>().join(" ")
}

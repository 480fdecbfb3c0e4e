//! The real binary and its output.

pub(crate) mod collector;
mod running;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub(crate) use running::Running;

pub(crate) fn busbound(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbound"));
    // Files that a command writes go there.
    command.args(args).env_remove("NO_COLOR").stdin(Stdio::null()).current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

pub(crate) fn fixture(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "fixtures", name].iter().collect();
    path.display().to_string()
}

pub(crate) fn text(output: &Output) -> (String, String, Option<i32>) {
    let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (utf8(&output.stdout), utf8(&output.stderr), output.status.code())
}

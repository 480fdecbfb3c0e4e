//! Instructions that the scanner needs per megabyte, in the build that users get.

use std::path::Path;

use super::replicate::replicate;
use super::scratch;
use crate::instructions::scanner;
use crate::setup::has_valgrind;
use crate::shell::{cargo, root, run as run_command};

pub(crate) fn run(trace: &Path) -> anyhow::Result<String> {
    if !has_valgrind() {
        return Ok(
            "Instructions: skipped, valgrind is not installed (apt-get install valgrind).\n".to_owned()
        );
    }
    // The counted function needs a symbol, but the release build is stripped.
    let target = root().join("target/callgrind");
    run_command(
        cargo(&["build", "--release", "--locked", "--bin", "busbound", "--target-dir"])
            .arg(&target)
            .env("CARGO_PROFILE_RELEASE_STRIP", "none"),
    )?;
    let replica = replicate(trace, &scratch(), 1)?;
    let total = scanner(&target.join("release/busbound"), &replica.plain, &scratch().join("callgrind.out"))?;
    Ok(format!(
        "## Instructions\n\nScanner: **{:.2} million instructions per MB** of JSON ({:.0} million for {:.1} MB).\n",
        total / 1e6 / replica.json_mb,
        total / 1e6,
        replica.json_mb
    ))
}

//! Instructions the scanner spends per megabyte, counted by callgrind: the same on any machine,
//! however busy, so that a regression shows where timings are noise.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::replicate::replicate;
use super::scratch;
use crate::shell::{cargo, output, root, run as run_command, works};

pub(crate) fn run(trace: &Path) -> anyhow::Result<String> {
    if !works(Command::new("valgrind").arg("--version")) {
        return Ok(
            "Instructions: skipped, valgrind is not installed (apt-get install valgrind).\n".to_owned()
        );
    }
    // The counted function must have a name; the build that users get is stripped.
    let target = root().join("target/callgrind");
    run_command(
        cargo(&["build", "--release", "--bin", "busbound", "--target-dir"])
            .arg(&target)
            .env("CARGO_PROFILE_RELEASE_STRIP", "none"),
    )?;
    let replica = replicate(trace, &scratch(), 1)?;
    let counts = scratch().join("callgrind.out");
    output(
        Command::new("valgrind")
            .args(["--tool=callgrind", "--quiet", "--toggle-collect=*kineto::scan::scan"])
            .arg(format!("--callgrind-out-file={}", counts.display()))
            .arg(target.join("release/busbound"))
            .arg("survey")
            .arg(&replica.plain)
            .args(["--quiet", "--threads", "1"]),
    )?;
    let text = std::fs::read_to_string(&counts)?;
    let total =
        text.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
    let total: f64 = total.context("callgrind wrote no total")?.trim().parse()?;
    Ok(format!(
        "## Instructions\n\nScanner: **{:.2} million instructions per MB** of JSON ({:.0} million for {:.1} MB).\n",
        total / 1e6 / replica.json_mb,
        total / 1e6,
        replica.json_mb
    ))
}

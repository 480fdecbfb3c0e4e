//! How long a fresh release build takes, and how large the binary is.

use std::time::Instant;

use crate::shell::{cargo, root, run as run_command};

pub(crate) fn run() -> anyhow::Result<String> {
    let target = root().join("target/fresh-build");
    if target.exists() {
        std::fs::remove_dir_all(&target)?;
    }
    let began = Instant::now();
    run_command(cargo(&["build", "--release", "--bin", "busbound", "--target-dir"]).arg(&target))?;
    let seconds = began.elapsed().as_secs_f64();
    let size = std::fs::metadata(target.join("release/busbound"))?.len();
    std::fs::remove_dir_all(&target)?;
    Ok(format!(
        "## Build\n\nA fresh release build took **{seconds:.0} s** (bar 240); the binary has **{:.1} MB** (bar 25).\n",
        size as f64 / 1e6
    ))
}

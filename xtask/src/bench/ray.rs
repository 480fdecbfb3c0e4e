//! 1,000 traces on a Ray cluster of this machine: the same answer as the command's, and how long both take.

use std::process::Command;

use super::machine;
use super::ranks::write_section;
use crate::shell::{output, root, say};
use crate::wheel;

const HEADING: &str = "## 1,000 ranks on Ray";

pub(super) fn run(repetitions: usize) -> anyhow::Result<()> {
    let environment = wheel::environment()?.map_err(anyhow::Error::msg)?;
    let mut bench = Command::new(environment.join("bin/python"));
    bench.arg(root().join("crates/python/tests/bench_ray.py")).args(["--runs", &repetitions.to_string()]);
    // From another folder, so that the wheel is imported.
    let rows = output(bench.current_dir(root().join("target/wheel")))?;
    let about = format!("Written by `cargo xtask bench --ray`. {}, debug build.", machine()?);
    let text = format!("{HEADING}\n\n{about}\n{rows}");
    write_section(HEADING, &text)?;
    say(&text);
    Ok(())
}

//! How long do the first answer and all tests take from a clean checkout? Writes docs/results/build.md.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Instant;

use super::machine;
use super::measure::{TICKS_PER_SECOND, ticks_of_children};
use crate::shell::{cargo, root, run as run_command, say};

/// What a command took: wall time, and CPU time of everything it started.
struct Cost {
    wall: f64,
    processor: f64,
}

fn cost_of(command: &mut std::process::Command) -> anyhow::Result<Cost> {
    let (began, before) = (Instant::now(), ticks_of_children());
    run_command(command)?;
    let processor = (ticks_of_children() - before) / TICKS_PER_SECOND;
    Ok(Cost { wall: began.elapsed().as_secs_f64(), processor })
}

pub(crate) fn run() -> anyhow::Result<()> {
    let target = root().join("target/fresh-build");
    let fresh = |args: &[&str]| -> anyhow::Result<Cost> {
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        cost_of(cargo(args).env("CARGO_TARGET_DIR", &target))
    };
    let page = std::env::temp_dir().join("busbound-demo.html");
    let page = page.to_string_lossy();
    let demo = fresh(&["run", "--release", "--locked", "--", "demo", "--page", &page])?;
    let size = |profile: &str| -> anyhow::Result<f64> {
        Ok(fs::metadata(target.join(profile).join("busbound"))?.len() as f64 / 1e6)
    };
    let demo_mb = size("release")?;
    let dist = fresh(&["build", "--profile", "dist", "--locked", "--bin", "busbound"])?;
    let dist_mb = size("dist")?;
    let tests = fresh(&["xtask", "test"])?;
    fs::remove_dir_all(&target)?;
    write(
        &root().join("docs/results/build.md"),
        &[
            ("`cargo run --release -- demo`, the first answer", demo, Some(demo_mb)),
            ("`cargo build --profile dist`, the release build", dist, Some(dist_mb)),
            ("`cargo xtask test`, everything", tests, None),
        ],
    )
}

fn write(path: &Path, rows: &[(&str, Cost, Option<f64>)]) -> anyhow::Result<()> {
    let mut text = String::from("# Time to build and test from a clean checkout\n\n");
    writeln!(text, "Written by `cargo xtask bench --build`. {}.", machine()?)?;
    writeln!(
        text,
        "Each in an empty target folder, with crates, Node, chromium and Python packages already downloaded; \
         CPU time is user and system time of all processes.\n"
    )?;
    writeln!(text, "| | wall | CPU time | binary |\n|---|---:|---:|---:|")?;
    for (what, cost, size) in rows {
        let size = size.map_or(String::new(), |size| format!("{size:.1} MB"));
        writeln!(text, "| {what} | {} | {} | {size} |", minutes(cost.wall), minutes(cost.processor))?;
    }
    fs::write(path, &text)?;
    say(&text);
    Ok(())
}

fn minutes(seconds: f64) -> String {
    format!("{:.1} min", seconds / 60.0)
}

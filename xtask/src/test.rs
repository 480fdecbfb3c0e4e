//! `cargo xtask test`: everything that must pass before a change lands.

use clap::Args;

use crate::shell::{self, cargo, root, say};
use crate::skipped::{Part, Skipped};
use crate::{instructions, setup, structure, web, wheel, words};

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Skip a part on purpose; in CI, everything else that cannot be checked is a failure
    #[arg(long, value_name = "PART")]
    without: Vec<Part>,
}

pub(crate) fn run(args: TestArgs) -> anyhow::Result<()> {
    let mut skipped = Skipped::new(args.without);
    // Quick checks that often fail come first.
    format(&mut skipped)?;
    structure::run()?;
    words::run()?;
    wheel::lint(&mut skipped)?;
    lint(&mut skipped)?;
    look_for_peers(&mut skipped)?;
    look_for_checkers(&mut skipped)?;
    // Unit, property, snapshot and CLI tests, then the examples in the documentation.
    run_cargo(&["test", "--locked", "--workspace"])?;
    let mut doc = cargo(&["doc", "--locked", "--workspace", "--no-deps", "--quiet"]);
    shell::run(doc.env("RUSTDOCFLAGS", "-D warnings"))?;
    check_fuzz_targets()?;
    instructions::gate(&mut skipped)?;
    // The pages, in a real browser.
    web::test(&mut skipped)?;
    wheel::test(&mut skipped)?;
    say(&format!("\n{}", skipped.summary()));
    Ok(())
}

/// The fuzz targets are a separate workspace that shares the build folder.
fn check_fuzz_targets() -> anyhow::Result<()> {
    let target = shell::target();
    let mut check = cargo(&["check", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target-dir"]);
    // Nothing is linked, so libFuzzer's C++ code is not needed: any path makes its build script skip it.
    check.arg(&target).env("CUSTOM_LIBFUZZER_PATH", target.join("libfuzzer.a"));
    shell::run(&mut check)
}

fn format(skipped: &mut Skipped) -> anyhow::Result<()> {
    if !setup::has_rust_component("rustfmt", "fmt") {
        return skipped.add("formatting", "rustfmt is not installed (rustup component add rustfmt)");
    }
    run_cargo(&["fmt", "--all", "--check"])
}

fn lint(skipped: &mut Skipped) -> anyhow::Result<()> {
    if !setup::has_rust_component("clippy", "clippy") {
        return skipped.add("lints", "clippy is not installed (rustup component add clippy)");
    }
    run_cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

/// Tests of third-party traces pass without them: check here whether they exist.
fn look_for_peers(skipped: &mut Skipped) -> anyhow::Result<()> {
    let are_there = root().join("../shared/peers").is_dir() || std::env::var_os("BUSBOUND_PEERS").is_some();
    if are_there || skipped.leaves_out(Part::Peers) {
        return Ok(());
    }
    skipped.add("third-party traces", "they are not next to the checkout, and BUSBOUND_PEERS is not set")
}

/// Tests of manual pages and completions pass without their checkers: check here whether they are installed.
fn look_for_checkers(skipped: &mut Skipped) -> anyhow::Result<()> {
    let missing = setup::missing_checkers();
    if missing.is_empty() {
        return Ok(());
    }
    skipped.add("manual pages and completions", &format!("{} could not be installed", missing.join(", ")))
}

fn run_cargo(args: &[&str]) -> anyhow::Result<()> {
    shell::run(&mut cargo(args))
}

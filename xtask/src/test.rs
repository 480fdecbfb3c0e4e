//! `cargo xtask test`: everything that must pass before a change lands.

use std::time::{Duration, Instant};

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
    let mut took = Took::default();
    // Quick checks that often fail come first.
    took.part("formatting", || format(&mut skipped))?;
    took.part("structure", structure::run)?;
    took.part("words", words::run)?;
    took.part("Python lints", || wheel::lint(&mut skipped))?;
    took.part("Clippy", || lint(&mut skipped))?;
    look_for_peers(&mut skipped)?;
    look_for_checkers(&mut skipped)?;
    // Unit, property, snapshot and CLI tests, then the examples in the documentation.
    took.part("building tests", || run_cargo(&["test", "--locked", "--workspace", "--no-run", "--quiet"]))?;
    took.part("tests", || run_cargo(&["test", "--locked", "--workspace"]))?;
    took.part("documentation", document)?;
    took.part("fuzz targets", check_fuzz_targets)?;
    took.part("instruction counts", || instructions::gate(&mut skipped))?;
    // The pages, in a real browser.
    took.part("pages", || web::test(&mut skipped))?;
    took.part("wheel", || wheel::test(&mut skipped))?;
    say(&format!("\n{}\n{}", took.summary(), skipped.summary()));
    Ok(())
}

/// How long each part took.
#[derive(Debug, Default)]
struct Took(Vec<(&'static str, Duration)>);

impl Took {
    fn part(&mut self, name: &'static str, part: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        let since = Instant::now();
        part()?;
        self.0.push((name, since.elapsed()));
        Ok(())
    }

    /// `Took 12:34: Clippy 1:53, tests 8:39.`, without what takes seconds.
    fn summary(&self) -> String {
        let clock = |time: Duration| format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60);
        let long = self.0.iter().filter(|(_, time)| time.as_secs() >= 10);
        let parts: Vec<String> = long.map(|(name, time)| format!("{name} {}", clock(*time))).collect();
        format!("Took {}: {}.", clock(self.0.iter().map(|(_, time)| *time).sum()), parts.join(", "))
    }
}

fn document() -> anyhow::Result<()> {
    let mut doc = cargo(&["doc", "--locked", "--workspace", "--no-deps", "--quiet"]);
    shell::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
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

//! `cargo xtask test`: everything that must pass before a change lands.

use std::time::{Duration, Instant};
use std::{fs, thread};

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
    let began = Instant::now();
    let mut checks = Checks { skipped: Skipped::new(args.without), took: Vec::new() };
    // Quick checks that often fail come first.
    checks.part("formatting", format)?;
    checks.part("structure", |_| structure::run())?;
    checks.part("words", |_| words::run())?;
    // Compiling takes long, and so do downloads: at the same time.
    checks.both(compile, ("installing", install))?;
    // Tests wait much of their time, for a browser or for a process that they started.
    checks.both(test, ("pages and wheel", test_pages_and_wheel))?;
    say(&format!("\n{}\n{}", summary(began.elapsed(), &checks.took), checks.skipped.summary()));
    Ok(())
}

fn compile(checks: &mut Checks) -> anyhow::Result<()> {
    checks.part("Clippy", lint)?;
    checks.part("building tests", |_| run_cargo(&["test", "--locked", "--workspace", "--no-run", "--quiet"]))
}

fn install(checks: &mut Checks) -> anyhow::Result<()> {
    checks.part("Python lints", wheel::lint)?;
    checks.part("third-party traces", look_for_peers)?;
    checks.part("checkers", look_for_checkers)?;
    checks.part("pages' sources", web::lint)?;
    checks.part("Python packages", |_| {
        setup::tests_environment();
        Ok(())
    })
}

fn test(checks: &mut Checks) -> anyhow::Result<()> {
    // Unit, property, snapshot and CLI tests, then the examples in the documentation.
    checks.part("tests", |_| run_cargo(&["test", "--locked", "--workspace"]))?;
    checks.part("documentation", |_| document())?;
    checks.part("instruction counts", instructions::gate)
}

fn test_pages_and_wheel(checks: &mut Checks) -> anyhow::Result<()> {
    // The pages, in a real browser.
    checks.part("pages", web::test)?;
    checks.part("wheel", wheel::test)
}

/// What was checked so far: what had to be skipped, and how long each part took.
struct Checks {
    skipped: Skipped,
    took: Vec<(&'static str, Duration)>,
}

impl Checks {
    fn part(
        &mut self,
        name: &'static str,
        part: impl FnOnce(&mut Skipped) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let since = Instant::now();
        part(&mut self.skipped)?;
        self.took.push((name, since.elapsed()));
        Ok(())
    }

    /// Runs some parts in the terminal, and others at the same time, whose output follows when they end.
    fn both(
        &mut self,
        here: impl FnOnce(&mut Self) -> anyhow::Result<()>,
        (name, beside): (&str, impl FnOnce(&mut Self) -> anyhow::Result<()> + Send),
    ) -> anyhow::Result<()> {
        let path = shell::target().join("logs").join(name.replace(' ', "-")).with_extension("log");
        let mut others = Self { skipped: self.skipped.beside(), took: Vec::new() };
        let (ours, theirs) = thread::scope(|scope| {
            let thread =
                scope.spawn(|| shell::with_log(&path, || beside(&mut others)).and_then(|result| result));
            (here(self), thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("{name} panicked"))))
        });
        say(&format!("\nat the same time, {name}:\n{}", fs::read_to_string(&path).unwrap_or_default()));
        self.skipped.join(others.skipped);
        self.took.extend(others.took);
        ours.and(theirs)
    }
}

/// `Took 12:34: Clippy 1:53, tests 8:39.`, without what takes seconds.
fn summary(all: Duration, parts: &[(&str, Duration)]) -> String {
    let clock = |time: Duration| format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60);
    let long = parts.iter().filter(|(_, time)| time.as_secs() >= 10);
    let parts: Vec<String> = long.map(|(name, time)| format!("{name} {}", clock(*time))).collect();
    format!("Took {}: {}.", clock(all), parts.join(", "))
}

fn document() -> anyhow::Result<()> {
    let mut doc = cargo(&["doc", "--locked", "--workspace", "--no-deps", "--quiet"]);
    shell::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
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
    // With the fuzz targets, which nothing else compiles.
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

/// Tests of manual pages, completions and programs for musl pass without their checkers: check here whether they are installed.
fn look_for_checkers(skipped: &mut Skipped) -> anyhow::Result<()> {
    let missing = setup::missing_checkers();
    if missing.is_empty() {
        return Ok(());
    }
    skipped.add(
        "manual pages, completions and programs for musl",
        &format!("{} could not be installed", missing.join(", ")),
    )
}

fn run_cargo(args: &[&str]) -> anyhow::Result<()> {
    shell::run(&mut cargo(args))
}

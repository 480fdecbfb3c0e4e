//! The tests of the Python wheel: built as users get it, but for the optimiser; installed where nothing else is; asked there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;

use crate::shell::{root, run, say, works};

/// What the tests work with besides. Those that cannot be installed are not tested with, and pytest says so.
const BESIDES: [&str; 7] = ["pyarrow", "pandas", "polars", "duckdb", "mypy", "ray", "fsspec"];

/// Builds the wheel and runs its tests in an environment of its own; where there is no Python for it, that is said.
pub(crate) fn test() -> anyhow::Result<()> {
    let began = Instant::now();
    let folder = root().join("target/wheel");
    let tools = folder.join("tools");
    if !has_python() {
        say("skipped the Python wheel: Python 3.10 or newer with venv is missing");
        return Ok(());
    }
    let is_there = works(Command::new(tools.join("bin/maturin")).arg("--version"));
    let has_maturin = is_there || (make_environment(&tools)? && install(&tools, &["maturin>=1.9.4,<2"]));
    if !has_maturin {
        say("skipped the Python wheel: maturin could not be installed");
        return Ok(());
    }
    let wheel = build(&tools, &folder.join("dist"))?;
    let fresh = folder.join("fresh");
    anyhow::ensure!(make_environment(&fresh)?, "no fresh environment in {}", fresh.display());
    run(pip(&fresh).arg(&wheel))?;
    anyhow::ensure!(install(&fresh, &["pytest"]), "pytest could not be installed");
    for package in BESIDES {
        if !install(&fresh, &[package]) {
            say(&format!("skipped within the wheel's tests: {package} could not be installed"));
        }
    }
    let mut tests = Command::new(fresh.join("bin/python"));
    // From elsewhere, so that it is the wheel that is imported.
    tests.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(root().join("crates/python/tests"));
    run(tests.current_dir(&folder).env("PYTHONDONTWRITEBYTECODE", "1"))?;
    say(&format!("the wheel took {:.0} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// The wheel, alone in its folder. Unoptimised: what cargo has compiled for other tests serves here too.
fn build(tools: &Path, dist: &Path) -> anyhow::Result<PathBuf> {
    let _ = fs::remove_dir_all(dist);
    let mut maturin = Command::new(tools.join("bin/maturin"));
    maturin.args(["build", "--profile", "dev", "--manifest-path", "crates/python/Cargo.toml", "--out"]);
    run(maturin.arg(dist).current_dir(root()))?;
    let built = fs::read_dir(dist)?.flatten().map(|entry| entry.path());
    built
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "whl"))
        .context("maturin built no wheel")
}

fn has_python() -> bool {
    let is_new = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    works(Command::new("python3").args(["-c", is_new]))
}

fn make_environment(at: &Path) -> anyhow::Result<bool> {
    fs::create_dir_all(at)?;
    Ok(works(Command::new("python3").args(["-m", "venv", "--clear"]).arg(at)))
}

fn install(environment: &Path, packages: &[&str]) -> bool {
    works(pip(environment).args(packages))
}

fn pip(environment: &Path) -> Command {
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip
}

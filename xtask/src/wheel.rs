//! The Python side: lints and types of its sources, and the wheel, installed and tested.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;

use crate::setup::{has_python, pip, tests_environment, tools_environment};
use crate::shell::{cargo, root, run, say, target};
use crate::skipped::{Part, Skipped};

const NO_PYTHON: &str = "Python 3.10 or newer with venv is missing";

/// ruff and mypy, as configured in crates/python/pyproject.toml.
pub(crate) fn lint(skipped: &mut Skipped) -> anyhow::Result<()> {
    let Some(tools) = has_python().then(tools_environment).flatten() else {
        return skipped.add("lints and types of the Python sources", "ruff and mypy could not be installed");
    };
    let tool = |name: &str, args: &[&str]| {
        let mut command = Command::new(tools.join("bin").join(name));
        command.args(args).current_dir(root().join("crates/python"));
        command
    };
    run(&mut tool("ruff", &["check", "--no-cache", "."]))?;
    run(tool("mypy", &["--cache-dir"]).arg(root().join("target/wheel/mypy")))
}

/// Builds the wheel and runs its tests in a separate environment.
pub(crate) fn test(skipped: &mut Skipped) -> anyhow::Result<()> {
    if skipped.leaves_out(Part::Wheel) {
        return Ok(());
    }
    let began = Instant::now();
    let tests = match environment()? {
        Ok(tests) => tests,
        Err(missing) => return skipped.add("the Python wheel", missing),
    };
    let folder = root().join("target/wheel");
    let results = folder.join("pytest.xml");
    let mut pytest = Command::new(tests.join("bin/python"));
    // From another folder, so that the wheel is imported.
    pytest.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--junitxml"]).arg(&results);
    pytest.arg(root().join("crates/python/tests"));
    run(pytest.current_dir(&folder).env("PYTHONDONTWRITEBYTECODE", "1"))?;
    for why in skips(&fs::read_to_string(&results)?) {
        skipped.add("a test of the Python wheel", &why)?;
    }
    say(&format!("the wheel took {:.0} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// The environment of the wheel's tests with the wheel built and installed, or what is missing for it.
pub(crate) fn environment() -> anyhow::Result<Result<PathBuf, &'static str>> {
    if !has_python() {
        return Ok(Err(NO_PYTHON));
    }
    let Some(tools) = tools_environment() else { return Ok(Err("maturin could not be installed")) };
    let Some(tests) = tests_environment() else {
        return Ok(Err("the packages for its tests could not be installed"));
    };
    let wheel = build(&tools, &root().join("target/wheel/dist"))?;
    run(pip(&tests).arg("--force-reinstall").arg(&wheel))?;
    Ok(Ok(tests))
}

/// Tests that may be skipped on every machine, by their reason: those of torch and of large databases.
const EXPECTED: &str = "too large to install";

/// Why tests were skipped, from pytest's JUnit file.
fn skips(junit: &str) -> Vec<String> {
    // A module that is skipped has its reason in the text of the element, not in the message.
    let elements =
        junit.split("<skipped").skip(1).map(|rest| rest.split("</testcase>").next().unwrap_or(rest));
    let unexpected = elements.filter(|element| !element.contains(EXPECTED));
    let message = |element: &str| Some(element.split("message=\"").nth(1)?.split('"').next()?.to_owned());
    unexpected.map(|element| message(element).unwrap_or_else(|| "no reason is given".to_owned())).collect()
}

/// The wheel, alone in its folder: maturin's metadata, the Python sources, and the library as cargo built it for the
/// other tests. maturin itself would compile the workspace again, without the features that the tests enable; the
/// release builds with it, and tests what it built.
fn build(tools: &Path, dist: &Path) -> anyhow::Result<PathBuf> {
    let _ = fs::remove_dir_all(dist);
    // With the tests, because cargo then enables the same features and compiles only what is new: the library.
    run(&mut cargo(&["build", "--locked", "--workspace", "--lib", "--tests"]))?;
    let content = dist.join("content");
    let package = content.join("busbound");
    copy_sources(&root().join("crates/python/python/busbound"), &package)?;
    let library = format!("debug/{DLL_PREFIX}busbound_python{DLL_SUFFIX}");
    fs::copy(target().join(library), package.join("_native.abi3.so"))?;
    let mut maturin = Command::new(tools.join("bin/maturin"));
    maturin.args(["pep517", "write-dist-info", "--locked", "--quiet", "--metadata-directory"]).arg(&content);
    run(maturin.current_dir(root().join("crates/python")))?;
    pack(&content, dist)
}

fn copy_sources(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let copy = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_sources(&path, &copy)?;
        } else if path.extension().is_some_and(|end| end == "py" || end == "pyi" || end == "typed") {
            fs::copy(&path, &copy)?;
        }
    }
    Ok(())
}

/// A wheel is a zip archive whose name repeats the version and tag in its metadata.
fn pack(content: &Path, dist: &Path) -> anyhow::Result<PathBuf> {
    let mut folders = fs::read_dir(content)?.flatten().map(|entry| entry.path());
    let info = folders.find(|path| path.extension().is_some_and(|end| end == "dist-info"));
    let info = info.context("maturin wrote no metadata")?;
    // pip demands the list of files, and completes it.
    fs::write(info.join("RECORD"), "")?;
    let about = fs::read_to_string(info.join("WHEEL"))?;
    let tag = about.lines().find_map(|line| line.strip_prefix("Tag: ")).context("the metadata has no tag")?;
    let version = info.file_stem().unwrap_or_default().to_string_lossy();
    let wheel = dist.join(format!("{version}-{tag}.whl"));
    let mut zip = Command::new("python3");
    zip.args(["-m", "zipfile", "-c"]).arg(&wheel).arg("busbound").arg(info.file_name().unwrap_or_default());
    run(zip.current_dir(content))?;
    Ok(wheel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_tests_are_found_with_their_reasons() {
        let junit = r#"<testcase name="a"><skipped type="pytest.skip" message="could not import 'ray'">x</skipped></testcase>
            <testcase name="b" /><testcase name="c"><skipped message="torch is not installed: it is too large to install for one test"/>"#;
        assert_eq!(skips(junit), ["could not import 'ray'"]);
    }
}

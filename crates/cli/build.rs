//! Compiles the libraries that `busbound record` and `busbound try` load into programs, so that this program can include them.
//!
//! Cargo cannot make a program depend on a shared library of the same workspace; the crates have no dependencies, so one call of the
//! compiler each is all it takes.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// A library by the name of its crate, and the processors it is for.
struct Library {
    name: &'static str,
    architectures: &'static [&'static str],
}

const LIBRARIES: [Library; 2] = [
    Library { name: "capture", architectures: &["x86_64", "aarch64"] },
    // It replaces a function of the C library, in the processor's own language.
    Library { name: "apply", architectures: &["x86_64"] },
];

fn main() -> Result<(), String> {
    LIBRARIES.iter().try_for_each(compile)
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("cargo did not set {name}"))
}

fn compile(library: &Library) -> Result<(), String> {
    let name = format!("busbound_{}", library.name);
    // The crate itself says where it is: in the workspace, or in a registry's directory.
    let source = PathBuf::from(variable(&format!("DEP_{}_SOURCE", name.to_uppercase()))?);
    let path = PathBuf::from(variable("OUT_DIR")?).join(format!("{name}.so"));
    println!("cargo::rerun-if-changed={}", source.display());
    let is_for = library.architectures.contains(&variable("CARGO_CFG_TARGET_ARCH")?.as_str());
    if !is_for || variable("CARGO_CFG_TARGET_OS")? != "linux" || variable("CARGO_CFG_TARGET_ENV")? != "gnu" {
        // Libraries can only be loaded into programs on Linux, if they use glibc (Python, PyTorch). On other systems the
        // command says so.
        return std::fs::write(&path, b"").map_err(|error| error.to_string());
    }
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.args(["--crate-name", &name, "--edition", "2024", "--crate-type", "cdylib"]);
    // Tests wait for it.
    let level = if variable("PROFILE")? == "debug" { 1 } else { 3 };
    rustc.args(["-C", &format!("opt-level={level}"), "-C", "strip=symbols", "--cap-lints", "allow"]);
    rustc.args(["--cfg", "feature=\"injected\""]);
    rustc.args(["--target", &variable("TARGET")?]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    rustc.arg("-o").arg(&path).arg(source.join("lib.rs"));
    let status = rustc.status().map_err(|error| format!("{rustc:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{rustc:?} failed: {status}")) }
}

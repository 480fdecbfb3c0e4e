//! Compiles the library that `busbound record` injects, so that the program can include it.
//!
//! Cargo cannot make a program depend on a shared library of the same workspace; the crate has no dependencies, so one call of the
//! compiler is all it takes.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), String> {
    let variable = |name: &str| env::var(name).map_err(|_| format!("cargo did not set {name}"));
    // The crate itself says where it is: in the workspace, or in a registry's directory.
    let source = PathBuf::from(variable("DEP_BUSBOUND_CAPTURE_SOURCE")?);
    let library = PathBuf::from(variable("OUT_DIR")?).join("busbound_capture.so");
    println!("cargo::rerun-if-changed={}", source.display());
    if variable("CARGO_CFG_TARGET_OS")? != "linux" || variable("CARGO_CFG_TARGET_ENV")? != "gnu" {
        // CUPTI can only be injected on Linux, into programs that use glibc (Python, PyTorch). On other systems the
        // command says so.
        return std::fs::write(&library, b"").map_err(|error| error.to_string());
    }
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.args(["--crate-name", "busbound_capture", "--edition", "2024", "--crate-type", "cdylib"]);
    rustc.args([
        "-C",
        "opt-level=3",
        "-C",
        "strip=symbols",
        "--cfg",
        "feature=\"injected\"",
        "--cap-lints",
        "allow",
    ]);
    rustc.args(["--target", &variable("TARGET")?]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    rustc.arg("-o").arg(&library).arg(source.join("lib.rs"));
    let status = rustc.status().map_err(|error| format!("{rustc:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{rustc:?} failed: {status}")) }
}

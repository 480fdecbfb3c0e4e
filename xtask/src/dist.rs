//! `cargo xtask dist`: the release archive for one platform: the program, its manual and completions.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use crate::shell::{self, cargo, root, say};

/// Shells expect these file names for completions.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "busbound.bash"),
    ("zsh", "_busbound"),
    ("fish", "busbound.fish"),
    ("powershell", "_busbound.ps1"),
    ("elvish", "busbound.elv"),
];

#[derive(Debug, Args)]
pub(crate) struct DistArgs {
    /// Target platform; its program must run on this machine, because it writes the manual
    #[arg(long, value_name = "TRIPLE")]
    target: String,
    /// Pack this program instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

pub(crate) fn run(args: &DistArgs) -> anyhow::Result<()> {
    let binary = match &args.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => build(&args.target)?,
    };
    let said = shell::output(Command::new(&binary).arg("--version"))?;
    let version = said.trim().strip_prefix("busbound ").context("the program does not print its version")?;
    let name = format!("busbound-{version}-{}", args.target);
    let dist = root().join("target/dist");
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fill(&folder, &binary)?;
    let archive = pack(&dist, &name, args.target.contains("windows"))?;
    // Everything in this folder is uploaded, so only the archive stays.
    fs::remove_dir_all(&folder)?;
    let bytes = fs::metadata(&archive)?.len();
    say(&format!("{}: {bytes} bytes", archive.display()));
    Ok(())
}

fn build(target: &str) -> anyhow::Result<PathBuf> {
    shell::run(&mut cargo(&[
        "build",
        "--profile",
        "dist",
        "--locked",
        "--package",
        "busbound-cli",
        "--target",
        target,
    ]))?;
    let file = if target.contains("windows") { "busbound.exe" } else { "busbound" };
    Ok(root().join("target").join(target).join("dist").join(file))
}

fn fill(folder: &Path, binary: &Path) -> anyhow::Result<()> {
    let man = folder.join("man/man1");
    let completions = folder.join("completions");
    fs::create_dir_all(&completions)?;
    fs::copy(binary, folder.join(binary.file_name().context("the program has no name")?))?;
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(root().join(file), folder.join(file)).context(file)?;
    }
    shell::run(Command::new(binary).arg("man").arg("-o").arg(&man))?;
    ensure!(man.join("busbound-diagnose.1").is_file(), "the manual was not written");
    for (shell, file) in COMPLETIONS {
        shell::run(
            Command::new(binary).args(["completions", shell]).stdout(File::create(completions.join(file))?),
        )?;
    }
    Ok(())
}

/// `.tar.gz`, or `.zip` for Windows.
fn pack(dist: &Path, name: &str, zip: bool) -> anyhow::Result<PathBuf> {
    let file = if zip { format!("{name}.zip") } else { format!("{name}.tar.gz") };
    let mut tar = if zip {
        // Windows' own tar, which can write zip archives; Git's tar, first in the path, cannot.
        let system = std::env::var_os("SystemRoot").context("a .zip can only be built on Windows")?;
        let mut tar = Command::new(Path::new(&system).join("System32").join("tar.exe"));
        tar.args(["-a", "-c", "-f"]);
        tar
    } else {
        let mut tar = Command::new("tar");
        tar.args(["-c", "-z", "-f"]);
        tar
    };
    shell::run(tar.args([&file, name]).current_dir(dist))?;
    Ok(dist.join(file))
}

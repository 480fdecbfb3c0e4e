//! `cargo xtask dist`: what is handed out: the program, its manual and completions, in one archive for a platform.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use crate::shell::{self, cargo, root, say};

/// Where a shell looks for completions decides their names.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "busbound.bash"),
    ("zsh", "_busbound"),
    ("fish", "busbound.fish"),
    ("powershell", "_busbound.ps1"),
    ("elvish", "busbound.elv"),
];

#[derive(Debug, Args)]
pub(crate) struct DistArgs {
    /// For which platform; its program has to run here, because the manual comes from it
    #[arg(long, value_name = "TRIPLE")]
    target: String,
    /// Pack this program in place of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

pub(crate) fn run(args: &DistArgs) -> anyhow::Result<()> {
    let binary = match &args.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => build(&args.target)?,
    };
    let said = shell::output(Command::new(&binary).arg("--version"))?;
    let version = said.trim().strip_prefix("busbound ").context("the program does not say its version")?;
    let name = format!("busbound-{version}-{}", args.target);
    let dist = root().join("target/dist");
    let folder = dist.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fill(&folder, &binary)?;
    let archive = pack(&dist, &name, args.target.contains("windows"))?;
    // What is uploaded is what lies here, and that is the archive alone.
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

/// `.tar.gz`, or `.zip` where people expect that.
fn pack(dist: &Path, name: &str, zip: bool) -> anyhow::Result<PathBuf> {
    let file = if zip { format!("{name}.zip") } else { format!("{name}.tar.gz") };
    let mut tar = if zip {
        // Windows' own, which makes zip archives; the one of Git before it in the path does not.
        let system = std::env::var_os("SystemRoot").context("a .zip is made on Windows")?;
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

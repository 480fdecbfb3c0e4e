//! `cargo xtask structure`: no function over 100 lines, no file over 500 lines without a reason, no import cycles
//! between files other than parent and child modules.

mod imports;
mod lengths;

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{output, root, say};
use anyhow::{Context, ensure};

/// A source file and its path from the root of the repository.
struct Source {
    path: String,
    text: String,
}

pub(crate) fn run() -> anyhow::Result<()> {
    let sources = sources()?;
    let mut found: Vec<String> = sources.iter().flat_map(lengths::violations).collect();
    found.extend(imports::cycles(&sources));
    for line in &found {
        say(&format!("violates a structure rule: {line}"));
    }
    ensure!(found.is_empty(), "{} violations of the structure rules", found.len());
    say(&format!("structure: {} files, no violations", sources.len()));
    Ok(())
}

/// All sources under version control, and new ones that are not ignored.
fn sources() -> anyhow::Result<Vec<Source>> {
    let mut git = std::process::Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let listed = output(&mut git)?;
    let is_source = |path: &&str| {
        let extension = Path::new(path).extension().and_then(|end| end.to_str());
        matches!(extension, Some("rs" | "ts" | "mjs" | "py" | "pyi"))
    };
    let mut sources = Vec::new();
    for path in listed.lines().filter(is_source) {
        let file: PathBuf = root().join(path);
        // Listed by git, but deleted.
        if !file.is_file() {
            continue;
        }
        let text = fs::read_to_string(&file).with_context(|| path.to_owned())?;
        sources.push(Source { path: path.to_owned(), text });
    }
    Ok(sources)
}

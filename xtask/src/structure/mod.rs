//! `cargo xtask structure`: no function over 100 lines, no file over 500 without a sentence why, no circle of imports between
//! files but parent and child modules.
//!
//! What breaks a rule today is listed in `xtask/structure.allow`. The list only shrinks: an entry that nothing needs any longer
//! is an error too.

mod imports;
mod lengths;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;

use crate::shell::{output, root, say};

#[derive(Debug, Default, Args)]
pub(crate) struct StructureArgs {
    /// Writes the list of exceptions anew
    #[arg(long)]
    write: bool,
}

/// A source file and its path from the repository's root.
struct Source {
    path: String,
    text: String,
}

pub(crate) fn run(args: &StructureArgs) -> anyhow::Result<()> {
    let sources = sources()?;
    let mut found: BTreeSet<String> = BTreeSet::new();
    for source in &sources {
        found.extend(lengths::violations(source));
    }
    found.extend(imports::circles(&sources));
    let list = root().join("xtask/structure.allow");
    if args.write {
        fs::write(&list, found.iter().fold(String::new(), |text, line| text + line + "\n"))?;
    }
    let allowed = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let allowed: BTreeSet<String> = allowed.lines().map(str::to_owned).collect();
    let new: Vec<&String> = found.difference(&allowed).collect();
    let gone: Vec<&String> = allowed.difference(&found).collect();
    for line in &new {
        say(&format!("against the rules: {line}"));
    }
    for line in &gone {
        say(&format!("no longer needed in xtask/structure.allow: {line}"));
    }
    ensure!(new.is_empty(), "{} new violations of the structure's rules", new.len());
    ensure!(gone.is_empty(), "{} entries of xtask/structure.allow are not needed: take them out", gone.len());
    say(&format!("structure: {} files, {} exceptions", sources.len(), allowed.len()));
    Ok(())
}

/// All sources under version control, and those that will be.
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
        // Listed by git, and removed since.
        if !file.is_file() {
            continue;
        }
        let text = fs::read_to_string(&file).with_context(|| path.to_owned())?;
        sources.push(Source { path: path.to_owned(), text });
    }
    Ok(sources)
}

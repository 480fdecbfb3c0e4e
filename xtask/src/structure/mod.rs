//! `cargo xtask structure`: no function over 100 lines, no file over 500 lines without a reason, no import cycles
//! between files other than parent and child modules.

mod imports;
mod lengths;

use std::fs;
use std::path::Path;

use crate::shell::{files, root, say};
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
    let is_source = |path: &String| {
        let extension = Path::new(path).extension().and_then(|end| end.to_str());
        matches!(extension, Some("rs" | "ts" | "mjs" | "py" | "pyi"))
    };
    let read = |path: String| {
        let text = fs::read_to_string(root().join(&path)).with_context(|| path.clone())?;
        Ok(Source { path, text })
    };
    files()?.into_iter().filter(is_source).map(read).collect()
}

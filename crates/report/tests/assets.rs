//! Is the script in the page what web/ gives? Checked by a digest here, where there may be no Node; `cargo xtask test`
//! builds it again and compares every byte.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn the_script_and_the_style_sheet_are_built_from_these_sources() {
    let web = root().join("web");
    let mut sources = Vec::new();
    files(&web.join("src"), &mut sources);
    sources.sort();
    sources.extend([web.join("package-lock.json"), web.join("build.mjs")]);
    let mut digest = Sha256::new();
    for source in sources {
        let name = source.strip_prefix(&web).unwrap().to_str().unwrap().replace('\\', "/");
        digest.update(format!("{name}\n"));
        digest.update(fs::read(&source).unwrap());
    }
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    for asset in ["report.js", "report.css"] {
        let text = fs::read_to_string(root().join("crates/report/assets").join(asset)).unwrap();
        assert!(text.contains(&digest), "{asset} is not what web/ gives: run `cargo xtask web`");
    }
}

#[test]
fn a_page_without_data_is_small() {
    let size = |asset: &str| fs::metadata(root().join("crates/report/assets").join(asset)).unwrap().len();
    let bytes = size("report.js") + size("report.css");
    assert!(bytes < 500_000, "{bytes} bytes");
}

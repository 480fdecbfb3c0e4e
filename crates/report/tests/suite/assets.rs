//! Is the page's script up to date with web/? Checked here by a digest, which needs no Node; `cargo xtask test` rebuilds
//! the script and compares every byte.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
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
    let mut sources = vec![web.join("package-lock.json"), web.join("build.mjs")];
    files(&web.join("src"), &mut sources);
    let name = |path: &PathBuf| path.strip_prefix(&web).unwrap().to_str().unwrap().replace('\\', "/");
    let mut names: Vec<String> = sources.iter().map(name).collect();
    names.sort();
    let mut digest = Sha256::new();
    for name in names {
        digest.update(format!("{name}\n"));
        digest.update(fs::read(web.join(name)).unwrap());
    }
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    for asset in ["report.js", "report.css"] {
        let text = fs::read_to_string(root().join("crates/report/assets").join(asset)).unwrap();
        assert!(text.contains(&digest), "{asset} is out of date: run `cargo xtask web`");
    }
}

#[test]
fn the_content_security_policy_allows_the_script() {
    let assets = root().join("crates/report/assets");
    let digest = Sha256::digest(fs::read(assets.join("report.js")).unwrap());
    let named = fs::read_to_string(assets.join("report.js.sha256")).unwrap();
    assert_eq!(named.trim(), format!("sha256-{}", BASE64_STANDARD.encode(digest)));
}

#[test]
fn a_page_without_data_is_small() {
    let size = |asset: &str| fs::metadata(root().join("crates/report/assets").join(asset)).unwrap().len();
    let bytes = size("report.js") + size("report.css");
    assert!(bytes < 500_000, "{bytes} bytes");
}

//! What the report's tests share.

use std::path::{Path, PathBuf};

pub(crate) fn fixture_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

/// The terminal's text without its styles.
pub(crate) fn plain(styled: &str) -> String {
    let mut out = String::new();
    let mut escape = false;
    for c in styled.chars() {
        match (escape, c) {
            (false, '\u{1b}') => escape = true,
            (true, 'm') => escape = false,
            (true, _) => {}
            (false, c) => out.push(c),
        }
    }
    out
}

/// docs/NAME.schema.json is the schema of the type; `INSTA_UPDATE=always` rewrites it.
pub(crate) fn check_schema(name: &str, schema: &schemars::Schema) {
    let written = serde_json::to_string_pretty(schema).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/{name}.schema.json"));
    if std::env::var_os("INSTA_UPDATE").is_some_and(|mode| mode == "always") {
        std::fs::write(&path, &written).unwrap();
    }
    let documented = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        documented == written,
        "docs/{name}.schema.json is out of date (INSTA_UPDATE=always rewrites it)"
    );
}

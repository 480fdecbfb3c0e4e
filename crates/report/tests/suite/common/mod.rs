//! Helpers for the report's tests.

pub(crate) mod hostile_top;
pub(crate) mod paths;
pub(crate) mod replayed;
pub(crate) mod shown;

use std::path::Path;

pub(crate) use paths::fixture_path;
pub(crate) use shown::shown;

/// Checks that docs/NAME.schema.json is the schema of the type; `INSTA_UPDATE=always` rewrites it.
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

//! Is the catalog of figures consistent on every fixture, and is its page up to date?

use std::fs;

use crate::common::{diagnosis_of, root};
use busbound_diagnosis::{FigureId, figures};

/// `BUSBOUND_WRITE_DOCS=1` rewrites the page.
#[test]
fn the_page_matches_the_catalog() {
    let path = root().join("docs/figures.md");
    let page = figures::document();
    if std::env::var_os("BUSBOUND_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/figures.md is out of date (set BUSBOUND_WRITE_DOCS=1 to rewrite it)");
}

#[test]
fn parts_sum_to_the_span_on_every_fixture() {
    let mut checked = 0;
    for entry in fs::read_dir(root().join("fixtures")).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().ends_with(".json.gz") {
            continue;
        }
        let run = diagnosis_of(&path);
        let Some(span) = FigureId::SpanMs.of(&run) else { continue };
        for list in [FigureId::PARTS, FigureId::COARSE_PARTS] {
            let sum: f64 = list.iter().map(|figure| figure.of(&run).unwrap()).sum();
            assert!((sum - span).abs() < 1e-9 * span.max(1.0), "{}: {sum} of {span}", path.display());
        }
        checked += 1;
    }
    assert!(checked > 10, "{checked}");
}

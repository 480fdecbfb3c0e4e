//! docs/walkthroughs.md and docs/ranks.md: every command in them is run from the repository's root and prints what the page shows; the
//! other figures on the page are those of the recorded runs. `TRYCMD=overwrite` rewrites outputs, not prose.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/walkthroughs.md")).unwrap()
}

#[test]
fn every_command_prints_what_the_page_says() {
    // Commands name fixtures as a reader would. Nothing else in this file looks at the working directory.
    std::env::set_current_dir(root()).unwrap();
    assert!(page().matches("\n$ busbound ").count() >= 12);
    trycmd::TestCases::new().case("docs/walkthroughs.md").case("docs/ranks.md");
}

/// *Took* is what the committed walls say, with three digits.
#[test]
fn what_runs_took_is_what_was_recorded() {
    let page = page();
    let walls = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(root().join(name)).unwrap()).unwrap()
    };
    let (shared, pairs) = (walls("fixtures/walls.json"), walls("fixtures/pairs/walls.json"));
    let took = |name: &str| {
        let run = shared.get(name).or(pairs.get(name)).unwrap();
        let ms = run["median_s"].as_f64().unwrap() * 1e3;
        if ms < 10.0 {
            format!("{ms:.2} ms")
        } else if ms < 99.95 {
            format!("{ms:.1} ms")
        } else {
            format!("{ms:.0} ms")
        }
    };
    let mut rows = 0;
    for line in page.lines().filter(|line| line.starts_with("| ") && line.contains("(`")) {
        let name = line.split("(`").nth(1).unwrap().split('`').next().unwrap();
        let cell = line.trim_end_matches(" |").rsplit("| ").next().unwrap();
        assert_eq!(cell, took(name), "{line}");
        rows += 1;
    }
    assert_eq!(rows, 6);
    let sentence = |text: String| assert!(page.replace('\n', " ").contains(&text), "{text}");
    sentence(format!("it took {} against {}", took("train_pinned"), took("train_pageable")));
    sentence(format!("`off_layerwise_pageable_d2_c4` took {}", took("off_layerwise_pageable_d2_c4")));
    sentence(format!("Without it this step took {}", took("launch_bound")));
    sentence(format!("The step takes {}", took("off_block_pageable_c4")));
    let alone = shared["compute_only_c4"]["median_s"].as_f64().unwrap() * 1e3;
    sentence(format!("without any copies take {alone:.0} ms"));
}

/// The README shows the demo, shortened.
#[test]
fn the_readme_shows_what_is_printed() {
    let demo = std::process::Command::new(env!("CARGO_BIN_EXE_busbound"))
        .arg("demo")
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap();
    let demo = String::from_utf8(demo.stdout).unwrap();
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let shown = readme.split("$ busbound run.json.gz\n").nth(1).unwrap().split("```").next().unwrap();
    let mut printed = demo.lines();
    for line in shown.lines() {
        assert!(printed.any(|next| next == line), "README.md has a line that is not printed there: {line}");
    }
}

/// The cut file is what the page's command makes of the whole one.
#[test]
fn the_cut_trace_is_the_beginning_of_the_whole_one() {
    let whole = std::fs::read(root().join("fixtures/off_block_pageable_c4.json.gz")).unwrap();
    let cut = std::fs::read(root().join("fixtures/hostile/cut_in_gpu.json.gz")).unwrap();
    assert_eq!(cut, whole[..24586]);
}

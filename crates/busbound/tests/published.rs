//! Does the published crate match the repository, and depend only on what a library needs?

use std::fs;
use std::process::Command;

#[test]
fn the_demo_is_the_fixture() {
    let at = |path: &str| fs::read(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let name = "off_block_pageable_c4.json.gz";
    assert!(at(&format!("demo/{name}")) == at(&format!("../../fixtures/{name}")), "copy it again");
}

#[test]
fn the_library_does_not_depend_on_command_line_crates() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", "busbound", "--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = String::from_utf8(tree.stdout.clone()).unwrap();
    assert!(tree.status.success() && text.contains("busbound-report"), "{tree:?}");
    let names: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    for name in [
        "busbound-cli",
        "clap",
        "indicatif",
        "anstream",
        "ratatui",
        "crossterm",
        "signal-hook",
        "terminal_size",
        "open",
        "anyhow",
    ] {
        assert!(!names.contains(&name), "{name} is a dependency:\n{text}");
    }
}

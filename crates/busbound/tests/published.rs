//! What a published crate carries is what the repository has.

use std::fs;

#[test]
fn the_demo_is_the_fixture() {
    let at = |path: &str| fs::read(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let name = "off_block_pageable_c4.json.gz";
    assert!(at(&format!("demo/{name}")) == at(&format!("../../fixtures/{name}")), "copy it again");
}

//! The diagnosis of fixtures as a person reads it, and its JSON schema.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod common;

use busbound_diagnosis::{Diagnosis, Options, Source, compare, diagnose};
use busbound_machine::Machine;
use busbound_report::{
    comparison_as_markdown, comparison_as_terminal, diagnoses_as_json, diagnoses_as_markdown,
    diagnoses_as_terminal,
};
use busbound_trace::{ReadOptions, open};
use common::{fixture_path, plain};

fn fixture(name: &str) -> Diagnosis {
    let trace = open(&fixture_path(name), &ReadOptions::default()).unwrap();
    diagnose(&trace, &Source::named(name), &Machine::default(), &Options::default())
}

#[test]
fn diagnoses_on_the_terminal() {
    for name in [
        "off_block_pinned_c4",
        "off_layerwise_d2_c4",
        "off_layerwise_pageable_d2_c4",
        "pipe_serial",
        "train_pageable",
        "cpuonly_block_pageable",
        "launch_bound",
    ] {
        let text = plain(&diagnoses_as_terminal(&[fixture(&format!("{name}.json.gz"))], 80));
        insta::assert_snapshot!(format!("diagnosis_{name}"), text);
    }
    for name in ["damaged", "cut_before_gpu", "amd", "two_gpus_two_processes"] {
        let text = plain(&diagnoses_as_terminal(&[fixture(&format!("hostile/{name}.json"))], 80));
        insta::assert_snapshot!(format!("diagnosis_{name}"), text);
    }
}

#[test]
fn markdown_and_json_say_the_same() {
    let diagnosis = fixture("off_block_pageable_c4.json.gz");
    insta::assert_snapshot!("diagnosis_markdown", diagnoses_as_markdown(std::slice::from_ref(&diagnosis)));
    insta::assert_snapshot!("diagnosis_json", diagnoses_as_json(&[diagnosis]).unwrap());
}

#[test]
fn a_comparison_in_both_formats() {
    let runs = [fixture("pipe_serial.json.gz"), fixture("pipe_overlap.json.gz")];
    let comparison = compare(&runs, None);
    insta::assert_snapshot!("comparison", plain(&comparison_as_terminal(&comparison, 80)));
    insta::assert_snapshot!("comparison_markdown", comparison_as_markdown(&comparison));
}

/// Files of several ranks get figures each, and a sentence why nothing is laid across them.
#[test]
fn stages_of_several_ranks_are_not_laid_over_each_other() {
    let ranks = [fixture("pipe_serial.json.gz"), fixture("pipe_overlap.json.gz")];
    for text in [plain(&diagnoses_as_terminal(&ranks, 4000)), diagnoses_as_markdown(&ranks)] {
        assert!(text.contains("OverlapScore -0.04") && text.contains("OverlapScore 0.97"), "{text}");
        assert!(text.contains("the clocks of two ranks are not aligned"), "{text}");
    }
}

#[test]
fn the_documented_schemas_are_what_is_written() {
    common::check_schema("diagnosis", &schemars::schema_for!(Diagnosis));
    common::check_schema("diagnoses", &schemars::schema_for!(busbound_fleet::Diagnoses<'_>));
    common::check_schema("topology", &schemars::schema_for!(busbound_machine::topology::Topology));
    common::check_schema("machine", &schemars::schema_for!(busbound_machine::MachineProfile));
    common::check_schema("gate", &schemars::schema_for!(busbound_diagnosis::Gate));
    common::check_schema("rank", &schemars::schema_for!(busbound_fleet::RankSummary));
    common::check_schema("fleet", &schemars::schema_for!(busbound_fleet::FleetAnswer));
    common::check_schema("comparison", &schemars::schema_for!(busbound_diagnosis::Comparison));
}

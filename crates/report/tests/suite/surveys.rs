//! Surveys of complete and truncated fixtures in the formats for people.

use crate::common;

use std::io::Read;
use std::path::Path;

use crate::common::{fixture_path, shown};
use busbound_diagnosis::{Source, Survey, Surveys, survey};
use busbound_report::Format;
use busbound_trace::{ReadOptions, open, read};

fn fixture(name: &str) -> Survey {
    let trace = open(&fixture_path(name), &ReadOptions::default()).unwrap();
    survey(&trace, &Source::named(name))
}

#[test]
fn complete_traces_on_the_terminal() {
    for name in [
        "off_block_pageable_c4",
        "off_layerwise_d2_c4_syncevents",
        "cpuonly_block_pageable",
        "train_pinned",
        "graph_replay",
        "swap_duplex",
    ] {
        insta::assert_snapshot!(name, shown(&fixture(&format!("{name}.json.gz")), Format::Terminal));
    }
}

#[test]
fn hostile_files_on_the_terminal() {
    for name in ["older_categories", "amd", "damaged", "cut_before_gpu", "two_gpus_two_processes"] {
        insta::assert_snapshot!(name, shown(&fixture(&format!("hostile/{name}.json")), Format::Terminal));
    }
}

#[test]
fn a_truncated_gzip_file_on_the_terminal() {
    let mut whole = Vec::new();
    std::fs::File::open(fixture_path("launch_bound.json.gz")).unwrap().read_to_end(&mut whole).unwrap();
    let cut = &whole[..whole.len() / 2];
    let trace = read(cut, Path::new("cut.json.gz"), &ReadOptions::default()).unwrap();
    insta::assert_snapshot!(
        "cut_gzip",
        shown(&survey(&trace, &Source::named("cut.json.gz")), Format::Terminal)
    );
}

#[test]
fn markdown_and_json_of_a_survey() {
    let survey = fixture("hostile/damaged.json");
    insta::assert_snapshot!("damaged_markdown", shown(&survey, Format::Markdown));
    insta::assert_snapshot!("damaged_json", shown(&survey, Format::Json));
}

#[test]
fn several_inputs_get_an_overview() {
    let surveys = [fixture("graph_replay.json.gz"), fixture("hostile/damaged.json")];
    let markdown = shown(surveys.as_slice(), Format::Markdown);
    assert!(markdown.starts_with("**2 traces, 1 complete: "), "{markdown}");
    let json: serde_json::Value = serde_json::from_str(&shown(surveys.as_slice(), Format::Json)).unwrap();
    // A list of surveys has other members than a survey, so it has its own schema.
    assert_eq!(json["schema"], "busbound.surveys/2");
    let runs = json["runs"].as_array().unwrap();
    assert!(runs.len() == 2 && runs.iter().all(|run| run["schema"] == "busbound.survey/2"));
}

#[test]
fn the_documented_schema_is_up_to_date() {
    common::check_schema("survey", &schemars::schema_for!(Survey));
    common::check_schema("surveys", &schemars::schema_for!(Surveys<'_>));
}

//! Diagnoses of fixtures in the formats for people, and their JSON schema.

use crate::common;

use crate::common::{fixture_path, shown};
use busbound_diagnosis::{Diagnosis, Options, Source, compare, diagnose};
use busbound_machine::Machine;
use busbound_report::{Format, Report, Style};
use busbound_trace::{ReadOptions, TraceBuilder, open};

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
        let text = shown(&fixture(&format!("{name}.json.gz")), Format::Terminal);
        insta::assert_snapshot!(format!("diagnosis_{name}"), text);
    }
    for name in ["damaged", "cut_before_gpu", "amd", "two_gpus_two_processes"] {
        let text = shown(&fixture(&format!("hostile/{name}.json")), Format::Terminal);
        insta::assert_snapshot!(format!("diagnosis_{name}"), text);
    }
}

/// A trace without calls, idle for a sixth of the time, once had "nothing to fix between host and GPU".
#[test]
fn idle_time_without_a_cause_is_not_called_fine() {
    let said = |gap: i64| {
        let mut trace = TraceBuilder::default();
        let stream = trace.stream(0, 7);
        for i in 0..2 {
            let start = i * (700_000 + gap);
            trace.kernel(stream, "gemm", start..start + 700_000);
        }
        let trace = trace.finish();
        let source = Source::named("t");
        shown(&diagnose(&trace, &source, &Machine::default(), &Options::default()), Format::Terminal)
    };
    assert!(
        said(300_000).contains("does not show what the GPU waits for when it is idle"),
        "{}",
        said(300_000)
    );
    assert!(said(3_000).contains("Nothing to fix between host and GPU."), "{}", said(3_000));
}

#[test]
fn markdown_and_json_of_a_diagnosis() {
    let diagnosis = fixture("off_block_pageable_c4.json.gz");
    insta::assert_snapshot!("diagnosis_markdown", shown(&diagnosis, Format::Markdown));
    insta::assert_snapshot!("diagnosis_json", shown(&diagnosis, Format::Json));
}

#[test]
fn a_comparison_in_both_formats() {
    let runs = [fixture("pipe_serial.json.gz"), fixture("pipe_overlap.json.gz")];
    let comparison = compare(&runs, None);
    insta::assert_snapshot!("comparison", shown(&comparison, Format::Terminal));
    insta::assert_snapshot!("comparison_markdown", shown(&comparison, Format::Markdown));
}

/// Files of several ranks get separate figures and a sentence that says why they are not combined.
#[test]
fn stages_of_several_ranks_are_not_combined() {
    let ranks = [fixture("pipe_serial.json.gz"), fixture("pipe_overlap.json.gz")];
    let wide = Style { width: 4000, color: false, verbose: true };
    for text in [ranks.render(Format::Terminal, &wide).unwrap(), shown(ranks.as_slice(), Format::Markdown)] {
        assert!(text.contains("Overlap score -0.04") && text.contains("Overlap score 0.97"), "{text}");
        assert!(text.contains("the clocks of two ranks are not aligned"), "{text}");
    }
}

#[test]
fn the_documented_schemas_are_up_to_date() {
    common::check_schema("diagnosis", &schemars::schema_for!(Diagnosis));
    common::check_schema("diagnoses", &schemars::schema_for!(busbound_fleet::Diagnoses<'_>));
    common::check_schema("topology", &schemars::schema_for!(busbound_machine::topology::Topology));
    common::check_schema("flight", &schemars::schema_for!(busbound_machine::flight_recorder::FlightRecorder));
    common::check_schema("nccl", &schemars::schema_for!(busbound_machine::nccl_log::NcclLog));
    common::check_schema("compile", &schemars::schema_for!(busbound_machine::compile_log::CompileLog));
    common::check_schema("machine", &schemars::schema_for!(busbound_machine::MachineProfile));
    common::check_schema("trial", &schemars::schema_for!(busbound_diagnosis::Trial));
    common::check_schema("watch", &schemars::schema_for!(busbound_diagnosis::Watched));
    common::check_schema("gate", &schemars::schema_for!(busbound_diagnosis::Gate));
    common::check_schema("rank", &schemars::schema_for!(busbound_fleet::RankSummary));
    common::check_schema("history", &schemars::schema_for!(busbound_fleet::History));
    common::check_schema("fleet", &schemars::schema_for!(busbound_fleet::FleetAnswer));
    common::check_schema("comparison", &schemars::schema_for!(busbound_diagnosis::Comparison));
}

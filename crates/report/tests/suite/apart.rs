//! Wrong results and phases are said in every format, with both places of a race.

use crate::common::paths::fixture_path;
use busbound_diagnosis::{Diagnosis, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_report::{Format, Report, Style};
use busbound_trace::{MemoryKind, ReadOptions, Trace, TraceBuilder, Transfer, open};

fn diagnosis(trace: &Trace) -> Diagnosis {
    diagnose(trace, &Source::named("run"), &Machine::default(), &Options::default())
}

/// The short answer, the long one, Markdown and JSON, with line breaks as spaces.
fn said(diagnosis: &Diagnosis) -> [String; 4] {
    let style = |verbose| Style { width: 4000, color: false, verbose };
    let formats =
        [(Format::Terminal, false), (Format::Terminal, true), (Format::Markdown, true), (Format::Json, true)];
    formats.map(|(format, verbose)| {
        let text = diagnosis.render(format, &style(verbose)).unwrap();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn a_race_is_said_in_every_format() {
    let trace = open(&fixture_path("coverage/race.bbt"), &ReadOptions::default()).unwrap();
    let diagnosis = diagnosis(&trace);
    let [short, long, markdown, json] = said(&diagnosis);
    assert!(short.contains("Copies race for the same memory"), "{short}");
    for said in [long, markdown, json] {
        for part in [
            "stream 13",
            "stream 7",
            "prefetch",
            "read_back",
            "nothing orders the two",
            "results may be wrong",
        ] {
            assert!(
                said.contains(part) || part.starts_with("results") && said.starts_with('{'),
                "{part}: {said}"
            );
        }
        assert!(
            !said.contains("7f2a4000") && !said.contains(&0x7f2a_4000_0000_u64.to_string()),
            "no addresses"
        );
    }
}

#[test]
fn loading_is_said_in_every_format() {
    let mut trace = TraceBuilder::default();
    let (host, stream) = (trace.thread(1, 1), trace.stream(0, 7));
    trace.annotation(host, "from_pretrained", 0..1_000_000_000);
    trace.runtime_call(host, "cudaMemcpyAsync", 0..900_000_000).correlation(1);
    let weights = Transfer::host_to_device(MemoryKind::Pageable, 4_000_000_000);
    trace.copy(stream, weights, 100_000_000..900_000_000).correlation(1);
    for step in 0..6 {
        let at = 1_000_000_000 + step * 10_000_000;
        trace.annotation(host, &format!("ProfilerStep#{step}"), at..at + 10_000_000);
        trace.runtime_call(host, "cudaLaunchKernel", at + 10_000..at + 20_000).correlation(step as u64 + 2);
        trace.kernel(stream, "gemm", at + 30_000..at + 9_900_000).correlation(step as u64 + 2);
    }
    let diagnosis = diagnosis(&trace.finish());
    let [short, long, markdown, json] = said(&diagnosis);
    for said in [&short, &long, &markdown] {
        assert!(said.contains("94% of the trace; 4.00 GB H2D"), "{said}");
    }
    assert!(long.contains("Bound by: copies below the link's rate (copies 800 ms, inside copy calls 100 ms, not recorded 100 ms)"), "{long}");
    assert!(json.contains(r#""kind": "loading""#) && json.contains(r#""bound": "copies""#), "{json}");
}

//! Pages without a browser: their data is complete, and they load nothing from elsewhere. Tests under web/test check how
//! they look and behave in a real browser.

use std::io::Read;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use busbound_diagnosis::{Detail, Drawn, Options, Source, diagnose_and_draw};
use busbound_machine::Machine;
use busbound_report::{Format, Lead, Predictions, Report, RunSection, Style, card};
use busbound_trace::{EventKind, ReadOptions, Trace, open};
use flate2::read::DeflateDecoder;
use serde_json::Value;

use crate::common::paths::fixture_path;

fn fixture(name: &str) -> Trace {
    open(&fixture_path(name), &ReadOptions::default()).unwrap()
}

fn drawn(trace: &Trace) -> Drawn {
    diagnose_and_draw(
        trace,
        &Source::named("run.json"),
        &Machine::default(),
        &Options::default(),
        &[],
        Detail::Page { runs: 1 },
    )
}

fn page_of(trace: &Trace, lead: Lead) -> String {
    let drawn = drawn(trace);
    let section = RunSection::of(&drawn, 0, lead).unwrap();
    let page: &dyn Report = match lead {
        Lead::Verdict => &drawn,
        Lead::Prediction => &Predictions { answers: &[], sections: &[section] },
    };
    page.render(Format::Html, &Style::default()).unwrap()
}

/// The header of the page's data, and the number of bytes of columns after it.
fn data(page: &str) -> (Value, usize) {
    let marker = "<script type=\"application/octet-stream\" class=\"data\">";
    let begin = page.find(marker).unwrap() + marker.len();
    let end = begin + page[begin..].find('<').unwrap();
    let packed = BASE64_STANDARD.decode(&page[begin..end]).unwrap();
    let mut bytes = Vec::new();
    DeflateDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    (serde_json::from_slice(&bytes[4..4 + length]).unwrap(), bytes.len() - 4 - length)
}

#[test]
fn every_gpu_event_is_in_the_page_once() {
    for name in [
        "off_block_pageable_c4.json.gz",
        "launch_bound.json.gz",
        "swap_duplex.json.gz",
        "train_pageable.json.gz",
    ] {
        let trace = fixture(name);
        let drawn = drawn(&trace);
        let (head, columns) = data(&page_of(&trace, Lead::Verdict));
        assert!(columns > 1_000, "{columns} bytes");
        let pieces = |lanes: &[&str]| -> u64 {
            let groups = head["groups"].as_array().unwrap().iter().filter(|group| group["of"] == "device");
            let lanes = groups
                .flat_map(|group| group["lanes"].as_array().unwrap())
                .filter(|lane| lanes.contains(&lane["sort"].as_str().unwrap()));
            let blocks = lanes.flat_map(|lane| lane["rows"].as_array().unwrap());
            blocks.map(|block| head["blocks"][block.as_u64().unwrap() as usize][1].as_u64().unwrap()).sum()
        };
        let of = |kind: EventKind| trace.events().filter(|event| event.kind() == kind).count() as u64;
        assert_eq!(pieces(&["compute", "communication"]), of(EventKind::Kernel), "{name}");
        assert_eq!(pieces(&["h2d", "d2h", "other"]), of(EventKind::Copy) + of(EventKind::Memset), "{name}");
        let copies: u64 = drawn.diagnosis.copies.iter().map(|group| group.count).sum();
        let dots: u64 = drawn.picture.dots.iter().map(|dot| u64::from(dot.count)).sum();
        assert_eq!(dots + drawn.picture.unplaced_copies, copies, "{name}");
        assert_eq!(head["findings"].as_array().unwrap().len(), drawn.diagnosis.findings.len(), "{name}");
    }
}

#[test]
fn a_page_contains_no_external_addresses() {
    let trace = fixture("off_block_pageable_c4.json.gz");
    for page in [page_of(&trace, Lead::Verdict), page_of(&trace, Lead::Prediction)] {
        // XML namespaces are names, not addresses.
        let rest = page.replace("http://www.w3.org/2000/svg", "").replace("http://www.w3.org/1999/xhtml", "");
        for part in ["http://", "https://", "src=", "@import", "url(", "<link", "<base"] {
            assert!(!rest.contains(part), "{part}");
        }
        assert!(page.contains("default-src 'none'"));
        assert!(page.len() < 200_000, "{} bytes", page.len());
    }
}

#[test]
fn the_same_trace_gives_the_same_page() {
    let trace = fixture("train_pageable.json.gz");
    assert_eq!(page_of(&trace, Lead::Verdict), page_of(&trace, Lead::Verdict));
}

#[test]
fn a_card_has_the_prize_the_bar_and_the_fixes_and_no_markup_of_others() {
    let mut drawn = drawn(&fixture("off_block_pageable_c4.json.gz"));
    let first = drawn.diagnosis.findings[0].clone();
    drawn.diagnosis.source.path = "</div><script>alert(1)</script>.json".to_owned();
    drawn.diagnosis.findings[0].title = "<img src=x onerror=alert(2)>".to_owned();
    let card = card(&drawn.diagnosis).unwrap();
    assert!(card.contains("Transfer-bound: 274 ms/step → "), "{card}");
    assert!(card.contains(">copying only <b>205 ms</b> 75%<"), "{card}");
    assert!(card.contains("fix saves ~170 ms/step (274 → 104 ms)"), "{card}");
    assert!(card.contains(first.fix.split('(').next().unwrap()), "{card}");
    assert!(!card.contains("damaged"), "{card}");
    assert!(!card.contains("<script") && !card.contains("<img") && !card.contains("<style"), "{card}");
    assert_eq!(card.matches("<div").count(), card.matches("</div>").count());
    // Every part of the bar has a color of its own class, visible without a style sheet.
    assert_eq!(card.matches("background:#").count(), 2 * card.matches("flex-grow:").count());
}

#[test]
fn a_card_says_that_the_file_is_damaged() {
    let drawn = drawn(&fixture("hostile/cut_in_gpu.json.gz"));
    assert!(card(&drawn.diagnosis).unwrap().contains("The file is damaged or cut off"));
}

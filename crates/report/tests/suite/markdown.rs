//! Markdown as a Markdown parser reads it: tables are tables, and names from a trace are text, whatever they contain.

use crate::common::paths::fixture_path;
use busbound_diagnosis::{
    BlockChoice, Diagnosis, Options, Requirement, Source, compare, diagnose, gate, judge_bench, survey,
    what_if,
};
use busbound_machine::Machine;
use busbound_machine::bench::Samples;
use busbound_machine::topology::from_nccl;
use busbound_report::{Format, Report, Style};
use busbound_trace::{ReadOptions, Trace, TraceBuilder, open};
use pulldown_cmark::{Alignment, Event, Options as Extensions, Parser, Tag, TagEnd};

/// A parsed document.
#[derive(Default)]
struct Read {
    /// Column alignments, and the cells as text, row by row.
    tables: Vec<(Vec<Alignment>, Vec<Vec<String>>)>,
    text: String,
}

/// Reads a document as GitHub does. busbound writes no HTML, links or images, so any of them comes from a name.
fn parsed(markdown: &str) -> Read {
    let mut read = Read::default();
    let mut in_cell = false;
    let extensions = Extensions::ENABLE_TABLES | Extensions::ENABLE_STRIKETHROUGH;
    for event in Parser::new_ext(markdown, extensions) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => panic!("HTML {html:?} in\n{markdown}"),
            Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::Strikethrough | Tag::BlockQuote(_)) => {
                panic!("{event:?} in\n{markdown}")
            }
            Event::Start(Tag::Table(sides)) => read.tables.push((sides, Vec::new())),
            Event::Start(Tag::TableHead | Tag::TableRow) => {
                read.tables.last_mut().unwrap().1.push(Vec::new());
            }
            Event::Start(Tag::TableCell) => {
                in_cell = true;
                read.tables.last_mut().unwrap().1.last_mut().unwrap().push(String::new());
            }
            Event::End(TagEnd::TableCell) => in_cell = false,
            Event::Text(text) | Event::Code(text) => {
                if in_cell {
                    let row = read.tables.last_mut().unwrap().1.last_mut().unwrap();
                    row.last_mut().unwrap().push_str(&text);
                }
                read.text.push_str(&text);
            }
            Event::SoftBreak | Event::End(_) => read.text.push(' '),
            _ => {}
        }
    }
    read
}

/// Checks that every line that looks like a table row is one, and that every row has a cell per title.
fn check(what: &str, markdown: &str) -> Read {
    let read = parsed(markdown);
    let lines = markdown.lines().filter(|line| line.starts_with('|')).count();
    let rows: usize = read.tables.iter().map(|(_, rows)| rows.len() + 1).sum();
    assert_eq!(rows, lines, "{what}: a table is not parsed as a table\n{markdown}");
    for line in markdown.lines().filter(|line| line.starts_with("| ")) {
        let cells = line.matches(" |").count();
        assert!(cells > 1, "{what}: {line}");
    }
    for (sides, rows) in &read.tables {
        assert_eq!(sides[0], Alignment::None, "{what}");
        for (i, side) in sides.iter().enumerate().skip(1) {
            let has_number = rows.iter().skip(1).any(|row| {
                row[i].trim_start_matches(['+', '-', '×', ' ']).starts_with(|c: char| c.is_ascii_digit())
            });
            assert!(!has_number || *side == Alignment::Right, "{what}: column {i} of {rows:?}");
        }
    }
    // Blocks need an empty line between them: some readers join a list or a table to the paragraph directly above it.
    let all: Vec<&str> = markdown.lines().collect();
    for pair in all.windows(2) {
        let kind = |line: &str| {
            let line = line.trim_start();
            if line.is_empty() {
                "empty"
            } else if line.starts_with('|') {
                "table"
            } else if line.starts_with("- ") || line.starts_with("1. ") {
                "list"
            } else {
                "text"
            }
        };
        let (a, b) = (kind(pair[0]), kind(pair[1]));
        assert!(
            a == b || a == "empty" || b == "empty",
            "{what}: no empty line between\n{}\n{}",
            pair[0],
            pair[1]
        );
    }
    read
}

const KERNEL: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)";
const NAMES: [&str; 6] = [
    "a|b || c",
    "<script>alert(1)</script>",
    "tick`s` and ``two`` <b>|</b>",
    "[text](http://x) ![i](y) ~~gone~~ **bold** __init__ $x$ &lt;",
    "two\nlines\n\n# and a heading\n| x |",
    r"ends in \",
];

/// A run in which every name is hostile: kernels, operators, annotations, threads.
fn hostile() -> Trace {
    let mut trace = TraceBuilder::default();
    let (host, stream) = (trace.thread(1, 1), trace.stream(0, 7));
    trace.name_thread(1, 1, NAMES[2]);
    for step in 0..4 {
        let base = 10_000_000 * step;
        trace.annotation(host, "step", base..base + 9_000_000);
        for (i, text) in (0..).zip(NAMES.iter().chain([&KERNEL])) {
            let (at, id) = (base + 100_000 + 1_200_000 * i, (100 * step + i + 1) as u64);
            trace.annotation(host, *text, at..at + 500_000);
            trace.operator(host, *text, at..at + 500_000);
            trace.runtime_call(host, "cudaLaunchKernel", at + 10_000..at + 15_000).correlation(id);
            trace.kernel(stream, *text, at + 40_000..at + 1_190_000).correlation(id);
        }
    }
    trace.finish()
}

fn markdown(report: &(impl Report + ?Sized)) -> String {
    report.render(Format::Markdown, &Style::default()).unwrap()
}

fn run(path: &str, trace: &Trace) -> Diagnosis {
    let mut options = Options::default();
    options.blocks = BlockChoice::Depth(4);
    diagnose(trace, &Source::named(path), &Machine::default(), &options)
}

#[test]
fn names_from_a_trace_are_text() {
    let trace = hostile();
    for path in ["a|b`c`<i>_d_.json", "two\n# lines.json"] {
        let diagnosis = run(path, &trace);
        let read = check("diagnosis", &markdown(&diagnosis));
        let cells: Vec<&String> =
            read.tables.iter().flat_map(|(_, rows)| rows.iter().map(|row| &row[0])).collect();
        for beginning in
            ["a|b || c", "<script>alert(1)</script>", "[text](http://x)", "vectorized_elementwise_kernel<4"]
        {
            assert!(cells.iter().any(|cell| cell.contains(beginning)), "{beginning} is not in {cells:#?}");
        }
        assert!(read.text.contains(&path.replace('\n', " ")), "{}", read.text);
        let read = check("survey", &markdown(&survey(&trace, &Source::named(path))));
        assert!(!read.tables.is_empty());
        let wanted = ["compute_ms < 1", "idle_share < 1%"].map(|text| Requirement::parse(text).unwrap());
        check("gate", &markdown(&gate(std::slice::from_ref(&diagnosis), &wanted, None, false)));
        check("comparison", &markdown(&compare(&[diagnosis.clone(), diagnosis], None)));
        let answer = what_if(&trace, path, &Machine::default(), &Options::default(), &[]).unwrap();
        check("whatif", &markdown([answer.clone(), answer].as_slice()));
    }
}

#[test]
fn the_markdown_of_every_fixture_is_well_formed() {
    for folder in ["", "runs", "hostile"] {
        for entry in std::fs::read_dir(fixture_path(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if !(name.ends_with(".json.gz") || folder == "hostile") {
                continue;
            }
            let trace = open(&path, &ReadOptions::default()).unwrap();
            check(&name, &markdown(&run(&name, &trace)));
            check(&name, &markdown(&survey(&trace, &Source::named(&name))));
            if let Ok(answer) = what_if(&trace, &name, &Machine::default(), &Options::default(), &[]) {
                check(&name, &markdown(&answer));
            }
        }
    }
    let text = |name: &str| std::fs::read_to_string(fixture_path(name)).unwrap();
    let topology = from_nccl(&text("topology/nccl-eight-gpus.xml")).unwrap().topology();
    check("topology", &markdown(&topology));
    let samples = Samples::parse(&text("machines/raw/h200-quick.json")).unwrap();
    check("bench", &markdown(&judge_bench(&samples)));
}

//! docs/coverage.md: every command in its tables is run from the repository's root and prints the words that the page states; the
//! counts at its top are those of its rows. `must_stay_fixed!` names a test for each row of "Fixed mistakes".
//!
//! A row is `| id | … | `command` (exit code N) | `words` `words` not `words` | … |`. The table's titles say which cell is which.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tree;

const GRADES: [&str; 4] = ["full", "partial", "refuted", "absent"];

/// How many rows each part has; a row that is lost or added shows here.
const PARTS: [usize; 5] = [28, 27, 13, 47, 29];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn page() -> String {
    fs::read_to_string(root().join("docs/coverage.md")).unwrap()
}

/// A row of one of the page's tables: its cells by the titles of their columns.
struct Row(BTreeMap<String, String>);

impl Row {
    fn cell(&self, title: &str) -> &str {
        let Some(cell) = self.0.get(title) else { panic!("no column {title:?}: {:?}", self.0) };
        cell
    }

    fn id(&self) -> &str {
        self.cell("id")
    }

    /// The command without `busbound`, and the exit code that it should have.
    fn command(&self) -> Option<(Vec<String>, i32)> {
        let cell = self.cell("command");
        let mut spans = cell.split('`');
        let line = spans.nth(1)?.strip_prefix("busbound ").unwrap();
        let code =
            cell.split("(exit code ").nth(1).map_or(0, |rest| rest.trim_end_matches(')').parse().unwrap());
        Some((arguments(line), code))
    }

    /// The words that the output must have, and those that it must not have.
    fn words(&self) -> (Vec<&str>, Vec<&str>) {
        let spans: Vec<&str> = self.cell("output").split('`').collect();
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for pair in spans.chunks_exact(2) {
            if pair[0].trim_end().ends_with("not") { without.push(pair[1]) } else { with.push(pair[1]) }
        }
        (with, without)
    }
}

/// What a shell makes of a line with single quotes.
fn arguments(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (part, text) in line.split('\'').enumerate() {
        if part % 2 == 1 {
            all.push(text.to_owned());
        } else {
            all.extend(text.split_whitespace().map(str::to_owned));
        }
    }
    all
}

/// The rows of all tables below headings that begin with `heading`.
fn rows(page: &str, heading: &str) -> Vec<Row> {
    let mut all = Vec::new();
    let sections = page.split("\n## ").skip(1).filter(|section| section.starts_with(heading));
    for section in sections {
        let table = section.lines().filter(|line| line.starts_with("| ") && line.ends_with(" |"));
        let mut cells = table
            .map(|line| line[2..line.len() - 2].split(" | ").map(str::to_owned).collect::<Vec<String>>());
        let titles = cells.next().unwrap();
        for row in cells {
            assert_eq!(row.len(), titles.len(), "{row:?}");
            all.push(Row(titles.iter().cloned().zip(row).collect()));
        }
    }
    // There may be no mistake that is known and open.
    assert!(!all.is_empty() || heading == "Open mistakes", "no table below {heading:?}");
    all
}

fn parts(page: &str) -> Vec<Row> {
    rows(page, "Part ")
}

/// A file that describes a directory, one line per file, becomes that directory.
fn planted(tree: &str, below: &Path) -> String {
    let folder = below.join(Path::new(tree).file_stem().unwrap());
    tree::plant(&fs::read_to_string(root().join(tree)).unwrap(), &folder);
    folder.display().to_string()
}

/// How the path of a file begins that a command writes; the test puts an empty directory there.
const OUTPUT: &str = "OUT/";

/// What is wrong with a row at a terminal, if anything.
fn complaint(row: &Row) -> Option<String> {
    let (args, wanted) = row.command()?;
    let (code, printed) = printed(&args, &[]);
    // Lines break where they fit.
    let shown = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let (with, without) = row.words();
    let mut wrong = Vec::new();
    if code != Some(wanted) {
        wrong.push(format!("exit code {code:?}"));
    }
    wrong.extend(with.iter().filter(|words| !shown.contains(**words)).map(|words| format!("no {words:?}")));
    wrong
        .extend(without.iter().filter(|words| shown.contains(**words)).map(|words| format!("has {words:?}")));
    let says = || format!("{}: busbound {}: {}\n{printed}", row.id(), args.join(" "), wrong.join(", "));
    (!wrong.is_empty()).then(says)
}

/// Exit code and output of a command of the page.
fn printed(args: &[String], more: &[&str]) -> (Option<i32>, String) {
    let trees = tempfile::tempdir().unwrap();
    let given = args.iter().map(|arg| match arg.strip_prefix(OUTPUT) {
        Some(name) => trees.path().join(name).display().to_string(),
        None if arg.ends_with(".tree") => planted(arg, trees.path()),
        None => arg.clone(),
    });
    let output = Command::new(env!("CARGO_BIN_EXE_busbound"))
        .args(given)
        .args(more)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .current_dir(root())
        .output()
        .unwrap();
    (
        output.status.code(),
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).join("\n"),
    )
}

/// Commands whose answers have a page and Markdown.
const WITH_A_PAGE: [&str; 5] = ["diagnose", "compare", "bench", "whatif", "plan"];

/// What Markdown and the page say in other words: the row, and the words at a terminal.
const IN_OTHER_WORDS: [(&str, &str); 2] = [
    // `(high)`, and the color of its card.
    ("0.25", "severity: high"),
    // `GPU utilization`.
    ("3.43", "GPU used 95% (time with a kernel, as nvidia-smi counts it); 100% with copies"),
];

/// What Markdown and the page lack of a row. They order some cells in another way, so each word is looked for if not all are in
/// one place.
fn lacks(row: &Row) -> Vec<String> {
    let Some((args, wanted)) = row.command() else { return Vec::new() };
    let has_a_form =
        ["--format", "--emit", "--json", "-o"].iter().any(|flag| args.iter().any(|arg| arg == flag));
    if !WITH_A_PAGE.contains(&args[0].as_str()) || has_a_form {
        return Vec::new();
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html").display().to_string();
    let mut lacks = Vec::new();
    for (form, flags) in [("Markdown", ["--format", "markdown"]), ("the page", ["-o", page.as_str()])] {
        let (code, mut text) = printed(&args, &flags);
        if form == "the page" {
            text += &fs::read_to_string(&page).unwrap_or_default();
        }
        let text = plain(&text);
        if code != Some(wanted) {
            lacks.push(format!("{} as {form}: exit code {code:?}", row.id()));
        }
        for words in row.words().0 {
            let is_there = text.contains(&squeezed(words))
                || words.split_whitespace().all(|word| text.contains(&squeezed(word)));
            if !is_there && !IN_OTHER_WORDS.contains(&(row.id(), words)) {
                lacks.push(format!("{} as {form}: no {words:?}", row.id()));
            }
        }
    }
    lacks
}

/// Without tags, escapes and everything that lays a text out.
fn plain(text: &str) -> String {
    let mut words = String::new();
    for (at, part) in text.split('<').enumerate() {
        let after = if at == 0 { part } else { part.split_once('>').map_or(part, |(_, after)| after) };
        words.push_str(after);
    }
    let entities = [
        ("&#38;", "&"),
        ("&amp;", "&"),
        ("&#39;", "'"),
        ("&#34;", "\""),
        ("&quot;", "\""),
        ("&#60;", "<"),
        ("&lt;", "<"),
        ("&#62;", ">"),
        ("&gt;", ">"),
    ];
    for (entity, sign) in entities {
        words = words.replace(entity, sign);
    }
    squeezed(&words)
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_whitespace() && !r"|`*:,.–-\_<>()".contains(*sign)).collect()
}

fn check(rows: &[Row]) {
    let wrong: Vec<String> = rows.iter().filter_map(complaint).collect();
    assert!(wrong.is_empty(), "docs/coverage.md is not what is printed:\n\n{}", wrong.join("\n\n"));
}

#[test]
fn every_capability_is_listed_once_and_graded() {
    let page = page();
    let rows = parts(&page);
    let ids: Vec<&str> = rows.iter().map(Row::id).collect();
    let wanted: Vec<String> = PARTS
        .iter()
        .enumerate()
        .flat_map(|(part, n)| (1..=*n).map(move |row| format!("{part}.{row}")))
        .collect();
    assert_eq!(ids, wanted);
    for row in &rows {
        let (id, grade, missing) = (row.id(), row.cell("grade"), row.cell("missing"));
        assert!(GRADES.contains(&grade), "{id}: {grade}");
        assert_eq!(grade == "absent", row.command().is_none(), "{id}: what is there has a command");
        assert_eq!(grade == "full", missing == "–", "{id}: what is not full says what is missing, or why");
        assert!(grade != "refuted" || missing.contains("claims.md"), "{id}: says where it is refuted");
        let (with, _) = row.words();
        assert_eq!(grade == "absent", with.is_empty(), "{id}: a command has words to look for");
    }
    for grade in GRADES {
        let count = rows.iter().filter(|row| row.cell("grade") == grade).count();
        let line = format!("| {grade} | {count} |");
        assert!(page.contains(&line), "the counts at the top have no {line:?}");
    }
}

#[test]
fn every_capability_shows_what_the_page_says() {
    check(&parts(&page()));
}

#[test]
fn every_capability_is_in_markdown_and_on_the_page() {
    let lacks: Vec<String> = parts(&page()).iter().flat_map(lacks).collect();
    assert!(lacks.is_empty(), "docs/coverage.md promises more than is shown:\n{}", lacks.join("\n"));
}

/// If this fails because something was fixed: move its row to "Fixed mistakes".
#[test]
fn open_mistakes_are_as_the_page_says() {
    check(&rows(&page(), "Open mistakes"));
}

#[test]
fn commands_need_nothing_outside_the_repository() {
    let page = page();
    let tables = [parts(&page), rows(&page, "Fixed mistakes"), rows(&page, "Open mistakes")];
    for row in tables.iter().flatten() {
        let Some((args, _)) = row.command() else { continue };
        for arg in args.iter().filter(|arg| arg.contains('/') && !arg.starts_with(OUTPUT)) {
            let is_there = arg.starts_with("fixtures/") && root().join(arg).exists();
            assert!(is_there, "{}: {arg} is no fixture", row.id());
        }
        let writes = |pair: &[String]| pair[0] == "-o" && !pair[1].starts_with(OUTPUT);
        assert!(
            !args.windows(2).any(writes) && !args.contains(&"--open".to_owned()),
            "{} writes a file",
            row.id()
        );
        assert!(
            args[0] != "bench" || args.iter().any(|arg| arg == "--no-save"),
            "{} saves a profile",
            row.id()
        );
    }
}

/// One test per mistake, so that its name is in the report of the run that brings it back.
macro_rules! must_stay_fixed {
    ($($id:ident)*) => {
        const FIXED: &[&str] = &[$(stringify!($id)),*];
        $(
            #[test]
            fn $id() {
                let row: Vec<Row> =
                    rows(&page(), "Fixed mistakes").into_iter().filter(|row| row.id() == stringify!($id)).collect();
                assert_eq!(row.len(), 1, "docs/coverage.md has no row for it");
                check(&row);
            }
        )*
    };
}

must_stay_fixed! {
    contention_costs_no_more_than_it_takes
    nvls_is_no_slower_than_a_ring
    an_exchange_is_part_of_the_step
    no_exchange_is_a_valid_exchange
    the_closest_layout_is_named_with_its_own_memory
    runs_without_gpu_events_are_compared
    parts_explain_a_slower_step
    the_network_limits_several_nodes
    a_budget_is_for_pinned_memory
    one_copy_has_the_latency_of_one_copy
    depth_zero_is_not_prefetching
    equal_depths_are_one_row
    a_step_has_one_length
    edges_change_the_histogram
    slow_throughput_is_not_zero
    savings_are_replayed
    a_cut_file_gets_no_advice_to_record_more
    a_deeper_prefetch_needs_bandwidth
    headers_are_not_data
    settings_agree
    serialized_copies_have_settings
    settings_of_engines_stream_without_stalls
    an_assumed_link_is_called_assumed
    nvlinks_that_were_not_read_are_mentioned
    a_shared_uplink_is_in_the_headline
    a_part_is_not_above_the_whole
    counts_and_bytes_of_copies_agree
    nothing_is_negative_zero
    numbered_steps_are_one_name
    copies_of_a_step_left_out_do_not_count
    fetching_is_given_per_step
    advice_has_one_verb
}

#[test]
fn every_fixed_mistake_has_a_test() {
    let page = page();
    let listed: Vec<String> = rows(&page, "Fixed mistakes").iter().map(|row| row.id().to_owned()).collect();
    assert_eq!(listed, FIXED);
}

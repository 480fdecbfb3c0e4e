//! The library as a Rust program uses it.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use busbound::diagnosis::Detail;
use busbound::report::Timeline;
use busbound::{
    Error, Format, Input, Machine, ManyOptions, Options, ReadOptions, Report, RunGroup, Show, Style,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

/// The system's reason once stood there twice.
#[test]
fn a_missing_file_is_named_once() {
    let error = busbound::open("no_such_file.json").unwrap_err();
    assert_eq!(error.to_string(), "no_such_file.json does not exist");
    // Whoever prints the chain of causes prints no more than that.
    assert!(std::error::Error::source(&error).is_none());
    assert!(!error.is_storage() && !error.is_usage());
    let profile = busbound::resolve_machine(Some("no_such.json")).unwrap_err();
    assert_eq!(profile.to_string(), "no_such.json does not exist");
}

#[test]
fn reading_is_ended_by_who_watches() {
    let input = Input::File(fixture("launch_bound.json.gz"));
    let ended =
        busbound::open_input(&input, &ReadOptions::default(), &mut |_| ControlFlow::Break(())).unwrap_err();
    assert!(matches!(ended, Error::Interrupted { .. }), "{ended}");
}

#[test]
fn what_is_saved_is_packed_where_its_name_says_so_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = busbound::demo().unwrap();
    let timeline = Timeline { trace: run.trace(), drawn: None };
    let mut sizes = Vec::new();
    for name in ["run.json", "run.json.gz"] {
        let path = folder.path().join(name);
        busbound::save(&timeline, Format::Chrome, &Style::default(), &path).unwrap();
        sizes.push(path.metadata().unwrap().len());
        let again = busbound::open(&path).unwrap();
        assert_eq!(again.trace().len(), run.trace().len(), "{name}");
    }
    assert!(sizes[1] * 4 < sizes[0], "{sizes:?}");
    let refused = busbound::save(&timeline, Format::Html, &Style::default(), &folder.path().join("x.html"));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.ends_with("timelines cannot be written as html; choose perfetto, chrome"), "{refused}");
}

#[test]
fn ranks_of_one_job_are_distinguished_from_separate_runs() {
    let demo = busbound::demo().unwrap().diagnose(&Machine::default(), &Options::default());
    let apart = RunGroup::of(vec![demo.clone(), demo], Vec::new(), None, Show::Few);
    assert!(apart.fleet().is_none());
    let inputs = busbound::resolve_inputs(&[fixture("ranks")]).unwrap();
    let (machine, options) = (Machine::default(), Options::default());
    let runs: Vec<_> = busbound::open_many(&inputs.list, &ManyOptions::default(), &|_| {}, |_, run| {
        run.diagnose(&machine, &options)
    })
    .into_iter()
    .map(Result::unwrap)
    .collect();
    assert_eq!(runs.len(), inputs.list.len());
    let together = RunGroup::of(runs, Vec::new(), None, Show::Few);
    let fleet = together.fleet().unwrap();
    assert!(together.render(Format::Markdown, &Style::default()).unwrap().contains(&fleet.statement[..20]));
}

#[test]
fn a_page_needs_what_is_drawn() {
    let run = busbound::demo().unwrap();
    let drawn = run.draw(&Machine::default(), &Options::default(), &[], Detail::Page { runs: 1 });
    let page = drawn.render(Format::Html, &Style::default()).unwrap();
    assert!(page.starts_with("<!") && page.contains("<script"), "{}", &page[..100]);
}

/// The same trace by two paths is one run, not two ranks.
#[test]
fn a_file_that_is_given_twice_is_read_once() {
    let file = fixture("launch_bound.json.gz");
    let same = file.parent().unwrap().join("ranks/../launch_bound.json.gz");
    let inputs = busbound::resolve_inputs(&[file.clone(), same.clone()]).unwrap().once();
    assert_eq!(inputs.list, [busbound::Input::File(file)]);
    assert_eq!(inputs.repeated, [same]);
}

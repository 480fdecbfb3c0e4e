//! One way to a page: `-o` chooses the format by the file's name, `--open` shows it in the browser.

#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{busbound, fixture, text};

fn run(directory: &Path, args: &[&str]) -> (String, String, Option<i32>) {
    // Without a browser, wherever this runs.
    text(&busbound(args).current_dir(directory).env("PATH", directory.join("bin")).output().unwrap())
}

#[test]
fn the_name_of_the_file_chooses_the_format_and_format_wins() {
    let directory = tempfile::tempdir().unwrap();
    let trace = fixture("launch_bound.json.gz");
    for (args, file, begin) in [
        (vec!["-o", "a.html"], "a.html", "<!DOCTYPE html>"),
        (vec!["-o", "a.md"], "a.md", "**Launch-bound"),
        (vec!["-o", "a.json"], "a.json", "{\n  \"schema\": \"busbound.diagnosis/"),
        (vec!["-o", "a.txt"], "a.txt", "Launch-bound"),
        (vec!["-o", "a"], "a", "Launch-bound"),
        (vec!["-o", "b.html", "--format", "markdown"], "b.html", "**Launch-bound"),
        (vec!["-o", "c.html", "--json"], "c.html", "{\n  \"schema\""),
    ] {
        let args = [vec!["diagnose", trace.as_str()], args].concat();
        assert_eq!(run(directory.path(), &args), (String::new(), String::new(), Some(0)), "{args:?}");
        let written = fs::read_to_string(directory.path().join(file)).unwrap();
        assert!(written.starts_with(begin) && !written.contains('\u{1b}'), "{args:?}: {written:.100}");
    }
}

/// A script in place of the desktop's opener says what it was asked to open.
#[test]
fn open_writes_the_page_and_shows_it_in_the_browser() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().canonicalize().unwrap();
    fs::create_dir(at.join("bin")).unwrap();
    for opener in ["xdg-open", "open"] {
        let script = at.join("bin").join(opener);
        fs::write(
            &script,
            format!("#!/bin/sh\necho \"$1\" > '{0}/new'\n/bin/mv '{0}/new' '{0}/opened'\n", at.display()),
        )
        .unwrap();
        fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    }
    let trace = fixture("launch_bound.json.gz");
    for (args, page) in [
        (vec![trace.as_str(), "--open"], "launch_bound.html"),
        (vec![&trace, "--open", "-o", "here.html"], "here.html"),
        (vec!["demo", "--open"], "busbound-demo.html"),
        (vec!["survey", &trace, "--open"], "survey.html"),
        (vec!["compare", &trace, &trace, "--open"], "comparison.html"),
    ] {
        let said = format!("busbound: the page is in {page}\n");
        assert_eq!(run(&at, &args), (String::new(), said, Some(0)), "{args:?}");
        assert!(fs::read_to_string(at.join(page)).unwrap().starts_with("<!DOCTYPE html>"));
        let patience = Instant::now() + Duration::from_secs(60);
        while !at.join("opened").exists() {
            assert!(Instant::now() < patience, "{args:?}: nothing was opened");
            std::thread::sleep(Duration::from_millis(10));
        }
        let opened = fs::read_to_string(at.join("opened")).unwrap();
        assert_eq!(Path::new(opened.trim()), at.join(page));
        fs::remove_file(at.join("opened")).unwrap();
    }
}

#[test]
fn without_a_browser_the_page_is_written_and_the_exit_code_is_0() {
    let directory = tempfile::tempdir().unwrap();
    let (stdout, stderr, code) = run(directory.path(), &["demo", "--open"]);
    assert_eq!((stdout.as_str(), code), ("", Some(0)));
    assert!(stderr.starts_with("busbound: the page is in busbound-demo.html\n"), "{stderr}");
    assert!(stderr.contains("no browser found here: open the file yourself"), "{stderr}");
    assert!(directory.path().join("busbound-demo.html").exists());
}

#[test]
fn open_refuses_other_formats() {
    let directory = tempfile::tempdir().unwrap();
    for args in [vec!["demo", "--open", "--json"], vec!["demo", "--open", "-o", "x.md"]] {
        let (_, stderr, code) = run(directory.path(), &args);
        assert!(code == Some(2) && stderr.starts_with("busbound: --open shows a page, not "), "{stderr}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn the_demo_writes_no_file_unless_asked() {
    let directory = tempfile::tempdir().unwrap();
    let (stdout, stderr, code) = run(directory.path(), &["demo"]);
    assert!(code == Some(0) && stdout.starts_with("Transfer-bound"), "{stdout}");
    assert_eq!(stderr, "busbound: busbound demo --open shows this as a page with the timeline\n");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    run(directory.path(), &["demo", "--page", "older.html", "--quiet"]);
    assert!(directory.path().join("older.html").exists());
}

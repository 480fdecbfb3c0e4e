//! Does the documentation match the declared findings and limitations, and is it complete?

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use busbound_diagnosis::{Candidate, FindingId, LimitationId, Unit};
use busbound_whatif::replay::Change;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documentation section of a finding.
fn section(id: FindingId) -> String {
    let document = id.document();
    let mut text = format!("## {id}\n\n*{}.* {}\n\n", id.title().trim_end_matches('.'), document.meaning);
    for (what, said) in
        [("Computed", document.computed), ("Fix", document.fix), ("Assumes", document.assumes)]
    {
        let _ = writeln!(text, "- **{what}**: {said}");
    }
    let _ = match id.candidate() {
        candidate @ (Candidate::Changes(changes) | Candidate::AlsoWithoutCode(changes, _)) => {
            let joined = |all: Vec<Change>| all.iter().map(Change::to_string).collect::<Vec<_>>().join(",");
            let other = candidate.without_code().map_or(String::new(), |other| {
                format!("; without code changes, with `busbound try`: `--apply {}`", joined(other))
            });
            writeln!(text, "- **What-if**: `busbound whatif --apply {}`{other}", joined(changes()))
        }
        Candidate::None(why) => writeln!(text, "- **What-if**: none. {why}"),
    };
    for code in document.code {
        let _ = write!(text, "\n```python\n{code}\n```\n");
    }
    text
}

fn limitations() -> String {
    let mut text = "| id | what it means |\n|---|---|\n".to_owned();
    for id in LimitationId::ALL {
        let _ = writeln!(text, "| `{id}` | {} |", id.meaning());
    }
    text
}

/// The page with the text between its markers replaced.
fn generated(page: &str, what: &str, text: &str) -> String {
    let begin = page.find(&format!("<!-- {what}: generated")).unwrap();
    let begin = begin + page[begin..].find('\n').unwrap() + 1;
    let end = begin + page[begin..].find("<!-- end -->").unwrap();
    format!("{}\n{}\n\n{}", &page[..begin], text.trim_end(), &page[end..])
}

#[test]
fn the_documentation_matches_the_declarations() {
    let path = root().join("docs/findings.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let sections: Vec<String> = FindingId::ALL.iter().map(|id| section(*id)).collect();
    let wanted = generated(&page, "findings", &sections.join("\n"));
    let wanted = generated(&wanted, "limitations", &limitations());
    if std::env::var_os("BUSBOUND_WRITE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        wanted,
        "docs/findings.md is out of date (set BUSBOUND_WRITE_DOCS=1 to rewrite it)"
    );
}

/// A finding is one file named after its id and one line in the registry. The directory has no other files.
#[test]
fn a_finding_is_a_file_and_a_line_in_the_registry() {
    let folder = root().join("crates/diagnosis/src/findings");
    let files: BTreeSet<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "mod")
        .collect();
    let ids: BTreeSet<String> = FindingId::ALL.iter().map(FindingId::to_string).collect();
    assert_eq!(files, ids);
    let registry = std::fs::read_to_string(folder.join("mod.rs")).unwrap();
    for id in FindingId::ALL {
        let lines =
            registry.lines().filter(|line| line.trim_end().ends_with(&format!("= \"{id}\" in {id},")));
        assert_eq!(lines.count(), 1, "{id}");
        let text = std::fs::read_to_string(folder.join(format!("{id}.rs"))).unwrap();
        assert!(text.contains("pub(super) static RULE: Rule = Rule {"), "{id}");
    }
}

#[test]
fn every_finding_has_a_candidate_or_a_reason_and_every_document_is_complete() {
    for id in FindingId::ALL {
        match id.candidate() {
            Candidate::Changes(changes) | Candidate::AlsoWithoutCode(changes, _) => {
                assert!(!changes().is_empty(), "{id}")
            }
            Candidate::None(why) => assert!(why.len() > 20 && why.ends_with('.'), "{id}: {why}"),
        }
        let document = id.document();
        for said in [document.meaning, document.computed, document.fix, document.assumes] {
            assert!(said.ends_with('.') && !said.contains("  "), "{id}: {said}");
        }
        assert!(!id.title().is_empty() && !id.title().ends_with('.'), "{id}");
    }
    for id in LimitationId::ALL {
        assert!(id.meaning().ends_with('.') && !id.meaning().contains('|'), "{id}");
    }
}

/// One table defines the name in JSON, in text and for parsing.
#[test]
fn names_are_unique_and_round_trip() {
    fn check<T>(all: &[T], name: fn(T) -> &'static str)
    where
        T: Copy + PartialEq + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
        T: std::str::FromStr<Err = busbound_diagnosis::UnknownName>,
    {
        let names: BTreeSet<&str> = all.iter().map(|one| name(*one)).collect();
        assert_eq!(names.len(), all.len());
        for one in all {
            let json = serde_json::to_string(one).unwrap();
            assert_eq!(json, format!("\"{}\"", name(*one)));
            assert_eq!(serde_json::from_str::<T>(&json).unwrap(), *one);
            assert_eq!(name(*one).parse::<T>().unwrap(), *one);
        }
    }
    check(FindingId::ALL, FindingId::as_str);
    check(LimitationId::ALL, LimitationId::as_str);
    check(Unit::ALL, Unit::as_str);
    let error = "pagable_copies".parse::<FindingId>().unwrap_err();
    assert_eq!(error.to_string(), "unknown finding \"pagable_copies\"; did you mean pageable_copies?");
    assert_eq!("xyz".parse::<FindingId>().unwrap_err().closest, None);
}

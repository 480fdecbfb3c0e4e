//! What a program gained from staged copies, in each format.

use busbound_diagnosis::{TimeOf, Trial, TrialRun, TrialSide, judge_trial};
use busbound_report::{Format, Report, Style};

fn side(times: &[f64], staged: bool, copy_ms: f64) -> TrialSide {
    let bytes = 6_980_000_000;
    let run = |&ms: &f64| TrialRun {
        ms,
        copies: 128,
        bytes,
        staged_bytes: if staged { bytes } else { 0 },
        copy_ms,
    };
    TrialSide::of(times.iter().map(run).collect()).unwrap()
}

fn faster() -> Trial {
    let (before, after) = (side(&[1018.0, 1032.0], false, 960.0), side(&[330.0, 336.0], true, 145.0));
    let before = TrialSide { bytes_per_step: Some(6_980_000_000), ..before };
    let mut trial = judge_trial(TimeOf::Step, before, Some(after), 8);
    trial.recordings = vec!["gen-before.bbt".to_owned(), "gen-after.bbt".to_owned()];
    trial
}

fn said(trial: &Trial) -> String {
    trial.render(Format::Terminal, &Style::default()).unwrap().lines().next().unwrap().to_owned()
}

#[test]
fn a_gain_is_said_first_with_its_figures() {
    for width in [60, 80, 140] {
        let style = Style { width, color: false, verbose: false };
        insta::assert_snapshot!(format!("trial_{width}"), faster().render(Format::Terminal, &style).unwrap());
    }
    insta::assert_snapshot!("trial_markdown", faster().render(Format::Markdown, &Style::default()).unwrap());
    assert!(faster().render(Format::Html, &Style::default()).unwrap().contains("3.1x faster"));
}

#[test]
fn the_other_outcomes_are_as_plain() {
    let before = || side(&[1000.0, 1010.0], false, 960.0);
    let with = |after: TrialSide| judge_trial(TimeOf::SinceFirstCopy, before(), Some(after), 8);
    assert!(said(&with(side(&[1002.0, 1004.0], true, 900.0))).starts_with("No difference beyond the noise"));
    assert!(said(&with(side(&[1300.0, 1310.0], true, 900.0))).starts_with("30% slower with staged copies"));
    assert!(said(&with(side(&[900.0, 905.0], true, 900.0))).starts_with("11% faster"));
    assert!(said(&with(side(&[1000.0], false, 900.0))).starts_with("No copy could be staged"));
    let nothing = judge_trial(TimeOf::Run, before(), None, 0);
    assert!(said(&nothing).starts_with("Nothing to gain"));
}

/// The bytes of a run are not those of a step.
#[test]
fn bytes_say_what_they_are_of() {
    let sentence = said(&faster());
    assert!(sentence.contains("6.98 GB/step now at 48 GB/s instead of"), "{sentence}");
    let run = judge_trial(
        TimeOf::SinceFirstCopy,
        side(&[1000.0, 1010.0], false, 960.0),
        Some(side(&[330.0, 336.0], true, 145.0)),
        8,
    );
    let style = Style { width: 200, color: false, verbose: false };
    let text = run.render(Format::Terminal, &style).unwrap();
    assert!(
        text.contains("1.00 s → 333 ms; 6.98 GB of copies per run now at 48 GB/s instead of 7."),
        "{text}"
    );
}

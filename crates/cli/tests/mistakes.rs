//! What a person reads who mistypes something, or gives the wrong file: one sentence that says what to do next.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod common;

use std::fs;

use common::{busbound, fixture, text};

fn run(args: &[&str]) -> (String, String, Option<i32>) {
    text(&busbound(args).output().unwrap())
}

#[test]
fn a_path_without_a_command_is_diagnosed() {
    let trace = fixture("launch_bound.json.gz");
    let wanted = run(&["diagnose", &trace, "--format", "markdown"]);
    assert_eq!(wanted.2, Some(0));
    assert_eq!(run(&[&trace, "--format", "markdown"]), wanted);
    assert_eq!(run(&["--format", "markdown", &trace]), wanted);
    let (_, stderr, code) = run(&["no-such.json"]);
    assert_eq!((stderr.as_str(), code), ("busbound: no-such.json does not exist\n", Some(3)));
    assert_eq!(run(&["no*such"]).1, "busbound: no files match no*such\n");
}

#[test]
fn commands_and_flags_get_suggestions() {
    let trace = fixture("launch_bound.json.gz");
    for (args, words) in [
        (vec!["diagnos"], "'diagnose'"),
        (vec!["comapre", "a", "b"], "'compare'"),
        (vec!["traces"], "no file or directory is named 'traces'"),
        (vec!["diagnose", &trace, "--html"], "use -o FILE.html or --open"),
        (vec![&trace, "--markdown"], "use -o FILE.md"),
        (vec!["diagnose", &trace, "--opne"], "'--open'"),
        (vec!["whatif", &trace, "--apply", "prefech=2"], "did you mean prefetch?"),
        (vec!["whatif", &trace, "--apply", "zzz"], "the changes are pin, prefetch=N"),
        (vec!["gate", &trace, "--require", "step_50 < 3"], "did you mean step_p50, step_p90 or step_p99?"),
        (vec!["gate", &trace, "--require", "zork < 3"], "busbound gate --help lists the figures"),
        (vec!["gate", &trace], "nothing to check: give --require"),
        (vec![&trace, "--machine", "h100-pci"], "did you mean h100-pcie"),
        (vec![&trace, "--machine", "zzzzzzzzzz"], "busbound diagnose --help lists the GPUs"),
        (vec!["plan", "budget", "--bytes", "2GB", "--link", "pcie4x61"], "did you mean pcie4x16"),
    ] {
        let (stdout, stderr, code) = run(&args);
        assert_eq!((stdout.as_str(), code), ("", Some(2)), "{args:?}: {stderr}");
        assert!(stderr.contains(words), "{args:?}: {stderr}");
        assert!(!stderr.contains("as a value"), "{args:?}: {stderr}");
        assert!(stderr.lines().all(|line| line.len() < 300), "{args:?}: {stderr}");
    }
}

/// Every kind of file that busbound writes or reads, given where another one belongs.
#[test]
fn a_file_of_another_kind_is_recognized() {
    let directory = tempfile::tempdir().unwrap();
    let saved = |name: &str| directory.path().join(name).display().to_string();
    let trace = fixture("launch_bound.json.gz");
    let (diagnosis, gate, topology, nvbandwidth, rank) =
        (saved("d.json"), saved("g.json"), saved("t.json"), saved("n.json"), saved("launch_bound.rank.json"));
    let (profile, samples, log) =
        (fixture("machines/h200.json"), fixture("machines/raw/h200-quick.json"), fixture("top/made.jsonl"));
    let smi = fixture("topology/nvidia-smi-eight-gpus.txt");
    for args in [
        vec!["diagnose", &trace, "-o", &diagnosis],
        vec!["gate", &trace, "--require", "step_p50 < 1000", "-o", &gate],
        vec!["topo", "--from-smi", &smi, "-o", &topology],
        vec!["bench", "--from", &samples, "--nvbandwidth", "-o", &nvbandwidth],
        vec!["summarize", &trace, "-o", &directory.path().display().to_string(), "--quiet"],
    ] {
        let (_, stderr, code) = run(&args);
        assert_eq!((stderr.as_str(), code), ("", Some(0)), "{args:?}");
    }
    for (args, words) in [
        (
            vec![profile.as_str()],
            format!("a machine profile, not a profiler trace: pass it with --machine {profile}"),
        ),
        (vec![&samples], format!("not a profiler trace: run busbound bench --from {samples}")),
        (vec![&log], format!("not a profiler trace: run busbound top --replay {log}")),
        (vec![&rank], format!("a rank summary, not a profiler trace: run busbound merge {rank}")),
        (vec![&diagnosis], "a saved answer of busbound, not a profiler trace: give the trace".to_owned()),
        (vec!["compare", &diagnosis, &diagnosis], "a saved answer of busbound".to_owned()),
        (vec![&gate], format!("pass it with gate --baseline {gate}")),
        (vec![&topology], format!("pass it with --topology {topology}")),
        (vec![&nvbandwidth], "a result of nvbandwidth".to_owned()),
        (vec!["merge", &trace], format!("a profiler trace, not a rank summary: run busbound {trace}")),
        (
            vec!["bench", "--from", &trace],
            format!(
                "a profiler trace, not a file of samples from `busbound bench --raw`: run busbound {trace}"
            ),
        ),
        (
            vec!["top", "--replay", &trace],
            format!("a profiler trace, not a log of `busbound top`: run busbound {trace}"),
        ),
        (vec!["top", "--replay", &profile], format!("pass it with --machine {profile}")),
        (vec![&trace, "--machine", &samples], "busbound bench --from".to_owned()),
        (
            vec![&trace, "--topology", &profile],
            format!(
                "a machine profile, not a topology from `busbound topo`: pass it with --machine {profile}"
            ),
        ),
        (
            vec!["gate", &trace, "--require", "step_p50 < baseline", "--baseline", &diagnosis],
            "give the trace that it was made from".to_owned(),
        ),
        (vec!["topo", "--from-nccl", &trace], "a profiler trace, not a topology file of NCCL".to_owned()),
        (
            vec!["top", "--replay", &fixture("walls.json")],
            "is not a log of `busbound top`: give a file that busbound top --log wrote".to_owned(),
        ),
    ] {
        let (stdout, stderr, code) = run(&args);
        assert_eq!((stdout.as_str(), code), ("", Some(3)), "{args:?}: {stderr}");
        assert!(stderr.contains(&words), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        for raw in ["os error", "at line", "UTF-8", "expected value", "missing field"] {
            assert!(!stderr.contains(raw), "{args:?}: {stderr}");
        }
    }
}

#[test]
fn flags_that_do_not_fit_the_trace_are_said_before_the_answer() {
    let trace = fixture("off_block_pinned_c4.json.gz");
    for (args, words) in [
        (vec!["--steps", "zork"], "no annotation matches --steps 'zork', so figures are for the whole trace"),
        (vec!["--warmup", "9"], "--warmup 9 is too large for 4 steps: only the first 3 are left out"),
        (
            vec!["--machine", "pcie4x8"],
            "--machine pcie4x8 does not fit: copies in this trace are faster than that link",
        ),
        (vec!["--by", "zork"], "no annotation matches --by 'zork'"),
    ] {
        for command in ["diagnose", "whatif", "summarize"] {
            let args = [vec![command, trace.as_str()], args.clone()].concat();
            let (_, stderr, code) = run(&args);
            assert!(code == Some(0) && stderr.contains(&format!("{trace}: {words}")), "{args:?}: {stderr}");
            assert_eq!(run(&[args, vec!["--quiet"]].concat()).1, "");
        }
    }
    for args in [vec!["--steps", "step"], vec!["--warmup", "1"], vec!["--machine", "h200"]] {
        assert_eq!(run(&[vec![trace.as_str()], args].concat()).1, "");
    }
}

#[test]
fn each_file_that_cannot_be_read_is_reported_once() {
    let directory = tempfile::tempdir().unwrap();
    let trace = fixture("launch_bound.json.gz");
    let broken = directory.path().join("broken.json").display().to_string();
    fs::write(&broken, "{\"learning_rate\": 1}").unwrap();
    let (stdout, stderr, code) = run(&[&trace, &broken]);
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let words = stdout.split_whitespace().collect::<String>();
    assert_eq!(words.matches("broken.json").count(), 1, "{stdout}");
    let (_, stderr, code) = run(&["survey", &trace, &broken]);
    assert_eq!((stderr.matches("broken.json").count(), code), (1, Some(0)), "{stderr}");
}

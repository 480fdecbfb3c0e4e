//! What a person reads who mistypes something, or gives the wrong file: one sentence that says what to do next.

use std::fs;

use crate::common::{busbound, fixture, text};

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
        (vec!["whatif", &trace, "--apply", "zzz"], "the changes are pin, stage, prefetch=N"),
        (vec!["gate", &trace, "--require", "step_50 < 3"], "did you mean step_p50, step_p90 or step_p99?"),
        (vec!["gate", &trace, "--require", "zork < 3"], "busbound gate --help lists the figures"),
        (vec!["gate", &trace, "--require", "tokens_per_s > 3"], "add --per-step tokens=COUNT"),
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

/// One of every kind of file that busbound writes, in a directory.
struct Saved(tempfile::TempDir);

impl Saved {
    fn new() -> Self {
        let saved = Self(tempfile::tempdir().unwrap());
        let trace = fixture("launch_bound.json.gz");
        let (smi, samples) =
            (fixture("topology/nvidia-smi-eight-gpus.txt"), fixture("machines/raw/h200-quick.json"));
        for args in [
            vec!["diagnose", &trace, "-o", &saved.at("diagnosis.json")],
            vec!["gate", &trace, "--require", "step_p50 < 1000", "-o", &saved.at("gate.json")],
            vec!["topo", "--from-smi", &smi, "-o", &saved.at("topo.json")],
            vec!["bench", "--from", &samples, "--nvbandwidth", "-o", &saved.at("nvbandwidth.json")],
            vec!["summarize", &trace, "-o", &saved.at(""), "--quiet"],
        ] {
            let (_, stderr, code) = run(&args);
            assert_eq!((stderr.as_str(), code), ("", Some(0)), "{args:?}");
        }
        saved
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

/// One sentence with these words, and nothing that a parser said.
fn assert_recognized(args: &[&str], words: &str) {
    let (stdout, stderr, code) = run(args);
    assert_eq!((stdout.as_str(), code), ("", Some(3)), "{args:?}: {stderr}");
    assert!(stderr.contains(words), "{args:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    for raw in ["os error", "at line", "UTF-8", "expected value", "missing field"] {
        assert!(!stderr.contains(raw), "{args:?}: {stderr}");
    }
}

#[test]
fn files_that_are_not_traces_are_recognized() {
    let saved = Saved::new();
    let not_a = |path: &str, what: &str, next: &str| {
        assert_recognized(&[path], &format!("{path} is {what}, not a profiler trace: {next}"));
    };
    let (profile, samples) = (fixture("machines/h200.json"), fixture("machines/raw/h200-quick.json"));
    let (log, rank, gate) =
        (fixture("top/made.jsonl"), saved.at("launch_bound.rank.json"), saved.at("gate.json"));
    let (diagnosis, topology) = (saved.at("diagnosis.json"), saved.at("topo.json"));
    not_a(&profile, "a machine profile", &format!("pass it with --machine {profile}"));
    not_a(
        &samples,
        "a file of samples from `busbound bench --raw`",
        &format!("run busbound bench --from {samples}"),
    );
    not_a(&log, "a log of `busbound top`", &format!("run busbound top --replay {log}"));
    not_a(&rank, "a rank summary", &format!("run busbound merge {rank}"));
    not_a(&gate, "a saved answer of `busbound gate`", &format!("pass it with gate --baseline {gate}"));
    not_a(&topology, "a topology from `busbound topo`", &format!("pass it with --topology {topology}"));
    not_a(&saved.at("nvbandwidth.json"), "a result of nvbandwidth", "measure with busbound bench");
    not_a(&diagnosis, "a saved answer of busbound", "give the trace that it was made from");
    assert_recognized(&["compare", &diagnosis, &diagnosis], "a saved answer of busbound");
}

#[test]
fn files_given_to_the_wrong_flag_are_recognized() {
    let saved = Saved::new();
    let (trace, profile) = (fixture("launch_bound.json.gz"), fixture("machines/h200.json"));
    let (samples, diagnosis) = (fixture("machines/raw/h200-quick.json"), saved.at("diagnosis.json"));
    let is_trace = |what: &str| format!("a profiler trace, not {what}: run busbound {trace}");
    let is_profile = |what: &str| format!("a machine profile, not {what}: pass it with --machine {profile}");
    let (log, topology) = ("a log of `busbound top`", "a topology from `busbound topo`");
    assert_recognized(&["merge", &trace], &is_trace("a rank summary"));
    assert_recognized(
        &["bench", "--from", &trace],
        &is_trace("a file of samples from `busbound bench --raw`"),
    );
    assert_recognized(&["top", "--replay", &trace], &is_trace(log));
    assert_recognized(&["topo", "--from-nccl", &trace], &is_trace("a topology file of NCCL"));
    assert_recognized(&["top", "--replay", &profile], &is_profile(log));
    assert_recognized(&[&trace, "--topology", &profile], &is_profile(topology));
    assert_recognized(&[&trace, "--machine", &samples], &format!("busbound bench --from {samples}"));
    let gate = ["gate", &trace, "--require", "step_p50 < baseline", "--baseline", &diagnosis];
    assert_recognized(&gate, "give the trace that it was made from");
    let unknown = fixture("walls.json");
    assert_recognized(
        &["top", "--replay", &unknown],
        "is not a log of `busbound top`: give a file that busbound top",
    );
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

/// It said only that the file does not exist.
#[test]
fn results_that_need_a_profile_say_how_to_make_one() {
    let raw = fixture("machines/raw/h200-contention.json");
    let (stdout, stderr, code) = run(&["bench", "--from", &raw, "--save", "no-such-profile.json"]);
    assert!(stdout.contains("56.3 GB/s"), "{stdout}");
    assert_eq!(code, Some(3));
    assert!(stderr.contains("name the copy suite as well"), "{stderr}");
}

#[test]
fn a_folder_of_dumps_names_the_command_that_reads_them() {
    let folder = fixture("flight");
    let (stdout, stderr, code) = text(&busbound(&["diagnose", &folder]).output().unwrap());
    assert_eq!((stdout.as_str(), code), ("", Some(3)));
    let expected = format!(
        "busbound: {folder} holds no trace, but nccl_trace_rank_0 is a dump of PyTorch's flight recorder: run busbound survey {folder}\n"
    );
    assert_eq!(stderr, expected);
}

/// A log whose first line is damaged was taken for a broken trace of torch.profiler.
#[test]
fn a_stage_log_with_a_damaged_first_line_is_still_one() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("rank0.stages.jsonl");
    let whole = std::fs::read_to_string(fixture("coverage/pipeline/rank0.stages.jsonl")).unwrap();
    std::fs::write(&log, format!("m 3, \"rank\": 0}}\n{whole}")).unwrap();
    let log = log.display().to_string();
    let (stdout, stderr, code) = text(&busbound(&["diagnose", &log, "--json"]).output().unwrap());
    let answer: serde_json::Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
    assert_eq!((code, &answer["source"]["complete"]), (Some(0), &false.into()), "{stderr}");
    assert_eq!(answer["source"]["lost"].as_array().map(Vec::len), Some(1));
    // Nothing but damage: its own words, not those for torch.profiler.
    std::fs::write(&log, "x\ny\n").unwrap();
    let (_, stderr, code) = text(&busbound(&["diagnose", &log]).output().unwrap());
    assert_eq!(code, Some(3));
    assert!(
        stderr.contains("is a log of stage timestamps without any events: write a line per item"),
        "{stderr}"
    );
}

#[test]
fn gate_reads_a_log_of_nccl() {
    let (trace, log) = (fixture("collectives/ddp_2_ranks.json.gz"), fixture("nccl/shm.log"));
    let args = ["gate", &trace, "--require", "step_p50 > 0", "--nccl-log", &log];
    let (_, stderr, code) = text(&busbound(&args).output().unwrap());
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    let (_, stderr, code) =
        text(&busbound(&[&args[..5], &[&fixture("flight/nccl_trace_rank_0")]].concat()).output().unwrap());
    assert!(code == Some(3) && stderr.contains("flight recorder"), "{stderr}");
}

#[test]
fn a_root_without_sys_is_no_machine_without_gpus() {
    let folder = tempfile::tempdir().unwrap();
    let file = fixture("topology/nvswitch8.tree");
    let empty = folder.path().display().to_string();
    for (root, words) in [
        ("/no-such-root", "does not exist"),
        (file.as_str(), "is a file, not a directory with the sys/ and proc/ of a machine"),
        (empty.as_str(), "has no sys/: give the directory above the sys/ and proc/ of a machine"),
    ] {
        for more in [&[][..], &["--traffic"]] {
            let (stdout, stderr, code) = run(&[&["topo", "--root", root], more].concat());
            assert_eq!((stdout.as_str(), code), ("", Some(3)), "{root}: {stderr}");
            assert!(stderr.contains(words), "{root}: {stderr}");
        }
    }
    fs::create_dir(folder.path().join("sys")).unwrap();
    let (_, stderr, code) = run(&["topo", "--traffic", "--root", &empty]);
    assert_eq!(code, Some(3));
    assert!(stderr.contains("has no GPU: give that of a machine with GPUs"), "{stderr}");
}

#[test]
fn every_whatif_change_can_be_explained() {
    for about in busbound::whatif::replay::all_changes() {
        let (stdout, stderr, code) = run(&["explain", about.name]);
        assert_eq!(code, Some(0), "{}: {stderr}", about.name);
        assert!(stdout.contains(&format!("--apply {}", about.spelling)), "{}: {stdout}", about.name);
    }
    assert!(run(&["explain", "prefech"]).1.contains("did you mean prefetch?"));
}

#[test]
fn a_measured_machine_is_not_asked_for_again() {
    let (trace, machine) = (fixture("off_block_pageable_c4.json.gz"), fixture("machines/h200.json"));
    let apply = ["whatif", &trace, "--apply", "stage"];
    let advice = "profile with --machine narrows it";
    let squeezed = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(squeezed(run(&apply).0).contains(advice));
    let given = squeezed(run(&[&apply[..], &["--machine", &machine]].concat()).0);
    assert!(!given.contains(advice), "{given}");
    assert!(given.contains("how fast the changed copies are"), "{given}");
}

#[test]
fn settings_of_a_wrong_numa_node_have_the_command_that_binds() {
    let trace = fixture("coverage/two_nodes.bbt");
    let (stdout, ..) = run(&["diagnose", &trace, "--emit", "sh"]);
    assert!(stdout.contains("numactl --cpunodebind="), "{stdout}");
}

/// Runs that differ in two things were one series.
#[test]
fn several_labels_make_several_series() {
    let runs = ["small_block_pinned", "bus_block_pinned", "small_block_pageable", "bus_block_pageable"];
    let paths: Vec<String> = runs.iter().map(|name| fixture(&format!("pairs/{name}.json.gz"))).collect();
    let compare = |labels: &[&str]| {
        let mut args = vec!["compare"];
        args.extend(paths.iter().map(String::as_str));
        args.extend(labels.iter().flat_map(|label| ["--label", label]));
        run(&args)
    };
    let (stdout, stderr, code) = compare(&["memory=pinned,pinned,pageable,pageable", "batch=1,3,1,3"]);
    assert_eq!(code, Some(0), "{stderr}");
    let words = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for wanted in [
        "At batch=3, memory=pinned takes 31.3 ms per step, memory=pageable takes ",
        "memory=pinned: 3x batch: ",
        "memory=pageable: 3x batch: ",
        "batch=3, memory=pinned 31.3 ms 95.9/s",
        "memory=pinned: copying only grew ",
    ] {
        assert!(words.contains(wanted), "{wanted}: {stdout}");
    }
    let (_, stderr, code) = compare(&["memory=pinned,pinned,pageable,pageable"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("give a key and one number above zero per run, e.g. batch=2,4,8"), "{stderr}");
    let (_, stderr, code) = compare(&["batch=1,3,1,3", "memory=pinned"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("--label memory has 1 number for 4 runs"), "{stderr}");
}

//! `busbound try` and `busbound run` with a program on a driver without a GPU.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{busbound, fixture, text};

/// The driver and the program, built once.
fn parts() -> &'static Path {
    static PARTS: OnceLock<PathBuf> = OnceLock::new();
    PARTS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trial");
        std::fs::create_dir_all(&folder).unwrap();
        let sources = PathBuf::from(fixture("../crates/apply/tests/program"));
        let built = |words: &[&str], name: &str, source: &str| {
            let mut cc = Command::new("cc");
            cc.arg("-O1").args(words).arg("-o").arg(folder.join(name)).arg(sources.join(source));
            assert!(cc.args(["-lpthread", "-ldl"]).status().unwrap().success());
        };
        built(&["-shared", "-fPIC", "-Wl,-Bsymbolic"], "libcuda.so.1", "driver.c");
        built(&[], "exercise", "exercise.c");
        folder
    })
}

fn with_program(args: &[&str], program: &[&str]) -> (String, String, Option<i32>) {
    let exercise = parts().join("exercise").display().to_string();
    let words: Vec<&str> =
        program.iter().map(|word| if *word == "exercise" { exercise.as_str() } else { word }).collect();
    let mut command = busbound(args);
    command.arg("--").args(words).env("LD_LIBRARY_PATH", parts()).env_remove("LD_PRELOAD");
    text(&command.output().unwrap())
}

#[test]
fn try_runs_both_ways_and_keeps_what_the_program_prints() {
    let (answer, said, code) =
        with_program(&["try", "--runs", "1", "--threads", "2", "--json"], &["exercise", "races"]);
    assert_eq!(code, Some(0), "{said}");
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["schema"], "busbound.trial/1");
    assert_eq!(
        (answer["before"]["runs"][0]["copies"].as_u64(), answer["after"]["runs"][0]["copies"].as_u64()),
        (Some(48), Some(48))
    );
    assert_eq!(answer["before"]["runs"][0]["staged_bytes"], 0);
    assert_eq!(answer["after"]["runs"][0]["staged_bytes"], answer["after"]["runs"][0]["bytes"]);
    assert_eq!(said.matches("race 23: 0 0 same").count(), 2, "{said}");
}

#[test]
fn try_stops_early_if_there_is_nothing_to_stage() {
    let (answer, said, code) = with_program(&["try", "--runs", "3"], &["exercise", "kinds"]);
    assert_eq!(code, Some(0));
    assert!(
        answer.starts_with("Nothing to gain: this program makes no large copies of pageable memory."),
        "{answer}"
    );
    assert_eq!(said.matches("pinned: 0").count(), 1, "one run is enough: {said}");
}

#[test]
fn the_exit_code_is_the_programs() {
    let (answer, said, code) = with_program(&["try"], &["sh", "-c", "exit 7"]);
    assert_eq!((answer.as_str(), code), ("", Some(7)));
    assert!(said.contains("the program failed (exit code 7): nothing was compared"), "{said}");
    assert_eq!(with_program(&["run"], &["sh", "-c", "exit 5"]).2, Some(5));
    assert_eq!(
        with_program(&["run"], &["sh", "-c", "kill -9 $$"]).2,
        None,
        "killed by the signal, as the program"
    );
    // A program that fails only with staged copies.
    let (_, said, code) = with_program(
        &["try"],
        &["sh", "-c", "[ $BUSBOUND_STAGE = observe ] && exec \"$0\" races || exit 3", "exercise"],
    );
    assert_eq!(code, Some(3));
    assert!(said.contains("failed with staged copies (exit code 3) and not without"), "{said}");
}

#[test]
fn run_only_runs_it_and_one_variable_turns_it_off() {
    let (printed, said, code) = with_program(&["run", "--threads", "2"], &["exercise", "races"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(printed.lines().count(), 24);
    let (mode, _, _) = with_program(&["run"], &["sh", "-c", "echo $BUSBOUND_STAGE ${LD_PRELOAD##*/}"]);
    assert!(mode.starts_with("on apply-"), "{mode}");
}

#[test]
fn heartbeats_give_the_steps() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("beats.jsonl").display().to_string();
    let script = "for i in 1 2 3; do if [ $BUSBOUND_STAGE = observe ]; then t=0.1; else t=0.05; fi; echo \"{\\\"dt_step_s\\\": $t}\" >> \"$1\"; done; exec \"$0\" races";
    let args = ["try", "--runs", "1", "--heartbeat", &file, "--json"];
    let (answer, said, code) = with_program(&args, &["sh", "-c", script, "exercise", &file]);
    assert_eq!(code, Some(0), "{said}");
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((answer["time_of"].as_str(), answer["speedup"].as_f64()), (Some("step"), Some(2.0)));
    assert_eq!(answer["outcome"], "faster");
}

#[test]
fn runs_that_do_different_work_are_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let done = folder.path().join("done").display().to_string();
    // As a program that resumes: the first run leaves nothing to do.
    let script = "if [ -e \"$1\" ]; then exec \"$0\" fork; else touch \"$1\"; exec \"$0\" races; fi";
    let (answer, _, code) = with_program(&["try", "--runs", "1"], &["sh", "-c", script, "exercise", &done]);
    assert_eq!(code, Some(0));
    assert!(answer.starts_with("Not comparable: the runs copied different amounts."), "{answer}");
}

#[test]
fn a_program_without_the_library_is_not_called_one_without_copies() {
    let (answer, _, code) =
        with_program(&["try"], &["sh", "-c", "unset LD_PRELOAD; exec \"$0\" races", "exercise"]);
    assert_eq!(code, Some(0));
    assert!(
        answer.starts_with("Not compared: no process made a CUDA copy with the library loaded."),
        "{answer}"
    );
}

#[test]
fn each_run_reads_its_input_from_the_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.txt");
    std::fs::write(&input, "one line\n").unwrap();
    let exercise = parts().join("exercise").display().to_string();
    let mut command = busbound(&[
        "try",
        "--runs",
        "1",
        "--",
        "sh",
        "-c",
        "read line; echo \"read $line\" >&2; exec \"$0\" races",
        &exercise,
    ]);
    command
        .env("LD_LIBRARY_PATH", parts())
        .env_remove("LD_PRELOAD")
        .stdin(std::fs::File::open(&input).unwrap());
    let (_, said, _) = text(&command.output().unwrap());
    assert_eq!(said.matches("read one line").count(), 2, "{said}");
}

#[test]
fn heartbeats_that_are_written_anew_count_from_the_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("beats.jsonl").display().to_string();
    let script = "if [ $BUSBOUND_STAGE = observe ]; then t=0.1; else t=0.0250; fi; echo \"{\\\"dt_step_s\\\": $t}\" > \"$1\"; exec \"$0\" races";
    let args = ["try", "--runs", "1", "--heartbeat", &file, "--json"];
    let (answer, said, _) = with_program(&args, &["sh", "-c", script, "exercise", &file]);
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!((answer["time_of"].as_str(), answer["speedup"].as_f64()), (Some("step"), Some(4.0)));
}

/// Programs into which no library gets run as without it, and one line says so.
#[test]
fn a_program_that_takes_no_library_runs_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("main.c");
    std::fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"ran\"); return 6; }\n").unwrap();
    let built = |name: &str, option: &str| {
        let program = folder.path().join(name);
        let done = Command::new("cc").arg(option).arg("-o").arg(&program).arg(&source).status().unwrap();
        assert!(done.success());
        program.display().to_string()
    };
    let fixed = built("fixed", "-static");
    let expected = format!(
        "busbound: {fixed} is linked statically: its copies stay as they are. Programs that it starts have theirs staged.\n"
    );
    assert_eq!(with_program(&["run"], &[&fixed]), ("ran\n".to_owned(), expected, Some(6)));
    let said = with_program(&["try"], &[&fixed]).1;
    assert_eq!((said.matches("is linked statically").count(), said.matches("ran").count()), (1, 1), "{said}");
    // Its loader gets no library that it would refuse; a copy of glibc's under another name shows what it gets.
    let loader = folder.path().join("ld-musl-x86_64.so.1");
    std::fs::copy("/lib64/ld-linux-x86-64.so.2", &loader).unwrap();
    let other = built("other", &format!("-Wl,--dynamic-linker={}", loader.display()));
    let (printed, said, code) = with_program(&["run"], &[&other]);
    let expected = format!(
        "busbound: {other} is not a program for glibc on x86-64 ({}): its copies stay as they are.\n",
        loader.display()
    );
    assert_eq!((printed.as_str(), said, code), ("ran\n", expected, Some(6)));
}

/// musl's loader refused the library that it inherited: a container's entry point, or a tool in a script, did not start.
#[test]
fn a_program_for_musl_that_the_program_starts_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("main.c"), folder.path().join("program"));
    std::fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"ran\"); return 6; }\n").unwrap();
    let Ok(built) = Command::new("musl-gcc").arg("-o").arg(&program).arg(&source).status() else {
        // `cargo xtask test` installs it, or says that it is missing.
        return;
    };
    assert!(built.success());
    let words = ["sh", "-c", "\"$0\"; exit $?", &program.display().to_string()];
    assert_eq!(with_program(&["run"], &words), ("ran\n".to_owned(), String::new(), Some(6)));
}

/// The system reports a missing interpreter as a missing program.
#[test]
fn a_program_without_its_interpreter_is_not_called_missing() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("main.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let program = folder.path().join("program");
    let option = "-Wl,--dynamic-linker=/lib/ld-not-here.so.1";
    assert!(Command::new("cc").arg(option).arg("-o").arg(&program).arg(&source).status().unwrap().success());
    let program = program.display().to_string();
    let expected = format!(
        "busbound: {program} cannot be started: its interpreter /lib/ld-not-here.so.1 does not exist\n"
    );
    for command in ["run", "record"] {
        let (_, said, code) = with_program(&[command], &[&program]);
        assert!(said.ends_with(&expected), "{said}");
        assert_eq!(code, Some(3));
    }
    let (_, said, code) = with_program(&["run"], &["./no-such-program"]);
    assert_eq!((said.as_str(), code), ("busbound: ./no-such-program does not exist\n", Some(3)));
}

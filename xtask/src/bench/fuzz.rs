//! Fuzzes each reader for a minute: any bytes, no panic, no hang, the same result on any number of threads.

use std::process::Command;

use crate::shell::{LIBFUZZER, cargo, root, run as run_command, works};

const SECONDS: u32 = 60;
/// Targets, each with the folder of its seeds.
const TARGETS: [(&str, &str); 3] =
    [("read", "fuzz/seeds"), ("recording", "fuzz/seeds_recording"), ("nsight", "fuzz/seeds_nsight")];

pub(crate) fn run() -> anyhow::Result<String> {
    if !works(&mut cargo(&["fuzz", "--version"])) {
        run_command(&mut cargo(&["install", "--locked", "cargo-fuzz"]))?;
    }
    for (target, seeds) in TARGETS {
        let corpus = root().join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&corpus)?;
        // Without a sanitizer, cargo-fuzz needs no nightly compiler; the crates have no unsafe code to check.
        let mut fuzz: Command = cargo(&["fuzz", "run", "--sanitizer", "none", target]);
        fuzz.env_remove(LIBFUZZER).arg(&corpus).arg(root().join(seeds));
        fuzz.args(["--", "-timeout=10", "-rss_limit_mb=2048", "-max_len=65536"]);
        fuzz.arg(format!("-max_total_time={SECONDS}"));
        run_command(&mut fuzz)?;
    }
    Ok(format!(
        "## Fuzzing\n\n{SECONDS} s of each reader without a panic, a hang or a difference between threads.\n"
    ))
}

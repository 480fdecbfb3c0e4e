//! Instructions that the reader needs per megabyte, counted by callgrind: nearly the same on any machine, even a busy
//! one, so that a regression is visible when timings are noisy.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use flate2::read::MultiGzDecoder;

use crate::setup::has_valgrind;
use crate::shell::{output, root, say};
use crate::skipped::Skipped;
use crate::web::binary;

/// The trace to count with: a real torch.profiler trace, small enough to take a second.
const TRACE: &str = "fixtures/launch_bound.json.gz";
/// Millions of instructions per MB of JSON in the scanner, in the build for tests (rustc 1.95, AVX2).
const BASELINE: f64 = 16.53;
/// Counts vary little between runs of one binary; another compiler release or CPU vector width may need a new
/// baseline.
const TOLERANCE: f64 = 0.05;

/// The gate of `cargo xtask test`: the scanner of the binary that the tests use.
pub(crate) fn gate(skipped: &mut Skipped) -> anyhow::Result<()> {
    if !has_valgrind() {
        return skipped.add("instructions of the reader", "valgrind is missing (apt-get install valgrind)");
    }
    let trace = root().join(TRACE);
    let mut json = MultiGzDecoder::new(fs::File::open(&trace)?);
    let bytes = std::io::copy(&mut json, &mut std::io::sink())?;
    let folder = root().join("target/callgrind");
    fs::create_dir_all(&folder)?;
    let counted = scanner(&binary("debug"), &trace, &folder.join("gate.out"))?;
    let each = counted / bytes as f64;
    let change = each / BASELINE - 1.0;
    say(&format!("reader: {each:.2} million instructions per MB, {:+.1}% vs. the baseline", 100.0 * change));
    ensure!(
        change <= TOLERANCE,
        "the reader needs {each:.2} million instructions per MB of JSON; the limit is {BASELINE} (+{:.0}%)",
        100.0 * TOLERANCE
    );
    ensure!(
        change >= -TOLERANCE,
        "the reader got faster; to lock that in, set BASELINE in xtask/src/instructions.rs to {each:.2}"
    );
    Ok(())
}

/// Instructions in the scanner of torch.profiler's JSON while a binary surveys a trace. The binary must have symbols.
pub(crate) fn scanner(binary: &Path, trace: &Path, counts: &Path) -> anyhow::Result<f64> {
    output(
        Command::new("valgrind")
            .args(["--tool=callgrind", "--quiet", "--toggle-collect=*kineto::scan::scan"])
            .arg(format!("--callgrind-out-file={}", counts.display()))
            .arg(binary)
            .arg("survey")
            .arg(trace)
            .args(["--quiet", "--threads", "1"]),
    )?;
    let text = fs::read_to_string(counts)?;
    let total =
        text.lines().find_map(|line| line.strip_prefix("summary: ").or(line.strip_prefix("totals: ")));
    let total: f64 = total.context("callgrind wrote no total")?.trim().parse()?;
    ensure!(total > 0.0, "callgrind counted nothing: is the scanner still called kineto::scan::scan?");
    Ok(total)
}

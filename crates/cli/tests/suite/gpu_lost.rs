//! A GPU that is lost while `top` and `record` run, on a fake driver.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::common::{Running, busbound, fixture, text};

/// The folder of the fake driver, built once.
pub(crate) fn driver() -> &'static Path {
    static DRIVER: OnceLock<PathBuf> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvml");
        std::fs::create_dir_all(&folder).unwrap();
        let source = fixture("../crates/cli/tests/suite/common/nvml.c");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"]).arg(folder.join("libnvidia-ml.so.1")).arg(source);
        assert!(cc.status().unwrap().success());
        folder
    })
}

fn top(args: &[&str], lost: &Path) -> Command {
    let mut command = busbound(&["top", "--interval", "0.1"]);
    command.args(args).env("LD_LIBRARY_PATH", driver()).env("LOST_1", lost);
    command
}

/// The output after the GPU was lost with this error, in one format.
fn table_with(error: &str, format: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let lost = folder.path().join("lost");
    std::fs::write(&lost, error).unwrap();
    let (stdout, stderr, code) = text(&top(&["--once", "--format", format], &lost).output().unwrap());
    assert_eq!((stderr.as_str(), code), ("", Some(0)));
    stdout
}

#[test]
fn a_gpu_that_is_lost_while_top_runs_is_marked_and_the_others_continue() {
    let folder = tempfile::tempdir().unwrap();
    let lost = folder.path().join("lost");
    let mut child =
        Running(top(&["--json", "--count", "200"], &lost).stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let before = next();
    assert!(
        before["gpus"][1].get("lost").is_none() && before["signs"].as_array().unwrap().is_empty(),
        "{before}"
    );
    assert_eq!(before["gpus"][1]["memory"]["used_bytes"], 50u64 << 30);
    std::fs::write(&lost, "15").unwrap();
    let after = (0..50).map(|_| next()).find(|one| one["gpus"][1].get("lost").is_some()).unwrap();
    let (first, second) = (&after["gpus"][0], &after["gpus"][1]);
    assert_eq!(second["lost"], "gpu_is_lost");
    // Who it was stays known; nothing else does.
    assert_eq!((&second["uuid"], &second["name"]), (&"GPU-1".into(), &"NVIDIA H200".into()));
    for value in ["memory", "link", "power_watts", "gpu_busy_percent"] {
        assert_eq!(second[value], Value::Null, "{value}");
    }
    assert_eq!(second["bus"]["peak"], Value::Null);
    assert_eq!((first["memory"]["used_bytes"].as_u64(), first.get("lost")), (Some(50 << 30), None));
    assert!(first["bus"]["to_device_bytes_per_s"].as_f64().is_some(), "{first}");
    let sign = &after["signs"][0];
    assert_eq!((sign["id"].as_str(), sign["gpu"].as_u64()), (Some("gpu_lost"), Some(1)));
    assert!(sign["next"].as_str().unwrap().contains("dmesg for Xid"), "{sign}");
    // It answers again.
    std::fs::remove_file(&lost).unwrap();
    assert!((0..50).map(|_| next()).any(|one| one["gpus"][1].get("lost").is_none()));
}

/// It was missing from every output.
#[test]
fn a_gpu_that_is_lost_before_top_starts_is_listed() {
    for (error, words) in [
        ("15", "NVML reports that the GPU is lost"),
        ("6", "NVML no longer finds the GPU"),
        ("16", "requires a reset"),
    ] {
        let table = table_with(error, "terminal").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(table.starts_with("GPU 1 is lost. ") && table.contains("GPU 1 lost –"), "{table}");
        assert!(table.contains(words) && table.contains("reset the GPU or reboot the node"), "{table}");
    }
    let markdown = table_with("15", "markdown");
    assert!(markdown.contains("GPU 1: unknown name; lost: NVML reports that the GPU is lost"), "{markdown}");
}

#[test]
fn the_metrics_of_a_lost_gpu_drop_out_except_that_it_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let lost = folder.path().join("lost");
    let mut child = Running(
        top(&["--prometheus", "127.0.0.1:0"], &lost)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let metrics = child.metrics();
    let labels = |gpu: u32| format!("{{gpu=\"{gpu}\",uuid=\"GPU-{gpu}\",name=\"NVIDIA H200\"}}");
    let before = metrics.until(|text| text.contains("busbound_gpu_lost"));
    assert!(before.contains(&format!("busbound_gpu_lost{} 0", labels(1))), "{before}");
    assert!(before.contains(&format!("busbound_memory_used_bytes{}", labels(1))), "{before}");
    std::fs::write(&lost, "15").unwrap();
    let after = metrics.until(|text| text.contains(&format!("busbound_gpu_lost{} 1", labels(1))));
    let of_it: Vec<&str> = after.lines().filter(|line| line.contains("gpu=\"1\"")).collect();
    assert_eq!(
        of_it,
        [
            format!("busbound_gpu_lost{} 1", labels(1)),
            "busbound_warning{id=\"gpu_lost\",gpu=\"1\",file=\"\"} 1".to_owned()
        ]
    );
    assert!(
        after.contains(&format!("busbound_gpu_lost{} 0", labels(0)))
            && after.contains(&format!("busbound_memory_used_bytes{}", labels(0))),
        "{after}"
    );
}

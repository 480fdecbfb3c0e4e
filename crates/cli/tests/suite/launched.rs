//! `bench --suite allreduce` in several processes with one GPU each, on a fake driver and a fake NCCL that really sums.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{busbound, fixture, text};

/// The folder of the fake driver and the fake NCCL, built once.
fn libraries() -> &'static Path {
    static LIBRARIES: OnceLock<PathBuf> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ranks");
        std::fs::create_dir_all(&folder).unwrap();
        for (library, source) in [("libcuda.so", "cuda.c"), ("libnccl.so.2", "nccl.c")] {
            let source = fixture(&format!("../crates/cli/tests/suite/common/{source}"));
            let mut cc = Command::new("cc");
            cc.args(["-O2", "-shared", "-fPIC", "-o"]).arg(folder.join(library)).arg(source);
            assert!(cc.status().unwrap().success());
        }
        folder
    })
}

/// What a launcher starts: processes that find each other at a port that is free.
struct Job {
    folder: TempDir,
    port: u16,
    size: u32,
    args: Vec<String>,
}

/// Standard output, standard error and exit code.
type Said = (String, String, Option<i32>);

impl Job {
    fn new(size: u32, args: &[&str]) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let args = ["bench", "--suite", "allreduce"].iter().chain(args);
        let args = args.map(|arg| (*arg).to_owned()).collect();
        Self { folder: tempfile::tempdir().unwrap(), port, size, args }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A process without anything from a launcher.
    fn bare(&self) -> Command {
        let mut command = busbound(&self.args.iter().map(String::as_str).collect::<Vec<_>>());
        command
            .env("LD_LIBRARY_PATH", libraries())
            .env("BUSBOUND_NCCL", libraries().join("libnccl.so.2"))
            .env("FAKE_NCCL", self.folder.path())
            .current_dir(self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A process as torchrun starts it.
    fn rank(&self, rank: u32) -> Command {
        let mut command = self.bare();
        command
            .args(["--port", &self.port.to_string()])
            .env("MASTER_PORT", "1")
            .env("MASTER_ADDR", "localhost");
        for (name, value) in [("RANK", rank), ("LOCAL_RANK", rank)] {
            command.env(name, value.to_string());
        }
        for name in ["WORLD_SIZE", "LOCAL_WORLD_SIZE"] {
            command.env(name, self.size.to_string());
        }
        command
    }

    /// Runs all ranks, each with what `change` gives it. By rank.
    fn run(&self, change: impl Fn(u32, &mut Command)) -> Vec<Said> {
        let ranks = 0..self.size;
        let started: Vec<Child> = ranks
            .map(|rank| {
                let mut command = self.rank(rank);
                change(rank, &mut command);
                command.spawn().unwrap()
            })
            .collect();
        started.into_iter().map(|child| text(&child.wait_with_output().unwrap())).collect()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path(name)).unwrap()).unwrap()
    }
}

/// A rank other than 0 that has nothing to say.
fn is_silent(said: &Said, code: i32) -> bool {
    (said.0.as_str(), said.1.as_str(), said.2) == ("", "", Some(code))
}

#[test]
fn two_processes_measure_together_and_rank_0_adds_the_result_to_a_profile() {
    let job = Job::new(2, &["--save", "machine.json", "--raw", "raw.json"]);
    std::fs::copy(fixture("machines/h200.json"), job.path("machine.json")).unwrap();
    let said = job.run(|_, _| {});
    let (stdout, stderr, code) = &said[0];
    assert_eq!((code, stderr.contains("wrote the machine profile")), (&Some(0), true), "{stderr}");
    assert!(stdout.contains("all-reduce over 2 GPUs, one process each, bus bandwidth"), "{stdout}");
    assert!(is_silent(&said[1], 0), "{:?}", said[1]);
    let profile = job.json("machine.json");
    let measured = profile["allreduce"].as_array().unwrap();
    let ours: Vec<&Value> = measured.iter().filter(|one| one["ranks"] == 2).collect();
    assert_eq!(ours.len(), 1, "{measured:?}");
    assert_eq!(ours[0]["processes"]["one_per_gpu"]["nodes"], 1);
    assert_eq!(ours[0]["bytes"], 512 << 10);
    // With two ranks, as many bytes cross the bus as are reduced.
    assert_eq!(ours[0]["busbw_gbps"], ours[0]["algbw_gbps"]);
    // What the profile had of one GPU is still there.
    assert!(measured.iter().any(|one| one["ranks"] == 1) && profile["curves"][0]["points"][0].is_object());
    assert_eq!(job.json("raw.json")["cases"][0]["verified"], true);
}

#[test]
fn four_processes_on_two_nodes_are_counted_and_no_host_is_named() {
    let job = Job::new(4, &["--raw", "raw.json", "--no-save", "--full"]);
    let said = job.run(|rank, command| {
        for name in ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR"] {
            command.env_remove(name);
        }
        command.env("SLURM_PROCID", rank.to_string()).env("SLURM_LOCALID", (rank % 2).to_string());
        command.env("SLURM_STEP_NUM_TASKS", "4").env("SLURM_STEP_NODELIST", "localhost,node[1-3]");
        command.env("NCCL_HOSTID", if rank < 2 { "hosta" } else { "hostb" });
    });
    assert_eq!(said[0].2, Some(0), "{:?}", said[0]);
    assert!(said[0].0.contains("all-reduce over 4 GPUs on 2 nodes, one process each"), "{}", said[0].0);
    assert!(said[1..].iter().all(|said| is_silent(said, 0)), "{said:?}");
    let raw = std::fs::read_to_string(job.path("raw.json")).unwrap();
    assert!(!raw.contains("hosta") && !raw.contains("localhost"), "{raw}");
    let raw = job.json("raw.json");
    let cases = raw["cases"].as_array().unwrap();
    // 64 KiB, and up to what the memory allows.
    assert_eq!((cases.len(), &cases[0]["bytes"]), (5, &Value::from(64 << 10)));
    assert!(cases.iter().all(|case| case["ranks"] == 4 && case["verified"] == true), "{cases:?}");
}

#[test]
fn the_slowest_rank_counts_and_one_that_begins_late_does_not() {
    let first_three = |variable: &'static str, ms: &'static str| {
        let job = Job::new(2, &["--raw", "raw.json", "--no-save"]);
        let said = job.run(|rank, command| {
            if rank == 1 {
                command.env(variable, ms);
            }
        });
        assert_eq!(said[0].2, Some(0), "{:?}", said[0]);
        let raw = job.json("raw.json");
        let ns = raw["cases"][0]["ns"].as_array().unwrap().iter().map(|ns| ns.as_u64().unwrap());
        let mut ns: Vec<u64> = ns.take(3).collect();
        ns.sort_unstable();
        ns
    };
    // Rank 0 sees nine of the ten pauses of 10 ms.
    assert!(first_three("FAKE_NCCL_SLOW_MS", "10")[0] >= 10_000_000);
    // It is late for the small one that aligns them; a tenth of that would be in each time otherwise.
    assert!(first_three("FAKE_NCCL_LATE_MS", "400")[1] < 40_000_000);
}

#[test]
fn a_rank_that_does_not_come_is_named_and_nobody_waits_longer() {
    let job = Job::new(3, &["--timeout", "2"]);
    let started = [0, 1].map(|rank| job.rank(rank).spawn().unwrap());
    let said = started.map(|child| text(&child.wait_with_output().unwrap()));
    assert_eq!((said[0].1.as_str(), said[0].2), ("busbound: rank 2 of 3 did not come within 2 s\n", Some(4)));
    assert!(is_silent(&said[1], 4), "{:?}", said[1]);
    // Without rank 0, the others end too.
    let (_, stderr, code) = text(&job.rank(1).output().unwrap());
    assert_eq!(
        (code, stderr.contains("rank 1 cannot reach rank 0 at 127.0.0.1:")),
        (Some(4), true),
        "{stderr}"
    );
}

#[test]
fn a_rank_that_fails_ends_all_with_its_reason() {
    let nccl = "rank 1: NCCL failed: internal error (code 3); NCCL_DEBUG=WARN shows why";
    for (variable, value, why) in [
        ("LOCAL_RANK", "9", "rank 1: no GPU 9: CUDA shows 8, numbered from 0"),
        ("FAKE_GPUS", "0", "rank 1: the NVIDIA driver finds no GPU: it lists no devices"),
        ("LOCAL_RANK", "2", "ranks 1 and 2 use the same GPU: each process needs its own"),
        (
            "FAKE_NCCL_VERSION",
            "21903",
            "rank 1 has NCCL 2.19.3 and rank 0 has NCCL 2.21.5: all ranks need the same version",
        ),
        ("FAKE_NCCL_INIT", "fail", nccl),
        ("FAKE_NCCL_INIT", "die", "rank 1 ended before the measurement was complete"),
        ("FAKE_NCCL_REDUCE", "fail", nccl),
        ("FAKE_NCCL_REDUCE", "die", "rank 1 ended before the measurement was complete"),
    ] {
        let job = Job::new(3, &["--timeout", "30", "--no-save"]);
        let said = job.run(|rank, command| {
            if rank == 1 {
                command.env(variable, value);
            }
        });
        let expected = format!("busbound: {why}\n");
        assert_eq!((&said[0].0, &said[0].1, said[0].2), (&String::new(), &expected, Some(4)), "{value}");
        assert!(is_silent(&said[2], 4), "{variable}={value}: {:?}", said[2]);
        let own = &said[1];
        assert!(own.0.is_empty() && (own.1.is_empty() || own.1 == expected), "{variable}={value}: {own:?}");
    }
}

#[test]
fn a_rank_that_hangs_is_named() {
    let job = Job::new(2, &["--timeout", "3", "--no-save"]);
    let mut hanging = job.rank(1).env("FAKE_NCCL_INIT", "hang").spawn().unwrap();
    let (_, stderr, code) = text(&job.rank(0).output().unwrap());
    // The fake waits for it in both, like NCCL.
    let why = "busbound: ranks 0 and 1 did not answer within 3 s, while NCCL connected the ranks\n";
    assert_eq!((stderr.as_str(), code), (why, Some(4)));
    assert_eq!(hanging.wait().unwrap().code(), Some(4));
}

#[test]
fn the_others_end_when_rank_0_is_gone() {
    let job = Job::new(2, &["--timeout", "30", "--no-save"]);
    let said = job.run(|rank, command| {
        if rank == 0 {
            command.env("FAKE_NCCL_REDUCE", "die");
        }
    });
    let why = "busbound: rank 0 ended before the measurement was complete\n";
    assert_eq!((said[1].1.as_str(), said[1].2, said[0].2), (why, Some(4), Some(9)));
}

/// A terminal sends it to all of them.
#[test]
fn ctrl_c_ends_all_ranks_and_rank_0_has_what_was_measured() {
    let job = Job::new(2, &["--raw", "raw.json", "--no-save", "--full"]);
    let started = [0, 1].map(|rank| job.rank(rank).env("FAKE_NCCL_SLOW_MS", "20").spawn().unwrap());
    // Once NCCL connects them, both listen for signals; then it takes many seconds.
    while !job.path("world").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    for child in &started {
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
    }
    let said = started.map(|child| text(&child.wait_with_output().unwrap()));
    assert_eq!((said[0].1.as_str(), said[0].2), ("", Some(130)), "{said:?}");
    assert!(is_silent(&said[1], 0), "{said:?}");
    assert_eq!(job.json("raw.json")["interrupted"], true);
}

#[test]
fn wrong_sums_of_one_rank_are_wrong_data() {
    let job = Job::new(2, &["--no-save"]);
    let said = job.run(|rank, command| {
        if rank == 1 {
            command.env("FAKE_NCCL_REDUCE", "wrong");
        }
    });
    assert!(said[0].0.contains("wrong data"), "{:?}", said[0]);
}

/// Connects as soon as rank 0 listens, and says this.
fn stranger(port: u16, says: &str) -> TcpStream {
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    stream.write_all(says.as_bytes()).unwrap();
    stream
}

#[test]
fn strangers_and_other_jobs_are_refused_and_the_ranks_still_meet() {
    let job = Job::new(3, &["--timeout", "30", "--no-save"]);
    let first = job.rank(0).spawn().unwrap();
    let _silent = stranger(job.port, "");
    let mut browser = stranger(job.port, "GET / HTTP/1.1\r\n\r\n");
    let mut answer = Vec::new();
    let _ = browser.read_to_end(&mut answer);
    assert!(answer.is_empty(), "{answer:?}");
    let mut other = job.rank(2);
    let (_, stderr, code) = text(&other.env("BUSBOUND_JOB", "another").output().unwrap());
    assert_eq!(
        (code, stderr.contains("refused rank 2: it belongs to another job")),
        (Some(4), true),
        "{stderr}"
    );
    // Rank 1 twice: the later one is refused.
    let mut twice = [1, 1].map(|rank| job.rank(rank).spawn().unwrap());
    let later = loop {
        match twice.iter_mut().position(|rank| rank.try_wait().unwrap().is_some()) {
            Some(later) => break later,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let [one, two] = twice;
    let (refused, second) = if later == 0 { (one, two) } else { (two, one) };
    let (_, stderr, code) = text(&refused.wait_with_output().unwrap());
    assert_eq!(
        (code, stderr.contains("refused rank 1: rank 1 has come already")),
        (Some(4), true),
        "{stderr}"
    );
    for child in [first, second, job.rank(2).spawn().unwrap()] {
        let (_, stderr, code) = text(&child.wait_with_output().unwrap());
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
    }
    // All have come, so that nobody listens any more: the port is free.
    assert!(TcpListener::bind(("127.0.0.1", job.port)).is_ok());
}

#[test]
fn only_rank_0_says_that_connections_were_refused_and_that_the_port_is_taken() {
    let job = Job::new(2, &["--timeout", "2"]);
    let waiting = job.rank(0).spawn().unwrap();
    let _one = stranger(job.port, "hello\n");
    let (_, stderr, _) = text(&waiting.wait_with_output().unwrap());
    let why =
        "busbound: rank 1 of 2 did not come within 2 s (1 connection was refused: it was not of this job)\n";
    assert_eq!(stderr, why);
    let _taken = TcpListener::bind(("127.0.0.1", job.port)).unwrap();
    let (_, stderr, code) = text(&job.rank(0).output().unwrap());
    assert!(stderr.contains("choose another one with --port") && code == Some(4), "{stderr}");
}

/// Only a run that measures copies makes one.
#[test]
fn without_a_profile_to_add_to_rank_0_says_how_to_make_one() {
    let job = Job::new(2, &["--save", "none.json"]);
    let said = job.run(|_, _| {});
    let why =
        "busbound: none.json does not exist yet: make it first with `busbound bench --save none.json`\n";
    assert!(said[0].0.contains("one process each"), "{}", said[0].0);
    assert_eq!((said[0].1.as_str(), said[0].2), (why, Some(3)));
    assert!(is_silent(&said[1], 0) && !job.path("none.json").exists(), "{:?}", said[1]);
}

#[test]
fn what_a_launcher_says_wrongly_is_a_usage_error() {
    let job = Job::new(2, &[]);
    let (_, stderr, code) = text(&job.bare().args(["--timeout", "3"]).output().unwrap());
    assert_eq!((code, stderr.contains("started by torchrun, mpirun or srun")), (Some(2), true), "{stderr}");
    let mut command = job.rank(0);
    command.env("RANK", "two");
    let (_, stderr, code) = text(&command.output().unwrap());
    assert_eq!(
        (code, stderr.contains("RANK is \"two\", which is not a number")),
        (Some(2), true),
        "{stderr}"
    );
}

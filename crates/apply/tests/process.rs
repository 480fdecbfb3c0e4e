//! The library in a process: the same program, with and without it, prints the same. The fake driver works late and in
//! parts, so that a wrong order shows; fixtures/try/ has what the same program printed on a real GPU.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot build its parts has failed")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use busbound_apply::settings;
use busbound_apply::tally::{Counted, Kind, Read};

fn build(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The library, the fake driver and the program, built once.
fn parts() -> &'static Path {
    static PARTS: OnceLock<PathBuf> = OnceLock::new();
    PARTS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stage");
        std::fs::create_dir_all(&folder).unwrap();
        let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "busbound_apply"]);
        rustc
            .args(["-C", "opt-level=2", "--cfg", "feature=\"injected\"", "-o"])
            .arg(folder.join("library.so"));
        build(rustc.arg(crate_root.join("src/lib.rs")));
        let sources = crate_root.join("tests/program");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-o"]).arg(folder.join("libcuda.so.1"));
        build(cc.arg(sources.join("driver.c")).arg("-lpthread"));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-o"]).arg(folder.join("exercise")).arg(sources.join("exercise.c"));
        build(cc.args(["-lpthread", "-ldl"]));
        folder
    })
}

fn exercise(arguments: &[&str]) -> Command {
    let mut command = Command::new(parts().join("exercise"));
    command.args(arguments).env("LD_LIBRARY_PATH", parts()).env_remove("LD_PRELOAD");
    command
}

/// What a process printed with the library, and what it counted.
struct Staged {
    output: Output,
    tallies: Vec<Read>,
}

impl Staged {
    fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = exercise(arguments);
        command.env("LD_PRELOAD", parts().join("library.so"));
        command
            .env(settings::MODE, "on")
            .env(settings::THREADS, "4")
            .env(settings::TALLY, folder.path().join("tally"));
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        let files = std::fs::read_dir(folder.path()).unwrap();
        let tallies =
            files.map(|file| Read::of(&std::fs::read(file.unwrap().path()).unwrap()).unwrap()).collect();
        Self { output, tallies }
    }

    fn counted(&self, kind: Kind) -> Counted {
        self.tallies.iter().map(|tally| tally.counted(kind)).fold(Counted::default(), Counted::and)
    }

    fn printed(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

/// The same output as without the library, with copies that the library carried.
fn assert_same(arguments: &[&str], variables: &[(&str, &str)]) -> Staged {
    let plain = exercise(arguments).output().unwrap();
    let staged = Staged::run(arguments, variables);
    assert_eq!(String::from_utf8_lossy(&plain.stdout), staged.printed(), "{arguments:?}");
    assert_eq!(plain.status, staged.output.status, "{}", staged.said());
    assert!(plain.stdout.len() > 10 && !staged.printed().contains("differs"), "{}", staged.printed());
    staged
}

#[test]
fn every_entry_point_copies_the_same_bytes() {
    let staged = assert_same(&["entries"], &[]);
    let (there, back) = (staged.counted(Kind::StagedIn), staged.counted(Kind::StagedOut));
    // Three sizes are large enough, times twelve ways, some of which use another one for the way back; and four by address.
    assert_eq!((there.copies, back.copies), (12 * 3 + 4, 12 * 3 + 4), "{:?}", staged.tallies);
    assert_eq!(staged.counted(Kind::PassedIn).copies, 0);
}

#[test]
fn a_source_may_be_overwritten_and_a_target_read_right_after_the_call() {
    let staged = assert_same(&["races"], &[]);
    assert_eq!(staged.counted(Kind::StagedIn).copies, 24);
}

#[test]
fn threads_and_streams_do_not_mix_their_bytes() {
    assert!(assert_same(&["threads"], &[]).counted(Kind::StagedIn).copies > 50);
    // With two slots' worth of memory for all, most copies go to the driver.
    assert_same(&["threads"], &[(settings::RING_MIB, "32")]);
}

#[test]
fn captures_get_the_drivers_own_answers() {
    assert_same(&["capture"], &[]);
}

#[test]
fn threads_are_made_by_the_first_copy_and_sleep_when_there_is_none() {
    let said = assert_same(&["asleep"], &[]).said();
    let words: Vec<&str> = said.split_whitespace().collect();
    assert!(said.starts_with("0 threads before the first copy\n"), "{said}");
    // Four copy, one of them the calling one.
    let at = words.iter().position(|word| *word == "ran").unwrap();
    let (threads, ran) = (words[at - 2], words[at + 1].parse::<u64>().unwrap());
    assert!(threads == "3" && ran < 2_000, "{said}");
}

#[test]
fn a_forked_child_has_its_own_threads() {
    let staged = assert_same(&["fork"], &[]);
    assert_eq!(staged.tallies.len(), 2, "the parent, and the child that uses CUDA");
}

#[test]
fn errors_are_the_drivers_own() {
    assert_same(&["errors"], &[]);
    let staged = Staged::run(&["races"], &[("FAKE_FAILS_AFTER", "15")]);
    assert!(
        staged.printed().contains("700"),
        "an error in the middle of a copy is returned: {}",
        staged.printed()
    );
    assert!(staged.output.status.success());
}

#[test]
fn other_memory_is_left_to_the_driver() {
    let staged = assert_same(&["kinds"], &[]);
    assert_eq!(staged.counted(Kind::StagedIn).copies + staged.counted(Kind::StagedOut).copies, 0);
}

#[test]
fn a_context_that_begins_again_gets_new_memory() {
    let staged = assert_same(&["reset"], &[(settings::RING_MIB, "64")]);
    assert_eq!(staged.counted(Kind::StagedIn).copies, 12);
}

#[test]
fn every_gpu_and_context_has_its_own_memory() {
    let staged = assert_same(&["contexts"], &[]);
    // Four threads, three rounds over two GPUs and a second context of the first; then one copy each way.
    let (there, back) = (staged.counted(Kind::StagedIn).copies, staged.counted(Kind::StagedOut).copies);
    assert_eq!((there, back), (4 * 9 + 1, 4 * 9 + 1), "{}", staged.printed());
    assert!(staged.printed().contains("a stream of the other context: 400"), "{}", staged.printed());
}

#[test]
fn memory_of_another_process_is_copied_as_the_gpus_own() {
    let staged = assert_same(&["shared"], &[]);
    assert_eq!((staged.counted(Kind::StagedIn).copies, staged.counted(Kind::StagedOut).copies), (2, 2));
    assert_eq!(staged.tallies.len(), 2);
}

#[test]
fn random_copies_leave_the_same_bytes() {
    for seed in ["1", "2"] {
        let staged = assert_same(&["fuzz", seed, "200"], &[(settings::SMALLEST_KIB, "1")]);
        assert!(staged.counted(Kind::StagedIn).copies > 50);
    }
    // Large ones are cut in other ways, and differently for few and for many threads.
    for (threads, mib) in [("2", "96"), ("8", "160")] {
        let staged = assert_same(&["fuzz", threads, "16", mib], &[(settings::THREADS, threads)]);
        assert!(staged.counted(Kind::StagedOut).copies > 5);
    }
}

#[test]
fn it_steps_aside_with_one_line_where_it_cannot_help() {
    let no_memory = assert_same(&["races"], &[("FAKE_REGISTERS_NOTHING", "1")]);
    let coherent = assert_same(&["races"], &[("FAKE_COHERENT", "1")]);
    for (staged, why) in [(&no_memory, "pins no memory"), (&coherent, "directly")] {
        assert_eq!(staged.said().lines().count(), 1, "{}", staged.said());
        assert!(staged.said().contains(why), "{}", staged.said());
        assert_eq!(staged.counted(Kind::StagedIn).copies, 0);
        assert_eq!(staged.counted(Kind::PassedIn).copies, 24);
    }
}

#[test]
fn one_switch_turns_it_off() {
    let off = Staged::run(&["races"], &[(settings::MODE, "off")]);
    let observed = Staged::run(&["races"], &[(settings::MODE, "observe")]);
    assert_eq!((off.counted(Kind::PassedIn).copies, observed.counted(Kind::PassedIn).copies), (0, 24));
    assert_eq!(observed.counted(Kind::StagedIn).copies, 0);
    assert_eq!(off.printed(), observed.printed());
}

/// What was staged by a process whose number of threads follows from the CPUs, and how many threads copied.
fn by_cpus(cpus: &str, ranks: usize) -> (u64, u64, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("taskset");
    command.args(["-c", cpus]).arg(parts().join("exercise")).arg("races");
    command.env("LD_LIBRARY_PATH", parts()).env("LD_PRELOAD", parts().join("library.so"));
    command.env(settings::MODE, "on").env(settings::TALLY, folder.path().join("tally"));
    command.env(settings::LOCAL_RANKS, ranks.to_string()).env_remove(settings::THREADS);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let files = std::fs::read_dir(folder.path()).unwrap();
    let tallies: Vec<Read> =
        files.map(|file| Read::of(&std::fs::read(file.unwrap().path()).unwrap()).unwrap()).collect();
    let staged = tallies.iter().map(|tally| tally.counted(Kind::StagedIn).copies).sum();
    let threads = tallies.iter().map(|tally| tally.threads).max().unwrap_or(0);
    (staged, threads, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn ranks_of_one_machine_share_its_cpus_and_on_one_cpu_it_steps_aside() {
    let cpus = std::thread::available_parallelism().unwrap().get();
    let all = format!("0-{}", cpus - 1);
    let (staged, threads, said) = by_cpus("0", 1);
    assert_eq!((staged, threads), (0, 0), "{said}");
    assert_eq!(said.matches("the process may use one CPU here").count(), 1, "{said}");
    if cpus > 1 {
        let (staged, threads, said) = by_cpus(&all, 1);
        assert!(staged == 24 && (1..=cpus as u64).contains(&threads) && said.is_empty(), "{threads}: {said}");
        // As torchrun starts them: each rank sees all CPUs.
        let (staged, threads, said) = by_cpus(&all, cpus);
        assert_eq!((staged, threads), (0, 0), "one CPU for each rank: {said}");
    }
    if cpus >= 4 {
        let half = cpus / 2;
        let (staged, shared, _) = by_cpus(&all, 2);
        assert!(staged == 24 && shared <= half as u64, "{shared}");
        // Bound to its own half, a rank has its share already.
        let (staged, bound, _) = by_cpus(&format!("0-{}", half - 1), 2);
        assert!(staged == 24 && bound <= half as u64 && bound >= shared, "{bound}, {shared}");
    }
}

/// What a program prints with another preloaded library before and after ours.
fn printed_beside(other: &str, program: &str) -> [String; 2] {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("other.c"), other).unwrap();
    std::fs::write(at("main.c"), program).unwrap();
    let cc = || Command::new("cc");
    build(cc().args(["-shared", "-fPIC", "-o"]).arg(at("other.so")).arg(at("other.c")).arg("-ldl"));
    build(cc().arg("-o").arg(at("main")).arg(at("main.c")).arg("-ldl"));
    let (ours, other) = (parts().join("library.so"), at("other.so"));
    [[&ours, &other], [&other, &ours]].map(|paths| {
        let preload = paths.map(|path| path.display().to_string()).join(":");
        let output = Command::new(at("main")).env("LD_PRELOAD", preload).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    })
}

/// `dlsym` relative to the caller keeps its meaning: a library that wraps a function finds the next one, not itself.
#[test]
fn lookups_relative_to_the_caller_are_the_callers() {
    let wrapper = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stddef.h>\nint getpagesize(void) {\n    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, \"getpagesize\");\n    return next == NULL || next == getpagesize ? -1 : next() + 1;\n}\n";
    let program = "#include <stdio.h>\n#include <unistd.h>\nint main(void) { return printf(\"%d\\n\", getpagesize()) < 0; }\n";
    assert_eq!(printed_beside(wrapper, program), ["4097\n", "4097\n"]);
}

/// Another library that replaces `dlsym` is still asked.
#[test]
fn other_hooks_of_the_loader_stay_in_place() {
    let hook = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <string.h>\n#include <unistd.h>\nstatic int ours(void) { return 42; }\nvoid *dlsym(void *library, const char *name) {\n    void *(*next)(void *, const char *) = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, \"dlsym\", \"GLIBC_2.2.5\");\n    return strcmp(name, \"getppid\") ? next(library, name) : (void *)ours;\n}\n";
    let program = "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {\n    void *self = dlopen(NULL, RTLD_NOW);\n    int (*found)(void) = (int (*)(void))dlsym(self, \"getppid\");\n    return printf(\"%d\\n\", found()) < 0;\n}\n";
    assert_eq!(printed_beside(hook, program), ["42\n", "42\n"]);
}

/// A process that is killed leaves its counters, and nothing else.
#[test]
fn a_killed_process_leaves_its_counters() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = exercise(&["fuzz", "5", "100000"]);
    command.env("LD_PRELOAD", parts().join("library.so")).env(settings::MODE, "on");
    command.env(settings::TALLY, folder.path().join("tally")).stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let path = folder.path().join(format!("tally.{}", child.id()));
    let counted = || {
        Read::of(&std::fs::read(&path).unwrap_or_default())
            .map_or(0, |read| read.counted(Kind::StagedIn).copies)
    };
    while counted() < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(counted() >= 3);
}

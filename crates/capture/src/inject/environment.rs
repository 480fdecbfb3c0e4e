//! What does the process run with? Variables that change how PyTorch, CUDA and NCCL run, its CPUs, and the version of PyTorch. No tokens, paths, hosts or
//! command lines: the same ones that the wheel's `_environment.py` keeps.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::{numa, torch};
use crate::format::{CPUS, HOST_MEMORY, VARIABLE, VERSION};

const PREFIXES: [&str; 4] = ["NCCL_", "CUDA_", "PYTORCH_", "TORCH_"];
const NAMES: [&str; 2] = ["OMP_NUM_THREADS", "MKL_NUM_THREADS"];
/// Different on every rank, so that they say nothing.
const OF_RANK: [&str; 1] = ["CUDA_VISIBLE_DEVICES"];
/// Set by the recorder.
const OWN: [&str; 1] = ["CUDA_INJECTION64_PATH"];
const SECRET: [&str; 5] = ["TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "API_KEY"];
const LONGEST: usize = 200;
const MOST: usize = 200;

/// Keys and values of the facts about this process.
pub(super) fn facts() -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut facts = of_variables(std::env::vars_os());
    let allowed = allowed_cpus();
    let cpus = allowed.as_deref().and_then(cpus_in);
    facts.extend(cpus.map(|cpus| (CPUS.to_vec(), cpus.to_string().into_bytes())));
    facts.extend(numa::facts(Path::new("/"), allowed.as_deref()));
    facts.extend(torch::version().map(|version| ([VERSION, b"torch"].concat(), version.into_bytes())));
    facts.extend(memory().map(|bytes| (HOST_MEMORY.to_vec(), bytes.to_string().into_bytes())));
    facts
}

/// Bytes of host memory that the process may use: the machine's, or what its control group allows.
fn memory() -> Option<u64> {
    let all = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = memory_in(&all)?;
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let limit: Option<u64> = limit.and_then(|text| text.trim().parse().ok());
    Some(limit.map_or(total, |limit| limit.min(total)))
}

/// `MemTotal:  131072 kB` is 134,217,728 bytes.
fn memory_in(all: &str) -> Option<u64> {
    let total = all.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn of_variables(all: impl Iterator<Item = (OsString, OsString)>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, without_path(&value)));
    let mut kept: Vec<(String, String)> = all.filter_map(text).filter(|(name, _)| is_kept(name)).collect();
    kept.sort();
    kept.truncate(MOST);
    let key = |name: String| [VARIABLE, name.as_bytes()].concat();
    kept.into_iter().map(|(name, value)| (key(name), value.into_bytes())).collect()
}

fn is_kept(name: &str) -> bool {
    let is_one = NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let is_secret = SECRET.iter().any(|word| name.to_uppercase().contains(word));
    is_one && !is_secret && !OF_RANK.contains(&name) && !OWN.contains(&name)
}

/// Of a path, only that it is set.
fn without_path(value: &OsStr) -> String {
    let value = value.to_string_lossy();
    if value.contains(['/', '\\']) { "(a path)".to_owned() } else { value.chars().take(LONGEST).collect() }
}

/// The CPUs that the process may run on, as the kernel lists them.
fn allowed_cpus() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// `0-3,8` is five CPUs.
fn cpus_in(list: &str) -> Option<u32> {
    let count = |(first, last): (u32, u32)| (last - first).checked_add(1);
    numa::ranges(list)?.into_iter().map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(cpus_in("0-3,8"), Some(5));
        assert_eq!(cpus_in("7"), Some(1));
        assert_eq!(cpus_in("3-1"), None);
        assert_eq!(cpus_in(""), None);
    }

    #[test]
    fn the_memory_of_the_machine_is_in_bytes() {
        assert_eq!(memory_in("MemTotal:         131072 kB\nMemFree: 1 kB\n"), Some(134_217_728));
        assert_eq!(memory_in("MemFree: 1 kB"), None);
    }

    #[test]
    fn secrets_and_paths_are_not_kept() {
        let all = [
            ("NCCL_P2P_DISABLE", "1"),
            ("NCCL_TOPO_FILE", "/etc/topo.xml"),
            ("TORCH_API_KEY", "x"),
            ("CUDA_VISIBLE_DEVICES", "3"),
            ("HOME", "x"),
            ("OMP_NUM_THREADS", "8"),
        ];
        let all = all.into_iter().map(|(name, value)| (name.into(), value.into()));
        let kept: Vec<(String, String)> = of_variables(all)
            .into_iter()
            .map(|(key, value)| {
                (String::from_utf8_lossy(&key).into_owned(), String::from_utf8_lossy(&value).into_owned())
            })
            .collect();
        let expected = [
            ("variable NCCL_P2P_DISABLE", "1"),
            ("variable NCCL_TOPO_FILE", "(a path)"),
            ("variable OMP_NUM_THREADS", "8"),
        ];
        assert_eq!(kept, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    /// The wheel writes the same variables into traces of torch.profiler, so that both can be compared.
    #[test]
    fn the_wheel_keeps_the_same_variables() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/python/busbound/_environment.py");
        let source = std::fs::read_to_string(path).unwrap();
        for word in PREFIXES.iter().chain(&NAMES).chain(&OF_RANK).chain(&SECRET) {
            assert!(source.contains(&format!("\"{word}\"")), "{word}");
        }
    }
}

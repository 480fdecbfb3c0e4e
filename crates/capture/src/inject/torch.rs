//! Which version of PyTorch has the process loaded? Read from the file next to its libraries: nothing is imported.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Libraries that every build of PyTorch has, below `torch/lib`.
const LIBRARIES: [&str; 2] = ["libc10.so", "libtorch_cpu.so"];
/// The file has about ten lines.
const MOST: u64 = 16 << 10;
const LONGEST: usize = 64;

/// `2.11.0+cu130`; `None` without PyTorch.
pub(super) fn version() -> Option<String> {
    let folder = folder_in(&std::fs::read_to_string("/proc/self/maps").ok()?)?;
    let mut text = String::new();
    File::open(folder.join("version.py")).ok()?.take(MOST).read_to_string(&mut text).ok()?;
    version_in(&text)
}

/// The package that one of its libraries was mapped from.
fn folder_in(maps: &str) -> Option<PathBuf> {
    let path = |line: &str| line.find('/').map(|at| PathBuf::from(&line[at..]));
    let package = |library: &Path| {
        let is_known = LIBRARIES.iter().any(|name| library.ends_with(Path::new("torch/lib").join(name)));
        is_known.then(|| library.parent()?.parent().map(Path::to_owned)).flatten()
    };
    maps.lines().filter_map(path).find_map(|library| package(&library))
}

/// `__version__ = '2.11.0+cu130'`, as PyTorch's build writes it.
fn version_in(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("__version__"))?;
    let value = line.trim_start().strip_prefix('=')?.trim().trim_matches(['\'', '"']);
    let is_version = value.starts_with(|first: char| first.is_ascii_digit())
        && value.chars().all(|one| one.is_ascii_alphanumeric() || ".+-_".contains(one));
    (is_version && value.len() <= LONGEST).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
7f0000000000-7f0000001000 r-xp 00000000 08:01 11 /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000002000-7f0000003000 rw-p 00000000 00:00 0
7f0000004000-7f0000005000 r--p 00000000 08:01 12 /opt/my env/lib/python3.12/site-packages/torch/lib/libtorch_cpu.so
";

    #[test]
    fn the_package_is_where_its_libraries_are() {
        let folder = folder_in(MAPS).unwrap();
        assert_eq!(folder, Path::new("/opt/my env/lib/python3.12/site-packages/torch"));
        assert_eq!(folder_in(&MAPS.replace("torch/lib", "torchvision/lib")), None);
        assert_eq!(folder_in(&MAPS.replace("libtorch_cpu.so", "libmine.so")), None);
        assert_eq!(folder_in(""), None);
    }

    #[test]
    fn the_version_is_what_the_build_wrote() {
        let text = "from typing import Optional\n\n__all__ = ['__version__']\n__version__ = '2.11.0+cu130'\ndebug = False\n";
        assert_eq!(version_in(text).as_deref(), Some("2.11.0+cu130"));
        assert_eq!(version_in("__version__ = \"2.12.0a0\"\n").as_deref(), Some("2.12.0a0"));
        assert_eq!(version_in("__version__ = compute()\n"), None);
        assert_eq!(version_in("__version__ = '1/etc'\n"), None);
        assert_eq!(version_in(&format!("__version__ = '{}'\n", "1".repeat(100))), None);
    }
}

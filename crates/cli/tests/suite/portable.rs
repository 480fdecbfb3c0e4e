//! The crates that read, analyze and report run on any system: they have no code for a single one.

use std::fs;
use std::path::{Path, PathBuf};

/// All but `gpu` and `capture`, which use a driver, and the command and the wheel.
const PORTABLE: [&str; 7] = ["trace", "machine", "whatif", "diagnosis", "fleet", "report", "tables"];

/// Interfaces and paths that only some systems have.
const LOCAL: [&str; 9] = [
    "std::os::",
    "target_os",
    "cfg(unix",
    "cfg(windows",
    "libc::",
    "rustix",
    "signal_hook",
    "\"/proc",
    "\"/sys",
];

/// Reads how much memory is free from Linux, and has a fallback for other systems.
const EXCEPT: &str = "trace/src/read/memory_bound.rs";

#[test]
fn portable_crates_have_no_code_for_a_single_system() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seen = 0;
    for name in PORTABLE {
        let mut left = vec![crates.join(name).join("src"), crates.join(name).join("Cargo.toml")];
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                continue;
            }
            if path.ends_with(EXCEPT.split('/').collect::<PathBuf>()) {
                continue;
            }
            seen += 1;
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for (number, line) in text.lines().enumerate() {
                let local = LOCAL.iter().find(|local| line.contains(*local));
                assert_eq!(local, None, "{}:{}: {line}", path.display(), number + 1);
            }
        }
    }
    assert!(seen > 150, "{seen} files looked at");
}

//! The crates that read, judge and show run on any system: they hold no code for one alone.

use std::fs;
use std::path::{Path, PathBuf};

/// All but `gpu` and `capture`, which touch a driver, and the command and the wheel themselves.
const PORTABLE: [&str; 7] = ["trace", "machine", "whatif", "diagnosis", "fleet", "report", "tables"];

/// What only some systems have: interfaces, and files by their place.
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

/// Looks where Linux says how much memory is free, and has another answer where it finds nothing.
const EXCEPT: &str = "trace/src/read/memory_bound.rs";

#[test]
fn what_reads_judges_and_shows_knows_no_system() {
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

//! How a library is named for the loader, so that only glibc's finds it.
//!
//! Programs inherit the name from programs. One with another C library (musl) would not start: its loader finds the library, and refuses what
//! that needs. Such a loader leaves out, without a word, what it does not find.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Only glibc's loader replaces this, with the folder in which the system keeps its libraries.
const FOLDER: &str = "$LIB";
/// What it puts there: on Debian, on Fedora, on Arch.
const FOLDERS: [&str; 3] = ["lib/x86_64-linux-gnu", "lib64", "lib"];

/// A name of this library that only glibc's loader finds; its path, if the loader at hand does not.
pub(super) fn for_glibc(library: &Path) -> OsString {
    linked(library).ok().filter(|name| is_found(name)).unwrap_or_else(|| library.to_owned()).into_os_string()
}

/// Links to the library in every folder that the loader may look in.
fn linked(library: &Path) -> io::Result<PathBuf> {
    let (Some(name), base) = (library.file_name(), library.with_extension("")) else {
        return Err(io::Error::other("a library has a name"));
    };
    for folder in FOLDERS {
        let folder = base.join(folder);
        fs::create_dir_all(&folder)?;
        match std::os::unix::fs::symlink(library, folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(base.join(FOLDER).join(name))
}

/// Whether glibc's loader finds it. Asked of this program's own, which then only lists what it would load.
fn is_found(name: &Path) -> bool {
    let Ok(this) = std::env::current_exe() else { return false };
    let listed = Command::new(this).env("LD_TRACE_LOADED_OBJECTS", "1").env("LD_PRELOAD", name).output();
    let found = |folder: &str| {
        let expanded = name.to_string_lossy().replace(FOLDER, folder);
        listed.as_ref().is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).contains(&expanded))
    };
    FOLDERS.iter().any(|folder| found(folder))
}

//! The libraries that are loaded into programs. build.rs compiles them; they are part of this program.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// One of the libraries.
pub(crate) struct Library {
    name: &'static str,
    bytes: &'static [u8],
    /// What to say on a system that it was not built for.
    elsewhere: &'static str,
}

/// Records through CUPTI.
pub(crate) const CAPTURE: Library = Library {
    name: "capture",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/busbound_capture.so")),
    elsewhere: "recording needs Linux with glibc, and this build of busbound has no library for it",
};

/// Carries copies of pageable memory.
pub(crate) const APPLY: Library = Library {
    name: "apply",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/busbound_apply.so")),
    elsewhere: "staged copies need Linux with glibc on x86-64, and this build of busbound has no library for them",
};

impl Library {
    /// The library as a file in a directory that only this user can write to, named after what is in it.
    pub(crate) fn unpacked(&self) -> Result<PathBuf, Failure> {
        if self.bytes.is_empty() {
            return Err(Failure::output(self.elsewhere));
        }
        let digest = busbound_capture::format::crc32(self.bytes);
        let version = env!("CARGO_PKG_VERSION");
        let user = rustix::process::getuid().as_raw();
        let home = std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
        let places = home.into_iter().chain([std::env::temp_dir()]);
        let mut last = "no directory to unpack the library into".to_owned();
        for place in places {
            let directory = place.join(format!("busbound-{user}"));
            let path = directory.join(format!("{}-{version}-{digest:08x}.so", self.name));
            // The loader takes these as the end of a name.
            if path.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
                last = format!("{}: the loader takes no paths with a space or a colon", path.display());
                continue;
            }
            match self.place(&directory, &path) {
                Ok(()) => return Ok(path),
                Err(error) => last = format!("{}: {error}", path.display()),
            }
        }
        Err(Failure::output(last))
    }

    fn place(&self, directory: &Path, path: &Path) -> io::Result<()> {
        make_private(directory)?;
        if fs::read(path).is_ok_and(|there| there == self.bytes) {
            return Ok(());
        }
        // Written to the side and renamed, because two programs may start at the same time.
        let half = directory.join(format!("{}.{}.part", self.name, std::process::id()));
        fs::write(&half, self.bytes)?;
        fs::set_permissions(&half, fs::Permissions::from_mode(0o700))?;
        fs::rename(&half, path)
    }
}

/// Makes a directory that only this user can write to; fails if there is one that is not.
pub(crate) fn make_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // A directory that belongs to or is writable by others is not trusted.
    let about = fs::symlink_metadata(directory)?;
    let is_ours = std::os::unix::fs::MetadataExt::uid(&about) == rustix::process::getuid().as_raw();
    if !about.is_dir() || !is_ours || about.permissions().mode() & 0o022 != 0 {
        return Err(io::Error::other("the directory belongs to, or is writable by, somebody else"));
    }
    Ok(())
}
